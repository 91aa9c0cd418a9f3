"""BM25 over posting lists: the best rows of a query, the rarest terms first.

Once as many rows as wanted have scored higher than all terms that are left could score together, rows that hold only
those need not be looked at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mindex.store.rules.bm25 import K1, B
from mindex.store.sqlite.posting_lists import Frequencies

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
