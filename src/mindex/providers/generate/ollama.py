"""Ollama's language models, through `/api/chat`."""

from __future__ import annotations

import threading
from collections.abc import Mapping

from mindex.providers import known_servers
from mindex.providers.base import ProviderSettings
from mindex.providers.generate.base import Generator, Prompt
from mindex.providers.generate.chat import MOST_BYTES, READY, finished, messages
from mindex.providers.server import Rejected, Server

DEFAULT = "llama3.2"

# What Ollama reads unless told otherwise; of a longer conversation it drops the beginning without a word.
_USUAL_WINDOW = 4096
_LARGEST_WINDOW = 32_768
_CHARACTERS_PER_TOKEN = 3


def create(settings: ProviderSettings) -> Generator:
    return OllamaGenerator(Server(known_servers.ollama("generation", settings, settings.model or DEFAULT)))


class OllamaGenerator:
    """One language model of Ollama. Safe to use from several threads."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._ready = threading.Event()

    @property
    def name(self) -> str:
        return self._server.service.name

    def load(self) -> None:
        """Have it answer, unless it did; also when everybody else leaves it alone."""
        if not self._ready.is_set() or self._server.left_alone:
            self._ask(READY, None, insists=True)

    def check(self) -> None:
        self._server.check()

    def generate(self, prompt: Prompt, *, seconds: float | None = None) -> str:
        answer = self._ask(prompt, seconds)
        message = answer.get("message") if isinstance(answer, Mapping) else None
        if not isinstance(answer, Mapping) or not isinstance(message, Mapping):
            raise self._server.nonsense("answers without a message")
        return finished(self._server, message.get("content"), prompt, cut=answer.get("done_reason") == "length")

    def _ask(self, prompt: Prompt, seconds: float | None, *, insists: bool = False) -> object:
        options: dict[str, object] = {"temperature": 0, "num_predict": prompt.max_tokens}
        window = _window(prompt)
        if window > _USUAL_WINDOW:
            options["num_ctx"] = window
        body: dict[str, object] = {
            "model": self._server.service.model,
            "messages": messages(prompt),
            "stream": False,
            "options": options,
        }
        if prompt.schema is not None:
            body["format"] = dict(prompt.schema)
        try:
            answer = self._server.post("/api/chat", body, seconds=seconds, most_bytes=MOST_BYTES, insists=insists)
        except Rejected as rejected:
            raise self._server.refusal(rejected) from None
        self._ready.set()
        return answer


def _window(prompt: Prompt) -> int:
    """The smallest power of two of tokens that holds question and answer: few sizes, since each reloads the model."""
    tokens = (len(prompt.system) + len(prompt.user)) // _CHARACTERS_PER_TOKEN + prompt.max_tokens
    window = _USUAL_WINDOW
    while window < min(tokens, _LARGEST_WINDOW):
        window *= 2
    return window
