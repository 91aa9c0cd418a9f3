"""Connections to a PostgreSQL database: a pool, transactions that are run again, and nothing that outlives one.

Everything a statement depends on is set inside its transaction, so a pooler may give each transaction another
connection: no session state, no prepared statements, advisory locks of transaction scope only.
"""

from __future__ import annotations

import itertools
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import uniform
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg_pool import ConnectionPool, PoolTimeout

from mindex.clock import now_ms
from mindex.errors import StoreBusyError, StoreError, UsageError
from mindex.ids import new_id
from mindex.store.postgres.address import Address
from mindex.store.postgres.errors import connection_error, is_conflict, is_lost, store_error

T = TypeVar("T")

# What the pool has to say of lost connections is in our own errors; without a handler, Python would print it.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

DEFAULT_WAIT = 30.0
_CONNECTIONS = 10
_ATTEMPTS_TO_INSERT = 3
_CONNECT_SECONDS = 10
_READ_ONLY = ("{place} is read-only", "connect to the primary server, with a role that may write")
# What every transaction begins with. JIT would compile for a second what runs for some milliseconds.
_SETTINGS = "SET LOCAL search_path TO {path}; SET LOCAL lock_timeout TO {wait}; SET LOCAL jit TO off"
_COUNT = "INSERT INTO counts (name, change) SELECT * FROM unnest(%s::text[], %s::bigint[])"


class Transaction:
    """One open transaction, and the statements in it."""

    def __init__(self, connection: psycopg.Connection[Any], lock_space: str) -> None:
        self._connection = connection
        self._lock_space = lock_space
        self._deferred: list[tuple[str, Sequence[object]]] = []
        self._counts: Counter[str] = Counter()
        self._locks: frozenset[str] = frozenset()
        self.xid = ""
        self.counted = 0  # rows that this transaction added to `counts`

    # ── statements ────────────────────────────────────────────────────────────────────────────────────────────

    def defer(self, query: str, *values: object) -> None:
        """Run a statement whose result is not needed, together with the next one that is: one round trip for all."""
        self._deferred.append((query, values))

    def run_deferred(self) -> None:
        if self._deferred:
            with self._connection.pipeline():
                self._send_deferred()

    def _send_deferred(self) -> None:
        statements, self._deferred = self._deferred, []
        for query, values in statements:
            self._connection.execute(query.encode(), values or None)

    def _run(self, query: str, values: Sequence[object] | Mapping[str, object]) -> psycopg.Cursor[Any]:
        if not self._deferred:
            return self._connection.execute(query.encode(), values or None)
        with self._connection.pipeline():
            self._send_deferred()
            return self._connection.execute(query.encode(), values or None)

    def execute(self, query: str, *values: object) -> int:
        """Run a statement. Returns how many rows it concerned."""
        return self._run(query, values).rowcount

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._run(query, values).fetchall()

    def named_rows(self, query: str, values: Mapping[str, object]) -> list[tuple[Any, ...]]:
        """The rows of a query whose parameters have names."""
        return self._run(query, values).fetchall()

    def row(self, query: str, *values: object) -> tuple[Any, ...] | None:
        return self._run(query, values).fetchone()

    def value(self, query: str, *values: object) -> Any:
        """The first column of the first row; None when there is no row."""
        row = self.row(query, *values)
        return row[0] if row else None

    def column(self, query: str, *values: object) -> list[Any]:
        """The first column of all rows."""
        return [row[0] for row in self.rows(query, *values)]

    # ── locks and counts ──────────────────────────────────────────────────────────────────────────────────────

    def lock(self, name: str) -> None:
        """Let no other transaction that asks for this lock go on until this one ends; taken with the next statement."""
        if name not in self._locks:
            self.defer("SELECT pg_advisory_xact_lock(hashtext(%s), hashtext(%s))", self._lock_space, name)
            self._locks |= {name}

    def lock_shared(self, name: str) -> None:
        """Let no other transaction take this lock for itself until this one ends; others may share it."""
        if name not in self._locks:
            self.defer("SELECT pg_advisory_xact_lock_shared(hashtext(%s), hashtext(%s))", self._lock_space, name)

    def try_lock(self, name: str) -> bool:
        query = "SELECT pg_try_advisory_xact_lock(hashtext(%s), hashtext(%s))"
        return bool(self.value(query, self._lock_space, name))

    def count(self, names: Mapping[str, int]) -> None:
        """Change counts; written once for all of a transaction, before they are read or it ends."""
        self._counts.update(names)

    def write_counts(self) -> None:
        changed = {name: change for name, change in self._counts.items() if change}
        self._counts.clear()
        if changed:
            self.defer(_COUNT, list(changed), list(changed.values()))
            self.counted += len(changed)

    # ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part that is rolled back alone when it raises, so that the caller can go on without it."""
        self.write_counts()
        locks = self._locks
        self.execute("SAVEPOINT part")
        try:
            yield
            self.write_counts()
            self.run_deferred()
        except BaseException:
            self._counts.clear()
            self._deferred.clear()
            self._locks = locks  # those taken since are released with the savepoint
            if not self._connection.broken:
                self.execute("ROLLBACK TO part")
                self.execute("RELEASE part")
            raise
        self.execute("RELEASE part")


class _Mine(threading.local):
    """The transaction that a thread has opened for several writes, when it began, and its batch id."""

    transaction: Transaction | None = None
    moment: int | None = None
    batch: str = ""


class Database:
    """The connections to one database. Raises StoreError and its kinds instead of psycopg's errors."""

    def __init__(self, address: Address, *, wait: float = DEFAULT_WAIT) -> None:
        self.address = address
        self.place = address.shown
        self.wait = wait
        self.read_only = False
        self.after_write: Callable[[Transaction], None] = lambda _: None
        self._path = sql.Identifier(address.schema).as_string()
        self._mine = _Mine()
        self._closed = False
        self._options: dict[str, Any] = {
            "autocommit": True,  # transactions are begun and ended by statements
            "prepare_threshold": None,
            "connect_timeout": _CONNECT_SECONDS,
            "application_name": "mindex",
        }
        self._connect().close()  # the pool would try for half a minute, and not say why it fails
        self._pool = ConnectionPool(
            address.url, kwargs=self._options, min_size=0, max_size=_CONNECTIONS, open=True, timeout=wait
        )

    def look_in(self, schemas: Sequence[str]) -> None:
        """Let statements find types and operators in these schemas, too."""
        self._path = ", ".join(sql.Identifier(one).as_string() for one in (self.address.schema, *schemas))

    # ── transactions ──────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def read(self, *settings: str) -> Iterator[Transaction]:
        """One snapshot for all statements of the block; within a transaction of this thread, that one."""
        if (mine := self._mine.transaction) is not None:
            with self.translated():
                mine.write_counts()
                yield mine
            return
        with self.translated(), self._open("ISOLATION LEVEL REPEATABLE READ READ ONLY", *settings) as transaction:
            yield transaction

    def write(self, work: Callable[[Transaction], T]) -> T:
        """Run a function in one transaction and commit it; again where another one was faster, or the server restarted.

        Within a transaction of this thread it is part of that one, and rolled back alone when it raises.
        """
        if self.read_only:
            raise StoreError(_READ_ONLY[0].format(place=self.place), _READ_ONLY[1])
        if (mine := self._mine.transaction) is not None:
            with self.translated(), mine.part():
                return work(mine)
        deadline = time.monotonic() + self.wait
        for attempt in itertools.count(1):
            try:
                with self._open("") as transaction:
                    result = work(transaction)
                self.after_write(transaction)
                return result
            except psycopg.Error as error:
                if not _may_succeed(error, attempt) or time.monotonic() > deadline:
                    raise store_error(error, self.place) from error
            except (UnicodeEncodeError, OverflowError) as error:
                raise _unstorable(error) from error
            time.sleep(uniform(0.01, 0.1))  # random: two that met do not meet again
        raise AssertionError("unreachable")

    @contextmanager
    def transaction(self, *, batch: bool = False) -> Iterator[int]:
        """One transaction for everything that this thread writes in the block. Yields the time of its changes."""
        if self.read_only:
            raise StoreError(_READ_ONLY[0].format(place=self.place), _READ_ONLY[1])
        mine = self._mine
        if mine.transaction is not None:
            with self.translated(), mine.transaction.part(), self._as_part(mine.transaction, batch) as moment:
                yield moment
            return
        with self.translated():
            with self._open("") as transaction, self._as_part(transaction, batch) as moment:
                yield moment
            self.after_write(transaction)

    @contextmanager
    def _as_part(self, transaction: Transaction, batch: bool) -> Iterator[int]:
        mine = self._mine
        before = mine.transaction, mine.moment, mine.batch
        mine.transaction = transaction
        mine.moment = mine.moment or now_ms()
        mine.batch = mine.batch or (new_id() if batch else "")
        try:
            yield mine.moment
        finally:
            mine.transaction, mine.moment, mine.batch = before

    @property
    def moment(self) -> int | None:
        """When this thread's transaction for several writes began."""
        return self._mine.moment

    @property
    def batch(self) -> str:
        """The batch id of this thread's transaction for several writes; '' outside of one."""
        return self._mine.batch

    @contextmanager
    def _open(self, mode: str, *settings: str) -> Iterator[Transaction]:
        """A transaction that is committed when the block ends, and rolled back when it raises."""
        connection = self._take()
        try:
            transaction = Transaction(connection, self.address.schema)
            connection, transaction.xid = self._begin(connection, mode, settings)
            transaction._connection = connection
            try:
                yield transaction
                transaction.write_counts()
                transaction.run_deferred()
                if connection.info.transaction_status == TransactionStatus.INERROR:
                    raise StoreError("an earlier part of this change could not be written", "try again")
            except BaseException:
                if not connection.broken and not connection.closed:
                    connection.execute("ROLLBACK")
                raise
            self._commit(connection, transaction.xid)
        finally:
            self._pool.putconn(connection)

    def _begin(
        self, connection: psycopg.Connection[Any], mode: str, settings: Sequence[str]
    ) -> tuple[psycopg.Connection[Any], str]:
        """Begin a transaction, on another connection where the server has closed this one. Returns its id, too."""
        local = _SETTINGS.format(path=self._path, wait=int(self.wait * 1000))
        statements = [f"BEGIN {mode}", local, *(f"SET LOCAL {setting}" for setting in settings)]
        statements.append("SELECT ''" if mode else "SELECT pg_current_xact_id() || ' ' || pg_postmaster_start_time()")
        while True:
            try:
                cursor = connection.execute("; ".join(statements).encode())
                while cursor.nextset():
                    pass
                return connection, str(cursor.fetchone()[0])  # type: ignore[index]  # the last statement has a row
            except psycopg.Error as error:
                if not is_lost(error):
                    raise
                self._pool.putconn(connection)  # which discards it
                connection = self._take()

    def _commit(self, connection: psycopg.Connection[Any], xid: str) -> None:
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if not xid or not is_lost(error):
                raise
            if not self._was_committed(xid):
                raise

    def _was_committed(self, xid: str) -> bool:
        """What became of a transaction whose commit was not answered. Raises StoreError where nothing can be learnt.

        `xid` is its id and the start of the server. A server that was started again since may have given the id of a
        commit that it lost to another transaction, so that its word says nothing.
        """
        id_, _, started = xid.partition(" ")
        deadline = time.monotonic() + self.wait
        while time.monotonic() < deadline:
            try:
                with self._connect() as connection:
                    query = "SELECT CASE WHEN pg_postmaster_start_time()::text = %s THEN pg_xact_status(%s::xid8) END"
                    row = connection.execute(query, (started, id_)).fetchone()
            except (psycopg.Error, StoreError):
                row = ("in progress",)  # the server is not back yet
            status = row[0] if row else None
            if status in ("committed", "aborted"):
                return bool(status == "committed")
            if status is None:
                break
            time.sleep(0.2)
        raise StoreError(
            f"the connection to {self.place} was lost while a change was stored, and whether it was is unknown",
            "look whether it is there before you try again",
        )

    # ── connections ───────────────────────────────────────────────────────────────────────────────────────────

    def _connect(self) -> psycopg.Connection[Any]:
        try:
            return psycopg.connect(self.address.url, **self._options)
        except (psycopg.Error, ValueError) as error:
            if isinstance(error, psycopg.Error):
                raise connection_error(error, self.place) from None  # its text may quote the connection string
            raise StoreError(
                f"cannot use {self.place}: the URL is malformed", "write postgresql://USER@HOST/DATABASE"
            ) from None

    def _take(self) -> psycopg.Connection[Any]:
        if self._closed:
            raise StoreError("this memory is closed", "open a new Memory")
        try:
            return self._pool.getconn()
        except PoolTimeout:
            self._connect().close()  # raises where the server is the reason
            raise StoreBusyError(
                f"all {_CONNECTIONS} connections to {self.place} were busy for {self.wait:g} s", "try again"
            ) from None

    def execute_alone(self, query: str) -> None:
        """Run a statement that must not be in a transaction, without a time limit of ours."""
        with self.translated(), self._connect() as connection:
            connection.execute(query.encode())

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Raise StoreError and its kinds instead of psycopg's errors, UsageError for values that it cannot hold."""
        try:
            yield
        except psycopg.Error as error:
            raise store_error(error, self.place) from error
        except (UnicodeEncodeError, OverflowError) as error:
            raise _unstorable(error) from error

    def close(self) -> None:
        self._closed = True
        self._pool.close()


def _may_succeed(error: psycopg.Error, attempt: int) -> bool:
    """Whether the same transaction may succeed when it is run again; what exists after three attempts stays."""
    if isinstance(error, psycopg.errors.UniqueViolation):
        return attempt < _ATTEMPTS_TO_INSERT
    return is_conflict(error) or is_lost(error)


def _unstorable(error: Exception) -> UsageError:
    return UsageError(f"a value cannot be looked up or stored ({error})", "check the text or number")
