"""A replica that reads go to: which of them it may answer, and what `mindex doctor` says of it.

A process reads what it has written: until the replica has replayed the process's last commit, reads wait for it a
moment, and then go to the primary server. So do all reads while the replica does not answer, also from the start.
"""

from __future__ import annotations

import time
from typing import Any

import psycopg

from mindex.datatypes import Check
from mindex.errors import ConfigError, StoreError
from mindex_postgres.address import Address
from mindex_postgres.server_pool import ServerPool

_WAIT, _STEP = 0.5, 0.02
_CONNECT_SECONDS = 2.0
# For this number of seconds, a replica that did not answer gets no request, and one that was behind is not waited for.
_PAUSE = 5.0
_IDENTITY = "SELECT system_identifier, current_database() FROM pg_control_system()"
WRITTEN = "SELECT pg_current_wal_insert_lsn()"
_HAS_REPLAYED = "SELECT coalesce(pg_last_wal_replay_lsn() >= %s::pg_lsn, true)"
_BEHIND = "SELECT coalesce(pg_wal_lsn_diff(%s::pg_lsn, pg_last_wal_replay_lsn()), 0)::bigint"


class Replica:
    """A streaming replica of the primary server. Raises ConfigError when it is one of another database.

    It need not answer when it is made: whether it is the right one is asked as soon as it does.
    """

    def __init__(self, address: Address, primary: ServerPool) -> None:
        self.pool = ServerPool(address, wait=_CONNECT_SECONDS, option="--db-read", at_once=False)
        self._primary = primary
        self._is_known = False
        self._replayed = ""  # the last position that it was seen to have
        self._behind_until = self._left_until = 0.0
        try:
            self._recognize()
        except (psycopg.Error, StoreError):
            self.leave()
        except BaseException:
            self.pool.close()
            raise

    def _recognize(self) -> None:
        """Ask once whether it is a replica of the primary. Raises ConfigError where it is not."""
        if self._is_known:
            return
        with self.pool.connect() as connection:  # not of the pool, which would not say at once why it fails
            identity = connection.execute(_IDENTITY).fetchone()
        if identity != _ask(self._primary, _IDENTITY):
            raise ConfigError(
                f"{self.pool.place} is not a replica of {self._primary.place}",
                "name a streaming replica of the database of --db",
            )
        self._is_known = True

    def may_answer(self, written: str) -> bool:
        """Whether it has all that this process has written, waiting for it a moment; `written` is '' for nothing."""
        now = time.monotonic()
        if now < self._left_until:
            return False
        try:
            self._recognize()
        except (psycopg.Error, StoreError):
            self.leave()
            return False
        if written in ("", self._replayed):
            return True
        deadline = now if now < self._behind_until else now + _WAIT
        try:
            while not (_ask(self.pool, _HAS_REPLAYED, written) or (False,))[0]:
                if time.monotonic() >= deadline:
                    self._behind_until = time.monotonic() + _PAUSE
                    return False
                time.sleep(_STEP)
        except (psycopg.Error, StoreError):
            self.leave()
            return False
        self._replayed = written
        return True

    def leave(self) -> None:
        """Do without it for some seconds."""
        self._left_until = time.monotonic() + _PAUSE

    def check(self) -> Check:
        """Whether it answers, and follows the primary within half a second."""
        fix = "check that server and its replication; until it has caught up, what needs it is read from the primary"
        try:
            (written,) = _ask(self._primary, WRITTEN) or ("0/0",)
            self._behind_until = self._left_until = 0.0
            self._recognize()
            caught_up = self.may_answer(str(written))
            (behind,) = _ask(self.pool, _BEHIND, written) or (0,)
        except (StoreError, ConfigError) as error:
            return Check("replica", False, error.message, fix)
        except psycopg.Error:
            return Check("replica", False, f"{self.pool.place} does not answer", fix)
        state = "has all that was written" if caught_up else f"is {max(behind, 1):,} bytes of changes behind"
        return Check("replica", caught_up, f"{self.pool.place} {state}", fix)


def _ask(pool: ServerPool, query: str, *values: object) -> tuple[Any, ...] | None:
    connection = pool.take()
    try:
        return connection.execute(query.encode(), values or None).fetchone()
    finally:
        pool.give_back(connection)
