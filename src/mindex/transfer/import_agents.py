"""Which agent an imported row belongs to, and its ids where another agent's records have them already."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mindex.errors import UsageError
from mindex.ids import short_hash
from mindex.memories.profile import profile_id
from mindex.model import Record
from mindex.store.export_rows import ExportRow


@dataclass(frozen=True, slots=True)
class AgentMapping:
    """Everything goes to one agent, or the rows of one agent go to another; other rows keep theirs."""

    everything: str = ""
    each: Mapping[str, str] = field(default_factory=dict)
    default: str = "main"  # for rows without an agent

    def __post_init__(self) -> None:
        for name in (self.everything, self.default, *self.each.values()):
            if name == "*":
                raise UsageError("'*' is everyone: nothing can be given to them", "name one agent")

    def target(self, agent: str) -> str:
        return self.everything or self.each.get(agent) or agent or self.default


@dataclass(frozen=True, slots=True)
class NewOwner:
    """The agent that rows go to. An id that another agent's record has in this store is replaced by a new one.

    `taken` are those ids. It is the same for all rows that name each other, so that they still do.
    """

    agent: str
    taken: frozenset[str]

    def id_of(self, id_: str) -> str:
        return short_hash(id_, self.agent) if id_ in self.taken else id_

    def assign(self, row: ExportRow) -> ExportRow:
        """Return the row as one of this agent."""
        record = row.record
        id_ = profile_id(self.agent) if record.kind == "profile" else self.id_of(record.id)
        if (id_, self.agent) == (record.id, record.agent) and not self.taken:
            return row
        title = f"Profile of {record.agent}"

        def assigned(state: Record) -> Record:
            changes: dict[str, Any] = {"id": id_, "agent": self.agent, "superseded_by": self.id_of(state.superseded_by)}
            if state.kind == "profile" and state.title == title:
                changes |= {"title": f"Profile of {self.agent}", "summary": f"Profile of {self.agent}"}
            return replace(state, **changes)

        links = tuple(replace(link, target=self.id_of(link.target)) for link in row.links)
        return replace(row.with_states(assigned), links=links)


def referenced_ids(row: ExportRow) -> Iterator[str]:
    """Yield every id that a row names: its own, and those of other records."""
    yield row.record.id
    for state in row.states():
        if state.superseded_by:
            yield state.superseded_by
    for link in row.links:
        yield link.target
