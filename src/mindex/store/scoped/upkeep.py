"""Vectors, caches and maintenance for one principal: it reads what it sees, and changes nothing for all agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from mindex.datatypes import KINDS, Check, Filters, Model, Record, RecordVectors, Report, VectorArray
from mindex.datatypes.spaces import EmbedderSpec, Space
from mindex.store.base import StoreStatus
from mindex.store.scoped.rules import AccessRules

_PAGE = 1_000


class ScopedVectors:
    """Implements `mindex.store.base.VectorStore`. The server embeds: a principal stores no vectors."""

    def __init__(self, rules: AccessRules) -> None:
        self._rules = rules
        self._vectors = rules.store.vectors

    def pending(self, model: Model) -> int:
        """At most a thousand are looked at: few records wait, and never for long."""
        return len(self.pending_records(model, _PAGE))

    def pending_records(
        self, model: Model, limit: int, *, entries_only: bool = False, ids: Sequence[str] = ()
    ) -> tuple[Record, ...]:
        found = self._vectors.pending_records(model, limit, entries_only=entries_only, ids=ids)
        return tuple(filter(self._rules.sees, found))

    def put(self, model: Model, vectors: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None = None) -> int:
        self._rules.require_everything()
        return self._vectors.put(model, vectors, embedder_spec)

    def pack(self) -> None:
        self._rules.require_everything()
        self._vectors.pack()

    def stored(self, model: Model, ids: Sequence[str]) -> dict[str, VectorArray]:
        return self._vectors.stored(model, self._rules.visible(ids))

    def with_fluency(self, model: Model, ids: Sequence[str]) -> tuple[RecordVectors, ...]:
        return self._vectors.with_fluency(model, self._rules.visible(ids))

    def embedded_records(self, model: Model, limit: int) -> tuple[Record, ...]:
        return tuple(filter(self._rules.sees, self._vectors.embedded_records(model, limit)))

    def active_space(self) -> str:
        return self._vectors.active_space()

    def spaces(self, *, counted: bool = True) -> tuple[Space, ...]:
        """Their vectors are not counted: the number would be that of all agents' records."""
        return self._vectors.spaces(counted=counted and self._rules.principal.is_unlimited)

    def begin_space(self, model: Model, embedder_spec: EmbedderSpec) -> None:
        self._rules.require_everything()
        self._vectors.begin_space(model, embedder_spec)

    def switch_space(self, model: Model) -> bool:
        self._rules.require_everything()
        return self._vectors.switch_space(model)

    def rename_space(
        self,
        old: Model,
        new: Model,
        embedder_spec: EmbedderSpec,
        canary: VectorArray | None = None,
        *,
        mixed: bool = False,
    ) -> bool:
        self._rules.require_everything()
        return self._vectors.rename_space(old, new, embedder_spec, canary, mixed=mixed)

    def former_records(self, limit: int) -> tuple[tuple[Record, ...], int]:
        self._rules.require_everything()
        return self._vectors.former_records(limit)

    def count_former(self) -> int:
        """Unknown for a principal that sees a part: the number would be that of all agents' records."""
        return self._vectors.count_former() if self._rules.principal.is_unlimited else 0

    def pass_former(self, position: int) -> None:
        self._rules.require_everything()
        self._vectors.pass_former(position)

    def canary(self, model: Model) -> VectorArray | None:
        return self._vectors.canary(model)

    def put_canary(self, model: Model, vector: VectorArray) -> VectorArray:
        self._rules.require_everything()
        return self._vectors.put_canary(model, vector)

    def drop_unused_spaces(self) -> int:
        self._rules.require_everything()
        return self._vectors.drop_unused_spaces()


class ScopedCaches:
    """Implements `mindex.store.base.CacheStore`. A value is found only by who knows what it was made of."""

    def __init__(self, rules: AccessRules) -> None:
        self._rules = rules
        self._caches = rules.store.caches

    def get(self, kind: str, key: str) -> bytes | None:
        return self._caches.get(kind, key)

    def put(self, kind: str, key: str, value: bytes) -> None:
        self._caches.put(kind, key, value)

    def get_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        return self._caches.get_many(kind, keys)

    def put_many(self, kind: str, values: Mapping[str, bytes], *, now: bool = False) -> None:
        self._caches.put_many(kind, values, now=now)

    def has_prefix(self, kind: str, start: str) -> bool:
        return self._caches.has_prefix(kind, start)

    def items(self) -> Iterator[tuple[str, str, bytes]]:
        self._rules.require_everything()
        return self._caches.items()

    def clear(self, kinds: Sequence[str] = ()) -> dict[str, int]:
        self._rules.require_everything()
        return self._caches.clear(kinds)


class ScopedMaintenance:
    """Implements `mindex.store.base.Maintenance`. Counts cover visible records; the database size is left out."""

    def __init__(self, rules: AccessRules) -> None:
        self._rules = rules
        self._maintenance = rules.store.maintenance

    def status(self) -> StoreStatus:
        whole = self._maintenance.status()
        everything = Filters(agent=self._rules.principal.agent, include_expired=True)
        counts = {kind: self._count(replace(everything, kinds=(kind,))) for kind in KINDS if kind in whole.records}
        collections = {name: one for name, one in whole.collections.items() if self._rules.sees_collection(name)}
        return StoreStatus(
            location="the memory of this server",
            schema=whole.schema,
            records={kind: count for kind, count in counts.items() if count},
            collections=collections,
            size_bytes=None,
        )

    def _count(self, filters: Filters) -> int:
        return self._rules.store.retrieval.list(self._rules.filters(filters), limit=1).total

    def check(self) -> tuple[Check, ...]:
        self._rules.require_everything()
        return self._maintenance.check()

    def check_deep(self, report: Report | None = None) -> tuple[Check, ...]:
        self._rules.require_everything()
        return self._maintenance.check_deep(report)

    def damaged(self) -> tuple[str, ...]:
        """Nothing for who sees a part: the names are those of all agents' records."""
        return self._maintenance.damaged() if self._rules.principal.is_unlimited else ()

    def optimize(self) -> None:
        self._rules.require_everything()
        self._maintenance.optimize()
