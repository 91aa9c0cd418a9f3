"""The door to language models that write: for variants of a question, contexts, facts, summaries. One table names them.

Whatever such a model answers is data: whoever asks parses it strictly, bounds it, and never runs it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from mindex.errors import GenerationError
from mindex.providers.base import ProviderSettings, created
from mindex.values import dataclass

# No answer that we ask for is longer; one that is says something else than it was asked.
MOST_ANSWER_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class Prompt:
    """What a model is asked. With a schema it is to answer with one JSON value of that shape, and nothing else."""

    system: str
    user: str
    max_tokens: int = 400
    schema: Mapping[str, object] | None = None


class Generator(Protocol):
    """One language model. Creating it is cheap; the model is loaded, or its server asked, at the first call."""

    @property
    def name(self) -> str:
        """Provider and model: part of the key under which answers are kept."""
        ...

    def load(self) -> None:
        """Make sure that it can answer; raise GenerationError when it cannot. Idempotent, thread-safe."""
        ...

    def check(self) -> None:
        """Raise GenerationError where it is known already that nobody would answer; asks nobody, and takes no time."""
        ...

    def generate(self, prompt: Prompt, *, seconds: float | None = None) -> str:
        """The answer's text, at most MOST_ANSWER_CHARACTERS; raises GenerationError. Safe from several threads.

        `seconds` bounds this one answer more tightly than the settings do.
        """
        ...


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Stands in for a language model that is configured but cannot be had: whatever needs it is left out."""

    provider: str
    model: str
    message: str
    hint: str

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"

    def load(self) -> None:
        raise GenerationError(self.message, self.hint)

    def check(self) -> None:
        raise GenerationError(self.message, self.hint)

    def generate(self, prompt: Prompt, *, seconds: float | None = None) -> str:  # noqa: ARG002 - as the protocol says
        raise GenerationError(self.message, self.hint)


# A provider is added here and in its own module, which offers `create(settings) -> Generator`.
_PROVIDERS = {
    "openai": "mindex.providers.generate.openai",
    "lmstudio": "mindex.providers.generate.lmstudio",
    "groq": "mindex.providers.generate.groq",
    "azure": "mindex.providers.generate.azure",
    "ollama": "mindex.providers.generate.ollama",
    "llama-cpp": "mindex.providers.generate.llama_cpp",
}


def create_generator(settings: ProviderSettings) -> Generator | None:
    """The configured generator, or None for provider `none`: everything works without one."""
    generator: Generator | None = created(_PROVIDERS, settings, "generation")
    return generator
