"""Memorizer-MCP's contacts, projects and skills. What our fields do not allow is kept as words, in the context."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mindex.errors import UsageError
from mindex.memories.field_specs import FIELDS, Field, ThingKind, checked, described
from mindex.memories.skill_schedule import validate_trigger
from mindex.model import Record
from mindex.transfer.importer import ExportRow, SkippedRow, foreign_id
from mindex.transfer.importers.foreign_values import iso, listed, loaded, moment, said, text_of, whole
from mindex.transfer.importers.sqlite_source import key_of

_NAME = "memorizer"


def _columns(kind: ThingKind) -> tuple[str, ...]:
    return tuple(field.name for field in FIELDS[kind])


# table → kind and its columns, which bear the names of our fields
THINGS: Mapping[str, tuple[ThingKind, tuple[str, ...]]] = {
    "contacts": ("contact", _columns("contact")),
    "projects": ("project", _columns("project")),
    "skills": ("skill", _columns("skill")),
}
_TIMES = frozenset(("last_run_at", "last_notified_at"))


NAMING = ("id", "agent_id", "name", "created_at")


def thing_id(table: str, row: Mapping[str, Any]) -> str:
    return foreign_id(_NAME, table, agent_of(row), key_of(row), row["created_at"], text_of(row["name"]))


def agent_of(row: Mapping[str, Any]) -> str:
    return text_of(row["agent_id"]).strip() or "main"


def thing(
    table: str, kind: ThingKind, row: Mapping[str, Any], people: Mapping[str, str], modified: int
) -> ExportRow | SkippedRow:
    key, where = key_of(row), f"{table} {key_of(row)}"
    if not text_of(row["name"]).strip():
        return SkippedRow(where, "it has no name")
    fields, odd = _fields(kind, row, people)
    try:
        values = described(kind, checked(kind, fields))
    except UsageError as error:
        return SkippedRow(where, error.message)
    at = moment(row["created_at"], modified)
    bare = Record(
        id=thing_id(table, row),
        kind=kind,
        text="",
        agent=agent_of(row),
        created_at=at,
        updated_at=moment(row["updated_at"], at),
        number=whole(key),
        context="\n".join(f"{name}: {said(value)}" for name, value in odd.items()),
        source=f"{_NAME}:{table}:{key}",
    )
    return ExportRow(replace(bare, **values), where=where)  # type: ignore[arg-type]  # checked by name


def _fields(
    kind: ThingKind, row: Mapping[str, Any], people: Mapping[str, str]
) -> tuple[dict[str, object], dict[str, Any]]:
    """The values that our fields allow, and those that they do not."""
    fields: dict[str, object] = {}
    odd: dict[str, Any] = {}
    for field in FIELDS[kind]:
        value = _value(field, row[field.name], people)
        if value in (None, "", []):
            continue
        try:
            fields[field.name] = field.check(value)
        except ValueError:
            odd[field.name] = row[field.name]
    if kind == "skill":
        _calm(fields, odd)
    return fields, odd


def _value(field: Field, value: Any, people: Mapping[str, str]) -> object:
    if field.name == "primary_contact_id":
        return people.get(text_of(value), text_of(value))
    if field.name == "participants":
        return [people.get(one, one) for one in listed(value)]
    if field.name in _TIMES and whole(value) is not None:
        return iso(value)
    number = whole(value) if isinstance(value, float) else None
    return _READ.get(field.shape, text_of)(value if number is None else number)


def _json(value: Any) -> object:
    """Broken JSON stays the text it is, which no field allows."""
    parsed = loaded(value)
    return value if parsed is None and text_of(value).strip() != "null" else parsed


_READ: Mapping[str, Callable[[Any], object]] = {"texts": lambda value: list(listed(value)), "json": _json}


def _calm(fields: dict[str, object], odd: dict[str, Any]) -> None:
    """A skill whose trigger cannot be worked out comes in, too; it waits until somebody sets it right."""
    trigger = str(fields.get("trigger_type", ""))
    try:
        validate_trigger(trigger or "manual", fields.get("trigger_config") or {})
    except UsageError:
        odd["trigger_type"] = trigger
        fields["trigger_type"] = "manual"
    fields.setdefault("trigger_type", "manual")
