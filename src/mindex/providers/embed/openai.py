"""OpenAI's embeddings, or those of any server that speaks as it does at `embedding.url`."""

from __future__ import annotations

from collections.abc import Sequence

from mindex.providers import known_servers
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder
from mindex.providers.embed.known_models import space
from mindex.providers.embed.remote import RemoteEmbedder, Wire, by_index
from mindex.providers.server import Server

DEFAULT = "text-embedding-3-small"


def create(settings: ProviderSettings) -> Embedder:
    model = settings.model or DEFAULT
    return RemoteEmbedder(
        Server(known_servers.openai("embedding", settings, model)),
        wire(model, settings.dimensions),
        space(settings.provider, model),
        settings.dimensions,
    )


def wire(model: str, dimensions: int = 0) -> Wire:
    """`POST …/embeddings`, which LM Studio, Azure, llama.cpp, vLLM and others offer too."""

    def body(texts: Sequence[str]) -> dict[str, object]:
        return {"model": model, "input": list(texts), **({"dimensions": dimensions} if dimensions else {})}

    return Wire("/embeddings", body, _vectors)


def _vectors(answer: object) -> Sequence[object]:
    rows = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise ValueError("answers without embeddings")
    return by_index(rows)
