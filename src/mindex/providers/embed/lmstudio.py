"""LM Studio: a server on this machine that speaks as OpenAI does."""

from __future__ import annotations

from mindex.providers import known_servers
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder
from mindex.providers.embed.known_models import space
from mindex.providers.embed.openai import wire
from mindex.providers.embed.remote import RemoteEmbedder
from mindex.providers.server import Server

DEFAULT = "text-embedding-nomic-embed-text-v1.5"  # the one that LM Studio brings along


def create(settings: ProviderSettings) -> Embedder:
    model = settings.model or DEFAULT
    return RemoteEmbedder(
        Server(known_servers.lm_studio("embedding", settings, model)), wire(model), space(settings.provider, model)
    )
