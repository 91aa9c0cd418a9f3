"""Vectors, caches and maintenance for one principal: it reads what it sees, and changes nothing for all agents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mindex.datatypes import KINDS, Filters, Model, Record, RecordVectors, VectorArray
from mindex.datatypes.spaces import Space
from mindex.store.base import CacheStore, Maintenance, StoreStatus, VectorStore
from mindex.store.scoped.rules import ScopedGroup, for_all, unchanged

_PAGE = 1_000


class ScopedVectors(ScopedGroup[VectorStore]):
    """Implements `mindex.store.base.VectorStore`. The server embeds: a principal stores no vectors."""

    def pending(self, model: Model) -> int:
        """At most a thousand are looked at: few records wait, and never for long."""
        return len(self.pending_records(model, _PAGE))

    def pending_records(
        self, model: Model, limit: int, *, entries_only: bool = False, ids: Sequence[str] = ()
    ) -> tuple[Record, ...]:
        found = self._group.pending_records(model, limit, entries_only=entries_only, ids=ids)
        return tuple(filter(self._rules.sees, found))

    put = for_all(VectorStore.put)
    pack = for_all(VectorStore.pack)

    def stored(self, model: Model, ids: Sequence[str]) -> dict[str, VectorArray]:
        return self._group.stored(model, self._rules.visible(ids))

    def with_fluency(self, model: Model, ids: Sequence[str]) -> tuple[RecordVectors, ...]:
        return self._group.with_fluency(model, self._rules.visible(ids))

    def embedded_records(self, model: Model, limit: int) -> tuple[Record, ...]:
        return tuple(filter(self._rules.sees, self._group.embedded_records(model, limit)))

    active_space = unchanged(VectorStore.active_space)

    def spaces(self, *, counted: bool = True) -> tuple[Space, ...]:
        """Their vectors are not counted: the number would be that of all agents' records."""
        return self._group.spaces(counted=counted and self._rules.principal.is_unlimited)

    begin_space = for_all(VectorStore.begin_space)
    switch_space = for_all(VectorStore.switch_space)
    rename_space = for_all(VectorStore.rename_space)
    former_records = for_all(VectorStore.former_records)

    def count_former(self) -> int:
        """0 for a principal that sees a part: the number would be that of all agents' records."""
        return self._group.count_former() if self._rules.principal.is_unlimited else 0

    pass_former = for_all(VectorStore.pass_former)
    canary = unchanged(VectorStore.canary)
    put_canary = for_all(VectorStore.put_canary)
    drop_unused_spaces = for_all(VectorStore.drop_unused_spaces)


class ScopedCaches(ScopedGroup[CacheStore]):
    """Implements `mindex.store.base.CacheStore`. A value is found only by who knows what it was made of."""

    get = unchanged(CacheStore.get)
    put = unchanged(CacheStore.put)
    get_many = unchanged(CacheStore.get_many)
    put_many = unchanged(CacheStore.put_many)
    has_prefix = unchanged(CacheStore.has_prefix)
    items = for_all(CacheStore.items)
    clear = for_all(CacheStore.clear)


class ScopedMaintenance(ScopedGroup[Maintenance]):
    """Implements `mindex.store.base.Maintenance`. Counts are of what is seen; the size of the database is left out."""

    def status(self) -> StoreStatus:
        whole = self._group.status()
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

    check = for_all(Maintenance.check)
    check_deep = for_all(Maintenance.check_deep)

    def damaged(self) -> tuple[str, ...]:
        """Nothing for who sees a part: the names are those of all agents' records."""
        return self._group.damaged() if self._rules.principal.is_unlimited else ()

    optimize = for_all(Maintenance.optimize)
