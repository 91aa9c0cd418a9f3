"""The interface of rerankers: models that read a query and a text together."""

from collections.abc import Sequence
from typing import Protocol

from mindex.providers.base import ProviderSettings, create_model


class Reranker(Protocol):
    """One cross-encoder. Creating it is cheap; the model is loaded at the first call that needs it."""

    @property
    def name(self) -> str:
        """Provider, model and everything else that decides a score: part of the key under which scores are cached."""

    @property
    def doubt(self) -> tuple[float, float] | None:
        """The best text's score up to which the order is ignored, and from which on it counts in full.

        A cross-encoder that finds no answer among the texts orders them by chance. None: its scale is not known.
        """

    @property
    def weight(self) -> float:
        """Its share in the order of the first hits, unless `search.weights.rerank` is set."""

    @property
    def loaded(self) -> bool: ...

    def load(self) -> None:
        """Load now; raise RerankError when the model is missing or broken. Idempotent, thread-safe."""

    def score(self, query: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float]:
        """Return how well each text answers the query: any scale, higher is better, finite.

        Raises RerankError, also when `seconds` have passed before the last text was scored. A text's score does not
        depend on the texts beside it.
        """


# The share of a reranker whose user chose it: a server's, or a model of one's own. That of the built-in one, a small
# model, was measured (docs/quality.md).
CHOSEN_WEIGHT, BUILT_IN_WEIGHT = 0.7, 0.4


def create_reranker(settings: ProviderSettings) -> Reranker | None:
    """Return the configured reranker; None for the provider `none`. One that cannot be used raises when it is used."""
    reranker: Reranker | None = create_model("rerank", settings)
    return reranker
