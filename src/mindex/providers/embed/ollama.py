"""Ollama's embeddings, through `/api/embed`."""

from __future__ import annotations

from collections.abc import Sequence

from mindex.providers import known_servers
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder
from mindex.providers.embed.known_models import space
from mindex.providers.embed.remote import RemoteEmbedder, Wire
from mindex.providers.server import Server

DEFAULT = "nomic-embed-text"


def create(settings: ProviderSettings) -> Embedder:
    model = settings.model or DEFAULT
    # Versions before September 2025 do not know the word, and answer in full length: that is noticed.
    shortened: dict[str, object] = {"dimensions": settings.dimensions} if settings.dimensions else {}

    def body(texts: Sequence[str]) -> dict[str, object]:
        # Left to itself it cuts what is too long and does not say so.
        return {"model": model, "input": list(texts), "truncate": False, **shortened}

    return RemoteEmbedder(
        Server(known_servers.ollama("embedding", settings, model)),
        Wire("/api/embed", body, _vectors),
        space(settings.provider, model),
        settings.dimensions,
    )


def _vectors(answer: object) -> Sequence[object]:
    rows = answer.get("embeddings") if isinstance(answer, dict) else None
    if not isinstance(rows, list):
        raise ValueError("answers without embeddings")
    return rows
