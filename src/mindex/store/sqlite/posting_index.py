"""The posting lists of a file as one process reads them: lists of segments by term, and what changed since.

Rows number the records of all segments one after the other, then those that changed since. Only the lists of the terms
that a query names are read, so that a process starts at once and holds 13 bytes a record, and what its queries share.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from mindex.analyzer import COLUMNS, is_lone
from mindex.datatypes import Phrase, Prefix, Term
from mindex.store.rules.bm25 import Leaf
from mindex.store.sqlite.posting_lists import (
    Frequencies,
    Keys,
    Places,
    adjacent,
    append_record,
    frequencies,
    in_column,
    joined,
    places,
)
from mindex.store.sqlite.sql_connection import SqlConnection

# Occurrences of terms that are held in memory, each with its frequencies: about 24 bytes each, 340 MB in all. Of fewer
# records than half a million lists are short and soon read again: this number for each, 17 MB for 100,000.
_MAX_HELD, _MANY_RECORDS, _HELD_PER_RECORD = 14_000_000, 500_000, 7
_CHANGED = "SELECT DISTINCT record FROM changes WHERE seq > ? AND model IS NULL"
TOKENS = f"SELECT rowid, {', '.join(COLUMNS)} FROM records_fts WHERE rowid IN {{marks}}"
_SEGMENTS = "SELECT segment, records, lengths FROM posting_segments ORDER BY segment"
_LISTS = "SELECT segment, occurrences FROM posting_lists WHERE segment IN {marks} AND term = ? ORDER BY segment"
_LISTS_OF_PREFIX = """
SELECT segment, occurrences FROM posting_lists WHERE segment IN {marks} AND term >= ? AND term < ? || char(1114111)
"""


@dataclass(slots=True)
class _Held:
    places: Places
    counted: Frequencies
    size: int


@dataclass(slots=True)
class LoadedPostings:
    """All segments, with the change they reflect, and the records that changed since as one more segment."""

    last_segment: int
    seq: int  # the last change that the rows reflect
    first_rows: dict[int, int]  # by segment
    keys: Keys
    lengths: NDArray[np.float32]
    alive: NDArray[np.bool_]
    bounds: tuple[int, ...]  # of the segments' rows
    changed: dict[int, int] = field(default_factory=dict)  # the row of a record that changed since
    changed_lists: defaultdict[str, array[int]] = field(default_factory=lambda: defaultdict(lambda: array("I")))
    held: OrderedDict[str, _Held] = field(default_factory=OrderedDict)
    held_size: int = 0

    @property
    def size(self) -> int:
        return len(self.keys)

    @property
    def _changed_from(self) -> int:
        return self.bounds[-1]

    def segments(self) -> Iterator[tuple[int, int, int]]:
        """The number of each segment, its first row, and the one after its last."""
        bounds = zip(self.bounds, self.bounds[1:], strict=False)
        return ((segment, *rows) for segment, rows in zip(self.first_rows, bounds, strict=True))

    # ── records ───────────────────────────────────────────────────────────────────────────────────────────────

    def rows_of(self, keys: Iterable[int]) -> NDArray[np.intp]:
        """The live rows of records; those that are not in the index are left out."""
        wanted = np.unique(np.fromiter(keys, np.int64))
        found = [np.array([self.changed[key] for key in wanted.tolist() if key in self.changed], np.intp)]
        for _, start, end in self.segments():
            own = self.keys[start:end]
            at = np.searchsorted(own, wanted)
            at[at == len(own)] = 0
            found.append((at[own[at] == wanted] if len(own) else at[:0]) + start)
        rows = np.concatenate(found)
        return rows[self.alive[rows]]

    def catch_up(self, connection: SqlConnection, last: int) -> None:
        """Replace every record that changed since by what is stored for it now."""
        keys = connection.column(_CHANGED, self.seq)
        self.alive[self.rows_of(keys)] = False
        added: list[int] = []
        lengths: list[int] = []
        for key, *columns in connection.among(TOKENS, keys):
            row = self.size + len(added)
            length = append_record(self.changed_lists, row - self._changed_from, columns)
            self.changed[key] = row
            added.append(key)
            lengths.append(length)
        self.keys = np.concatenate([self.keys, np.array(added, np.int64)])
        self.lengths = np.concatenate([self.lengths, np.array(lengths, np.float32)])
        self.alive = np.concatenate([self.alive, np.ones(len(added), bool)])
        self.seq = last

    # ── terms ─────────────────────────────────────────────────────────────────────────────────────────────────

    def frequencies(self, connection: SqlConnection, leaf: Leaf) -> Frequencies:
        """The live rows that a leaf of a query matches, and how often."""
        if isinstance(leaf, Term) and leaf.column is None:
            counted = self._held(connection, leaf.token).counted
        else:
            counted = frequencies(self._places(connection, leaf))
        changed = self._changed(leaf)
        if len(changed):
            counted = joined(counted, frequencies(changed))
        if not self.alive.all():
            live = self.alive[counted.rows]
            counted = Frequencies(counted.rows[live], counted.counts[live])
        return counted

    def holders(self, connection: SqlConnection, token: str) -> NDArray[np.intp]:
        """The live rows that hold a token; a single CJK character is held by the pairs that it begins."""
        return self.frequencies(connection, Prefix(token) if is_lone(token) else Term(token)).rows

    def _places(self, connection: SqlConnection, leaf: Leaf) -> Places:
        if isinstance(leaf, Phrase):
            found = adjacent([self._held(connection, token).places for token in leaf.tokens])
        elif isinstance(leaf, Term):
            found = self._held(connection, leaf.token).places
        else:
            found = np.sort(self._read(connection, _LISTS_OF_PREFIX, leaf.token, leaf.token))
        return in_column(found, leaf.column)

    def _changed(self, leaf: Leaf) -> Places:
        if isinstance(leaf, Phrase):
            found = adjacent([self._changed_of(token) for token in leaf.tokens])
        elif isinstance(leaf, Term):
            found = self._changed_of(leaf.token)
        else:
            tokens = [token for token in self.changed_lists if token.startswith(leaf.token)]
            found = np.sort(np.concatenate([self._changed_of(""), *map(self._changed_of, tokens)]))
        return in_column(found, leaf.column)

    def _changed_of(self, token: str) -> Places:
        found = np.array(self.changed_lists.get(token, ()), np.uint32)
        return places(np.sort(found), self._changed_from)  # sorted: places in a long column have wrapped around

    def _held(self, connection: SqlConnection, token: str) -> _Held:
        """The lists of a term, from memory or from the file; those that were not used for longest are let go."""
        known = self.held.get(token)
        if known is None:
            found = self._read(connection, _LISTS, token)
            known = self.held[token] = _Held(found, frequencies(found), len(found) + 64)
            self.held_size += known.size
            most = _MAX_HELD if len(self.keys) >= _MANY_RECORDS else _HELD_PER_RECORD * len(self.keys)
            while self.held_size > most and len(self.held) > 1:
                self.held_size -= self.held.popitem(last=False)[1].size
        self.held.move_to_end(token)
        return known

    def _read(self, connection: SqlConnection, query: str, *parameters: str) -> Places:
        rows = connection.execute(query.format(marks=f"({','.join(map(str, self.first_rows))})"), parameters)
        parts = [places(np.frombuffer(found, np.uint32), self.first_rows[segment]) for segment, found in rows]
        return np.concatenate([np.empty(0, np.uint64), *parts])


def load(connection: SqlConnection, seq: int) -> LoadedPostings:
    """All segments. Where several hold a record, the last one does."""
    first_rows: dict[int, int] = {}
    keys, lengths, bounds = [np.empty(0, np.int64)], [np.empty(0, np.uint32)], [0]
    for segment, records, sizes in connection.execute(_SEGMENTS):
        first_rows[segment] = bounds[-1]
        keys.append(np.frombuffer(records, np.int64))
        lengths.append(np.frombuffer(sizes, np.uint32))
        bounds.append(bounds[-1] + len(keys[-1]))
    every = np.concatenate(keys)
    alive = np.zeros(len(every), bool)
    _, last = np.unique(every[::-1], return_index=True)
    alive[len(every) - 1 - last] = True
    last_segment = max(first_rows, default=0)
    return LoadedPostings(
        last_segment, seq, first_rows, every, np.concatenate(lengths).astype(np.float32), alive, tuple(bounds)
    )
