"""Both halves of a search: the keyword one runs while the question is being embedded.

A half that cannot be had leaves the other standing, and a note says why.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from mindex.model import Filters, Query
from mindex.search.embedding import QueryEmbedder
from mindex.search.fuse import Candidates, standardised
from mindex.search.query import ParsedQuery, parse, parse_plain
from mindex.search.relevance import coverage
from mindex.store.base import Nearest, Scored, Store

# Words per word piece at which a model reads nothing of a language, and at which it reads it well.
_UNREAD, _FLUENT = 0.50, 0.75


@dataclass(frozen=True, slots=True)
class Retrieved:
    parsed: ParsedQuery
    candidates: Candidates
    capped: bool  # a half brought as many as it may: there may be more
    notes: tuple[str, ...] = ()


class Retriever:
    """Brings candidates from one store."""

    def __init__(self, store: Store, embedder: QueryEmbedder | None, limit: int) -> None:
        self._store = store
        self._embedder = embedder
        self._limit = limit

    def retrieve(self, query: Query) -> Retrieved:
        parsed = parse(query.text)
        found = self._halves(query, parsed)
        if parsed.strict and not found.candidates.keyword and not found.candidates.vector:
            loose = self._halves(query, parse_plain(parsed.text))
            if loose.candidates.keyword:
                note = "nothing matches all of it; this is what any of its words finds"
                return replace(loose, notes=(note, *loose.notes))
        return found

    def _halves(self, query: Query, parsed: ParsedQuery) -> Retrieved:
        # What a strict query demands holds for both halves: `NOT x` keeps x out of the nearest, too.
        filters = replace(query.filters, matching=parsed.node) if parsed.strict else query.filters
        keyword: tuple[Scored, ...] = ()
        asks_vectors = query.mode != "keyword" and bool(parsed.words)
        pending = self._embedder.start(parsed.text) if asks_vectors and self._embedder else None
        if query.mode != "vector":
            keyword = self._keyword(parsed, query.filters)
        nearest, note = None, ""
        if self._embedder is not None and pending is not None:
            embedded = self._embedder.finish(pending)
            note = embedded.note
            if embedded.vector is not None:
                nearest = self._store.nearest(self._embedder.embedder.model, embedded.vector, filters, self._limit)
        elif asks_vectors:
            note = "no embedder is configured; answered by keyword"
        if nearest is not None and not nearest.size:
            nearest = None
            note = "" if parsed.strict else "nothing in scope has a vector yet; answered by keyword"
        if nearest is None and query.mode == "vector":
            keyword = self._keyword(parsed, query.filters)
        capped = self._limit in (len(keyword), len(nearest.hits) if nearest else 0)
        candidates = self._candidates(query, parsed, keyword, nearest)
        return Retrieved(parsed, candidates, capped, (note,) if note else ())

    def _keyword(self, parsed: ParsedQuery, filters: Filters) -> tuple[Scored, ...]:
        return self._store.keyword(parsed.node, filters, self._limit) if parsed.node is not None else ()

    def _candidates(
        self, query: Query, parsed: ParsedQuery, keyword: tuple[Scored, ...], nearest: Nearest | None
    ) -> Candidates:
        share = self._coverage(parsed, keyword)
        if nearest is None or self._embedder is None:
            return Candidates(keyword=keyword, coverage=share, has_vector=False, strict=parsed.strict)
        model = self._embedder.embedder.model
        background = (model.background_mean, model.background_std)
        z = {
            hit.id: standardised(hit.score, nearest.mean, nearest.std, nearest.size, background) for hit in nearest.hits
        }
        g = min(1.0, max(0.0, (nearest.fluency - _UNREAD) / (_FLUENT - _UNREAD)))
        return Candidates(keyword, nearest.hits, z, share, g, has_keyword=query.mode != "vector", strict=parsed.strict)

    def _coverage(self, parsed: ParsedQuery, keyword: tuple[Scored, ...]) -> float:
        """What the best keyword hit holds of the question: of a strict one, all that was demanded."""
        if not keyword or parsed.strict:
            return 1.0 if keyword else 0.0
        held = self._store.tokens(keyword[0].id)
        return coverage(parsed.tokens, held, self._store.statistics(parsed.tokens))
