"""The table of the numbers that entries have in other programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mindex.store.sql.statements import Statements

_RECORD = """
SELECT n.record FROM program_numbers n JOIN records r ON r.id = n.record
WHERE n.program = ? AND n.kind = ? AND n.number = ? AND n.agent = ?
"""
_AT = "SELECT agent, number, record FROM program_numbers WHERE program = ? AND kind = ? AND number $among"
_OF = "SELECT record, number FROM program_numbers WHERE program = ? AND record $among"


def record_at(statements: Statements, program: str, kind: str, agent: str, number: int) -> str | None:
    """The id of the record that has a number in a program; None if there is none, or it was purged."""
    id_ = statements.value(_RECORD, program, kind, number, agent)
    return None if id_ is None else str(id_)


def at(statements: Statements, program: str, kind: str, numbers: Sequence[int]) -> Iterable[tuple[str, int, str]]:
    return statements.among(_AT, numbers, program, kind)


def of(statements: Statements, program: str, ids: Sequence[str]) -> Iterable[tuple[str, int]]:
    return statements.among(_OF, ids, program)
