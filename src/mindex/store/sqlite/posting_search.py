"""Keyword search over posting lists, in a scope: the same answers as FTS5's, see `keyword`.

BM25 goes through the rarest terms first. Once as many rows as wanted have scored higher than all terms that are left
could score together, rows that hold only those need not be looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindex.datatypes import AllOf, AnyOf, KeywordNode, Term
from mindex.store.results import ScoredRecord, TermStatistics
from mindex.store.rules import bm25
from mindex.store.rules.bm25 import K1, B
from mindex.store.sql.dialect import Condition
from mindex.store.sql.filters import KeywordScope
from mindex.store.sqlite.keyword import read_tally
from mindex.store.sqlite.posting_index import Frequencies, LoadedPostings
from mindex.store.sqlite.sql_connection import SqlConnection

Rows = NDArray[np.intp]
# Rows are chosen in single precision and scored again in double, as FTS5 does it.
_SLACK = 1 - 1e-4
_ABOVE_0 = float(np.finfo(np.float32).tiny)
# Looking up a row in a list takes as long as going through this number of its rows.
_LOOKED_UP = 16


@dataclass(frozen=True, slots=True)
class WeightedTerm:
    """A list and the idf of its term."""

    counted: Frequencies
    idf: float

    @property
    def most(self) -> float:
        """No row gets more of this term."""
        return self.idf * (K1 + 1)


@dataclass(frozen=True, slots=True)
class Lengths:
    """The tokens of each row, and of all on average."""

    of_rows: NDArray[np.float32]
    average: float

    def saturated(self, counted: Frequencies) -> NDArray[np.float32]:
        """The share of a term's highest score that each row of its list gets, by its count and the row's length."""
        if counted.saturated is not None and counted.saturated[0] == self.average:
            return counted.saturated[1]
        slope = np.float32(K1 * B / max(self.average, 1e-9))
        norms = np.float32(K1 * (1 - B)) + slope * self.of_rows[counted.rows]
        saturated: NDArray[np.float32] = (counted.counts / (counted.counts + norms)).astype(np.float32, copy=False)
        counted.saturated = self.average, saturated
        return saturated


def best_of_any(
    terms: Sequence[WeightedTerm], lengths: Lengths, keys: NDArray[np.int64], limit: int
) -> list[tuple[int, float]]:
    """Keys and scores of the best rows that hold any of the terms."""
    rows = _candidates(sorted(terms, key=lambda term: len(term.counted.rows)), lengths, limit)
    return _best(terms, lengths, keys, rows, limit)


def best_of_all(
    terms: Sequence[WeightedTerm], lengths: Lengths, keys: NDArray[np.int64], limit: int
) -> list[tuple[int, float]]:
    """Keys and scores of the best rows that hold every term."""
    rarest, *others = sorted(terms, key=lambda term: len(term.counted.rows))
    rows = rarest.counted.rows
    for term in others:
        rows = rows[_counts(term.counted, rows) > 0]
    return _best(terms, lengths, keys, rows, limit)


def _candidates(terms: Sequence[WeightedTerm], lengths: Lengths, limit: int) -> Rows:
    """Every row that may be among the best; terms come the rarest first."""
    scores = np.zeros(len(lengths.of_rows), np.float32)
    rows: Rows | None = None  # None: any
    least = 0.0  # as many rows as wanted have at least this score
    done, left = 0.0, sum(term.most for term in terms)  # the highest score by the terms so far, and by the others
    for term in terms:
        own = term.counted
        if rows is not None and _LOOKED_UP * len(rows) < len(own.rows):
            own = _among(own, rows)
        scores[own.rows] += np.float32(term.most) * lengths.saturated(own)
        done, left = done + term.most, left - term.most
        if done <= left and term is not terms[-1]:
            continue
        reached = scores[own.rows if rows is None else rows]
        if len(reached) >= limit:
            least = max(least, float(np.partition(reached, -limit)[-limit]) * _SLACK)
        if rows is not None:
            rows = rows[reached + left >= least]
        elif least > left or term is terms[-1]:  # what holds none of the terms so far cannot reach it
            rows = np.flatnonzero(scores >= max(least - left, _ABOVE_0))
    return np.empty(0, np.intp) if rows is None else rows


def _among(counted: Frequencies, rows: Rows) -> Frequencies:
    """Those of a list that are among the rows."""
    at = np.searchsorted(counted.rows, rows)
    at[at == len(counted.rows)] = 0
    at = at[counted.rows[at] == rows]
    return Frequencies(counted.rows[at], counted.counts[at])


def _best(
    terms: Sequence[WeightedTerm], lengths: Lengths, keys: NDArray[np.int64], rows: Rows, limit: int
) -> list[tuple[int, float]]:
    average = max(lengths.average, 1e-9)
    norms = K1 * (1 - B + B * lengths.of_rows[rows].astype(np.float64) / average)
    scores = np.zeros(len(rows))
    for term in terms:
        counts = _counts(term.counted, rows)
        scores += term.idf * (counts * (K1 + 1) / (counts + norms))
    order = np.lexsort((keys[rows], -scores))[:limit]
    return list(zip(keys[rows[order]].tolist(), scores[order].tolist(), strict=True))


def _counts(counted: Frequencies, rows: Rows) -> NDArray[np.float64]:
    """How often each of the rows holds the term."""
    if not len(counted.rows):
        return np.zeros(len(rows))
    at = np.searchsorted(counted.rows, rows)
    at[at == len(counted.rows)] = 0
    return np.where(counted.rows[at] == rows, counted.counts[at], 0).astype(np.float64)


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
    connection: SqlConnection, postings: LoadedPostings, node: KeywordNode, scope: KeywordScope, limit: int
) -> tuple[ScoredRecord, ...]:
    """The best records in scope, with their scores."""
    if scope.condition is None:
        return _records(connection, None, _best_hits(connection, postings, node, limit))
    if scope.size is None:
        for ahead in _AHEAD:
            wanted = int(ahead * limit)
            best = _best_hits(connection, postings, node, wanted)
            inside = _records(connection, scope.condition, best)
            if len(inside) >= limit or len(best) < wanted:
                return inside[:limit]
    mask = _mask(connection, postings, scope.condition)
    # A scope that is small counts for itself: a name that every record of one agent holds says nothing about them.
    among = scope.size if scope.size is not None and _are_plain_terms(node) else None
    return _records(connection, scope.condition, _best_hits(connection, postings, node, limit, mask, among))


def statistics(
    connection: SqlConnection, postings: LoadedPostings, tokens: Iterable[str], scope: KeywordScope
) -> TermStatistics:
    """How common tokens are among the records in scope, where these are few; else among all."""
    mask, records = None, read_tally(connection).records
    if scope.condition is not None and scope.size is not None:
        mask, records = _mask(connection, postings, scope.condition), scope.size
    holders = {token: postings.holders(connection, token) for token in dict.fromkeys(tokens)}
    counts = {token: len(rows) if mask is None else int(mask[rows].sum()) for token, rows in holders.items()}
    return TermStatistics(records, counts)


def _best_hits(
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
