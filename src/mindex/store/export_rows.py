"""Entries with all that belongs to them, as they are exported from one store and restored in another."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from mindex.datatypes import Change, Record
from mindex.datatypes.program_numbers import Renumbered, Slot
from mindex.store.results import Access


@dataclass(frozen=True, slots=True)
class Link:
    """A link from the record that has it to another one."""

    target: str
    kind: str
    weight: float
    created_at: int = 0


@dataclass(frozen=True, slots=True)
class ExportedVectors:
    """A record's vectors in one embedding space: float32, little-endian, one piece after the other."""

    model: str  # the fingerprint
    dimensions: int
    fluency: float
    data: bytes


@dataclass(frozen=True, slots=True)
class Extraction:
    """When facts were extracted from a turn, and how many new ones there were."""

    at: int
    facts: int


@dataclass(frozen=True, slots=True)
class Accesses:
    """How often a record was returned, and when last. `log` has single accesses, where they are asked for."""

    count: int
    last_at: int
    log: tuple[Access, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class ExportRow:
    """One record, its changes (oldest first), its links, its accesses and, if wanted, its vectors.

    Without a history, its import becomes its first change. `where` says where it was read, for reports, `table` in
    which table, and `parts` how many rows of other tables are part of it.
    """

    record: Record
    history: tuple[Change, ...] = ()
    links: tuple[Link, ...] = ()
    vectors: tuple[ExportedVectors, ...] = ()
    extraction: Extraction | None = None
    where: str = field(default="", compare=False)
    accesses: Accesses | None = None
    table: str = field(default="", compare=False)
    parts: Mapping[str, int] = field(default_factory=dict, compare=False)
    numbers: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # in other programs, by program

    def states(self) -> list[Record]:
        """Return the record as it is and as its changes found and left it, each state once, the newest first."""
        states = [self.record]
        for change in reversed(self.history):
            states += (one for one in (change.after, change.before) if one is not None and one is not states[-1])
        return states

    def with_states(self, revise: Callable[[Record], Record]) -> ExportRow:
        """Return the row with every state revised, each once."""
        done: dict[int, Record] = {}

        def revised(state: Record) -> Record:
            if id(state) not in done:
                done[id(state)] = revise(state)
            return done[id(state)]

        record = revised(self.record)
        history = tuple(
            replace(one, record=record.id, before=one.before and revised(one.before), after=revised(one.after))
            for one in self.history
        )
        return replace(self, record=record, history=history)


@dataclass(frozen=True, slots=True)
class ExportSnapshot:
    """All entries of one moment, in order of agent and number.

    `last_numbers` has, for each agent, the last number that was given in the store, to any agent.
    """

    last_numbers: Mapping[str, int]
    total: int
    rows: Iterator[ExportRow]


def by_program(numbers: Iterable[tuple[str, int]]) -> dict[str, tuple[int, ...]]:
    """(program, number) of one record, as a row has them."""
    found: dict[str, tuple[int, ...]] = {}
    for program, number in numbers:
        found[program] = (*found.get(program, ()), number)
    return found


# The version of what rows hold, written at the head of an export. Not that of the database they come from.
EXPORT_SCHEMA = 4


@dataclass(frozen=True, slots=True)
class RestoreOutcome:
    """What became of a row: stored under `number`, a duplicate of record `id`, or in conflict with record `id`."""

    outcome: Literal["added", "duplicate", "conflict"]
    id: str
    number: int | None = None
    renumbered: tuple[Renumbered, ...] = ()  # in other programs


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    """How rows are restored: the author and reason of the import, the least new numbers, the unique field of a kind.

    With `program`, the numbers of records are those of that program: they stay there, even if the native ones change.
    """

    by: str
    reason: str = ""
    above: Mapping[str, int] = field(default_factory=dict)  # agent → number
    unique: Mapping[str, str] = field(default_factory=dict)  # kind → field
    program: str = ""  # one of `NUMBERED_KINDS`


@dataclass(slots=True)
class ImportPreview:
    """What a dry run would have stored so far, so that later rows are judged as if it were stored."""

    ids: dict[str, ExistingRecord] = field(default_factory=dict)
    contents: dict[tuple[str, str], str] = field(default_factory=dict)  # (agent, content hash) → id
    unique: dict[tuple[str, str, str], str] = field(default_factory=dict)  # (agent, kind, value) → id
    numbers: set[tuple[str, int]] = field(default_factory=set)  # (agent, number)
    last_number: int = 0
    program_numbers: dict[Slot, str] = field(default_factory=dict)  # → record
    numbers_given: dict[tuple[str, str], int] = field(default_factory=dict)  # (program, record) → number


@dataclass(frozen=True, slots=True)
class ExistingRecord:
    """What decides whether a stored record and a row with its id are the same."""

    kind: str
    agent: str
    created_at: int
    content_hash: str
