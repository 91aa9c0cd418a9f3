"""Ways to make one score of two: each a pure function over both candidate lists, chosen by name.

Every function returns, per record, what the keyword and the vector candidates contributed. Weights are the share of
the vector candidates.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from math import exp, log, sqrt

from mindex.errors import UsageError
from mindex.search.importance_recency import frequency, importance, recency
from mindex.search.relevance import holds_all, score_of
from mindex.store.base import RankingSignals, ScoredRecord
from mindex.store.rules.kind_groups import KindGroup, kind_group
from mindex.values import dataclass, replace


@dataclass(frozen=True, slots=True)
class SignalWeights:
    """In which proportion importance, recency and frequency share what the text leaves them in `signals`."""

    importance: float = 0.3
    recency: float = 0.2
    frequency: float = 0.1


@dataclass(frozen=True, slots=True)
class ListWeights:
    """What the vector and the keyword candidates of one query count, in place of the fusion's own weight."""

    vector: float
    keyword: float

    @property
    def sum(self) -> float:
        return self.vector + self.keyword

    @property
    def share(self) -> float:
        return self.vector / self.sum


@dataclass(frozen=True, slots=True)
class Candidates:
    """Keyword and vector candidates of a query, and what is known about each.

    `cosines` are on the scale of the default model, whatever the model; `cosine_zscores` say how far each stands above
    the cosines of unrelated texts, in deviations. `matched_shares` are the shares of the query's idf weight that the
    first keyword hits hold, `surprises` how unlikely that is by chance, in nats. `fluency` is how fluently the model
    reads each vector hit (0…1), `words` the number of words of the query that tell something. `unembedded` are keyword
    hits that have no vector yet: their words alone say how good they are.
    """

    keyword: Sequence[ScoredRecord] = ()
    vector: Sequence[ScoredRecord] = ()
    cosine_zscores: Mapping[str, float] = field(default_factory=dict)
    cosines: Mapping[str, float] = field(default_factory=dict)
    has_vector: bool = True
    has_keyword: bool = True
    matched_shares: Mapping[str, float] = field(default_factory=dict)
    surprises: Mapping[str, float] = field(default_factory=dict)
    fluency: Mapping[str, float] = field(default_factory=dict)
    unembedded: frozenset[str] = frozenset()
    words: int = 0
    look_up: bool = False  # the query is one rare word, as an identifier is: what holds it is what is looked for
    strict: bool = False  # every candidate fulfils an explicit demand: operators, quotes, fields
    signals: Mapping[str, RankingSignals] = field(default_factory=dict)  # only for a fusion that needs them
    now: int = 0
    decay: float = 0.0
    signal_weights: SignalWeights = field(default_factory=SignalWeights)

    @property
    def matched_share(self) -> float:
        """The largest share of the query that a keyword hit holds: how far the words can be trusted."""
        return max(self.matched_shares.values(), default=0.0) if self.keyword else 0.0

    @property
    def model_fluency(self) -> float:
        """How fluently the model reads these texts, 0…1."""
        return sum(self.fluency.values()) / len(self.fluency) if self.fluency else 1.0

    def groups(self) -> dict[str, KindGroup]:
        """The group that each candidate is judged in, by id: that of its kind, but for long memories.

        A memory of more than one piece is judged as a chunk of a file: its nearest piece was compared, and by the
        constants of short memories it would rank above every chunk. Its length is known where its vector was found.
        """
        of_kind = {kind: kind_group(kind) for kind in {hit.kind for hit in (*self.keyword, *self.vector)}}
        groups = {hit.id: of_kind[hit.kind] for hit in self.keyword}
        for hit in self.vector:
            is_long = hit.length > _LONGEST_ENTRY and hit.kind in _MAY_BE_LONG
            groups[hit.id] = "file" if is_long else of_kind[hit.kind]
        return groups

    def by_group(self) -> dict[KindGroup, "Candidates"]:
        """The candidates of each group for themselves."""
        groups: dict[KindGroup, Candidates] = {}
        group_of = self.groups()
        for group in dict.fromkeys(group_of.values()):
            keyword = [hit for hit in self.keyword if group_of[hit.id] == group]
            vector = [hit for hit in self.vector if group_of[hit.id] == group]
            shares = {hit.id: self.matched_shares[hit.id] for hit in keyword if hit.id in self.matched_shares}
            groups[group] = replace(
                self,
                keyword=keyword,
                vector=vector,
                cosine_zscores={hit.id: self.cosine_zscores.get(hit.id, 0.0) for hit in vector},
                matched_shares=shares,
                fluency={hit.id: self.fluency[hit.id] for hit in vector if hit.id in self.fluency},
            )
        return groups


@dataclass(frozen=True, slots=True)
class Contribution:
    """What each stage adds to one record's score."""

    keyword: float = 0.0
    vector: float = 0.0
    signals: float = 0.0
    expansion: float = 0.0
    neighbours: float = 0.0
    length: float = 0.0

    @property
    def total(self) -> float:
        return self.keyword + self.vector + self.signals + self.expansion + self.neighbours + self.length


Fused = dict[str, Contribution]

# A hit that stands six deviations above unrelated texts is as good as a vector hit gets.
_BEST_ZSCORE = 6.0
# Where log-odds are equal, the fused score decides.
_AMONG_EQUALS = 0.001
# How fast the trust in words falls with the share of the query that the best hit holds.
_TRUST_POWER = 1.5
# Turns are asked for in other words than they were said in: by so much the odds of the vector share are higher.
_TURN_ODDS = 2.25
# Among memories the vectors decide, and words add a little: short texts share few words with a question. Of two that
# are equally near the longer one is the better, since very short texts are near to everything.
_ENTRY_PER_NAT = 0.0013
_ENTRY_PER_LOG_LENGTH = 0.024
_ENTRY_LOOKED_UP = 0.2
_USUAL_ENTRY = 60
_LONGEST_ENTRY = 800  # the size of a piece: `embedding_text`, which a search by keyword does not load
_MAY_BE_LONG = ("memory", "note")  # kinds whose text may be as long as a file; other entries are made of fields


def standardised(cosine: float, background: tuple[float, float]) -> float:
    """How many deviations a cosine stands above those of unrelated texts; below one, ever closer to 0."""
    deviations = (cosine - background[0]) / background[1]
    return deviations if deviations > 1 else exp(deviations - 1)


def blend(candidates: Candidates, weight: float = 0.4) -> Fused:
    """Mix scores, not ranks, and trust keywords and vectors as far as each deserves; each group of kinds for itself.

    Keywords count less when the model reads well but the best hit holds little of the query; vectors count
    little when the model hardly reads these texts at all.
    """
    fused: Fused = {}
    for group, own in candidates.by_group().items():
        texts = _blend_texts(own, _share_among_turns(weight) if group == "turn" else weight)
        if group == "entry" and own.has_vector and own.has_keyword:
            read = own.model_fluency
            entries = _blend_entries(own, weight)
            texts = {
                id_: Contribution(
                    keyword=read * entries[id_].keyword + (1 - read) * part.keyword,
                    vector=read * entries[id_].vector + (1 - read) * part.vector,
                    length=read * entries[id_].length,
                )
                for id_, part in texts.items()
            }
        fused |= texts
    return fused


def _share_among_turns(weight: float) -> float:
    return _TURN_ODDS * weight / (_TURN_ODDS * weight + 1 - weight)


def _blend_texts(candidates: Candidates, weight: float) -> Fused:
    keyword_trust = 1 - candidates.model_fluency * (1 - candidates.matched_share**_TRUST_POWER)
    vector_trust = 0.25 + 0.75 * candidates.model_fluency
    share = _share(candidates, weight)
    best = max((hit.score for hit in candidates.keyword), default=1.0)
    keyword = {
        hit.id: (1.0 if hit.id in candidates.unembedded else 1 - share) * keyword_trust * hit.score / best
        for hit in candidates.keyword
    }
    vector = {id_: share * vector_trust * zscore / _BEST_ZSCORE for id_, zscore in candidates.cosine_zscores.items()}
    return _merged(keyword, vector)


def _blend_entries(candidates: Candidates, weight: float) -> Fused:
    # A profile is embedded value by value: what is near is as short as a memory, however long the whole is.
    lengths = {hit.id: hit.length for hit in candidates.vector if hit.kind != "profile"}

    def by_words(id_: str) -> float:
        surprise = candidates.surprises.get(id_, 0.0)
        share = candidates.matched_shares.get(id_, 0.0)
        found = candidates.look_up and holds_all(share)
        return _ENTRY_PER_NAT * surprise + (_ENTRY_LOOKED_UP if found else 0.0)

    return {
        id_: Contribution(
            keyword=2 * (1.0 if id_ in candidates.unembedded else 1 - weight) * by_words(id_),
            vector=2 * weight * candidates.cosine_zscores.get(id_, 0.0) / _BEST_ZSCORE,
            length=_ENTRY_PER_LOG_LENGTH * log(min(lengths.get(id_, 0) or _USUAL_ENTRY, _LONGEST_ENTRY)),
        )
        for id_ in dict.fromkeys(hit.id for hit in (*candidates.keyword, *candidates.vector))
    }


def rrf(candidates: Candidates, k: float = 60) -> Fused:
    """Reciprocal rank fusion: merge by position alone; scores of different scales never meet."""
    return _merged(_reciprocal(candidates.keyword, k), _reciprocal(candidates.vector, k))


def minmax(candidates: Candidates, weight: float = 0.6) -> Fused:
    """Stretch the scores of each list to 0…1 and add them by weight."""
    share = _share(candidates, weight)
    return _merged(_stretched_share(candidates.keyword, 1 - share), _stretched_share(candidates.vector, share))


def weighted(candidates: Candidates, weight: float = 0.7) -> Fused:
    """Similarity from the distance between unit vectors, stretched keyword scores, added by weight."""
    share = _share(candidates, weight)
    distances = {hit.id: sqrt(max(0.0, 2 - 2 * hit.score)) for hit in candidates.vector}
    reach = max(2 * max(distances.values(), default=0.0), 2.0)
    vector = {id_: share * (1 - distance / reach) for id_, distance in distances.items()}
    return _merged(_stretched_share(candidates.keyword, 1 - share), vector)


def signals(candidates: Candidates, weight: float = 0.4) -> Fused:
    """The text counts so much; importance, recency and frequency share the rest."""
    shares = candidates.signal_weights
    total = shares.importance + shares.recency + shares.frequency
    keyword, vector = _shares_of_best(candidates.keyword), _shares_of_best(candidates.vector)
    now, decay, known = candidates.now, candidates.decay, candidates.signals
    fused = {}
    for id_ in keyword | vector:
        own = known.get(id_) or RankingSignals(id_, "memory")
        beside = (
            shares.importance * importance(own, now, decay)
            + shares.recency * recency(own, now)
            + shares.frequency * frequency(own)
        )
        text = max(keyword.get(id_, 0.0), vector.get(id_, 0.0))
        fused[id_] = Contribution(weight * text, 0.0, (1 - weight) * beside / total if total else 0.0)
    return fused


def _shares_of_best(hits: Sequence[ScoredRecord]) -> dict[str, float]:
    """Each score as a share of the best: 0…1, and monotone in the engine's own score."""
    best = max((hit.score for hit in hits), default=1.0)
    return {hit.id: max(0.0, hit.score / best) if best > 0 else 0.0 for hit in hits}


@dataclass(frozen=True, slots=True)
class Fusion:
    """A fusion method, and what a search does for it. Those of other programs are kept as these have them."""

    scores: Callable[[Candidates, float], Fused]
    refines_words: bool = False  # keyword scores are corrected for word pairs and the matched share
    compares_kinds: bool = False  # the groups of kinds are put into one order by log-odds
    lifts_neighbours: bool = False  # of a turn that is found
    needs_signals: bool = False  # importance, age and use of every candidate
    one_list: bool = False  # one score of the text, whichever list has it: there are no two to weigh
    vectors_decide: bool = False  # a record that has no vector yet is hardly found, whatever its words
    adds_scores: bool = False  # sums of weighted scores: twice the weights, twice the score
    weighs_lists: bool = True  # its weight is the share of the vector candidates, or of the text


FUSIONS: Mapping[str, Fusion] = {
    "blend": Fusion(blend, refines_words=True, compares_kinds=True, lifts_neighbours=True),
    "rrf": Fusion(rrf, weighs_lists=False),  # its weight is a constant
    "minmax": Fusion(minmax, vectors_decide=True, adds_scores=True),
    "weighted": Fusion(weighted, vectors_decide=True, adds_scores=True),
    "signals": Fusion(signals, needs_signals=True, one_list=True),
}


def fusion_named(name: str) -> Fusion:
    if name not in FUSIONS:
        raise UsageError(f"unknown fusion '{name}'", f"use one of {', '.join(FUSIONS)}")
    return FUSIONS[name]


def fuse(name: str, candidates: Candidates, weight: float, of_query: ListWeights | None = None) -> Fused:
    """The fusion of this name with its weight, or with the weights of one query."""
    fusion = fusion_named(name)
    if of_query is None:
        return fusion.scores(candidates, weight)
    if not fusion.weighs_lists:  # equal weights leave it as it is
        return _scaled(fusion.scores(candidates, weight), 2 * (1 - of_query.share), 2 * of_query.share)
    fused = fusion.scores(candidates, of_query.share)
    both = candidates.has_vector and candidates.has_keyword
    return _scaled(fused, of_query.sum, of_query.sum) if fusion.adds_scores and both else fused


def _scaled(fused: Fused, keyword: float, vector: float) -> Fused:
    return {
        id_: replace(part, keyword=keyword * part.keyword, vector=vector * part.vector) for id_, part in fused.items()
    }


def in_one_order(fused: Fused, groups: Mapping[str, KindGroup], odds: Mapping[str, float]) -> dict[str, float]:
    """Scores that are comparable between kinds.

    The hits of each group keep their order: the best of them gets the best log-odds that any of them has, and so on.
    """
    scores: dict[str, float] = {}
    totals = {id_: part.total for id_, part in fused.items()}
    for group in set(groups.values()):
        own = sorted([(-totals[id_], id_) for id_ in fused if groups[id_] == group])
        best_first = sorted([odds[id_] for _, id_ in own], reverse=True)
        for (_, id_), one in zip(own, best_first, strict=True):
            scores[id_] = score_of(one) + _AMONG_EQUALS * totals[id_]
    return scores


def _share(candidates: Candidates, weight: float) -> float:
    """The share of the vector candidates; all or nothing when the others were not retrieved."""
    if not candidates.has_keyword:
        return 1.0
    return weight if candidates.has_vector else 0.0


def _reciprocal(hits: Iterable[ScoredRecord], k: float) -> dict[str, float]:
    return {hit.id: 1 / (k + rank) for rank, hit in enumerate(hits, start=1)}


def stretched(scores: Mapping[str, float]) -> dict[str, float]:
    """Scores from 0 to 1; equal or single ones are 1, since a single hit is not a bad one."""
    least, most = min(scores.values(), default=0.0), max(scores.values(), default=0.0)
    span = most - least
    return {id_: (score - least) / span if span > 0 else 1.0 for id_, score in scores.items()}


def _stretched_share(hits: Sequence[ScoredRecord], share: float) -> dict[str, float]:
    scores = stretched({hit.id: hit.score for hit in hits})
    return scores if share == 1 else {id_: share * score for id_, score in scores.items()}


def _merged(keyword: Mapping[str, float], vector: Mapping[str, float]) -> Fused:
    if not vector:
        return {id_: Contribution(score) for id_, score in keyword.items()}
    return {
        id_: Contribution(keyword.get(id_, 0.0), vector.get(id_, 0.0)) for id_ in dict.fromkeys((*keyword, *vector))
    }
