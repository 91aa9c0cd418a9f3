"""Migrates an empty or older file to the current schema, under the write lock and after a backup."""

import contextlib
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial

from mindex.analyzer import ANALYZER_VERSION
from mindex.clock import now_ms
from mindex.errors import ForeignDatabaseError, NoSpaceError, SchemaError
from mindex.ids import new_id
from mindex.store.rules.changes import implied_batch
from mindex.store.sqlite.connection import Database
from mindex.store.sqlite.file_access import APPLICATION_ID, may_be_ours
from mindex.store.sqlite.file_guard import put_epoch
from mindex.store.sqlite.row_checksums import CHECKED, SINCE_CHECKSUMS, add_checksums, add_function
from mindex.store.sqlite.sql_connection import SqlConnection
from mindex.temporary_files import replaced_file

Migration = Callable[[SqlConnection], None]


def _create(connection: sqlite3.Connection) -> None:
    _run(connection, "schema.sql")
    connection.execute("INSERT INTO meta VALUES ('analyzer', ?)", (str(ANALYZER_VERSION),))
    put_epoch(connection, new_id())
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _add_batches(connection: sqlite3.Connection) -> None:
    _run(connection, "schema_3.sql")
    for number, *change in connection.execute("SELECT change, action, reason, by, at FROM history").fetchall():
        if batch := implied_batch(*change):
            connection.execute("UPDATE history SET batch = ? WHERE change = ?", (batch, number))


def _add_checksums(connection: sqlite3.Connection) -> None:
    _run(connection, "schema_8.sql")
    add_function(connection)
    add_checksums(connection, but=SINCE_CHECKSUMS)


def _add_program_numbers(connection: SqlConnection) -> None:
    from mindex.store.sqlite.corrections import put_former_numbers  # a file is brought up to date only once

    _run(connection, "schema_10.sql")
    put_former_numbers(connection)


def _replace_nul(connection: sqlite3.Connection) -> None:
    from mindex.store.sqlite.corrections import replace_nul  # a file is migrated only once

    replace_nul(connection)


def _correct_tags(connection: sqlite3.Connection) -> None:
    """Remove the tags that came from inline code. If there were any, opening rebuilds the keyword index."""
    from mindex.store.sqlite.corrections import remove_code_tags  # only an upgrade needs it

    if remove_code_tags(connection):
        connection.execute("UPDATE meta SET value = '1' WHERE key = 'analyzer'")


def _run(connection: sqlite3.Connection, script: str) -> None:
    from importlib import resources  # it brings in much, and a file is made only once

    for statement in _statements(resources.files("mindex.store.sqlite").joinpath(script).read_text(encoding="utf-8")):
        connection.execute(statement)


def _statements(script: str) -> list[str]:
    """`executescript` would commit the transaction we are in, so statements are run one by one."""
    statements, current = [], ""
    for line in script.splitlines(keepends=True):
        current += line
        if sqlite3.complete_statement(current):
            statements.append(current)
            current = ""
    return statements


# Migration n brings a file from version n to n + 1. Never change one that was released: add another.
MIGRATIONS: tuple[Migration, ...] = (
    _create,
    partial(_run, script="schema_2.sql"),
    _add_batches,
    partial(_run, script="schema_4.sql"),
    partial(_run, script="schema_5.sql"),
    partial(_run, script="schema_6.sql"),
    partial(_run, script="schema_7.sql"),
    _add_checksums,
    partial(_run, script="schema_9.sql"),
    _add_program_numbers,
    _replace_nul,
    _correct_tags,
)
# How a file of an older schema is read where it cannot be migrated because it is read-only: what each version lacks.
_LACKING = {
    3: {"history": "'' AS batch"},
    4: {"documents": "'[]' AS fields"},
    8: dict.fromkeys(CHECKED.keys() - SINCE_CHECKSUMS, "NULL AS checksum"),
}
_TOKENS = """
CREATE TEMP VIEW tokens AS
SELECT '' AS name, '' AS hash, '' AS agent, '' AS rights, '[]' AS collections, 0 AS created_at, 0 AS expires_at,
       NULL AS checksum WHERE 0
"""
_PROGRAM_NUMBERS = """
CREATE TEMP VIEW program_numbers AS
SELECT '' AS program, '' AS kind, '' AS agent, 0 AS number, '' AS record, NULL AS checksum WHERE 0
"""
_OLDEST_READ = 2
# mindex has no such things in a file: the sender of a file with one could change or keep what is stored later.
# What something is, its SQL says; SQLite does not compare the other columns with it, and always begins a SQL like this.
_PROGRAMS = """
SELECT CASE type WHEN 'view' THEN type ELSE 'trigger' END, name FROM sqlite_master
WHERE type NOT IN ('table', 'index') OR NOT (
    sql IS NULL OR sql GLOB 'CREATE TABLE *' OR sql GLOB 'CREATE VIRTUAL TABLE *' OR sql GLOB 'CREATE INDEX *'
    OR sql GLOB 'CREATE UNIQUE INDEX *'
) LIMIT 1
"""


def _read_only_views(version: int) -> tuple[str, ...]:
    """Temporary views that show the tables of an older file as the newest schema has them."""
    columns: dict[str, list[str]] = {}
    for since, lacking in _LACKING.items():
        for table, column in lacking.items() if version < since else ():
            columns.setdefault(table, []).append(column)
    if version < 7:  # nothing is synced from a file that cannot be written
        columns.pop("synced_changes", None)
    tables: tuple[str, ...] = () if version >= 6 or not columns.pop("tokens", None) else (_TOKENS,)
    tables += () if version >= 10 else (_PROGRAM_NUMBERS,)
    made = [f"CREATE TEMP VIEW {name} AS SELECT *, {', '.join(new)} FROM main.{name}" for name, new in columns.items()]
    return (*made, *tables)


def version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Bring the file to the newest schema. Returns its version.

    Raises SchemaError for a newer file, ForeignDatabaseError for one of another program.
    """
    target = len(migrations)
    with database.read() as connection:
        version = version_of(connection)
        _refuse_foreign(database, connection, version, target)
        if version == target:
            return version
    if database.read_only and version >= _OLDEST_READ:
        database.prepare_readers(_read_only_views(version))
        return version
    try:
        with database.write(durable=True) as connection:
            version = version_of(connection)  # another process may have been faster
            if 0 < version < target:
                _back_up(database, version)
            for step in range(version, target):
                migrations[step](connection)
                connection.execute(f"PRAGMA user_version = {step + 1}")
    except NoSpaceError as error:
        if not version:
            raise
        raise NoSpaceError(
            f"{database.path} was made by an older mindex, and there is no space left to bring it up to date",
            f"free about {-(-3 * database.path.stat().st_size // 2**20)} MB; the database is unchanged",
        ) from error
    return target


def _refuse_foreign(database: Database, connection: sqlite3.Connection, version: int, target: int) -> None:
    if not may_be_ours(connection):
        raise ForeignDatabaseError(f"{database.path} belongs to another program", "choose another --db")
    if found := connection.execute(_PROGRAMS).fetchone():
        raise ForeignDatabaseError(
            f"{database.path} holds a {found[0]} ({found[1]!r}) that mindex did not make: it could change entries",
            "remove it with another SQLite program, or restore a backup that you trust",
        )
    if version > target:
        raise SchemaError(
            f"{database.path} was written by a newer mindex (schema {version}, this one speaks {target})",
            "upgrade with `pip install -U mindex`",
        )


def _back_up(database: Database, version: int) -> None:
    """Copy the file as it is now; the caller holds the write lock, so nothing changes during the copy."""
    path = database.path.with_name(f"{database.path.name}.v{version}.{now_ms()}.bak")
    with (
        replaced_file(path) as file,
        database.read() as source,
        contextlib.closing(sqlite3.connect(file.name)) as target,
    ):
        source.backup(target)
