"""The native tools `remember`, `update` and `forget`. The history keeps all they change, and it can be undone."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args

from mcp_types import CallToolResult
from pydantic import BeforeValidator, Field

from mindex.datatypes import Change, ExtractionReport
from mindex.entries.field_specs import FIELDS, FieldEntryKind
from mindex.entries.options import MEMORY_OPTIONS
from mindex.errors import NotFoundError, UsageError
from mindex.mcp.tools import REFRESHES, REVISES, Omitted, Texts, Toolset, described, tool, tool_result
from mindex.memory import Memory
from mindex.present.entries import add_text, thing_added_json, thing_added_text, turn_added_json, turn_added_text
from mindex.present.history import (
    change_json,
    change_text,
    fields_changed_json,
    fields_changed_text,
    undo_json,
    undo_text,
)
from mindex.present.to_json import Json, to_json

_REMEMBER = (
    "Store a fact, preference, decision or correction: one per call, as text that is clear without this"
    " conversation. The result names similar memories and conflicts: update or supersede those."
)
KINDS = ("memory", "turn", "profile", *get_args(FieldEntryKind))
_TURN_FIELDS = ("user_message", "agent_response", "session_id", "at")
# What `remember` and `update` take of a memory.
_PROPERTIES = [one.argument for one in MEMORY_OPTIONS if one.argument]
_ABOUT = described(MEMORY_OPTIONS)
_ABOUT_CHANGE = {**_ABOUT, "expires": Field(description="Empty: never")}
_LATEST = "true"

# A result as text and as JSON.
TextAndJson = tuple[str, dict[str, Json]]
Fields = Annotated[
    dict[str, Any] | Omitted,
    Field(
        description="Of other kinds: name, email, …; turn: user_message, agent_response, session_id; profile: path,"
        " value, replace; skill: trigger_type, trigger_config, instructions"
    ),
]
Undo = Annotated[
    str | Omitted,
    # Models write numbers and `true` even if the schema says otherwise.
    BeforeValidator(lambda value: {True: _LATEST, False: None}[value] if isinstance(value, bool) else _text(value)),
    Field(description="A change's number, or true: the latest"),
]


def _text(value: object) -> object:
    return str(value) if isinstance(value, int) else value


# ── other kinds than memories ─────────────────────────────────────────────────────────────────────────────────


def _remember(memory: Memory, kind: str, text: str, fields: Mapping[str, Any], tags: Sequence[str]) -> TextAndJson:
    """Add an entry of another kind. Raises UsageError for an unknown kind or field."""
    if kind == "turn":
        return _add_turn(memory, {**({"user_message": text} if text else {}), **fields}, tags)
    if kind not in KINDS:
        raise UsageError(f"unknown kind '{kind}'", f"use one of {', '.join(KINDS)}")
    if text or tags:
        raise UsageError(f"a {kind} consists of fields", "pass all values in fields")
    if kind == "profile":
        changes, replace = _profile_changes(fields)
        change = memory.profile.set(changes, replace=replace)
        return fields_changed_text(change, "changed"), fields_changed_json(change)
    things = memory.field_entries(kind)
    record = things.add(**_known_fields(kind, fields))
    notes = things.notes(record)
    return thing_added_text(record, notes), thing_added_json(record, notes)


def _add_turn(memory: Memory, fields: Mapping[str, Any], tags: Sequence[str]) -> TextAndJson:
    texts: dict[str, Any] = {"user_message": "", "agent_response": ""}
    texts |= {name: str(value) for name, value in _known_fields("turn", fields).items() if value is not None}
    turn, redacted = memory.conversations.add(**texts, tags=tags)
    report = ExtractionReport(notes=memory.embedding_queue.notes(turn.id))
    return turn_added_text(turn, redacted, report), turn_added_json(turn, redacted, report)


def _update(memory: Memory, id_: str, fields: Mapping[str, Any], reason: str) -> TextAndJson:
    """Change fields of a contact, project or skill, or values of the profile."""
    record = memory.entries.find(id_)
    if record.kind == "profile":
        changes, replace = _profile_changes(fields)
        change = memory.profile.set(changes, reason, agent=record.agent, replace=replace)
    elif record.kind in FIELDS:
        change = memory.field_entries(record.kind).update(record.id, reason, **_known_fields(record.kind, fields))
    else:
        raise UsageError(f"a {record.kind} has no fields to change", "pass each property under its own name")
    return fields_changed_text(change, "updated"), fields_changed_json(change)


def _profile_changes(fields: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """Return the values of a profile by their paths, and whether they may replace whole objects.

    Fields are `path` and `value`, with `replace` where that is meant, or paths with their values.
    """
    if "path" not in fields or "value" not in fields or not {*fields} <= {"path", "value", "replace"}:
        return fields, False
    path, replace = fields["path"], fields.get("replace", False)
    if not isinstance(path, str) or not isinstance(replace, bool):
        raise UsageError(
            "path must be a text, and replace true or false", 'write {"path": "user.name", "value": "Ada"}'
        )
    return {path: fields["value"]}, replace


def _known_fields(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields, safe to pass as keywords. Raises UsageError for an unknown one."""
    known = _TURN_FIELDS if kind == "turn" else [field.name for field in FIELDS[kind]]  # type: ignore[index]  # checked by name
    unknown = sorted(set(fields) - set(known))
    if unknown:
        raise UsageError(f"a {kind} has no '{unknown[0]}'", f"use {', '.join(known)}")
    return dict(fields)


# ── the tools ─────────────────────────────────────────────────────────────────────────────────────────────────


class WriteTools(Toolset):
    @tool(_REMEMBER, REFRESHES)
    def remember(
        self,
        # written by scripts/reference: options of a memory
        text: str = "",
        type: Annotated[str, _ABOUT["type"]] = "",
        importance: Annotated[int | Omitted, _ABOUT["importance"]] = None,
        confidence: Annotated[float | Omitted, _ABOUT["confidence"]] = None,
        tags: Texts = (),
        entities: Annotated[Texts | Omitted, _ABOUT["entities"]] = None,
        summary: str = "",
        context: Annotated[str, _ABOUT["context"]] = "",
        source: str = "",
        expires: Annotated[str | Omitted, _ABOUT["expires"]] = None,
        supersedes: Annotated[str, _ABOUT["supersedes"]] = "",
        # end: options of a memory
        kind: Annotated[str, Field(description=f"Default {', '.join(KINDS)}")] = "memory",
        fields: Fields = None,
    ) -> CallToolResult:
        if kind != "memory":
            return tool_result(*_remember(self._memory, kind, text, fields or {}, tags), self.host.notes())
        if fields:
            raise UsageError("a memory has no fields", "put it in the text, or pass another kind")
        result = self._memory.add(**_properties(locals()))
        return tool_result(add_text(result), to_json(result), self.host.notes())

    @tool("Change a memory by id: pass a new text or other values, or restore, or undo.", REVISES)
    def update(
        self,
        id: str,
        # written by scripts/reference: changes of a memory
        text: str | Omitted = None,
        type: str | Omitted = None,
        importance: int | Omitted = None,
        confidence: float | Omitted = None,
        tags: Texts | Omitted = None,
        entities: Texts | Omitted = None,
        summary: str | Omitted = None,
        context: str | Omitted = None,
        source: str | Omitted = None,
        expires: Annotated[str | Omitted, _ABOUT_CHANGE["expires"]] = None,
        supersedes: Annotated[str | Omitted, _ABOUT_CHANGE["supersedes"]] = None,
        # end: changes of a memory
        fields: dict[str, Any] | Omitted = None,
        restore: Annotated[bool, Field(description="Bring back a forgotten or superseded memory")] = False,
        undo: Undo = None,
        reason: str = "",
    ) -> CallToolResult:
        changes = _properties(locals())
        given = bool(changes) + bool(fields) + restore + (undo is not None)
        if not given:
            raise UsageError(
                f"there is nothing to change in '{id}'",
                f"pass one or more of {', '.join(_PROPERTIES)}; or fields, restore or undo",
            )
        if given > 1:
            raise UsageError(
                "update makes one kind of change per call", "pass new values, or fields, or restore, or undo"
            )
        if fields:
            return tool_result(*_update(self._memory, id, fields, reason), self.host.notes())
        if undo is not None:
            return self._undo(id, undo)
        if restore:
            return self._changed(self._memory.restore(id, reason), "restored")
        return self._changed(self._memory.update(id, reason=reason, **changes), "updated")

    def _undo(self, id_: str, reference: str) -> CallToolResult:
        """Undo a change by its number, which must be one of this memory: a wrong number undoes no other memory."""
        changes = self._memory.history(id_)
        if reference == _LATEST:
            reference = changes[-1].record
        elif reference not in {str(change.change) for change in changes}:
            numbers = ", ".join(str(change.change) for change in changes[-10:])
            raise NotFoundError(f"'{id_}' has no change {reference}", f"its latest are {numbers}")
        change, undone = self._memory.undo(reference)
        return tool_result(undo_text(change, undone), undo_json(change, undone), self.host.notes())

    @tool("Exclude a wrong or unwanted memory, by id, from every search; `update` restores it.", REFRESHES)
    def forget(self, id: str, reason: str = "") -> CallToolResult:
        return self._changed(self._memory.forget(id, reason), "forgotten", forgotten=True)

    def _changed(self, change: Change, what: str, **more: Json) -> CallToolResult:
        return tool_result(change_text(change, what), change_json(change, **more), self.host.notes())


def _properties(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the properties of a memory among the arguments of a tool, without those that are None."""
    return {name: arguments[name] for name in _PROPERTIES if arguments[name] is not None}
