"""Where the tests of the command line, of the MCP server and of its dialects keep a memory: a file, or PostgreSQL.

`pytest --store=postgres` chooses the second, so that these tests run on both engines.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from mindex.store.open import open_store
from tests.postgres_server import PostgresServer


class Databases(Protocol):
    """Makes databases, each for one test or for the tests that share it."""

    def new(self, path: Path) -> str:
        """The path or URL of an empty database; SQLite makes the file when it is opened."""

    def copy(self, database: str, path: Path) -> str:
        """The path or URL of a copy of another database, to which nothing is being written."""

    def restore(self, database: str, source: str) -> None:
        """Give a database the content of another one."""

    def drop(self, database: str) -> None:
        """Remove a database that no test needs any more."""


class SqliteDatabases:
    """Files; they are removed with the folder."""

    def new(self, path: Path) -> str:
        return str(path)

    def copy(self, database: str, path: Path) -> str:
        self.restore(str(path), database)
        return str(path)

    def restore(self, database: str, source: str) -> None:
        for end in ("", "-wal"):
            Path(database + end).unlink(missing_ok=True)
            if Path(source + end).exists():
                shutil.copy(source + end, database + end)

    def drop(self, database: str) -> None:
        """Nothing: pytest removes the folder."""


class PostgresDatabases:
    """Databases of one server, made as copies of a template: 15 ms, where creating the tables takes 35."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server
        self._made = 0
        self._template = ""

    def new(self, path: Path) -> str:
        if not self._template:
            server = self._server
            server.run("CREATE DATABASE template_mindex")
            self._template = server.url(database="template_mindex")
            open_store(self._template).close()
        return self.copy(self._template, path)

    def copy(self, database: str, path: Path) -> str:  # noqa: ARG002 - the place of a file
        self._made += 1
        made = self._server.url(database=f"test_{os.getpid()}_{self._made}")
        self.restore(made, database)
        return made

    def restore(self, database: str, source: str) -> None:
        self.drop(database)
        # A template may have no connections. An idle one that is lost is replaced by the pool it belongs to.
        ended = f"SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{_name(source)}'"
        self._server.run(ended, f"CREATE DATABASE {_name(database)} TEMPLATE {_name(source)} STRATEGY file_copy")

    def drop(self, database: str) -> None:
        self._server.run(f"DROP DATABASE IF EXISTS {_name(database)} WITH (FORCE)")


def _name(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")
