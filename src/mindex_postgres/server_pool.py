"""The connections to one PostgreSQL server, in a pool."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from mindex.errors import ConfigError, StoreBusyError, StoreError
from mindex_postgres.address import Address
from mindex_postgres.errors import connection_error, has_no_connection_left

T = TypeVar("T")

# After this time without a reply, the server is asked whether it still works on a statement. A transaction begins
# within this time on a connection that works.
SILENCE_SECONDS = 5.0
# After an answer that raises doubt it is asked again at once: the answer may have arrived in the meantime.
_DOUBT_SECONDS = 0.1
_MAX_DOUBTS = 2


class LiveConnection(psycopg.Connection[Any]):
    """A connection on which every statement ends, also if its answer never comes.

    Keepalives end a connection whose other end is gone. Where a proxy acknowledges them, or a network drops the
    answers, only the client can notice: after some silence it asks the server, on another connection, whether it still
    works on the statement. So a long statement may take its time, and a lost one ends within seconds.

    `limit` bounds each statement, in seconds. `works` asks the server whether it still works on the statement.
    """

    limit = SILENCE_SECONDS
    works: Callable[[], bool] | None = None  # raises psycopg.Error or StoreError if the server cannot be asked
    is_silent = False  # whether it was closed because an answer did not come
    born = 0.0

    def wait(self, gen: Generator[Any, Any, T], *arguments: Any, **options: Any) -> T:
        return super().wait(self._bounded(gen), *arguments, **options)

    def _bounded(self, gen: Generator[Any, Any, T]) -> Generator[Any, Any, T]:
        """Make the same steps, with a look at the time whenever nothing has arrived for a tenth of a second."""
        started = asked = time.monotonic()
        pause, doubts = SILENCE_SECONDS, 0
        try:
            waits_for = next(gen)
            while True:
                ready = yield waits_for
                if not ready and (now := time.monotonic()) - asked >= pause:
                    if now - started >= self.limit:
                        self._give_up(f"no answer for {self.limit:g} s")
                    if self.works is not None:
                        found = self._is_worked_on()
                        doubts = 0 if found else doubts + 1
                        if doubts == _MAX_DOUBTS:
                            self._give_up("the answer of the server was lost" if found is False else "it is down")
                        pause = _DOUBT_SECONDS if found is False else SILENCE_SECONDS
                        asked = time.monotonic()
                waits_for = gen.send(ready)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]  # of a generator of psycopg

    def _is_worked_on(self) -> bool | None:
        """Return whether the server still works on the statement; None if it cannot be asked."""
        assert self.works is not None
        try:
            return self.works()
        except (psycopg.Error, StoreError):
            return None

    def _give_up(self, reason: str) -> None:
        self.is_silent = True
        self.close()
        raise psycopg.OperationalError(reason)


logger = logging.getLogger(__name__)
# What is logged is also in our errors; without a handler, Python would print it.
for _one in (logger, logging.getLogger("psycopg")):
    _one.addHandler(logging.NullHandler())
# It warns of every attempt, 30 a minute while a server is down. `ServerPool` logs one line for each outage.
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)

CONNECTIONS = 10
_CONNECT_SECONDS = 10
# After so long without a connection it is asked whether the server is down. The pool, which waits twice as long after
# each attempt, starts over then: a server that is back is used within this number of seconds.
_DOWN_SECONDS = 3.0
_OPTIONS: dict[str, Any] = {
    "autocommit": True,  # transactions are begun and ended by statements
    "prepare_threshold": None,
    "application_name": "mindex",
    # The system ends a connection whose other end is gone after 25 s, with unacknowledged data after 15 s.
    "keepalives": 1,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 15_000,
}
# Identifies the process of the server that has a connection: the same number may be another one after a restart.
BACKEND = "pg_backend_pid() || ' ' || extract(epoch FROM pg_postmaster_start_time())"
_WORKS = f"SELECT state = 'active' FROM pg_stat_activity WHERE {BACKEND.replace('pg_backend_pid()', 'pid')} = %s"


class ServerPool:
    """One server. Raises StoreError when it does not answer; with `at_once`, when it is made.

    `wait` bounds how long a connection is waited for. Errors name the option that the address is of, if any.
    """

    def __init__(self, address: Address, *, wait: float, option: str = "", at_once: bool = True) -> None:
        self.place = f"{address.shown} ({option})" if option else address.shown
        self.wait = wait
        self._url = address.url
        given = dict(parse_qsl(urlsplit(address.url).query))
        defaults = {name: value for name, value in _OPTIONS.items() if name not in given}
        self._options = {**defaults, "connect_timeout": int(min(wait, _CONNECT_SECONDS)) or 1}
        self._trusted_from = 0.0  # connections that are older are not used
        self._closed = False
        self._is_down = False
        if at_once:
            self.connect().close()  # the pool would try for half a minute, and not say why it fails
        self._pool: ConnectionPool[LiveConnection] = ConnectionPool(
            address.url,
            connection_class=LiveConnection,
            configure=_note_birth,
            kwargs=self._options,
            min_size=0,
            max_size=CONNECTIONS,
            open=True,
            timeout=wait,
            reconnect_timeout=_DOWN_SECONDS,
        )

    def connect(self, seconds: float = _CONNECT_SECONDS) -> LiveConnection:
        """A connection outside of the pool. Raises StoreError if there is none after this number of seconds."""
        options = {**self._options, "connect_timeout": int(min(seconds, self.wait)) or 1}
        try:
            return LiveConnection.connect(self._url, **options)
        except (psycopg.Error, ValueError) as error:
            if isinstance(error, psycopg.Error):
                raise connection_error(error, self.place) from None  # its text may quote the connection string
            raise ConfigError(
                f"cannot use {self.place}: the URL is malformed", "write postgresql://USER@HOST/DATABASE"
            ) from None

    def watch(self, connection: LiveConnection, backend: str, limit: float) -> None:
        """Bound the statements of a connection, and have the server asked about silent ones; see `BACKEND`."""
        connection.limit = limit
        connection.works = partial(self._works, backend) if backend else None

    def _works(self, backend: str) -> bool:
        """Whether the server is at work for a connection. Raises StoreError or psycopg.Error if it cannot be asked."""
        try:
            with self.connect(_DOWN_SECONDS) as connection:
                row = connection.execute(_WORKS, (backend,)).fetchone()
        except StoreError as error:
            if has_no_connection_left(error):
                return True  # it cannot tell
            raise
        return bool(row and row[0])

    def distrust(self) -> None:
        """Do without every connection that was made before now: one of them is dead."""
        self._trusted_from = time.monotonic()

    def take(self, until: float | None = None) -> LiveConnection:
        """A connection of the pool. Raises StoreBusyError when none becomes free in time, StoreError without a server.

        A server that is down is waited for until a moment of `time.monotonic`; None: not at all.
        """
        if self._closed:
            raise StoreError("this memory is closed", "open a new Memory")
        deadline = time.monotonic() + self.wait
        while True:
            try:
                connection = self._pool.getconn(timeout=max(0.1, min(_DOWN_SECONDS, deadline - time.monotonic())))
            except PoolTimeout:
                try:
                    self.connect(_DOWN_SECONDS).close()
                except StoreError as error:
                    self._note_down(str(error))
                    if until is None or time.monotonic() >= until:
                        raise
                    continue
                if time.monotonic() >= deadline:
                    raise StoreBusyError(
                        f"all {CONNECTIONS} connections to {self.place} were busy for {self.wait:g} s", "try again"
                    ) from None
            else:
                if connection.born < self._trusted_from:
                    self._discard(connection)
                    continue
                if self._is_down:
                    self._is_down = False
                    logger.warning("%s answers again", self.place)
                self.watch(connection, "", SILENCE_SECONDS)  # until a transaction has begun
                return connection

    def _note_down(self, reason: str) -> None:
        if not self._is_down:
            self._is_down = True
            logger.warning("%s", reason)

    def give_back(self, connection: LiveConnection) -> None:
        """Return a connection; one that was lost is discarded, and with a silent one all others of its time."""
        if connection.is_silent:
            self.distrust()
        if connection.born < self._trusted_from:
            self._discard(connection)
        else:
            self._pool.putconn(connection)

    def _discard(self, connection: LiveConnection) -> None:
        connection.close()
        self._pool.putconn(connection)

    def close(self) -> None:
        self._closed = True
        self._pool.close()


def _note_birth(connection: LiveConnection) -> None:
    connection.born = time.monotonic()
