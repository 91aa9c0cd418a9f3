"""Embeddings of OpenAI and of servers that are compatible with it: LM Studio, Azure, any other at `embedding.url`."""

from collections.abc import Sequence

from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder
from mindex.providers.embed.remote import EmbeddingInterface, list_in, remote_embedder, rows_by_index

# LM Studio's comes with it. Azure has none: there, a model is the name of a deployment.
_DEFAULTS = {"openai": "text-embedding-3-small", "lmstudio": "text-embedding-nomic-embed-text-v1.5"}


def create(settings: ProviderSettings) -> Embedder:
    model = settings.model or _DEFAULTS.get(settings.provider, "")

    def body(texts: Sequence[str]) -> dict[str, object]:
        shortened = {"dimensions": settings.dimensions} if settings.dimensions else {}
        return {"model": model, "input": list(texts), **shortened}

    return remote_embedder(settings, model, EmbeddingInterface("/embeddings", body, vectors_of))


def vectors_of(answer: object) -> Sequence[object]:
    """Return the vectors of an answer in the order of the texts. Raises ValueError if there are none."""
    return rows_by_index(list_in(answer, "data"))
