"""Chat completions, as OpenAI, LM Studio, Groq, Azure, llama.cpp and others offer them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from time import monotonic

from mindex.errors import GenerationError
from mindex.providers.generate.base import MOST_ANSWER_CHARACTERS, Prompt
from mindex.providers.http import MEGABYTE
from mindex.providers.server import Rejected, Server

MOST_BYTES = 1 * MEGABYTE
READY = Prompt("", "Say: ready", max_tokens=16)

_THOUGHTS = re.compile(r"<think(ing)?>.*?(</think(ing)?>|\Z)", re.DOTALL)
# Some templates open the thoughts themselves, so that only their end is in the answer.
_END_OF_THOUGHTS = re.compile(r"\A.*?</think(ing)?>", re.DOTALL)


class ChatGenerator:
    """One language model behind `/chat/completions`. Safe to use from several threads."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._unwanted: frozenset[str] = frozenset()  # parameters that this server refused
        self._ready = False

    @property
    def name(self) -> str:
        return self._server.service.name

    def load(self) -> None:
        """Have it answer, unless it did; also when everybody else leaves it alone."""
        if not self._ready or self._server.left_alone:
            self._ask(READY, None, insists=True)

    def check(self) -> None:
        self._server.check()

    def generate(self, prompt: Prompt, *, seconds: float | None = None) -> str:
        answer = self._ask(prompt, seconds)
        choices = answer.get("choices") if isinstance(answer, Mapping) else None
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = choice.get("message") if isinstance(choice, Mapping) else None
        if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
            raise self._server.nonsense("answers without a message")
        cut = choice.get("finish_reason") == "length"
        return finished(self._server, message.get("content"), prompt, cut=cut)

    def _ask(self, prompt: Prompt, seconds: float | None, *, insists: bool = False) -> object:
        """The answer; a parameter that the server does not take is left out, and not offered again."""
        timeout = self._server.service.timeout
        deadline = monotonic() + min(timeout if seconds is None else seconds, timeout)
        unwanted = self._unwanted
        while True:
            try:
                answer = self._server.post(
                    "/chat/completions",
                    self._body(prompt, unwanted),
                    seconds=max(0.05, deadline - monotonic()),
                    most_bytes=MOST_BYTES,
                    insists=insists,
                )
            except Rejected as rejected:
                refused = _refused(rejected, prompt, unwanted)
                if not refused:
                    raise self._server.refusal(rejected) from None
                unwanted |= {refused}
                continue
            self._unwanted |= unwanted
            self._ready = True
            return answer

    def _body(self, prompt: Prompt, unwanted: frozenset[str]) -> dict[str, object]:
        by_words = prompt.schema is not None and "response_format" in unwanted
        body: dict[str, object] = {"messages": messages(prompt, with_schema=by_words), "stream": False}
        if self._server.service.model:
            body["model"] = self._server.service.model
        if "temperature" not in unwanted:
            body["temperature"] = 0
        body["max_completion_tokens" if "max_tokens" in unwanted else "max_tokens"] = prompt.max_tokens
        if prompt.schema is not None and not by_words:
            form = {"name": "answer", "schema": dict(prompt.schema)}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        return body


def _refused(rejected: Rejected, prompt: Prompt, unwanted: frozenset[str]) -> str:
    """The parameter to leave out next; nothing when it was none of them."""
    said = rejected.said.lower()
    for parameter in ("max_tokens", "temperature"):
        if parameter in said and parameter not in unwanted:
            return parameter
    if prompt.schema is not None and "response_format" not in unwanted and not rejected.too_long:
        return "response_format"
    return ""


def messages(prompt: Prompt, *, with_schema: bool = False) -> list[dict[str, str]]:
    """The prompt as a conversation; the schema in words for a server that takes it in no other way."""
    system = prompt.system
    if with_schema:
        form = f"Answer with one JSON value that fits this JSON schema, and nothing else: {json.dumps(prompt.schema)}"
        system = f"{system}\n\n{form}" if system else form
    spoken = [("system", system), ("user", prompt.user)]
    return [{"role": role, "content": _clean(text)} for role, text in spoken if text]


def finished(server: Server, content: object, prompt: Prompt, *, cut: bool) -> str:
    """The answer's text without thoughts, or the error that it is none."""
    if content is not None and not isinstance(content, str):
        raise server.nonsense("answers with something else than text")
    text = _clean(_END_OF_THOUGHTS.sub("", _THOUGHTS.sub("", content or ""))).strip()
    model, service = server.service.model or "the model", server.service
    if cut and prompt.schema is not None:
        raise GenerationError(
            f"{model} of {service} did not come to an end within {prompt.max_tokens} tokens",
            "use a model that says less before it answers",
        )
    if not text:
        raise GenerationError(f"{model} of {service} answered nothing", "use another generation.model")
    if len(text) > MOST_ANSWER_CHARACTERS:
        raise GenerationError(
            f"{model} of {service} answered {len(text)} characters where {MOST_ANSWER_CHARACTERS} are the most",
            "use another generation.model",
        )
    return text


def _clean(text: str) -> str:
    """Without halves of characters, which can be neither sent nor stored."""
    return text.encode("utf-8", "replace").decode()
