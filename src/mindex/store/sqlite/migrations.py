"""Migrates an empty or older file to the current schema, under the write lock and after a backup."""

import contextlib
import sqlite3
from collections.abc import Callable, Sequence

from mindex.analyzer import ANALYZER_VERSION
from mindex.clock import now_ms
from mindex.errors import ForeignDatabaseError, NoSpaceError, SchemaError
from mindex.ids import new_id
from mindex.store.sqlite.connection import Database
from mindex.store.sqlite.file_access import APPLICATION_ID, may_be_ours
from mindex.store.sqlite.file_guard import put_epoch
from mindex.store.sqlite.row_checksums import add_function
from mindex.store.sqlite.sql_connection import SqlConnection
from mindex.temporary_files import replaced_file

Migration = Callable[[SqlConnection], None]


def _create(connection: sqlite3.Connection) -> None:
    _run(connection, "schema.sql")
    connection.execute("INSERT INTO meta (key, value) VALUES ('analyzer', ?)", (str(ANALYZER_VERSION),))
    put_epoch(connection, new_id())
    add_function(connection)
    connection.execute("UPDATE meta SET checksum = row_checksum(key, value)")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


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


# The first makes a file as release 0.1.0 did; each of the others brings one to the next version. Never change one that
# was released: add another.
MIGRATIONS: tuple[Migration, ...] = (_create, _add_program_numbers, _replace_nul, _correct_tags)
_OLDEST = 9  # the version of 0.1.0
SCHEMA = _OLDEST - 1 + len(MIGRATIONS)
# How a file of 0.1.0 is read where it cannot be migrated because it is read-only: it lacks this table.
_PROGRAM_NUMBERS = """
CREATE TEMP VIEW program_numbers AS
SELECT '' AS program, '' AS kind, '' AS agent, 0 AS number, '' AS record, NULL AS checksum WHERE 0
"""
# mindex has no such things in a file: the sender of a file with one could change or keep what is stored later.
# What something is, its SQL says; SQLite does not compare the other columns with it, and always begins a SQL like this.
_PROGRAMS = """
SELECT CASE type WHEN 'view' THEN type ELSE 'trigger' END, name FROM sqlite_master
WHERE type NOT IN ('table', 'index') OR NOT (
    sql IS NULL OR sql GLOB 'CREATE TABLE *' OR sql GLOB 'CREATE VIRTUAL TABLE *' OR sql GLOB 'CREATE INDEX *'
    OR sql GLOB 'CREATE UNIQUE INDEX *'
) LIMIT 1
"""


def version_of(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(database: Database, migrations: Sequence[Migration] = MIGRATIONS) -> int:
    """Bring the file to the newest schema. Returns its version.

    Raises SchemaError for a newer file or one from before 0.1.0, ForeignDatabaseError for one of another program.
    """
    target = _OLDEST - 1 + len(migrations)
    with database.read() as connection:
        version = version_of(connection)
        _refuse_foreign(database, connection, version, target)
        if version == target:
            return version
    if database.read_only and version:
        database.prepare_readers((_PROGRAM_NUMBERS,) if version == _OLDEST else ())
        return version
    try:
        with database.write(durable=True) as connection:
            version = version_of(connection)  # another process may have been faster
            if 0 < version < target:
                _back_up(database, version)
            for new in range(max(version + 1, _OLDEST), target + 1):
                migrations[new - _OLDEST](connection)
                connection.execute(f"PRAGMA user_version = {new}")
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
    if 0 < version < _OLDEST:
        raise SchemaError(
            f"{database.path} was made by a mindex from before release 0.1.0 (schema {version})",
            "open it with mindex 0.1.0 first, or index and import again",
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
