"""What a write needs: the store, the redactor and the agent that the history names."""

from mindex.datatypes import Change
from mindex.entries.validation import validate_length
from mindex.errors import UsageError
from mindex.limits import MAX_FIELD, MAX_NAME
from mindex.redaction.redactor import Redactor
from mindex.store.base import Revision, Store
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class WriteContext:
    """The store, its redactor and the agent that writes: entries belong to it unless another agent is given."""

    store: Store
    redactor: Redactor
    name: str = ""

    def agent(self, agent: str | None) -> str:
        """The agent to write for. Raises UsageError for `*`, which means all agents, and for unusable names."""
        name = agent or self.name
        if name == "*" or not name.strip():
            raise UsageError("'*' is everyone: nobody in particular can be told", "name one agent with --agent")
        if len(name) > MAX_NAME or self.redactor.redact_text(name) != name:
            raise UsageError("that is not a name for an agent", f"use at most {MAX_NAME} plain characters")
        return name

    def revise(self, id_: str, change: Revision, action: str, reason: str = "", *, unique: str = "") -> Change:
        """Change an entry and note the change in its history, with the reason redacted; see `EntryStore.revise`."""
        reason = self.redactor.redact_text(validate_length("reason", reason, MAX_FIELD))
        return self.store.entries.revise(id_, change, by=self.name, action=action, reason=reason, unique=unique)
