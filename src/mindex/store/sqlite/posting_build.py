"""Makes segments of posting lists: of everything at first, later of what changed, some small segments among it.

Each segment is read in a snapshot and written in one short transaction, which finds out whether another process was
faster. A process that dies in the middle leaves the segments that it has finished, and the next one goes on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mindex.store.sqlite.connection import Database
from mindex.store.sqlite.keyword import read_tally
from mindex.store.sqlite.posting_index import TOKENS, Row, Segment, load, make_segment
from mindex.store.sqlite.postings import LAST_CHANGE, LAST_SEGMENT, SEQ, PostingLimits, drop_postings, is_behind
from mindex.store.sqlite.sql_connection import SqlConnection, batches

Stop = Callable[[], bool]

_ADD_SEGMENT = "INSERT INTO posting_segments (seq, records, lengths) VALUES (?, ?, ?)"
_ADD_LISTS = "INSERT INTO posting_lists (segment, term, occurrences) VALUES (?, ?, ?)"
_CHANGES = "SELECT seq, record FROM changes WHERE seq > ? AND model IS NULL ORDER BY seq"
_KEYS = "SELECT id FROM records_fts_docsize WHERE id > ? ORDER BY id LIMIT ?"


class _Stopped(Exception):
    """The process is about to end."""


_State = tuple[int | None, int]  # the change that all segments reflect, and the last segment


@dataclass(frozen=True, slots=True)
class _Plan:
    """The keys of the next segment, and what it replaces. `seq` is the change at which they were looked up."""

    seq: int
    state: _State
    keys: Sequence[int]
    replaced: tuple[int, ...] = ()
    complete_seq: int | None = None  # with it, the segments together reflect every change up to this one


def build(database: Database, limits: PostingLimits, stop: Stop = lambda: False) -> None:
    """Make segments until enough is in them, or until `stop`."""
    while not stop() and _build_one(database, limits, stop):
        pass


def _build_one(database: Database, limits: PostingLimits, stop: Stop) -> bool:
    """Make the next segment; whether there may be more to do."""
    with database.read() as connection:
        behind = is_behind(connection)
        plan = None if behind else _next(connection, limits)
        if plan is not None:
            try:
                segment = _segment(connection, plan.keys, stop)
            except _Stopped:
                return False
    if behind:
        with database.write() as connection:
            if is_behind(connection):
                drop_postings(connection)
        return True
    if plan is None:
        return False
    with database.write() as connection:
        if _state(connection) != plan.state:
            return False  # another process makes them
        _write(connection, plan, segment)
    return True


def _state(connection: SqlConnection) -> _State:
    return connection.value(SEQ), connection.value(LAST_SEGMENT)


def _next(connection: SqlConnection, limits: PostingLimits) -> _Plan | None:
    """What to make a segment of; None if nothing is due."""
    state = _state(connection)
    last = connection.value(LAST_CHANGE)
    if state[0] is not None:
        due = last - state[0] >= limits.changes
        return _next_of_changes(connection, limits, state, state[0], last) if due else None
    if read_tally(connection).records < limits.records:
        return None
    first = connection.value("SELECT min(seq) FROM posting_segments")
    records = connection.value("SELECT records FROM posting_segments ORDER BY segment DESC LIMIT 1")
    beyond = int(np.frombuffer(records, np.int64)[-1]) if records else -1
    keys = connection.column(_KEYS, beyond, limits.segment + 1)
    complete_seq = None if len(keys) > limits.segment else last if first is None else first
    return _Plan(last, state, keys[: limits.segment], (), complete_seq)


def _next_of_changes(connection: SqlConnection, limits: PostingLimits, state: _State, seq: int, last: int) -> _Plan:
    """The records that changed, as many as fit, with those of segments that are small or mostly replaced."""
    keys: set[int] = set()
    for number, record in connection.execute(_CHANGES, (seq,)):
        if len(keys) == limits.segment and record not in keys:
            last = number - 1
            break
        keys.add(record)
    loaded = load(connection, seq)
    replaced = []
    for segment, start, end in reversed(list(loaded.segments())):
        live = loaded.keys[start:end][loaded.alive[start:end]]
        small = len(live) <= 2 * len(keys) or len(live) < (end - start) // 2
        if small and len(keys) + len(live) <= limits.segment:
            keys.update(live.tolist())
            replaced.append(segment)
    return _Plan(last, state, sorted(keys), tuple(replaced), last)


def _segment(connection: SqlConnection, keys: Sequence[int], stop: Stop) -> Segment:
    def rows() -> Iterator[Row]:
        for batch in batches(keys):
            if stop():
                raise _Stopped
            for key, *columns in connection.among(TOKENS, batch):
                yield key, columns

    return make_segment(keys, rows())


def _write(connection: SqlConnection, plan: _Plan, segment: Segment) -> None:
    if plan.complete_seq is not None:
        connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('postings', ?)", (str(plan.complete_seq),))
    if not plan.keys and plan.state[0] is not None:
        return  # only vectors changed
    values = (plan.seq, segment.keys.tobytes(), segment.lengths.tobytes())
    number = connection.execute(_ADD_SEGMENT, values).lastrowid
    connection.executemany(_ADD_LISTS, ((number, term, occurrences) for term, occurrences in segment.lists))
    for replaced in plan.replaced:
        connection.execute("DELETE FROM posting_lists WHERE segment = ?", (replaced,))
        connection.execute("DELETE FROM posting_segments WHERE segment = ?", (replaced,))
