"""The MCP reference memory server's JSONL: entities with observations, and relations between them.

Each observation is a memory, each relation is one, and so is an entity of which nothing was observed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mindex.transfer.importer import ExportRow, SkippedRow, foreign_id
from mindex.transfer.importers.foreign_values import said
from mindex.transfer.importers.json_lines import Json, first_objects, objects
from mindex.transfer.importers.sqlite_source import EMPTY, memory


class ReferenceMemory:
    name = "reference-memory"

    def recognises(self, path: Path) -> bool:
        if path.suffix not in (".jsonl", ".json") or not path.is_file():
            return False
        return any(
            (held.get("type") == "entity" and "name" in held) or (held.get("type") == "relation" and "from" in held)
            for held in first_objects(path)
        )

    def read(self, path: Path) -> Iterator[ExportRow | SkippedRow]:
        at = int(path.stat().st_mtime * 1000)  # the file knows no times of its own
        for number, held in objects(path):
            where = f"line {number}"
            if isinstance(held, SkippedRow):
                yield held
            elif held.get("type") == "entity":
                yield from self._entity(where, held, at)
            elif held.get("type") == "relation":
                yield self._relation(where, held, at)
            else:
                yield SkippedRow(where, f"'{said(held.get('type')):.40}' is neither an entity nor a relation")

    def _entity(self, where: str, held: Json, at: int) -> Iterator[ExportRow | SkippedRow]:
        name, kind = said(held.get("name")).strip(), said(held.get("entityType")).strip()
        observations = held.get("observations") or []
        if not name:
            yield SkippedRow(where, "an entity without a name")
            return
        if not isinstance(observations, list):
            observations = [observations]
        if not observations:
            text = f"{name} is a {kind}" if kind else name
            yield self._row(where, ("entity", name, kind), text, "entity", (name,), kind, at)
        for index, one in enumerate(observations):
            text = said(one)
            # Observations often leave out whom they are about; the name is what one would search for.
            full = text if name.casefold() in text.casefold() else f"{name}: {text}"
            if text.strip():
                yield self._row(where, ("observation", name, text), full, "fact", (name,), kind, at)
            else:
                yield SkippedRow(f"{where}, observation {index + 1}", EMPTY)

    def _relation(self, where: str, held: Json, at: int) -> ExportRow | SkippedRow:
        one, other, how = (said(held.get(key)).strip() for key in ("from", "to", "relationType"))
        if not (one and other and how):
            return SkippedRow(where, "a relation without both ends and a type")
        text = f"{one} {how.replace('_', ' ')} {other}"
        return self._row(where, ("relation", one, how, other), text, "relationship", (one, other), "", at)

    def _row(
        self, where: str, key: tuple[str, ...], text: str, type_: str, entities: tuple[str, ...], tag: str, at: int
    ) -> ExportRow:
        id_ = foreign_id(self.name, *key)
        record = memory(
            id_,
            text,
            at,
            tags=(tag,) if tag else (),
            type=type_,
            source=f"{self.name}:{key[0]}:{id_}",
            entities=tuple(dict.fromkeys(entities)),
        )
        return ExportRow(record, where=where)


importer = ReferenceMemory()
