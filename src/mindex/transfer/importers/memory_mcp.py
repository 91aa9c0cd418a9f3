"""Memory MCP's database (versions 2 and 3): memories with entities, metadata and provenance.

Provenance becomes the history, told backwards from what each change says it replaced: `undo` works after an import.
What was deleted arrives forgotten, with the reason. Vectors (of version 2) are made anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mindex.model import Change, Record
from mindex.store.foreign_sqlite import ForeignDatabase, ForeignRow, holds
from mindex.transfer.importer import ExportRow, SkippedRow, foreign_id
from mindex.transfer.importers.foreign_values import (
    expiry,
    importance,
    iso,
    kept,
    listed,
    moment,
    table,
    text_of,
    type_of,
    whole,
)
from mindex.transfer.importers.sqlite_source import EMPTY, DatabaseImporter, key_of, memory

_COLUMNS = (
    "id", "content", "type", "importance", "created_at", "last_accessed", "expires_at", "metadata", "is_deleted",
    "summary", "access_count",
)  # fmt: skip
_ACTIONS = {"create": "add", "update": "update", "delete": "forget", "restore": "restore"}


@dataclass(frozen=True, slots=True)
class _Operation:
    """One row of provenance. To be looked at is no operation: reads are counted, not remembered."""

    action: str
    at: int
    source: str
    context: str
    user: str
    changes: Any


@dataclass(slots=True)
class _Names:
    """The entities of one memory, and what else is known of them."""

    names: list[str] = field(default_factory=list)
    about: dict[str, object] = field(default_factory=dict)


class MemoryMcp(DatabaseImporter):
    name = "memory-mcp"
    needs = {"memories": ("content", "importance")}
    tables = ("memories",)

    def recognises(self, path: Path) -> bool:
        return super().recognises(path) and any(holds(path, **{one: ()}) for one in ("provenance", "entities"))

    def rows(self, database: ForeignDatabase) -> Iterator[ExportRow | SkippedRow]:
        entities, unnamed = _entities(database)
        operations = _operations(database)
        for row in database.rows("memories", *_COLUMNS):
            key = key_of(row)
            where = f"memories {key}"
            if not text_of(row["content"]).strip():
                yield SkippedRow(where, EMPTY)
                continue
            done = operations.get(key, [])
            record = self._record(row, database.modified, entities[key], done)
            yield ExportRow(record, _history(record, done, self.name), where=where)
        if unnamed:
            some = ", ".join(unnamed[:5]) + (" …" if len(unnamed) > 5 else "")
            yield SkippedRow("entities", f"no memory names {len(unnamed)} of them: {some}", row=False)

    def _record(self, row: ForeignRow, modified: int, named: _Names, done: Sequence[_Operation]) -> Record:
        key, text = key_of(row), text_of(row["content"])
        at = moment(row["created_at"], modified)
        metadata = dict(table(row["metadata"]))
        tags = listed(metadata.pop("tags", ()))
        deleted = [one.at for one in done if one.action == "forget"] or [moment(row["last_accessed"], at)]
        made = done[0] if done and done[0].action == "add" else None
        weight, type_ = row["importance"], text_of(row["type"])
        return memory(
            foreign_id(self.name, key, text),
            text,
            at,
            tags=tags,
            updated_at=max([at, *(one.at for one in done)]),
            type=type_of(type_),
            summary=text_of(row["summary"]),
            context=made.context if made else "",
            source=f"{self.name}:{key}:{made.source}" if made and made.source else f"{self.name}:{key}",
            importance=importance(weight),
            expires_at=expiry(row["expires_at"]),
            entities=tuple(dict.fromkeys(named.names)),
            retired_at=deleted[-1] if whole(row["is_deleted"]) else None,
            fields=kept(
                metadata=metadata,
                # As the `memory-mcp` dialect keeps it.
                provenance=kept(user_id=made.user, timestamp=iso(made.at)) if made and made.user else {},
                type="" if type_of(type_) == type_ else type_,
                exact_importance=weight if isinstance(weight, float) and weight != importance(weight) else None,
                entities=named.about,
                access_count=whole(row["access_count"]),
                last_accessed=iso(row["last_accessed"]),
            ),
        )


# ── names ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _entities(database: ForeignDatabase) -> tuple[defaultdict[str, _Names], list[str]]:
    """Names by memory, through the link table of the program or straight from the table of its document.

    And those that no memory names: nothing is told about them.
    """
    found: defaultdict[str, _Names] = defaultdict(_Names)
    known: dict[str, tuple[str, dict[str, object]]] = {}
    for row in database.rows("entities", "id", "name", "type", "metadata", "memory_id", "entity"):
        name = (text_of(row["name"]) or text_of(row["entity"])).strip()
        if name and row["memory_id"] is not None:
            found[text_of(row["memory_id"])].names.append(name)
        elif name:
            type_ = text_of(row["type"])
            about = {**table(row["metadata"]), **({"type": type_} if type_ not in ("", "other") else {})}
            known[key_of(row)] = (name, about)
    named: set[str] = set()
    for row in database.rows("memory_entities", "memory_id", "entity_id"):
        entity = text_of(row["entity_id"])
        if entity in known:
            name, about = known[entity]
            named.add(entity)
            of_memory = found[text_of(row["memory_id"])]
            of_memory.names.append(name)
            if about:
                of_memory.about[name] = about
    return found, [name for entity, (name, _) in known.items() if entity not in named]


# ── history ───────────────────────────────────────────────────────────────────────────────────────────────────


def _operations(database: ForeignDatabase) -> dict[str, list[_Operation]]:
    """What was done to each memory, oldest first."""
    found: defaultdict[str, list[_Operation]] = defaultdict(list)
    columns = ("memory_id", "operation", "timestamp", "source", "context", "user_id", "changes")
    for row in database.rows("provenance", *columns):
        action = _ACTIONS.get(text_of(row["operation"]))
        at = moment(row["timestamp"])
        if action and at:
            source, context, user = (text_of(row[name]) for name in ("source", "context", "user_id"))
            found[text_of(row["memory_id"])].append(_Operation(action, at, source, context, user, row["changes"]))
    for done in found.values():
        done.sort(key=lambda one: (one.at, one.action != "add"))
    return found


def _history(record: Record, done: Sequence[_Operation], by: str) -> tuple[Change, ...]:
    """The changes of a memory, oldest first; none for one whose database does not tell."""
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
    """A memory as it was before an operation, which tells of words, summary, importance and end what they were."""
    was = {
        name: change["from"]
        for name, change in table(done.changes).items()
        if isinstance(change, dict) and "from" in change
    }
    text = text_of(was.get("content"))
    return replace(
        state,
        updated_at=earlier,
        retired_at=earlier if done.action == "restore" else None if done.action == "forget" else state.retired_at,
        text=text if text.strip() else state.text,
        summary=text_of(was.get("summary")) or state.summary,
        importance=importance(was["importance"], state.importance or 5) if "importance" in was else state.importance,
        expires_at=expiry(was["expires_at"]) if "expires_at" in was else state.expires_at,
    )


importer = MemoryMcp()
