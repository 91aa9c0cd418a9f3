"""What the shared SQL needs of an engine: its transactions, and the statements in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from mindex.datatypes import Record
from mindex.store.background import BackgroundWriter
from mindex.store.sql.dialect import Dialect, S

Row = Sequence[Any]
T = TypeVar("T")
S_contra = TypeVar("S_contra", contravariant=True)


class Statements(Protocol):
    """One open transaction. Queries are spelled as `dialect` says."""

    def run(self, query: str, *values: object) -> int:
        """Run a statement. Returns how many rows it concerned."""

    def run_many(self, query: str, rows: Iterable[Sequence[object]]) -> int:
        """Run a statement for each of these rows of values. Returns how many rows all of them concerned."""

    def defer(self, query: str, *values: object) -> None:
        """Run a statement whose result is not needed, at the latest before the next one whose result is."""

    def defer_many(self, query: str, rows: Iterable[Sequence[object]]) -> None:
        """The same for each of these rows of values."""

    def rows(self, query: str, *values: object) -> list[Any]: ...

    def row(self, query: str, *values: object) -> Any | None: ...

    def value(self, query: str, *values: object) -> Any:
        """The first column of the first row; None if there is no row."""

    def column(self, query: str, *values: object) -> list[Any]:
        """The first column of all rows."""

    def among(self, query: str, among: Iterable[object], *values: object) -> Iterable[Any]:
        """The rows of a query for many values, for which `$among` stands, behind its other parameters.

        An engine may run it for some of the values at a time, so an order over all of them is the caller's.
        """

    def sound(self, rows: Iterable[Row], name: str) -> Iterable[Row]:
        """The rows of a query with `$checksum` that are as they were stored, without the checksum. Notes the others.

        `name` is what a row is called, made of its first value: `token {}`.
        """


class RecordRows(Protocol[S_contra]):
    """How an engine reads whole records."""

    def read_records(self, statements: S_contra, ids: Sequence[str], /, *, retired: bool = False) -> tuple[Record, ...]:
        """Records in the order of the ids; with `retired` also those that are not live."""

    def read_record(self, statements: S_contra, id_: str, /) -> Record | None:
        """One record, live or retired. Raises StoreError for a damaged one."""


class Engine(Protocol[S]):
    """What the groups of one store share."""

    dialect: Dialect
    records: RecordRows[S]
    background: BackgroundWriter[S]

    def read(self) -> AbstractContextManager[S]:
        """A transaction that reads the state of one moment."""

    def write(self, work: Callable[[S], T], *, durable: bool = False) -> T:
        """Run a function in one transaction; it may be run again, so it has no effect but its result.

        `durable`: what it writes survives a power cut once this returned, also in an engine that can do without.
        Raises StoreError if a newer mindex has taken the database over.
        """

    def write_cache(self, work: Callable[[S], T]) -> T:
        """The same for cached results, which every version may write."""
