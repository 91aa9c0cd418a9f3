"""The MCP reference memory server's JSONL: entities with observations, and relations between them.

Each observation is a memory, each relation is one, and so is an entity without observations.
"""

from collections.abc import Iterator
from pathlib import Path

from mindex.transfer.importer_parts import (
    EMPTY,
    Importer,
    Json,
    ReadRow,
    SkippedRow,
    first_objects,
    foreign_id,
    json_text,
    memory_row,
    read_objects,
)


class ReferenceMemory(Importer):
    name = "reference-memory"

    def recognises(self, path: Path) -> bool:
        if path.suffix not in (".jsonl", ".json") or not path.is_file():
            return False
        return any(
            (line.get("type") == "entity" and "name" in line) or (line.get("type") == "relation" and "from" in line)
            for line in first_objects(path)
        )

    def read(self, path: Path) -> Iterator[ReadRow]:
        at = int(path.stat().st_mtime * 1000)  # the file contains no times
        for number, line in read_objects(path):
            where = f"line {number}"
            if isinstance(line, SkippedRow):
                yield line
            elif line.get("type") == "entity":
                yield from self._entity(where, line, at)
            elif line.get("type") == "relation":
                yield self._relation(where, line, at)
            else:
                yield SkippedRow(where, f"'{json_text(line.get('type')):.40}' is neither an entity nor a relation")

    def _entity(self, where: str, line: Json, at: int) -> Iterator[ReadRow]:
        name, kind = json_text(line.get("name")).strip(), json_text(line.get("entityType")).strip()
        observations = line.get("observations") or []
        if not name:
            yield SkippedRow(where, "an entity without a name")
            return
        if not isinstance(observations, list):
            observations = [observations]
        if not observations:
            text = f"{name} is a {kind}" if kind else name
            yield self._row(where, ("entity", name, kind), text, "entity", (name,), kind, at)
        for index, observation in enumerate(observations):
            text = json_text(observation)
            # An observation often leaves out the name of its entity, which is what users search for.
            full = text if name.casefold() in text.casefold() else f"{name}: {text}"
            if text.strip():
                yield self._row(where, ("observation", name, text), full, "fact", (name,), kind, at)
            else:
                yield SkippedRow(f"{where}, observation {index + 1}", EMPTY)

    def _relation(self, where: str, line: Json, at: int) -> ReadRow:
        one, other, relation = (json_text(line.get(key)).strip() for key in ("from", "to", "relationType"))
        if not (one and other and relation):
            return SkippedRow(where, "a relation without both ends and a type")
        text = f"{one} {relation.replace('_', ' ')} {other}"
        return self._row(where, ("relation", one, relation, other), text, "relationship", (one, other), "", at)

    def _row(
        self, where: str, key: tuple[str, ...], text: str, type_: str, entities: tuple[str, ...], tag: str, at: int
    ) -> ReadRow:
        id_ = foreign_id(self.name, *key)
        return memory_row(
            where,
            id_,
            text,
            at,
            tags=(tag,) if tag else (),
            type=type_,
            source=f"{self.name}:{key[0]}:{id_}",
            entities=tuple(dict.fromkeys(entities)),
        )


importer = ReferenceMemory()
