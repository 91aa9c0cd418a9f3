"""What orders the candidates of a query: the judgement or a fusion, what records say, boosts, a reranker.

Each step adds to the scores. One that cannot run leaves them as they are and says so in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from mindex.clock import now_ms
from mindex.config import Settings
from mindex.datatypes import Query, Record, Stage
from mindex.search.boost import Boosts, boosts_for
from mindex.search.candidates import Candidates, SignalWeights
from mindex.search.fuse import FUSIONS, JUDGED, Contribution, ListWeights, fuse, fusion_named, is_judged
from mindex.search.judgement import Scores, add_names, add_neighbours, add_variant, boost_change, judge, stands_out
from mindex.search.keyword_scoring import KeywordWeights
from mindex.search.query_as_name import QueryName, name_of
from mindex.search.retrieval import Retrieved
from mindex.search.spread import WINDOW
from mindex.search.word_evidence import holds_all
from mindex.store.base import RankingContext, RankingSignals, Store
from mindex.values import dataclass, replace

if TYPE_CHECKING:  # most searches need none (tests/test_costs.py)
    from mindex.search.rerank import RerankStage

# A reranker reads this number, for every page: the order must not depend on its size.
RERANKED = 40
# This number of turns, the best of all, lift those beside them.
_LIFTING = 50
# This number of the best by words, and of the best of all, that contain all of the query are compared with it by name.
_MAX_NAMED = 30
# This number of candidates is read for the dates in their texts, if the query names a time.
_MAX_DATED = 60
# A later stage may lift a candidate by at most this: those this far below the page are read with it.
_MAX_LIFT = 3.0


@dataclass(frozen=True, slots=True)
class RankingSettings:
    """The settings of a search; their defaults are in mindex.config."""

    fusion: str
    weights: Mapping[str, float]  # by fusion
    candidates: int
    floor: float
    weak: bool
    boosts: Boosts
    refining: KeywordWeights
    rerank: float | None  # None: what the reranker itself weighs
    expansion: float
    signals: SignalWeights

    @classmethod
    def of(cls, settings: Settings) -> RankingSettings:
        number = settings.number
        return cls(
            fusion=settings.text("search.fusion"),
            weights={name: number(f"search.weights.{name}") for name in FUSIONS},
            candidates=settings.whole("search.candidates"),
            floor=number("search.floor"),
            weak=settings.flag("search.weak"),
            boosts=Boosts(
                number("boost.domain"), number("boost.instruction"), number("boost.memory"), number("memory.decay")
            ),
            refining=KeywordWeights(number("search.weights.pairs"), number("search.weights.coverage")),
            rerank=number("search.weights.rerank") if settings.is_set("search.weights.rerank") else None,
            expansion=number("search.weights.expansion"),
            signals=SignalWeights(
                number("search.weights.importance"),
                number("search.weights.recency"),
                number("search.weights.frequency"),
            ),
        )


@dataclass(frozen=True, slots=True)
class Ranked:
    """The candidates of a query with their scores, and what was read of the best."""

    candidates: Candidates
    scores: Scores  # what orders them
    log_odds: Scores  # what their relevance is made of; if the judgement orders, the same as `scores`
    context: RankingContext
    records: dict[str, Record]  # of the best; others are read when they are shown
    stood_out: bool  # one of them did before it was reranked, and a reranker hides none of these
    notes: tuple[str, ...]  # of retrieval and ranking

    @property
    def all_scores(self) -> tuple[Scores, ...]:
        return (self.scores,) if self.scores is self.log_odds else (self.scores, self.log_odds)


def rank(
    store: Store,
    retrieved: Retrieved,
    query: Query,
    settings: RankingSettings,
    reranking: Callable[[], RerankStage],
    domain: str | None = None,
) -> Ranked:
    """`reranking` makes the reranker, if the query asks for it; `domain`: that of the current file."""
    candidates = _with_signals(store, retrieved.candidates, query, settings)
    log_odds = judge(candidates)
    scores = log_odds if is_judged(query) else _own_scores(query, candidates, settings)
    scores = _with_variants(scores, retrieved.variants, query, settings)
    context = _read_best(store, query, candidates, scores)
    records = {**context.records, **retrieved.past}
    if is_judged(query):
        log_odds = scores
        _add_what_records_say(scores, query, context, records, retrieved)
    _add_boosts(scores, context, retrieved.past, query, settings, domain)
    scores.times = {id_: signals.created_at for id_, signals in context.signals.items()}
    # A record with every word of the query is never hidden.
    stood_out = candidates.matched_share >= 1 or stands_out(log_odds, candidates)
    notes = retrieved.notes
    if query.rerank and (note := _rerank(store, retrieved, query, scores, records, settings, reranking)):
        notes = (*notes, note)
    return Ranked(candidates, scores, log_odds, context, records, stood_out, notes)


# ── scores ────────────────────────────────────────────────────────────────────────────────────────────────────


def _own_scores(query: Query, candidates: Candidates, settings: RankingSettings, *, text_only: bool = False) -> Scores:
    """The scores of a named fusion, or of the one list that was searched; `text_only`: without importance and use."""
    if query.fusion == JUDGED:
        name, hits = ("vector", candidates.vector) if candidates.has_vector else ("keyword", candidates.keyword)
        own = {hit.id: hit.score for hit in hits}
        return Scores(own, lambda id_: (Stage(name, own[id_]),))
    weight = settings.weights[query.fusion]
    fused = fuse(query.fusion, candidates, weight, _list_weights(query, weight))
    scores = {id_: part.total - part.signals * text_only for id_, part in fused.items()}
    return Scores(scores, lambda id_: _contributed(fused[id_]))


def _contributed(part: Contribution) -> tuple[Stage, ...]:
    return Stage("keyword", part.keyword), Stage("vector", part.vector), Stage("signals", part.signals)


def _list_weights(query: Query, weight: float) -> ListWeights | None:
    """The weights that a query brings; the one that it leaves out is that of its fusion, half for `rrf`."""
    if query.vector_weight is None and query.keyword_weight is None:
        return None
    usual = weight if weight <= 1 else 0.5
    vector = usual if query.vector_weight is None else query.vector_weight
    return ListWeights(vector, 1 - usual if query.keyword_weight is None else query.keyword_weight)


def _with_signals(store: Store, candidates: Candidates, query: Query, settings: RankingSettings) -> Candidates:
    """The candidates with the ranking signals of all of them, if the fusion needs these."""
    if not fusion_named(query.fusion).needs_signals:
        return candidates
    known = {hit.id: hit.signals for hit in candidates.keyword if hit.signals is not None}
    missing = [hit.id for hit in (*candidates.keyword, *candidates.vector) if hit.id not in known]
    known |= store.retrieval.ranking_signals(missing) if missing else {}
    decay = settings.boosts.decay
    return replace(candidates, signals=known, now=now_ms(), decay=decay, signal_weights=settings.signals)


def _with_variants(scores: Scores, variants: Sequence[Candidates], query: Query, settings: RankingSettings) -> Scores:
    """The scores with the hits of other wordings of the query."""
    for candidates in variants:
        if is_judged(query):
            scores = add_variant(scores, candidates, settings.expansion)
            continue
        found = _own_scores(query, candidates, settings, text_only=True).total
        scores = _with_ids(scores, found)
        for id_, score in found.items():
            scores.add(id_, "expansion", settings.expansion / len(variants) * score)
    return scores


def _with_ids(scores: Scores, ids: Iterable[str]) -> Scores:
    """The scores with 0 for the ids that have none."""
    return Scores(dict.fromkeys(ids, 0.0) | scores.total, lambda id_: scores.stages(id_) if id_ in scores.total else ())


# ── what is read of the best ──────────────────────────────────────────────────────────────────────────────────


def _read_best(store: Store, query: Query, candidates: Candidates, scores: Scores) -> RankingContext:
    """What the store knows of the candidates that could be on the page, in one call: signals, records, turns beside."""
    order = scores.ordered()
    if not order:
        return RankingContext({})
    dated = query.time is not None and is_judged(query)  # its dates may lift a candidate from far below
    judged = is_judged(query)  # then the page is chosen from a window, see `spread`
    needed = max(query.offset + query.limit + 10, WINDOW if judged else 0, RERANKED if query.rerank else 0)
    named = []
    if judged and not candidates.strict:
        shares = candidates.matched_shares
        by_words = [hit.id for hit in candidates.keyword if holds_all(shares.get(hit.id, 0.0))]
        best = [id_ for id_ in order if holds_all(shares.get(id_, 0.0))]
        named = [*by_words[:_MAX_NAMED], *best[:_MAX_NAMED]]
    least = scores.total[order[min(needed, len(order)) - 1]] - (_MAX_LIFT if judged else 0.0)
    within = [id_ for id_ in order if scores.total[id_] >= least] if judged else order
    ids = list(dict.fromkeys((*order[:needed], *named, *within[: max(needed, candidates_read(query))])))
    kinds = {hit.id: hit.kind for hit in (*candidates.keyword, *candidates.vector)}
    lifting = [id_ for id_ in order[:_LIFTING] if kinds.get(id_) == "turn"] if judged and not candidates.strict else []
    if not judged and candidates.signals.keys() >= set(ids):
        return RankingContext(candidates.signals)
    whole = len(dict.fromkeys((*order[:needed], *named)))
    if dated:
        ids = list(dict.fromkeys((*ids[:whole], *order)))
        whole = max(whole, min(_MAX_DATED, len(ids)))
    return store.retrieval.ranking_context(ids, whole=whole, filters=query.filters, adjacent_to=lifting)


def candidates_read(query: Query) -> int:
    """The number of best candidates whose ranking signals are read."""
    return query.offset + max(query.limit, WINDOW) + WINDOW


def _add_what_records_say(
    scores: Scores, query: Query, context: RankingContext, records: Mapping[str, Record], retrieved: Retrieved
) -> None:
    """Names, turns beside each other, and dates."""
    wanted = None if retrieved.parsed.strict else QueryName.of(retrieved.parsed.text)
    if wanted is not None:
        names = {id_: name_of(wanted, record) for id_, record in records.items() if id_ in scores.total}
        named = {id_: name for id_, name in names.items() if name[0]}
        add_names(scores, named, {id_: records[id_].document or id_ for id_ in named})
    if context.adjacent_turns:
        add_neighbours(scores, context.adjacent_turns)
    if query.time is not None:
        from mindex.search.question_time import add_time  # few queries name a time (tests/test_costs.py)

        add_time(scores, query.time, context.signals, records)


def _add_boosts(
    scores: Scores,
    context: RankingContext,
    past: Mapping[str, Record],
    query: Query,
    settings: RankingSettings,
    domain: str | None,
) -> None:
    boosts = settings.boosts
    if fusion_named(query.fusion).needs_signals:
        boosts = replace(boosts, memory=0.0)  # it has importance and recency in its score already
    signals = dict(context.signals) | {
        id_: RankingSignals(id_, one.kind, importance=one.importance, created_at=one.created_at)
        for id_, one in past.items()
    }
    now, judged = now_ms(), is_judged(query)
    for id_, own in signals.items():
        if id_ not in scores.total:
            continue
        for name, factor in boosts_for(own, domain, boosts, now):
            scores.add(id_, name, boost_change(factor) if judged else scores.total[id_] * (factor - 1))


# ── rerank ────────────────────────────────────────────────────────────────────────────────────────────────────


def _rerank(
    store: Store,
    retrieved: Retrieved,
    query: Query,
    scores: Scores,
    known: dict[str, Record],
    settings: RankingSettings,
    reranking: Callable[[], RerankStage],
) -> str:
    """Let a cross-encoder read the first forty; a note if it cannot."""
    first = scores.ordered()[:RERANKED]
    if settings.rerank == 0 or len(first) < 2:
        return ""
    stage = reranking()
    if refusal := stage.refused(retrieved.parsed.text):
        return refusal
    records = known_records(store, first, known)
    if len(records) < 2:
        return ""
    fluency = retrieved.candidates.model_fluency if retrieved.candidates.cosines else 1.0
    text, odds = retrieved.parsed.text, is_judged(query)
    return stage.add_to(scores, text, records, settings.rerank, fluency, odds=odds)


def known_records(store: Store, ids: Sequence[str], known: dict[str, Record]) -> list[Record]:
    """Records in the order of their ids; those that are not known yet are read, and known from then on."""
    if missing := [id_ for id_ in ids if id_ not in known]:
        known.update((record.id, record) for record in store.retrieval.records(missing))
    return [known[id_] for id_ in ids if id_ in known]
