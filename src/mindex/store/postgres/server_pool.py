"""The connections to one PostgreSQL server, in a pool."""

from __future__ import annotations

import logging
import time
from typing import Any

import psycopg
from psycopg_pool import ConnectionPool, PoolTimeout

from mindex.errors import ConfigError, StoreBusyError, StoreError
from mindex.store.postgres.address import Address
from mindex.store.postgres.errors import connection_error

logger = logging.getLogger(__name__)
# What is logged is in our errors, too; without a handler, Python would print it.
for _one in (logger, logging.getLogger("psycopg")):
    _one.addHandler(logging.NullHandler())
# It warns of every attempt, 30 a minute while a server is down. `ServerPool` logs one line for each outage.
logging.getLogger("psycopg.pool").setLevel(logging.ERROR)

CONNECTIONS = 10
_CONNECT_SECONDS = 10
# After so long without a connection it is asked whether the server is down. The pool, which waits twice as long after
# each attempt, begins anew then: a server that is back is used within so many seconds.
_DOWN_SECONDS = 3.0
_OPTIONS: dict[str, Any] = {
    "autocommit": True,  # transactions are begun and ended by statements
    "prepare_threshold": None,
    "application_name": "mindex",
}


class ServerPool:
    """One server. Raises StoreError when it does not answer; with `at_once`, when it is made.

    `wait` bounds how long a connection is waited for. Errors name the option that the address is of, if any.
    """

    def __init__(self, address: Address, *, wait: float, option: str = "", at_once: bool = True) -> None:
        self.place = f"{address.shown} ({option})" if option else address.shown
        self.wait = wait
        self._url = address.url
        self._options = {**_OPTIONS, "connect_timeout": int(min(wait, _CONNECT_SECONDS)) or 1}
        self._closed = False
        self._is_down = False
        if at_once:
            self.connect().close()  # the pool would try for half a minute, and not say why it fails
        self._pool = ConnectionPool(
            address.url,
            kwargs=self._options,
            min_size=0,
            max_size=CONNECTIONS,
            open=True,
            timeout=wait,
            reconnect_timeout=_DOWN_SECONDS,
        )

    def connect(self, seconds: float = _CONNECT_SECONDS) -> psycopg.Connection[Any]:
        """A connection outside of the pool. Raises StoreError if there is none after so many seconds."""
        try:
            return psycopg.connect(self._url, **{**self._options, "connect_timeout": int(min(seconds, self.wait)) or 1})
        except (psycopg.Error, ValueError) as error:
            if isinstance(error, psycopg.Error):
                raise connection_error(error, self.place) from None  # its text may quote the connection string
            raise ConfigError(
                f"cannot use {self.place}: the URL is malformed", "write postgresql://USER@HOST/DATABASE"
            ) from None

    def take(self, *, waits_for_server: bool = True) -> psycopg.Connection[Any]:
        """A connection of the pool. Raises StoreBusyError when none becomes free in time, StoreError without a server.

        A server that is down is waited for as long as a free connection, or not at all.
        """
        if self._closed:
            raise StoreError("this memory is closed", "open a new Memory")
        deadline = time.monotonic() + self.wait
        while True:
            try:
                connection = self._pool.getconn(timeout=max(0.1, min(_DOWN_SECONDS, deadline - time.monotonic())))
            except PoolTimeout:
                is_late = time.monotonic() >= deadline
                try:
                    self.connect(_DOWN_SECONDS).close()
                except StoreError as error:
                    self._note_down(str(error))
                    if is_late or not waits_for_server:
                        raise
                    continue
                if is_late:
                    raise StoreBusyError(
                        f"all {CONNECTIONS} connections to {self.place} were busy for {self.wait:g} s", "try again"
                    ) from None
            else:
                if self._is_down:
                    self._is_down = False
                    logger.warning("%s answers again", self.place)
                return connection

    def _note_down(self, reason: str) -> None:
        if not self._is_down:
            self._is_down = True
            logger.warning("%s", reason)

    def give_back(self, connection: psycopg.Connection[Any]) -> None:
        """Return a connection; one that was lost is discarded."""
        self._pool.putconn(connection)

    def close(self) -> None:
        self._closed = True
        self._pool.close()
