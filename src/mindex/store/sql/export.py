"""Exporting entries, page by page, with history, links and vectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic

from mindex.datatypes import Change, Record
from mindex.store.export_rows import (
    Accesses,
    ExportRow,
    ExportSnapshot,
    Extraction,
    Link,
    by_program,
)
from mindex.store.results import Access
from mindex.store.sql.dialect import S
from mindex.store.sql.history import read_changes

if TYPE_CHECKING:
    from mindex.store.sql.engine import Engine

_PAGE = 50
_COUNT = "SELECT count(*) FROM records WHERE kind != 'chunk' AND agent $among"
_IDS = """
SELECT id FROM records WHERE kind != 'chunk' AND agent $among ORDER BY agent, number NULLS FIRST, id
"""
_LINKS = """
SELECT $source, b.id, l.kind, l.weight, l.created_at FROM $links JOIN records b ON b.$key = l.target
WHERE b.kind != 'chunk' AND $source $among ORDER BY l.kind, b.id
"""
_EXTRACTIONS = """
SELECT r.id, e.at, e.facts FROM extractions e JOIN records r ON r.$key = e.record
WHERE e.facts >= 0 AND r.kind = 'turn' AND r.id $among
"""
_ACCESSES = "SELECT r.id, a.count, a.last_at FROM accesses a JOIN records r ON r.$key = a.record WHERE r.id $among"
_NUMBERS = """
SELECT record, program, number FROM program_numbers WHERE record $among ORDER BY record, program, number
"""
_LOG = """
SELECT r.id, l.at, l.action, l.query, l.score FROM access_log l JOIN records r ON r.$key = l.record
WHERE r.id $among ORDER BY l.at, l.key
"""


class SqlExport(Generic[S]):
    """The export of one transaction, which is open while rows are read."""

    def __init__(self, engine: Engine[S], statements: S, *, vectors: bool, log: bool) -> None:
        self._engine = engine
        self._statements = statements
        self._with_vectors = vectors
        self._with_log = log

    def snapshot(self, agent: str) -> ExportSnapshot:
        """All entries of one agent or, for `*`, of all."""
        known = self._statements.column("SELECT DISTINCT agent FROM records WHERE kind != 'chunk'")
        agents = sorted(name for name in known if agent in ("*", name))
        total = sum(count for (count,) in self._statements.among(_COUNT, agents))
        last_number = self._engine.records.last_number(self._statements)
        return ExportSnapshot(dict.fromkeys(agents, last_number), total, self._rows(agents))

    def _rows(self, agents: Sequence[str]) -> Iterator[ExportRow]:
        ids = [id_ for (id_,) in self._statements.among(_IDS, agents)]
        for start in range(0, len(ids), _PAGE):
            page = ids[start : start + _PAGE]
            yield from self._past_damage(self._engine.records.read_records(self._statements, page, retired=True))

    def _past_damage(self, records: Sequence[Record]) -> Iterator[ExportRow]:
        """The rows of a page; where what belongs to a record cannot be read, the record alone."""
        what = "links, accesses or history of record {0.id}"
        read = self._statements.past_damage(
            lambda: self._read(records), lambda: records, lambda one: self._read([one]), what
        )
        found = {row.record.id: row for row in read}
        return (found.get(record.id) or ExportRow(record) for record in records)

    def _read(self, records: Sequence[Record]) -> list[ExportRow]:
        """The rows of a page: one query for each table, for a round trip for each record would take longer."""
        ids = [record.id for record in records]
        links = self._by_record(_LINKS, ids)
        log = self._by_record(_LOG, ids) if self._with_log else {}
        extractions = self._by_record(_EXTRACTIONS, ids)
        counted = self._by_record(_ACCESSES, ids)
        numbers = self._by_record(_NUMBERS, ids)
        history = self._history(ids)
        return [
            ExportRow(
                record,
                tuple(history.get(record.id, ())),
                tuple(Link(*link) for _, *link in links.get(record.id, ())),
                self._engine.records.read_exported_vectors(self._statements, record.id) if self._with_vectors else (),
                next((Extraction(*extraction) for _, *extraction in extractions.get(record.id, ())), None),
                accesses=next(
                    (
                        Accesses(count, last_at, tuple(Access(*row) for row in log.get(record.id, ())))
                        for _, count, last_at in counted.get(record.id, ())
                    ),
                    None,
                ),
                numbers=by_program((program, number) for _, program, number in numbers.get(record.id, ())),
            )
            for record in records
        ]

    def _by_record(self, query: str, ids: Sequence[str]) -> dict[str, list[Any]]:
        return _grouped((row[0], row) for row in self._statements.among(query, ids))

    def _history(self, ids: Sequence[str]) -> dict[str, list[Change]]:
        of = self._engine.dialect.among("record", ids)
        changes = read_changes(self._statements, of.sql, *of.parameters)
        return _grouped((change.record, change) for change in changes)


def _grouped(pairs: Iterable[tuple[str, Any]]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for id_, value in pairs:
        found.setdefault(id_, []).append(value)
    return found
