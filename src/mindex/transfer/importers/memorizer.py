"""Memorizer-MCP's database: facts, conversations, profiles with their history, contacts, projects and skills.

Integer ids stay as numbers where those are free: facts first, for all four tables count from 1. A fact is linked to the
conversation it comes from. Vectors are made anew: the database does not say which model made them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from mindex.memories.turns import make_turn
from mindex.store.foreign_sqlite import ForeignDatabase, ForeignRow, holds
from mindex.transfer.importer import ExportRow, Link, SkippedRow, foreign_id
from mindex.transfer.importers.foreign_values import confidence, iso, kept, listed, moment, text_of, type_of, whole
from mindex.transfer.importers.memorizer_contacts_projects_skills import NAMING, THINGS, agent_of, thing, thing_id
from mindex.transfer.importers.memorizer_profiles import profiles
from mindex.transfer.importers.sqlite_source import EMPTY, DatabaseImporter, key_of, memory

_FACT = (
    "id", "agent_id", "fact", "category", "source", "confidence", "created_at", "updated_at", "last_accessed_at",
)  # fmt: skip
_TURN = ("id", "agent_id", "session_id", "user_message", "agent_response", "tags", "created_at")
_NUMBERED = ("facts", *THINGS)
_UNKNOWN = "project_sources"  # of later versions, undocumented
_COMES_FROM = "source"


class Memorizer(DatabaseImporter):
    name = "memorizer"
    needs = {"facts": ("fact",)}
    tables = ("facts", "conversations", "profiles", *THINGS)

    def recognises(self, path: Path) -> bool:
        return super().recognises(path) and any(holds(path, **{one: ()}) for one in ("conversations", "profiles"))

    def last_numbers(self, path: Path) -> Mapping[str, int]:
        """Over all four tables, so that a fact that needs a new number does not take a contact's."""
        last: dict[str, int] = {}
        with ForeignDatabase(path) as database:
            agents = {row["agent_id"] for table in _NUMBERED for row in database.rows(table, "agent_id")}
            for agent in agents:
                name = agent_of({"agent_id": agent})
                numbers = (database.last(table, "id", "agent_id", agent) for table in _NUMBERED)
                last[name] = max(last.get(name, 0), *numbers)
        return last

    def rows(self, database: ForeignDatabase) -> Iterator[ExportRow | SkippedRow]:
        said = {key_of(row): self._turn_id(row) for row in database.rows("conversations", "id", "agent_id")}
        for row in database.rows("facts", *_FACT):
            yield self._fact(row, database.modified, said)
        for row in database.rows("conversations", *_TURN):
            yield self._turn(row, database.modified)
        yield from profiles(database)
        # Projects name contacts by ids that are not theirs here.
        people = {key_of(row): thing_id("contacts", row) for row in database.rows("contacts", *NAMING)}
        for table, (kind, columns) in THINGS.items():
            for row in database.rows(table, *NAMING, "updated_at", *columns):
                yield thing(table, kind, row, people, database.modified)
        if others := database.count(_UNKNOWN):
            yield SkippedRow(_UNKNOWN, f"nothing is known of this table; its {others:,} rows stay there", row=False)

    def _fact(self, row: ForeignRow, modified: int, said: Mapping[str, str]) -> ExportRow | SkippedRow:
        key, text, source = key_of(row), text_of(row["fact"]), text_of(row["source"])
        where = f"facts {key}"
        if not text.strip():
            return SkippedRow(where, EMPTY)
        at = moment(row["created_at"], modified)
        category = text_of(row["category"])
        record = memory(
            foreign_id(self.name, "facts", agent_of(row), key, row["created_at"], text),
            text,
            at,
            agent=agent_of(row),
            updated_at=moment(row["updated_at"], at),
            number=whole(key),
            type=type_of(category),
            source=f"{self.name}:facts:{key}:{source}" if source else f"{self.name}:facts:{key}",
            confidence=confidence(row["confidence"]),
            fields=kept(
                category="" if type_of(category) == category else category,
                last_accessed=iso(row["last_accessed_at"]),
            ),
        )
        links = (Link(said[source], _COMES_FROM, 1.0, at),) if source in said else ()
        return ExportRow(record, links=links, where=where)

    def _turn(self, row: ForeignRow, modified: int) -> ExportRow | SkippedRow:
        key = key_of(row)
        asked, answered = text_of(row["user_message"]), text_of(row["agent_response"])
        where = f"conversations {key}"
        if not asked.strip() and not answered.strip():
            return SkippedRow(where, EMPTY)
        record = make_turn(
            asked,
            answered,
            agent=agent_of(row),
            session_id=text_of(row["session_id"]) or key,
            tags=listed(row["tags"]),
            at=moment(row["created_at"], modified),
            id_=self._turn_id(row),
            source=f"{self.name}:conversations:{key}",
        )
        return ExportRow(record, where=where)

    def _turn_id(self, row: ForeignRow) -> str:
        return foreign_id(self.name, "conversations", agent_of(row), key_of(row))  # it holds a uuid


importer = Memorizer()
