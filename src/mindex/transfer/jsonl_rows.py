"""One row as one JSON object, and back: every property, every change, every link; what is at its default is left out.

Changes are told backwards from the record as it is now: each names only what it replaced (`before`), so that a long
life costs little more than a short one. A change without `before` made the record.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from mindex.model import Change, Record
from mindex.store.export_rows import ExportedVectors, ExportRow, Extraction, Link

Json = dict[str, Any]

_TIMES = frozenset({"created_at", "updated_at", "expires_at", "retired_at"})
_LISTS = frozenset({"tags", "entities"})
_WORDS = frozenset({"kind", "agent", "type", "title", "summary", "context", "source", "superseded_by", "text"})
_KEPT = (
    "kind", "agent", "number", "type", "created_at", "updated_at", "expires_at", "retired_at", "superseded_by",
    "importance", "confidence", "source", "tags", "entities", "title", "summary", "context", "fields", "text",
)  # fmt: skip
_DEFAULTS = Record(id="", kind="memory", text="")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)


class Malformed(ValueError):
    """A line that is not what it should be; says why."""


# ── times ─────────────────────────────────────────────────────────────────────────────────────────────────────


def stamp(moment: int) -> str:
    """ISO 8601 to the millisecond, which is all that is stored: nothing is lost."""
    return (_EPOCH + moment * _MILLISECOND).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment_of(value: object) -> int:
    if not isinstance(value, str):
        raise Malformed(f"{value!r:.40} is not a time")
    try:
        at = datetime.fromisoformat(value)
        return ((at if at.tzinfo else at.replace(tzinfo=UTC)) - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError):
        raise Malformed(f"'{value:.40}' is not a time") from None


# ── out ───────────────────────────────────────────────────────────────────────────────────────────────────────


def row_json(row: ExportRow) -> Json:
    """The record without its history."""
    record = row.record
    shown: Json = {"id": record.id}
    for name in _KEPT:
        value = getattr(record, name)
        if value != getattr(_DEFAULTS, name) or name in ("kind", "text"):
            shown[name] = _encoded(name, value)
    if row.links:
        shown["links"] = [
            {"to": link.target, "kind": link.kind, "weight": link.weight, "at": stamp(link.created_at)}
            for link in row.links
        ]
    if row.vectors:
        shown["vectors"] = [
            {
                "model": one.model,
                "dimensions": one.dimensions,
                "fluency": one.fluency,
                "data": base64.b64encode(one.data).decode(),
            }
            for one in row.vectors
        ]
    if row.extraction is not None:
        shown["extracted"] = {"at": stamp(row.extraction.at), "facts": row.extraction.facts}
    return shown


def history_json(record: Record, history: Sequence[Change]) -> list[Json]:
    """The changes, oldest first."""
    told: list[Json] = []
    state = record
    for change in reversed(history):
        entry: Json = {"change": change.change, "at": stamp(change.at), "by": change.by, "action": change.action}
        if change.reason:
            entry["reason"] = change.reason
        if later := _differing(change.after, state):  # a time that was refreshed without a change, as a rule
            entry["after"] = later
        if change.before is not None:
            entry["before"] = _differing(change.before, change.after)
        state = change.before or change.after
        told.append(entry)
    return told[::-1]


def _differing(record: Record, other: Record) -> Json:
    """What of a record is not as in another one."""
    return {name: _encoded(name, getattr(record, name)) for name in _KEPT if not _same(name, record, other)}


def _same(name: str, record: Record, other: Record) -> bool:
    value, before = getattr(record, name), getattr(other, name)
    if value is before or value != before:
        return value is before
    # To Python 1 is True and 1.0, and the order of names is nothing.
    return name != "fields" or json.dumps(value) == json.dumps(before)


def _encoded(name: str, value: Any) -> Any:
    if value is None:
        return None
    if name in _TIMES:
        return stamp(value)
    if name in _LISTS:
        return list(value)
    if name == "confidence":
        return float(value)
    return dict(value) if name == "fields" else value


# ── in ────────────────────────────────────────────────────────────────────────────────────────────────────────


def row_of(line: Mapping[str, Any], where: str = "") -> ExportRow:
    """The row without its history; raises Malformed."""
    id_ = line.get("id")
    if not isinstance(id_, str) or not {"kind", "text"} <= line.keys():
        raise Malformed("a record needs an id, a kind and a text")
    values = {name: _decoded(name, line[name]) for name in _KEPT if name in line}
    links = tuple(
        Link(_text(one, "to"), _text(one, "kind"), _number(one, "weight"), moment_of(one.get("at")))
        for one in _objects(line, "links")
    )
    vectors = tuple(
        ExportedVectors(_text(one, "model"), _whole(one, "dimensions"), _number(one, "fluency"), _bytes(one, "data"))
        for one in _objects(line, "vectors")
    )
    return ExportRow(Record(id=id_, **values), (), links, vectors, _extraction(line), where)


def _extraction(line: Mapping[str, Any]) -> Extraction | None:
    said = line.get("extracted")
    if said is None:
        return None
    if not isinstance(said, dict):
        raise Malformed("'extracted' is not an object")
    return Extraction(moment_of(said.get("at")), max(0, min(_whole(said, "facts"), 2**31)))


def history_of(record: Record, entries: Sequence[Mapping[str, Any]]) -> tuple[Change, ...]:
    """The changes that `history_json` told of; raises Malformed."""
    changes = []
    state = record
    for entry in reversed(entries):
        after = _revised(state, entry.get("after"))
        before = _revised(after, entry["before"]) if "before" in entry else None
        change = Change(
            change=_whole(entry, "change"),
            record=record.id,
            at=moment_of(entry.get("at")),
            by=_text(entry, "by"),
            action=_text(entry, "action"),
            reason=_text(entry, "reason") if "reason" in entry else "",
            before=before,
            after=after,
        )
        changes.append(change)
        state = before or after
    return tuple(reversed(changes))


def objects(value: object, what: str) -> list[Mapping[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
        raise Malformed(f"the {what} are not a list of objects")
    return value


def _objects(line: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    return objects(line[name], name) if name in line else []


def _revised(record: Record, values: object) -> Record:
    if not values:
        return record
    if not isinstance(values, dict):
        raise Malformed("a change's `before` and `after` are objects")
    return replace(record, **{name: _decoded(name, value) for name, value in values.items() if name in _KEPT})


def _decoded(name: str, value: Any) -> Any:
    if name in _TIMES:
        return None if value is None else moment_of(value)
    if name in _LISTS:
        if not isinstance(value, list) or not all(isinstance(one, str) for one in value):
            raise Malformed(f"the {name} are not a list of texts")
        return tuple(value)
    if name == "fields":
        if not isinstance(value, dict):
            raise Malformed("the fields are not an object")
        return value
    if name in _WORDS:
        if not isinstance(value, str):
            raise Malformed(f"the {name} is not a text")
        return value
    if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
        raise Malformed(f"the {name} is not a number")
    if isinstance(value, float) and name != "confidence":
        raise Malformed(f"the {name} is not a whole number")
    return value


def _text(values: Mapping[str, Any], name: str) -> str:
    value = values.get(name)
    if not isinstance(value, str):
        raise Malformed(f"'{name}' is not a text")
    return value


def _number(values: Mapping[str, Any], name: str) -> float:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Malformed(f"'{name}' is not a number")
    return value


def _whole(values: Mapping[str, Any], name: str) -> int:
    value = values.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise Malformed(f"'{name}' is not a whole number")
    return value


def _bytes(values: Mapping[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode(_text(values, name), validate=True)
    except (binascii.Error, ValueError):
        raise Malformed(f"'{name}' is not base64") from None
