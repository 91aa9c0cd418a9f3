"""Records, documents and collections: the rows, and how they become values."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from mindex.analyzer import fold
from mindex.clock import now_ms
from mindex.errors import CollectionError
from mindex.model import Collection, Document, Filters, Record
from mindex.store.base import ChunkCounts, DocumentUpdate, Page, RankingSignals
from mindex.store.sqlite import cache, keyword
from mindex.store.sqlite.filter_sql import batches, condition, marks, path_clause

_RECORD = """
SELECT r.id, r.kind, r.text, r.title, r.tags, r.agent, r.created_at, r.updated_at, d.id, c.name, d.path, r.first_line,
       r.last_line, d.domain, d.instruction, r.number, r.type, r.summary, r.context, r.source, r.importance,
       r.confidence, r.expires_at, r.entities, r.fields, r.retired_at, r.superseded_by
FROM records r LEFT JOIN documents d ON d.key = r.document LEFT JOIN collections c ON c.key = d.collection
"""
_DOCUMENT = """
SELECT d.id, c.name, d.path, d.fingerprint, d.size, d.mtime_ns, d.title, d.domain, d.instruction, d.tags, d.links,
       d.indexed_at
FROM documents d JOIN collections c ON c.key = d.collection
"""
_SIGNALS = """
SELECT r.id, r.kind, d.domain, d.instruction, r.importance, r.created_at, a.count, a.last_at
FROM records r LEFT JOIN documents d ON d.key = r.document LEFT JOIN accesses a ON a.record = r.key
"""
_PUT_DOCUMENT = """
INSERT INTO documents
    (id, collection, path, fingerprint, size, mtime_ns, title, domain, instruction, tags, links, indexed_at)
VALUES (?1, (SELECT key FROM collections WHERE name = ?2), ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12)
ON CONFLICT (id) DO UPDATE SET path = ?3, fingerprint = ?4, size = ?5, mtime_ns = ?6, title = ?7, domain = ?8,
    instruction = ?9, tags = ?10, links = ?11, indexed_at = ?12
RETURNING key
"""
# Two processes may see one file differently, as moved and as new: the later word counts.
_IN_ITS_PLACE = """
SELECT d.id FROM documents d JOIN collections c ON c.key = d.collection WHERE c.name = ? AND d.path = ? AND d.id != ?
"""
_ADD_CHUNK = """
INSERT INTO records (id, kind, document, position, first_line, last_line, created_at, updated_at, title, tags, text)
VALUES (?, 'chunk', ?, ?, ?, ?, ?, ?, ?, ?, ?)
"""
_MOVE_CHUNK = """
UPDATE records SET position = ?2, first_line = ?3, last_line = ?4, created_at = ?5 WHERE key = ?1
"""

# ── rows to values ────────────────────────────────────────────────────────────────────────────────────────────


def _record(row: tuple[Any, ...]) -> Record:
    return Record(
        id=row[0],
        kind=row[1],
        text=row[2],
        title=row[3],
        tags=_texts(row[4]),
        agent=row[5],
        created_at=row[6],
        updated_at=row[7],
        document=row[8] or "",
        collection=row[9] or "",
        path=row[10] or "",
        first_line=row[11] or 0,
        last_line=row[12] or 0,
        domain=row[13] or "",
        instruction=bool(row[14]),
        number=row[15],
        type=row[16],
        summary=row[17],
        context=row[18],
        source=row[19],
        importance=row[20],
        confidence=row[21],
        expires_at=row[22],
        entities=_texts(row[23]),
        fields=json.loads(row[24]) if row[24] != "{}" else {},
        retired_at=row[25],
        superseded_by=row[26],
    )


def _texts(stored: str) -> tuple[str, ...]:
    return tuple(json.loads(stored)) if stored != "[]" else ()  # most records have none


def _document(row: tuple[Any, ...]) -> Document:
    return Document(
        id=row[0],
        collection=row[1],
        path=row[2],
        fingerprint=row[3],
        size=row[4],
        mtime_ns=row[5],
        title=row[6],
        domain=row[7],
        instruction=bool(row[8]),
        tags=_texts(row[9]),
        links=_texts(row[10]),
        indexed_at=row[11],
    )


# ── reading ───────────────────────────────────────────────────────────────────────────────────────────────────


def collections(connection: sqlite3.Connection) -> tuple[Collection, ...]:
    rows = connection.execute("SELECT name, root, exclude, context, indexed_at FROM collections ORDER BY name")
    return tuple(Collection(name, root, tuple(json.loads(ex)), context, at) for name, root, ex, context, at in rows)


def documents(connection: sqlite3.Connection, collection: str) -> dict[str, Document]:
    rows = connection.execute(f"{_DOCUMENT} WHERE c.name = ?", (collection,))
    return {document.path: document for document in map(_document, rows)}


def find_documents(connection: sqlite3.Connection, path: str) -> tuple[Document, ...]:
    """By exact path; else, without wildcards, by the end of the path; each also below `collection/`."""
    rows = connection.execute(f"{_DOCUMENT} WHERE ?1 IN (d.path, d.id, c.name || '/' || d.path) ORDER BY 2, 3", (path,))
    exact = tuple(map(_document, rows))
    if exact or not path:
        return exact
    if any(wild in path for wild in "*?["):
        where, values = path_clause(path)
        rows = connection.execute(
            f"{_DOCUMENT} WHERE {where} OR c.name || '/' || d.path GLOB ? ORDER BY 2, 3", (*values, path)
        )
        return tuple(map(_document, rows))
    tail = "/" + path.lstrip("/")
    rows = connection.execute(f"{_DOCUMENT} WHERE substr(d.path, -length(?1)) = ?1 ORDER BY 2, 3", (tail,))
    return tuple(map(_document, rows))


def records(connection: sqlite3.Connection, ids: Sequence[str], *, retired: bool = False) -> tuple[Record, ...]:
    found: dict[str, Record] = {}
    live = "" if retired else "r.retired_at IS NULL AND"
    for batch in batches(ids):
        rows = connection.execute(f"{_RECORD} WHERE {live} r.id IN {marks(batch)}", batch)
        found.update((row[0], _record(row)) for row in rows)
    return tuple(found[id_] for id_ in ids if id_ in found)


def chunks(connection: sqlite3.Connection, document: str) -> tuple[Record, ...]:
    rows = connection.execute(
        f"{_RECORD} WHERE r.document = (SELECT key FROM documents WHERE id = ?) ORDER BY r.position", (document,)
    )
    return tuple(map(_record, rows))


def pending(
    connection: sqlite3.Connection, model: int, limit: int, *, entries_only: bool, ids: Sequence[str]
) -> tuple[Record, ...]:
    among = f"AND r.id IN {marks(ids)}" if ids else "AND r.agent > ''" if entries_only else ""
    rows = connection.execute(
        f"{_RECORD} LEFT JOIN vectors v ON v.record = r.key AND v.model = ?"
        f" WHERE v.key IS NULL AND r.retired_at IS NULL {among} LIMIT ?",
        (model, *ids, limit),
    )
    return tuple(map(_record, rows))


def resolve(connection: sqlite3.Connection, prefix: str, limit: int, *, retired: bool) -> tuple[str, ...]:
    live = "" if retired else "AND retired_at IS NULL"
    rows = connection.execute(
        f"SELECT id FROM records WHERE id >= ?1 AND id < ?1 || '\U0010ffff' {live} ORDER BY id LIMIT ?2",
        (prefix, limit),
    )
    return tuple(id_ for (id_,) in rows)


def listed(connection: sqlite3.Connection, filters: Filters, limit: int, offset: int) -> Page:
    scope = condition(filters, now_ms())
    (total,) = connection.execute(f"SELECT count(*) FROM records r WHERE {scope.sql}", scope.parameters).fetchone()
    rows = connection.execute(
        f"{_RECORD} WHERE {scope.sql} ORDER BY r.created_at DESC, d.path, r.position, r.key LIMIT ? OFFSET ?",
        (*scope.parameters, limit, offset),
    )
    return Page(tuple(map(_record, rows)), total)


def ranking_signals(connection: sqlite3.Connection, ids: Sequence[str]) -> dict[str, RankingSignals]:
    found: dict[str, RankingSignals] = {}
    for batch in batches(ids):
        rows = connection.execute(f"{_SIGNALS} WHERE r.id IN {marks(batch)}", batch)
        for id_, kind, domain, instruction, importance, created_at, count, last_at in rows:
            found[id_] = RankingSignals(
                id_, kind, domain or "", bool(instruction), importance, created_at, count or 0, last_at
            )
    return found


def substring(connection: sqlite3.Connection, words: Sequence[str], filters: Filters, limit: int) -> tuple[str, ...]:
    """LIKE with its wildcards escaped; the most confident, then the last accessed, then the newest first."""
    escaped = ["%" + word.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%" for word in words]
    scope = condition(filters, now_ms())
    each = " AND ".join(["(r.text LIKE ? ESCAPE '\\' OR r.title LIKE ? ESCAPE '\\')"] * len(words))
    rows = connection.execute(
        f"SELECT r.id FROM records r LEFT JOIN accesses a ON a.record = r.key WHERE {each} AND {scope.sql}"
        " ORDER BY r.confidence DESC, coalesce(a.last_at, r.updated_at) DESC, r.updated_at DESC, r.key LIMIT ?",
        (*(word for word in escaped for _ in range(2)), *scope.parameters, limit),
    )
    return tuple(id_ for (id_,) in rows)


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


def put_collection(connection: sqlite3.Connection, collection: Collection) -> None:
    rows = connection.execute(
        "SELECT name, root FROM collections WHERE name = ? OR root = ?", (collection.name, collection.root)
    )
    for name, root in rows:  # another process may have been faster
        if (name, root) != (collection.name, collection.root):
            raise CollectionError(f"{root} was indexed as '{name}' just now", "run the command again")
    connection.execute(
        "INSERT INTO collections (name, root, exclude, context, created_at, indexed_at) VALUES (?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (name) DO UPDATE SET exclude = excluded.exclude,"
        " context = excluded.context, indexed_at = excluded.indexed_at",
        (collection.name, collection.root, json.dumps(collection.exclude), collection.context, now_ms(),
         collection.indexed_at),
    )  # fmt: skip


def remove_collection(connection: sqlite3.Connection, name: str) -> int:
    ids = [id_ for (id_,) in connection.execute(f"SELECT id FROM ({_DOCUMENT} WHERE c.name = ?)", (name,))]
    removed = sum(remove_document(connection, id_) for id_ in ids)
    connection.execute("DELETE FROM collections WHERE name = ?", (name,))
    cache.forget_contexts(connection, name)
    return removed


def remove_document(connection: sqlite3.Connection, id_: str) -> int:
    row = connection.execute("SELECT key FROM documents WHERE id = ?", (id_,)).fetchone()
    if row is None:
        return 0
    keys = [key for (key,) in connection.execute("SELECT key FROM records WHERE document = ?", row)]
    remove_records(connection, keys)
    connection.execute("DELETE FROM documents WHERE key = ?", row)
    return len(keys)


def remove_records(connection: sqlite3.Connection, keys: Sequence[int]) -> None:
    """Rows, words, tags and vectors go together."""
    keyword.remove(connection, keys)
    each = [(key,) for key in keys]
    connection.executemany("DELETE FROM tags WHERE record = ?", each)
    connection.executemany("DELETE FROM vectors WHERE record = ?", each)
    connection.executemany("DELETE FROM records WHERE key = ?", each)
    note_changes(connection, keys)


def note_changes(connection: sqlite3.Connection, keys: Iterable[int], model: int | None = None) -> None:
    """Let other processes know. With a model, only its vectors changed, and only those who search it look."""
    connection.executemany("INSERT INTO changes (record, model) VALUES (?, ?)", [(key, model) for key in keys])


def apply_update(connection: sqlite3.Connection, update: DocumentUpdate) -> ChunkCounts:
    """Write a document and bring its chunks to what they are now, touching only the ones that differ."""
    document = update.document
    before = connection.execute("SELECT path, domain FROM documents WHERE id = ?", (document.id,)).fetchone()
    for (other,) in connection.execute(_IN_ITS_PLACE, (document.collection, document.path, document.id)).fetchall():
        remove_document(connection, other)
    (key,) = connection.execute(
        _PUT_DOCUMENT,
        (document.id, document.collection, document.path, document.fingerprint, document.size, document.mtime_ns,
         document.title, document.domain, document.instruction, json.dumps(document.tags), json.dumps(document.links),
         document.indexed_at),
    ).fetchone()  # fmt: skip
    if update.records is None:
        return ChunkCounts()
    place_changed = before is not None and before != (document.path, document.domain)
    rows = connection.execute("SELECT id, key, tags, title FROM records WHERE document = ?", (key,))
    old = {id_: (chunk_key, tags, title) for id_, chunk_key, tags, title in rows}
    kept = 0
    for position, record in enumerate(update.records):
        if record.id in old:
            chunk_key, tags, title = old.pop(record.id)
            described_anew = place_changed or (tags, title) != (_json(record.tags), record.title)
            _keep_chunk(connection, chunk_key, position, record, described_anew)
            if title != record.title:  # it is read with its title, which may be the file's name
                connection.execute("DELETE FROM vectors WHERE record = ?", (chunk_key,))
                note_changes(connection, [chunk_key])
            kept += 1
        else:
            _add_chunk(connection, key, position, record)
    remove_records(connection, [chunk_key for chunk_key, _, _ in old.values()])
    return ChunkCounts(added=len(update.records) - kept, kept=kept, removed=len(old))


def _add_chunk(connection: sqlite3.Connection, document: int, position: int, record: Record) -> None:
    cursor = connection.execute(
        _ADD_CHUNK,
        (record.id, document, position, record.first_line, record.last_line, record.created_at, record.updated_at,
         record.title, _json(record.tags), record.text),
    )  # fmt: skip
    key = cursor.lastrowid
    assert key is not None
    keyword.index(connection, key, record)
    put_tags(connection, key, record.tags)
    note_changes(connection, [key])


def _keep_chunk(connection: sqlite3.Connection, key: int, position: int, record: Record, described_anew: bool) -> None:
    """Same id, so same words in the same section; its place, and what its file says of it, may have changed."""
    connection.execute(_MOVE_CHUNK, (key, position, record.first_line, record.last_line, record.created_at))
    if described_anew:
        connection.execute(
            "UPDATE records SET tags = ?, title = ? WHERE key = ?", (_json(record.tags), record.title, key)
        )
        connection.execute("DELETE FROM tags WHERE record = ?", (key,))
        put_tags(connection, key, record.tags)
        (context,) = connection.execute("SELECT context FROM records WHERE key = ?", (key,)).fetchone()
        keyword.remove(connection, [key])
        keyword.index(connection, key, replace(record, context=context))


def _json(values: Sequence[str]) -> str:
    return json.dumps(values, ensure_ascii=False)


def put_tags(connection: sqlite3.Connection, key: int, tags: Iterable[str]) -> None:
    connection.executemany("INSERT OR IGNORE INTO tags (tag, record) VALUES (?, ?)", [(fold(tag), key) for tag in tags])
