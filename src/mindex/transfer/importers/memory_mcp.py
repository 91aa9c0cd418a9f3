"""Memory MCP's database (versions 2 and 3): memories with entities, metadata and provenance.

Provenance becomes the history, made backwards from what each change says it replaced: `undo` works after an import.
Deleted memories are imported as forgotten, with the reason. Vectors (of version 2) are made anew.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from mindex.model import Change, Record
from mindex.store.foreign_sqlite import ForeignDatabase, ForeignRow
from mindex.transfer.importer_base import ExportRow, ReadRow, SkippedRow, foreign_id, memory_row
from mindex.transfer.importers import foreign_values as foreign
from mindex.transfer.importers.sqlite_source import DatabaseImporter, key_of

_COLUMNS = (
    "id content type importance created_at last_accessed expires_at metadata is_deleted summary access_count"
).split()
_ACTIONS = {"create": "add", "update": "update", "delete": "forget", "restore": "restore"}


@dataclass(frozen=True, slots=True)
class _Operation:
    """One row of provenance. A read is none: reads are counted, not kept one by one."""

    action: str
    at: int
    source: str
    context: str
    user: str
    changes: Any


# The names of the entities of one memory → what else is known of them.
_Entities: TypeAlias = dict[str, dict[str, object]]


class MemoryMcp(DatabaseImporter):
    name = "memory-mcp"
    needs = {"memories": ("content", "importance")}
    needs_one_of = ("provenance", "entities")
    tables = ("memories",)

    def rows(self, database: ForeignDatabase) -> Iterator[ReadRow]:
        entities, unnamed = _entities(database)
        operations = _operations(database)
        for row in database.rows("memories", *_COLUMNS):
            done = operations.get(key_of(row), [])
            found = self._memory(row, database.modified, entities[key_of(row)], done)
            if isinstance(found, ExportRow):
                found = replace(found, history=_history(found.record, done, self.name))
            yield found
        if unnamed:
            some = ", ".join(unnamed[:5]) + (" …" if len(unnamed) > 5 else "")
            yield SkippedRow("entities", f"no memory names {len(unnamed)} of them: {some}", row=False)

    def _memory(self, row: ForeignRow, modified: int, entities: _Entities, done: Sequence[_Operation]) -> ReadRow:
        key, text, weight = key_of(row), foreign.text(row["content"]), row["importance"]
        at = foreign.time_ms(row["created_at"], modified)
        metadata = dict(foreign.json_object(row["metadata"]))
        tags = foreign.texts(metadata.pop("tags", ()))
        deleted = [one.at for one in done if one.action == "forget"] or [foreign.time_ms(row["last_accessed"], at)]
        made = done[0] if done and done[0].action == "add" else None
        return memory_row(
            f"memories {key}",
            foreign_id(self.name, key, text),
            text,
            at,
            tags=tags,
            updated_at=max([at, *(one.at for one in done)]),
            type=foreign.memory_type(row["type"]),
            summary=foreign.text(row["summary"]),
            context=made.context if made else "",
            source=f"{self.name}:{key}:{made.source}" if made and made.source else f"{self.name}:{key}",
            importance=foreign.importance(weight),
            expires_at=foreign.expiry_ms(row["expires_at"]),
            entities=tuple(entities),
            retired_at=deleted[-1] if foreign.integer(row["is_deleted"]) else None,
            fields=foreign.extra_fields(
                metadata=metadata,
                # As the `memory-mcp` dialect stores it.
                provenance={"user_id": made.user, "timestamp": foreign.iso_time(made.at)} if made and made.user else {},
                type=foreign.unknown_type(row["type"]),
                exact_importance=weight if isinstance(weight, float) and weight != foreign.importance(weight) else None,
                entities={name: details for name, details in entities.items() if details},
                access_count=foreign.integer(row["access_count"]),
                last_accessed=foreign.iso_time(row["last_accessed"]),
            ),
        )


# ── entities ──────────────────────────────────────────────────────────────────────────────────────────────────


def _entities(database: ForeignDatabase) -> tuple[defaultdict[str, _Entities], list[str]]:
    """Return the entities of each memory, and the names of those that no memory has.

    They are read from the link table that the program makes, or straight from the table that its document describes.
    """
    found: defaultdict[str, _Entities] = defaultdict(dict)
    known: dict[str, tuple[str, dict[str, object]]] = {}
    for row in database.rows("entities", "id", "name", "type", "metadata", "memory_id", "entity"):
        name = (foreign.text(row["name"]) or foreign.text(row["entity"])).strip()
        if name and row["memory_id"] is not None:
            found[foreign.text(row["memory_id"])].setdefault(name, {})
        elif name:
            details = dict(foreign.json_object(row["metadata"]))
            if (type_ := foreign.text(row["type"])) not in ("", "other"):
                details["type"] = type_
            known[key_of(row)] = (name, details)
    linked: set[str] = set()
    for row in database.rows("memory_entities", "memory_id", "entity_id"):
        entity = foreign.text(row["entity_id"])
        if entity in known:
            name, details = known[entity]
            linked.add(entity)
            of_memory = found[foreign.text(row["memory_id"])]
            of_memory[name] = details or of_memory.get(name, {})
    return found, [name for entity, (name, _) in known.items() if entity not in linked]


# ── history ───────────────────────────────────────────────────────────────────────────────────────────────────


def _operations(database: ForeignDatabase) -> dict[str, list[_Operation]]:
    """Return the operations on each memory, oldest first."""
    found: defaultdict[str, list[_Operation]] = defaultdict(list)
    columns = ("memory_id", "operation", "timestamp", "source", "context", "user_id", "changes")
    for row in database.rows("provenance", *columns):
        action = _ACTIONS.get(foreign.text(row["operation"]))
        at = foreign.time_ms(row["timestamp"])
        if action and at:
            source, context, user = (foreign.text(row[name]) for name in ("source", "context", "user_id"))
            found[foreign.text(row["memory_id"])].append(_Operation(action, at, source, context, user, row["changes"]))
    for done in found.values():
        done.sort(key=lambda one: (one.at, one.action != "add"))
    return found


def _history(record: Record, done: Sequence[_Operation], by: str) -> tuple[Change, ...]:
    """Return the changes of a memory, oldest first; none for one without provenance."""
    if not done:
        return ()
    changes: list[Change] = []
    state = record
    for index in range(len(done) - 1, -1, -1):
        one = done[index]
        if one.action == "forget" and state.retired_at is None:
            state = replace(state, retired_at=one.at)
        earlier = max(record.created_at, done[index - 1].at) if index else record.created_at
        before = None if not index and one.action == "add" else _before(state, one, earlier)
        changes.append(
            Change(0, record.id, one.at, one.user or one.source or by, one.action, one.context, before, state)
        )
        state = before or state
    if changes[-1].before is not None:
        changes.append(Change(0, record.id, record.created_at, by, "add", "", None, state))
    return tuple(reversed(changes))


def _before(state: Record, done: _Operation, earlier: int) -> Record:
    """Return a memory as it was before an operation, which names the old text, summary, importance and expiry."""
    was = {
        name: change["from"]
        for name, change in foreign.json_object(done.changes).items()
        if isinstance(change, dict) and "from" in change
    }
    old_text = foreign.text(was.get("content"))
    return replace(
        state,
        updated_at=earlier,
        retired_at=earlier if done.action == "restore" else None if done.action == "forget" else state.retired_at,
        text=old_text if old_text.strip() else state.text,
        summary=foreign.text(was.get("summary")) or state.summary,
        importance=foreign.importance(was.get("importance"), state.importance or 5),
        expires_at=foreign.expiry_ms(was["expires_at"]) if "expires_at" in was else state.expires_at,
    )


importer = MemoryMcp()
