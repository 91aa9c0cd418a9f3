"""The door to rerankers: models that read a question and a text together. One table names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Protocol

from mindex.errors import RerankError
from mindex.providers.base import ProviderSettings, created
from mindex.values import dataclass


class Reranker(Protocol):
    """One cross-encoder. Creating it is cheap; the model is loaded at the first call that needs it."""

    @property
    def name(self) -> str:
        """Provider, model and whatever else decides a score: part of the key under which scores are kept."""
        ...

    @property
    def doubt(self) -> tuple[float, float] | None:
        """The best text's score up to which the order says nothing, and from which on it counts in full.

        A cross-encoder that finds no answer among the texts orders them by chance. None: nobody knows its scale.
        """
        ...

    @property
    def loaded(self) -> bool: ...

    def load(self) -> None:
        """Load now; raise RerankError when the model is missing or broken. Idempotent, thread-safe."""
        ...

    def score(self, query: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float]:
        """How well each text answers the question: any scale, higher is better, finite.

        Raises RerankError, also when `seconds` have passed before the last text was scored. A text is scored the same
        whatever stands beside it.
        """
        ...


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Stands in for a reranker that is configured but cannot be had: answers go out without it."""

    provider: str
    model: str
    message: str
    hint: str

    doubt: ClassVar[None] = None

    @property
    def name(self) -> str:
        return f"{self.provider}/{self.model}"

    @property
    def loaded(self) -> bool:
        return False

    def load(self) -> None:
        raise RerankError(self.message, self.hint)

    def score(self, query: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float]:  # noqa: ARG002 - as the protocol says
        raise RerankError(self.message, self.hint)


# A provider is added here and in its own module, which offers `create(settings) -> Reranker`.
_PROVIDERS = {
    "local": "mindex.providers.rerank.local",
    "http": "mindex.providers.rerank.http",
    "cloudflare": "mindex.providers.rerank.cloudflare",
    "llama-cpp": "mindex.providers.rerank.llama_cpp",
}


def create_reranker(settings: ProviderSettings) -> Reranker | None:
    """The configured reranker, or None for provider `none`."""
    reranker: Reranker | None = created(_PROVIDERS, settings, "rerank")
    return reranker
