"""Memory MCP's database (versions 2 and 3): memories with entities, metadata and provenance.

Provenance becomes the history, made backwards from what each change says it replaced: `undo` works after an import.
Each state has the provenance that led to it among its fields, with what that says has changed. Reads become accesses.
Deleted memories are imported as forgotten, with the reason. Vectors (of version 2) are made again.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from mindex.datatypes import Change, Record
from mindex.transfer.importer_parts import (
    Access,
    ExportRow,
    OtherRows,
    ReadRow,
    SkippedRow,
    accesses,
    foreign_id,
    memory_row,
)
from mindex.transfer.importer_parts import foreign_values as foreign
from mindex_compat.foreign_sqlite import ForeignDatabase, ForeignRow
from mindex_compat.importers.sqlite_source import INDEX, VECTORS, DatabaseImporter, key_of

_COLUMNS = (
    "id content type importance created_at last_accessed expires_at metadata is_deleted summary access_count"
).split()
_ACTIONS = {"create": "add", "update": "update", "delete": "forget", "restore": "restore"}
_ACCESS = "access"


@dataclass(frozen=True, slots=True)
class _Operation:
    """One row of provenance."""

    id: str
    action: str
    at: int
    source: str
    context: str
    user: str
    changes: Any

    def fields(self) -> dict[str, object]:
        """What the history has no other place for, by the names of the `memory-mcp` dialect."""
        return foreign.extra_fields(
            id=self.id,
            source=self.source,
            user_id=self.user,
            timestamp=foreign.iso_time(self.at),
            changes=foreign.json_value(self.changes) or foreign.text(self.changes),
        )


@dataclass(slots=True)
class _Provenance:
    """The changes and the reads of each memory, oldest first; and how many rows are unusable, by reason."""

    changes: dict[str, list[_Operation]] = field(default_factory=lambda: defaultdict(list))
    reads: dict[str, list[Access]] = field(default_factory=lambda: defaultdict(list))
    unusable: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class _Entities:
    """The names of the entities of each memory, with what else is known of them."""

    of_memory: dict[str, dict[str, dict[str, object]]] = field(default_factory=lambda: defaultdict(dict))
    links: Counter[str] = field(default_factory=Counter)  # memory → rows of the link table
    first: Counter[str] = field(default_factory=Counter)  # memory → entities that no memory above it names
    unnamed: list[str] = field(default_factory=list)
    unusable_links: int = 0


class MemoryMcp(DatabaseImporter):
    name = "memory-mcp"
    needs = {"memories": ("content", "importance")}
    needs_one_of = ("provenance", "entities")
    tables = ("memories",)
    parts = ("entities", "memory_entities", "provenance")
    left_out = {
        "memories.embedding": VECTORS,
        "provenance.id": "kept with a change; of a read, the time, source and context are kept",
        "memories_fts": INDEX,
        "schema_version": "of that program's own tables",
        "cloud_sync_queue": "what was to be sent to a service that mindex does not have",
    }

    def rows(self, database: ForeignDatabase) -> Iterator[ReadRow]:
        entities, provenance = _entities(database), _provenance(database)
        known = set()
        for row in database.rows("memories", *_COLUMNS):
            key = key_of(row)
            known.add(key)
            done, reads = provenance.changes.get(key, []), provenance.reads.get(key, [])
            found = self._memory(row, database.modified, entities, done, reads)
            if isinstance(found, ExportRow) and done:
                record = _with_provenance(found.record, done[-1])
                found = replace(found, record=record, history=_history(record, done, self.name))
            yield found
        yield from _without_memory(known, entities, provenance)

    def _memory(
        self,
        row: ForeignRow,
        modified: int,
        entities: _Entities,
        done: Sequence[_Operation],
        reads: Sequence[Access],
    ) -> ExportRow | SkippedRow:
        key, text, weight = key_of(row), foreign.text(row["content"]), row["importance"]
        at = foreign.time_ms(row["created_at"], modified)
        metadata = dict(foreign.json_object(row["metadata"]))
        tags = foreign.texts(metadata.pop("tags", ()))
        deleted = [one.at for one in done if one.action == "forget"] or [foreign.time_ms(row["last_accessed"], at)]
        made = done[0] if done and done[0].action == "add" else None
        named = entities.of_memory.get(key, {})
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
            source=made.source if made else "",
            importance=foreign.importance(weight),
            expires_at=foreign.expiry_ms(row["expires_at"]),
            entities=tuple(named),
            retired_at=deleted[-1] if foreign.integer(row["is_deleted"]) else None,
            fields=foreign.extra_fields(
                foreign_ids={self.name: key},
                metadata=metadata,
                type=foreign.unknown_type(row["type"]),
                exact_importance=_fraction(weight),
                entities={name: details for name, details in named.items() if details},
            ),
            accesses=accesses(
                foreign.integer(row["access_count"]), foreign.expiry_ms(row["last_accessed"]), tuple(reads)
            ),
            parts={
                "entities": entities.first[key],
                "memory_entities": entities.links[key],
                "provenance": len(done) + len(reads),
            },
        )


def _fraction(weight: Any) -> float | None:
    """Return an importance that ours cannot say: 7.5, or 0."""
    number = foreign.number(weight)
    return number if number is not None and number != foreign.importance(number) else None


def _without_memory(known: set[str], entities: _Entities, provenance: _Provenance) -> Iterator[ReadRow]:
    """Yield what belongs to no memory of the database, with the reason."""
    if entities.unnamed:
        some = foreign.first_of(entities.unnamed)
        reason = f"no memory names {len(entities.unnamed)} of them: {some}"
        yield SkippedRow("entities", reason, row=False)
        yield OtherRows("entities", len(entities.unnamed), f"no memory names it: {some}")
    strays = sum(count for key, count in entities.links.items() if key not in known)
    yield OtherRows("memory_entities", strays + entities.unusable_links, "its memory or its entity is missing")
    owned = sum(count for key, count in entities.first.items() if key not in known)
    yield OtherRows("entities", owned, "its memory is missing")
    for reason, count in provenance.unusable.items():
        yield OtherRows("provenance", count, reason)
    gone = [rows for of in (provenance.changes, provenance.reads) for key, rows in of.items() if key not in known]
    yield OtherRows("provenance", sum(map(len, gone)), "its memory is missing")


# ── entities ──────────────────────────────────────────────────────────────────────────────────────────────────


def _entities(database: ForeignDatabase) -> _Entities:
    """Return the entities of each memory.

    They are read from the link table that the program makes, or straight from the table that its document describes.
    """
    found = _Entities()
    known: dict[str, tuple[str, dict[str, object]]] = {}
    for row in database.rows("entities", "id", "name", "type", "metadata", "created_at", "memory_id", "entity"):
        name = (foreign.text(row["name"]) or foreign.text(row["entity"])).strip()
        if name and row["memory_id"] is not None:
            memory = foreign.text(row["memory_id"])
            found.of_memory[memory].setdefault(name, {})
            found.first[memory] += 1
        elif name:
            own = foreign.extra_fields(
                id=key_of(row), type=foreign.text(row["type"]), created_at=foreign.iso_time(row["created_at"])
            )
            known[key_of(row)] = (name, {**own, **foreign.json_object(row["metadata"])})
        else:
            found.unnamed.append(key_of(row))
    linked: set[str] = set()
    for row in database.rows("memory_entities", "memory_id", "entity_id", "created_at"):
        memory, entity = foreign.text(row["memory_id"]), foreign.text(row["entity_id"])
        if entity not in known:
            found.unusable_links += 1
            continue
        name, details = known[entity]
        found.links[memory] += 1
        found.first[memory] += entity not in linked
        linked.add(entity)
        found.of_memory[memory][name] = details | foreign.extra_fields(linked_at=foreign.iso_time(row["created_at"]))
    found.unnamed += [name for entity, (name, _) in known.items() if entity not in linked]
    return found


# ── history ───────────────────────────────────────────────────────────────────────────────────────────────────


def _provenance(database: ForeignDatabase) -> _Provenance:
    found = _Provenance()
    columns = ("id", "memory_id", "operation", "timestamp", "source", "context", "user_id", "changes")
    for row in database.rows("provenance", *columns):
        operation, at = foreign.text(row["operation"]), foreign.time_ms(row["timestamp"])
        source, context, user = (foreign.text(row[name]) for name in ("source", "context", "user_id"))
        memory = foreign.text(row["memory_id"])
        if not at:
            found.unusable["it has no time"] += 1
        elif operation == _ACCESS:
            found.reads[memory].append(Access(memory, at, source or _ACCESS, context))
        elif operation in _ACTIONS:
            one = _Operation(key_of(row), _ACTIONS[operation], at, source, context, user, row["changes"])
            found.changes[memory].append(one)
        else:
            found.unusable[f"'{operation:.40}' is an unknown operation"] += 1
    for done in found.changes.values():
        done.sort(key=lambda one: (one.at, one.action != "add"))
    return found


def _history(record: Record, done: Sequence[_Operation], by: str) -> tuple[Change, ...]:
    """Return the changes of a memory that has a provenance, oldest first."""
    changes: list[Change] = []
    state = record
    for index in range(len(done) - 1, -1, -1):
        one = done[index]
        if one.action == "forget" and state.retired_at is None:
            state = replace(state, retired_at=one.at)
        earlier = max(record.created_at, done[index - 1].at) if index else record.created_at
        before = None if not index and one.action == "add" else _before(state, one, earlier)
        if before is not None:
            before = _with_provenance(before, done[index - 1] if index else None)
        after = _with_provenance(state, one)
        changes.append(
            Change(0, record.id, one.at, one.user or one.source or by, one.action, one.context, before, after)
        )
        state = before or state
    if changes[-1].before is not None:
        changes.append(Change(0, record.id, record.created_at, by, "add", "", None, state))
    return tuple(reversed(changes))


def _with_provenance(state: Record, done: _Operation | None) -> Record:
    provenance = {"provenance": done.fields()} if done else {}
    if provenance.get("provenance") == state.fields.get("provenance"):
        return state
    fields = {name: value for name, value in state.fields.items() if name != "provenance"}
    return replace(state, fields=fields | provenance)


def _before(state: Record, done: _Operation, earlier: int) -> Record:
    """Return a memory as it was before an operation, as far as this names the old values."""
    was = {
        name: change["from"]
        for name, change in foreign.json_object(done.changes).items()
        if isinstance(change, dict) and "from" in change
    }
    old_text = foreign.text(was.get("content"))
    metadata = dict(foreign.json_object(was["metadata"])) if "metadata" in was else None
    tags = metadata.pop("tags", None) if metadata is not None else None
    return replace(
        state,
        updated_at=earlier,
        retired_at=earlier if done.action == "restore" else None if done.action == "forget" else state.retired_at,
        text=old_text if old_text.strip() else state.text,
        summary=foreign.text(was.get("summary")) or state.summary,
        type=foreign.memory_type(was["type"]) if "type" in was else state.type,
        importance=foreign.importance(was.get("importance"), state.importance or 5),
        expires_at=foreign.expiry_ms(was["expires_at"]) if "expires_at" in was else state.expires_at,
        tags=foreign.texts(was.get("tags", tags)) if "tags" in was or tags is not None else state.tags,
        entities=foreign.texts(was["entities"]) if "entities" in was else state.entities,
        fields=_fields_before(state.fields, was, metadata),
    )


def _fields_before(
    fields: Mapping[str, object], was: Mapping[str, Any], metadata: dict[str, Any] | None
) -> dict[str, object]:
    before = dict(fields)
    if metadata is not None:
        before["metadata"] = metadata
    if "importance" in was:
        before["exact_importance"] = _fraction(was["importance"])
    return foreign.extra_fields(**before)


importer = MemoryMcp()
