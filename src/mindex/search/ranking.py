"""From the candidates of a query to the hits of its page: judge or fuse, boost, (rerank), spread, cut.

One straight line of functions. A stage that cannot run leaves the scores as they are and says so in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from mindex.clock import now_ms
from mindex.datatypes import Answer, Hit, Query, Record, Stage, Tier, Trace
from mindex.search.boost import Boosts, boosts_for
from mindex.search.candidates import Candidates, SignalWeights
from mindex.search.fuse import JUDGED, Contribution, ListWeights, fuse, fusion_named
from mindex.search.judgement import (
    Scores,
    add_names,
    add_neighbours,
    add_variant,
    boost_change,
    judge,
    relevance,
    stands_out,
)
from mindex.search.keyword_scoring import KeywordWeights
from mindex.search.query_as_name import QueryName, name_of
from mindex.search.newer_first import put_newer_first
from mindex.search.piece_cosines import term_weights, with_piece_cosines
from mindex.search.retrieval import Retrieval, Retrieved, retrieve_between, retrieve_variants
from mindex.search.spread import WINDOW, Spreadable, needs_several_sessions, spread
from mindex.search.substring_tier import nothing_relevant_note, substring_answer
from mindex.search.word_evidence import holds_all
from mindex.store.base import RankingContext, RankingSignals, Store
from mindex.store.rules.kind_groups import kind_group
from mindex.values import dataclass, replace

if TYPE_CHECKING:  # most searches need none of these (tests/test_costs.py)
    from mindex.search.expand import QueryExpander
    from mindex.search.rerank import RerankStage

NO_CONFIDENT_MATCH = "no confident match; these may help"
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


@dataclass(frozen=True, slots=True)
class Stages:
    """The stages with a model; each is made when a query first needs it."""

    reranking: Callable[[], RerankStage]
    expander: Callable[[], QueryExpander | None]


def rank(
    retrieval: Retrieval,
    retrieved: Retrieved,
    query: Query,
    settings: RankingSettings,
    stages: Stages,
    domain: str | None = None,
) -> Answer:
    """The answer to a query, given its candidates."""
    store, notes = retrieval.store, retrieved.notes
    retrieved = _with_window(retrieval, query, retrieved)
    candidates = _with_signals(store, retrieved.candidates, query, settings)
    odds = judge(candidates)
    scores = odds if is_judged(query) else _own_scores(query, candidates, settings)
    if query.expand:
        scores, said = _expanded(retrieval, retrieved, query, scores, settings, stages)
        notes += said
    context = _read(store, query, candidates, scores)
    records = {**context.records, **retrieved.past}
    if is_judged(query):
        _add_what_records_say(scores, query, context, records, retrieved)
    _add_boosts(scores, context, retrieved.past, query, settings, domain)
    scores.times = {id_: signals.created_at for id_, signals in context.signals.items()}
    order = scores.ordered()
    judged = scores if is_judged(query) else odds
    # A record with every word of the query is never hidden, and no reranker hides a record that stood out before.
    something = candidates.matched_share >= 1 or stands_out(judged, candidates)
    if query.rerank:
        said = _reranked(store, retrieved, query, scores, order[:RERANKED], records, settings, stages)
        notes += said
        order = scores.ordered()
    floor = settings.floor if query.floor is None else query.floor
    shows_weak = query.floor is None and (settings.weak if query.weak is None else query.weak)
    shows_some = shows_weak or any(relevance(one) >= floor for one in judged.total.values())
    compared = order if shows_some else ()
    newer = put_newer_first(store, query, records, compared, (scores,) if scores is judged else (scores, judged))
    if newer.moved:
        order = scores.ordered()
    chances = {id_: relevance(one) for id_, one in judged.total.items()}
    notes += (newer.note,) if any(chances.get(id_, 0.0) >= floor for id_ in newer.differing) else ()
    kept = order if shows_weak else [id_ for id_ in order if chances.get(id_, 0.0) >= floor]
    confident = any(chances.get(id_, 0.0) >= floor for id_ in kept)
    if not confident:
        # A text with all words of the query is a better hit than one with its letters, even in a store full of them.
        if not any(map(holds_all, candidates.matched_shares.values())) and (
            literal := substring_answer(store, query, retrieved.parsed.text, notes, settings.candidates)
        ):
            return literal
        if query.floor is None and not something and not stands_out(judged, candidates):
            kept = []
        if not kept and not retrieved.vacant:
            nearest = min(chances, key=lambda id_: (-chances[id_], id_), default="")
            record = next(iter(_records(store, [nearest], records)), None) if nearest else None
            notes += (nothing_relevant_note(record, chances.get(nearest, 0.0)),)
        elif kept:
            notes += (NO_CONFIDENT_MATCH,)
    page = _page(query, kept, scores, candidates, context, records)
    hits = _hits(page, candidates, scores, chances, {one.id: one for one in _records(store, page, records)}, floor)
    notes += _time_notes(query, hits, context)
    if query.passages and retrieved.vector is not None and retrieval.embedder is not None and hits:
        hits = with_piece_cosines(store, retrieval.embedder.embedder.model, retrieved.vector, hits)
    if newer.older:
        hits = tuple(replace(hit, older=newer.older.get(hit.record.id)) for hit in hits)
    return Answer(
        query=query.text,
        tier=_tier(candidates),
        fusion=query.fusion,
        total=len(kept),
        has_more=query.offset + len(page) < len(kept),
        hits=hits,
        notes=notes,
        total_capped=any(len(found) >= settings.candidates for found in (candidates.keyword, candidates.vector)),
        offset=query.offset,
        conflict_links=newer.links,
        vacant=retrieved.vacant,
        term_weights=term_weights(retrieved.statistics),
    )


def is_judged(query: Query) -> bool:
    """Whether the judgement orders the hits; a search of one list orders by that list's own score."""
    return query.fusion == JUDGED and query.mode == "hybrid"


# ── scores ────────────────────────────────────────────────────────────────────────────────────────────────────


def _own_scores(query: Query, candidates: Candidates, settings: RankingSettings, *, text_only: bool = False) -> Scores:
    """The scores of a named fusion, or of the one list that was searched; `text_only`: without importance and use."""
    if query.fusion == JUDGED:
        name, hits = ("vector", candidates.vector) if candidates.has_vector else ("keyword", candidates.keyword)
        own = {hit.id: hit.score for hit in hits}
        return Scores(own, lambda id_: (Stage(name, own[id_]),))
    weight = settings.weights[query.fusion]
    fused = fuse(query.fusion, candidates, weight, list_weights(query, weight))
    scores = {id_: part.total - part.signals * text_only for id_, part in fused.items()}
    return Scores(scores, lambda id_: _contributed(fused[id_]))


def _contributed(part: Contribution) -> tuple[Stage, ...]:
    return Stage("keyword", part.keyword), Stage("vector", part.vector), Stage("signals", part.signals)


def list_weights(query: Query, weight: float) -> ListWeights | None:
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


def _expanded(
    retrieval: Retrieval,
    retrieved: Retrieved,
    query: Query,
    scores: Scores,
    settings: RankingSettings,
    stages: Stages,
) -> tuple[Scores, tuple[str, ...]]:
    """The scores with the hits of the query's variants, and notes."""
    if retrieved.parsed.strict:
        return scores, ("not expanded: operators and quotes mean what they say",)
    expander = stages.expander()
    if expander is None:
        return scores, ("not expanded: no language model is configured; set generation.provider",)
    variants, note = expander.expand(retrieved.parsed.text, None if query.mode == "keyword" else retrieval.embedder)
    found = retrieve_variants(retrieval, query, variants, retrieved)
    for candidates in found:
        if is_judged(query):
            scores = add_variant(scores, candidates, settings.expansion)
            continue
        share = settings.expansion / len(found)
        own = _own_scores(query, candidates, settings, text_only=True)
        known = {id_: 0.0 for id_ in own.total if id_ not in scores.total}
        before = scores
        scores = Scores(before.total | known, lambda id_, of=before: of.stages(id_) if id_ in of.total else ())  # type: ignore[misc]
        for id_, score in own.total.items():
            scores.add(id_, "expansion", share * score)
    return scores, (note,)


# ── what is read of the best ──────────────────────────────────────────────────────────────────────────────────


def _read(store: Store, query: Query, candidates: Candidates, scores: Scores) -> RankingContext:
    """What the store knows of the candidates that could be on the page, in one call: signals, records, turns beside."""
    order = scores.ordered()
    if not order:
        return RankingContext({})
    dated = query.time is not None and is_judged(query)  # its dates may lift a candidate from far below
    needed = max(query.offset + query.limit + 10, WINDOW if query.offset else 0, RERANKED if query.rerank else 0)
    judged = is_judged(query)
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


def _with_window(retrieval: Retrieval, query: Query, retrieved: Retrieved) -> Retrieved:
    """The candidates with those from the window that the query names."""
    time = query.time
    if time is None or time.first is None or not is_judged(query):
        return retrieved
    return replace(retrieved, candidates=retrieve_between(retrieval, query, retrieved, time.first, time.end))


def _time_notes(query: Query, hits: Sequence[Hit], context: RankingContext) -> tuple[str, ...]:
    if query.time is None or not hits or not is_judged(query):
        return ()
    from mindex.search.question_time import time_note  # few queries name a time (tests/test_costs.py)

    return (time_note(query.time, hits, context.signals),)


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


def _reranked(
    store: Store,
    retrieved: Retrieved,
    query: Query,
    scores: Scores,
    first: Sequence[str],
    known: dict[str, Record],
    settings: RankingSettings,
    stages: Stages,
) -> tuple[str, ...]:
    """Add to the first forty what brings them into the order that a cross-encoder and the score agree on."""
    if settings.rerank == 0 or len(first) < 2:
        return ()
    stage = stages.reranking()
    if refusal := stage.refused(retrieved.parsed.text):
        return (refusal,)
    # An English one would only spoil Chinese: it reads no script that its vocabulary lacks, and no language better
    # than the embedder does.
    from mindex.search.rerank import READING, blended, legible, share

    records = {record.id: record for record in _records(store, first, known)}
    if len(records) < 2:
        return ()
    candidates = retrieved.candidates
    weight = stage.weight if settings.rerank is None else settings.rerank
    weight *= min(candidates.model_fluency if candidates.cosines else 1.0, legible(records.values()))
    if not weight:
        return ("not reranked: the models hardly read the language of these texts",)
    done = stage.scores(retrieved.parsed.text, list(records.values()))
    if done.note:
        return (done.note,)
    weight = share(weight * done.trust, records.values())
    new = blended({id_: scores.total[id_] for id_ in records}, done.scores, weight)
    readings = {id_: READING * (2 * sure - 1) for id_, sure in done.answers.items()} if is_judged(query) else {}
    for id_, score in new.items():
        scores.add(id_, "rerank", score - scores.total[id_] + readings.get(id_, 0.0))
        scores.readings[id_] = done.scores[id_]
    if readings:  # those below, which it did not read, stay below
        for id_ in scores.total.keys() - new.keys():
            scores.add(id_, "rerank", min(readings.values()))
    return ()


# ── page ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _page(
    query: Query,
    kept: Sequence[str],
    scores: Scores,
    candidates: Candidates,
    context: RankingContext,
    records: Mapping[str, Record],
) -> list[str]:
    """The ids of the page, best first. `judged` spreads them over files and sessions; others are taken in order."""
    end = query.offset + query.limit
    if not is_judged(query):
        return list(kept[query.offset : end])
    hits = [_spreadable(id_, scores, candidates, context, records) for id_ in kept[: max(end, WINDOW) + WINDOW]]
    several = sum(hit.group == "turn" for hit in hits) > 1 and needs_several_sessions(query.text)
    chosen = spread(hits, candidates.token_weights, end, several_sessions=several)[query.offset :]
    return scores.ordered(chosen)


def _spreadable(
    id_: str, scores: Scores, candidates: Candidates, context: RankingContext, records: Mapping[str, Record]
) -> Spreadable:
    signals, record = context.signals.get(id_), records.get(id_)
    tokens = candidates.matched_tokens.get(id_, frozenset())
    if record is None and signals is None:
        return Spreadable(id_, scores.total[id_], "entry", "", "", tokens)
    kind = record.kind if record is not None else signals.kind if signals is not None else "memory"
    source = signals.source if signals is not None else ""
    text = " ".join(record.text.casefold().split()) if record is not None else ""
    return Spreadable(id_, scores.total[id_], kind_group(kind), source, text, tokens)


def _hits(
    page: Sequence[str],
    candidates: Candidates,
    scores: Scores,
    chances: Mapping[str, float],
    records: Mapping[str, Record],
    floor: float,
) -> tuple[Hit, ...]:
    found = [enumerate(hits, start=1) for hits in (candidates.keyword, candidates.vector)]
    keyword, vector = ({hit.id: (rank, hit.score) for rank, hit in ranks if hit.id in records} for ranks in found)
    least_share = min(candidates.matched_shares.values(), default=0.0)
    hits = []
    for id_ in page:
        if id_ not in records:
            continue
        keyword_rank, keyword_score = keyword.get(id_, (None, None))
        vector_rank, cosine = vector.get(id_, (None, None))
        fluency = candidates.fluency.get(id_, candidates.model_fluency) if candidates.has_vector else None
        stages = scores.stages(id_)
        trace = Trace(
            stages=stages,
            keyword_rank=keyword_rank,
            keyword_score=keyword_score,
            vector_rank=vector_rank,
            cosine=cosine,
            cosine_zscore=candidates.cosine_zscores.get(id_),
            model_fluency=fluency,
            matched_share=candidates.matched_shares.get(id_, least_share if id_ in keyword else 0.0),
            rerank=scores.readings.get(id_),
        )
        chance = chances.get(id_, 0.0)
        hits.append(Hit(records[id_], scores.total[id_], chance, trace, weak=chance < floor))
    return tuple(hits)


def _records(store: Store, ids: Sequence[str], known: dict[str, Record]) -> list[Record]:
    """Records in the order of their ids; those that are not known yet are read, and known from then on."""
    if missing := [id_ for id_ in ids if id_ not in known]:
        known.update((record.id, record) for record in store.retrieval.records(missing))
    return [known[id_] for id_ in ids if id_ in known]


def _tier(candidates: Candidates) -> Tier:
    if not candidates.has_vector:
        return "keyword"
    return "hybrid" if candidates.has_keyword else "vector"
