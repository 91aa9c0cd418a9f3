"""A compact copy in memory of one model's vectors: sign bits choose, int8 codes rank, float32 confirms.

Rows are pieces of records. The file stays the truth; this can be rebuilt from it at any time.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from mindex.store.rules.neighbours import NearestRows

Floats = NDArray[np.float32]
Keys = NDArray[np.int64]
Groups = NDArray[np.uint8]

# Up to this many rows every one is scored by its int8 code; beyond, sign bits choose which ones to score.
EXHAUSTIVE = 4096
_CHOSEN_BY_BITS = 1000
# This many leading records are scored again with their stored float32 vectors; int8 is off by less than .01.
_CONFIRMED = 64

# An int8 code is off by less than this; many queries are compared with this number of rows at once.
_CODE_ERROR = 0.02
_COMPARED = 4096
_ROWS_PER_HIT = 8  # a record may have several near pieces

Fetch = Callable[[Sequence[int]], dict[int, Floats]]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Record keys with their cosine and fluency, the best of each group first, and the number of rows in scope."""

    hits: list[tuple[int, float, float]]
    size: int


NOTHING_RANKED = Ranked([], 0)


@dataclass(frozen=True, slots=True)
class Block:
    """Rows as they are packed on disk. `codes` may be left out: a single search does without most of them."""

    keys: Keys
    fluency: NDArray[np.float16]
    scales: Floats
    bits: NDArray[np.uint64]  # (words, rows)
    codes: NDArray[np.int8] | None  # (rows, dimensions)


def encode(keys: Keys, vectors: Floats, fluency: Floats) -> Block:
    """Sign bits and int8 codes of float32 rows."""
    scales = np.abs(vectors).max(axis=1, initial=0.0) / 127
    scales[scales == 0] = 1
    codes = np.round(vectors / scales[:, None]).astype(np.int8)
    return Block(keys, fluency.astype(np.float16), scales.astype(np.float32), _signs(vectors), codes)


def _signs(vectors: Floats) -> NDArray[np.uint64]:
    rows, dimensions = vectors.shape
    padded = np.zeros((rows, -(-dimensions // 64) * 64), dtype=bool)
    padded[:, :dimensions] = vectors > 0
    words = np.packbits(padded, axis=1).view(np.uint64)
    return np.ascontiguousarray(words.T)


class VectorIndex:
    """Searches rows of one embedding space. Not thread-safe: its owner holds a lock."""

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self._keys = np.empty(0, np.int64)
        self._fluency = np.empty(0, np.float16)
        self._scales = np.empty(0, np.float32)
        self._bits = np.empty((-(-dimensions // 64), 0), np.uint64)
        self._codes: NDArray[np.int8] = np.empty((0, dimensions), np.int8)
        self._alive = np.empty(0, bool)
        self._coded_from = 0  # rows before this one have no code in memory

    def __len__(self) -> int:
        return int(np.count_nonzero(self._alive))

    @property
    def length(self) -> int:
        """The number of rows, those of removed records among them."""
        return len(self._keys)

    @property
    def coded(self) -> bool:
        return self._coded_from == 0

    def extend(self, blocks: Sequence[Block]) -> None:
        """Append rows. Blocks without codes may only come first."""
        if not blocks:
            return
        bare = sum(len(block.keys) for block in blocks if block.codes is None)
        if bare:
            assert not len(self._keys)
            self._coded_from = bare
        self._keys = np.concatenate([self._keys, *(block.keys for block in blocks)])
        self._fluency = np.concatenate([self._fluency, *(block.fluency for block in blocks)])
        self._scales = np.concatenate([self._scales, *(block.scales for block in blocks)])
        self._bits = np.concatenate([self._bits, *(block.bits for block in blocks)], axis=1)
        self._codes = np.concatenate([self._codes, *(block.codes for block in blocks if block.codes is not None)])
        self._alive = np.concatenate([self._alive, np.ones(sum(len(b.keys) for b in blocks), bool)])

    def supply_codes(self, codes: Iterable[NDArray[np.int8]]) -> None:
        """Bring in the codes that the first blocks came without, block by block: all at once they are held twice.

        Raises ValueError when there are more or fewer than rows.
        """
        supplied = np.empty((len(self._keys), self.dimensions), np.int8)
        filled = 0
        for block in codes:
            supplied[filled : filled + len(block)] = block
            filled += len(block)
        if filled != self._coded_from:
            raise ValueError(f"{filled} codes for {self._coded_from} rows")
        supplied[filled:] = self._codes
        self._codes = supplied
        self._coded_from = 0

    def remove(self, keys: Keys) -> None:
        if len(keys) and len(self._keys):
            self._alive &= ~np.isin(self._keys, keys)

    def rows(self) -> Block:
        """Every live row, in random order: any run of them is a fair sample."""
        assert self.coded
        order = np.random.default_rng(0).permutation(np.flatnonzero(self._alive))
        return Block(
            self._keys[order], self._fluency[order], self._scales[order],
            np.ascontiguousarray(self._bits[:, order]), self._codes[order],
        )  # fmt: skip

    def digests(self) -> list[int]:
        """A hash of every live row, sorted: two indexes with the same rows have the same."""
        rows = self.rows()
        assert rows.codes is not None
        if not len(rows.keys):
            return []
        columns = (rows.keys[:, None], rows.fluency[:, None], rows.scales[:, None], rows.bits.T, rows.codes)
        parts = [np.ascontiguousarray(column).view(np.uint8).reshape(len(rows.keys), -1) for column in columns]
        return sorted(map(crc32, np.concatenate(parts, axis=1)))

    def keys_from(self, row: int) -> Keys:
        """The records of this row and of those after it."""
        return self._keys[row:]

    def groups_of(self, groups: Sequence[Keys], first: int = 0) -> Groups:
        """The group of each row from `first` on: which of these holds its record, counted from 1; else 0."""
        own = self._keys[first:]
        found = np.zeros(len(own), np.uint8)
        for number, keys in enumerate(groups, start=1):
            if len(keys):
                found[np.isin(own, keys)] = number
        return found

    def rows_of(self, keys: Keys) -> NDArray[np.bool_]:
        """Which rows belong to these records."""
        return np.isin(self._keys, keys)

    def search(
        self,
        query: Floats,
        limit: int,
        fetch: Fetch,
        allowed: NDArray[np.bool_] | None = None,
        groups: Groups | None = None,
    ) -> Ranked:
        """The nearest records of each group among the rows allowed (None: all).

        `fetch` brings float32 vectors of records. Without `groups` all rows are one.
        """
        scope = self._alive if allowed is None else self._alive & allowed
        size = int(np.count_nonzero(scope))
        if not size:
            return NOTHING_RANKED
        groups = np.zeros(len(self._keys), np.uint8) if groups is None else groups
        rows = self._choose(query, scope, size, limit, groups)
        return Ranked(self._rank(query, rows, limit, fetch, groups), size)

    def neighbours(
        self, queries: Floats, limit: int, least: float, fetch: Fetch, allowed: NDArray[np.bool_] | None = None
    ) -> list[dict[int, float]]:
        """The nearest records to each query among the rows allowed, with their cosines, from `least` on.

        As `search` finds them, but all rows are compared: none is chosen by its sign bits.
        """
        assert self.coded
        scope = np.flatnonzero(self._alive if allowed is None else self._alive & allowed)
        nearest = NearestRows(queries, _ROWS_PER_HIT * limit, least - _CODE_ERROR)
        for start in range(0, len(scope), _COMPARED):
            rows = scope[start : start + _COMPARED]
            decoded = self._codes[rows].astype(np.float32)
            decoded *= self._scales[rows, None]
            nearest.add(start, decoded)
        candidates = [dict.fromkeys(self._keys[scope[found]].tolist()) for found, _ in nearest.found()]
        exact = fetch(list({key for keys in candidates for key in keys}))
        hits = []
        for query, keys in zip(queries, candidates, strict=True):
            cosines = [(float((exact[key] @ query).max()), key) for key in keys if key in exact]
            best = sorted((one for one in cosines if one[0] >= least), key=lambda one: (-one[0], one[1]))
            hits.append({key: cosine for cosine, key in best[:limit]})
        return hits

    def _choose(
        self, query: Floats, scope: NDArray[np.bool_], size: int, limit: int, groups: Groups
    ) -> NDArray[np.intp]:
        wanted = max(_CHOSEN_BY_BITS, 5 * limit)
        if size <= (EXHAUSTIVE if self.coded else wanted):
            return np.flatnonzero(scope)
        signs = _signs(query[None, :])[:, 0]
        distance = np.zeros(len(self._keys), np.uint16)
        for word, column in zip(signs, self._bits, strict=True):
            distance += np.bitwise_count(column ^ word)
        found = [scope] if not groups.any() else [scope & (groups == group) for group in np.unique(groups[scope])]
        return np.concatenate([self._nearest_by_bits(distance, members, wanted, limit) for members in found])

    def _nearest_by_bits(
        self, distance: NDArray[np.uint16], members: NDArray[np.bool_], wanted: int, limit: int
    ) -> NDArray[np.intp]:
        count = int(np.count_nonzero(members))
        if count <= wanted:
            return np.flatnonzero(members)
        own = distance if count == len(members) else distance[members]
        counts = np.cumsum(np.bincount(own, minlength=self.dimensions + 1))
        while True:
            near = distance <= int(np.searchsorted(counts, wanted))
            rows = np.flatnonzero(near & members)
            # One long record may have more pieces near the query than the limit: then look further.
            if wanted >= count or len(np.unique(self._keys[rows])) >= limit:
                return rows
            wanted = min(count, wanted * 4)

    def _estimate(self, query: Floats, rows: NDArray[np.intp]) -> Floats:
        codes = self._codes[rows - self._coded_from].astype(np.float32)
        return np.asarray((codes @ query) * self._scales[rows], np.float32)

    def _rank(
        self, query: Floats, rows: NDArray[np.intp], limit: int, fetch: Fetch, groups: Groups
    ) -> list[tuple[int, float, float]]:
        """Best cosine per record: estimated from codes, the leading ones (or, without codes, all) confirmed."""
        estimates = self._estimate(query, rows) if self.coded else np.full(len(rows), -np.inf, np.float32)
        order = np.argsort(-estimates, kind="stable")
        _, firsts = np.unique(self._keys[rows[order]], return_index=True)  # each record by its best piece
        order = order[np.sort(firsts)]
        group_of = groups[rows[order]]
        most, confirmed = (2 * limit, max(_CONFIRMED, limit // 4)) if self.coded else (len(rows), len(rows))
        members = [order[group_of == group][:most] for group in np.unique(group_of)]
        exact = fetch(np.concatenate([self._keys[rows[own[:confirmed]]] for own in members]).tolist())
        hits: list[tuple[int, float, float]] = []
        for own in members:
            keys, cosines = self._keys[rows[own]], estimates[own].astype(np.float64)
            for place, key in enumerate(keys[:confirmed].tolist()):
                if key in exact:
                    cosines[place] = (exact[key] @ query).max()
            nearest = np.lexsort((keys, -cosines))[:limit]
            nearest = nearest[cosines[nearest] > -np.inf]
            fluency = self._fluency[rows[own[nearest]]]
            hits += zip(keys[nearest].tolist(), cosines[nearest].tolist(), fluency.tolist(), strict=True)
        return hits if len(members) == 1 else sorted(hits, key=lambda hit: (-hit[1], hit[0]))
