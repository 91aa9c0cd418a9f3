"""The interface of language models, which write variants of a query, contexts, facts and summaries.

An answer of such a model is data: callers parse it strictly, bound it, and never run it.
"""

from collections.abc import Mapping
from typing import Protocol

from mindex.providers.base import ProviderSettings, create_model
from mindex.values import dataclass

# No valid answer is longer.
MAX_ANSWER_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class Prompt:
    """The input of a language model. With a schema the answer must be one JSON value of that shape."""

    system: str
    user: str
    max_tokens: int = 400
    schema: Mapping[str, object] | None = None


def object_schema(**properties: object) -> Mapping[str, object]:
    """Return the JSON schema of an object that has all of these properties and no others."""
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


class Generator(Protocol):
    """One language model. Creating it is cheap; the model is loaded, or its server called, at first use."""

    @property
    def name(self) -> str:
        """Provider and model: part of the key under which answers are cached."""

    def load(self) -> None:
        """Make sure that it can answer; raise GenerationError when it cannot. Idempotent, thread-safe."""

    def check(self) -> None:
        """Raise GenerationError where it is known already that it would fail. Sends nothing, and takes no time."""

    def generate(self, prompt: Prompt, *, seconds: float | None = None) -> str:
        """Return the answer's text, at most MAX_ANSWER_CHARACTERS; raise GenerationError. Thread-safe.

        `seconds` bounds this one answer more tightly than the settings do.
        """


def create_generator(settings: ProviderSettings) -> Generator | None:
    """Return the configured language model; None for the provider `none`. An unusable one raises when it is used."""
    generator: Generator | None = create_model("generation", settings)
    return generator
