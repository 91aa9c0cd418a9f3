"""Saves what can be read of a damaged SQLite file into a new one. The damaged file is never changed.

Every row that has its checksum is taken over with its key. An entry whose row is lost is made again from its last
change that is left. References to lost rows are dropped, and derived rows are made again.
"""

import contextlib
import json
import sqlite3
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mindex.clock import now_ms
from mindex.datatypes import Change, Progress, Report
from mindex.datatypes.reports import RepairedTable, RepairReport
from mindex.errors import ConflictError, NotFoundError
from mindex.private_files import make_private_folder
from mindex.store.rules.changes import is_as_last_changed
from mindex.store.sql.entry_statements import SqlEntryStatements
from mindex.store.sql.history import read_changes
from mindex.store.sqlite import record_rows, row_checksums
from mindex.store.sqlite.corrections import put_former_numbers, replace_nul
from mindex.store.sqlite.damaged_file import ScannedRow, open_source, row_name, scan_table
from mindex.store.sqlite.engine import rebuild_words
from mindex.store.sqlite.errors import refused_by_disk
from mindex.store.sqlite.health import JSON_COLUMNS
from mindex.store.sqlite.row_checksums import CHECKED, PRIMARY_KEYS
from mindex.store.sqlite.sql_connection import SqlConnection, batches
from mindex.store.sqlite.store import SqliteStore
from mindex.temporary_files import temporary_folder

_REPORT_EVERY = 500
# Tables whose first column is their rowid.
_KEYED_BY_RECORD = ("accesses", "extractions")
# Where a page of a table cannot be read, an index still names its rows.
_NAMED_BY_INDEX = {
    "records": "SELECT key, 'record ' || id FROM main.records INDEXED BY sqlite_autoindex_records_1 WHERE id > ''",
    "documents": "SELECT key, 'file ' || id FROM main.documents INDEXED BY sqlite_autoindex_documents_1 WHERE id > ''",
    "history": "SELECT change, 'change ' || change FROM main.history INDEXED BY history_by_record WHERE record > ''",
}
_WITHOUT_ROW = "SELECT record, max(change) FROM history WHERE record NOT IN (SELECT id FROM records) GROUP BY record"
# Rows that name others, and the rows that they name; the order matters: a document goes before its chunks.
_NAMED_ROWS = (
    ("documents", "collection", "collections", "key"),
    ("records", "document", "documents", "key"),
    ("vectors", "model", "models", "key"),
    ("vectors", "record", "records", "key"),
    ("links", "source", "records", "key"),
    ("links", "target", "records", "key"),
    ("access_log", "record", "records", "key"),
    ("accesses", "record", "records", "key"),
    ("extractions", "record", "records", "key"),
)
# Rows of `meta` that the new file has already.
_OF_EACH_FILE = ("analyzer", "epoch", "postings")
_SPACE = """
INSERT INTO meta (key, value) SELECT 'space', fingerprint FROM models
WHERE key = (SELECT model FROM vectors GROUP BY model ORDER BY count(*) DESC LIMIT 1)
AND NOT EXISTS (SELECT 1 FROM meta WHERE key = 'space')
"""


def salvage(source: Path, target: Path, report: Report | None = None) -> RepairReport:
    """Save what can be read of a file into a new one. Returns what was read, saved and lost, table by table.

    Raises NotFoundError when the file is not there, ConflictError when the new one is, and StoreError when nothing of
    it can be read: its header, or the list of its tables, is damaged.
    """
    if not source.is_file():
        raise NotFoundError(f"there is no database {source}", "check the path")
    if target.exists():
        raise ConflictError(f"{target} exists already", "name a new file")
    make_private_folder(target.absolute().parent)
    with (
        refused_by_disk(target),
        temporary_folder(target.name, target.absolute().parent) as folder,
    ):
        made = folder / "new.db"
        SqliteStore(made).close()
        with (
            open_source(source, folder) as damaged,
            contextlib.closing(sqlite3.connect(made, factory=SqlConnection)) as connection,
        ):
            connection.damaged = {}
            run = _Run(damaged, connection, report or (lambda _: None))
            run.copy()
            replace_nul(connection)
            run.mend()
        sound = _finish(made)
        if target.exists():
            raise ConflictError(f"{target} was created in the meantime", "name a file that does not exist")
        made.rename(target)
    return RepairReport(str(source), str(target), run.tables(), run.recovered, sound, tuple(run.notes))


def _finish(path: Path) -> bool:
    """Pack the vectors and merge the indexes; whether everything is sound then."""
    store = SqliteStore(path)
    try:
        store.maintenance.optimize()
        return all(check.ok for check in (*store.maintenance.check(), *store.maintenance.check_deep()))
    finally:
        store.close()


@dataclass(slots=True)
class _Table:
    read: int = 0
    saved: int = 0
    lost: dict[Any, str] = field(default_factory=dict)  # key → name
    strays: Counter[str] = field(default_factory=Counter)  # rows that went because another one is lost

    def names(self) -> tuple[str, ...]:
        return (*self.lost.values(), *(f"{count} {name}" for name, count in self.strays.items()))


class _Run:
    """Copies the rows of one file into another, and counts."""

    def __init__(self, source: sqlite3.Connection, target: SqlConnection, report: Report) -> None:
        self._source = source
        self._target = target
        self._report = report
        self._tables = {table: _Table() for table in CHECKED}
        self._keys: dict[str, int] = {}  # of records, by id, as far as they are known
        self._done = 0
        self.recovered: tuple[str, ...] = ()
        self.notes: list[str] = []
        row_checksums.watch_writes(target)

    def tables(self) -> tuple[RepairedTable, ...]:
        """What became of every table that had rows."""
        return tuple(
            RepairedTable(table, one.read, one.saved, len(one.lost) + one.strays.total(), one.names())
            for table, one in self._tables.items()
            if one.read or one.lost
        )

    # ── copying ───────────────────────────────────────────────────────────────────────────────────────────────

    def copy(self) -> None:
        """Take over every row that is as it was stored."""
        for table in CHECKED:
            with self._target:
                self._copy_table(table)
        for table, query in _NAMED_BY_INDEX.items():
            if self._tables[table].lost:
                self._name_by_index(table, query)

    def _copy_table(self, table: str) -> None:
        counts = self._tables[table]
        for row in scan_table(self._source, table):
            if row.key is not None:
                counts.read += 1
            if table == "records" and row.values.get("id"):
                self._keys[str(row.values["id"])] = row.key
            if row.sound and _is_readable(table, row) and self._insert(table, row):
                counts.saved += 1
            else:
                counts.lost[row.key if row.key is not None else f"gap {len(counts.lost)}"] = row_name(table, row)
            self._done += 1
            if self._done % _REPORT_EVERY == 0:
                self._report(Progress("repair", self._done, self._done))

    def _insert(self, table: str, row: ScannedRow) -> bool:
        values = row.values
        if table == "meta" and values["key"] in _OF_EACH_FILE:
            return True
        if table == "models":
            values = {**values, "packed_seq": 0}
        names = [*values, "checksum"]
        bound = [
            *values.values(),
            row_checksums.checksum(values.values()) if len(values) == len(CHECKED[table]) else None,
        ]
        if table not in PRIMARY_KEYS and table not in _KEYED_BY_RECORD:
            names, bound = ["rowid", *names], [row.key, *bound]
        marks = ", ".join("?" * len(names))
        try:
            self._target.execute(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", bound)
        except (sqlite3.DatabaseError, UnicodeEncodeError):  # a value that is missing, or the same one twice
            return False
        return True

    def _name_by_index(self, table: str, query: str) -> None:
        """Name the rows that were on pages which cannot be read."""
        counts = self._tables[table]
        saved = set(self._target.column(f"SELECT rowid FROM {table}"))
        with contextlib.suppress(sqlite3.DatabaseError, UnicodeDecodeError):
            for key, name in self._source.execute(query):
                if key not in saved:
                    counts.read += key not in counts.lost
                    counts.lost[key] = name
                    if table == "records":
                        self._keys.setdefault(name.removeprefix("record "), key)
        for gap in [key for key in counts.lost if isinstance(key, str) and key.startswith("gap ")]:
            if any(not isinstance(key, str) for key in counts.lost):  # its rows have names now
                del counts.lost[gap]

    # ── mending ───────────────────────────────────────────────────────────────────────────────────────────────

    def mend(self) -> None:
        """Make lost entries again from their history, drop references to lost rows, and rebuild derived rows."""
        with self._target:
            self._recover_entries()
            self._drop_strays()
            self._complete_history()
            self._number_entries()
            self._target.execute(_SPACE)
            rebuild_words(self._target)
            record_rows.rebuild_names(self._target)
        if self._tables["collections"].lost:
            self.notes.append("run `mindex index DIR` for every folder whose collection is lost")
        if self._tables["documents"].names() or self._tables["records"].names():
            with self._target:  # the next index run reads every file again, and keeps the chunks that are there
                self._target.execute("UPDATE documents SET fingerprint = '', size = -1, mtime_ns = 0")
            self.notes.append("run `mindex index` with the new database: it restores lost chunks from their files")
        if self._tables["vectors"].names():
            self.notes.append("run `mindex backfill` with the new database: it embeds records without a vector")

    def _recover_entries(self) -> None:
        lost = self._tables["records"].lost
        recovered = []
        for id_, number in self._target.execute(_WITHOUT_ROW).fetchall():
            (change,) = read_changes(self._target, "change = ?", number)
            key = self._keys.get(id_)
            if key is None or self._target.value("SELECT 1 FROM records WHERE key = ?", key):
                key = self._target.value("SELECT coalesce(max(key), 0) + 1 FROM records")
            try:
                record_rows.insert_row(self._target, key, change.after)
            except sqlite3.IntegrityError:  # its number belongs to another one
                continue
            if self._tables["records"].lost.pop(self._keys.get(id_), None) is None:
                self._drop_name(lost, id_)
            self._tables["records"].saved += 1
            recovered.append(id_)
        self.recovered = tuple(recovered)
        stray = self._target.execute("DELETE FROM history WHERE record NOT IN (SELECT id FROM records)").rowcount
        self._count_strays("history", stray, "without their entry")

    @staticmethod
    def _drop_name(lost: dict[Any, str], id_: str) -> None:
        for key in [key for key, name in lost.items() if name == f"record {id_}"]:
            del lost[key]

    def _drop_strays(self) -> None:
        for table, column, parent, key in _NAMED_ROWS:
            query = f"DELETE FROM {table} WHERE {column} IS NOT NULL AND {column} NOT IN (SELECT {key} FROM {parent})"
            self._count_strays(table, self._target.execute(query).rowcount, f"without their {column}")

    def _count_strays(self, table: str, count: int, name: str) -> None:
        counts = self._tables[table]
        counts.saved -= count
        if count:
            counts.strays[name] += count

    def _complete_history(self) -> None:
        """Say in the history of an entry where changes of it are lost."""
        ids = self._target.column("SELECT id FROM records WHERE kind != 'chunk' ORDER BY key")
        statements = SqlEntryStatements(record_rows, self._target)
        for batch in batches(ids):
            for record in record_rows.read_records(self._target, batch, retired=True):
                changes = read_changes(self._target, "record = ?", record.id)
                if not (changes and is_as_last_changed(record, changes)):
                    last = changes[-1].after if changes else None
                    reason = "changes before this one were damaged"
                    statements.append_change(Change(0, record.id, now_ms(), "mindex", "repair", reason, last, record))

    def _number_entries(self) -> None:
        highest = self._target.value("SELECT coalesce(max(number), 0) FROM records")
        record_rows.put_last_number(self._target, max(record_rows.last_number(self._target), highest))
        if not self._tables["program_numbers"].read:  # of a file that an older version made
            put_former_numbers(self._target)


def _is_readable(table: str, row: ScannedRow) -> bool:
    """Whether lists and objects of a row can be read: without a checksum, nothing else tells."""
    try:
        for column in JSON_COLUMNS.get(table, ()):
            if (value := row.values.get(column)) not in (None, ""):
                json.loads(value)
    except (ValueError, TypeError):
        return False
    return True
