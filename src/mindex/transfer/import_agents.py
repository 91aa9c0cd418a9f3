"""Which agent an imported row belongs to, and its ids where another agent's records have them already."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from mindex.datatypes import Change, Record
from mindex.entries.profile import profile_id
from mindex.errors import UsageError
from mindex.ids import short_hash
from mindex.store.export_rows import ExportRow
from mindex.store.rules.changes import implied_batch


@dataclass(frozen=True, slots=True)
class AgentMapping:
    """Everything goes to one agent, or the rows of one agent go to another; other rows keep theirs."""

    everything: str = ""
    each: Mapping[str, str] = field(default_factory=dict)
    default: str = "main"  # for rows without an agent

    def __post_init__(self) -> None:
        for name in (self.everything, self.default, *self.each.values()):
            if name == "*":
                raise UsageError("'*' means all agents, and an entry belongs to one", "name one agent")

    def target(self, agent: str) -> str:
        return self.everything or self.each.get(agent) or agent or self.default


@dataclass(slots=True)
class NewIds:
    """The ids of an import that records of other agents have in the store already, and the ids that replace them.

    It is complete before the first row is stored: from then on records of the import itself have ids there. A row may
    name records of other agents, above it and below, so one table serves all rows.
    """

    replaced: dict[str, str] = field(default_factory=dict)
    _taken: set[tuple[str, str]] = field(default_factory=set)  # (id, agent)

    def note_taken(self, id_: str, agent: str) -> None:
        """Note that a row for this agent needs a new id."""
        self._taken.add((id_, agent))
        self.replaced[id_] = short_hash(id_, agent)

    def assign(self, row: ExportRow, agent: str) -> ExportRow:
        """Return the row as one of this agent."""
        record = row.record
        id_ = short_hash(record.id, agent) if (record.id, agent) in self._taken else record.id
        if record.kind == "profile":
            id_ = profile_id(agent)
        if (id_, agent) == (record.id, record.agent) and not self.replaced:
            return row
        title = f"Profile of {record.agent}"

        def assigned(state: Record) -> Record:
            winner = self.replaced.get(state.superseded_by, state.superseded_by)
            changes: dict[str, Any] = {"id": id_, "agent": agent, "superseded_by": winner}
            if state.kind == "profile" and state.title == title:
                changes |= {"title": f"Profile of {agent}", "summary": f"Profile of {agent}"}
            return replace(state, **changes)

        def assigned_batch(change: Change) -> Change:  # a copy is not undone with what it is a copy of
            batch = change.batch or implied_batch(change.action, change.reason, change.by, change.at)
            return replace(change, batch=short_hash(batch, agent)) if batch and id_ != record.id else change

        links = tuple(replace(link, target=self.replaced.get(link.target, link.target)) for link in row.links)
        row = row.with_states(assigned)
        return replace(row, links=links, history=tuple(map(assigned_batch, row.history)))
