"""A connection to a SQLite file on which the SQL that the engines share is run."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from mindex.clock import DAY_MS
from mindex.datatypes.administration import GrantKind
from mindex.store.record_json import decode_texts, encode
from mindex.store.results import ScoredRecord
from mindex.store.sql.dialect import Dialect
from mindex.store.sqlite.row_checksums import MALFORMED, checksum_of_texts, is_damage, is_sound

T = TypeVar("T")

# SQLite takes 32,766 parameters in one statement; far fewer keep its planner quick.
_BATCH = 500
# The length of a chunk's text is not needed, and would be read with all of the text.
_SCORED = """
SELECT r.key, r.id, r.kind, CASE r.kind WHEN 'chunk' THEN 0 ELSE length(r.text) END, d.collection
FROM records r LEFT JOIN documents d ON d.key = r.document WHERE r.key IN {marks}
"""


def scored_records(
    connection: SqlConnection,
    scores: Sequence[tuple[int, float, float]],
    collection_sizes: Mapping[int, int] | None = None,
) -> tuple[ScoredRecord, ...]:
    """The records with these keys that exist, in this order, with their scores and fluency.

    `collection_sizes` are by the keys of collections.
    """
    sizes = collection_sizes or {}
    known = {row[0]: row for row in connection.among(_SCORED, [key for key, _, _ in scores])}
    found = [(score, fluency, known[key]) for key, score, fluency in scores if key in known]
    return tuple(
        [
            ScoredRecord(id_, score, kind, length, fluency, sizes.get(collection, 0))
            for score, fluency, (_, id_, kind, length, collection) in found
        ]
    )


def batches(values: Iterable[T], size: int = _BATCH) -> Iterator[list[T]]:
    iterator = iter(values)
    while batch := list(islice(iterator, size)):
        yield batch


def marks(values: Sequence[object]) -> str:
    return f"({','.join('?' * len(values))})"


K = TypeVar("K")

_WORDS = {
    "key": "key",
    "record": "(SELECT key FROM records WHERE id = ?)",
    "place": "{}key",
    "order": "key",
    "document": "d.key = r.document",
    "collection": "c.key = d.collection",
    "chunk": "key = ?",
    "document_key": "id",
    "collection_key": "(SELECT key FROM collections WHERE name = ?)",
    "differs": "IS NOT",
    "beside": "{}.agent = a.agent",
    "unchanged": "r.id NOT IN (SELECT record FROM history WHERE at > ?)",
    "glob": "GLOB ?",
    "ending": "substr({}, -length(?)) = ?",
    "vector": "{}.record = r.key",
    "first": "TRUE",
    "session": "json_extract({}.fields, '$.session_id')",
    "property": "json_extract(fields, '$.' || ?)",
    "among": "IN {marks}",
    "checksum": ", {}checksum",
    "seal": ", ?",
    "each": "json_each({}) t",
    "links": "records a JOIN links l ON l.source = a.key",
    "source": "a.id",
    "first_summary": """(
        SELECT f.summary FROM records f WHERE f.kind = 'turn' AND f.retired_at IS NULL AND f.agent = r.agent
        AND json_extract(f.fields, '$.session_id') = json_extract(r.fields, '$.session_id')
        ORDER BY f.created_at, f.number LIMIT 1
    )""",
    # The first condition is that of the index `records_of_other_programs`: only imported records are looked through.
    "known_as": """json_extract(r.fields, '$.foreign_ids') IS NOT NULL AND EXISTS (
        SELECT 1 FROM json_tree(r.fields, '$.foreign_ids') f
        WHERE f.atom = wanted.id AND (wanted.program IN ('', f.key) OR EXISTS (
            SELECT 1 FROM json_tree(r.fields, '$.foreign_ids') list
            WHERE list.id = f.parent AND list.key = wanted.program
        ))
    )""",
    "contains": "LIKE ? ESCAPE '\\'",
    "by_code_point": "COLLATE BINARY",
    "unindexed": "+{}",
    "greatest": "max",
    "place_of": "instr",
    # The remainder makes it the day before, not the nearest to 0, for times before 1970.
    "day": f"({{}} - (({{}} % {DAY_MS}) + {DAY_MS}) % {DAY_MS}) / {DAY_MS}",
    "cache_key": "kind, key",
    "spaces": "models",
    "space": "model",
    "description": "settings",
}
DIALECT = Dialect(_WORDS, array=encode, texts=decode_texts, glob=str)
_spell = DIALECT.spell


class SqlConnection(sqlite3.Connection):
    """Implements `mindex.store.sql.engine.Statements`, and remembers which rows could not be read."""

    damaged: dict[str, None]  # names of rows, shared by all connections of a file

    def run(self, query: str, *values: object) -> int:
        return self.execute(_spell(query), values).rowcount

    def run_many(self, query: str, rows: Iterable[Sequence[object]]) -> int:
        return max(self.executemany(_spell(query), rows).rowcount, 0)

    def defer(self, query: str, *values: object) -> None:
        self.execute(_spell(query), values)

    def defer_many(self, query: str, rows: Iterable[Sequence[object]]) -> None:
        self.executemany(_spell(query), rows)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self.execute(_spell(query), values).fetchall()

    def row(self, query: str, *values: object) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self.execute(_spell(query), values).fetchone()
        return row

    def value(self, query: str, *values: object) -> Any:
        row = self.row(query, *values)
        return row[0] if row else None

    def column(self, query: str, *values: object) -> list[Any]:
        return [row[0] for row in self.execute(_spell(query), values)]

    def among(self, query: str, among: Iterable[object], *values: object) -> Iterator[tuple[Any, ...]]:
        """Its rows are read while the caller goes on; a statement takes some values only."""
        spelled = _spell(query)
        for batch in batches(among):
            yield from self.execute(spelled.replace("{marks}", marks(batch)), (*values, *batch))

    def note_damage(self, name: str) -> None:
        """Remember that a row was left out: `record 3k2j…`, `change 17`."""
        self.damaged[name] = None

    def sound_rows(self, rows: Iterable[Sequence[Any]], name: str, beside: int = 0) -> Iterator[Sequence[Any]]:
        """The rows that are as they were stored, without the checksum at their end; see `sound`."""
        for *values, stored in rows:
            if is_sound(values[beside:], stored):
                yield values
            else:
                self.note_damage(name.format(*values))

    def sound(
        self, rows: Iterable[Sequence[Any]], name: str, decode: Callable[[Sequence[Any]], T], *, beside: int = 0
    ) -> Iterator[T]:
        for values in self.sound_rows(rows, name, beside):
            try:
                yield decode(values)
            except MALFORMED:  # without a checksum: the page of another table in place of this one
                self.note_damage(name.format(*values))

    def past_damage(
        self, whole: Callable[[], list[T]], keys: Callable[[], Iterable[K]], one: Callable[[K], list[T]], name: str
    ) -> list[T]:
        try:
            return whole()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise
        found = []
        for key in keys():
            try:
                found += one(key)
            except sqlite3.DatabaseError as error:
                if not is_damage(error):
                    raise
                self.note_damage(name.format(key))
        return found

    def sealed(self, values: Sequence[object]) -> Sequence[object]:
        return (*values, checksum_of_texts(values))

    def lock_owner(self, scope: GrantKind, name: str) -> None:
        """Nothing: a SQLite file has one writer at a time."""

    def require_removed(self, gone: int, wanted: int, what: str) -> None:
        """Nothing: who may write a file may write all of it."""
