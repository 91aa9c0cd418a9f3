"""The MCP reference memory server's JSONL: entities with observations, and relations between them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mindex.model import Record
from mindex.remember.summary import summarize
from mindex.transfer.base import Row, Unread, foreign_id
from mindex.transfer.importers.lines import objects

_PEEK = 65536


class ReferenceMemory:
    name = "reference-memory"

    def recognises(self, path: Path) -> bool:
        if not path.is_file() or path.suffix not in (".jsonl", ".json"):
            return False
        with path.open("rb") as file:
            first = file.read(_PEEK).split(b"\n", 1)[0]
        try:
            held = json.loads(first)
        except (ValueError, RecursionError):
            return False
        return isinstance(held, dict) and held.get("type") in ("entity", "relation")

    def read(self, path: Path) -> Iterator[Row | Unread]:
        at = int(path.stat().st_mtime * 1000)  # the file knows no times of its own
        for number, held in objects(path):
            if isinstance(held, Unread):
                yield held
            elif held.get("type") == "entity":
                yield from self._entity(number, held, at)
            elif held.get("type") == "relation":
                yield self._relation(number, held, at)
            else:
                yield Unread(f"line {number}", f"a '{held.get('type')}' is neither an entity nor a relation")

    def _entity(self, number: int, held: dict[str, Any], at: int) -> Iterator[Row | Unread]:
        name, kind = str(held.get("name", "")), str(held.get("entityType", ""))
        observations = held.get("observations")
        said = [str(one) for one in observations if str(one).strip()] if isinstance(observations, list) else []
        if not name:
            yield Unread(f"line {number}", "an entity without a name")
        elif not said:
            yield self._row("entity", (name,), f"{name} is a {kind or 'thing'}", "entity", (name,), kind, at)
        for text in said:
            # Observations often leave out whom they are about; the name is what one would search for.
            full = text if name.casefold() in text.casefold() else f"{name}: {text}"
            yield self._row("observation", (name, text), full, "fact", (name,), kind, at)

    def _relation(self, number: int, held: dict[str, Any], at: int) -> Row | Unread:
        one, other, how = (str(held.get(key, "")) for key in ("from", "to", "relationType"))
        if not (one and other and how):
            return Unread(f"line {number}", "a relation without both ends and a type")
        text = f"{one} {how.replace('_', ' ')} {other}"
        return self._row("relation", (one, how, other), text, "relationship", (one, other), "", at)

    def _row(
        self, what: str, key: tuple[str, ...], text: str, type_: str, entities: tuple[str, ...], tag: str, at: int
    ) -> Row:
        return Row(
            Record(
                id=foreign_id(self.name, what, *key),
                kind="memory",
                text=text,
                tags=(tag,) if tag else (),
                agent="main",
                created_at=at,
                updated_at=at,
                type=type_,
                summary=summarize(text),
                source=f"{self.name}:{what}:{foreign_id(self.name, what, *key)}",
                importance=5,
                confidence=1.0,
                entities=entities,
            )
        )


importer = ReferenceMemory()
