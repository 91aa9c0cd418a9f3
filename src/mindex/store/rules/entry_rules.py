"""Adding and revising entries: duplicates, unique fields, numbers and history, the same for every engine."""

from collections.abc import Iterable, Sequence
from typing import Protocol

from mindex.datatypes import Change, Record
from mindex.errors import ConflictError, NotFoundError
from mindex.ids import content_hash
from mindex.nul import without_nul
from mindex.store.results import AddOutcome, NewLink, Revision
from mindex.store.rules.changes import batch_of
from mindex.values import replace


class EntryStatements(Protocol):
    """What these rules need of an engine. All calls of one rule are made inside one transaction.

    `now` is the time of its changes, `batch` the id that they share if it is a batch, else ''.
    """

    now: int
    batch: str

    def lock_agent(self, agent: str) -> None:
        """Let no other transaction add or change entries of this agent until the current one ends.

        An engine with one writer at a time has nothing to do here.
        """

    def entry(self, id_: str) -> Record | None:
        """The record with this id, live or retired."""

    def same_content(self, hashes: Sequence[str], now: int, *, apart_from: str = "") -> dict[tuple[str, str], str]:
        """Ids of the live memories, not expired at `now`, with one of these content hashes, by (agent, hash)."""

    def unique_values(self, agent: str, kind: str, field: str) -> Iterable[tuple[str, object]]:
        """(id, value of this field) of each live record of a kind and agent that has the field."""

    def last_number(self) -> int:
        """The highest number that an entry of any agent was ever given, purged or not; 0 if none was.

        No other transaction may raise it until this one ends: an engine with several writers locks it.
        """

    def raise_number(self, number: int) -> None:
        """Remember that numbers up to this one were given; it is not below the last one."""

    def insert(self, record: Record) -> None:
        """Store a new entry; a live one can be found by its words, tags and entities from then on."""

    def replace(self, before: Record, after: Record) -> None:
        """Store the new state of an entry. Vectors of another text go, and all index entries of a retired one."""

    def touch(self, id_: str, at: int) -> None:
        """Set `updated_at`, without a change in the history."""

    def append_change(self, change: Change) -> int:
        """Append to the history. Returns the change's number: higher than any before, never given again."""

    def append_changes(self, changes: Sequence[Change]) -> None:
        """Append changes under their own numbers, or, where that is 0, under new ones."""


def add(
    statements: EntryStatements, record: Record, *, by: str, reason: str = "", unique: str = "", once: bool = False
) -> AddOutcome:
    """Store an entry under the next number, unless it is there already; see `EntryStore.add`."""
    record, by, reason = without_nul((record, by, reason))
    statements.lock_agent(record.agent)
    if once and statements.entry(record.id) is not None:
        return AddOutcome(record.id, created=False)
    if holder := unique_holder(statements, record, unique):
        return AddOutcome(holder, created=False)
    if record.kind == "memory" and (same := same_memory(statements, record, record.updated_at)):
        statements.touch(same, record.updated_at)
        return AddOutcome(same, created=False)
    last = statements.last_number()
    number = record.number or last + 1
    if number > last:
        statements.raise_number(number)
    record = replace(record, number=number)
    statements.insert(record)
    batch = batch_of("add", reason, by, record.updated_at, statements.batch)
    statements.append_changes([Change(0, record.id, record.updated_at, by, "add", reason, None, record, batch=batch)])
    return AddOutcome(record.id, created=True)


def links_of_new(links: Sequence[NewLink], outcomes: Iterable[AddOutcome]) -> list[NewLink]:
    """Return the links whose source was stored now."""
    new = {one.id for one in outcomes if one.created} if links else ()
    return [link for link in links if link[0] in new]


def revise(
    statements: EntryStatements, id_: str, change: Revision, *, by: str, action: str, reason: str, unique: str
) -> Change:
    """Replace an entry by what `change` makes of its state in this transaction; see `EntryStore.revise`."""
    before = statements.entry(id_)
    if before is None or before.kind == "chunk":
        raise no_entry(id_)
    statements.lock_agent(before.agent)
    now = statements.now
    by, reason = without_nul((by, reason))
    after = replace(without_nul(change(before)), id=before.id, kind=before.kind, number=before.number, updated_at=now)
    if after.kind == "memory" and after.retired_at is None and (same := same_memory(statements, after, now)):
        raise ConflictError(f"memory '{same}' already has the same text", "forget one of the two first")
    if unique_value(before, unique) != unique_value(after, unique) and (
        holder := unique_holder(statements, after, unique)
    ):
        raise ConflictError(f"'{holder}' has the same {unique} already", f"choose another {unique}")
    statements.replace(before, after)
    batch = batch_of(action, reason, by, now, statements.batch)
    made = Change(0, id_, now, by, action, reason, before, after, batch=batch)
    return replace(made, change=statements.append_change(made))


def no_entry(id_: str) -> NotFoundError:
    """The error of an id that no entry has, or none that may be seen."""
    return NotFoundError(f"there is no memory '{id_}'", "search for it, or `mindex list --kind memory`")


def unique_value(record: Record, field: str) -> str | None:
    """What two live records of a kind and agent must not share, for comparing; None if they may.

    Values are compared by Unicode case folding: "Émile" and "émile" are the same name.
    """
    value = record.fields.get(field) if field and record.retired_at is None else None
    return None if value is None else folded_value(value)


def folded_value(value: object) -> str:
    return str(value).casefold()


def unique_holder(statements: EntryStatements, record: Record, field: str) -> str | None:
    """The id of another live record that has the record's value in a unique field."""
    wanted = unique_value(record, field)
    if wanted is None:
        return None
    values = statements.unique_values(record.agent, record.kind, field)
    return next((id_ for id_, value in values if id_ != record.id and folded_value(value) == wanted), None)


def same_memory(statements: EntryStatements, record: Record, now: int) -> str | None:
    """The id of another live, unexpired memory of the record's agent that has its content."""
    content = content_hash(record.text)
    return statements.same_content([content], now, apart_from=record.id).get((record.agent, content))


def targets_by_source(links: Iterable[tuple[str, str]]) -> dict[str, tuple[str, ...]]:
    """Return the targets of each source, in the order of the links."""
    found: dict[str, list[str]] = {}
    for source, target in links:
        found.setdefault(source, []).append(target)
    return {source: tuple(targets) for source, targets in found.items()}
