"""Entries as JSON: their states in the history, and the values of their columns that are lists or objects."""

import json
from operator import attrgetter
from typing import Any

from mindex.datatypes import Change, Record
from mindex.datatypes.record_properties import ENTRY_PROPERTIES

encode = json.JSONEncoder(ensure_ascii=False).encode  # `json.dumps` would make an encoder for every value
_STORED = tuple(one.name for one in ENTRY_PROPERTIES)
_VALUES = attrgetter(*_STORED)
_LEFT_OUT = tuple(None if one.required else one.default for one in ENTRY_PROPERTIES)
_TEXTS = tuple(one.name for one in ENTRY_PROPERTIES if one.value == "texts")


def decode_texts(stored: str) -> tuple[str, ...]:
    return tuple(json.loads(stored)) if stored != "[]" else ()  # most records have none


def decode_object(stored: str) -> dict[str, object]:
    decoded: dict[str, object] = json.loads(stored) if stored != "{}" else {}
    return decoded


def snapshot(record: Record) -> str:
    """An entry's state as JSON, for the history; what is at its default is left out."""
    values = zip(_STORED, _VALUES(record), _LEFT_OUT, strict=True)
    return encode({name: value for name, value, default in values if value != default})


def change_values(change: Change) -> tuple[object, ...]:
    """A change as a row of the history has it, but for its number: record, at, by, action, reason, batch and states."""
    before = None if change.before is None else snapshot(change.before)
    return (
        change.record, int(change.at), change.by, change.action, change.reason, change.batch, before,
        snapshot(change.after),
    )  # fmt: skip


def from_snapshot(text: str) -> Record:
    values: dict[str, Any] = json.loads(text)
    for name in _TEXTS:
        values[name] = tuple(values.get(name, ()))
    return Record(**values)
