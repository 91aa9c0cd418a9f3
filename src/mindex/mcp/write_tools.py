"""The native tools that write: remember, update, forget. All that they do stays in the history and can be undone."""

from __future__ import annotations

from typing import Annotated, Any

from mcp_types import CallToolResult
from pydantic import BeforeValidator, Field

from mindex.errors import NotFoundError, UsageError
from mindex.mcp import remember_kinds
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.strict_tool import Texts, Unsaid, answer
from mindex.model import TYPES, Change
from mindex.present.entries import add_text
from mindex.present.history import change_json, change_text
from mindex.present.to_json import to_json

REMEMBER = (
    "Keep a fact, preference, decision or correction beyond this conversation: one per call, in a sentence that is"
    " clear without it. The answer names similar memories: update or supersede those."
)
UPDATE = "Change a memory: give what changes; or restore it, or undo a change."
FORGET = "Take a memory that is wrong or unwanted out of every search; `update` restores it."

LATEST = "true"
# The arguments of `update` that are not properties of a memory.
_NO_CHANGE = frozenset(("self", "id", "fields", "restore", "undo", "reason"))

Importance = Annotated[int | Unsaid, Field(description="1-10, default: by rules")]
Confidence = Annotated[float | Unsaid, Field(description="0-1, default 1")]
Names = Annotated[Texts | Unsaid, Field(description="Names in it, default: found")]
Expires = Annotated[str | Unsaid, Field(description="30d or a date")]
Fields = Annotated[
    dict[str, Any] | Unsaid,
    Field(
        description="Of other kinds: name, email, …; turn: user_message, agent_response, session_id; profile: path:"
        " value; skill: trigger_type, trigger_config, instructions"
    ),
]
Undo = Annotated[
    str | Unsaid,
    # Numbers and `true` are what a model writes, whatever the schema says.
    BeforeValidator(lambda value: {True: LATEST, False: None}[value] if isinstance(value, bool) else _text(value)),
    Field(description="A change's number, or true for the latest"),
]


def _text(value: object) -> object:
    return str(value) if isinstance(value, int) else value


class WritingTools:
    """Each method is one tool."""

    def __init__(self, service: MemoryHost) -> None:
        self._service = service

    def remember(
        self,
        text: str = "",
        type: Annotated[str, Field(description=f"Default {', '.join(TYPES)}")] = "fact",
        importance: Importance = None,
        confidence: Confidence = None,
        tags: Texts = (),
        entities: Names = None,
        summary: str = "",
        context: Annotated[str, Field(description="What it belongs to")] = "",
        source: Annotated[str, Field(description="Where it comes from")] = "",
        expires: Expires = None,
        supersedes: Annotated[str, Field(description="Id of the memory this replaces")] = "",
        kind: Annotated[str, Field(description=f"Default {', '.join(remember_kinds.KINDS)}")] = "memory",
        fields: Fields = None,
    ) -> CallToolResult:
        if kind != "memory":
            said, shown = remember_kinds.remember(self._service.memory, kind, text, fields or {}, tags)
            return answer(said, shown, self._service.notes())
        if fields:
            raise UsageError("a memory has no fields", "say it in the text, or name its kind")
        told = self._service.memory.add(
            text,
            type=type,
            importance=importance,
            confidence=1.0 if confidence is None else confidence,
            tags=tags,
            entities=entities,
            summary=summary,
            context=context,
            source=source,
            expires=expires,
            supersedes=supersedes,
        )
        return answer(add_text(told), to_json(told), self._service.notes())

    def update(
        self,
        id: str,
        text: str | Unsaid = None,
        type: str | Unsaid = None,
        importance: int | Unsaid = None,
        confidence: float | Unsaid = None,
        tags: Texts | Unsaid = None,
        entities: Texts | Unsaid = None,
        summary: str | Unsaid = None,
        context: str | Unsaid = None,
        source: str | Unsaid = None,
        expires: Annotated[str | Unsaid, Field(description="Empty: never")] = None,
        supersedes: str | Unsaid = None,
        fields: Annotated[dict[str, Any] | Unsaid, Field(description="Of other kinds")] = None,
        restore: Annotated[bool, Field(description="Bring back what was forgotten or superseded")] = False,
        undo: Undo = None,
        reason: Annotated[str, Field(description="For the history")] = "",
    ) -> CallToolResult:
        changes = {name: value for name, value in locals().items() if name not in _NO_CHANGE and value is not None}
        if bool(changes) + bool(fields) + restore + (undo is not None) != 1:
            several = changes or fields or restore or undo
            what = "say either what changes, or its fields, or restore, or undo" if several else "say what changes"
            raise UsageError("update does one thing at a time", what)
        memory = self._service.memory
        if fields:
            said, shown = remember_kinds.update(memory, id, fields, reason)
            return answer(said, shown, self._service.notes())
        if undo is not None:
            return self._undo(id, undo)
        if restore:
            return self._changed(memory.restore(id, reason), "restored")
        return self._changed(memory.update(id, reason=reason, **changes), "updated")

    def _undo(self, id_: str, reference: str) -> CallToolResult:
        """A change is named by its number alone; that it is one of this memory keeps a slip from undoing another's."""
        changes = self._service.memory.history(id_)
        wanted = str(changes[-1].change) if reference == LATEST else reference
        if wanted not in {str(change.change) for change in changes}:
            numbers = ", ".join(str(change.change) for change in changes[-10:])
            raise NotFoundError(f"'{id_}' has no change {reference}", f"its latest are {numbers}")
        change, undone = self._service.memory.undo(wanted)
        shown = change_json(change, undid=undone)
        return answer(change_text(change, f"is as before change {undone}"), shown, self._service.notes())

    def forget(
        self,
        id: str,
        reason: Annotated[str, Field(description="For the history")] = "",
    ) -> CallToolResult:
        change = self._service.memory.forget(id, reason)
        return answer(change_text(change, "forgotten"), change_json(change, forgotten=True), self._service.notes())

    def _changed(self, change: Change, what: str) -> CallToolResult:
        return answer(change_text(change, what), change_json(change), self._service.notes())
