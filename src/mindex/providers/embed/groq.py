"""Groq chats and does not embed. Whoever asks it to is told so, and everything else goes on by keyword."""

from __future__ import annotations

from mindex.model import Model
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder, Unavailable


def create(settings: ProviderSettings) -> Embedder:
    return Unavailable(
        Model(settings.provider, settings.model or "none", dimensions=0),
        "groq has no embedding models, it only chats",
        "set embedding.provider to local, ollama, openai or another, and generation.provider to groq",
    )
