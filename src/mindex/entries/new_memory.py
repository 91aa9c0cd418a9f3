"""A new memory becomes a record: its properties are redacted and checked, and rules fill in those not given.

Every text is redacted before any other rule sees it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from mindex.datatypes import Kind, Record
from mindex.entries import validation
from mindex.entries.anchors import make_anchor
from mindex.entries.entities import extract_entities
from mindex.entries.importance import estimate_importance
from mindex.entries.summary import summarize
from mindex.errors import UsageError
from mindex.ids import new_id
from mindex.redaction.json_values import redact_value
from mindex.redaction.redactor import Redactor
from mindex.type_rules import memory_type


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to add, as the caller gives it. Rules fill in what is not given."""

    text: str
    type: str = ""  # '': by rules
    agent: str = "main"
    importance: int | None = None
    confidence: float = 1.0
    tags: Sequence[str] = ()
    entities: Sequence[str] | None = None
    summary: str = ""
    context: str = ""
    source: str = ""
    expires_at: int | None = None
    supersedes: str = ""
    kind: Kind = "memory"
    title: str = ""
    anchor: str = ""  # `path:10-40`
    fields: Mapping[str, object] | None = None


# What `update` can change.
UPDATABLE = tuple(sorted({one.name for one in fields(NewMemory)} - {"agent", "kind"}))
# Most properties of a new memory are not given, and what is at its default needs no check.
_DEFAULTS = tuple((one.name, one.default) for one in fields(NewMemory) if one.name in {*UPDATABLE} - {"supersedes"})


def make_records(
    memories: Sequence[NewMemory], redactor: Redactor, moment: int
) -> list[tuple[Record, tuple[str, ...]]]:
    """The record of each memory, and the kinds of secrets that were redacted in it.

    Each rule reads all texts before the next one does: its patterns stay in the processor's cache, by which the
    rules take a quarter less time.
    """
    given = [_given(memory, redactor, moment) for memory in memories]
    pairs = [(memory, values) for memory, (values, _) in zip(memories, given, strict=True)]
    for memory, values in pairs:
        values["type"] = values.get("type") or memory_type(memory.text)
    for _, values in pairs:
        values["summary"] = values.get("summary") or summarize(values["text"])
    for memory, values in pairs:
        if memory.importance is None:
            values["importance"] = estimate_importance(values["text"], values["type"])
    for memory, values in pairs:
        if memory.entities is None:
            values["entities"] = extract_entities(values["text"])
    return [
        (Record(new_id(), memory.kind, agent=memory.agent, **values), kinds)
        for memory, (values, kinds) in zip(memories, given, strict=True)
    ]


def _given(memory: NewMemory, redactor: Redactor, now: int) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The properties that a memory was given, redacted, and the kinds of secrets that they held."""
    kinds: dict[str, None] = {}

    def redact(text: str) -> str:
        if not text:  # most properties are not given
            return text
        result = redactor.redact(text)
        kinds.update(dict.fromkeys(result.redacted))
        return result.text

    given = {
        name: value for name, default in _DEFAULTS if (value := getattr(memory, name)) is not None and value != default
    }
    values = clean_properties(given, redact, now)
    if place := values.pop("anchor", None):
        values["fields"] = {**values.get("fields", {}), "anchor": place}
    values.setdefault("confidence", memory.confidence)
    return {**values, "created_at": now, "updated_at": now}, tuple(kinds)


Redact = Callable[[str], str]


def clean_properties(properties: Mapping[str, Any], redact: Redact, now: int) -> dict[str, Any]:
    """The properties of a memory, redacted, as they are stored. Raises UsageError for one that is not valid."""
    properties = validation.validate_properties(properties)
    return {name: check(properties[name], redact, now) for name, check in _CHECKS.items() if name in properties}


def _text(value: object, redact: Redact, _now: int) -> str:
    return validation.validate_text(redact(validation.validate_text(str(value)))).strip()


def _plain(value: object, redact: Redact, _now: int) -> object:
    redacted = redact_value(value, redact)
    return redacted.strip() if isinstance(redacted, str) else redacted


def _texts(values: Iterable[object], redact: Redact, _now: int) -> tuple[str, ...]:
    redacted = (redact(str(value)).strip() for value in values)
    return tuple(dict.fromkeys(filter(None, redacted)))


def _anchor(value: object, redact: Redact, _now: int) -> object:
    made = make_anchor(str(value), Path.cwd()) if value else {}
    path = str(made.get("path", ""))
    if redact(path) != path:
        raise UsageError("the path of the anchor contains a secret or invisible characters", "rename the file")
    return made


def _expiry(value: object, _redact: Redact, now: int) -> int | None:
    return None if value is None else validation.validate_expiry(int(str(value)), now)


# In the order of the errors that they raise.
_CHECKS: dict[str, Callable[[Any, Redact, int], object]] = {
    "text": _text,
    "type": lambda value, _redact, _now: validation.validate_type(str(value)),
    "importance": lambda value, _redact, _now: validation.validate_importance(int(str(value))),
    "fields": _plain,
    "anchor": _anchor,
    "entities": _texts,
    "title": _plain,
    "tags": _texts,
    "summary": _plain,
    "context": _plain,
    "source": _plain,
    "confidence": lambda value, _redact, _now: validation.validate_confidence(float(str(value))),
    "expires_at": _expiry,
    "supersedes": _plain,
}
