"""The agent that an entry is written for: the caller's, or the one of the settings."""

from __future__ import annotations

from mindex.errors import UsageError
from mindex.redaction.redactor import Redactor

_LONGEST = 200


class AgentName:
    """Returns the agent to write for. Raises UsageError for `*`, which means all agents, and for unusable names."""

    def __init__(self, default: str, redactor: Redactor) -> None:
        self.default = default
        self._redactor = redactor

    def __call__(self, agent: str | None) -> str:
        name = agent or self.default
        if name == "*" or not name.strip():
            raise UsageError("'*' is everyone: nobody in particular can be told", "name one agent with --agent")
        if len(name) > _LONGEST or self._redactor.redact_text(name) != name:
            raise UsageError("that is not a name for an agent", f"use at most {_LONGEST} plain characters")
        return name
