"""Migrates an empty or older file to the current schema, under the write lock and after a backup."""

import contextlib
import sqlite3
from collections.abc import Callable, Sequence

from mindex.analyzer import ANALYZER_VERSION
from mindex.clock import now_ms
from mindex.errors import ForeignDatabaseError, SchemaError
from mindex.store.rules.undo_batch_ids import implied_batch
from mindex.store.sqlite.connection import APPLICATION_ID, Database, may_be_ours

Migration = Callable[[sqlite3.Connection], None]


def _create(connection: sqlite3.Connection) -> None:
    _run(connection, "schema.sql")
    connection.execute("INSERT INTO meta VALUES ('analyzer', ?)", (str(ANALYZER_VERSION),))
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")


def _add_spaces(connection: sqlite3.Connection) -> None:
    _run(connection, "schema_2.sql")


def _add_batches(connection: sqlite3.Connection) -> None:
    _run(connection, "schema_3.sql")
    for number, *change in connection.execute("SELECT change, action, reason, by, at FROM history").fetchall():
        if batch := implied_batch(*change):
            connection.execute("UPDATE history SET batch = ? WHERE change = ?", (batch, number))


def _add_document_fields(connection: sqlite3.Connection) -> None:
    _run(connection, "schema_4.sql")


def _add_foreign_ids(connection: sqlite3.Connection) -> None:
    _run(connection, "schema_5.sql")


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
MIGRATIONS: tuple[Migration, ...] = (_create, _add_spaces, _add_batches, _add_document_fields, _add_foreign_ids)
# How a file of an older schema is read where it cannot be migrated because it is read-only.
_DOCUMENTS = "CREATE TEMP VIEW documents AS SELECT *, '[]' AS fields FROM main.documents"
_HISTORY = "CREATE TEMP VIEW history AS SELECT *, '' AS batch FROM main.history"
_READ_ONLY_VIEWS: dict[int, tuple[str, ...]] = {2: (_HISTORY, _DOCUMENTS), 3: (_DOCUMENTS,), 4: ()}


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
    if database.read_only and version in _READ_ONLY_VIEWS:
        database.prepare_readers(_READ_ONLY_VIEWS[version])
        return version
    with database.write(durable=True) as connection:
        version = version_of(connection)  # another process may have been faster
        if 0 < version < target:
            _back_up(database, version)
        for step in range(version, target):
            migrations[step](connection)
            connection.execute(f"PRAGMA user_version = {step + 1}")
    return target


def _refuse_foreign(database: Database, connection: sqlite3.Connection, version: int, target: int) -> None:
    if not may_be_ours(connection):
        raise ForeignDatabaseError(f"{database.path} belongs to another program", "choose another --db")
    if version > target:
        raise SchemaError(
            f"{database.path} was written by a newer mindex (schema {version}, this one speaks {target})",
            "upgrade with `pip install -U mindex`",
        )


def _back_up(database: Database, version: int) -> None:
    """Copy the file as it is now; the caller holds the write lock, so nothing changes meanwhile."""
    path = database.path.with_name(f"{database.path.name}.v{version}.{now_ms()}.bak")
    try:
        with database.read() as source, contextlib.closing(sqlite3.connect(path)) as target:
            source.backup(target)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
