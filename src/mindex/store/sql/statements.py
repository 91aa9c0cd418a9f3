"""What the shared SQL needs of an engine: its transactions, and the statements in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, TypeVar

from mindex.datatypes import Change, Filters, Record
from mindex.store.background import BackgroundWriter
from mindex.store.rules.import_entries import RestoreStatements
from mindex.store.rules.merged_records import SyncStatements
from mindex.store.sql.dialect import Condition, Dialect, S

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
        """The rows of a query for many values; they replace `$among`, behind its other parameters.

        An engine may run it for some of the values at a time, so an order over all of them is the caller's.
        """

    def sound(self, rows: Iterable[Row], name: str, decode: Callable[[Row], T]) -> Iterable[T]:
        """What `decode` makes of the rows of a query with `$checksum`, without it. Notes rows that are damaged.

        `name` is what a row is called, made of its first value: `token {}`.
        """


class RecordRows(Protocol[S_contra]):
    """How an engine reads whole records."""

    def read_records(self, statements: S_contra, ids: Sequence[str], /, *, retired: bool = False) -> tuple[Record, ...]:
        """Records in the order of the ids; with `retired` also those that are not live."""

    def read_record(self, statements: S_contra, id_: str, /) -> Record | None:
        """One record, live or retired. Raises StoreError for a damaged one."""


class EntryRows(RecordRows[S_contra], Protocol[S_contra]):
    """How an engine stores entries."""

    def insert_entry(self, statements: S_contra, record: Record, /) -> None:
        """The row of an entry and what is derived from it."""

    def replace_entry(self, statements: S_contra, before: Record, after: Record, /) -> None:
        """The same for another state; a vector of another text must not serve this one."""


class HistoryRows(Protocol[S_contra]):
    """How an engine reads changes of entries. A damaged one is noted and left out."""

    def read_changes(self, statements: S_contra, where: str, /, *values: object) -> tuple[Change, ...]:
        """The changes that a condition selects, oldest first."""

    def read_change_page(
        self, statements: S_contra, rest: str, /, *values: object
    ) -> tuple[tuple[Change, ...], tuple[int, int] | None]:
        """The changes of a query, of which `rest` is what follows the columns, and number and time of the last row."""


class AllEntryStatements(RestoreStatements, SyncStatements, Protocol):
    """The statements of all rules about entries, in one transaction."""

    def flush(self) -> None:
        """Write what was gathered; called before the transaction ends, if entries or numbers were added."""


class Engine(Protocol[S]):
    """What the groups of one store share."""

    dialect: Dialect
    schema: int  # the version of the tables
    records: RecordRows[S]
    history: HistoryRows[S]
    background: BackgroundWriter[S]

    @property
    def read_only(self) -> bool: ...

    def read(self) -> AbstractContextManager[S]:
        """A transaction that reads the state of one moment."""

    def write(self, work: Callable[[S], T], *, durable: bool = False) -> T:
        """Run a function in one transaction; it may be run again, so it has no effect but its result.

        `durable`: what it writes survives a power cut once this returned, also in an engine that can do without.
        Raises StoreError if a newer mindex has taken the database over.
        """

    def write_entries(self, work: Callable[[S], T], *, durable: bool = False) -> T:
        """The same for entries and what belongs to them; not beside a `transaction` of another process."""

    def write_cache(self, work: Callable[[S], T]) -> T:
        """The same for cached results, which every version may write."""

    def transaction(self, *, batch: bool) -> AbstractContextManager[int]:
        """See `EntryStore.transaction`."""

    def entry_statements(self, statements: S, expected: Sequence[Record] = (), /) -> AllEntryStatements:
        """The statements about entries in a transaction; `expected` are about to be added, each at most once."""

    def condition(self, statements: S, filters: Filters, now: int, /) -> Condition:
        """All that the filters demand of a live record `r`."""
