"""Groq has language models and no embeddings. Named as an embedder, it says so, and search is by keyword."""

from mindex.errors import EmbeddingError
from mindex.providers.base import ProviderSettings, unavailable
from mindex.providers.embed.base import Embedder


def create(settings: ProviderSettings) -> Embedder:
    error = EmbeddingError(
        "groq has no embedding models, it only chats",
        "set embedding.provider to local, ollama, openai or another, and generation.provider to groq",
    )
    return unavailable("embedding", settings, settings.model or "none", error)
