"""From ranked candidates to an answer: which are shown, the hits of the page, and the notes about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindex.datatypes import Answer, Hit, Query, Record, Tier, Trace
from mindex.search.candidates import Candidates
from mindex.search.fuse import is_judged
from mindex.search.judgement import Scores, relevance, stands_out
from mindex.search.newer_first import NewerFirst, put_newer_first
from mindex.search.piece_cosines import term_weights, with_piece_cosines
from mindex.search.ranking import Ranked, RankingSettings, known_records
from mindex.search.retrieval import Retrieval, Retrieved
from mindex.search.spread import WINDOW, Spreadable, needs_several_sessions, spread
from mindex.search.substring_tier import nothing_relevant_note
from mindex.store.base import RankingContext, Store
from mindex.store.rules.kind_groups import kind_group
from mindex.values import dataclass, replace

_NO_CONFIDENT_HIT = "no confident match; these may help"


@dataclass(frozen=True, slots=True)
class Relevances:
    """The relevance of each judged candidate, 0 to 1, and the floor that a confident one reaches."""

    by_id: Mapping[str, float]
    floor: float

    @classmethod
    def of(cls, log_odds: Scores, floor: float) -> Relevances:
        return cls({id_: relevance(one) for id_, one in log_odds.total.items()}, floor)

    def __getitem__(self, id_: str) -> float:
        return self.by_id.get(id_, 0.0)

    def confident(self, id_: str) -> bool:
        return self[id_] >= self.floor


@dataclass(frozen=True, slots=True)
class Shown:
    """The ranked candidates that the pages of an answer show."""

    ids: Sequence[str]  # best first
    relevances: Relevances
    confident: bool  # one of them is
    newer: NewerFirst
    notes: tuple[str, ...]


def choose(store: Store, ranked: Ranked, query: Query, settings: RankingSettings) -> Shown:
    """All candidates, the confident ones, or none. A query with its own floor gets nothing below it."""
    shows_weak = query.floor is None and (settings.weak if query.weak is None else query.weak)
    relevances = Relevances.of(ranked.log_odds, settings.floor if query.floor is None else query.floor)
    order = ranked.scores.ordered()
    compared = order if shows_weak or any(map(relevances.confident, relevances.by_id)) else ()
    newer = put_newer_first(store, query, ranked.records, compared, ranked.all_scores)
    if newer.moved:
        order, relevances = ranked.scores.ordered(), Relevances.of(ranked.log_odds, relevances.floor)
    notes = (*ranked.notes, newer.note) if any(map(relevances.confident, newer.differing)) else ranked.notes
    ids = order if shows_weak else [id_ for id_ in order if relevances.confident(id_)]
    confident = any(map(relevances.confident, ids))
    if not (confident or ranked.stood_out or stands_out(ranked.log_odds, ranked.candidates)) and query.floor is None:
        ids = []
    return Shown(ids, relevances, confident, newer, notes)


def make_answer(
    retrieval: Retrieval, retrieved: Retrieved, ranked: Ranked, shown: Shown, query: Query, limit: int
) -> Answer:
    """The page of an answer. `limit`: the number of candidates of each kind that were asked for."""
    store, candidates = retrieval.store, ranked.candidates
    notes = shown.notes
    if not shown.confident and not retrieved.vacant:
        notes += (_unsure_note(store, ranked, shown),)
    page = _page(query, shown.ids, ranked)
    hits = _hits(page, ranked, shown.relevances, {one.id: one for one in known_records(store, page, ranked.records)})
    if query.passages and retrieved.vector is not None and retrieval.embedder is not None and hits:
        hits = with_piece_cosines(store, retrieval.embedder.embedder.model, retrieved.vector, hits)
    if shown.newer.older:
        hits = tuple(replace(hit, older=shown.newer.older.get(hit.record.id)) for hit in hits)
    return Answer(
        query=query.text,
        tier=_tier(candidates),
        fusion=query.fusion,
        total=len(shown.ids),
        has_more=query.offset + len(page) < len(shown.ids),
        hits=hits,
        notes=(*notes, *_time_notes(query, hits, ranked.context)),
        total_capped=any(len(found) >= limit for found in (candidates.keyword, candidates.vector)),
        offset=query.offset,
        terms=retrieved.terms,
        term_weights=term_weights(retrieved.statistics),
        conflict_links=shown.newer.links,
        vacant=retrieved.vacant,
        loose=retrieved.loose,
        only_weak=bool(shown.ids) and not shown.confident,
    )


def _unsure_note(store: Store, ranked: Ranked, shown: Shown) -> str:
    """The note on an answer without a confident hit; of one without any hit it names the nearest record."""
    if shown.ids:
        return _NO_CONFIDENT_HIT
    relevances = shown.relevances
    nearest = min(relevances.by_id, key=lambda id_: (-relevances[id_], id_), default="")
    record = next(iter(known_records(store, [nearest], ranked.records)), None) if nearest else None
    return nothing_relevant_note(record, relevances[nearest])


def _time_notes(query: Query, hits: Sequence[Hit], context: RankingContext) -> tuple[str, ...]:
    if query.time is None or not hits or not is_judged(query):
        return ()
    from mindex.search.question_time import time_note  # few queries name a time (tests/test_costs.py)

    return (time_note(query.time, hits, context.signals),)


def _tier(candidates: Candidates) -> Tier:
    if not candidates.has_vector:
        return "keyword"
    return "hybrid" if candidates.has_keyword else "vector"


def _page(query: Query, ids: Sequence[str], ranked: Ranked) -> list[str]:
    """The ids of the page, best first. `judged` spreads them over files and sessions; others are taken in order."""
    end = query.offset + query.limit
    if not is_judged(query):
        return list(ids[query.offset : end])
    hits = [_spreadable(id_, ranked) for id_ in ids[: max(end, WINDOW) + WINDOW]]
    several = sum(hit.group == "turn" for hit in hits) > 1 and needs_several_sessions(query.text)
    chosen = spread(hits, ranked.candidates.token_weights, end, several_sessions=several)[query.offset :]
    return ranked.scores.ordered(chosen)


def _spreadable(id_: str, ranked: Ranked) -> Spreadable:
    signals, record = ranked.context.signals.get(id_), ranked.records.get(id_)
    score, tokens = ranked.scores.total[id_], ranked.candidates.matched_tokens.get(id_, frozenset())
    if record is None and signals is None:
        return Spreadable(id_, score, "entry", "", "", tokens)
    kind = record.kind if record is not None else signals.kind if signals is not None else "memory"
    source = signals.source if signals is not None else ""
    text = " ".join(record.text.casefold().split()) if record is not None else ""
    return Spreadable(id_, score, kind_group(kind), source, text, tokens)


def _hits(
    page: Sequence[str], ranked: Ranked, relevances: Relevances, records: Mapping[str, Record]
) -> tuple[Hit, ...]:
    candidates, scores = ranked.candidates, ranked.scores
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
        trace = Trace(
            stages=scores.stages(id_),
            keyword_rank=keyword_rank,
            keyword_score=keyword_score,
            vector_rank=vector_rank,
            cosine=cosine,
            cosine_zscore=candidates.cosine_zscores.get(id_),
            model_fluency=fluency,
            matched_share=candidates.matched_shares.get(id_, least_share if id_ in keyword else 0.0),
            rerank=scores.readings.get(id_),
        )
        weak = not relevances.confident(id_)
        hits.append(Hit(records[id_], scores.total[id_], relevances[id_], trace, weak=weak))
    return tuple(hits)
