"""Ollama's embeddings, through `/api/embed`."""

from collections.abc import Sequence

from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder
from mindex.providers.embed.remote import EmbeddingInterface, list_in, remote_embedder

DEFAULT = "nomic-embed-text"


def create(settings: ProviderSettings) -> Embedder:
    model = settings.model or DEFAULT
    # Versions before September 2025 ignore it and answer in full length, which is noticed.
    shortened: dict[str, object] = {"dimensions": settings.dimensions} if settings.dimensions else {}

    def body(texts: Sequence[str]) -> dict[str, object]:
        # By default it cuts what is too long, silently.
        return {"model": model, "input": list(texts), "truncate": False, **shortened}

    interface = EmbeddingInterface("/api/embed", body, lambda answer: list_in(answer, "embeddings"))
    return remote_embedder(settings, model, interface)
