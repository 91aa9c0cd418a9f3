"""Connections to a PostgreSQL database: a pool, transactions that are run again, and nothing that outlives one.

Everything a statement depends on is set inside its transaction, so a pooler may give each transaction another
connection: no session state, no prepared statements, advisory locks of transaction scope only.
"""

from __future__ import annotations

import inspect
import itertools
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import wraps
from random import uniform
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from mindex.datatypes.administration import Grant
from mindex.errors import LostConnectionError, LostTransactionError, StoreError, UnreachableError, UsageError
from mindex.store.engine_parts import ThreadTransaction, fails_fast
from mindex_postgres.address import Address
from mindex_postgres.commit_marks import CommitMarks, WriteIdentity
from mindex_postgres.errors import OWN_GRANTS, is_conflict, is_lost, read_only_error, refusal, store_error
from mindex_postgres.replica import WRITTEN, Replica
from mindex_postgres.server_pool import BACKEND, LiveConnection, ServerPool
from mindex_postgres.transaction import Transaction

T = TypeVar("T")
G = TypeVar("G")

DEFAULT_WAIT = 30.0
_ATTEMPTS_TO_INSERT = 3
# What every transaction begins with. JIT would compile for a second what runs for some milliseconds.
_SETTINGS = "SET LOCAL search_path TO {path}; SET LOCAL lock_timeout TO {wait}; SET LOCAL jit TO off"
# The server ends a statement after this number of seconds, unless its own limit is lower; the client a little later.
_STATEMENT_SECONDS = 60
_LONG_STATEMENT_SECONDS = 6 * 60 * 60
_CLIENT_GRACE_SECONDS = 5
# So long a read that fails fast tries to begin on other connections of the pool: all may be dead, and one takes 5 s.
_BEGIN_SECONDS = 8.0
_LIMIT = """
SELECT set_config('statement_timeout', '{seconds}s', true)
WHERE current_setting('statement_timeout')::interval NOT BETWEEN interval '1 ms' AND interval '{seconds} s'
"""
# A client that is gone, or stopped, keeps others waiting for its locks no longer than this.
_IDLE = "SET LOCAL idle_in_transaction_session_timeout TO '60s'"
_SNAPSHOT = "ISOLATION LEVEL REPEATABLE READ READ ONLY"


class Database:
    """The connections to one database. Raises StoreError and its kinds instead of psycopg's errors."""

    def __init__(self, address: Address, *, wait: float = DEFAULT_WAIT) -> None:
        self.address = address
        self.place = address.shown
        self.wait = wait
        self.read_only = False
        self.lacks_rights = False  # whether this login is why it is read-only
        self.has_citus = False
        self.after_write: Callable[[Transaction], None] = lambda _: None
        self._path = sql.Identifier(address.schema).as_string()
        counts = sql.Literal(f"{self._path}.counts").as_string()
        self._is_restricted = f"row_security_active(to_regclass({counts})::oid)"
        self.of_thread: ThreadTransaction[Transaction] = ThreadTransaction()
        self._primary = ServerPool(address, wait=wait)
        self.marks = CommitMarks(self._primary, self._path)
        self.replica: Replica | None = None
        # Where the primary's log was after the last commit, if there is a replica to follow it; None: not known.
        self._written: str | None = ""

    def read_from(self, replica: Address) -> None:
        """Let reads go to a replica, once it has all writes so far and all later writes of this process."""
        self.replica = Replica(replica, self._primary)
        self._note_written()

    def look_in(self, schemas: Sequence[str]) -> None:
        """Let statements also find types and operators in these schemas."""
        self._path = ", ".join(sql.Identifier(one).as_string() for one in (self.address.schema, *schemas))

    # ── transactions ──────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def read(self, *settings: str, long: bool = False) -> Iterator[Transaction]:
        """One snapshot for all statements of the block; within a transaction of this thread, that one.

        `long`: its statements may take hours.
        """
        if (mine := self.of_thread.statements) is not None:
            with self.translated():
                mine.write_counts()
                yield mine
            return
        with self.translated(), ExitStack() as stack:
            replica = self._read_replica(stack, settings)
            yield replica or stack.enter_context(self._open(_SNAPSHOT, *settings, until=self._patience(), long=long))

    def _patience(self) -> float | None:
        return None if fails_fast() else time.monotonic() + self.wait

    def _read_replica(self, stack: ExitStack, settings: Sequence[str]) -> Transaction | None:
        """A transaction on the replica, if there is one that answers and has what was written here."""
        if self.replica is None:
            return None
        if self._written is None:
            self._note_written()
        if self._written is None or not self.replica.may_answer(self._written):
            return None
        try:
            return stack.enter_context(self._open(_SNAPSHOT, *settings, pool=self.replica.pool))
        except (psycopg.Error, StoreError):
            self.replica.leave()
            return None

    def until_answered(self, work: Callable[[], T]) -> T:
        """Run a function that reads; again if its connection was lost, for a while; see `fail_fast`.

        Not in a transaction of this thread, of which nothing is left then.
        """
        deadline = self._patience() or time.monotonic() + _BEGIN_SECONDS
        while True:
            try:
                return work()
            except (LostConnectionError, UnreachableError) as error:
                may_wait = isinstance(error, LostConnectionError) or not fails_fast()
                if self.of_thread.statements is not None or not may_wait or _is_past(deadline):
                    raise
            time.sleep(uniform(0.01, 0.1))

    def write(self, work: Callable[[Transaction], T], *, long: bool = False) -> T:
        """Run a function in one transaction and commit it; again where another one was faster, or the server restarted.

        Within a transaction of this thread it is part of that one, and rolled back alone when it raises. `long`: its
        statements may take hours.
        """
        if self.read_only:
            raise self._read_only_error()
        if (mine := self.of_thread.statements) is not None:
            with self.translated(), mine.part():
                return work(mine)
        deadline = time.monotonic() + self.wait
        for attempt in itertools.count(1):
            try:
                with self._open("", until=deadline, long=long) as transaction:
                    result = work(transaction)
                self.after_write(transaction)
                return result
            except psycopg.Error as error:
                if not _may_succeed(error, attempt) or _is_past(deadline):
                    raise store_error(error, self.place) from error
            except (UnicodeEncodeError, OverflowError) as error:
                raise _unstorable(error) from error
            time.sleep(uniform(0.01, 0.1))  # random: two that met do not meet again
        raise AssertionError("unreachable")

    @contextmanager
    def transaction(self, *, batch: bool = False) -> Iterator[int]:
        """One transaction for everything that this thread writes in the block. Yields the time of its changes.

        Raises LostTransactionError if its connection was lost, so that the caller can run the block again.
        """
        if self.read_only:
            raise self._read_only_error()
        if (mine := self.of_thread.statements) is not None:
            with self.translated(), mine.part(), self.of_thread.entered(mine, batch=batch) as moment:
                yield moment
            return
        try:
            with self.translated():
                until = time.monotonic() + self.wait
                with (
                    self._open("", until=until) as transaction,
                    self.of_thread.entered(transaction, batch=batch) as moment,
                ):
                    yield moment
                self.after_write(transaction)
        except LostConnectionError as error:
            raise LostTransactionError(error.message, error.hint) from error

    @contextmanager
    def _open(
        self,
        mode: str,
        *settings: str,
        pool: ServerPool | None = None,
        until: float | None = None,
        long: bool = False,
    ) -> Iterator[Transaction]:
        """A transaction that is committed when the block ends, and rolled back when it raises.

        A server that is down is waited for until a moment of `time.monotonic`; None: not at all.
        """
        pool = pool or self._primary
        connection, transaction = self._begin(pool, mode, settings, until, long=long)
        identity = transaction.identity
        try:
            try:
                yield transaction
                transaction.write_counts()
                transaction.run_deferred()
                if connection.info.transaction_status == TransactionStatus.INERROR:
                    raise StoreError("an earlier part of this change could not be written", "try again")
            except BaseException as error:
                if connection.is_silent and identity is not None:
                    self.marks.end(identity)
                if not connection.broken and not connection.closed:
                    connection.execute("ROLLBACK")
                    self._explain(error, transaction)
                raise
            self._commit(connection, identity)
            if self.replica is not None and identity is not None:
                self._note_written(connection)
        finally:
            pool.give_back(connection)

    def _begin(
        self, pool: ServerPool, mode: str, settings: Sequence[str], until: float | None, *, long: bool
    ) -> tuple[LiveConnection, Transaction]:
        """Begin a transaction, on another connection where the server has closed one, or it does not answer."""
        seconds = _LONG_STATEMENT_SECONDS if long else _STATEMENT_SECONDS
        mark, marking = ("", []) if mode else self.marks.begin()
        statements = [
            f"BEGIN {mode}",
            _SETTINGS.format(path=self._path, wait=int(self.wait * 1000)),
            *(f"SET LOCAL {setting}" for setting in settings),
            _LIMIT.format(seconds=seconds),
            *([] if mode else [_IDLE]),
            *marking,
            f"SELECT {BACKEND}, {'NULL' if mode else 'pg_current_xact_id()'}::text, {self._is_restricted}",
        ]
        deadline = until or time.monotonic() + _BEGIN_SECONDS
        while True:
            connection = pool.take(until)
            try:
                cursor = connection.execute("; ".join(statements).encode())
                while cursor.nextset():
                    pass
                backend, xid, is_restricted = cursor.fetchone()  # type: ignore[misc]  # the last statement has a row
                pool.watch(connection, backend, seconds + _CLIENT_GRACE_SECONDS)
                identity = None if mode else WriteIdentity(mark, backend, xid)
                return connection, Transaction(connection, self.address.schema, identity, restricted=is_restricted)
            except BaseException as error:
                is_lost_now = isinstance(error, psycopg.Error) and is_lost(error)
                if not is_lost_now and not connection.closed:
                    connection.execute("ROLLBACK")
                pool.give_back(connection)  # which discards one that is lost
                if not is_lost_now or _is_past(deadline):
                    raise

    def _commit(self, connection: LiveConnection, write: WriteIdentity | None) -> None:
        """Commit. Returns if the transaction is stored, and raises if it is not."""
        try:
            connection.execute("COMMIT")
        except psycopg.Error as error:
            if write is None or not is_lost(error):
                raise
            is_stored = self.marks.was_committed(write, self.wait)
            if is_stored is None:
                raise StoreError(
                    f"the connection to {self.place} was lost while a change was stored, and whether it was is unknown",
                    "check whether it is stored before you try again",
                ) from error
            if not is_stored:
                raise
        if write is not None:
            self.marks.note_answered(write)

    def _note_written(self, connection: LiveConnection | None = None) -> None:
        """Remember how far a replica must be to know of a commit; until that is known, the primary is read."""
        try:
            with nullcontext(connection) if connection is not None else self._primary.connect() as one:
                row = one.execute(WRITTEN).fetchone()
            self._written = str(row[0]) if row else None
        except (psycopg.Error, StoreError):
            self._written = None

    # ── connections ───────────────────────────────────────────────────────────────────────────────────────────

    def execute_alone(self, query: str) -> None:
        """Run a statement that must not be in a transaction, and may take hours."""
        with self.translated(), self._primary.connect() as connection:
            row = connection.execute(f"SELECT pg_backend_pid(), {BACKEND}".encode()).fetchone()
            # Behind a pooler, another connection to the server may run the statement.
            is_direct = row is not None and row[0] == connection.info.backend_pid
            self._primary.watch(connection, row[1] if row and is_direct else "", _LONG_STATEMENT_SECONDS)
            connection.execute(query.encode())

    @contextmanager
    def hold_lock(self, name: str) -> Iterator[bool]:
        """Hold a lock while statements run that must not be in a transaction. Yields False if it is taken.

        The transaction that holds it keeps no snapshot: an index that is made concurrently would wait for its end.
        """
        with self.translated(), self._primary.connect() as connection:
            connection.execute("BEGIN ISOLATION LEVEL READ COMMITTED")
            # By the simple protocol: the portal of the other one keeps its snapshot until the next statement.
            cursor = psycopg.ClientCursor(connection)
            query = "SELECT pg_try_advisory_xact_lock(hashtext(%s), hashtext(%s))"
            row = cursor.execute(query, (self.address.schema, name)).fetchone()
            yield bool(row and row[0])
            connection.execute("COMMIT")

    def own_grants(self, transaction: Transaction) -> tuple[Grant, ...]:
        """What this login was granted."""
        schema = sql.Identifier(self.address.schema).as_string()
        return tuple(Grant(*row) for row in transaction.rows(OWN_GRANTS.format(schema=schema)))

    def _explain(self, error: BaseException, transaction: Transaction) -> None:
        """Raise the error that says which grant is missing, where row-level security has refused a transaction.

        It was rolled back, so that its connection can be asked.
        """
        cause = error if isinstance(error, psycopg.Error) else error.__cause__
        if transaction.restricted and isinstance(cause, psycopg.errors.InsufficientPrivilege):
            login = transaction.value("SELECT current_user")
            if found := refusal(login, self.own_grants(transaction), transaction.written, self.place):
                raise found from cause

    def _read_only_error(self) -> StoreError:
        if not self.lacks_rights:
            return StoreError(f"{self.place} is read-only", "connect to the primary server, with a role that may write")
        with self.read() as transaction:
            grants = self.own_grants(transaction) if transaction.restricted else ()
            return read_only_error(transaction.value("SELECT current_user"), grants, self.place)

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
        self._primary.close()
        if self.replica is not None:
            self.replica.pool.close()


def _is_past(moment: float) -> bool:
    return time.monotonic() > moment


def run_again(database: Database, group: G) -> G:
    """Have each call of a store's group run again if its connection was lost; see `Database.until_answered`.

    A write has found out by then that nothing of it is stored. What is read while the caller goes on is left out.
    """
    for name, method in inspect.getmembers(group, inspect.ismethod):
        if not name.startswith("_") and not inspect.isgeneratorfunction(inspect.unwrap(method)):
            setattr(group, name, _run_again(database, method))
    return group


def _run_again(database: Database, method: Callable[..., T]) -> Callable[..., T]:
    @wraps(method)
    def call(*arguments: Any, **options: Any) -> T:
        return database.until_answered(lambda: method(*arguments, **options))

    return call


def _may_succeed(error: psycopg.Error, attempt: int) -> bool:
    """Whether the same transaction may succeed when it is run again; what exists after three attempts stays."""
    if isinstance(error, psycopg.errors.UniqueViolation):
        return attempt < _ATTEMPTS_TO_INSERT
    return is_conflict(error) or is_lost(error)


def _unstorable(error: Exception) -> UsageError:
    return UsageError(f"a value cannot be looked up or stored ({error})", "check the text or number")
