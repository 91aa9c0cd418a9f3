"""What language models made of what was told: facts out of exchanges, several memories made one."""

from __future__ import annotations

from typing import Literal, TypeAlias

from mindex.model.records import Record
from mindex.values import dataclass

# The link between a fact and the exchange it was taken from.
FROM = "from"

ProposalKind: TypeAlias = Literal["merge", "summary"]


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """What became of asking exchanges for their facts: how many answered, facts that are new, exchanges left."""

    processed: int = 0
    facts: int = 0
    remaining: int = 0
    notes: tuple[str, ...] = ()
    unanswered: int = 0  # exchanges beside those: they went wrong too often, and are left alone for a while
    in_vain: bool = False  # exchanges were to be asked, and not one of them was answered
    new: tuple[Record, ...] = ()  # the facts themselves, of one exchange that was asked alone


@dataclass(frozen=True, slots=True)
class Proposal:
    """Several memories that one could stand for: `kept`, the one of them that says it all, or `result`, a new text."""

    kind: ProposalKind
    originals: tuple[Record, ...]
    result: str
    why: str
    kept: str = ""  # the id of the original that stays; empty: the result is a new memory
    by: Literal["rule", "model"] = "rule"
    applied: str = ""  # once it was carried out: the id of the memory that stands for the others
    updated: bool = False  # the original that stays took something over from the others


@dataclass(frozen=True, slots=True)
class Consolidation:
    """What could be made of old memories or, when applied, was."""

    proposals: tuple[Proposal, ...]
    looked_at: int = 0
    notes: tuple[str, ...] = ()
    younger: int = 0  # told too lately to be looked at
    older_than: str = ""  # what was spared, as it was asked for

    @property
    def retired(self) -> int:
        """How many memories left the searches for another one."""
        return sum(len(one.originals) - bool(one.kept) for one in self.proposals if one.applied)
