"""Make a database of another program, a file of JSON lines, and a line of a transcript."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

Rows = Sequence[Mapping[str, Any]]

DAY = 86_400_000
NOON = 1_772_366_400_000  # 2026-03-01T12:00:00Z


def fill(path: Path, schema: str, tables: Mapping[str, Rows], *, virtual: Mapping[str, str] | None = None) -> Path:
    """Make a database with these rows, as a program leaves it that uses a write-ahead log and closes it properly.

    `virtual` tables belong to extensions that are not installed: they are in the schema and cannot be read.
    """
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(schema)
    insert(connection, tables)
    if virtual:
        connection.execute("PRAGMA writable_schema = ON")
        connection.executemany("INSERT INTO sqlite_master VALUES ('table', ?1, ?1, 0, ?2)", virtual.items())
    connection.commit()
    connection.close()
    return path


def insert(connection: sqlite3.Connection, tables: Mapping[str, Rows]) -> None:
    for table, rows in tables.items():
        for row in rows:
            names, marks = ", ".join(row), ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO {table} ({names}) VALUES ({marks})", tuple(row.values()))


def lines(path: Path, *objects: Any) -> Path:
    """Write one JSON object a line; a text is written as it is."""
    text = "".join((one if isinstance(one, str) else json.dumps(one)) + "\n" for one in objects)
    path.write_text(text, encoding="utf-8")
    return path


def message(type_: str, content: Any, number: int = 1, **more: Any) -> dict[str, Any]:
    """A line of a Claude Code transcript."""
    return {
        "type": type_, "sessionId": "session-1", "uuid": f"uuid-{number}", "cwd": "/src/app", "isSidechain": False,
        "timestamp": "2026-03-01T12:00:00.123Z", "message": {"role": type_, "content": content}, **more,
    }  # fmt: skip
