"""Azure OpenAI: `embedding.model` is the name of a deployment, `embedding.url` the resource's address."""

from __future__ import annotations

from mindex.providers import known_servers
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import Embedder
from mindex.providers.embed.known_models import space
from mindex.providers.embed.openai import wire
from mindex.providers.embed.remote import RemoteEmbedder
from mindex.providers.server import Server


def create(settings: ProviderSettings) -> Embedder:
    deployment = settings.model
    return RemoteEmbedder(
        Server(known_servers.azure("embedding", settings, deployment)),
        wire(deployment, settings.dimensions),
        space(settings.provider, deployment),
        settings.dimensions,
    )
