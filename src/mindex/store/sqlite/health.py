"""Checks of a SQLite file, and the repair of its vectors."""

from __future__ import annotations

import shlex
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from random import choice
from typing import TYPE_CHECKING

from mindex.analyzer import COLUMNS, analyze_record, fold
from mindex.datatypes import Check, Progress, Report, Term
from mindex.errors import NoSpaceError, StoreError
from mindex.optional_packages import missing_packages
from mindex.private_files import is_public
from mindex.store.damage_notes import REPAIR, first_names
from mindex.store.rules.changes import is_as_last_changed
from mindex.store.sql.checks import OPTIMIZE, SAMPLE, sample_check, vectors_check, words_check
from mindex.store.sql.history import read_changes
from mindex.store.sqlite import record_rows
from mindex.store.sqlite.damaged_file import row_name, scan_table
from mindex.store.sqlite.file_guard import log_is_older, logs_set_aside
from mindex.store.sqlite.filter_sql import match_expression
from mindex.store.sqlite.postings import LAST_CHANGE, SEQ, has_postings
from mindex.store.sqlite.row_checksums import CHECKED, MALFORMED
from mindex.store.sqlite.sql_connection import SqlConnection, batches
from mindex.temporary_files import left_behind

if TYPE_CHECKING:
    from mindex.store.sqlite.engine import SqliteEngine

_COUNT_WITHOUT_WORDS = """
SELECT count(*) FROM records WHERE retired_at IS NULL AND key NOT IN (SELECT id FROM records_fts_docsize)
"""
_COUNT_STRAY_WORDS = """
SELECT count(*) FROM records_fts_docsize WHERE id NOT IN (SELECT key FROM records WHERE retired_at IS NULL)
"""
_STRAY_VECTORS = "record NOT IN (SELECT key FROM records WHERE retired_at IS NULL)"
_BROKEN_VECTORS = """
length(data) = 0 OR length(data) % (4 * (SELECT dimensions FROM models m WHERE m.key = model)) != 0
"""


def checks(connection: SqlConnection) -> tuple[Check, ...]:
    """Every check; one that cannot even be made because the file is damaged says so instead of raising."""
    named = {"file": _integrity, "keyword index": _words, "vectors": _vectors, "words of a sample": _tokens}
    if has_postings(connection) and not missing_packages():  # they are arrays of numpy
        named["posting lists"] = _postings
    found = []
    for name, check in named.items():
        try:
            found.append(check(connection))
        except sqlite3.DatabaseError as error:
            found.append(Check(name, False, str(error), REPAIR))
    return tuple(found)


def access_check(path: Path) -> Check:
    """Whether other users of this machine are kept out of the file and of those that SQLite has beside it."""
    beside = [path.with_name(f"{path.name}{suffix}") for suffix in ("", "-wal", "-shm")]
    public = [str(file.absolute()) for file in beside if is_public(file)]
    message = f"every user of this machine may open {path.absolute()}" if public else "other users cannot open the file"
    return Check("access", not public, message, f"chmod 600 {' '.join(map(shlex.quote, public))}")


def log_checks(path: Path, connection: SqlConnection) -> tuple[Check, ...]:
    """What is wrong with the write-ahead log, as far as it is known; empty if all is well."""
    found = []
    if log_is_older(path, connection):
        message = f"the write-ahead log beside {path.absolute()} is older than the file: it belongs to another copy"
        advice = "put a backup in its place with `mindex restore-backup FILE`"
        found.append(Check("write-ahead log", False, message, advice))
    for file in logs_set_aside(path.absolute()):
        message = f"{file} holds what was last stored in a file that was moved away or replaced"
        advice = "remove it if nothing is missed, or rename it to FILE-wal beside that file"
        found.append(Check("write-ahead log", False, message, advice))
    return tuple(found)


def history_checks(connection: SqlConnection) -> tuple[Check, ...]:
    """Changes that are not as they were stored, which no search reads; nothing where all are."""
    try:
        damaged = tuple(row_name("history", row) for row in scan_table(connection, "history") if not row.sound)
    except sqlite3.DatabaseError as error:
        return (Check("changes", False, str(error), REPAIR),)
    if not damaged:
        return ()
    return (Check("changes", False, f"{len(damaged)} are damaged: {first_names(damaged)}", REPAIR),)


def leftover_checks(path: Path) -> tuple[Check, ...]:
    """Temporary files beside the database whose processes were killed; empty if there are none."""
    advice = "remove it, or run `mindex optimize`, which removes those of mindex 0.1.0 only when they are a day old"
    return tuple(
        Check("temporary file", False, f"{file} was left behind by a killed process and may contain entries", advice)
        for file in left_behind(path.absolute().parent)
    )


def _integrity(connection: SqlConnection) -> Check:
    result = connection.value("PRAGMA quick_check(1)")
    message = "the file is sound" if result == "ok" else " ".join(str(result).split())
    return Check("file", result == "ok", message, REPAIR)


def _words(connection: SqlConnection) -> Check:
    """Every live record is in the keyword index, and nothing else is."""
    lacking = connection.value(_COUNT_WITHOUT_WORDS)
    stray = connection.value(_COUNT_STRAY_WORDS)
    return words_check(lacking, stray)


def _vectors(connection: SqlConnection) -> Check:
    stray = connection.value(f"SELECT count(*) FROM vectors WHERE {_STRAY_VECTORS}")
    broken = connection.value(f"SELECT count(*) FROM vectors WHERE {_BROKEN_VECTORS}")
    return vectors_check(stray, broken)


def _postings(connection: SqlConnection) -> Check:
    """Some words are looked up in the posting lists, and by FTS5."""
    from mindex.store.sqlite import posting_index  # numpy, which the other checks do without

    lists = posting_index.load(connection, connection.value(SEQ))
    lists.catch_up(connection, connection.value(LAST_CHANGE))
    texts = connection.column("SELECT text FROM records_fts ORDER BY random() LIMIT ?", SAMPLE // 10)
    words = sorted({choice(words) for text in texts if (words := text.split())})
    different = 0
    for word in words:
        query = "SELECT rowid FROM records_fts WHERE records_fts MATCH ? ORDER BY rowid"
        found = lists.keys[lists.holders(connection, word)].tolist()
        different += sorted(found) != connection.column(query, match_expression(Term(word)))
    message = f"{len(words)} words looked up, {different} are in other records than the keyword index says"
    return Check("posting lists", not different, message, OPTIMIZE)


def drop_unusable_vectors(connection: SqlConnection) -> None:
    """Vectors without a record or of a wrong length; their records are pending then, and embedded again."""
    query = f"DELETE FROM vectors WHERE {_STRAY_VECTORS} OR {_BROKEN_VECTORS} RETURNING record"
    record_rows.note_changes(connection, connection.column(query))


def _tokens(connection: SqlConnection) -> Check:
    """A sample of records is analysed again and compared with what the index holds."""
    sample = "SELECT id FROM records WHERE retired_at IS NULL ORDER BY random() LIMIT ?"
    ids = connection.column(sample, SAMPLE)
    different = 0
    for record in record_rows.read_records(connection, ids):
        row = connection.execute(
            f"SELECT {', '.join(COLUMNS)} FROM records_fts WHERE rowid = (SELECT key FROM records WHERE id = ?)",
            (record.id,),
        ).fetchone()
        different += row != analyze_record(record)
    return sample_check(len(ids), different)


# ── checks that read everything: every row against its checksum, and what is derived against its source ───────

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
