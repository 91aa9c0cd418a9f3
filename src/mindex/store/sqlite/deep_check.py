"""Checks that read all of a SQLite file: every row against its checksum, and what is derived against its source."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import TYPE_CHECKING

from mindex.analyzer import COLUMNS, analyze_record, fold
from mindex.datatypes import Check, Progress, Report
from mindex.errors import NoSpaceError, StoreError
from mindex.optional_packages import missing_packages
from mindex.store.damage_notes import REPAIR, first_names
from mindex.store.rules.changes import is_as_last_changed
from mindex.store.sql.history import read_changes
from mindex.store.sqlite import record_rows
from mindex.store.sqlite.damaged_file import row_name, scan_table
from mindex.store.sqlite.row_checksums import CHECKED, MALFORMED
from mindex.store.sqlite.sql_connection import SqlConnection, batches

if TYPE_CHECKING:
    from mindex.store.sqlite.engine import SqliteEngine

_MAX_PROBLEMS = 100
_REPORT_EVERY = 500
_REBUILD = "run `mindex optimize`"
JSON_COLUMNS = {
    "records": ("tags", "entities", "fields"), "history": ("before", "after"), "collections": ("exclude",),
    "documents": ("tags", "links", "fields"), "models": ("settings",), "tokens": ("collections",),
}  # fmt: skip
_WITHOUT_RECORD = "SELECT DISTINCT record FROM history WHERE record NOT IN (SELECT id FROM records)"
_LIVE_KEYS = "SELECT key, id FROM records WHERE retired_at IS NULL ORDER BY key"
_TOKENS = f"SELECT rowid, {', '.join(COLUMNS)} FROM records_fts WHERE rowid BETWEEN ? AND ?"


def deep_checks(engine: SqliteEngine, report: Report | None) -> tuple[Check, ...]:
    """Every check; one that cannot be made because the file is damaged says so instead of raising."""
    with engine.database.read() as connection:
        run = _Run(connection, report)
        named: dict[str, Callable[[], Check]] = {
            "all pages": run.pages,
            "all rows": run.rows,
            "all values": run.json_values,
            "references": run.references,
            "history": run.history,
            "words of all records": run.words,
            "tags and names": run.names,
        }
        if not missing_packages():
            named["packed vectors"] = lambda: _packed_vectors(engine, connection)
        found = [_made(name, check) for name, check in named.items()]
    if not engine.database.read_only:
        with suppress(NoSpaceError):  # then it is left out, as where the file is read-only
            found.append(_made("keyword index, inside", lambda: _keyword_index(engine)))
    return tuple(found)


def _made(name: str, check: Callable[[], Check]) -> Check:
    try:
        return check()
    except NoSpaceError:
        raise
    except (sqlite3.DatabaseError, StoreError, *MALFORMED) as error:
        return Check(name, False, " ".join(str(error).split()), REPAIR)


class _Run:
    """The checks that read through one connection, and how far they are."""

    def __init__(self, connection: SqlConnection, report: Report | None) -> None:
        self._connection = connection
        self._report = report
        self._done = self._total = 0

    def _advance(self, rows: int = 1) -> None:
        self._done += rows
        if self._report is not None and (self._done % _REPORT_EVERY < rows or self._done >= self._total):
            self._report(Progress("check", self._done, max(self._done, self._total)))

    def pages(self) -> Check:
        """SQLite's own check: the structure of every page, and every index against its table."""
        for table in CHECKED:
            self._total += self._connection.value(f"SELECT count(*) FROM {table}")
        self._total += 2 * self._connection.value("SELECT count(*) FROM records")  # history and words
        problems = self._connection.column(f"PRAGMA integrity_check({_MAX_PROBLEMS})")
        ok = problems == ["ok"]
        message = "every page and index is sound" if ok else _first([" ".join(one.split()) for one in problems])
        return Check("all pages", ok, message, REPAIR)

    def rows(self) -> Check:
        """Every row has the checksum that it was stored with."""
        damaged: list[str] = []
        count = unchecked = 0
        for table in CHECKED:
            for row in scan_table(self._connection, table):
                count += 1
                unchecked += row.unchecked
                if not row.sound:
                    damaged.append(row_name(table, row))
                self._advance()
        if damaged:
            return Check("all rows", False, f"{len(damaged)} damaged: {_first(damaged)}", REPAIR)
        if unchecked:
            return Check("all rows", False, f"{unchecked} rows were written by another program", _REBUILD)
        return Check("all rows", True, f"{count:,} rows are as they were stored")

    def json_values(self) -> Check:
        """Lists and objects can be read."""
        bad = []
        for table, columns in JSON_COLUMNS.items():
            for column in columns:
                query = f"SELECT count(*) FROM {table} WHERE {column} != '' AND NOT json_valid({column})"
                if count := self._connection.value(query):
                    bad.append(f"{count} of {table}.{column}")
        return Check("all values", not bad, f"not readable: {_first(bad)}" if bad else "all values can be read", REPAIR)

    def references(self) -> Check:
        """Check that everything that a row names exists."""
        stray = [f"{table} → {parent}" for table, _, parent, _ in self._connection.execute("PRAGMA foreign_key_check")]
        stray += (f"history of {id_}" for id_ in self._connection.column(_WITHOUT_RECORD))
        highest = self._connection.value("SELECT coalesce(max(number), 0) FROM records")
        given = self._connection.value("SELECT value FROM meta WHERE key = 'number'")
        if given is not None and int(given) < highest:
            stray.append(f"entry #{highest} is above the last number, {given}")
        message = f"{len(stray)} lead nowhere: {_first(stray)}" if stray else "every reference leads somewhere"
        return Check("references", not stray, message, REPAIR)

    def history(self) -> Check:
        """An entry is as its last change left it."""
        different = []
        ids = self._connection.column("SELECT id FROM records WHERE kind != 'chunk' ORDER BY key")
        for batch in batches(ids):
            for record in record_rows.read_records(self._connection, batch, retired=True):
                changes = read_changes(self._connection, "record = ?", record.id)
                if not is_as_last_changed(record, changes):
                    different.append(record.id)
            self._advance(len(batch))
        message = f"{len(different)} entries differ from their last change: {_first(different)}" if different else ""
        return Check("history", not different, message or "every entry is as its last change left it", REPAIR)

    def words(self) -> Check:
        """Every record is analysed again and compared with what the keyword index holds."""
        different = count = 0
        for batch in batches(self._connection.execute(_LIVE_KEYS)):
            stored = {key: tuple(row) for key, *row in self._connection.execute(_TOKENS, (batch[0][0], batch[-1][0]))}
            keys = {id_: key for key, id_ in batch}
            for record in record_rows.read_records(self._connection, [*keys]):
                different += stored.get(keys[record.id]) != tuple(analyze_record(record))
            count += len(batch)
            self._advance(len(batch))
        return Check("words of all records", not different, f"{count:,} analysed again, {different} differ", _REBUILD)

    def names(self) -> Check:
        """Tags and entities are those of their records."""
        different = 0
        for table, column in (("tags", "tag"), ("entities", "entity")):
            stored = set(self._connection.execute(f"SELECT record, {column} FROM {table}"))
            listed = self._connection.execute(f"SELECT r.key, j.value FROM records r, json_each(r.{table}) j")
            different += len(stored ^ {(key, fold(name)) for key, name in listed})
        return Check("tags and names", not different, f"{different} differ from their records", _REBUILD)


def _keyword_index(engine: SqliteEngine) -> Check:
    """FTS5's own check of its index against the tokens: it is a command, so it needs a transaction that may write."""
    with engine.write_transaction() as connection:
        connection.execute("INSERT INTO records_fts (records_fts) VALUES ('integrity-check')")
    return Check("keyword index, inside", True, "every token leads to its records")


def _packed_vectors(engine: SqliteEngine, connection: SqlConnection) -> Check:
    """What a process loads at its start is what the vectors themselves give."""
    different = engine.vectors.differing_spaces(connection)
    message = f"those of {_first(different)} differ from the vectors" if different else "they are those of the vectors"
    return Check("packed vectors", not different, message, _REBUILD)


def _first(names: Iterable[str]) -> str:
    return first_names(tuple(names))
