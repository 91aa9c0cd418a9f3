"""Memorizer-MCP's database: facts, conversations, profiles with their history, contacts, projects and skills.

The folder of its export in JSON is read as well: facts, conversations and the profile of one agent, which has no name
there. A row has the same id in both: importing both adds it once.

Integer ids stay as numbers where those are free: facts first, because all four tables count from 1. A fact is linked to
the conversation it comes from. Vectors are made again: the database does not say which model made them.

Contacts, projects and skills are read by the table of our fields: its columns have the same names. A value that our
field does not allow is kept as text, in the record's context.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mindex.datatypes import Change, Record
from mindex.errors import MindexError, UsageError
from mindex.transfer.importer_parts import (
    EMPTY,
    FIELD_ENTRY_KINDS,
    FIELDS,
    LINK_OUT,
    MAX_VALUES_BYTES,
    ExportRow,
    FieldEntryKind,
    FieldSpec,
    Link,
    OtherRows,
    ReadRow,
    SkippedRow,
    accesses,
    foreign_id,
    json_size,
    leads_out,
    make_turn,
    memory_row,
    profile_id,
    read_json,
    record_values,
    validate_fields,
    validate_trigger,
    with_unchecked_data,
)
from mindex.transfer.importer_parts import foreign_values as foreign
from mindex_compat.foreign_sqlite import ForeignDatabase, ForeignRow
from mindex_compat.importers.sqlite_source import INDEX, VECTORS, DatabaseImporter, key_of, with_table

_FACT = "id agent_id fact category source confidence created_at updated_at last_accessed_at".split()
_THING = ("id", "agent_id", "name", "created_at")
_TURN = ("id", "agent_id", "session_id", "user_message", "agent_response", "tags", "created_at")
_TABLES: Mapping[str, FieldEntryKind] = {f"{kind}s": kind for kind in FIELD_ENTRY_KINDS}
_NUMBERED = ("facts", *_TABLES)
_UNKNOWN = "project_sources"  # of later versions, undocumented
_COMES_FROM = "source"
_NAME = "memorizer"
_EXPORT = {"facts": "facts/all-facts.json", "conversations": "conversations/recent.json", "profiles": "profile.json"}


class Memorizer(DatabaseImporter):
    name = _NAME
    needs = {"facts": ("fact",)}
    needs_one_of = ("conversations", "profiles")
    tables = ("facts", "conversations", "profiles", *_TABLES)
    parts = ("profile_history",)
    left_out = {
        "profile_history.id": "not kept: a version is known by its change",
        "facts_fts": INDEX,
        "vec_facts": VECTORS,
        _UNKNOWN: "nothing is known of this table",
    }

    def recognises(self, path: Path) -> bool:
        if not path.is_dir():
            return super().recognises(path)
        facts = path / _EXPORT["facts"]
        return facts.is_file() and not leads_out(path, facts)

    def count(self, path: Path) -> int:
        return 0 if path.is_dir() else super().count(path)

    def read(self, path: Path) -> Iterator[ReadRow]:
        return self._read_export(path) if path.is_dir() else super().read(path)

    def _read_export(self, folder: Path) -> Iterator[ReadRow]:
        if not self.recognises(folder):
            raise UsageError(f"{folder} is not an export of {self.name}", f"an export has {_EXPORT['facts']}")
        for table, name in _EXPORT.items():
            file = folder / name
            if leads_out(folder, file):
                yield SkippedRow(name, LINK_OUT, row=False)
                continue
            try:
                value = read_json(file) if file.is_file() else []
            except MindexError as error:
                yield SkippedRow(name, error.message, row=False)
                continue
            modified = int(file.stat().st_mtime * 1000) if file.is_file() else 0
            for place, one in enumerate(value if isinstance(value, list) else [value], start=1):
                row = {**dict.fromkeys((*_FACT, *_TURN)), "rowid": place, **one} if isinstance(one, dict) else {}
                if not row:
                    yield SkippedRow(f"{table} {place}", "it is not an object", table=table)
                elif table == "facts":
                    yield with_table(self._fact(row, modified, {}))
                elif table == "conversations":
                    yield with_table(self._turn(row, modified))
                else:
                    whole = {"profile_data": one, "created_at": None, "updated_at": None}
                    yield with_table(_profile(_agent(row), whole, [], modified))

    def last_numbers(self, path: Path) -> Mapping[str, int]:
        """Return the last one of all four tables, so that a fact that needs a new number does not get a contact's."""
        if path.is_dir():
            return {}
        last: dict[str, int] = {}
        with ForeignDatabase(path) as database:
            agents = {row["agent_id"] for table in _NUMBERED for row in database.rows(table, "agent_id")}
            for agent in agents:
                name = _agent({"agent_id": agent})
                numbers = (database.last(table, "id", "agent_id", agent) for table in _NUMBERED)
                last[name] = max(last.get(name, 0), *numbers)
        return last

    def rows(self, database: ForeignDatabase) -> Iterator[ReadRow]:
        turns = {key_of(row): self._turn_id(row) for row in database.rows("conversations", "id", "agent_id")}
        for row in database.rows("facts", *_FACT):
            yield self._fact(row, database.modified, turns)
        for row in database.rows("conversations", *_TURN):
            yield self._turn(row, database.modified)
        yield from _profiles(database)
        yield from _field_entries(database)
        if others := database.count(_UNKNOWN):
            reason = f"nothing is known of this table; its {others:,} rows stay there"
            yield SkippedRow(_UNKNOWN, reason, row=False)

    def _fact(self, row: ForeignRow, modified: int, turns: Mapping[str, str]) -> ExportRow | SkippedRow:
        key, text, source = key_of(row), foreign.text(row["fact"]), foreign.text(row["source"])
        at = foreign.time_ms(row["created_at"], modified)
        return memory_row(
            f"facts {key}",
            foreign_id(self.name, "facts", _agent(row), key, row["created_at"], text),
            text,
            at,
            links=(Link(turns[source], _COMES_FROM, 1.0, at),) if source in turns else (),
            agent=_agent(row),
            updated_at=foreign.time_ms(row["updated_at"], at),
            number=foreign.integer(key),
            type=foreign.memory_type(row["category"]),
            source=source,
            confidence=foreign.confidence(row["confidence"]),
            fields=foreign.extra_fields(foreign_ids={self.name: key}, category=foreign.unknown_type(row["category"])),
            accesses=accesses(None, foreign.expiry_ms(row["last_accessed_at"])),
        )

    def _turn(self, row: ForeignRow, modified: int) -> ExportRow | SkippedRow:
        key = key_of(row)
        user_message, agent_response = foreign.text(row["user_message"]), foreign.text(row["agent_response"])
        where = f"conversations {key}"
        if not user_message.strip() and not agent_response.strip():
            return SkippedRow(where, EMPTY)
        record = make_turn(
            user_message,
            agent_response,
            agent=_agent(row),
            session_id=foreign.text(row["session_id"]) or key,
            tags=foreign.texts(row["tags"]),
            at=foreign.time_ms(row["created_at"], modified),
            id_=self._turn_id(row),
            source=f"{self.name}:conversations:{key}",
        )
        return ExportRow(replace(record, fields={**record.fields, "foreign_ids": {self.name: key}}), where=where)

    def _turn_id(self, row: ForeignRow) -> str:
        return foreign_id(self.name, "conversations", _agent(row), key_of(row))  # its key is a UUID


def _agent(row: Mapping[str, Any]) -> str:
    return foreign.text(row["agent_id"]).strip() or "main"


# ── profiles, each with its history: `profile rollback` can return to every version ──────────────────────────────


@dataclass(frozen=True, slots=True)
class _OldVersion:
    """A version of a profile, and when and why it was replaced."""

    data: dict[str, Any]
    at: int
    reason: str


def _profiles(database: ForeignDatabase) -> Iterator[ReadRow]:
    """Yield the profiles with their older versions; versions without a profile are named."""
    older: defaultdict[str, list[_OldVersion]] = defaultdict(list)
    for row in database.rows("profile_history", "id", "agent_id", "profile_data", "changed_at", "change_reason"):
        data = foreign.json_value(row["profile_data"])
        if isinstance(data, dict):
            version = _OldVersion(data, foreign.time_ms(row["changed_at"]), foreign.text(row["change_reason"]))
            older[_agent(row)].append(version)
        else:
            yield SkippedRow(f"profile_history {key_of(row)}", "this version is not a JSON object", row=False)
            yield OtherRows("profile_history", 1, "it is not a JSON object")
    for row in database.rows("profiles", "agent_id", "profile_data", "created_at", "updated_at"):
        agent = _agent(row)
        yield _profile(agent, row, older.pop(agent, []), database.modified)
    for agent, versions in older.items():
        reason = f"'{agent}' has {len(versions):,} older versions of a profile, and no profile"
        yield SkippedRow("profile_history", reason, row=False)
        yield OtherRows("profile_history", len(versions), "there is no profile of its agent")


def _profile(agent: str, row: Mapping[str, Any], older: list[_OldVersion], modified: int) -> ExportRow | SkippedRow:
    where, data = f"profiles {agent}", foreign.json_value(row["profile_data"])
    parts = {"profile_history": len(older)} if older else {}
    if not isinstance(data, dict):
        return SkippedRow(where, "it is not a JSON object", parts=parts)
    size = json_size(data)
    if size > MAX_VALUES_BYTES:
        return SkippedRow(where, f"it has {size:,} bytes, a profile may have {MAX_VALUES_BYTES:,}", parts=parts)
    at = foreign.time_ms(row["created_at"], modified)
    source = f"{_NAME}:profiles:{agent}"
    bare = Record(
        id=profile_id(agent), kind="profile", text="", agent=agent, created_at=at, updated_at=at, source=source
    )
    older.sort(key=lambda version: version.at)
    versions = [*(version.data for version in older), data]
    state = with_unchecked_data(bare, versions[0])
    changes = [Change(0, bare.id, at, _NAME, "add", "", None, state)]
    for replaced, later in zip(older, versions[1:], strict=True):
        replaced_at = replaced.at or at
        after = replace(with_unchecked_data(bare, later), updated_at=replaced_at)
        changes.append(Change(0, bare.id, replaced_at, _NAME, "update", replaced.reason, state, after))
        state = after
    updated_at = foreign.time_ms(row["updated_at"], state.updated_at)
    return ExportRow(replace(state, updated_at=updated_at), tuple(changes), where=where, parts=parts)


# ── contacts, projects, skills ───────────────────────────────────────────────────────────────────────────────────


def _field_entries(database: ForeignDatabase) -> Iterator[ReadRow]:
    """Yield the contacts, projects and skills."""
    # A project names contacts by their integer ids; here they have other ids.
    contacts = {key_of(row): _thing_id("contacts", row) for row in database.rows("contacts", *_THING)}
    for table, kind in _TABLES.items():
        fields = (spec.name for spec in FIELDS[kind])
        for row in database.rows(table, *_THING, "updated_at", *fields):
            yield _thing(table, kind, row, contacts, database.modified)


def _thing_id(table: str, row: ForeignRow) -> str:
    return foreign_id(_NAME, table, _agent(row), key_of(row), row["created_at"], foreign.text(row["name"]))


def _thing(table: str, kind: FieldEntryKind, row: ForeignRow, contacts: Mapping[str, str], modified: int) -> ReadRow:
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
        id=_thing_id(table, row),
        kind=kind,
        text="",
        agent=_agent(row),
        created_at=at,
        updated_at=foreign.time_ms(row["updated_at"], at),
        number=foreign.integer(key),
        context="\n".join(f"{name}: {foreign.json_text(value)}" for name, value in refused.items()),
        source=f"{_NAME}:{table}:{key}",
    )
    record = replace(bare, **values)  # type: ignore[arg-type]  # validated by name
    return ExportRow(replace(record, fields={**record.fields, "foreign_ids": {_NAME: key}}), where=where)


def _fields(
    kind: FieldEntryKind, row: ForeignRow, contacts: Mapping[str, str]
) -> tuple[dict[str, object], dict[str, Any]]:
    """Return the values that our fields allow, and those that they do not."""
    fields: dict[str, object] = {}
    refused: dict[str, Any] = {}
    for spec in FIELDS[kind]:
        value = _value(spec, row[spec.name], contacts)
        if value in (None, "", []):
            continue
        try:
            fields[spec.name] = spec.check(value, imported=True)
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
    """Import a skill; one whose trigger is invalid becomes one that is run by hand."""
    trigger = str(fields.get("trigger_type", ""))
    try:
        validate_trigger(trigger or "manual", fields.get("trigger_config") or {})
    except UsageError:
        refused["trigger_type"] = trigger
        fields["trigger_type"] = "manual"
    fields.setdefault("trigger_type", "manual")


importer = Memorizer()
