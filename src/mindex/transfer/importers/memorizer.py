"""Memorizer-MCP's database: facts, conversations, profiles, skills, contacts and projects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from mindex.clock import now_ms
from mindex.errors import UsageError
from mindex.ids import short_hash
from mindex.model import Kind, Record
from mindex.remember.conversations import turn
from mindex.remember.fields import FIELDS, checked, words_of
from mindex.remember.paths import flattened
from mindex.remember.summary import summarize
from mindex.store.foreign import ForeignDatabase, holds
from mindex.transfer.base import Row, Unread, foreign_id
from mindex.transfer.importers.values import confidence, listed, loaded, moment, table, text_of, type_of

_THINGS: tuple[tuple[str, Kind], ...] = (("contacts", "contact"), ("projects", "project"), ("skills", "skill"))
_TABLES = ("facts", "conversations", "profiles", "contacts", "projects", "skills")
_JSON = frozenset(("trigger_config", "required_tools", "execution_plan", "participants"))


class Memorizer:
    name = "memorizer"

    def recognises(self, path: Path) -> bool:
        return holds(path, "facts", "conversations", "profiles")

    def count(self, path: Path) -> int:
        with ForeignDatabase(path) as database:
            return sum(database.count(table_) for table_ in _TABLES)

    def read(self, path: Path) -> Iterator[Row | Unread]:
        with ForeignDatabase(path) as database:
            yield from map(self._fact, database.rows("facts"))
            yield from map(self._turn, database.rows("conversations"))
            yield from map(self._profile, database.rows("profiles"))
            # Contacts come first: projects name them by ids that are not theirs here.
            people = {text_of(row.get("id")): _thing_id("contacts", row) for row in database.rows("contacts")}
            for name, kind in _THINGS:
                for row in database.rows(name):
                    yield self._thing(name, kind, row, people)

    def _fact(self, row: Mapping[str, Any]) -> Row | Unread:
        key, text = text_of(row.get("id") or row["rowid"]), text_of(row.get("fact")).strip()
        if not text:
            return Unread(f"facts {key}", "it is empty")
        at = moment(row.get("created_at"), now_ms())
        return Row(
            Record(
                id=foreign_id(self.name, "facts", key, at, text),
                kind="memory",
                text=text,
                agent=_agent(row),
                created_at=at,
                updated_at=moment(row.get("updated_at"), at),
                number=int(key) if key.isdigit() else None,
                type=type_of(row.get("category")),
                summary=summarize(text),
                context=text_of(row.get("source")),
                source=f"{self.name}:facts:{key}",
                importance=5,
                confidence=confidence(row.get("confidence")),
            )
        )

    def _turn(self, row: Mapping[str, Any]) -> Row | Unread:
        key = text_of(row.get("id") or row["rowid"])
        asked, answered = text_of(row.get("user_message")), text_of(row.get("agent_response"))
        if not asked.strip() and not answered.strip():
            return Unread(f"conversations {key}", "it is empty")
        return Row(
            turn(
                asked,
                answered,
                agent=_agent(row),
                session_id=text_of(row.get("session_id")) or key,
                tags=listed(row.get("tags")),
                at=moment(row.get("created_at"), now_ms()),
                id_=foreign_id(self.name, "conversations", key),
                source=f"{self.name}:conversations:{key}",
            )
        )

    def _profile(self, row: Mapping[str, Any]) -> Row | Unread:
        agent, data = _agent(row), loaded(row.get("profile_data"))
        if not isinstance(data, dict):
            return Unread(f"profiles {agent}", "it is not a JSON object")
        at = moment(row.get("created_at"), now_ms())
        name = f"Profile of {agent}"
        return Row(
            Record(
                id=short_hash("profile", agent),  # the one record that `profile` commands know
                kind="profile",
                text="\n".join(f"{path}: {value}" for path, value in flattened(data)),
                title=name,
                agent=agent,
                created_at=at,
                updated_at=moment(row.get("updated_at"), at),
                summary=name,
                source=f"{self.name}:profiles:{agent}",
                fields={"data": data},
            )
        )

    def _thing(self, table_: str, kind: Kind, row: Mapping[str, Any], people: Mapping[str, str]) -> Row | Unread:
        key = text_of(row.get("id") or row["rowid"])
        values = {
            field.name: (loaded(row.get(field.name)) if field.name in _JSON else row.get(field.name))
            for field in FIELDS[kind]
        }
        if kind == "skill":
            values["trigger_config"] = dict(table(row.get("trigger_config"))) or None
        if kind == "project":
            values["participants"] = [people.get(one, one) for one in listed(row.get("participants"))] or None
            contact = text_of(row.get("primary_contact_id"))
            values["primary_contact_id"] = people.get(contact, contact) or None
        try:
            fields = {name: value for name, value in checked(kind, _texts(values)).items() if value is not None}
        except UsageError as error:
            return Unread(f"{table_} {key}", str(error))
        at = moment(row.get("created_at"), now_ms())
        return Row(
            Record(
                id=_thing_id(table_, row),
                kind=kind,
                text=words_of(kind, fields),
                title=str(fields["name"]),
                agent=_agent(row),
                created_at=at,
                updated_at=moment(row.get("updated_at"), at),
                type=str(fields.get("type") or ""),
                summary=str(fields["name"]),
                source=f"{self.name}:{table_}:{key}",
                fields=fields,
            )
        )


def _thing_id(table_: str, row: Mapping[str, Any]) -> str:
    return foreign_id("memorizer", table_, row.get("id") or row["rowid"], row.get("created_at"), row.get("name"))


def _agent(row: Mapping[str, Any]) -> str:
    return text_of(row.get("agent_id")) or "main"


def _texts(values: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers where words are expected, as SQLite keeps them for programs that do not mind."""
    return {name: str(value) if isinstance(value, float) else value for name, value in values.items()}


importer = Memorizer()
