"""Question → parse → retrieve keyword ∥ vector → fuse → boost → relevance and floor → hits.

Each stage is a small module. A stage that cannot run leaves the one before it standing and says so in a note.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from mindex.errors import UsageError
from mindex.model import Answer, Hit, Query, Stage, Tier, Trace
from mindex.search.boost import Boosts, boosts_for
from mindex.search.embedding import QueryEmbedder
from mindex.search.fuse import Candidates, Contribution, fuse, fusion_named, standardised
from mindex.search.query import MAX_QUERY, ParsedQuery, parse, parse_plain
from mindex.search.relevance import coverage, relevance
from mindex.store.base import Nearest, Scored, Signals, Store

MAX_LIMIT = 50
# Words per word piece at which a model reads nothing of a language, and at which it reads it well.
_UNREAD, _FLUENT = 0.50, 0.75
_SUBSTRING_RELEVANCE = 0.5


@dataclass(frozen=True, slots=True)
class Ranking:
    """The knobs of a search that come from the settings."""

    fusion: str = "blend"
    weights: Mapping[str, float] = field(
        default_factory=lambda: {"blend": 0.5, "weighted": 0.7, "minmax": 0.6, "rrf": 60}
    )
    candidates: int = 200
    floor: float = 0.2
    boosts: Boosts = field(default_factory=Boosts)


@dataclass(frozen=True, slots=True)
class _Retrieved:
    parsed: ParsedQuery
    candidates: Candidates
    capped: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Scored:
    id: str
    score: float
    relevance: float
    stages: tuple[Stage, ...]


class Searcher:
    """Answers questions from one store."""

    def __init__(self, store: Store, embedder: QueryEmbedder | None, ranking: Ranking) -> None:
        self._store = store
        self._embedder = embedder
        self._ranking = ranking

    def search(self, query: Query, domain: str | None = None) -> Answer:
        query, notes = _checked(query, self._ranking)
        retrieved = self._retrieve(query)
        candidates = retrieved.candidates
        notes += retrieved.notes
        scored = self._score(query, candidates, domain)
        floor = self._ranking.floor if query.floor is None else query.floor
        kept = [hit for hit in scored if hit.relevance >= floor]
        if not kept:
            literal = self._substring(query, retrieved.parsed, notes)
            if literal is not None:
                return literal
            notes += (_nothing(scored[0], self._store) if scored else "nothing relevant",)
        shown = kept[query.offset : query.offset + query.limit]
        return Answer(
            query=query.text,
            tier=_tier(candidates),
            fusion=query.fusion,
            total=len(kept),
            has_more=query.offset + len(shown) < len(kept),
            hits=self._hits(shown, candidates),
            notes=notes,
            total_capped=retrieved.capped,
            offset=query.offset,
        )

    # ── retrieve ──────────────────────────────────────────────────────────────────────────────────────────────

    def _retrieve(self, query: Query) -> _Retrieved:
        parsed = parse(query.text)
        found = self._halves(query, parsed)
        if parsed.strict and not found.candidates.keyword and not found.candidates.vector:
            # Nobody wrote `NOT` to be told that nothing is there: say so, and offer what any of the words finds.
            loose = self._halves(query, parse_plain(parsed.text))
            if loose.candidates.keyword:
                return replace(
                    loose, notes=("nothing matches all of it; this is what any of its words finds", *loose.notes)
                )
        return found

    def _halves(self, query: Query, parsed: ParsedQuery) -> _Retrieved:
        """Both halves, the keyword one while the question is being embedded."""
        limit = self._ranking.candidates
        filters = replace(query.filters, matching=parsed.node) if parsed.strict else query.filters
        pending = None
        notes: tuple[str, ...] = ()
        if query.mode != "keyword" and parsed.words:
            if self._embedder is None:
                notes = ("no embedder is configured; answered by keyword",)
            else:
                pending = self._embedder.start(parsed.text)
        keyword: tuple[Scored, ...] = ()
        if parsed.node is not None and (query.mode != "vector" or pending is None):
            keyword = self._store.keyword(parsed.node, query.filters, limit)
        share = self._coverage(parsed, keyword)
        nearest = None
        if pending is not None and self._embedder is not None:
            found = self._embedder.finish(pending)
            if found.vector is None:
                notes = (found.note,)
            else:
                nearest = self._store.nearest(self._embedder.embedder.model, found.vector, filters, limit)
            if (nearest is None or not nearest.size) and query.mode == "vector" and parsed.node is not None:
                keyword = self._store.keyword(parsed.node, query.filters, limit)
                share = self._coverage(parsed, keyword)
        if nearest is not None and not nearest.size and not parsed.strict:
            notes = ("nothing in scope has a vector yet; answered by keyword",)
        capped = limit in (len(keyword), len(nearest.hits) if nearest else 0)
        return _Retrieved(parsed, self._candidates(query, keyword, nearest, share), capped, notes)

    def _candidates(
        self, query: Query, keyword: tuple[Scored, ...], nearest: Nearest | None, share: float
    ) -> Candidates:
        if nearest is None or not nearest.size or self._embedder is None:
            return Candidates(keyword=keyword, coverage=share, has_vector=False)
        model = self._embedder.embedder.model
        background = (model.background_mean, model.background_std)
        z = {
            hit.id: standardised(hit.score, nearest.mean, nearest.std, nearest.size, background) for hit in nearest.hits
        }
        g = min(1.0, max(0.0, (nearest.fluency - _UNREAD) / (_FLUENT - _UNREAD)))
        return Candidates(keyword, nearest.hits, z, share, g, has_vector=True, has_keyword=query.mode != "vector")

    def _coverage(self, parsed: ParsedQuery, keyword: tuple[Scored, ...]) -> float:
        if not keyword:
            return 0.0
        held = self._store.tokens(keyword[0].id)
        return coverage(parsed.tokens, held, self._store.statistics(parsed.tokens))

    # ── score ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _score(self, query: Query, candidates: Candidates, domain: str | None) -> list[_Scored]:
        fused = fuse(query.fusion, candidates, self._ranking.weights[query.fusion])
        signals = self._store.signals(list(fused))
        best = max((hit.score for hit in candidates.keyword), default=1.0)
        words = {hit.id: candidates.coverage * hit.score / best for hit in candidates.keyword}
        cosines = {hit.id: hit.score for hit in candidates.vector}
        # A keyword hit that is not among the nearest is at most as near as the last of them.
        furthest = min(cosines.values(), default=0.0)
        scored = []
        for id_, contribution in fused.items():
            if id_ not in signals:  # gone since it was retrieved
                continue
            stages = self._stages(contribution, signals[id_], domain)
            cosine = cosines.get(id_, furthest) if candidates.has_vector else None
            scored.append(
                _Scored(
                    id_,
                    sum(stage.change for stage in stages),
                    relevance(words.get(id_, 0.0), cosine, candidates.g),
                    stages,
                )
            )
        return sorted(scored, key=lambda hit: (-hit.score, -hit.relevance, hit.id))

    def _stages(self, contribution: Contribution, signals: Signals, domain: str | None) -> tuple[Stage, ...]:
        stages = [Stage("keyword", contribution.keyword), Stage("vector", contribution.vector)]
        score = contribution.total
        for name, factor in boosts_for(signals, domain, self._ranking.boosts):
            stages.append(Stage(name, score * (factor - 1)))
            score *= factor
        return tuple(stage for stage in stages if stage.change)

    # ── answer ────────────────────────────────────────────────────────────────────────────────────────────────

    def _hits(self, shown: list[_Scored], candidates: Candidates) -> tuple[Hit, ...]:
        records = {record.id: record for record in self._store.records([hit.id for hit in shown])}
        keyword = {hit.id: (rank, hit.score) for rank, hit in enumerate(candidates.keyword, start=1)}
        vector = {hit.id: (rank, hit.score) for rank, hit in enumerate(candidates.vector, start=1)}
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
                z=candidates.z.get(hit.id),
                g=candidates.g if candidates.has_vector else None,
                coverage=candidates.coverage,
            )
            hits.append(Hit(records[hit.id], hit.score, hit.relevance, trace))
        return tuple(hits)

    def _substring(self, query: Query, parsed: ParsedQuery, notes: tuple[str, ...]) -> Answer | None:
        """The last tier: records that hold every word of the question literally, parts of words included."""
        words = [word for word in parsed.text.split() if len(word) > 1] or parsed.text.split()
        ids = self._store.substring(words[:20], query.filters, self._ranking.candidates) if words else ()
        if not ids:
            return None
        shown = self._store.records(ids[query.offset : query.offset + query.limit])
        stages = (Stage("substring", _SUBSTRING_RELEVANCE),)
        return Answer(
            query=query.text,
            tier="substring",
            fusion=query.fusion,
            total=len(ids),
            has_more=query.offset + len(shown) < len(ids),
            hits=tuple(Hit(record, _SUBSTRING_RELEVANCE, _SUBSTRING_RELEVANCE, Trace(stages)) for record in shown),
            notes=(*notes, "no word or meaning matched; these hold the text literally"),
            total_capped=len(ids) == self._ranking.candidates,
            offset=query.offset,
        )


def _checked(query: Query, ranking: Ranking) -> tuple[Query, tuple[str, ...]]:
    """The query with its amounts in range, and what had to be cut."""
    notes: list[str] = []
    if not query.text.strip():
        raise UsageError("the query is empty", "say what you are looking for")
    if query.limit < 1:
        raise UsageError(f"limit {query.limit} is too small", f"use 1 to {MAX_LIMIT}")
    if query.offset < 0:
        raise UsageError(f"offset {query.offset} is too small", "use 0 or more")
    if query.limit > MAX_LIMIT:
        notes.append(f"limit cut to {MAX_LIMIT}")
    if len(query.text) > MAX_QUERY:
        notes.append(f"query cut to {MAX_QUERY} characters")
    fusion = query.fusion or ranking.fusion
    fusion_named(fusion)
    return replace(query, limit=min(query.limit, MAX_LIMIT), text=query.text[:MAX_QUERY], fusion=fusion), tuple(notes)


def _tier(candidates: Candidates) -> Tier:
    if not candidates.has_vector:
        return "keyword"
    return "hybrid" if candidates.has_keyword else "vector"


def _nothing(nearest: _Scored, store: Store) -> str:
    for record in store.records([nearest.id]):
        place = f"{record.path}:{record.first_line}" if record.path else record.id
        return f"nothing relevant; the nearest is {place} (relevance {nearest.relevance:.2f})"
    return "nothing relevant"
