"""Removing records for good, from every table that names them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from mindex.datatypes import FROM, PurgeResult
from mindex.store.cache_kinds import TEXT_CACHES
from mindex.store.sql import caches
from mindex.store.sql.dialect import S

if TYPE_CHECKING:
    from mindex.store.sql.engine import Engine, Statements

_COUNT_VECTORS = "SELECT count(*) FROM vectors v WHERE $first(v) AND v.record $among"
_FACTS_OF_TURNS = """
SELECT DISTINCT b.id, b.$order FROM links l JOIN records a ON a.$key = l.source JOIN records b ON b.$key = l.target
WHERE l.kind = ? AND a.kind = 'turn' AND b.retired_at IS NULL AND l.source $among ORDER BY b.$order
"""
_FORGET_QUERIES = """
UPDATE access_log SET query = '' WHERE query != '' AND ($place_of(query, ?) > 0 OR $place_of(?, query) > 0)
"""
_REFERENCES = (
    ("access_log", "record"), ("accesses", "record"), ("extractions", "record"), ("links", "source"),
    ("links", "target"),
)  # fmt: skip


_OWNERS = """
SELECT DISTINCT r.agent, coalesce(c.name, '') FROM records r
LEFT JOIN documents d ON $document LEFT JOIN collections c ON $collection WHERE r.id $among
"""


def purge(engine: Engine[S], ids: Sequence[str]) -> PurgeResult:
    """See `EntryStore.purge`. What follows the transaction only cleans the storage: a failure there is a note."""
    engine.background.flush()  # what waits there may hold texts of these records
    unique = list(dict.fromkeys(ids))

    def remove(statements: S) -> PurgeResult:
        for agent, collection in sorted(statements.among(_OWNERS, unique)):  # in order: two never wait for each other
            statements.lock_owner("collection" if collection else "agent", collection or agent)
        result = _remove_references(statements, unique)
        engine.records.remove_rows(
            statements, list(statements.among("SELECT $place FROM records WHERE id $among", unique))
        )
        return result

    result = engine.write_entries(remove, durable=True)
    note = engine.erase()
    return replace(result, erased=False, notes=(note,)) if note else result


def _remove_references(statements: Statements, ids: Sequence[str]) -> PurgeResult:
    """Remove all that belongs to records but their rows, words and vectors."""
    found = list(statements.among("SELECT $key, text FROM records WHERE id $among", ids))
    keys = [key for key, _ in found]
    vectors = sum(count for (count,) in statements.among(_COUNT_VECTORS, keys))
    history = statements.run_many("DELETE FROM history WHERE record = ?", [(id_,) for id_ in ids])
    statements.defer_many("UPDATE synced_changes SET line = '' WHERE record = ?", [(id_,) for id_ in ids])
    facts = dict.fromkeys(id_ for id_, _ in statements.among(_FACTS_OF_TURNS, keys, FROM))
    statements.defer_many(_FORGET_QUERIES, [(text, text) for _, text in found])
    for table, column in _REFERENCES:
        statements.defer_many(f"DELETE FROM {table} WHERE {column} = ?", [(key,) for key in keys])
    caches.clear(statements, TEXT_CACHES)  # a text that is purged may be among them
    left = tuple(id_ for id_ in facts if id_ not in frozenset(ids))
    return PurgeResult(len(keys), vectors, history, facts=left)
