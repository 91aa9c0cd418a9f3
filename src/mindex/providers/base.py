"""What providers of every role share: settings, how a model is created, and a stand-in for one that cannot be used."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

from mindex.datatypes import Model, Role
from mindex.errors import ConfigError, EmbeddingError, GenerationError, MindexError, ProviderError, RerankError
from mindex.provider_table import BY_ROLE, PROVIDERS, Provider, module_of
from mindex.values import dataclass

if TYPE_CHECKING:
    from mindex.entry_points import Group

ERRORS: Mapping[Role, type[ProviderError]] = {
    "embedding": EmbeddingError,
    "rerank": RerankError,
    "generation": GenerationError,
}
_GROUPS: Mapping[Role, "Group"] = {"embedding": "embedders", "rerank": "rerankers", "generation": "generators"}
# Providers that run on this machine: they take time to load, but have no address and do not hang.
IN_PROCESS = tuple(name for name, provider in PROVIDERS.items() if provider.in_process)
# Sent for an empty text: Ollama answers nothing to it, OpenAI refuses it.
STAND_IN = "."
# Of a text for a model on this machine. None of 512 tokens is longer, except one of blanks or of one endless word.
MAX_CHARACTERS = 20_000


def full_name(provider: str, model: str) -> str:
    """Return an embedding model's name as it is stored and compared; a short name is replaced by the full one."""
    row = PROVIDERS.get(provider, Provider())
    if row.has_packages and "/" in model:
        from mindex.providers.hub import hub_name  # most models are not named by a repository

        return hub_name(model)
    return dict(row.short_names).get(model.lower(), model)


@dataclass(frozen=True, slots=True)
class ProviderSettings:
    """Which model is wanted and how it is reached; each provider reads the fields that concern it."""

    provider: str
    model: str = ""
    url: str = ""
    api_key: str = field(default="", repr=False)
    timeout: float = 30.0
    # The length of an embedder's vectors; 0: the model's own.
    dimensions: int = 0
    # Whether a key may be sent there. Not to an address that only a database names.
    keyed: bool = True


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Replaces a configured model that cannot be used, in any role. Every use of it raises the role's error.

    Records are still stored and found by keyword, their vectors wait; searches go on without a reranker or a language
    model.
    """

    model: Model
    message: str
    hint: str
    role: Role = "embedding"

    loaded: ClassVar[bool] = False
    doubt: ClassVar[None] = None
    weight: ClassVar[float] = 0.0

    @property
    def name(self) -> str:
        return f"{self.model.provider}/{self.model.name}"

    def trouble(self) -> str:
        return str(self._error())

    def fluency(self, texts: Sequence[str]) -> list[float]:
        return [1.0 for _ in texts]

    def load(self, *_: object, **__: object) -> NoReturn:
        raise self._error()

    check = embed = embed_query = score = generate = load

    def _error(self) -> ProviderError:
        return ERRORS[self.role](self.message, self.hint)


def create_model(role: Role, settings: ProviderSettings) -> Any:
    """Import the provider's module now and return the model that it creates; None for the provider `none`.

    A model that cannot be created is an Unavailable one. Raises ConfigError for an unknown embedding provider, before
    anything is stored; in another role it is only a model that cannot be used.
    """
    provider = settings.provider
    if provider == "none":
        return None
    row, name = PROVIDERS.get(provider, Provider()), settings.model or "none"
    failure: MindexError
    try:
        if role == "embedding" and not row.embeds:
            hint = f"set embedding.provider to local, ollama, openai or another, and generation.provider to {provider}"
            raise EmbeddingError(f"{provider} has no embedding models, it only chats", hint)
        return maker(role, provider)(settings)
    except ConfigError as error:
        if role == "embedding":
            raise
        name, failure = settings.model, error
    except ProviderError as error:
        if row.in_process:  # a folder, or a file
            path = Path(settings.model)
            name = path.name if row.has_packages else path.stem
        failure = error
    return Unavailable(Model(provider, name, dimensions=0), failure.message, failure.hint, role)


def maker(role: Role, provider: str) -> Callable[[ProviderSettings], Any]:
    """Return the function that makes a provider's models.

    Raises ConfigError for an unknown provider, and for one whose extension is missing.
    """
    if provider in BY_ROLE[role] and not PROVIDERS[provider].package:
        create: Callable[[ProviderSettings], Any] = import_module(module_of(role, provider)).create
        return create
    from mindex.entry_points import is_registered, load  # most providers are the core's

    if provider not in BY_ROLE[role] and not is_registered(_GROUPS[role], provider):
        known = ", ".join(["none", *BY_ROLE[role]])
        raise ConfigError(f"unknown {role} provider '{provider}'", f"set {role}.provider to one of {known}")
    made: Callable[[ProviderSettings], Any] = load(_GROUPS[role], provider)
    return made


@contextmanager
def raise_as(kind: type[ProviderError]) -> Iterator[None]:
    """Turn a ProviderError from inside into one of this kind: an embedder's, a reranker's, a generator's."""
    try:
        yield
    except ProviderError as error:
        if isinstance(error, kind):
            raise
        raise kind(error.message, error.hint) from error


def clean(text: str, most: int | None = None) -> str:
    """Return the text, or its first characters, as UTF-8 carries it: half a surrogate pair becomes a question mark."""
    return text[:most].encode("utf-8", "replace").decode("utf-8")


def clean_for_server(text: str, most: int) -> str:
    """Return the text's first characters as every server takes them: no NUL, and a full stop for an empty text."""
    text = clean(text, most).replace("\0", " ")
    return text if text.strip() else STAND_IN


def usable_cores() -> int:
    """Return the number of cores that this process may use, which may be fewer than the machine has."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
