"""What was told: every write durable, every change with its history in the same transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from mindex.analyzer import fold
from mindex.errors import ConflictError, NotFoundError
from mindex.ids import content_hash
from mindex.model import Change, Record
from mindex.store.base import AddOutcome
from mindex.store.sqlite import cache, keyword, records
from mindex.store.sqlite.filter_sql import batches, marks
from mindex.store.sqlite.records import note_changes, put_tags

if TYPE_CHECKING:  # a search does not wait for what only reports are made of
    from mindex.model import MemoryStatistics, PurgeResult

Revise = Callable[[Record], Record]

_ADD = """
INSERT INTO records
    (id, kind, agent, number, type, importance, confidence, created_at, updated_at, expires_at, retired_at,
     superseded_by, content_hash, source, title, tags, entities, summary, context, fields, text)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_CHANGE = """
UPDATE records SET type = ?2, importance = ?3, confidence = ?4, updated_at = ?5, expires_at = ?6, retired_at = ?7,
    superseded_by = ?8, content_hash = ?9, source = ?10, title = ?11, tags = ?12, entities = ?13, summary = ?14,
    context = ?15, fields = ?16, text = ?17
WHERE id = ?1 RETURNING key
"""
_SAME_WORDS = """
SELECT id FROM records
WHERE content_hash = ? AND agent = ? AND kind = ? AND retired_at IS NULL AND (expires_at IS NULL OR expires_at > ?)
AND id != ? LIMIT 1
"""
# From one agent to the next by the index: a DISTINCT would read all of it.
_AGENTS = """
WITH RECURSIVE known (agent) AS (
    SELECT min(agent) FROM records WHERE agent > ''
    UNION ALL SELECT (SELECT min(agent) FROM records WHERE agent > known.agent) FROM known WHERE agent IS NOT NULL
) SELECT agent FROM known WHERE agent IS NOT NULL
"""
_LINKED = """
SELECT b.id FROM links l JOIN records a ON a.key = l.source JOIN records b ON b.key = l.target
WHERE a.id = ? AND l.kind = ? AND b.retired_at IS NULL ORDER BY l.weight DESC, b.id
"""
_TAKEN_FROM = """
SELECT b.id FROM links l JOIN records a ON a.key = l.source JOIN records b ON b.key = l.target
WHERE l.kind = ? AND a.kind = 'turn' AND b.retired_at IS NULL AND l.source IN {marks} ORDER BY b.key
"""
_PAGE = 500
_HISTORY = "SELECT change, record, at, by, action, reason, before, after FROM history"


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def add(
    connection: sqlite3.Connection, record: Record, by: str, reason: str = "", *, unique: str = "", once: bool = False
) -> AddOutcome:
    """Store a record, or answer with the live memory that says the same already, its time refreshed."""
    if once and one(connection, record.id) is not None:
        return AddOutcome(record.id, created=False)
    taken = _holder(connection, record, unique)
    if taken:
        return AddOutcome(taken, created=False)
    if record.kind == "memory":
        same = connection.execute(
            _SAME_WORDS, (content_hash(record.text), record.agent, record.kind, record.updated_at, record.id)
        ).fetchone()
        if same:
            connection.execute("UPDATE records SET updated_at = ? WHERE id = ?", (record.updated_at, same[0]))
            return AddOutcome(same[0], created=False)
    record = replace(record, number=record.number or _next_number(connection, record.agent))
    key = insert(connection, record)
    _append(connection, record.id, record.updated_at, by, "add", reason, None, record)
    note_changes(connection, [key])
    return AddOutcome(record.id, created=True)


def insert(connection: sqlite3.Connection, record: Record) -> int:
    """The row, its tags and names, and its words unless it is retired; answers its key."""
    cursor = connection.execute(
        _ADD,
        (record.id, record.kind, record.agent, record.number, record.type, record.importance, record.confidence,
         record.created_at, record.updated_at, record.expires_at, record.retired_at, record.superseded_by,
         content_hash(record.text), record.source, record.title, _json(record.tags), _json(record.entities),
         record.summary, record.context, json.dumps(dict(record.fields), ensure_ascii=False), record.text),
    )  # fmt: skip
    key = cursor.lastrowid
    assert key is not None
    put_tags(connection, key, record.tags)
    _put_entities(connection, key, record.entities)
    if record.retired_at is None:
        keyword.index(connection, key, record)
    return key


def revise(
    connection: sqlite3.Connection,
    id_: str,
    change: Revise,
    *,
    by: str,
    action: str,
    reason: str,
    now: int,
    unique: str = "",
) -> Change:
    """Change one record from what it is now, inside the transaction: nobody's change is lost."""
    before = one(connection, id_)
    if before is None or before.kind == "chunk":
        raise NotFoundError(f"there is no memory '{id_}'", "search for it, or `mindex list --kind memory`")
    after = replace(change(before), id=before.id, kind=before.kind, number=before.number, updated_at=now)
    _refuse_twins(connection, after, now)
    taken = _holder(connection, after, unique)
    if taken:
        raise ConflictError(f"'{taken}' has the same {unique} already", f"choose another {unique}")
    (key,) = connection.execute(
        _CHANGE,
        (id_, after.type, after.importance, after.confidence, now, after.expires_at, after.retired_at,
         after.superseded_by, content_hash(after.text), after.source, after.title, _json(after.tags),
         _json(after.entities), after.summary, after.context, json.dumps(dict(after.fields), ensure_ascii=False),
         after.text),
    ).fetchone()  # fmt: skip
    _reindex(connection, key, before, after)
    note_changes(connection, [key])
    return _append(connection, id_, now, by, action, reason, before, after)


def _holder(connection: sqlite3.Connection, record: Record, unique: str) -> str | None:
    """Who else of the record's kind and agent holds the value of its unique field."""
    value = record.fields.get(unique) if unique and record.retired_at is None else None
    if value is None:
        return None
    row = connection.execute(
        "SELECT id FROM records WHERE agent = ? AND kind = ? AND retired_at IS NULL AND id != ?"
        " AND json_extract(fields, '$.' || ?) = ? COLLATE NOCASE LIMIT 1",
        (record.agent, record.kind, record.id, unique, value),
    ).fetchone()
    return str(row[0]) if row else None


def _refuse_twins(connection: sqlite3.Connection, record: Record, now: int) -> None:
    """No two live memories of one agent say the same: what would make one is refused, and the other is named."""
    if record.kind != "memory" or record.retired_at is not None:
        return
    same = connection.execute(
        _SAME_WORDS,
        (content_hash(record.text), record.agent, record.kind, now, record.id),
    ).fetchone()
    if same:
        raise ConflictError(f"memory '{same[0]}' says the same already", "forget one of the two first")


def _reindex(connection: sqlite3.Connection, key: int, before: Record, after: Record) -> None:
    """Words follow the row at once; a vector of another text must not serve this one."""
    keyword.remove(connection, [key])
    if after.retired_at is None:
        keyword.index(connection, key, after)
    if after.retired_at is not None or (before.title, before.text) != (after.title, after.text):
        connection.execute("DELETE FROM vectors WHERE record = ?", (key,))
    if before.tags != after.tags:
        connection.execute("DELETE FROM tags WHERE record = ?", (key,))
        put_tags(connection, key, after.tags)
    if before.entities != after.entities:
        connection.execute("DELETE FROM entities WHERE record = ?", (key,))
        _put_entities(connection, key, after.entities)


def purge(connection: sqlite3.Connection, ids: Sequence[str]) -> PurgeResult:
    """Remove records from every table and index, history included. The words leave the index's file pages, too."""
    from mindex.model import PurgeResult
    from mindex.model.consolidation import FROM

    removed = vectors = history = 0
    taken: dict[str, None] = {}
    for batch in batches(ids):
        keys = [key for (key,) in connection.execute(f"SELECT key FROM records WHERE id IN {marks(batch)}", batch)]
        vectors += connection.execute(f"SELECT count(*) FROM vectors WHERE record IN {marks(keys)}", keys).fetchone()[0]
        history += connection.execute(f"DELETE FROM history WHERE record IN {marks(batch)}", batch).rowcount
        facts = connection.execute(_TAKEN_FROM.format(marks=marks(keys)), (FROM, *keys))
        taken |= dict.fromkeys(id_ for (id_,) in facts)
        texts = [text for (text,) in connection.execute(f"SELECT text FROM records WHERE id IN {marks(batch)}", batch)]
        connection.executemany(
            "UPDATE access_log SET query = '' WHERE query != '' AND (instr(?1, query) OR instr(query, ?1))",
            [(text,) for text in texts],
        )
        cache.forget_texts(connection, texts)
        for table, column in (("access_log", "record"), ("accesses", "record"), ("entities", "record"),
                              ("extractions", "record"), ("links", "source"), ("links", "target")):  # fmt: skip
            connection.execute(f"DELETE FROM {table} WHERE {column} IN {marks(keys)}", keys)
        records.remove_records(connection, keys)
        removed += len(keys)
    # Deleted words stay in the segments of the index until they are merged.
    connection.execute("INSERT INTO records_fts (records_fts) VALUES ('optimize')")
    return PurgeResult(removed, vectors, history, facts=tuple(id_ for id_ in taken if id_ not in frozenset(ids)))


def link(connection: sqlite3.Connection, source: str, target: str, kind: str, weight: float, now: int) -> None:
    """Link two records in both directions; links to what has gone are not made."""
    connection.executemany(
        "INSERT OR REPLACE INTO links (source, target, kind, weight, created_at)"
        " SELECT a.key, b.key, ?3, ?4, ?5 FROM records a, records b WHERE a.id = ?1 AND b.id = ?2",
        [(source, target, kind, weight, now), (target, source, kind, weight, now)],
    )


def _next_number(connection: sqlite3.Connection, agent: str) -> int:
    """Never given twice, purged or not."""
    number = last_number(connection, agent) + 1
    raise_number(connection, agent, number)
    return number


def last_number(connection: sqlite3.Connection, agent: str) -> int:
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (f"number:{agent}",)).fetchone()
    (taken,) = connection.execute(
        "SELECT coalesce(max(number), 0) FROM records WHERE agent = ? AND number IS NOT NULL", (agent,)
    ).fetchone()
    return max(int(row[0]) if row else 0, int(taken))


def raise_number(connection: sqlite3.Connection, agent: str, number: int) -> None:
    connection.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (f"number:{agent}", str(number)))


def _put_entities(connection: sqlite3.Connection, key: int, entities: Iterable[str]) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO entities (entity, record) VALUES (?, ?)", [(fold(entity), key) for entity in entities]
    )


def _json(values: Sequence[str]) -> str:
    return json.dumps(values, ensure_ascii=False)


# ── history ───────────────────────────────────────────────────────────────────────────────────────────────────


def _append(
    connection: sqlite3.Connection,
    id_: str,
    at: int,
    by: str,
    action: str,
    reason: str,
    before: Record | None,
    after: Record,
) -> Change:
    cursor = connection.execute(
        "INSERT INTO history (record, at, by, action, reason, before, after) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (id_, at, by, action, reason, None if before is None else snapshot(before), snapshot(after)),
    )
    assert cursor.lastrowid is not None
    return Change(cursor.lastrowid, id_, at, by, action, reason, before, after)


def history(connection: sqlite3.Connection, id_: str) -> tuple[Change, ...]:
    rows = connection.execute(f"{_HISTORY} WHERE record = ? ORDER BY change", (id_,))
    return tuple(map(_change, rows))


def change(connection: sqlite3.Connection, number: int) -> Change | None:
    row = connection.execute(f"{_HISTORY} WHERE change = ?", (number,)).fetchone()
    return _change(row) if row else None


def linked(connection: sqlite3.Connection, id_: str, kind: str) -> tuple[str, ...]:
    return tuple(other for (other,) in connection.execute(_LINKED, (id_, kind)))


def superseded(connection: sqlite3.Connection, id_: str) -> tuple[str, ...]:
    retired = "SELECT id FROM records WHERE superseded_by = ? AND retired_at IS NOT NULL ORDER BY key"
    return tuple(one for (one,) in connection.execute(retired, (id_,)))


def changes_between(connection: sqlite3.Connection, after: int, before: int, beyond: int) -> tuple[Change, ...]:
    """A page of changes in order of time, after change number `beyond` among equals."""
    rows = connection.execute(
        f"{_HISTORY} WHERE at >= ?1 AND at < ?2 AND (at > ?1 OR change > ?3) ORDER BY at, change LIMIT {_PAGE}",
        (after, before, beyond),
    )
    return tuple(map(_change, rows))


def statistics(connection: sqlite3.Connection, agent: str, now: int) -> MemoryStatistics:
    from mindex.model import MemoryStatistics

    scope = "agent = ?1 AND kind = 'memory' AND retired_at IS NULL AND (expires_at IS NULL OR expires_at > ?2)"
    total, importance, confidence, oldest, newest = connection.execute(
        "SELECT count(*), coalesce(avg(importance), 0), coalesce(avg(confidence), 0), min(created_at), max(created_at)"
        f" FROM records WHERE {scope}",
        (agent, now),
    ).fetchone()
    by_type = connection.execute(f"SELECT type, count(*) FROM records WHERE {scope} GROUP BY type", (agent, now))
    (accesses,) = connection.execute(
        f"SELECT coalesce(sum(count), 0) FROM accesses WHERE record IN (SELECT key FROM records WHERE {scope})",
        (agent, now),
    ).fetchone()
    return MemoryStatistics(total, dict(by_type), importance, confidence, accesses, oldest, newest)


def states_at(connection: sqlite3.Connection, moment: int) -> tuple[Record, ...]:
    """The records that changed after a moment, as they stood at it; those that did not exist yet are left out."""
    rows = connection.execute(
        "SELECT before FROM history WHERE before IS NOT NULL AND change IN"
        " (SELECT min(change) FROM history WHERE at > ? GROUP BY +record)",
        (moment,),
    )
    return tuple(_from_snapshot(before) for (before,) in rows)


def one(connection: sqlite3.Connection, id_: str) -> Record | None:
    """A record whether it is live or retired."""
    found = records.records(connection, [id_], retired=True)
    return found[0] if found else None


def by_number(connection: sqlite3.Connection, agent: str, number: int) -> str | None:
    if not 0 < number < 2**63:  # more than the engine can hold was never given
        return None
    row = connection.execute("SELECT id FROM records WHERE agent = ? AND number = ?", (agent, number)).fetchone()
    return str(row[0]) if row else None


def agents(connection: sqlite3.Connection) -> tuple[str, ...]:
    return tuple(agent for (agent,) in connection.execute(_AGENTS))


_SNAPSHOT = (
    "id", "kind", "text", "title", "tags", "agent", "created_at", "updated_at", "number", "type", "summary", "context",
    "source", "importance", "confidence", "expires_at", "entities", "fields", "retired_at", "superseded_by",
)  # fmt: skip


def snapshot(record: Record) -> str:
    values = {name: getattr(record, name) for name in _SNAPSHOT}
    required = ("id", "kind", "text")
    return json.dumps(
        {name: value for name, value in values.items() if name in required or value not in (None, "", ())},
        ensure_ascii=False,
    )


def _from_snapshot(text: str) -> Record:
    values: dict[str, Any] = json.loads(text)
    for name in ("tags", "entities"):
        values[name] = tuple(values.get(name, ()))
    return Record(**values)


def _change(row: tuple[Any, ...]) -> Change:
    number, record, at, by, action, reason, before, after = row
    return Change(
        number,
        record,
        at,
        by,
        action,
        reason,
        None if before is None else _from_snapshot(before),
        _from_snapshot(after),
    )
