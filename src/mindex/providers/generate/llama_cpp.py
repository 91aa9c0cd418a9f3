"""Language models in GGUF files, run by llama.cpp. An answer that has to be JSON is held to its schema word by word."""

from __future__ import annotations

from pathlib import Path

from mindex.errors import GenerationError, ProviderError
from mindex.providers.base import ProviderSettings, failing_as
from mindex.providers.generate.base import MOST_ANSWER_CHARACTERS, Generator, Prompt, Unavailable
from mindex.providers.llama_cpp import GgufModel, LlamaServer, Rejected, describe, server_for

_OTHER_FILE = "let generation.model name another GGUF file"


def create(settings: ProviderSettings) -> Generator:
    """The language model in the GGUF file that `settings.model` names; llama.cpp is started when it is first needed."""
    try:
        file = describe(settings.model, "generation.model")
        if file.judges or not file.writes:
            raise ProviderError(f"{file.path} is no language model: it reads and does not write", _OTHER_FILE)
    except ProviderError as error:
        return Unavailable("llama-cpp", Path(settings.model).stem, error.message, error.hint)
    return LlamaGenerator(file, server_for(file, "chat"), settings.timeout)


class LlamaGenerator:
    """One GGUF model. Safe to use from several threads, which wait for each other."""

    def __init__(self, file: GgufModel, server: LlamaServer, timeout: float) -> None:
        self._file = file
        self._server = server
        self._timeout = timeout

    @property
    def name(self) -> str:
        return f"llama-cpp/{self._file.name}"

    def load(self) -> None:
        with failing_as(GenerationError):
            self._server.load()

    def check(self) -> None:
        """Nothing is known of a file before it is opened."""

    def generate(self, prompt: Prompt, *, seconds: float | None = None) -> str:
        with failing_as(GenerationError):
            try:
                answer = self._server.ask("/v1/chat/completions", _body(prompt), seconds or self._timeout)
            except Rejected as error:
                raise ProviderError(f"llama.cpp cannot ask {self._file.title} ({error})", _OTHER_FILE) from None
        choices = answer.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        message = choice.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        text = content.strip() if isinstance(content, str) else ""
        if prompt.schema is not None and choice.get("finish_reason") == "length":
            raise GenerationError(
                f"{self._file.title} did not come to an end within {prompt.max_tokens} tokens", _OTHER_FILE
            )
        if not text:
            raise GenerationError(f"{self._file.title} answered nothing", _OTHER_FILE)
        if len(text) > MOST_ANSWER_CHARACTERS:
            raise GenerationError(f"{self._file.title} answered {len(text)} characters", _OTHER_FILE)
        return text


def _body(prompt: Prompt) -> dict[str, object]:
    spoken = (("system", prompt.system), ("user", prompt.user))
    body: dict[str, object] = {
        "messages": [{"role": role, "content": _plain(words)} for role, words in spoken if words],
        "max_tokens": prompt.max_tokens,
        "temperature": 0,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    if prompt.schema is not None:
        form = {"name": "answer", "schema": dict(prompt.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    return body


def _plain(words: str) -> str:
    """Without halves of characters, and without the marks that end one's turn: a text must not speak for another."""
    return words.encode("utf-8", "replace").decode().replace("<|", "< |").replace("|>", "| >")
