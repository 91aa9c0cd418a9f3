"""Memorizer-MCP's database: facts, conversations, profiles with their history, contacts, projects and skills.

Integer ids stay as numbers where those are free: facts first, because all four tables count from 1. A fact is linked to
the conversation it comes from. Vectors are made anew: the database does not say which model made them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from mindex.memories.turns import make_turn
from mindex.store.export_rows import Link
from mindex.store.foreign_sqlite import ForeignDatabase, ForeignRow
from mindex.transfer.importer import ExportRow, ReadRow, SkippedRow, foreign_id
from mindex.transfer.importers import foreign_values as foreign
from mindex.transfer.importers.memorizer_contacts_projects_skills import TABLES, agent_of, read_things
from mindex.transfer.importers.memorizer_profiles import read_profiles
from mindex.transfer.importers.memory_rows import EMPTY, memory_row
from mindex.transfer.importers.sqlite_source import DatabaseImporter, key_of

_FACT = (
    "id", "agent_id", "fact", "category", "source", "confidence", "created_at", "updated_at", "last_accessed_at",
)  # fmt: skip
_TURN = ("id", "agent_id", "session_id", "user_message", "agent_response", "tags", "created_at")
_NUMBERED = ("facts", *TABLES)
_UNKNOWN = "project_sources"  # of later versions, undocumented
_COMES_FROM = "source"


class Memorizer(DatabaseImporter):
    name = "memorizer"
    needs = {"facts": ("fact",)}
    needs_one_of = ("conversations", "profiles")
    tables = ("facts", "conversations", "profiles", *TABLES)

    def last_numbers(self, path: Path) -> Mapping[str, int]:
        """Return the last one of all four tables, so that a fact that needs a new number does not get a contact's."""
        last: dict[str, int] = {}
        with ForeignDatabase(path) as database:
            agents = {row["agent_id"] for table in _NUMBERED for row in database.rows(table, "agent_id")}
            for agent in agents:
                name = agent_of({"agent_id": agent})
                numbers = (database.last(table, "id", "agent_id", agent) for table in _NUMBERED)
                last[name] = max(last.get(name, 0), *numbers)
        return last

    def rows(self, database: ForeignDatabase) -> Iterator[ReadRow]:
        turns = {key_of(row): self._turn_id(row) for row in database.rows("conversations", "id", "agent_id")}
        for row in database.rows("facts", *_FACT):
            yield self._fact(row, database.modified, turns)
        for row in database.rows("conversations", *_TURN):
            yield self._turn(row, database.modified)
        yield from read_profiles(database)
        yield from read_things(database)
        if others := database.count(_UNKNOWN):
            yield SkippedRow(_UNKNOWN, f"nothing is known of this table; its {others:,} rows stay there", row=False)

    def _fact(self, row: ForeignRow, modified: int, turns: Mapping[str, str]) -> ReadRow:
        key, text, source = key_of(row), foreign.text(row["fact"]), foreign.text(row["source"])
        at = foreign.time_ms(row["created_at"], modified)
        return memory_row(
            f"facts {key}",
            foreign_id(self.name, "facts", agent_of(row), key, row["created_at"], text),
            text,
            at,
            links=(Link(turns[source], _COMES_FROM, 1.0, at),) if source in turns else (),
            agent=agent_of(row),
            updated_at=foreign.time_ms(row["updated_at"], at),
            number=foreign.integer(key),
            type=foreign.memory_type(row["category"]),
            source=f"{self.name}:facts:{key}:{source}" if source else f"{self.name}:facts:{key}",
            confidence=foreign.confidence(row["confidence"]),
            fields=foreign.extra_fields(
                category=foreign.unknown_type(row["category"]), last_accessed=foreign.iso_time(row["last_accessed_at"])
            ),
        )

    def _turn(self, row: ForeignRow, modified: int) -> ReadRow:
        key = key_of(row)
        user_message, agent_response = foreign.text(row["user_message"]), foreign.text(row["agent_response"])
        where = f"conversations {key}"
        if not user_message.strip() and not agent_response.strip():
            return SkippedRow(where, EMPTY)
        record = make_turn(
            user_message,
            agent_response,
            agent=agent_of(row),
            session_id=foreign.text(row["session_id"]) or key,
            tags=foreign.texts(row["tags"]),
            at=foreign.time_ms(row["created_at"], modified),
            id_=self._turn_id(row),
            source=f"{self.name}:conversations:{key}",
        )
        return ExportRow(record, where=where)

    def _turn_id(self, row: ForeignRow) -> str:
        return foreign_id(self.name, "conversations", agent_of(row), key_of(row))  # its key is a UUID


importer = Memorizer()
