"""Removing records for good from a SQLite file: from every table, every index, and the file's free pages."""

from collections.abc import Sequence
from dataclasses import replace

from mindex.datatypes import PurgeResult
from mindex.datatypes.consolidation import FROM
from mindex.errors import StoreError
from mindex.store.cache_kinds import TEXT_CACHES
from mindex.store.sql import caches
from mindex.store.sqlite import record_rows
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.queries import batches, marks, read_column, read_value

_FACTS_OF_TURNS = """
SELECT b.id FROM links l JOIN records a ON a.key = l.source JOIN records b ON b.key = l.target
WHERE l.kind = ? AND a.kind = 'turn' AND b.retired_at IS NULL AND l.source IN {marks} ORDER BY b.key
"""
_FORGET_QUERY = "UPDATE access_log SET query = '' WHERE query != '' AND (instr(?1, query) OR instr(query, ?1))"
_STILL_READ = (
    "another process still reads an older state of the file; the text leaves it when that one is done: run"
    " `mindex optimize` then"
)
_REFERENCES = (
    ("access_log", "record"), ("accesses", "record"), ("entities", "record"), ("extractions", "record"),
    ("links", "source"), ("links", "target"),
)  # fmt: skip


def purge(engine: SqliteEngine, ids: Sequence[str]) -> PurgeResult:
    """See `EntryStore.purge`. What follows the transaction only cleans the file: a failure there is a note."""
    engine.background.flush()  # what waits there may hold texts of these records
    result = _delete(engine, ids)
    try:
        erased = _erase(engine)
    except StoreError as error:
        note = f"the file still contains what was purged ({error.message}): free some space, then run `mindex optimize`"
        return replace(result, erased=False, notes=(note,))
    return result if erased else replace(result, erased=False, notes=(_STILL_READ,))


def _delete(engine: SqliteEngine, ids: Sequence[str]) -> PurgeResult:
    removed = vectors = history = 0
    facts: dict[str, None] = {}
    with engine.write_transaction(durable=True) as connection:
        for batch in batches(ids):
            found = connection.execute(f"SELECT key, text FROM records WHERE id IN {marks(batch)}", batch).fetchall()
            keys = [key for key, _ in found]
            vectors += read_value(connection, f"SELECT count(*) FROM vectors WHERE record IN {marks(keys)}", *keys)
            history += connection.execute(f"DELETE FROM history WHERE record IN {marks(batch)}", batch).rowcount
            connection.execute(f"UPDATE synced_changes SET line = '' WHERE record IN {marks(batch)}", batch)
            facts |= dict.fromkeys(read_column(connection, _FACTS_OF_TURNS.format(marks=marks(keys)), FROM, *keys))
            connection.executemany(_FORGET_QUERY, [(text,) for _, text in found])
            for table, column in _REFERENCES:
                connection.execute(f"DELETE FROM {table} WHERE {column} IN {marks(keys)}", keys)
            record_rows.remove_rows(connection, keys)
            removed += len(keys)
        caches.clear(connection, TEXT_CACHES)  # a text that is purged may be among them
    left = tuple(id_ for id_ in facts if id_ not in frozenset(ids))
    return PurgeResult(removed, vectors, history, facts=left)


def _erase(engine: SqliteEngine) -> bool:
    """Remove what deleted rows left in indexes and free pages. Returns whether nothing of them is left."""
    with (
        engine.write_transaction() as connection
    ):  # deleted words stay in the segments of the index until they are merged
        connection.execute("INSERT INTO records_fts (records_fts) VALUES ('optimize')")
    engine.vectors.pack(force=True)
    engine.postings.build_anew()
    return engine.database.compact()
