"""Azure OpenAI: `generation.model` is the name of a deployment, `generation.url` the resource's address."""

from __future__ import annotations

from mindex.providers import known_servers
from mindex.providers.base import ProviderSettings
from mindex.providers.generate.base import Generator
from mindex.providers.generate.chat import ChatGenerator
from mindex.providers.server import Server


def create(settings: ProviderSettings) -> Generator:
    return ChatGenerator(Server(known_servers.azure("generation", settings, settings.model)))
