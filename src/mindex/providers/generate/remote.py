"""Language models on servers: through OpenAI's chat completions, which most offer, or Ollama's own interface."""

import json
import re
from collections.abc import Callable, Mapping
from time import monotonic

from mindex.errors import GenerationError
from mindex.providers.base import ProviderSettings, clean
from mindex.providers.generate.base import MAX_ANSWER_CHARACTERS, Generator, Prompt
from mindex.providers.http import MEGABYTE
from mindex.providers.known_servers import server_spec
from mindex.providers.server import Limits, ModelServer, Rejected, Server
from mindex.values import dataclass

READY = Prompt("", "Say: ready", max_tokens=16)

_MAX_BYTES = 1 * MEGABYTE
_THOUGHTS = re.compile(r"<think(ing)?>.*?(</think(ing)?>|\Z)", re.DOTALL)
# Some templates open the thoughts themselves, so that only their end is in the answer.
_END_OF_THOUGHTS = re.compile(r"\A.*?</think(ing)?>", re.DOTALL)

# Without a name, LM Studio uses the model that is loaded; Azure needs the name of a deployment.
_DEFAULT_MODELS = {"openai": "gpt-4o-mini", "groq": "llama-3.1-8b-instant", "ollama": "llama3.2"}
# Ollama's default context; of a longer conversation it drops the beginning silently.
_DEFAULT_WINDOW = 4096
_MAX_WINDOW = 32_768
_CHARACTERS_PER_TOKEN = 3

Body = dict[str, object]


def create(settings: ProviderSettings) -> Generator:
    default = _DEFAULT_MODELS.get(settings.provider, "")
    if settings.provider == "openai" and settings.url:  # another server has its own models, and may have only one
        default = ""
    interface = ChatInterface()
    if settings.provider == "ollama":
        interface = ChatInterface("/api/chat", _ollama_body, _ollama_answer, drops_parameters=False)
    return ChatGenerator(Server(server_spec("generation", settings, settings.model or default)), interface)


@dataclass(frozen=True, slots=True)
class Answer:
    """The content of a model's message, and whether it was cut at the number of tokens."""

    content: object
    is_cut: bool


def chat_body(model: str, prompt: Prompt, refused: frozenset[str]) -> Body:
    """Return an OpenAI request, without the parameters that the server has refused before."""
    in_words = prompt.schema is not None and "response_format" in refused
    body: Body = {"messages": messages(prompt, with_schema=in_words), "stream": False}
    if model:
        body["model"] = model
    if "temperature" not in refused:
        body["temperature"] = 0
    body["max_completion_tokens" if "max_tokens" in refused else "max_tokens"] = prompt.max_tokens
    if prompt.schema is not None and not in_words:
        form = {"name": "answer", "schema": dict(prompt.schema)}
        body["response_format"] = {"type": "json_schema", "json_schema": form}
    return body


def chat_answer(answer: Mapping[str, object]) -> Answer | None:
    choices = answer.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, Mapping) else None
    if not isinstance(choice, Mapping) or not isinstance(message, Mapping):
        return None
    return Answer(message.get("content"), choice.get("finish_reason") == "length")


@dataclass(frozen=True, slots=True)
class ChatInterface:
    """How a kind of server is asked, and where in its answer the message is (None: nowhere)."""

    path: str = "/chat/completions"
    body: Callable[[str, Prompt, frozenset[str]], Body] = chat_body
    answer: Callable[[Mapping[str, object]], Answer | None] = chat_answer
    drops_parameters: bool = True  # whether a request is repeated without what the server refuses


class ChatGenerator:
    """One language model on one server. Safe to use from several threads."""

    def __init__(self, server: ModelServer, interface: ChatInterface) -> None:
        self._server = server
        self._interface = interface
        self._refused: frozenset[str] = frozenset()  # parameters that this server refused
        self._has_answered = False

    @property
    def name(self) -> str:
        return self._server.spec.name

    def load(self) -> None:
        """Have it answer, unless it did; also when its breaker is open."""
        if not self._has_answered or self._server.is_down:
            self._ask(READY, Limits(max_bytes=_MAX_BYTES, insists=True))

    def check(self) -> None:
        self._server.check()

    def generate(self, prompt: Prompt, *, seconds: float | None = None) -> str:
        timeout = self._server.spec.timeout
        deadline = monotonic() + min(timeout if seconds is None else seconds, timeout)
        answer = self._ask(prompt, Limits(deadline, max_bytes=_MAX_BYTES))
        message = self._interface.answer(answer) if isinstance(answer, Mapping) else None
        if message is None:
            raise self._server.invalid_answer("answers without a message")
        return self._text(message, prompt)

    def _ask(self, prompt: Prompt, limits: Limits) -> object:
        """Return the answer; a parameter that the server refuses is left out, and not offered again."""
        refused = self._refused
        while True:
            body = self._interface.body(self._server.spec.model, prompt, refused)
            try:
                answer = self._server.post(self._interface.path, body, limits)
            except Rejected as rejected:
                parameter = _refused_parameter(rejected, prompt, refused) if self._interface.drops_parameters else ""
                if not parameter:
                    raise self._server.refusal(rejected) from None
                refused |= {parameter}
                continue
            self._refused |= refused
            self._has_answered = True
            return answer

    def _text(self, answer: Answer, prompt: Prompt) -> str:
        """Return the answer's text without thoughts. Raises GenerationError for one that cannot be used."""
        if answer.content is not None and not isinstance(answer.content, str):
            raise self._server.invalid_answer("answers with something else than text")
        text = clean(_END_OF_THOUGHTS.sub("", _THOUGHTS.sub("", answer.content or ""))).strip()
        model = self._server.spec.model_title
        if answer.is_cut and prompt.schema is not None:
            message = f"{model} did not come to an end within {prompt.max_tokens} tokens"
            raise GenerationError(message, "use a model that says less before it answers")
        if not text:
            raise GenerationError(f"{model} answered nothing", "use another generation.model")
        if len(text) > MAX_ANSWER_CHARACTERS:
            message = f"{model} answered {len(text)} characters where {MAX_ANSWER_CHARACTERS} are the most"
            raise GenerationError(message, "use another generation.model")
        return text


def _refused_parameter(rejected: Rejected, prompt: Prompt, refused: frozenset[str]) -> str:
    """Return the parameter to leave out next; empty when none of them was the reason."""
    reason = rejected.reason.lower()
    for parameter in ("max_tokens", "temperature"):
        if parameter in reason and parameter not in refused:
            return parameter
    if prompt.schema is not None and "response_format" not in refused and not rejected.too_long:
        return "response_format"
    return ""


def messages(prompt: Prompt, *, with_schema: bool = False) -> list[dict[str, str]]:
    """Return the prompt as a conversation; with the schema as text, for a server that takes it in no other way."""
    system = prompt.system
    if with_schema:
        form = f"Answer with one JSON value that fits this JSON schema, and nothing else: {json.dumps(prompt.schema)}"
        system = f"{system}\n\n{form}" if system else form
    texts = [("system", system), ("user", prompt.user)]
    return [{"role": role, "content": clean(text)} for role, text in texts if text]


# ── Ollama ────────────────────────────────────────────────────────────────────────────────────────────────────


def _ollama_body(model: str, prompt: Prompt, refused: frozenset[str]) -> Body:  # noqa: ARG001 - as the interface says
    options: Body = {"temperature": 0, "num_predict": prompt.max_tokens}
    window = _window(prompt)
    if window > _DEFAULT_WINDOW:
        options["num_ctx"] = window
    body: Body = {"model": model, "messages": messages(prompt), "stream": False, "options": options}
    return body if prompt.schema is None else {**body, "format": dict(prompt.schema)}


def _ollama_answer(answer: Mapping[str, object]) -> Answer | None:
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
