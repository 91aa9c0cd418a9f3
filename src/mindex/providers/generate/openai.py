"""OpenAI's language models, or those of any server that speaks as it does at `generation.url`."""

from __future__ import annotations

from mindex.providers import known_servers
from mindex.providers.base import ProviderSettings
from mindex.providers.generate.base import Generator
from mindex.providers.generate.chat import ChatGenerator
from mindex.providers.server import Server

DEFAULT = "gpt-4o-mini"


def create(settings: ProviderSettings) -> Generator:
    # Somebody else's server has models of its own; many have one, and need not be told which.
    model = settings.model or ("" if settings.url else DEFAULT)
    return ChatGenerator(Server(known_servers.openai("generation", settings, model)))
