"""What language models make of entries: facts out of turns, one memory out of several."""

from typing import Literal

from mindex.datatypes.records import Record
from mindex.values import dataclass

# The link between a fact and the turn it was taken from.
FROM = "from"


@dataclass(frozen=True, slots=True)
class ExtractionReport:
    """How many turns a model took facts from, how many facts are new, and how many turns remain."""

    processed: int = 0
    facts: int = 0
    remaining: int = 0
    notes: tuple[str, ...] = ()
    unanswered: int = 0  # further turns: the model failed on them too often, and they are left alone for a while
    in_vain: bool = False  # there were turns to process, and the model failed on all of them
    new: tuple[Record, ...] = ()  # the facts themselves, where a single turn was processed


@dataclass(frozen=True, slots=True)
class Proposal:
    """Several memories that one could replace: `kept`, the most complete of them, or `result`, a new text."""

    kind: Literal["merge", "summary"]
    originals: tuple[Record, ...]
    result: str
    why: str
    kept: str = ""  # the id of the original that stays; empty: the result is a new memory
    by: Literal["rule", "model"] = "rule"
    applied: str = ""  # the id of the memory that replaced the others, once it was applied
    updated: bool = False  # the original that stays took tags or other properties of the others


@dataclass(frozen=True, slots=True)
class Consolidation:
    """Proposals to merge or summarise old memories; when applied, with the results."""

    proposals: tuple[Proposal, ...]
    examined: int
    notes: tuple[str, ...] = ()
    younger: int = 0  # memories that are too young to be looked at
    older_than: str = ""  # the age that was requested

    @property
    def applied(self) -> int:
        """How many proposals were applied."""
        return sum(bool(one.applied) for one in self.proposals)

    @property
    def retired(self) -> int:
        """How many memories were replaced by another one, and are no longer found."""
        return sum(len(one.originals) - bool(one.kept) for one in self.proposals if one.applied)
