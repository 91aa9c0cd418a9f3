"""Vectors and embedding spaces in Azure AI Search: each space has its own vector field."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar, cast

from mindex.datatypes import Model, Record, RecordVectors, VectorArray
from mindex.ids import short_hash
from mindex.store.engine_parts import described_space, embedded_text
from mindex.store.engine_parts import spaces as rules
from mindex_azure import odata
from mindex_azure.connection import Changes, Row, in_groups
from mindex_azure.documents import chunk_row, key_of, read_body
from mindex_azure.engine import AzureEngine, AzureSpaceStatements
from mindex_azure.schema import fluency_field, space_of, vector_field
from mindex_azure.vector_rows import with_vectors

if TYPE_CHECKING:
    from mindex.datatypes import EmbedderSpec, Space

T = TypeVar("T")
_AT_ONCE = 500
_FILE_BY_FILE = ("path asc", "document asc", "position asc")
_CHUNK = ("id", "position", "parts", "spaces", "body")


class AzureVectorStore:
    """Implements `mindex.store.base.VectorStore`."""

    def __init__(self, engine: AzureEngine) -> None:
        self._engine = engine
        self._connection = engine.connection

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────

    def pending(self, model: Model) -> int:
        return self._connection.count(_pending(model))

    def pending_records(
        self, model: Model, limit: int, *, entries_only: bool = False, ids: Sequence[str] = ()
    ) -> tuple[Record, ...]:
        if entries_only and not ids:
            return ()
        where = odata.both(_pending(model), odata.any_of("id", ids) if ids else "")
        # What this process wrote is left out while others wait: its vectors may be on their way.
        unseen = self._connection.unseen_keys()
        if unseen and limit + len(unseen) <= _AT_ONCE:
            rows = self._connection.search(
                where, select=("key", "body"), order=_FILE_BY_FILE, top=limit + len(unseen), fresh=False
            ).rows
            others = [row for row in rows if row["key"] not in unseen]
            if len(others) >= limit:
                return tuple(read_body(Record, row) for row in others[:limit])
        return self._first_records(where, limit)

    def put(self, model: Model, vectors: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None = None) -> int:
        pieces = {item.record: rules.record_vectors(model, item.vectors) for item in vectors}
        self._change_spaces(lambda statements: rules.claim(statements, model, embedder_spec))
        self._engine.ensure_space_fields(model)
        items = {item.record: item for item in vectors}
        stored = 0
        for ids in in_groups(list(items), _AT_ONCE):
            uploads: list[Row] = []
            merges: list[Row] = []
            written: set[str] = set()
            for row in self._connection.with_keys([key_of("chunk", id_) for id_ in ids], _CHUNK):
                record, item = read_body(Record, row), items[row["id"]]
                if item.of in ("", short_hash(embedded_text(record))):
                    chunk = chunk_row(record, row["position"])
                    spaces, parts = tuple(row["spaces"] or ()), row["parts"] or 1
                    more, changed = with_vectors(model, chunk, spaces, parts, item, pieces[record.id])
                    uploads += more
                    merges += changed
                    written.add(row["key"])
            missing = self._connection.write(Changes(uploads=uploads, merges=merges))
            stored += len(written - missing)
        return stored

    def pack(self) -> None:
        """Nothing: the service keeps its own index of vectors."""

    def stored(self, model: Model, ids: Sequence[str]) -> dict[str, VectorArray]:
        return {one.record: cast("VectorArray", one.vectors) for one in self.with_fluency(model, ids)}

    def with_fluency(self, model: Model, ids: Sequence[str]) -> tuple[RecordVectors, ...]:
        import numpy as np  # only if vectors are read

        space = space_of(model.fingerprint)
        if not ids or not self._has_space(model):
            return ()
        vector, fluency = vector_field(space), fluency_field(space)
        pieces: dict[str, dict[int, Row]] = defaultdict(dict)
        for some in in_groups(list(ids), _AT_ONCE):
            where = odata.both(odata.VECTORS, odata.any_of("id", some), odata.has("spaces", space))
            for row in self._connection.pages(where, ("id", "part", vector, fluency)):
                if row[vector]:
                    pieces[row["id"]][row["part"]] = row
        return tuple(
            RecordVectors(
                id_, np.asarray([found[part][vector] for part in sorted(found)], np.float32), found[0][fluency]
            )
            for id_ in ids
            if (found := pieces.get(id_))
        )

    def embedded_records(self, model: Model, limit: int) -> tuple[Record, ...]:
        return self._first_records(odata.both(odata.CHUNKS, odata.has("spaces", space_of(model.fingerprint))), limit)

    def _first_records(self, where: str, limit: int) -> tuple[Record, ...]:
        """The first records of a scope, file by file."""
        found: list[Row] = []
        while len(found) < limit:
            top = min(_AT_ONCE, limit - len(found))
            page = self._connection.search(where, select=("body",), order=_FILE_BY_FILE, top=top, skip=len(found)).rows
            found += page
            if len(page) < top:
                break
        return tuple(read_body(Record, row) for row in found)

    # ── spaces ────────────────────────────────────────────────────────────────────────────────────────────────

    def active_space(self) -> str:
        return self._engine.spaces().roles.active

    def spaces(self, *, counted: bool = True) -> tuple[Space, ...]:
        from mindex.datatypes import Space  # a keyword search does without

        stored = self._engine.spaces()
        found = []
        for fingerprint, description in stored.descriptions.items():
            where = odata.both(odata.CHUNKS, odata.has("spaces", space_of(fingerprint)))
            active, filling = fingerprint == stored.roles.active, fingerprint == stored.roles.filling
            vectors = self._connection.count(where) if counted else 0
            model, embedder_spec = described_space(fingerprint, description)
            found.append(Space(model, embedder_spec, vectors, active=active, next=filling))
        return tuple(sorted(found, key=lambda space: (not space.active, not space.next)))

    def begin_space(self, model: Model, embedder_spec: EmbedderSpec) -> None:
        self._change_spaces(lambda statements: rules.begin(statements, model, embedder_spec))

    def switch_space(self, model: Model) -> bool:
        return self._change_spaces(lambda statements: rules.switch(statements, model))

    def rename_space(self, *_: object, **_options: object) -> bool:
        """Never: the fields of an index are named after the space, and cannot be renamed."""
        return False

    def former_records(self, limit: int) -> tuple[tuple[Record, ...], int]:  # noqa: ARG002 - none is ever found
        return (), 0

    def count_former(self) -> int:
        return 0

    def pass_former(self, position: int) -> None:
        """Nothing: no space holds vectors of two models."""

    def canary(self, model: Model) -> VectorArray | None:
        return rules.decode_canary(model, self._engine.spaces().canaries.get(model.fingerprint))

    def put_canary(self, model: Model, vector: VectorArray) -> VectorArray:
        kept = self.canary(model)
        if kept is not None and self.embedded_records(model, 1):
            return kept
        spaces = self._engine.spaces()
        spaces.canaries[model.fingerprint] = rules.encode_canary(vector)
        self._engine.put_spaces(spaces)
        return vector

    def drop_unused_spaces(self) -> int:
        spaces = self._engine.spaces()
        used = {spaces.roles.active, spaces.roles.filling}
        unused = [one for one in spaces.descriptions if spaces.roles.active and one not in used]
        for fingerprint in unused:
            self._drop_vectors(space_of(fingerprint))
            del spaces.descriptions[fingerprint]
            spaces.canaries.pop(fingerprint, None)
        if unused:
            self._engine.put_spaces(spaces)
        return len(unused)

    def _drop_vectors(self, space: str) -> None:
        """Empty the fields of a space. They stay in the index, without cost, until its next version."""
        nothing = {vector_field(space): None, fluency_field(space): None}
        rows = list(self._connection.pages(odata.both(odata.VECTORS, odata.has("spaces", space)), ("spaces",)))
        merges = [
            {"key": row["key"], "spaces": [one for one in row["spaces"] if one != space], **nothing} for row in rows
        ]
        self._connection.write(Changes(merges=merges))

    def _has_space(self, model: Model) -> bool:
        return model.fingerprint in self._engine.spaces().descriptions

    def _change_spaces(self, change: Callable[[AzureSpaceStatements], T]) -> T:
        spaces = self._engine.spaces()
        statements = AzureSpaceStatements(self._engine, spaces)
        result = change(statements)
        if statements.changed:
            self._engine.put_spaces(spaces)
        return result


def _pending(model: Model) -> str:
    return odata.both(odata.CHUNKS, f"not {odata.has('spaces', space_of(model.fingerprint))}")
