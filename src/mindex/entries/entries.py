"""Reading entries: by id, prefix or number, page by page, or all at once."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field

from mindex.datatypes import Change, Conflict, Filters, Kind, MemoryInConflict, Record, SimilarMemory
from mindex.datatypes.program_numbers import Slot
from mindex.entries.open_conflicts import conflicting, conflicts_of, in_conflict
from mindex.errors import AmbiguousIdError, NotFoundError
from mindex.store.base import Page, RankingSignals, Store
from mindex.values import dataclass

_PAGE = 500
_NUMBER = re.compile(r"#(?P<number>[0-9]{1,18})")
_ADDRESS = re.compile(r"memory://(?P<name>.+)", re.IGNORECASE)
_FOREIGN = re.compile(r"(?P<program>[a-z][a-z_-]*):(?P<id>.+)")


def find_entry(store: Store, reference: str) -> Record:
    """The entry, live or retired, that `get` finds by this reference: its id or `memory://ID`, a unique prefix of it,
    its number (`#5`), or the id by which another program knew it (`mem_a1`, `mudpuppy:3`).

    Raises NotFoundError for a chunk or nothing, AmbiguousIdError for several.
    """
    if match := _NUMBER.fullmatch(reference):
        id_ = numbered_id(store, int(match["number"]), store.entries.agents())
        record = store.retrieval.record(id_) if id_ else None
    else:
        address = _ADDRESS.fullmatch(reference)
        record = _named(store, address["name"] if address else reference) if reference else None
    if record is None or record.kind == "chunk":
        what = "a piece of a file" if record else "nothing that was told"
        raise NotFoundError(f"'{reference}' is {what}", "search for it, or `mindex list --kind memory`")
    return record


def _named(store: Store, name: str) -> Record | None:
    """The record of a whole id, else the entry that another program called exactly so, else that of a prefix."""
    if (record := store.retrieval.record(name.lower())) is not None:
        return record
    # A bare number is what several programs call their entries by.
    foreign = map(store.retrieval.record, () if name.isdecimal() else foreign_ids(store, name))
    found = [one for one in foreign if one is not None and one.kind != "chunk"]
    entries = [one for one in found if one.retired_at is None] or found
    if len(entries) > 1:
        ids = ", ".join(one.id for one in entries[:5])
        raise AmbiguousIdError(f"other programs knew {len(entries)} entries as '{name}': {ids}", "give the id")
    if entries:
        return entries[0]
    id_ = resolve_id(store, name)
    return store.retrieval.record(id_) if id_ else None


def foreign_ids(store: Store, reference: str) -> Sequence[str]:
    """Ids of the records that another program knew by a reference, alone or as PROGRAM:ID."""
    find_by_foreign_id, match = store.retrieval.find_by_foreign_id, _FOREIGN.fullmatch(reference)
    return find_by_foreign_id(reference) or (find_by_foreign_id(match["id"], match["program"]) if match else ())


def resolve_id(store: Store, reference: str) -> str | None:
    """The id of a record, live or retired, by a prefix of it; None when there is none. Raises AmbiguousIdError."""
    ids = store.retrieval.resolve(reference.lower(), retired=True)
    if reference.lower() in ids:
        return reference.lower()
    if len(ids) > 1:
        raise AmbiguousIdError(f"'{reference}' is the start of {', '.join(ids[:5])}", "give more of the id")
    return ids[0] if ids else None


def numbered_id(store: Store, number: int, agents: Sequence[str]) -> str | None:
    """The id of the entry with a number; None when there is none. Raises AmbiguousIdError for entries of two agents."""
    found = {agent: id_ for agent in agents if (id_ := store.entries.by_number(agent, number))}
    if len(found) > 1:
        names = ", ".join(f"{id_} of {agent}" for agent, id_ in found.items())
        raise AmbiguousIdError(f"{len(found)} agents have an entry {number}: {names}", "give the id")
    return next(iter(found.values()), None)


def list_all(store: Store, scope: Filters, *, offset: int = 0) -> Iterator[Record]:
    """Yield every record in scope from an offset on, newest first."""
    while page := store.retrieval.list(scope, limit=_PAGE, offset=offset).records:
        yield from page
        offset += len(page)


@dataclass(frozen=True, slots=True)
class Entries:
    """Reached as `memory.entries`. Reads only; writes go through `Memory` and its groups."""

    _store: Store
    _shown: dict[Slot, str] = field(default_factory=dict)  # numbers that a database could not store → record

    def get(self, id_: str) -> Record | None:
        """An entry, live or retired, by its whole id."""
        return self._store.retrieval.record(id_)

    def get_many(self, ids: Sequence[str]) -> tuple[Record, ...]:
        """Live entries in the order of the ids; unknown ids are left out."""
        return self._store.retrieval.records(ids)

    def find(self, reference: str) -> Record:
        """An entry, live or retired, by its id or a unique prefix. Raises NotFoundError and AmbiguousIdError."""
        return find_entry(self._store, reference)

    def starting(self, prefix: str, *, limit: int = 50) -> tuple[Record, ...]:
        """The first live records, chunks included, whose ids start with a prefix."""
        return self._store.retrieval.records(self._store.retrieval.resolve(prefix.lower(), limit))

    def history(self, id_: str) -> tuple[Change, ...]:
        """Every change of an entry, oldest first."""
        return self._store.entries.history(self.find(id_).id)

    def by_number(self, agent: str, number: int, program: str, kind: Kind) -> Record | None:
        """An entry of a kind, live or retired, by the number that a program's tools know it by."""
        id_ = self._store.entries.by_number(agent, number, program=program, kind=kind)
        id_ = id_ or self._shown.get((program, kind, agent, number))
        return None if id_ is None else self.get(id_)

    def numbers(self, program: str, records: Iterable[Record]) -> dict[str, int]:
        """The number of each record that is shown by a program's tools; those that have none get one.

        A database that cannot be written remembers none: this process does, and a number that is taken is left out.
        """
        store, shown = self._store.entries, list(records)
        numbers = store.numbers(program, [record.id for record in shown])
        lacking = [record for record in shown if record.id not in numbers]
        if not lacking:
            return numbers
        if not self._store.read_only:
            return numbers | store.give_numbers(program, lacking)
        for one in lacking:
            if one.number and not store.by_number(one.agent, one.number, program=program, kind=one.kind):
                numbers[one.id] = one.number
                self._shown[program, one.kind, one.agent, one.number] = one.id
        return numbers

    def agents(self) -> tuple[str, ...]:
        """Every agent that has an entry, live or retired."""
        return self._store.entries.agents()

    def page(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        """A page of records in scope, newest first, of any size."""
        return self._store.retrieval.list(filters, limit=limit, offset=offset)

    def usage(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        """How often each entry was returned and when last."""
        return self._store.retrieval.ranking_signals(ids)

    def in_conflict(self, filters: Filters) -> tuple[MemoryInConflict, ...]:
        """The memories in scope that cannot hold beside another live one, newest first, each with those others."""
        return in_conflict(self._store, filters)

    def conflicts(self, id_: str) -> tuple[Conflict, ...]:
        """The live memories that a memory cannot hold beside, and why."""
        return conflicts_of(self._store, self.find(id_).id)

    def similar(self, id_: str) -> tuple[SimilarMemory, ...]:
        """Live near-duplicates of a memory, the nearest first; none of another kind of entry."""
        # Only who looks at one memory asks: `get` and the servers' start do without these modules.
        from mindex.entries.related_memories import conflict_candidates, find_related, similar_among

        record = self.find(id_)
        related = [one for one in find_related(self._store, record) if one.record.id != record.id]
        return similar_among(record, related, (), but=conflicting(record, conflict_candidates(related)))

    def changes(self, after: int, before: int) -> Iterator[Change]:
        """Every change between two moments, in order of time."""
        return self._store.entries.changes_between(after, before)
