"""Facts, a value by key: each is a memory that says `key: value`, like those that an import of memory-search makes."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase

from mindex import Memory
from mindex.clock import to_iso
from mindex.datatypes import Record
from mindex.errors import NotFoundError, UsageError
from mindex_compat.memory_search.passages import PROGRAM, memories_of

_SOURCE = f"{PROGRAM}:facts:"


@dataclass(frozen=True, slots=True)
class Fact:
    """A value, and the memory that contains it."""

    key: str
    value: str
    record: Record

    def json(self) -> dict[str, object]:
        return {"key": self.key, "value": self.value, "updatedAt": self.record.updated_at}

    def line(self) -> str:
        return f"{self.key} = {self.value} ({to_iso(self.record.updated_at)})"


def matching(memory: Memory, pattern: str) -> list[Fact]:
    """Return the facts whose key matches a pattern with `*` and `?`, by key."""
    named = ((one.source.removeprefix(_SOURCE), one) for one in memories_of(memory) if one.source.startswith(_SOURCE))
    wanted = pattern.replace("[", "[[]")
    found = [Fact(key, str(one.fields.get("value", "")), one) for key, one in named if fnmatchcase(key, wanted)]
    return sorted(found, key=lambda fact: fact.key)


def set_fact(memory: Memory, key: str, value: str) -> tuple[Fact, tuple[str, ...]]:
    """Store a value, in place of the one that the key has. Returns it, and notes on secrets that were removed."""
    if not key.strip() or not value.strip():
        raise UsageError("a fact needs a key and a value", "write `mindex ms facts set KEY VALUE`")
    if "*" in key or "?" in key:
        raise UsageError(f"'{key}' is a pattern", "use a key without * and ?")
    held = next((fact for fact in matching(memory, key) if fact.key == key), None)
    text, fields = f"{key}: {value}", {"key": key, "value": value}
    if held is None:
        added = memory.add(text, type="fact", source=_SOURCE + key, fields=fields, confidence=1.0)
        notes = tuple(f"a secret was removed: {kind}" for kind in added.redacted)
        record = memory.entries.find(added.id)
    else:
        kept = {name: one for name, one in held.record.fields.items() if name not in fields}
        changed = memory.update(held.record.id, text=text, fields={**kept, **fields}, reason="ms facts set")
        record, notes = changed.after, changed.notes
    return Fact(key, str(record.fields.get("value", "")), record), notes


def delete_facts(memory: Memory, key: str, *, pattern: bool) -> list[Fact]:
    """Forget the fact of a key, or those that match it as a pattern. Raises NotFoundError if there is none."""
    found = [fact for fact in matching(memory, key) if pattern or fact.key == key]
    if not found:
        raise NotFoundError(f"there is no fact '{key}'", "`mindex ms facts list` shows them")
    for fact in found:
        memory.forget(fact.record.id, "ms facts delete")
    return found
