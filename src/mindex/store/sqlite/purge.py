"""Removing records for good from a SQLite file: from every table, every index, and the file's free pages."""

from collections.abc import Sequence
from dataclasses import replace

from mindex.datatypes import PurgeResult
from mindex.errors import StoreError
from mindex.store.sql.purge import remove_references
from mindex.store.sqlite import record_rows
from mindex.store.sqlite.engine import SqliteEngine
from mindex.store.sqlite.file_access import FileConnection

_STILL_READ = (
    "another process still reads an older state of the file; the text leaves it when that one is done: run"
    " `mindex optimize` then"
)


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
    def delete(connection: FileConnection) -> PurgeResult:
        keys = [key for (key,) in connection.among("SELECT key FROM records WHERE id $among", ids)]
        result = remove_references(connection, ids)
        record_rows.remove_rows(connection, keys)
        return result

    return engine.write(delete, durable=True)


def _erase(engine: SqliteEngine) -> bool:
    """Remove what deleted rows left in indexes and free pages. Returns whether nothing of them is left."""
    with engine.write_transaction() as connection:
        # Deleted words stay in the segments of the index until they are merged.
        connection.execute("INSERT INTO records_fts (records_fts) VALUES ('optimize')")
    engine.vectors.pack(force=True)
    engine.postings.build_anew()
    return engine.database.compact()
