"""Language models of OpenAI and of servers that are compatible with it: LM Studio, Groq, Azure, any other at a URL."""

from mindex.providers.base import ProviderSettings
from mindex.providers.generate.base import Generator
from mindex.providers.generate.chat import ChatGenerator
from mindex.providers.known_servers import server_spec
from mindex.providers.server import Server

# Without a name, LM Studio uses the model that is loaded; Azure needs the name of a deployment.
_DEFAULTS = {"openai": "gpt-4o-mini", "groq": "llama-3.1-8b-instant"}


def create(settings: ProviderSettings) -> Generator:
    default = _DEFAULTS.get(settings.provider, "")
    if settings.provider == "openai" and settings.url:  # another server has its own models, and may have only one
        default = ""
    return ChatGenerator(Server(server_spec("generation", settings, settings.model or default)))
