"""One open transaction of a PostgreSQL database, and the statements in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import psycopg

from mindex.datatypes.administration import GrantKind
from mindex_postgres.commit_marks import WriteIdentity
from mindex_postgres.dialect import DIALECT
from mindex_postgres.server_pool import LiveConnection

T = TypeVar("T")

_COUNT = "INSERT INTO counts (name, change) SELECT * FROM unnest(%s::text[], %s::bigint[])"


class Transaction:
    """One open transaction, and the statements in it. Implements `Statements` of the SQL that the engines share."""

    def __init__(
        self, connection: LiveConnection, lock_space: str, identity: WriteIdentity | None, *, restricted: bool
    ) -> None:
        self._connection = connection
        self._lock_space = lock_space
        self._deferred: list[tuple[str, Sequence[object]]] = []
        self._counts: Counter[str] = Counter()
        self._locks: frozenset[str] = frozenset()
        self.identity = identity  # None: it only reads
        self.restricted = restricted  # whether row-level security hides rows from this login
        self.written: set[tuple[GrantKind, str]] = set()  # agents and collections that it locked in order to write them
        self.counted = 0  # rows that this transaction added to `counts`

    @property
    def writes(self) -> bool:
        """Whether it may write; else it only reads, maybe on a replica."""
        return self.identity is not None

    # ── statements ────────────────────────────────────────────────────────────────────────────────────────────

    def defer(self, query: str, *values: object) -> None:
        """Run a statement whose result is not needed, together with the next one that is: one round trip for all."""
        self._deferred.append((DIALECT.spell(query), values))

    def defer_many(self, query: str, rows: Iterable[Sequence[object]]) -> None:
        for values in rows:
            self.defer(query, *values)

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

    def run(self, query: str, *values: object) -> int:
        """Run a statement. Returns how many rows it concerned."""
        return self._run(DIALECT.spell(query), values).rowcount

    def run_many(self, query: str, rows: Iterable[Sequence[object]]) -> int:
        """Run a statement for each of these rows of values. Returns how many rows all of them concerned."""
        with self._connection.pipeline():
            done = [self._run(DIALECT.spell(query), values) for values in rows]
        return sum(cursor.rowcount for cursor in done)

    def rows(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        return self._run(DIALECT.spell(query), values).fetchall()

    def among(self, query: str, among: Iterable[object], *values: object) -> list[tuple[Any, ...]]:
        """The rows of a query for many values; they replace `$among`, behind its other parameters."""
        wanted = list(among)
        return self.rows(query, *values, wanted) if wanted else []

    def sound(
        self,
        rows: Iterable[Sequence[Any]],
        name: str,  # noqa: ARG002 - its rows have no checksums
        decode: Callable[[Sequence[Any]], T],
        *,
        beside: int = 0,  # noqa: ARG002 - its rows have no checksums
    ) -> Iterable[T]:
        """All of them: a row that the server cannot return is an error of the call."""
        return map(decode, rows)

    def past_damage(self, whole: Callable[[], list[T]], *_: object) -> list[T]:
        """As `sound`."""
        return whole()

    def sealed(self, values: Sequence[object]) -> Sequence[object]:
        """Without a checksum: the server checks its pages."""
        return values

    def row(self, query: str, *values: object) -> tuple[Any, ...] | None:
        return self._run(DIALECT.spell(query), values).fetchone()

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

    def lock_owner(self, scope: GrantKind, name: str) -> None:
        """Let no other transaction write this agent or collection until this one ends."""
        self.written.add((scope, name))
        self.lock(f"{scope} {name}")

    def require_removed(self, gone: int, wanted: int, what: str) -> None:
        """Raise psycopg's error if row-level security kept rows: it leaves them out without an error."""
        if self.restricted and gone < wanted:
            raise psycopg.errors.InsufficientPrivilege(f"row-level security protects {what}")

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
        self.run("SAVEPOINT part")
        try:
            yield
            self.write_counts()
            self.run_deferred()
        except BaseException:
            self._counts.clear()
            self._deferred.clear()
            self._locks = locks  # those taken since are released with the savepoint
            if not self._connection.broken:
                self.run("ROLLBACK TO part")
                self.run("RELEASE part")
            raise
        self.run("RELEASE part")
