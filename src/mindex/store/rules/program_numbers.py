"""The numbers by which other programs' tools know entries, the same for every engine.

A record gets a number in a program if it is imported from it, written through its tools, or first shown by them. Any
other number names nothing there. The native number (`#5`), a property of the record, counts as one more program.

A number belongs to its record for good: it stays taken after a purge, and an import of the same record claims it
again. A new number is the record's native one, if no record of that kind has it in the program, else the next number
of the store. Numbers belong to one database: an export, a copy and a backup keep them, and `sync` does not send them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from mindex.datatypes import Record
from mindex.datatypes.program_numbers import LAST_NUMBER, NUMBERED_KINDS, Renumbered, Slot, integer_ids, named_programs

if TYPE_CHECKING:  # only an import needs it
    from mindex.store.export_rows import ImportPreview


class NumberStatements(Protocol):
    """The statements that an engine supplies. All calls of one rule are made inside one transaction."""

    def last_number(self) -> int:
        """See `EntryStatements.last_number`: where it locks, no other transaction gives a number."""

    def raise_number(self, number: int) -> None:
        """See `EntryStatements.raise_number`."""

    def program_numbers_at(self, program: str, kind: str, numbers: Sequence[int]) -> Iterable[tuple[str, int, str]]:
        """(agent, number, record) for each of these numbers that a record of any agent has, purged or not."""

    def program_numbers_of(self, program: str, ids: Sequence[str]) -> Iterable[tuple[str, int]]:
        """(record, number) for each number of these records in a program."""

    def put_program_numbers(self, numbers: Mapping[Slot, str]) -> None:
        """Store which record has which number. None of the numbers is taken."""


def read(statements: NumberStatements, program: str, ids: Sequence[str]) -> dict[str, int]:
    """The number of each record that has one in a program. A record that was merged may have several: the lowest."""
    numbers: dict[str, int] = {}
    for id_, number in statements.program_numbers_of(program, ids):
        numbers[id_] = min(number, numbers.get(id_, number))
    return numbers


def is_numbered(program: str, record: Record) -> bool:
    """Whether a program knows records of this kind by numbers."""
    return record.kind in NUMBERED_KINDS.get(program, ())


def give(statements: NumberStatements, program: str, records: Sequence[Record]) -> dict[str, int]:
    """The number of each record in a program; those that have none get one. See `EntryStore.give_numbers`."""
    before = last = statements.last_number()
    numbers = read(statements, program, [record.id for record in records])
    lacking = {one.id: one for one in records if is_numbered(program, one) and one.id not in numbers}
    taken: set[tuple[str, int]] = set()
    for kind in {record.kind for record in lacking.values()}:
        wanted = [one.number for one in lacking.values() if one.kind == kind and one.number is not None]
        taken.update((kind, number) for _, number, _ in statements.program_numbers_at(program, kind, wanted))
    new: dict[Slot, str] = {}
    for record in lacking.values():
        number = record.number
        if number is None or (record.kind, number) in taken:
            number = last = last + 1
        taken.add((record.kind, number))
        numbers[record.id] = number
        new[program, record.kind, record.agent, number] = record.id
    statements.put_program_numbers(new)
    if last > before:
        statements.raise_number(last)
    return numbers


# ── imports ───────────────────────────────────────────────────────────────────────────────────────────────────


def taken_slots(statements: NumberStatements, slots: Iterable[Slot]) -> dict[Slot, str]:
    """Those of the numbers that a record has, and which one."""
    wanted: dict[tuple[str, str], list[int]] = {}
    for program, kind, _, number in slots:
        if 0 < number <= LAST_NUMBER:
            wanted.setdefault((program, kind), []).append(number)
    return {
        (program, kind, agent, number): id_
        for (program, kind), numbers in wanted.items()
        for agent, number, id_ in statements.program_numbers_at(program, kind, numbers)
    }


def claim(
    statements: NumberStatements, id_: str, slots: Sequence[Slot], known: ImportPreview, fresh: int | None
) -> tuple[Renumbered, ...]:
    """Give an imported record the numbers that it had, as far as they are free; others are replaced by one number.

    `fresh` is its native number if it is a new one, which no record has in any program. What is given is noted in
    `known`. Returns the replaced ones.
    """
    renumbered = []
    for slot in slots:
        program, kind, agent, old = slot
        if 0 < old <= LAST_NUMBER and known.program_numbers.setdefault(slot, id_) == id_:
            known.numbers_given.setdefault((program, id_), old)
            known.last_number = max(old, known.last_number)
            continue
        number = known.numbers_given.get((program, id_)) or read(statements, program, [id_]).get(id_)
        if number is None:
            number = fresh or known.last_number + 1
            known.last_number = max(number, known.last_number)
            known.program_numbers[program, kind, agent, number] = id_
        known.numbers_given[program, id_] = number
        renumbered.append(Renumbered(kind, old, number, program))
    return tuple(renumbered)


# ── numbers of 0.1.0, which had one number per record for all programs ──────────────────────────────────────────


def former_numbers(kind: str, number: int | None, source: str, foreign_ids: object) -> dict[str, tuple[int, ...]]:
    """Program → the numbers by which its clients may know a record that an older version stored, the best one first.

    Its number is valid in the program that it came from; without one, in all. So is the id that it had there.
    """
    named, own = named_programs(source, foreign_ids), () if number is None else (number,)
    found = {
        program: (*(own if program in named or not named else ()), *integer_ids(foreign_ids, program))
        for program, kinds in NUMBERED_KINDS.items()
        if kind in kinds
    }
    return {program: tuple(dict.fromkeys(numbers)) for program, numbers in found.items() if numbers}


def former_slots(rows: Iterable[tuple[str, str, str, int | None, str, object]]) -> dict[Slot, str]:
    """The numbers of a store that an older version made, from (id, kind, agent, number, source, foreign ids).

    If two records claim a number, the one that came from the program has it, then the one that it was imported for.
    """
    claims: tuple[list[tuple[Slot, str]], ...] = ([], [], [])
    for id_, kind, agent, number, source, foreign_ids in rows:
        named = named_programs(source, foreign_ids)
        for program, numbers in former_numbers(kind, number, source, foreign_ids).items():
            for one in numbers:
                strength = 1 if one != number else 0 if program in named else 2
                claims[strength].append(((program, kind, agent, one), id_))
    slots: dict[Slot, str] = {}
    for slot, id_ in (one for strength in claims for one in strength):
        slots.setdefault(slot, id_)
    return slots
