"""Keyword search over posting lists, in a scope: the same answers as FTS5's, see `keyword`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from mindex.datatypes import AllOf, AnyOf, KeywordNode, Term
from mindex.store.results import ScoredRecord, TermStatistics
from mindex.store.rules import bm25
from mindex.store.sql.dialect import Condition
from mindex.store.sql.keyword import Scope
from mindex.store.sqlite.fts5_tally import read_tally
from mindex.store.sqlite.posting_index import LoadedPostings
from mindex.store.sqlite.posting_lists import Frequencies
from mindex.store.sqlite.posting_rank import Lengths, WeightedTerm, best_of_all, best_of_any
from mindex.store.sqlite.sql_connection import SqlConnection

_Mask = NDArray[np.bool_]

_ADMITTED = "SELECT r.key, r.id, r.kind FROM records r WHERE {scope} AND r.key IN {{marks}}"
# In a large scope, rank this multiple of the wanted rows before the scope is applied, then the next: reading the keys
# of a scope of half a million records takes a second.
_AHEAD = (1.25, 16)


def can_answer(node: KeywordNode) -> bool:
    """Whether a query is a leaf, or any or all of some: what is nested deeper, or excludes, is for FTS5."""
    return isinstance(node, bm25.Leaf) or (
        isinstance(node, AnyOf | AllOf) and all(isinstance(one, bm25.Leaf) for one in node.nodes)
    )


def ranked(
    connection: SqlConnection, postings: LoadedPostings, node: KeywordNode, scope: Scope, limit: int
) -> tuple[ScoredRecord, ...]:
    """The best records in scope, with their scores."""
    if scope.condition is None:
        return _records(connection, None, _best(connection, postings, node, limit))
    if scope.size is None:
        for ahead in _AHEAD:
            wanted = int(ahead * limit)
            best = _best(connection, postings, node, wanted)
            inside = _records(connection, scope.condition, best)
            if len(inside) >= limit or len(best) < wanted:
                return inside[:limit]
    mask = _mask(connection, postings, scope.condition)
    # A scope that is small counts for itself: a name that every record of one agent holds says nothing about them.
    among = scope.size if scope.size is not None and _are_plain_terms(node) else None
    return _records(connection, scope.condition, _best(connection, postings, node, limit, mask, among))


def statistics(
    connection: SqlConnection, postings: LoadedPostings, tokens: Iterable[str], scope: Scope
) -> TermStatistics:
    """How common tokens are among the records in scope, where these are few; else among all."""
    mask, records = None, read_tally(connection).records
    if scope.condition is not None and scope.size is not None:
        mask, records = _mask(connection, postings, scope.condition), scope.size
    holders = {token: postings.holders(connection, token) for token in dict.fromkeys(tokens)}
    counts = {token: len(rows) if mask is None else int(mask[rows].sum()) for token, rows in holders.items()}
    return TermStatistics(records, counts)


def _best(
    connection: SqlConnection,
    postings: LoadedPostings,
    node: KeywordNode,
    limit: int,
    mask: _Mask | None = None,
    among: int | None = None,
) -> list[tuple[int, float]]:
    """Keys and scores of the best rows, restricted to the mask if there is one, `among` this number of records."""
    tally = read_tally(connection)
    terms = []
    for leaf in bm25.wanted_leaves(node):
        counted = postings.frequencies(connection, leaf)
        holders = len(counted.rows)
        if mask is not None:
            inside = mask[counted.rows]
            counted = Frequencies(counted.rows[inside], counted.counts[inside])
        idf = bm25.idf(holders, tally.records) if among is None else bm25.idf(len(counted.rows), among)
        terms.append(WeightedTerm(counted, idf))
    best = best_of_all if isinstance(node, AllOf) else best_of_any
    return best(terms, Lengths(postings.lengths, tally.average_length), postings.keys, limit)


def _are_plain_terms(node: KeywordNode) -> bool:
    """Whether a query is nothing but words, any of which will do."""
    plain = all(isinstance(one, Term) and one.column is None for one in bm25.wanted_leaves(node))
    return plain and not isinstance(node, AllOf)


def _mask(connection: SqlConnection, postings: LoadedPostings, scope: Condition) -> _Mask:
    mask = np.zeros(postings.size, bool)
    keys = connection.column(f"SELECT r.key FROM records r WHERE {scope.sql}", *scope.parameters)
    mask[postings.rows_of(keys)] = True
    return mask


def _records(
    connection: SqlConnection, scope: Condition | None, best: Sequence[tuple[int, float]]
) -> tuple[ScoredRecord, ...]:
    """The records with these keys that are in scope, in this order."""
    query = _ADMITTED.format(scope="TRUE" if scope is None else scope.sql)
    parameters = () if scope is None else scope.parameters
    known = {key: rest for key, *rest in connection.among(query, (key for key, _ in best), *parameters)}
    return tuple(
        ScoredRecord(known[key][0], max(score, bm25.MIN_SCORE), known[key][1]) for key, score in best if key in known
    )
