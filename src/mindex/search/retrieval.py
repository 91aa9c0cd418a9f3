"""Retrieval of keyword and vector candidates: keywords are searched while the query is embedded.

If one of the two cannot be retrieved, the other remains, and a note says why.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from itertools import islice
from typing import TYPE_CHECKING

from mindex.clock import DAY_MS
from mindex.datatypes import Filters, Model, Query, QueryTerms, Record, VectorArray
from mindex.errors import SpaceChangedError
from mindex.search.candidates import Candidates, z_score
from mindex.search.fuse import fusion_named, is_judged
from mindex.search.guidance import no_vectors_note, unembedded_note, vacancy_note
from mindex.search.keyword_scoring import DESCRIBED, KeywordCandidates, KeywordWeights, keyword_candidates, sought
from mindex.search.query import ParsedQuery, any_of, is_question, parse_plain
from mindex.search.word_evidence import idf_weights
from mindex.store.base import KeywordQuery, NearestRecords, ScoredRecord, Store, TermStatistics
from mindex.store.rules.bm25 import MIN_SCORE, matches
from mindex.store.rules.filters import admits
from mindex.store.rules.kind_groups import first_of_each_group
from mindex.values import dataclass, replace

if TYPE_CHECKING:
    from mindex.search.expand import QueryExpander, Variants
    from mindex.search.query_embedding import QueryEmbedder

# Records of the past have no stored vector: at most this number of them is embedded for one query.
_MAX_EMBEDDED = 200
# This number of each kind is retrieved from the window that a query names.
_MAX_BETWEEN = 50
# If it has none, this number from before it, and as many from the time after it: as long again and a week.
_MAX_BESIDE = 3
_BESIDE_MS = 7 * DAY_MS
_LOOSELY_FOUND = "nothing matches all of it; this is what any of its words finds"
# The scale of the built-in model's cosines.
_USUAL = Model("", "", 0)


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Where and how much is retrieved.

    `space` is the active space that the embedder was selected for ('': there was none); None: any.
    """

    store: Store
    embedder: QueryEmbedder | None
    limit: int
    refining: KeywordWeights
    space: str | None = None


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Keyword and vector candidates of a query, and notes about them."""

    parsed: ParsedQuery
    candidates: Candidates
    notes: tuple[str, ...] = ()
    past: Mapping[str, Record] = field(default_factory=dict)  # records as they were then, if they changed since
    variants: tuple[Candidates, ...] = ()  # of other wordings of the query, if it was expanded
    terms: QueryTerms = field(default_factory=QueryTerms)  # what the query seeks in a text, as it was typed
    loose: bool = False  # nothing fulfils a strict query: these are the candidates for any of its words
    vacant: bool = False  # no query can find anything, and the notes say so
    vector: VectorArray | None = None  # of the query, if vectors were compared
    statistics: TermStatistics | None = None  # how common the query's tokens are, if they were counted


def retrieve(retrieval: Retrieval, query: Query, parsed: ParsedQuery) -> Retrieved:
    """The candidates of a query. A strict one that finds nothing is searched again for any of its words."""
    # What a strict query demands holds for vectors as well: `NOT x` keeps x out of the nearest.
    filters = replace(query.filters, matching=parsed.node) if parsed.strict else query.filters
    past = _past(retrieval.store, query.filters)
    words = KeywordCandidates()
    needs_vector = query.mode != "keyword" and bool(parsed.words)
    pending = retrieval.embedder.start(parsed.text) if needs_vector and retrieval.embedder else None
    if query.mode != "vector":
        words = _keyword(retrieval, query, parsed, past)
    nearest, note, vector = None, "", None
    if retrieval.embedder is not None and pending is not None:
        embedded = retrieval.embedder.finish(pending, patient=query.mode == "vector")
        note, vector = embedded.note, embedded.vector
        if vector is not None:
            nearest = retrieval.store.retrieval.nearest(
                retrieval.embedder.embedder.model, vector, filters, retrieval.limit
            )
            nearest, note = _with_past(retrieval.embedder, nearest, vector, parsed, past, retrieval.limit)
    elif needs_vector:
        note = "no embedder is configured; answered by keyword"
    if nearest is not None and not nearest.size:
        nearest = None
        note = "" if parsed.strict else no_vectors_note(query.guidance)
    if nearest is None and query.mode == "vector":
        words = _keyword(retrieval, query, parsed, past)
    candidates = _candidates(retrieval, query, parsed, words, nearest)
    notes = [note] if note else []
    if unembedded := _unembedded(retrieval, words, nearest, past):
        candidates = replace(candidates, unembedded=unembedded)
        notes.append(unembedded_note(len(unembedded), query.guidance))
    found = Retrieved(
        parsed,
        candidates,
        (*notes, *_past_notes(query.filters, past)),
        past,
        terms=parsed.terms,
        vector=vector if nearest is not None else None,
        statistics=words.statistics,
    )
    return found if candidates.keyword or candidates.vector else _found_nothing(retrieval, query, found)


def _found_nothing(retrieval: Retrieval, query: Query, found: Retrieved) -> Retrieved:
    """What any of the words of a strict query finds, or why there is nothing to find."""
    if found.parsed.strict:
        loose = retrieve(retrieval, query, parse_plain(found.parsed.text))
        if loose.candidates.keyword or query.mode == "vector":
            return replace(loose, notes=(_LOOSELY_FOUND, *loose.notes), terms=found.terms, loose=True)
    if not found.past:
        vacant = vacancy_note(retrieval.store, query.filters, query.guidance)
        return replace(found, notes=(vacant,), vacant=True) if vacant else found
    return found


def _keyword(retrieval: Retrieval, query: Query, parsed: ParsedQuery, past: Mapping[str, Record]) -> KeywordCandidates:
    """The best records for a query's words. `past` are records as they were at `as_of`."""
    if parsed.node is None:
        return KeywordCandidates()
    fusion = fusion_named(query.fusion)
    refining = retrieval.refining if fusion.refines_words and not parsed.strict else None
    found = retrieval.store.retrieval.keyword(
        KeywordQuery(
            parsed.node,
            tokens=() if parsed.strict else sought(parsed),
            described=DESCRIBED,
            bonus=any_of(parsed.pairs) if refining is not None and refining.pairs else None,
            bonus_weight=retrieval.refining.pairs,
            past=tuple(past.values()),
            signals=fusion.needs_signals,
        ),
        query.filters,
        retrieval.limit,
    )
    if retrieval.space is not None and found.active_space != retrieval.space:
        raise SpaceChangedError("the embedding model changed during this search", "search again")
    return keyword_candidates(found, parsed, refining)


def _unembedded(
    retrieval: Retrieval, words: KeywordCandidates, nearest: NearestRecords | None, past: Mapping[str, Record]
) -> frozenset[str]:
    """The keyword hits that were looked at and have no vector yet, if others have one."""
    if nearest is None or retrieval.embedder is None:
        return frozenset()
    near = {hit.id for hit in nearest.hits}
    ids = [id_ for id_ in words.matched_shares if id_ not in near and id_ not in past]
    if not ids:
        return frozenset()
    pending = retrieval.store.vectors.pending_records(retrieval.embedder.embedder.model, len(ids), ids=ids)
    return frozenset(record.id for record in pending)


# ── variants of the query ─────────────────────────────────────────────────────────────────────────────────────


def with_variants(
    retrieval: Retrieval, query: Query, own: Retrieved, expander: Callable[[], QueryExpander | None]
) -> Retrieved:
    """The candidates with those of other wordings of the query, and a note about these."""
    variants = []
    if own.parsed.strict:
        note = "not expanded: operators and quotes mean what they say"
    elif (expanding := expander()) is None:
        note = "not expanded: no language model is configured; set generation.provider"
    else:
        made, note = expanding.expand(own.parsed.text, None if query.mode == "keyword" else retrieval.embedder)
        variants = _of_variants(retrieval, query, made, own)
    return replace(own, variants=tuple(variants), notes=(*own.notes, note))


def _of_variants(retrieval: Retrieval, query: Query, variants: Variants, own: Retrieved) -> list[Candidates]:
    """The candidates of each variant: of lexical ones by keyword, of the others by vector.

    `own` are the candidates of the query itself: its cosines say how near a hit of a lexical variant is.
    """
    found = []
    for text in variants.lexical if query.mode != "vector" else ():
        words = _keyword(retrieval, query, parse_plain(text), own.past)
        near = replace(own.candidates, vector=(), cosine_zscores={}, signals={}, has_vector=False)
        shares, surprises = words.matched_shares, words.surprises
        found.append(replace(near, keyword=words.hits, matched_shares=shares, surprises=surprises))
    if query.mode == "keyword" or retrieval.embedder is None:
        return found
    pending = [retrieval.embedder.start(text) for text in variants.semantic]
    pending += [retrieval.embedder.start(variants.answer, answer=True)] if variants.answer else []
    for embedded in map(retrieval.embedder.finish, pending):
        if embedded.vector is not None:
            model = retrieval.embedder.embedder.model
            nearest = retrieval.store.retrieval.nearest(model, embedded.vector, query.filters, retrieval.limit)
            own_words = own.candidates
            near = replace(_vector_candidates(nearest, model), words=own_words.words, is_question=own_words.is_question)
            found.append(near)
    return found


# ── the time that a query names ───────────────────────────────────────────────────────────────────────────────


def with_window(retrieval: Retrieval, query: Query, own: Retrieved) -> Retrieved:
    """The candidates with the best ones from the time that the query names, if dates count in its order."""
    time = query.time
    if time is None or time.first is None or not is_judged(query):
        return own
    return replace(own, candidates=_with_span(retrieval, query, own, time.first, time.end))


def _with_span(retrieval: Retrieval, query: Query, own: Retrieved, after: int, before: int) -> Candidates:
    """A query's own candidates, and the best ones from a span of time: in a large store others may crowd these out.

    What was added does not say how near the query's own keyword candidates are.
    """
    filters = replace(query.filters, after=after, before=before)
    known, parsed = own.candidates, own.parsed
    if parsed.strict:
        filters = replace(filters, matching=parsed.node)
    words = KeywordCandidates()
    if parsed.node is not None and known.has_keyword:
        tokens = () if parsed.strict else sought(parsed)
        wanted = KeywordQuery(parsed.node, tokens=tokens, described=DESCRIBED)
        found = retrieval.store.retrieval.keyword(wanted, filters, _MAX_BETWEEN)
        # One scale for all: how rare a word is in the span says nothing about the others.
        found = replace(found, statistics=own.statistics or found.statistics)
        words = keyword_candidates(found, parsed, None if parsed.strict else retrieval.refining)
    near = Candidates()
    if own.vector is not None and retrieval.embedder is not None:
        model = retrieval.embedder.embedder.model
        near = _vector_candidates(retrieval.store.retrieval.nearest(model, own.vector, filters, _MAX_BETWEEN), model)
    only = _entries_of(retrieval, filters) if query.time is not None and query.time.only else []
    keyword = [hit for hit in (*words.hits, *only) if hit.id not in {one.id for one in known.keyword}]
    vector = [hit for hit in near.vector if hit.id not in known.cosines]
    return replace(
        known,
        keyword=(*known.keyword, *keyword),
        vector=(*known.vector, *vector),
        added=frozenset(hit.id for hit in vector),
        matched_shares={**words.matched_shares, **known.matched_shares},
        matched_tokens={**words.matched_tokens, **known.matched_tokens},
        surprises={**words.surprises, **known.surprises},
        cosines={**near.cosines, **known.cosines},
        cosine_zscores={**near.cosine_zscores, **known.cosine_zscores},
        fluency={**near.fluency, **known.fluency},
    )


def _entries_of(retrieval: Retrieval, span: Filters) -> list[ScoredRecord]:
    """The newest memories and turns of a span of time, with any text; if it has none, those nearest to it."""
    entries = span if span.kinds else replace(span, kinds=("memory", "turn"))
    found = retrieval.store.retrieval.list(entries, limit=_MAX_BETWEEN).records
    if not found and span.after is not None and span.before is not None:
        later = replace(entries, after=span.before, before=2 * span.before - span.after + _BESIDE_MS)
        before = retrieval.store.retrieval.list(
            replace(entries, after=None, before=span.after), limit=_MAX_BESIDE
        ).records
        after = retrieval.store.retrieval.list(later, limit=_MAX_BETWEEN).records
        found = (*before, *after[-_MAX_BESIDE:])
    return [ScoredRecord(one.id, MIN_SCORE, one.kind, len(one.text)) for one in found]


# ── the past ──────────────────────────────────────────────────────────────────────────────────────────────────


def _past(store: Store, filters: Filters) -> dict[str, Record]:
    if filters.as_of is None:
        return {}
    states = store.entries.states_at(filters.as_of)
    return {record.id: record for record in states if admits(filters, record, filters.as_of)}


def _past_notes(filters: Filters, past: Mapping[str, Record]) -> Iterator[str]:
    if filters.as_of is None:
        return
    yield "files are searched as they are now; entries as they were then"
    if len(past) >= _MAX_EMBEDDED:
        yield f"{len(past)} memories changed since then: those are found by keyword only"


def _with_past(
    embedder: QueryEmbedder,
    nearest: NearestRecords,
    vector: VectorArray,
    parsed: ParsedQuery,
    past: Mapping[str, Record],
    limit: int,
) -> tuple[NearestRecords, str]:
    """The nearest records with those that changed since then, embedded for this query; or a note why without."""
    if not past or len(past) >= _MAX_EMBEDDED:
        return nearest, ""
    if parsed.strict and parsed.node is not None:
        past = {id_: record for id_, record in past.items() if matches(parsed.node, record)}
    # Its patterns take time to compile, and only a search of the past needs them.
    from mindex.embedding_text import embedding_pieces

    pieces = {id_: embedding_pieces(record) for id_, record in past.items()}
    # A cached query needs no model, but the past does; without one it is left out.
    made = embedder.texts([piece for parts in pieces.values() for piece in parts])
    if made.vector is None:
        return nearest, f"what changed since then is found by keyword only: {made.note}"
    cosines = iter((made.vector @ vector).tolist())
    then = [
        ScoredRecord(id_, max(islice(cosines, len(parts))), past[id_].kind, len(past[id_].text))
        for id_, parts in pieces.items()
    ]
    hits = first_of_each_group(sorted((*nearest.hits, *then), key=lambda hit: (-hit.score, hit.id)), limit)
    return replace(nearest, hits=tuple(hits), size=nearest.size + len(then)), ""


# ── candidates ────────────────────────────────────────────────────────────────────────────────────────────────


def _candidates(
    retrieval: Retrieval, query: Query, parsed: ParsedQuery, words: KeywordCandidates, nearest: NearestRecords | None
) -> Candidates:
    by_vector = Candidates(has_vector=False)
    if nearest is not None and retrieval.embedder is not None:
        by_vector = _vector_candidates(nearest, retrieval.embedder.embedder.model)
    return replace(
        by_vector,
        keyword=words.hits,
        matched_shares=words.matched_shares,
        matched_tokens=words.matched_tokens,
        token_weights=idf_weights(parsed.tokens, words.statistics) if words.statistics else {},
        surprises=words.surprises,
        words=len(parsed.tokens),
        is_question=is_question(query.text),
        looked_up=words.looked_up,
        has_keyword=not by_vector.has_vector or query.mode != "vector",
        strict=parsed.strict,
        capped=len(words.hits) >= retrieval.limit,
    )


def _vector_candidates(nearest: NearestRecords, model: Model) -> Candidates:
    """Cosines on one scale, since the cosines of different models have different ranges."""
    background = (model.background_mean, model.background_std)
    span = model.fluent - model.unread
    return Candidates(
        vector=nearest.hits,
        cosine_zscores={hit.id: z_score(hit.score, background) for hit in nearest.hits},
        cosines={hit.id: _usual(hit.score, model) for hit in nearest.hits},
        fluency={hit.id: min(1.0, max(0.0, (hit.fluency - model.unread) / span)) for hit in nearest.hits},
        has_keyword=False,
    )


def _usual(cosine: float, model: Model) -> float:
    """A cosine on the scale of the built-in model, by each model's cosines of unrelated texts."""
    return _USUAL.background_mean + (cosine - model.background_mean) * _USUAL.background_std / model.background_std
