"""Everything told, row by row, out of the file and into it: with its history, its links and its vectors.

Rows come in hundreds at a time: what is known of them is asked once for all, then each is judged in order.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import isfinite

from mindex.clock import now_ms
from mindex.ids import content_hash
from mindex.model import Change, Record
from mindex.store.export_rows import (
    ExistingRecord,
    ExportedVectors,
    ExportRow,
    ExportSnapshot,
    Extraction,
    ImportPreview,
    Link,
    RestoreOptions,
    RestoreOutcome,
)
from mindex.store.sqlite import entries, records
from mindex.store.sqlite.filter_sql import batches, marks
from mindex.store.sqlite.records import note_changes
from mindex.store.sqlite.spaces import active, has_canary

# No client counts further, and it leaves the engine room to count on.
LAST_NUMBER = 2**53
_PAGE = 50
# Of these an agent has one under each id: another's with the same id is not the same.
_PLACES = frozenset({"profile", "note"})

_IDS = "SELECT id FROM records WHERE agent = ? AND number IS NOT NULL AND kind != 'chunk' ORDER BY number"
_UNNUMBERED = "SELECT id FROM records WHERE agent = ? AND number IS NULL AND kind != 'chunk' ORDER BY id"
_LINKS = """
SELECT b.id, l.kind, l.weight, l.created_at
FROM records a JOIN links l ON l.source = a.key JOIN records b ON b.key = l.target
WHERE a.id = ? AND b.kind != 'chunk' ORDER BY l.kind, b.id
"""
_VECTORS = """
SELECT m.fingerprint, m.dimensions, v.fluency, v.data
FROM records r JOIN vectors v ON v.record = r.key JOIN models m ON m.key = v.model
WHERE r.id = ? ORDER BY m.fingerprint
"""
_SAME_WORDS = """
SELECT agent, content_hash, id FROM records
WHERE content_hash IN {marks} AND kind = 'memory' AND retired_at IS NULL AND (expires_at IS NULL OR expires_at > ?)
"""
_UNIQUE = """
SELECT lower(json_extract(fields, '$.' || ?)), id FROM records WHERE agent = ? AND kind = ? AND retired_at IS NULL
"""
_ADD_LINK = """
INSERT OR IGNORE INTO links (source, target, kind, weight, created_at)
SELECT a.key, b.key, ?3, ?4, ?5 FROM records a, records b WHERE a.id = ?1 AND b.id = ?2
"""
_EXTRACTION = """
SELECT e.at, e.facts FROM extractions e JOIN records r ON r.key = e.record WHERE r.id = ? AND e.facts >= 0
"""
_ADD_CHANGE = """
INSERT INTO history (change, record, at, by, action, reason, before, after) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
"""


# ── out ───────────────────────────────────────────────────────────────────────────────────────────────────────


def export_snapshot(connection: sqlite3.Connection, agent: str, *, vectors: bool) -> ExportSnapshot:
    """Everything of one agent or, for `*`, of all; whoever calls holds a transaction for as long as rows are read."""
    known = [name for (name,) in connection.execute("SELECT DISTINCT agent FROM records WHERE kind != 'chunk'")]
    agents = sorted(name for name in known if agent in ("*", name))
    (total,) = connection.execute(
        f"SELECT count(*) FROM records WHERE kind != 'chunk' AND agent IN {marks(agents)}", agents
    ).fetchone()
    last = {name: entries.last_number(connection, name) for name in agents}
    return ExportSnapshot(last, total, _rows(connection, agents, vectors))


def _rows(connection: sqlite3.Connection, agents: Sequence[str], vectors: bool) -> Iterator[ExportRow]:
    for agent in agents:
        for query in (_UNNUMBERED, _IDS):
            for ids in batches((id_ for (id_,) in connection.execute(query, (agent,))), _PAGE):
                for record in records.records(connection, ids, retired=True):
                    links = tuple(Link(*row) for row in connection.execute(_LINKS, (record.id,)))
                    kept = connection.execute(_VECTORS, (record.id,)) if vectors else ()
                    spaces = tuple(ExportedVectors(*row) for row in kept)
                    yield ExportRow(
                        record, entries.history(connection, record.id), links, spaces, _extraction(connection, record)
                    )


def _extraction(connection: sqlite3.Connection, record: Record) -> Extraction | None:
    row = connection.execute(_EXTRACTION, (record.id,)).fetchone() if record.kind == "turn" else None
    return Extraction(*row) if row else None


# ── in ────────────────────────────────────────────────────────────────────────────────────────────────────────


def restore(
    connection: sqlite3.Connection,
    rows: Sequence[ExportRow],
    restore_options: RestoreOptions,
    preview: ImportPreview | None = None,
) -> tuple[RestoreOutcome, ...]:
    """Store rows as they are, ids and times and history, in one transaction; a rehearsal only says what would be."""
    now = now_ms()
    known = _known(connection, rows, restore_options, now)
    if preview is not None:
        _remember(known, preview)
    restored, stored = [], []
    for row in rows:
        outcome = _judged(row.record, known, restore_options, now)
        restored.append(outcome)
        if outcome.outcome == "added":
            stored.append(_numbered(row, outcome.number))
    if preview is not None:
        _remember(preview, known)
    elif stored:
        _store(connection, stored, restore_options)
        for agent in {row.record.agent for row in stored}:
            entries.raise_number(connection, agent, known.last_numbers[agent])
    return tuple(restored)


def restore_links(connection: sqlite3.Connection, links: Sequence[tuple[str, Link]]) -> int:
    """Make links whose two ends are there; answers how many were new."""
    made = connection.total_changes
    connection.executemany(
        _ADD_LINK, [(source, link.target, link.kind, link.weight, link.created_at) for source, link in links]
    )
    return connection.total_changes - made


def owners(connection: sqlite3.Connection, ids: Iterable[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for batch in batches(ids):
        found.update(connection.execute(f"SELECT id, agent FROM records WHERE id IN {marks(batch)}", batch))
    return found


def _known(
    connection: sqlite3.Connection, rows: Sequence[ExportRow], restore_options: RestoreOptions, now: int
) -> ImportPreview:
    """What the store has that rows could be, or be in the way of."""
    known = ImportPreview()
    numbers: defaultdict[str, list[int]] = defaultdict(list)
    told_records = [row.record for row in rows]
    for batch in batches(told_records):
        found = connection.execute(
            f"SELECT id, kind, agent, created_at, coalesce(content_hash, '') FROM records WHERE id IN {marks(batch)}",
            [record.id for record in batch],
        )
        known.ids.update((id_, ExistingRecord(*rest)) for id_, *rest in found)
        hashes = [content_hash(record.text) for record in batch if record.kind == "memory"]
        same = connection.execute(_SAME_WORDS.format(marks=marks(hashes)), (*hashes, now))
        known.words.update(((agent, words), id_) for agent, words, id_ in same)
        for record in batch:
            if record.number is not None and 0 < record.number <= LAST_NUMBER:
                numbers[record.agent].append(record.number)
    for agent in {record.agent for record in told_records}:
        known.last_numbers[agent] = max(entries.last_number(connection, agent), restore_options.above.get(agent, 0))
        for some in batches(numbers[agent]):
            taken = connection.execute(
                f"SELECT number FROM records WHERE agent = ? AND number IN {marks(some)}", (agent, *some)
            )
            known.numbers.update((agent, number) for (number,) in taken)
    for agent, kind in {
        (record.agent, record.kind) for record in told_records if record.kind in restore_options.unique
    }:
        holders = connection.execute(_UNIQUE, (restore_options.unique[kind], agent, kind))
        known.unique.update(((agent, kind, str(value)), id_) for value, id_ in holders if value is not None)
    return known


def _remember(known: ImportPreview, more: ImportPreview) -> None:
    known.ids.update(more.ids)
    known.words.update(more.words)
    known.unique.update(more.unique)
    known.numbers.update(more.numbers)
    for agent, number in more.last_numbers.items():
        known.last_numbers[agent] = max(number, known.last_numbers.get(agent, 0))


def _judged(record: Record, known: ImportPreview, restore_options: RestoreOptions, now: int) -> RestoreOutcome:
    """Whether a record comes in, and under which number; if it does, it is known from then on."""
    words = content_hash(record.text)
    mine = ExistingRecord(record.kind, record.agent, record.created_at, words)
    if (there := known.ids.get(record.id)) is not None:
        same = (there.kind, there.agent) == (mine.kind, mine.agent) and (
            record.kind not in _PLACES or there.created_at == mine.created_at or there.content_hash == words
        )
        return RestoreOutcome("duplicate" if same else "conflict", record.id)
    live = record.retired_at is None and (record.expires_at is None or record.expires_at > now)
    if record.kind == "memory" and live:
        if (twin := known.words.get((record.agent, words))) is not None:
            return RestoreOutcome("duplicate", twin)
        known.words[record.agent, words] = record.id
    value = record.fields.get(restore_options.unique.get(record.kind, ""))
    if value is not None and record.retired_at is None:
        place = (record.agent, record.kind, _lower(str(value)))
        if (holder := known.unique.get(place)) is not None:
            return RestoreOutcome("conflict", holder)
        known.unique[place] = record.id
    number = record.number
    if number is None or not 0 < number <= LAST_NUMBER or (record.agent, number) in known.numbers:
        number = known.last_numbers[record.agent] + 1
    known.numbers.add((record.agent, number))
    known.last_numbers[record.agent] = max(number, known.last_numbers[record.agent])
    known.ids[record.id] = mine
    return RestoreOutcome("added", record.id, number)


def _lower(text: str) -> str:
    """As SQLite does: A to Z only."""
    return "".join(chr(ord(char) + 32) if "A" <= char <= "Z" else char for char in text)


def _numbered(row: ExportRow, number: int | None) -> ExportRow:
    if row.record.number == number:
        return row
    history = tuple(
        replace(
            change,
            before=None if change.before is None else replace(change.before, number=number),
            after=replace(change.after, number=number),
        )
        for change in row.history
    )
    return replace(row, record=replace(row.record, number=number), history=history)


def _store(connection: sqlite3.Connection, rows: Sequence[ExportRow], restore_options: RestoreOptions) -> None:
    keys = [entries.insert(connection, row.record) for row in rows]
    _store_history(connection, rows, restore_options)
    for key, row in zip(keys, rows, strict=True):
        if row.vectors and row.record.retired_at is None:
            _store_vectors(connection, key, row.vectors)
    asked = [(key, row.extraction) for key, row in zip(keys, rows, strict=True) if row.record.kind == "turn"]
    connection.executemany(
        "INSERT INTO extractions (record, at, facts) VALUES (?, ?, ?)",
        [(key, extraction.at, extraction.facts) for key, extraction in asked if extraction is not None],
    )
    note_changes(connection, keys)


def _store_history(connection: sqlite3.Connection, rows: Sequence[ExportRow], restore_options: RestoreOptions) -> None:
    """Changes keep their numbers where all of a record's are free: their order is the order of the numbers."""
    free = {change.change for row in rows for change in row.history if 0 < change.change <= LAST_NUMBER}
    for batch in batches(list(free)):
        taken = connection.execute(f"SELECT change FROM history WHERE change IN {marks(batch)}", batch)
        free.difference_update([number for (number,) in taken])
    kept: list[tuple[object, ...]] = []
    renumbered: list[tuple[object, ...]] = []
    for row in rows:
        record = row.record
        numbers = [change.change for change in row.history]
        keep = bool(numbers) and free.issuperset(numbers) and numbers == sorted(set(numbers))
        free.difference_update(numbers)
        changes = row.history or (
            Change(0, record.id, record.created_at, restore_options.by, "import", restore_options.reason, None, record),
        )
        (kept if keep else renumbered).extend(
            (change.change if keep else None, record.id, change.at, change.by, change.action, change.reason,
             None if change.before is None else entries.snapshot(change.before), entries.snapshot(change.after))
            for change in changes
        )  # fmt: skip
    connection.executemany(_ADD_CHANGE, kept)  # first: the engine's own numbers are above them
    connection.executemany(_ADD_CHANGE, renumbered)


def _may_be_of_another(connection: sqlite3.Connection, fingerprint: str) -> bool:
    """Whether vectors from elsewhere may be of another model of this name than the one that this memory knows.

    What runs on the machine itself is named by its checksum. Where no model has spoken yet, the first to speak is
    compared with what came in.
    """
    return not fingerprint.startswith("local/") and has_canary(connection, fingerprint)


def _store_vectors(connection: sqlite3.Connection, key: int, spaces: Sequence[ExportedVectors]) -> None:
    """Those that can be what they say they are; the others are made again, like any that are missing."""
    import numpy as np

    searched = active(connection)
    for one in spaces:
        if searched and one.model != searched:  # nobody would ever look at it
            continue
        if _may_be_of_another(connection, one.model):
            continue
        if one.dimensions < 1 or not one.data or len(one.data) % (4 * one.dimensions) or not isfinite(one.fluency):
            continue
        if not np.isfinite(np.frombuffer(one.data, "<f4")).all():
            continue
        connection.execute(
            "INSERT OR IGNORE INTO models (fingerprint, dimensions, created_at) VALUES (?, ?, ?)",
            (one.model, one.dimensions, now_ms()),
        )
        connection.execute(
            "INSERT INTO vectors (model, record, fluency, data)"
            " SELECT key, ?, ?, ? FROM models WHERE fingerprint = ? AND dimensions = ?",
            (key, one.fluency, one.data, one.model, one.dimensions),
        )
