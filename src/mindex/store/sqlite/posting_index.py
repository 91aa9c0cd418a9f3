"""The posting lists of a file as one process reads them: lists of segments by term, and what changed since.

Rows number the records of all segments one after the other, then those that changed since. Only the lists of the terms
that a query names are read, so that a process starts at once and holds 13 bytes a record, and what its queries share.

An occurrence is 32 bits: the place of a record in its segment, a column, and the place in that column. Sorted, they are
in the order of records; two tokens are neighbours if the second's occurrence is the first's plus one.
"""

from __future__ import annotations

from array import array
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count

import numpy as np
from numpy.typing import NDArray

from mindex.analyzer import COLUMN_WEIGHTS, COLUMNS, is_lone
from mindex.datatypes import Phrase, Prefix, Term
from mindex.store.rules.bm25 import Leaf
from mindex.store.sqlite.sql_connection import SqlConnection

Occurrences = NDArray[np.uint32]
Places = NDArray[np.uint64]  # occurrences among all rows: the same 16 bits of column and place, above them the row
Keys = NDArray[np.int64]

# Places wrap around in a column of more than 8,192 tokens: two neighbours are missed there, and nothing else.
_PLACE_BITS, _COLUMN_BITS = 13, 3
_ROW_SHIFT = _PLACE_BITS + _COLUMN_BITS
_PLACE_MASK = (1 << _PLACE_BITS) - 1
MAX_ROWS = 1 << (32 - _ROW_SHIFT)
_WEIGHTS = np.zeros(1 << _COLUMN_BITS, np.float32)
_WEIGHTS[: len(COLUMNS)] = [COLUMN_WEIGHTS[name] for name in COLUMNS]
assert len(COLUMNS) <= 1 << _COLUMN_BITS

Row = tuple[int, Sequence[str]]  # the key of a record, and its tokens by column


@dataclass(frozen=True, slots=True)
class Segment:
    """Records with their lengths, and the occurrences of each term in them."""

    keys: Keys
    lengths: NDArray[np.uint32]
    lists: Iterable[tuple[str, bytes]]


@dataclass(slots=True)
class Frequencies:
    """The rows that hold a term, ascending, and how often, each occurrence multiplied by its column's weight.

    `saturated` is what BM25 makes of the counts, for rows of an average length: kept until that changes.
    """

    rows: NDArray[np.intp]
    counts: NDArray[np.float32]
    saturated: tuple[float, NDArray[np.float32]] | None = None


def make_segment(keys: Iterable[int], rows: Iterable[Row]) -> Segment:
    """A segment of the records with these keys. Those that are not among the rows have gone.

    The rows are read one by one, in any order: their texts together are several times as large as the segment.
    """
    row_of = {key: row for row, key in enumerate(sorted(keys))}
    assert len(row_of) <= MAX_ROWS
    numbers: defaultdict[str, int] = defaultdict(count().__next__)
    terms, places = array("I"), array("I")
    lengths = np.zeros(len(row_of), np.uint32)
    for key, columns in rows:
        row, before = row_of[key], len(terms)
        for column, text in enumerate(columns):
            first = len(terms)
            terms.extend(map(numbers.__getitem__, text.split()))
            start = row << _ROW_SHIFT | column << _PLACE_BITS
            for place in range(0, len(terms) - first, _PLACE_MASK + 1):  # a longer text is counted from 0 again
                places.extend(range(start, start + min(_PLACE_MASK + 1, len(terms) - first - place)))
        lengths[row] = len(terms) - before
    found = np.frombuffer(terms, np.uint32).astype(np.uint64)
    found <<= np.uint64(32)
    found |= np.frombuffer(places, np.uint32)
    found.sort()
    return Segment(np.fromiter(row_of, np.int64), lengths, _lists(found, list(numbers)))


def _lists(found: NDArray[np.uint64], terms: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    """The occurrences of each term, in the order of terms, as a table that is sorted by them is filled fastest."""
    occurrences = found.astype(np.uint32)
    bounds = np.searchsorted(found >> np.uint64(32), np.arange(len(terms) + 1)).tolist()
    for number in sorted(range(len(terms)), key=terms.__getitem__):
        yield terms[number], occurrences[bounds[number] : bounds[number + 1]].tobytes()


def append_record(lists: defaultdict[str, array[int]], row: int, columns: Sequence[str]) -> int:
    """Add the occurrences of one record, whose row is higher than that of any before. Returns its length."""
    length = 0
    for column, text in enumerate(columns):
        tokens = text.split()
        start = row << _ROW_SHIFT | column << _PLACE_BITS
        for place, token in enumerate(tokens):
            lists[token].append(start | place & _PLACE_MASK)
        length += len(tokens)
    return length


def places(occurrences: Occurrences, first_row: int) -> Places:
    """Occurrences in a segment as places among all rows."""
    return occurrences + np.uint64(first_row << _ROW_SHIFT)


def _columns(found: Places) -> Places:
    return (found >> np.uint64(_PLACE_BITS)) & np.uint64((1 << _COLUMN_BITS) - 1)


def in_column(found: Places, column: str | None) -> Places:
    if column is None:
        return found
    held: Places = found[_columns(found) == COLUMNS.index(column)]
    return held


def adjacent(tokens: Sequence[Places]) -> Places:
    """The places at which the tokens follow each other: those of the first token."""
    rarest = min(range(len(tokens)), key=lambda place: len(tokens[place]))
    starts: Places = tokens[rarest]
    if rarest:
        starts = starts[(starts & np.uint64(_PLACE_MASK)) >= rarest] - np.uint64(rarest)
    for place, others in enumerate(tokens):
        if place != rarest:
            wanted = starts + np.uint64(place)
            # A place beyond the column's last would be the next column's first.
            same = wanted >> np.uint64(_PLACE_BITS) == starts >> np.uint64(_PLACE_BITS)
            starts = starts[_among(wanted, others) & same]
    return starts


def _among(wanted: Places, known: Places) -> NDArray[np.bool_]:
    if not len(known):
        return np.zeros(len(wanted), bool)
    at = np.searchsorted(known, wanted)
    at[at == len(known)] = 0
    found: NDArray[np.bool_] = known[at] == wanted
    return found


def frequencies(found: Places) -> Frequencies:
    """The rows of sorted places, and how often each row is among them."""
    rows = (found >> np.uint64(_ROW_SHIFT)).astype(np.intp)
    starts = np.flatnonzero(np.diff(rows, prepend=-1))
    weights = _WEIGHTS[_columns(found)]
    return Frequencies(rows[starts], np.add.reduceat(weights, starts) if len(starts) else weights)


def joined(one: Frequencies, other: Frequencies) -> Frequencies:
    """Both, where the rows of the second come after those of the first."""
    return Frequencies(np.concatenate([one.rows, other.rows]), np.concatenate([one.counts, other.counts]))


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
