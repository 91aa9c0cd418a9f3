"""Programs whose tools know entries by integer ids, and the ids that entries have in them."""

from collections.abc import Mapping
from typing import TypeAlias

from mindex.values import dataclass

# Program → the kinds that it numbers. Each kind counts alone: a fact and a contact may both have the id 3.
NUMBERED_KINDS: Mapping[str, tuple[str, ...]] = {
    "memorizer": ("memory", "contact", "project", "skill"),
    "mudpuppy": ("memory",),
}
# Programs without integer ids whose records name them: numbers of theirs are valid in no other program.
_TEXT_IDS = frozenset({"memory-exchange", "memory-mcp", "memory-search"})
# What a number names one record by: program, kind, agent, number.
Slot: TypeAlias = tuple[str, str, str, int]
# No client counts further, and it leaves engines with 64-bit numbers enough to count on.
LAST_NUMBER = 2**53


@dataclass(frozen=True, slots=True)
class Renumbered:
    """A number that belongs to another record, and the one that an imported record of this kind has instead.

    `program` is the other program whose tools know the record by it, '' for the native number.
    """

    kind: str
    old: int
    new: int
    program: str = ""


def named_programs(source: str, foreign_ids: object) -> frozenset[str]:
    """The other programs that a record's origin names: `mudpuppy`, or `memorizer:contacts:3`."""
    names = {source.partition(":")[0], *(foreign_ids if isinstance(foreign_ids, Mapping) else ())}
    return frozenset(names & {*NUMBERED_KINDS, *_TEXT_IDS})


def integer_ids(foreign_ids: object, program: str) -> tuple[int, ...]:
    """The integer ids by which a program knew a record before it was imported."""
    ids = foreign_ids.get(program, ()) if isinstance(foreign_ids, Mapping) else ()
    texts = ids if isinstance(ids, list | tuple) else (ids,)
    numbers = (int(one) for one in map(str, texts) if one.isascii() and one.isdecimal() and len(one) <= 16)
    return tuple(number for number in numbers if 0 < number <= LAST_NUMBER)
