"""Storing the numbers that entries have in other programs, in PostgreSQL."""

from collections.abc import Mapping

from mindex.datatypes import Slot
from mindex.store.engine_parts import former_slots
from mindex_postgres.connection import Transaction

_PUT = """
INSERT INTO program_numbers (program, kind, agent, number, record)
SELECT * FROM unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::text[])
"""
_RAISE = "UPDATE numbers SET last = greatest(last, %s)"
_FORMER = """
SELECT id, kind, agent, number, source, fields -> 'foreign_ids' FROM records
WHERE number IS NOT NULL AND kind != 'chunk'
"""


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
