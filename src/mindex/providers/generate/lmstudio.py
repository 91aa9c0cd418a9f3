"""LM Studio: a server on this machine that speaks as OpenAI does. Without a name, the model that is loaded answers."""

from __future__ import annotations

from mindex.providers import known_servers
from mindex.providers.base import ProviderSettings
from mindex.providers.generate.base import Generator
from mindex.providers.generate.chat import ChatGenerator
from mindex.providers.server import Server


def create(settings: ProviderSettings) -> Generator:
    return ChatGenerator(Server(known_servers.lm_studio("generation", settings, settings.model)))
