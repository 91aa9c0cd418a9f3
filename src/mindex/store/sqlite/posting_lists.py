"""Posting lists as arrays: how tokens become occurrences, and occurrences the frequencies that BM25 needs.

An occurrence is 32 bits: the place of a record in its segment, a column, and the place in that column. Sorted, they are
in the order of records; two tokens are neighbours if the second's occurrence is the first's plus one.
"""

from __future__ import annotations

from array import array
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray

from mindex.analyzer import COLUMN_WEIGHTS, COLUMNS

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
