"""A connection to a SQLite file on which the SQL that the engines share is run."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from mindex.clock import DAY_MS
from mindex.store.record_json import decode_texts, encode
from mindex.store.sql.dialect import Dialect
from mindex.store.sqlite.queries import batches, marks
from mindex.store.sqlite.row_checksums import MALFORMED, Connection, note_damage, sound_rows

T = TypeVar("T")

_WORDS = {
    "key": "key",
    "record": "(SELECT key FROM records WHERE id = ?)",
    "order": "key",
    "document": "d.key = r.document",
    "collection": "c.key = d.collection",
    "chunk": "key = ?",
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
    "checksum": ", checksum",
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


class SqlConnection(Connection):
    """Implements `mindex.store.sql.statements.Statements`."""

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

    def sound(self, rows: Iterable[Sequence[Any]], name: str, decode: Callable[[Sequence[Any]], T]) -> Iterator[T]:
        for values in sound_rows(self, rows, name):
            try:
                yield decode(values)
            except MALFORMED:  # without a checksum: the page of another table in place of this one
                note_damage(self, name.format(values[0]))
