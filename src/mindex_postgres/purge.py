"""Removing records for good from PostgreSQL: from every table and every index."""

from collections.abc import Sequence
from dataclasses import replace

from mindex.datatypes import PurgeResult
from mindex.errors import StoreError
from mindex.store.engine_parts import remove_references
from mindex_postgres import record_rows, words
from mindex_postgres.connection import Transaction
from mindex_postgres.engine import PostgresEngine

_VACUUMED = ("records", "words", "terms", "vectors", "history", "access_log", "counts", "cache", "synced_changes")


def purge(engine: PostgresEngine, ids: Sequence[str]) -> PurgeResult:
    """See `EntryStore.purge`. The server's write-ahead log and backups are not the engine's: docs/team.md says so."""
    engine.background.flush()  # what waits there may hold texts of these records
    result = engine.write(lambda transaction: _purge(transaction, list(dict.fromkeys(ids))))
    try:
        engine.vacuum(_VACUUMED)
    except StoreError as error:
        note = f"the tables still contain what was purged ({error.message}); run `mindex optimize`"
        return replace(result, erased=False, notes=(note,))
    return result


def _purge(transaction: Transaction, ids: list[str]) -> PurgeResult:
    transaction.lock_shared("entries")
    query = "SELECT DISTINCT agent, kind = 'chunk', owner FROM records WHERE id = ANY(%s)"
    for agent, is_chunk, owner in sorted(transaction.rows(query, ids)):
        transaction.lock_owner("collection" if is_chunk else "agent", owner if is_chunk else agent)
    result = remove_references(transaction, ids)
    found = transaction.rows("SELECT owner, id FROM records WHERE id = ANY(%s)", ids)
    record_rows.remove_rows(transaction, [owner for owner, _ in found], [id_ for _, id_ in found])
    transaction.write_counts()
    words.merge_counts(transaction)  # a word that no record holds any more
    return result
