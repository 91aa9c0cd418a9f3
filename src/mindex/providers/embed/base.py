"""The door to embedding models, and the one table that names them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from mindex.config import SHORTENING, cannot_shorten
from mindex.errors import EmbeddingError
from mindex.model import Model
from mindex.providers.base import ProviderSettings, created
from mindex.values import dataclass

if TYPE_CHECKING:  # numpy costs more than the whole keyword tier: only those who embed pay for it
    from mindex.model import VectorArray


class Embedder(Protocol):
    """One embedding space. Creating it is cheap; the model is loaded at the first call that needs it."""

    @property
    def model(self) -> Model:
        """The space's identity, known without loading the model."""
        ...

    def load(self) -> None:
        """Load now; raise EmbeddingError when the model is missing or broken. Idempotent, thread-safe."""
        ...

    @property
    def loaded(self) -> bool: ...

    def embed(self, texts: Sequence[str]) -> VectorArray:
        """One L2-normalised float32 row per text, the same whatever else is in the batch."""
        ...

    def embed_query(self, text: str) -> VectorArray:
        """One L2-normalised float32 vector (1-d), with the model's query prefix if it has one."""
        ...

    def fluency(self, texts: Sequence[str]) -> list[float]:
        """How fluently the model reads each text: words per word piece; unsegmented scripts count as pieces.

        1.0 for all where the tokenizer cannot be seen.
        """
        ...


@runtime_checkable
class EmbedsWithCanary(Protocol):
    """An embedder that is a server: one text more rides along in a request that is made anyway."""

    def embed_beside(self, texts: Sequence[str], other: str) -> tuple[VectorArray, VectorArray]:
        """The texts' vectors, and that of the other text."""
        ...

    def embed_query_beside(self, text: str, other: str) -> tuple[VectorArray, VectorArray]:
        """A question's vector, and that of the other text, which is read as texts are."""
        ...


@runtime_checkable
class ReportsTrouble(Protocol):
    """An embedder that may know beforehand that it would not answer."""

    def trouble(self) -> str:
        """Why a question would have no vector now; nothing when it may have one. Nothing is asked, nothing loaded."""
        ...


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Stands in for a model that is configured but cannot be had: words are still stored and found, vectors wait."""

    model: Model
    message: str
    hint: str

    @property
    def loaded(self) -> bool:
        return False

    def trouble(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message

    def load(self) -> None:
        raise EmbeddingError(self.message, self.hint)

    def embed(self, texts: Sequence[str]) -> VectorArray:  # noqa: ARG002 - as the protocol says
        raise EmbeddingError(self.message, self.hint)

    def embed_query(self, text: str) -> VectorArray:  # noqa: ARG002 - as the protocol says
        raise EmbeddingError(self.message, self.hint)

    def fluency(self, texts: Sequence[str]) -> list[float]:
        return [1.0 for _ in texts]


# A provider is added here and in its own module, which offers `create(settings) -> Embedder`.
_PROVIDERS = {
    "local": "mindex.providers.embed.local",
    "ollama": "mindex.providers.embed.ollama",
    "lmstudio": "mindex.providers.embed.lmstudio",
    "openai": "mindex.providers.embed.openai",
    "azure": "mindex.providers.embed.azure",
    "groq": "mindex.providers.embed.groq",
    "cloudflare": "mindex.providers.embed.cloudflare",
    "llama-cpp": "mindex.providers.embed.llama_cpp",
}


def create_embedder(settings: ProviderSettings) -> Embedder | None:
    """The configured embedder, or None for provider `none`: mindex then works by keyword alone."""
    if settings.dimensions and settings.provider in _PROVIDERS and settings.provider not in SHORTENING:
        raise cannot_shorten(settings.provider, settings.dimensions)
    embedder: Embedder | None = created(_PROVIDERS, settings, "embedding")
    return embedder
