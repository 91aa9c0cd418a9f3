"""Cloudflare Workers AI. Vectors of its two poolings cannot be compared, so each request names one."""

from collections.abc import Sequence

from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder
from mindex.providers.embed.remote import EmbeddingInterface, list_in, remote_embedder

DEFAULT = "@cf/baai/bge-base-en-v1.5"
_POOLING = "cls"


def create(settings: ProviderSettings) -> Embedder:
    model = settings.model or DEFAULT
    return remote_embedder(settings, model, EmbeddingInterface(f"/{model}", _body, _vectors), _POOLING)


def _body(texts: Sequence[str]) -> dict[str, object]:
    return {"text": list(texts), "pooling": _POOLING}


def _vectors(answer: object) -> Sequence[object]:
    vectors = list_in(answer, "result", "data")
    if isinstance(answer, dict) and answer["result"].get("pooling", _POOLING) != _POOLING:
        raise ValueError(f"answers with another pooling than {_POOLING}")
    return vectors
