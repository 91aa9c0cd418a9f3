"""Retrieval of keyword and vector candidates: keywords are searched while the query is embedded.

When one of the two cannot be retrieved, the other remains, and a note says why.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING

from mindex.errors import SpaceChangedError
from mindex.model import Filters, Hit, Model, Query, Record, VectorArray
from mindex.search.fuse import Candidates, standardised
from mindex.search.guidance import no_vectors_note, unembedded_note, vacancy_note
from mindex.search.keyword_scoring import KeywordCandidates, KeywordWeights, keyword_candidates
from mindex.search.piece_cosines import with_piece_cosines
from mindex.search.query import ParsedQuery, parse, parse_plain
from mindex.store.base import NearestRecords, ScoredRecord, Store, TermStatistics
from mindex.store.rules.bm25 import matches
from mindex.store.rules.filters import admits
from mindex.store.rules.kind_groups import first_of_each_group
from mindex.values import dataclass, replace

if TYPE_CHECKING:
    from mindex.search.expand import Variants
    from mindex.search.query_embedding import QueryEmbedder

# Records of the past have no stored vector: so many of them are embedded for one query.
_MOST_EMBEDDED = 200
LOOSELY_FOUND = "nothing matches all of it; this is what any of its words finds"
# Where the default model's cosines lie.
_USUAL = Model("", "", 0)


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Keyword and vector candidates of a query, and notes about them."""

    parsed: ParsedQuery
    candidates: Candidates
    notes: tuple[str, ...] = ()
    past: Mapping[str, Record] = field(default_factory=dict)  # records as they stood then, where they changed since
    vacant: bool = False  # there is nothing that could have been found, and the notes say so
    vector: VectorArray | None = None  # of the query, if vectors were compared
    statistics: TermStatistics | None = None  # how common the query's tokens are, if they were counted


class Retriever:
    """Brings candidates from one store."""

    def __init__(
        self,
        store: Store,
        embedder: QueryEmbedder | None,
        limit: int,
        refining: KeywordWeights,
        space: str | None = None,
    ) -> None:
        """`space` is the active space that the embedder was selected for ('': there was none); None: any."""
        self._store = store
        self._embedder = embedder
        self._space = space
        self._limit = limit
        self._refining = refining

    def retrieve(self, query: Query) -> Retrieved:
        parsed = parse(query.text)
        found = self._retrieved(query, parsed)
        if parsed.strict and not found.candidates.keyword and not found.candidates.vector:
            loose = self._retrieved(query, parse_plain(parsed.text))
            if loose.candidates.keyword or query.mode == "vector":
                return replace(loose, notes=(LOOSELY_FOUND, *loose.notes))
        if not found.candidates.keyword and not found.candidates.vector and not found.past:
            vacant = vacancy_note(self._store, query.filters, query.guidance)
            return replace(found, notes=(vacant,), vacant=True) if vacant else found
        return found

    def _retrieved(self, query: Query, parsed: ParsedQuery) -> Retrieved:
        # What a strict query demands holds for vectors, too: `NOT x` keeps x out of the nearest.
        filters = replace(query.filters, matching=parsed.node) if parsed.strict else query.filters
        past = self._past(query.filters)
        words = KeywordCandidates()
        needs_vector = query.mode != "keyword" and bool(parsed.words)
        pending = self._embedder.start(parsed.text) if needs_vector and self._embedder else None
        if query.mode != "vector":
            words = self._keyword_candidates(query, parsed, past)
        nearest, note, vector = None, "", None
        if self._embedder is not None and pending is not None:
            embedded = self._embedder.finish(pending, patient=query.mode == "vector")
            note = embedded.note
            if embedded.vector is not None:
                nearest = self._store.retrieval.nearest(
                    self._embedder.embedder.model, embedded.vector, filters, self._limit
                )
                nearest, note = self._with_past(nearest, embedded.vector, parsed, past)
                vector = embedded.vector
        elif needs_vector:
            note = "no embedder is configured; answered by keyword"
        if nearest is not None and not nearest.size:
            nearest = None
            note = "" if parsed.strict else no_vectors_note(query.guidance)
        if nearest is None and query.mode == "vector":
            words = self._keyword_candidates(query, parsed, past)
        candidates = self._candidates(query, parsed, words, nearest)
        notes = [note] if note else []
        if unembedded := self._unembedded(words, nearest, past):
            candidates = replace(candidates, unembedded=unembedded)
            notes.append(unembedded_note(len(unembedded), query.guidance))
        if query.filters.as_of is not None:
            notes.append("files answer as they are now; what was told, as it stood then")
            if len(past) >= _MOST_EMBEDDED:
                notes.append(f"{len(past)} memories changed since then: those are found by keyword only")
        vector = vector if nearest is not None else None
        return Retrieved(parsed, candidates, tuple(notes), past, vector=vector, statistics=words.statistics)

    def _unembedded(
        self, words: KeywordCandidates, nearest: NearestRecords | None, past: Mapping[str, Record]
    ) -> frozenset[str]:
        """The keyword hits that were looked at and have no vector yet, where others have one."""
        if nearest is None or self._embedder is None:
            return frozenset()
        near = {hit.id for hit in nearest.hits}
        ids = [id_ for id_ in words.matched_shares if id_ not in near and id_ not in past]
        if not ids:
            return frozenset()
        pending = self._store.vectors.pending_records(self._embedder.embedder.model, len(ids), ids=ids)
        return frozenset(record.id for record in pending)

    def _keyword_candidates(self, query: Query, parsed: ParsedQuery, past: Mapping[str, Record]) -> KeywordCandidates:
        words = keyword_candidates(self._store, query, parsed, past, self._limit, self._refining)
        if self._space is not None and words.active_space != self._space and parsed.node is not None:
            raise SpaceChangedError("everything was embedded anew with another model meanwhile", "ask again")
        return words

    def with_piece_cosines(self, hits: tuple[Hit, ...], retrieved: Retrieved) -> tuple[Hit, ...]:
        """The hits with the cosines of their pieces, if vectors were compared."""
        if retrieved.vector is None or self._embedder is None or not hits:
            return hits
        return with_piece_cosines(self._store, self._embedder.embedder.model, retrieved.vector, hits)

    # ── variants of the query ──────────────────────────────────────────────────────────────────────────────

    def variants(self, query: Query, variants: Variants, own: Retrieved) -> list[Candidates]:
        """Return the candidates of each variant: of lexical ones by keyword, of the others by vector.

        `own` are the candidates of the query itself: its cosines say how near a hit of a lexical variant is.
        """
        found = []
        for text in variants.lexical if query.mode != "vector" else ():
            words = self._keyword_candidates(query, parse_plain(text), own.past)
            near = replace(own.candidates, vector=(), cosine_zscores={}, signals={}, has_vector=False)
            found.append(
                replace(near, keyword=words.hits, matched_shares=words.matched_shares, surprises=words.surprises)
            )
        if query.mode == "keyword" or self._embedder is None:
            return found
        pending = [self._embedder.start(text) for text in variants.semantic]
        pending += [self._embedder.start(variants.answer, answer=True)] if variants.answer else []
        for embedded in map(self._embedder.finish, pending):
            if embedded.vector is not None:
                model = self._embedder.embedder.model
                nearest = self._store.retrieval.nearest(model, embedded.vector, query.filters, self._limit)
                found.append(replace(_vector_candidates(nearest, model), words=own.candidates.words))
        return found

    # ── the past ──────────────────────────────────────────────────────────────────────────────────────────────

    def _past(self, filters: Filters) -> dict[str, Record]:
        if filters.as_of is None:
            return {}
        states = self._store.entries.states_at(filters.as_of)
        return {record.id: record for record in states if admits(filters, record, filters.as_of)}

    def _with_past(
        self, nearest: NearestRecords, vector: VectorArray, parsed: ParsedQuery, past: Mapping[str, Record]
    ) -> tuple[NearestRecords, str]:
        """The nearest records with those that changed since then, embedded for this query; or a note why without."""
        if not past or len(past) >= _MOST_EMBEDDED or self._embedder is None:
            return nearest, ""
        if parsed.strict and parsed.node is not None:
            past = {id_: record for id_, record in past.items() if matches(parsed.node, record)}
        # Its patterns take time to compile, and only a search of the past needs them.
        from mindex.embedding_text import embedding_pieces

        pieces = {id_: embedding_pieces(record) for id_, record in past.items()}
        # A cached query needs no model, but the past does; without one it is left out.
        made = self._embedder.texts([piece for parts in pieces.values() for piece in parts])
        if made.vector is None:
            return nearest, f"what changed since then is found by keyword only: {made.note}"
        cosines = iter((made.vector @ vector).tolist())
        then = [
            ScoredRecord(id_, max(islice(cosines, len(parts))), past[id_].kind, len(past[id_].text))
            for id_, parts in pieces.items()
        ]
        hits = first_of_each_group(sorted((*nearest.hits, *then), key=lambda hit: (-hit.score, hit.id)), self._limit)
        return replace(nearest, hits=tuple(hits), size=nearest.size + len(then)), ""

    def _candidates(
        self, query: Query, parsed: ParsedQuery, words: KeywordCandidates, nearest: NearestRecords | None
    ) -> Candidates:
        by_vector = Candidates(has_vector=False)
        if nearest is not None and self._embedder is not None:
            by_vector = _vector_candidates(nearest, self._embedder.embedder.model)
        return replace(
            by_vector,
            keyword=words.hits,
            matched_shares=words.matched_shares,
            surprises=words.surprises,
            words=len(parsed.tokens),
            look_up=words.rare and len(parsed.text.split()) == 1,
            has_keyword=not by_vector.has_vector or query.mode != "vector",
            strict=parsed.strict,
        )


def _vector_candidates(nearest: NearestRecords, model: Model) -> Candidates:
    """Cosines on one scale, since models differ in where theirs lie."""
    background = (model.background_mean, model.background_std)
    span = model.fluent - model.unread
    return Candidates(
        vector=nearest.hits,
        cosine_zscores={hit.id: standardised(hit.score, background) for hit in nearest.hits},
        cosines={hit.id: _usual(hit.score, model) for hit in nearest.hits},
        fluency={hit.id: min(1.0, max(0.0, (hit.fluency - model.unread) / span)) for hit in nearest.hits},
        has_keyword=False,
    )


def _usual(cosine: float, model: Model) -> float:
    """A cosine on the scale of the default model, by where each model's cosines of unrelated texts lie."""
    return _USUAL.background_mean + (cosine - model.background_mean) * _USUAL.background_std / model.background_std
