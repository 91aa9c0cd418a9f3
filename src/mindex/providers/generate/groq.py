"""Groq's language models."""

from __future__ import annotations

from mindex.providers import known_servers
from mindex.providers.base import ProviderSettings
from mindex.providers.generate.base import Generator
from mindex.providers.generate.chat import ChatGenerator
from mindex.providers.server import Server

DEFAULT = "llama-3.1-8b-instant"


def create(settings: ProviderSettings) -> Generator:
    return ChatGenerator(Server(known_servers.groq("generation", settings, settings.model or DEFAULT)))
