"""Memorizer-MCP's contacts, projects and skills, read by the table of our fields: its columns have the same names.

A value that our field does not allow is kept as text, in the record's context.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from mindex.errors import UsageError
from mindex.memories.field_specs import FIELDS, THING_KINDS, FieldSpec, ThingKind, record_values, validate_fields
from mindex.memories.skill_schedule import validate_trigger
from mindex.model import Record
from mindex.store.foreign_sqlite import ForeignDatabase, ForeignRow
from mindex.transfer.importer import ExportRow, ReadRow, SkippedRow, foreign_id
from mindex.transfer.importers import foreign_values as foreign
from mindex.transfer.importers.sqlite_source import key_of

TABLES: Mapping[str, ThingKind] = {f"{kind}s": kind for kind in THING_KINDS}
_NAME = "memorizer"
_COLUMNS = ("id", "agent_id", "name", "created_at")


def read_things(database: ForeignDatabase) -> Iterator[ReadRow]:
    """Yield the contacts, projects and skills."""
    # A project names contacts by their integer ids; here they have other ids.
    contacts = {key_of(row): _id("contacts", row) for row in database.rows("contacts", *_COLUMNS)}
    for table, kind in TABLES.items():
        fields = (spec.name for spec in FIELDS[kind])
        for row in database.rows(table, *_COLUMNS, "updated_at", *fields):
            yield _thing(table, kind, row, contacts, database.modified)


def _id(table: str, row: ForeignRow) -> str:
    return foreign_id(_NAME, table, agent_of(row), key_of(row), row["created_at"], foreign.text(row["name"]))


def agent_of(row: Mapping[str, Any]) -> str:
    return foreign.text(row["agent_id"]).strip() or "main"


def _thing(table: str, kind: ThingKind, row: ForeignRow, contacts: Mapping[str, str], modified: int) -> ReadRow:
    key, where = key_of(row), f"{table} {key_of(row)}"
    if not foreign.text(row["name"]).strip():
        return SkippedRow(where, "it has no name")
    fields, refused = _fields(kind, row, contacts)
    try:
        values = record_values(kind, validate_fields(kind, fields))
    except UsageError as error:
        return SkippedRow(where, error.message)
    at = foreign.time_ms(row["created_at"], modified)
    bare = Record(
        id=_id(table, row),
        kind=kind,
        text="",
        agent=agent_of(row),
        created_at=at,
        updated_at=foreign.time_ms(row["updated_at"], at),
        number=foreign.integer(key),
        context="\n".join(f"{name}: {foreign.json_text(value)}" for name, value in refused.items()),
        source=f"{_NAME}:{table}:{key}",
    )
    return ExportRow(replace(bare, **values), where=where)  # type: ignore[arg-type]  # validated by name


def _fields(kind: ThingKind, row: ForeignRow, contacts: Mapping[str, str]) -> tuple[dict[str, object], dict[str, Any]]:
    """Return the values that our fields allow, and those that they do not."""
    fields: dict[str, object] = {}
    refused: dict[str, Any] = {}
    for spec in FIELDS[kind]:
        value = _value(spec, row[spec.name], contacts)
        if value in (None, "", []):
            continue
        try:
            fields[spec.name] = spec.check(value)
        except ValueError:
            refused[spec.name] = row[spec.name]
    if kind == "skill":
        _replace_invalid_trigger(fields, refused)
    return fields, refused


def _value(spec: FieldSpec, value: Any, contacts: Mapping[str, str]) -> object:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if spec.shape == "texts":
        return [contacts.get(one, one) if spec.contacts else one for one in foreign.texts(value)]
    if spec.shape == "json":
        parsed = foreign.json_value(value)
        broken = parsed is None and foreign.text(value).strip() != "null"
        return value if broken else parsed  # as the text that it is, which no field allows
    if spec.time and foreign.integer(value) is not None:
        return foreign.iso_time(value)
    text = foreign.text(value)
    return contacts.get(text, text) if spec.contacts else text


def _replace_invalid_trigger(fields: dict[str, object], refused: dict[str, Any]) -> None:
    """Import a skill whose trigger is invalid, too, as one that is run by hand."""
    trigger = str(fields.get("trigger_type", ""))
    try:
        validate_trigger(trigger or "manual", fields.get("trigger_config") or {})
    except UsageError:
        refused["trigger_type"] = trigger
        fields["trigger_type"] = "manual"
    fields.setdefault("trigger_type", "manual")
