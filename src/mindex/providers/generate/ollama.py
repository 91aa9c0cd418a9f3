"""Ollama's language models, through `/api/chat`."""

from collections.abc import Mapping

from mindex.providers.base import ProviderSettings
from mindex.providers.generate.base import Generator, Prompt
from mindex.providers.generate.chat import Answer, Body, ChatGenerator, ChatInterface, messages
from mindex.providers.known_servers import server_spec
from mindex.providers.server import Server

DEFAULT = "llama3.2"

# Ollama's default context; of a longer conversation it drops the beginning silently.
_DEFAULT_WINDOW = 4096
_MAX_WINDOW = 32_768
_CHARACTERS_PER_TOKEN = 3


def create(settings: ProviderSettings) -> Generator:
    server = Server(server_spec("generation", settings, settings.model or DEFAULT))
    return ChatGenerator(server, ChatInterface("/api/chat", _body, _answer, drops_parameters=False))


def _body(model: str, prompt: Prompt, refused: frozenset[str]) -> Body:  # noqa: ARG001 - as the interface says
    options: Body = {"temperature": 0, "num_predict": prompt.max_tokens}
    window = _window(prompt)
    if window > _DEFAULT_WINDOW:
        options["num_ctx"] = window
    body: Body = {"model": model, "messages": messages(prompt), "stream": False, "options": options}
    return body if prompt.schema is None else {**body, "format": dict(prompt.schema)}


def _answer(answer: Mapping[str, object]) -> Answer | None:
    message = answer.get("message")
    if not isinstance(message, Mapping):
        return None
    return Answer(message.get("content"), answer.get("done_reason") == "length")


def _window(prompt: Prompt) -> int:
    """Return the smallest power of two of tokens that holds prompt and answer: few sizes, as each reloads the model."""
    tokens = (len(prompt.system) + len(prompt.user)) // _CHARACTERS_PER_TOKEN + prompt.max_tokens
    window = _DEFAULT_WINDOW
    while window < min(tokens, _MAX_WINDOW):
        window *= 2
    return window
