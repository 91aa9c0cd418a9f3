"""Vectors and embedding spaces of the in-memory engine."""

from collections.abc import Sequence

import numpy as np

from mindex.datatypes import Model, Record, RecordVectors, VectorArray
from mindex.datatypes.spaces import EmbedderSpec, Space
from mindex.embedding_text import embedded_text
from mindex.errors import EmbeddingError
from mindex.ids import short_hash
from mindex.store.export_rows import ExportedVectors
from mindex.store.rules import spaces as rules
from mindex.store.rules.spaces import Former, SpaceRoles, describe_space, described_space
from tests.contract.memory_engine_tables import Connection, StoredSpace, StoredVectors, Tables


class MemoryVectors:
    """Implements `mindex.store.base.VectorStore`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────

    def pending(self, model: Model) -> int:
        return len(_pending(self._connection.read(), model))

    def pending_records(
        self, model: Model, limit: int, *, entries_only: bool = False, ids: Sequence[str] = ()
    ) -> tuple[Record, ...]:
        pending = _pending(self._connection.read(), model)
        if ids:
            pending = [record for record in pending if record.id in ids]
        elif entries_only:
            pending = [record for record in pending if record.kind != "chunk"]
        return tuple(pending[:limit])

    def put(self, model: Model, vectors: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None = None) -> int:
        arrays = [(item, np.array(item.vectors, np.float32)) for item in vectors]
        for _, pieces in arrays:
            if pieces.ndim != 2 or pieces.shape[1] != model.dimensions:
                raise EmbeddingError(
                    f"a vector of {pieces.shape[-1]} dimensions does not fit {model.name} ({model.dimensions})",
                    "check embedding.model, then run `mindex backfill`",
                )
        stored = 0
        with self._connection.write() as tables:
            rules.claim(MemorySpaceStatements(tables), model, embedder_spec)
            for item, pieces in arrays:
                if _is_current(tables.records.get(item.record), item.of):
                    tables.vectors[model.fingerprint, item.record] = StoredVectors(pieces, item.fluency)
                    stored += 1
        return stored

    def pack(self) -> None:
        """Nothing: no process starts with these data."""

    def stored(self, model: Model, ids: Sequence[str]) -> dict[str, VectorArray]:
        tables = self._connection.read()
        return {id_: tables.vectors[model.fingerprint, id_].pieces for id_ in ids if tables.has_vectors(model, id_)}

    def with_fluency(self, model: Model, ids: Sequence[str]) -> tuple[RecordVectors, ...]:
        tables = self._connection.read()
        stored = {id_: tables.vectors[model.fingerprint, id_] for id_ in ids if tables.has_vectors(model, id_)}
        return tuple(RecordVectors(id_, one.pieces, one.fluency) for id_, one in stored.items())

    def embedded_records(self, model: Model, limit: int) -> tuple[Record, ...]:
        tables = self._connection.read()
        records = [tables.records[id_] for space, id_ in tables.vectors if space == model.fingerprint]
        return tuple(records[:limit])

    # ── spaces ────────────────────────────────────────────────────────────────────────────────────────────────

    def active_space(self) -> str:
        return self._connection.read().roles.active

    def spaces(self, *, counted: bool = True) -> tuple[Space, ...]:
        tables = self._connection.read()
        found = []
        for fingerprint, stored in tables.spaces.items():
            model, embedder_spec = described_space(fingerprint, stored.description)
            vectors = sum(space == fingerprint for space, _ in tables.vectors) if counted else 0
            active, filling = fingerprint == tables.roles.active, fingerprint == tables.roles.filling
            found.append(Space(model, embedder_spec, vectors, active=active, next=filling))
        return tuple(sorted(found, key=lambda space: (not space.active, not space.next)))

    def begin_space(self, model: Model, embedder_spec: EmbedderSpec) -> None:
        with self._connection.write() as tables:
            rules.begin(MemorySpaceStatements(tables), model, embedder_spec)

    def switch_space(self, model: Model) -> bool:
        with self._connection.write() as tables:
            return rules.switch(MemorySpaceStatements(tables), model)

    def rename_space(
        self,
        old: Model,
        new: Model,
        embedder_spec: EmbedderSpec,
        canary: VectorArray | None = None,
        *,
        mixed: bool = False,
    ) -> bool:
        with self._connection.write() as tables:
            return rules.rename(MemorySpaceStatements(tables), old, new, embedder_spec, canary, mixed=mixed)

    def former_records(self, limit: int) -> tuple[tuple[Record, ...], int]:
        found = self._former()
        position = found[limit - 1][0] if len(found) >= limit else self._connection.read().former.until
        return tuple(record for _, record in found[:limit]), position

    def count_former(self) -> int:
        return len(self._former())

    def _former(self) -> list[tuple[int, Record]]:
        tables = self._connection.read()
        return [
            (position, record)
            for position, id_ in enumerate(tables.former_ids, 1)
            if tables.former.done < position <= tables.former.until
            and (record := tables.records.get(id_)) is not None
            and record.retired_at is None
            and (tables.roles.active, id_) in tables.vectors
        ]

    def pass_former(self, position: int) -> None:
        with self._connection.write() as tables:
            rules.pass_former(MemorySpaceStatements(tables), position)

    def canary(self, model: Model) -> VectorArray | None:
        return self._connection.read().canaries.get(model.fingerprint)

    def put_canary(self, model: Model, vector: VectorArray) -> VectorArray:
        with self._connection.write() as tables:
            used = any(space == model.fingerprint for space, _ in tables.vectors)
            if not used or model.fingerprint not in tables.canaries:
                tables.canaries[model.fingerprint] = np.array(vector, np.float32)
            return tables.canaries[model.fingerprint]

    def drop_unused_spaces(self) -> int:
        with self._connection.write() as tables:
            roles = tables.roles
            unused = [one for one in tables.spaces if roles.active and one not in (roles.active, roles.filling)]
            for fingerprint in unused:
                del tables.spaces[fingerprint]
                tables.canaries.pop(fingerprint, None)
            for key in [key for key in tables.vectors if key[0] in unused]:
                del tables.vectors[key]
            return len(unused)


class MemorySpaceStatements:
    """Implements `SpaceStatements` on the tables of one transaction."""

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def roles(self) -> SpaceRoles:
        return self._tables.roles

    def set_roles(self, roles: SpaceRoles) -> None:
        self._tables.roles = roles

    def put_space(self, model: Model, embedder_spec: EmbedderSpec | None) -> None:
        if embedder_spec is not None or model.fingerprint not in self._tables.spaces:
            description = describe_space(model, embedder_spec)
            self._tables.spaces[model.fingerprint] = StoredSpace(model.dimensions, description)

    def begin_filling(self, model: Model) -> None:
        """Nothing: vectors from an earlier time are as good as new ones."""

    def rename_space(self, old: str, new: Model, embedder_spec: EmbedderSpec, canary: VectorArray | None) -> bool:
        tables = self._tables
        if old not in tables.spaces or new.fingerprint in tables.spaces:
            return False
        del tables.spaces[old]
        self.put_space(new, embedder_spec)
        for key in [key for key in tables.vectors if key[0] == old]:
            tables.vectors[new.fingerprint, key[1]] = tables.vectors.pop(key)
        kept = tables.canaries.pop(old, None)
        if (stored := kept if canary is None else np.array(canary, np.float32)) is not None:
            tables.canaries[new.fingerprint] = stored
        return True

    def former(self) -> Former:
        return self._tables.former

    def set_former(self, former: Former) -> None:
        self._tables.former = former

    def last_position(self, fingerprint: str) -> int:
        self._tables.former_ids = [id_ for space, id_ in self._tables.vectors if space == fingerprint]
        return len(self._tables.former_ids)

    def lacks(self, new: Model, old: str) -> bool:
        return any(space == old and not self._tables.has_vectors(new, id_) for space, id_ in self._tables.vectors)


def export_vectors(tables: Tables, id_: str) -> tuple[ExportedVectors, ...]:
    """The vectors of a record in every space."""
    return tuple(
        ExportedVectors(space, stored.pieces.shape[1], stored.fluency, stored.pieces.astype("<f4").tobytes())
        for (space, record), stored in sorted(tables.vectors.items(), key=lambda item: item[0])
        if record == id_
    )


def put_exported_vectors(tables: Tables, id_: str, vectors: ExportedVectors) -> None:
    """See `RestoreStatements.put_exported_vectors`."""
    space = tables.spaces.setdefault(vectors.model, StoredSpace(vectors.dimensions))
    if space.dimensions == vectors.dimensions:
        pieces = np.frombuffer(vectors.data, "<f4").reshape(-1, vectors.dimensions)
        tables.vectors[vectors.model, id_] = StoredVectors(pieces, vectors.fluency)


def _pending(tables: Tables, model: Model) -> list[Record]:
    records = tables.records.values()
    return [one for one in records if one.retired_at is None and not tables.has_vectors(model, one.id)]


def _is_current(record: Record | None, embedded: str) -> bool:
    """Whether a record is live, and still has the text that was embedded, if the hash of that is given."""
    if record is None or record.retired_at is not None:
        return False
    return embedded in ("", short_hash(embedded_text(record)))
