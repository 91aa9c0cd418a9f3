"""Keyword search in Azure AI Search: the service finds candidates by our tokens, and our BM25 ranks them.

The service's own score knows nothing of scopes, word pairs and columns as `rules.bm25` defines them. It chooses which
records are read; these come with their tokens, so that they are scored and described without another request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from mindex.analyzer import COLUMNS
from mindex.datatypes import AnyOf, Filters, Term
from mindex.store.base import KeywordQuery, KeywordResult, ScoredRecord, TermStatistics
from mindex.store.engine_parts import bm25, first_of_each_group
from mindex.values import dataclass
from mindex_azure import odata
from mindex_azure.connection import PAGE, Found, Row
from mindex_azure.engine import AzureEngine
from mindex_azure.odata import WORD_FIELDS
from mindex_azure.schema import PROFILE

# Read at least this number of candidates: the order of the service is not quite ours.
_MIN_READ = 250
_BUCKET = 8  # tokens: lengths are counted in groups of this size
# More tokens than this are looked up together, not each by its own request.
_FEW_TOKENS = 16


@dataclass(frozen=True, slots=True)
class _Lengths:
    """How many records there are, and how many tokens one has on average."""

    records: int
    average: float


def search(engine: AzureEngine, query: KeywordQuery, filters: Filters, limit: int) -> KeywordResult:
    """See `RetrievalStore.keyword`."""
    where = engine.scope(filters)
    found, active = engine.connection.together(
        lambda: _candidates(engine, query, where, limit), lambda: engine.spaces().roles.active
    )
    assert isinstance(found, Found) and isinstance(active, str)
    columns = {row["id"]: _columns(row) for row in found.rows}
    bonus = bm25.query_tokens(query.bonus) if query.bonus is not None else frozenset()
    tokens = list(dict.fromkeys((*query.tokens, *sorted(bm25.query_tokens(query.node) | bonus))))
    # Where all that hold a word of the query were read, nothing has to be counted by the service.
    counted = odata.plain_tokens(query.node) if len(found.rows) == found.total else frozenset()
    own = {token: sum(token in bm25.held_tokens(one, [token]) for one in columns.values()) for token in counted}
    counts = statistics(engine, [token for token in tokens if token not in own], where)
    known = TermStatistics(counts.records, {**counts.frequency, **own})
    average = _lengths(engine).average
    hits = []
    for id_, one in columns.items():
        score = bm25.score_columns(query.node, one, known, average)
        if score and query.bonus is not None:
            score += query.bonus_weight * bm25.score_columns(query.bonus, one, known, average)
        hits += [ScoredRecord(id_, score, "chunk")] if score else []
    hits = sorted(hits, key=lambda hit: (-hit.score, hit.id))[:limit]
    described = [hit.id for hit in first_of_each_group(hits, query.described)]
    return KeywordResult(
        tuple(hits),
        TermStatistics(known.records, {token: known.frequency[token] for token in query.tokens}),
        {id_: bm25.held_tokens(columns[id_], query.tokens) for id_ in described},
        active,
        {id_: sum(map(len, columns[id_].values())) for id_ in described},
    )


def _candidates(engine: AzureEngine, query: KeywordQuery, where: str | None, limit: int) -> Found:
    if where is None:
        return Found([])
    return engine.connection.search(
        where,
        text=odata.query_text(query.node),
        fields=WORD_FIELDS,
        select=("id", *WORD_FIELDS),
        order=("search.score() desc", "key asc"),
        top=min(PAGE, max(limit, _MIN_READ)),
        profile=PROFILE,
    )


def _columns(row: Row) -> bm25.TokenColumns:
    return {name: (row[f"words_{name}"] or "").split() for name in COLUMNS}


def _lengths(engine: AzureEngine) -> _Lengths:
    return engine.kept("lengths", lambda: _read_lengths(engine))


def _read_lengths(engine: AzureEngine) -> _Lengths:
    found = engine.connection.search(odata.CHUNKS, top=0, facets=(f"length,interval:{_BUCKET}",))
    buckets = found.facets.get("length", [])
    counted = sum(one["count"] for one in buckets)
    tokens = sum((one["value"] + (_BUCKET - 1) / 2) * one["count"] for one in buckets)
    return _Lengths(found.total, tokens / max(1, counted))


# ── counts ────────────────────────────────────────────────────────────────────────────────────────────────────


def statistics(engine: AzureEngine, tokens: Sequence[str], where: str | None = odata.CHUNKS) -> TermStatistics:
    """How common tokens are among the chunks in a scope."""
    if where is None:
        return TermStatistics(0, dict.fromkeys(tokens, 0))
    records = _lengths(engine).records if where == odata.CHUNKS else _count(engine, where)
    if len(tokens) > _FEW_TOKENS:
        return TermStatistics(records, _count_many(engine, where, tokens, records))
    requests: list[Callable[[], int]] = [partial(_count, engine, where, token) for token in tokens]
    counts = engine.connection.together(*requests) if requests else []
    return TermStatistics(records, {token: min(records, count) for token, count in zip(tokens, counts, strict=True)})


def _count(engine: AzureEngine, where: str, token: str = "") -> int:
    text = odata.query_text(odata.holding(token)) if token else "*"
    fields = WORD_FIELDS if token else ()
    return engine.kept((where, token), lambda: engine.connection.count(where, text, fields))


def _count_many(engine: AzureEngine, where: str, tokens: Sequence[str], records: int) -> dict[str, int]:
    """The counts of many tokens, most of which no record contains: the others are found by reading their records."""
    counts = dict.fromkeys(tokens, 0)
    left = list(dict.fromkeys(tokens))
    while left:
        found = engine.connection.search(
            where,
            text=odata.query_text(AnyOf(tuple(map(Term, left)))),
            fields=WORD_FIELDS,
            select=WORD_FIELDS,
            top=_MIN_READ,
        )
        held = [bm25.held_tokens(_columns(row), left) for row in found.rows]
        seen = frozenset().union(*held)
        if len(found.rows) == found.total or not seen:
            counts |= {token: sum(token in one for one in held) for token in seen}
            return counts
        counts |= {token: min(records, _count(engine, where, token)) for token in seen}
        left = [token for token in left if token not in seen]
    return counts


def terms(engine: AzureEngine, prefix: str, shortest: int, longest: int, limit: int) -> dict[str, int]:
    """See `RetrievalStore.terms`. Only the first records with such a word are read: the service lists no words."""
    found = engine.connection.search(
        odata.CHUNKS, text=f"{prefix}*", fields=WORD_FIELDS, select=WORD_FIELDS, order=("key asc",), top=PAGE
    )
    held: dict[str, int] = {}
    for row in found.rows:
        for token in {one for column in _columns(row).values() for one in column}:
            if token.startswith(prefix) and shortest <= len(token) <= longest:
                held[token] = held.get(token, 0) + 1
    return {token: held[token] for token in sorted(held)[:limit]}
