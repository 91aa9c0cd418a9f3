"""A compact copy in memory of one model's vectors: sign bits choose, int8 codes rank, float32 confirms.

Rows are pieces of records. The file stays the truth; this can be rebuilt from it at any time.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Keys = NDArray[np.int64]

# Up to this many rows every one is scored by its int8 code; beyond, sign bits choose which ones to score.
EXHAUSTIVE = 4096
_CHOSEN_BY_BITS = 1000
_SAMPLE = 512
# This many leading records are scored again with their stored float32 vectors; int8 is off by less than .01.
_CONFIRMED = 64

Fetch = Callable[[Sequence[int]], dict[int, Floats]]


@dataclass(frozen=True, slots=True)
class Ranked:
    """Record keys with their cosine, best first, and the query's cosine over a sample of the scope."""

    hits: list[tuple[int, float]]
    mean: float
    std: float
    size: int
    fluency: float


NOTHING_RANKED = Ranked([], 0.0, 0.0, 0, 1.0)


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
        self._sample: tuple[Floats, float] | None = None

    def __len__(self) -> int:
        return int(self._alive.sum())

    @property
    def coded(self) -> bool:
        return self._coded_from == 0

    def extend(self, blocks: Sequence[Block]) -> None:
        """Append rows. Blocks without codes may only come first."""
        if not blocks:
            return
        self._sample = None
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
        """Bring in the codes that the first blocks came without, block by block: all at once they are held twice."""
        supplied = np.empty((len(self._keys), self.dimensions), np.int8)
        filled = 0
        for block in codes:
            supplied[filled : filled + len(block)] = block
            filled += len(block)
        assert filled == self._coded_from
        supplied[filled:] = self._codes
        self._codes = supplied
        self._coded_from = 0
        self._sample = None

    def remove(self, keys: Keys) -> None:
        if len(keys) and len(self._keys):
            self._alive &= ~np.isin(self._keys, keys)
            self._sample = None

    def rows(self) -> Block:
        """Every live row, in random order: any run of them is a fair sample."""
        assert self.coded
        order = np.random.default_rng(0).permutation(np.flatnonzero(self._alive))
        return Block(
            self._keys[order], self._fluency[order], self._scales[order],
            np.ascontiguousarray(self._bits[:, order]), self._codes[order],
        )  # fmt: skip

    def search(self, query: Floats, limit: int, fetch: Fetch, allowed: Keys | None = None) -> Ranked:
        """The nearest records among the allowed ones (None: all). `fetch` brings float32 vectors of records."""
        scope = self._alive if allowed is None else self._alive & np.isin(self._keys, allowed)
        size = int(scope.sum())
        if not size:
            return NOTHING_RANKED
        mean, std, fluency = self._background(query, scope, fetch, everything=allowed is None)
        rows = self._choose(query, scope, size, limit)
        return Ranked(self._rank(query, rows, limit, fetch), mean, std, size, fluency)

    def _choose(self, query: Floats, scope: NDArray[np.bool_], size: int, limit: int) -> NDArray[np.intp]:
        wanted = max(_CHOSEN_BY_BITS, 5 * limit)
        if size <= (EXHAUSTIVE if self.coded else wanted):
            return np.flatnonzero(scope)
        signs = _signs(query[None, :])[:, 0]
        distance = np.zeros(len(self._keys), np.uint16)
        for word, column in zip(signs, self._bits, strict=True):
            distance += np.bitwise_count(column ^ word)
        distance[~scope] = np.iinfo(np.uint16).max
        counts = np.cumsum(np.bincount(distance[scope], minlength=self.dimensions + 1))
        while True:
            threshold = int(np.searchsorted(counts, wanted))
            rows = np.flatnonzero(distance <= threshold)
            # One long record may have more pieces near the query than the limit: then look further.
            if wanted >= size or len(np.unique(self._keys[rows])) >= limit:
                return rows
            wanted = min(size, wanted * 4)

    def _estimate(self, query: Floats, rows: NDArray[np.intp]) -> Floats:
        codes = self._codes[rows - self._coded_from].astype(np.float32)
        return np.asarray((codes @ query) * self._scales[rows], np.float32)

    def _rank(self, query: Floats, rows: NDArray[np.intp], limit: int, fetch: Fetch) -> list[tuple[int, float]]:
        """Best cosine per record: estimated from codes, the leading ones (or, without codes, all) confirmed."""
        best: dict[int, float] = {}
        if self.coded:
            estimates = self._estimate(query, rows)
            order = np.argsort(-estimates, kind="stable")
            _, firsts = np.unique(self._keys[rows[order]], return_index=True)  # each record by its best piece
            order = order[np.sort(firsts)[: 2 * limit]]
            best = dict(zip(self._keys[rows[order]].tolist(), estimates[order].tolist(), strict=True))
            confirm = list(best)[: max(_CONFIRMED, limit // 4)]
        else:
            confirm = list(dict.fromkeys(self._keys[rows].tolist()))
        for key, vectors in fetch(confirm).items():
            best[key] = float((vectors @ query).max())
        return sorted(best.items(), key=lambda item: (-item[1], item[0]))[:limit]

    def _background(
        self, query: Floats, scope: NDArray[np.bool_], fetch: Fetch, *, everything: bool
    ) -> tuple[float, float, float]:
        """Mean and deviation of the query's cosine over a sample of the scope, and the sample's fluency."""
        if everything and self._sample is not None:
            vectors, fluency = self._sample
        else:
            rows = np.flatnonzero(scope)
            if len(rows) > _SAMPLE:
                rows = rows[np.linspace(0, len(rows) - 1, _SAMPLE).astype(np.intp)]
            fluency = float(self._fluency[rows].astype(np.float32).mean())
            vectors = self._vectors(rows, fetch)
            if everything:
                self._sample = (vectors, fluency)
        cosines = vectors @ query
        return float(cosines.mean()), float(cosines.std()), fluency

    def _vectors(self, rows: NDArray[np.intp], fetch: Fetch) -> Floats:
        if self.coded:
            return np.asarray(self._codes[rows].astype(np.float32) * self._scales[rows, None], np.float32)
        found = list(fetch(list(dict.fromkeys(self._keys[rows].tolist()))).values())
        return np.concatenate(found) if found else np.zeros((1, self.dimensions), np.float32)
