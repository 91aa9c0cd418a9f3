"""Removing records for good from PostgreSQL: from every table and every index."""

from collections.abc import Sequence
from dataclasses import replace

from mindex.datatypes import FROM, PurgeResult
from mindex.errors import StoreError
from mindex.store.engine_parts import TEXT_CACHES, caches
from mindex_postgres import record_rows, words
from mindex_postgres.connection import Transaction
from mindex_postgres.engine import PostgresEngine

_FACTS_OF_TURNS = """
SELECT b.id FROM links l JOIN records b ON b.id = l.target
WHERE l.kind = %s AND b.retired_at IS NULL AND l.source = ANY(%s)
GROUP BY b.id, b.seq ORDER BY b.seq
"""
_FORGET_QUERIES = """
UPDATE access_log l SET query = '' FROM unnest(%s::text[]) purged (text)
WHERE l.query != '' AND (strpos(purged.text, l.query) > 0 OR strpos(l.query, purged.text) > 0)
"""
_REFERENCES = (
    ("access_log", "record"), ("accesses", "record"), ("extractions", "record"), ("links", "source"),
    ("links", "target"),
)  # fmt: skip
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
    found = transaction.rows("SELECT owner, id, text, kind FROM records WHERE id = ANY(%s)", ids)
    present = [id_ for _, id_, _, _ in found]
    vectors = transaction.value("SELECT count(*) FROM vectors WHERE piece = 0 AND record = ANY(%s)", present)
    history = transaction.run("DELETE FROM history WHERE record = ANY(%s)", ids)
    transaction.run("UPDATE synced_changes SET line = '' WHERE record = ANY(%s)", ids)
    facts = transaction.column(_FACTS_OF_TURNS, FROM, [id_ for _, id_, _, kind in found if kind == "turn"])
    transaction.run(_FORGET_QUERIES, [text for _, _, text, _ in found])
    for table, column in _REFERENCES:
        transaction.run(f"DELETE FROM {table} WHERE {column} = ANY(%s)", present)
    record_rows.remove_rows(transaction, [owner for owner, _, _, _ in found], present)
    caches.clear(transaction, TEXT_CACHES)  # a text that is purged may be among them
    transaction.write_counts()
    words.merge_counts(transaction)  # a word that no record holds any more
    left = tuple(id_ for id_ in facts if id_ not in frozenset(ids))
    return PurgeResult(len(present), vectors, history, facts=left, erased=True)
