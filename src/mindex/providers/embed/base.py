"""The interface of embedding models."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from mindex.config import cannot_shorten
from mindex.datatypes import Model, VectorArray
from mindex.provider_table import BY_ROLE, SHORTEN_VECTORS
from mindex.providers.base import ProviderSettings, create_model


class Embedder(Protocol):
    """One embedding space. Creating it is cheap; the model is loaded at the first call that needs it."""

    @property
    def model(self) -> Model:
        """The space's identity, known without loading the model."""

    def load(self) -> None:
        """Load now; raise EmbeddingError when the model is missing or broken. Idempotent, thread-safe."""

    @property
    def loaded(self) -> bool: ...

    def embed(self, texts: Sequence[str]) -> VectorArray:
        """Return one L2-normalised float32 row per text, which does not depend on the rest of the batch."""

    def embed_query(self, text: str) -> VectorArray:
        """Return one L2-normalised float32 vector (1-d), made with the model's query prefix if it has one."""

    def fluency(self, texts: Sequence[str]) -> list[float]:
        """Return how fluently the model reads each text: words per word piece; unsegmented scripts count as pieces.

        1.0 for all where the tokenizer cannot be seen.
        """


@runtime_checkable
class EmbedsWithCanary(Protocol):
    """An embedder on a server: the canary is sent along in a request that is made anyway."""

    def embed_beside(self, texts: Sequence[str], other: str) -> tuple[VectorArray, VectorArray]:
        """Return the texts' vectors, and that of the other text."""

    def embed_query_beside(self, text: str, other: str) -> tuple[VectorArray, VectorArray]:
        """Return a query's vector, and that of the other text, which is embedded as texts are."""


@runtime_checkable
class ReportsTrouble(Protocol):
    """An embedder that may know beforehand that it would fail."""

    def trouble(self) -> str:
        """Return why a query would get no vector now; empty when it may get one. Sends and loads nothing."""


def create_embedder(settings: ProviderSettings) -> Embedder | None:
    """Return the configured embedder; None for the provider `none`, where search is by keyword alone.

    Raises ConfigError for an unknown provider, and for a vector length that the provider cannot return.
    """
    if settings.dimensions and settings.provider in BY_ROLE["embedding"] and settings.provider not in SHORTEN_VECTORS:
        raise cannot_shorten(settings.provider, settings.dimensions)
    embedder: Embedder | None = create_model("embedding", settings)
    return embedder
