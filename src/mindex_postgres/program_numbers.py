"""The table of the numbers that entries have in other programs, in PostgreSQL."""

from collections.abc import Mapping, Sequence

from mindex.datatypes import Slot
from mindex.store.engine_parts import former_slots
from mindex_postgres.connection import Transaction

_RECORD = """
SELECT n.record FROM program_numbers n JOIN records r ON r.id = n.record
WHERE n.program = %s AND n.kind = %s AND n.number = %s AND n.agent = %s
"""
_AT = "SELECT agent, number, record FROM program_numbers WHERE program = %s AND kind = %s AND number = ANY(%s)"
_OF = "SELECT record, number FROM program_numbers WHERE program = %s AND record = ANY(%s)"
_PUT = """
INSERT INTO program_numbers (program, kind, agent, number, record)
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[])
"""
_RAISE = "UPDATE numbers SET last = greatest(last, %s)"
_FORMER = """
SELECT id, kind, agent, number, source, fields -> 'foreign_ids' FROM records
WHERE number IS NOT NULL AND kind != 'chunk'
"""


def record_at(transaction: Transaction, program: str, kind: str, agent: str, number: int) -> str | None:
    """The id of the record that has a number in a program; None if there is none, or it was purged."""
    ids = transaction.column(_RECORD, program, kind, number, agent)
    return ids[0] if ids else None


def at(transaction: Transaction, program: str, kind: str, numbers: Sequence[int]) -> list[tuple[str, int, str]]:
    return [(agent, number, id_) for agent, number, id_ in transaction.rows(_AT, program, kind, list(numbers))]


def of(transaction: Transaction, program: str, ids: Sequence[str]) -> list[tuple[str, int]]:
    return [(id_, number) for id_, number in transaction.rows(_OF, program, list(ids))]


def put(transaction: Transaction, numbers: Mapping[Slot, str]) -> None:
    rows = [(*slot, id_) for slot, id_ in numbers.items()]
    if rows:
        transaction.defer(_PUT, *map(list, zip(*rows, strict=True)))


def put_former(transaction: Transaction) -> None:
    """Give the entries of a schema that had one number for all programs those that stay valid."""
    slots = former_slots((*values, foreign) for *values, foreign in transaction.rows(_FORMER))
    put(transaction, slots)
    # A number that another program gave may be above all of ours.
    transaction.defer(_RAISE, max((number for *_, number in slots), default=0))
