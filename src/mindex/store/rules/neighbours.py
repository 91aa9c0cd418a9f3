"""The nearest records of many vectors at once: one product of matrices instead of a search for each vector."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray

from mindex.datatypes import VectorArray
from mindex.store.results import NearestRecords

Floats = NDArray[np.float32]
# Fewer vectors are searched for one by one.
FEW = 8


def one_by_one(
    nearest: Callable[[VectorArray], NearestRecords], vectors: Iterable[VectorArray], least: float
) -> tuple[dict[str, float], ...]:
    """What `RetrievalStore.neighbours` returns, by one search for each vector."""
    return tuple({hit.id: hit.score for hit in nearest(vector).hits if hit.score >= least} for vector in vectors)


class NearestRows:
    """The `most` rows nearest to each query, of rows that come in blocks; only cosines of `least` and more count."""

    def __init__(self, queries: Floats, most: int, least: float) -> None:
        self._queries = queries
        self._most = most
        self._cut = np.full(len(queries), least, np.float32)  # below, a row is not among the nearest of this query
        self._of = np.empty(0, np.intp)  # of the rows found: the query
        self._rows = np.empty(0, np.intp)  # the number
        self._cosines = np.empty(0, np.float32)

    def add(self, first: int, block: Floats) -> None:
        """Compare a block of rows, whose numbers count from `first`."""
        cosines = self._queries @ block.T
        near = np.flatnonzero(cosines.max(axis=1) >= self._cut)  # most queries are near to no row of a block
        if not len(near):
            return
        cosines = cosines[near]
        of, rows = np.nonzero(cosines >= self._cut[near, None])
        self._of = np.concatenate([self._of, near[of]])
        self._rows = np.concatenate([self._rows, rows + first])
        self._cosines = np.concatenate([self._cosines, cosines[of, rows]])
        if len(self._of) > 2 * self._most * len(self._queries):
            self._prune()

    def _prune(self) -> None:
        """Keep the nearest of each query, in order, and raise what a row needs to be among them."""
        order = np.lexsort((self._rows, -self._cosines, self._of))
        of, rows, cosines = self._of[order], self._rows[order], self._cosines[order]
        place = np.arange(len(of)) - np.searchsorted(of, of)
        last = place == self._most - 1
        self._cut[of[last]] = cosines[last]
        kept = place < self._most
        self._of, self._rows, self._cosines = of[kept], rows[kept], cosines[kept]

    def found(self) -> list[tuple[NDArray[np.intp], Floats]]:
        """The rows and their cosines for each query, the nearest first."""
        self._prune()
        ends = np.searchsorted(self._of, np.arange(1, len(self._queries)))
        return list(zip(np.split(self._rows, ends), np.split(self._cosines, ends), strict=True))
