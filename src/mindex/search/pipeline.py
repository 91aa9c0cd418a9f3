"""Query → parse → retrieve keyword ∥ vector → fuse → (expand) → neighbours → floor → boost → (rerank) → hits.

Each stage is a small module. A stage that cannot run leaves the one before it standing and says so in a note.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from math import prod
from typing import TYPE_CHECKING

from mindex.clock import now_ms
from mindex.errors import UsageError
from mindex.model import Answer, Hit, Query, Record, Stage, Tier, Trace
from mindex.search.boost import boosts_for
from mindex.search.candidate_scores import CandidateScores
from mindex.search.fuse import FUSIONS, Candidates, Contribution, ListWeights, fuse, fusion_named
from mindex.search.page_candidates import RERANKED, PageCandidates, RankingSettings
from mindex.search.piece_cosines import term_weights
from mindex.search.query import MAX_QUERY, ParsedQuery, parse
from mindex.search.relevance import read_again
from mindex.search.retrieval import Retrieved, Retriever
from mindex.search.substring_tier import nothing_relevant_note, substring_answer
from mindex.search.turn_neighbours import lift_neighbours
from mindex.search.weak_hits import MOST_WEAK, NO_CONFIDENT_MATCH, weak_floor
from mindex.store.base import RankingContext, RankingSignals, Store
from mindex.values import dataclass, replace

if TYPE_CHECKING:  # most searches need none of these (tests/test_costs.py)
    from mindex.search.expand import QueryExpander
    from mindex.search.query_embedding import QueryEmbedder
    from mindex.search.rerank import RerankStage

MAX_LIMIT = 50
# Hits of a language model's variants are a little less certain.
_SURE_OF_VARIANTS = 0.9
_PARTS = tuple(part.name for part in fields(Contribution))


@dataclass(frozen=True, slots=True)
class _Ranked:
    """A candidate after boosts: its score in parts, and its relevance."""

    id: str
    score: float
    stages: tuple[Stage, ...]  # they add up to the score
    relevance: float
    reranked: float | None = None


class SearchPipeline:
    """Answers queries from one store."""

    def __init__(
        self,
        store: Store,
        embedder: QueryEmbedder | None,
        ranking: RankingSettings,
        *,
        reranking: Callable[[], RerankStage],
        expander: Callable[[], QueryExpander | None],
        space: str | None = None,
    ) -> None:
        """`reranking` and `expander` are called when a query first needs them.

        `space` is the active space that the embedder was selected for; a search raises SpaceChangedError when another
        one is active. None: any may be.
        """
        self._store = store
        self._ranking = ranking
        self._retriever = Retriever(store, embedder, ranking.candidates, ranking.refining, space)
        self._page = PageCandidates(store, ranking)
        self._reranking = reranking
        self._expander = expander

    def search(self, query: Query, domain: str | None = None) -> Answer:
        query, notes = _checked(query, self._ranking)
        retrieved = self._retriever.retrieve(query)
        candidates = retrieved.candidates
        notes += retrieved.notes
        fusion = FUSIONS[query.fusion]
        if fusion.needs_signals:
            shares, decay = self._ranking.signals, self._ranking.boosts.decay
            known = self._signals(candidates)
            candidates = replace(candidates, signals=known, now=now_ms(), decay=decay, signal_weights=shares)
        compares_kinds = fusion.compares_kinds and not candidates.strict
        weights = list_weights(query, self._ranking.weights[query.fusion])
        fused = fuse(query.fusion, candidates, self._ranking.weights[query.fusion], weights)
        scores = CandidateScores(candidates, fused, compares_kinds=compares_kinds)
        if query.expand:
            notes += self._expand(query, retrieved, scores)
        floor = self._ranking.floor if query.floor is None else query.floor
        low_floor = weak_floor(query, floor, self._ranking.low_floor, shown=self._ranking.weak)
        lifted = scores.turns if fusion.lifts_neighbours and not retrieved.parsed.strict else set()
        context = self._page.read(query, scores, low_floor, domain, lifted, retrieved.past)
        records = {**context.records, **retrieved.past}
        if context.adjacent_turns:
            lift_neighbours(context.adjacent_turns, scores.fused, scores.relevances, self._ranking.neighbours)
            scores.settle()
        relevances = scores.relevances
        kept = scores.ordered([id_ for id_ in scores.fused if relevances[id_] >= low_floor])
        if not any(scores.relevances[id_] >= floor for id_ in kept):
            literal = substring_answer(self._store, query, retrieved.parsed.text, notes, self._ranking.candidates)
            if literal is not None:
                return literal
            if not kept and not retrieved.vacant:
                nearest = scores.most_relevant()
                record = next(iter(self._records([nearest], records).values()), None)
                notes += (nothing_relevant_note(record, scores.relevances.get(nearest, 0.0)),)
        query, said = self._unless_refused(query, retrieved.parsed, kept)
        notes += said
        ranked = self._ranked(query, context, kept, scores, domain, retrieved.past)
        if query.rerank:
            ranked, said = self._rerank(retrieved, ranked, records)
            notes += said
        if not any(hit.relevance >= floor for hit in ranked):
            kept, ranked = kept[:MOST_WEAK], ranked[:MOST_WEAK]
            notes += (NO_CONFIDENT_MATCH,) if ranked else ()
        shown = ranked[query.offset : query.offset + query.limit]
        hits = self._hits(shown, candidates, scores.shares, records, floor)
        return Answer(
            query=query.text,
            tier=_tier(candidates),
            fusion=query.fusion,
            total=len(kept),
            has_more=query.offset + len(shown) < len(kept),
            hits=self._retriever.with_piece_cosines(hits, retrieved) if query.passages else hits,
            notes=notes,
            total_capped=_capped(candidates, scores.relevances, low_floor, self._ranking.candidates),
            offset=query.offset,
            vacant=retrieved.vacant,
            term_weights=term_weights(retrieved.statistics),
        )

    def _signals(self, candidates: Candidates) -> dict[str, RankingSignals]:
        """The ranking signals of all candidates: those that came with keyword hits, the others are read."""
        known = {hit.id: hit.signals for hit in candidates.keyword if hit.signals is not None}
        missing = [hit.id for hit in (*candidates.keyword, *candidates.vector) if hit.id not in known]
        return known | self._store.retrieval.ranking_signals(missing) if missing else known

    # ── expand ────────────────────────────────────────────────────────────────────────────────────────────────

    def _expand(self, query: Query, retrieved: Retrieved, scores: CandidateScores) -> tuple[str, ...]:
        """Add the hits of the query's variants to the scores. Returns notes."""
        if retrieved.parsed.strict:
            return ("not expanded: operators and quotes mean what they say",)
        expander = self._expander()
        if expander is None:
            return ("not expanded: no language model is configured; set generation.provider",)
        variants, note = expander.expand(retrieved.parsed.text)
        found = self._retriever.variants(query, variants, retrieved)
        weight = self._ranking.weights[query.fusion]
        of_query = list_weights(query, weight)
        for candidates in found:
            for id_, part in fuse(query.fusion, candidates, weight, of_query).items():
                added = self._ranking.expansion * (part.keyword + part.vector) / len(found)
                before = scores.fused.get(id_, Contribution())
                scores.fused[id_] = replace(before, expansion=before.expansion + added)
            scores.judge(candidates, _SURE_OF_VARIANTS)
        scores.settle()
        return (note,)

    # ── rerank ────────────────────────────────────────────────────────────────────────────────────────────────

    def _unless_refused(self, query: Query, parsed: ParsedQuery, kept: list[str]) -> tuple[Query, tuple[str, ...]]:
        """The query, without `rerank` where that is impossible, and notes: then nothing is prepared for it."""
        if not query.rerank or self._ranking.rerank == 0 or len(kept) < 2:
            return replace(query, rerank=False), ()
        refusal = self._reranking().refused(parsed.text)
        return (replace(query, rerank=False), (refusal,)) if refusal else (query, ())

    def _rerank(
        self, retrieved: Retrieved, ranked: list[_Ranked], known: dict[str, Record]
    ) -> tuple[list[_Ranked], tuple[str, ...]]:
        """The first forty in the order that a cross-encoder and the score so far agree on."""
        # An English one would only spoil Chinese: it reads no script that its vocabulary lacks, and no language better
        # than the embedder does.
        from mindex.search.rerank import blended, legible, share

        first, rest = ranked[:RERANKED], ranked[RERANKED:]
        records = self._records([hit.id for hit in first], known)
        first = [hit for hit in first if hit.id in records]
        if len(first) < 2:
            return ranked, ()
        candidates = retrieved.candidates
        weight = self._reranking().weight if self._ranking.rerank is None else self._ranking.rerank
        fluency = candidates.model_fluency if candidates.cosines else 1.0
        weight *= min(fluency, legible(records.values()))
        if not weight:
            return ranked, ("not reranked: the models hardly read the language of these texts",)
        done = self._reranking().scores(retrieved.parsed.text, [records[hit.id] for hit in first])
        if done.note:
            return ranked, (done.note,)
        weight = share(weight * done.trust, records.values())
        scores = blended({hit.id: hit.score for hit in first}, done.scores, weight)
        first = [
            replace(
                hit,
                score=scores[hit.id],
                stages=(*hit.stages, Stage("rerank", scores[hit.id] - hit.score)),
                reranked=done.scores[hit.id],
                relevance=read_again(hit.relevance, done.answers[hit.id]) if done.answers else hit.relevance,
            )
            for hit in first
        ]
        return [*sorted(first, key=_order), *rest], ()

    # ── boost ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _ranked(
        self,
        query: Query,
        context: RankingContext,
        kept: list[str],
        scores: CandidateScores,
        domain: str | None,
        past: Mapping[str, Record],
    ) -> list[_Ranked]:
        """The kept hits in order after boosts, as many as the page needs."""
        fused, totals = scores.fused, scores.totals
        enough = self._page.least_total(query, [totals[id_] for id_ in kept], domain)
        kept = [id_ for id_ in kept if totals[id_] >= enough]
        boosts = self._page.boosts(query)
        signals = dict(context.signals) | {
            id_: RankingSignals(id_, past[id_].kind, importance=past[id_].importance, created_at=past[id_].created_at)
            for id_ in kept
            if id_ in past
        }
        now = now_ms()
        factors = {
            id_: tuple(boosts_for(signals[id_], domain, boosts, now))
            for id_ in kept
            if id_ in signals  # else it has gone since it was retrieved
        }
        boosted = {id_: totals[id_] * prod(factor for _, factor in own) for id_, own in factors.items()}
        best = sorted(boosted, key=lambda id_: (-boosted[id_], -scores.relevances[id_], id_))
        return [
            _Ranked(id_, boosted[id_], _stages(fused[id_], totals[id_], factors[id_]), scores.relevances[id_])
            for id_ in best[: self._page.needed(query)]
        ]

    # ── answer ────────────────────────────────────────────────────────────────────────────────────────────────

    def _hits(
        self,
        shown: list[_Ranked],
        candidates: Candidates,
        shares: Mapping[str, float],
        known: dict[str, Record],
        floor: float,
    ) -> tuple[Hit, ...]:
        records = self._records([hit.id for hit in shown], known)
        found = [enumerate(hits, start=1) for hits in (candidates.keyword, candidates.vector)]
        keyword, vector = ({hit.id: (rank, hit.score) for rank, hit in ranks if hit.id in records} for ranks in found)
        hits = []
        for hit in shown:
            if hit.id not in records:
                continue
            keyword_rank, keyword_score = keyword.get(hit.id, (None, None))
            vector_rank, cosine = vector.get(hit.id, (None, None))
            trace = Trace(
                stages=hit.stages,
                keyword_rank=keyword_rank,
                keyword_score=keyword_score,
                vector_rank=vector_rank,
                cosine=cosine,
                cosine_zscore=candidates.cosine_zscores.get(hit.id),
                model_fluency=candidates.fluency.get(hit.id, candidates.model_fluency)
                if candidates.has_vector
                else None,
                matched_share=shares.get(hit.id, 0.0),
                rerank=hit.reranked,
            )
            hits.append(Hit(records[hit.id], hit.score, hit.relevance, trace, weak=hit.relevance < floor))
        return tuple(hits)

    def _records(self, ids: Sequence[str], known: dict[str, Record]) -> dict[str, Record]:
        """Records by id; those that are not known yet are read, and known from then on."""
        if missing := [id_ for id_ in ids if id_ not in known]:
            known.update((record.id, record) for record in self._store.retrieval.records(missing))
        return {id_: known[id_] for id_ in ids if id_ in known}


def _order(hit: _Ranked) -> tuple[float, float, str]:
    return -hit.score, -hit.relevance, hit.id


def _stages(contribution: Contribution, total: float, boosts: Iterable[tuple[str, float]]) -> tuple[Stage, ...]:
    """What each part of a score, and then each boost, changes. Stages are named for the fields of Contribution.

    `kind` is what makes the score comparable with those of other kinds.
    """
    changes = {name: getattr(contribution, name) for name in _PARTS}  # `asdict` copies, and takes ten times as long
    changes["kind"] = total - contribution.total
    score = total
    for name, factor in boosts:
        changes[name] = score * (factor - 1)
        score *= factor
    return tuple(Stage(name, change) for name, change in changes.items() if change)


def _capped(candidates: Candidates, relevances: Mapping[str, float], floor: float, limit: int) -> bool:
    """Whether there may be more: a list is as long as it may be, and even its last is above the floor."""
    lists = (candidates.keyword, candidates.vector)
    return any(len(hits) >= limit and relevances[hits[-1].id] >= floor for hits in lists)


def _checked(query: Query, ranking: RankingSettings) -> tuple[Query, tuple[str, ...]]:
    """The query with its amounts in range, and what had to be cut."""
    notes: list[str] = []
    if not query.text.strip():
        raise UsageError("the query is empty", "say what you are looking for")
    if query.limit < 1:
        raise UsageError(f"limit {query.limit} is too small", f"use 1 to {MAX_LIMIT}")
    if query.offset < 0:
        raise UsageError(f"offset {query.offset} is too small", "use 0 or more")
    if query.limit > MAX_LIMIT:
        notes.append(f"limit cut to {MAX_LIMIT}, the maximum")
    if len(query.text) > MAX_QUERY:
        notes.append(f"query cut to {MAX_QUERY} characters")
    fusion = query.fusion or ranking.fusion
    fusion_named(fusion)
    _check_weights(query, fusion)
    # For all that follows, the loose words of a strict query among it: what NOT names is out of scope.
    filters = replace(query.filters, without=parse(query.text).excluded)
    limit, text = min(query.limit, MAX_LIMIT), query.text[:MAX_QUERY]
    return replace(query, limit=limit, text=text, fusion=fusion, filters=filters), tuple(notes)


def _check_weights(query: Query, fusion: str) -> None:
    given = {"vector_weight": query.vector_weight, "keyword_weight": query.keyword_weight}
    named = {name: weight for name, weight in given.items() if weight is not None}
    if not named:
        return
    names = " and ".join(named)
    for name, weight in named.items():
        if not 0 <= weight <= 1:  # NaN is neither
            raise UsageError(f"{name} {weight:g} is out of range", "use 0 to 1")
    if not any(weight != 0 for weight in given.values()):
        raise UsageError("vector_weight and keyword_weight are both 0", "let one of them count")
    if query.mode != "hybrid":
        raise UsageError(f"{names}: a {query.mode} search has nothing to weigh", "use it with mode hybrid")
    if fusion_named(fusion).one_list:
        raise UsageError(f"{names}: the fusion {fusion} has one score of the text", "use another fusion")


def list_weights(query: Query, weight: float) -> ListWeights | None:
    """The weights that a query brings; the one that it leaves out is that of its fusion, half for `rrf`."""
    if query.vector_weight is None and query.keyword_weight is None:
        return None
    usual = weight if weight <= 1 else 0.5
    vector = usual if query.vector_weight is None else query.vector_weight
    return ListWeights(vector, 1 - usual if query.keyword_weight is None else query.keyword_weight)


def _tier(candidates: Candidates) -> Tier:
    if not candidates.has_vector:
        return "keyword"
    return "hybrid" if candidates.has_keyword else "vector"
