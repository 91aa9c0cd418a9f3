"""The keyword and vector candidates of a query, as retrieval returns them, before they are judged or fused."""

from collections.abc import Mapping, Sequence
from dataclasses import field
from math import exp

from mindex.store.base import RankingSignals, ScoredRecord
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class SignalWeights:
    """How importance, recency and frequency share what the fusion `signals` leaves to them."""

    importance: float = 0.3
    recency: float = 0.2
    frequency: float = 0.1


@dataclass(frozen=True, slots=True)
class Candidates:
    """Keyword and vector candidates of a query, and what is known about each.

    `cosines` are on the scale of the built-in model, also with another model; `cosine_zscores` say how far each is
    above the cosines of unrelated texts, in deviations. `matched_shares` are the shares of the query's idf weight that
    the first keyword hits contain, `surprises` how unlikely that is by chance, in nats. `fluency` is how fluently the
    model reads each vector hit (0…1). `unembedded` are keyword hits without a vector yet.
    """

    keyword: Sequence[ScoredRecord] = ()
    vector: Sequence[ScoredRecord] = ()
    cosine_zscores: Mapping[str, float] = field(default_factory=dict)
    cosines: Mapping[str, float] = field(default_factory=dict)
    has_vector: bool = True
    has_keyword: bool = True
    matched_shares: Mapping[str, float] = field(default_factory=dict)
    surprises: Mapping[str, float] = field(default_factory=dict)
    matched_tokens: Mapping[str, frozenset[str]] = field(default_factory=dict)
    token_weights: Mapping[str, float] = field(default_factory=dict)  # idf of the query's tokens
    fluency: Mapping[str, float] = field(default_factory=dict)
    added: frozenset[str] = frozenset()  # vector hits of a narrower search, beside the query's own
    unembedded: frozenset[str] = frozenset()
    words: int = 0  # of the query, without stop words
    is_question: bool = False
    looked_up: frozenset[str] = frozenset()  # the query is one rare word or identifier, and these contain it whole
    strict: bool = False  # every candidate fulfils an explicit demand: operators, quotes, fields
    capped: bool = False  # the keyword list is as long as it may be: others may contain words of the query
    signals: Mapping[str, RankingSignals] = field(default_factory=dict)  # only for a fusion that needs them
    now: int = 0
    decay: float = 0.0
    signal_weights: SignalWeights = field(default_factory=SignalWeights)

    @property
    def matched_share(self) -> float:
        """The largest share of the query that a keyword hit contains: how far keywords can be trusted."""
        return max(self.matched_shares.values(), default=0.0) if self.keyword else 0.0

    @property
    def model_fluency(self) -> float:
        """How fluently the model reads these texts, 0…1."""
        return sum(self.fluency.values()) / len(self.fluency) if self.fluency else 1.0


def z_score(cosine: float, background: tuple[float, float]) -> float:
    """How many deviations a cosine is above those of unrelated texts; below one, ever closer to 0."""
    deviations = (cosine - background[0]) / background[1]
    return deviations if deviations > 1 else exp(deviations - 1)
