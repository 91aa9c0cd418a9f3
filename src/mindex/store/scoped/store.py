"""`ScopedStore`: one store as one principal may see and change it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from mindex.datatypes import KINDS, Collection, Document, Filters, Model, Term
from mindex.datatypes.access_tokens import Principal
from mindex.datatypes.spaces import Space
from mindex.errors import AccessDeniedError
from mindex.store.base import (
    CacheStore,
    ChunkCounts,
    DocumentUpdate,
    FileStore,
    KeywordQuery,
    KeywordResult,
    Maintenance,
    RankingContext,
    RetrievalStore,
    Store,
    StoreStatus,
    SyncStore,
    TermStatistics,
    TokenStore,
    VectorStore,
)
from mindex.store.scoped.entries import ScopedEntries
from mindex.store.scoped.rules import AccessRules, ScopedGroup, filtered, for_all, narrowed

_PAGE = 1_000


class ScopedStore:
    """Implements `mindex.store.base.Store`. Records of other agents, and files of other collections, do not exist here.

    The wall is here and not in the services or tools, so that none of them can forget it. Closing it closes nothing:
    the store belongs to the server.
    """

    def __init__(self, store: Store, principal: Principal) -> None:
        self._store = store
        self._principal = principal
        self._rules = AccessRules(store, principal)
        self.capabilities = store.capabilities - {"tokens", "sync"}

    # Made when first used: an engine need not serve all of them.

    @cached_property
    def files(self) -> ScopedFiles:
        return ScopedFiles(self._rules, self._store.files)

    @cached_property
    def entries(self) -> ScopedEntries:
        return ScopedEntries(self._rules, self._store.entries)

    @cached_property
    def retrieval(self) -> ScopedRetrieval:
        return ScopedRetrieval(self._rules, self._store.retrieval)

    @cached_property
    def vectors(self) -> ScopedVectors:
        return ScopedVectors(self._rules, self._store.vectors)

    @cached_property
    def caches(self) -> ScopedCaches:
        return ScopedCaches(self._rules, self._store.caches)

    @cached_property
    def maintenance(self) -> ScopedMaintenance:
        return ScopedMaintenance(self._rules, self._store.maintenance)

    @property
    def tokens(self) -> TokenStore:
        raise AccessDeniedError("a token cannot manage tokens", "ask the server's owner to run `mindex token`")

    @property
    def sync(self) -> SyncStore:
        raise AccessDeniedError("a token cannot sync", "ask the server's owner to run `mindex sync`")

    @property
    def read_only(self) -> bool:
        return self._store.read_only or not self._principal.may_write

    @property
    def folder(self) -> Path | None:
        return self._store.folder

    def settle(self) -> None:
        self._store.settle()

    def close(self) -> None:
        """Do nothing: other principals also use the store."""


class ScopedFiles(ScopedGroup[FileStore]):
    """Implements `mindex.store.base.FileStore`."""

    def collections(self) -> tuple[Collection, ...]:
        return tuple(one for one in self._group.collections() if self._rules.sees_collection(one.name))

    def put_collection(self, collection: Collection) -> None:
        self._rules.require_collection(collection.name)
        self._group.put_collection(collection)

    def remove_collection(self, name: str) -> int:
        self._rules.require_collection(name)
        return self._group.remove_collection(name)

    def documents(self, collection: str) -> dict[str, Document]:
        return self._group.documents(collection) if self._rules.sees_collection(collection) else {}

    def find_documents(self, path: str) -> tuple[Document, ...]:
        found = self._group.find_documents(path)
        return tuple(one for one in found if self._rules.sees_collection(one.collection))

    def domains(self) -> frozenset[str]:
        if self._rules.sees_all_files:
            return self._group.domains()
        return frozenset(one.domain for one in self._visible_documents())

    def apply(self, updates: Sequence[DocumentUpdate], removed: Iterable[str] = ()) -> ChunkCounts:
        self._rules.require_write()
        for update in updates:
            self._rules.require_collection(update.document.collection)
        removed = list(removed)
        if removed and not self._rules.sees_all_files:
            visible = {one.id for one in self._visible_documents()}
            removed = [id_ for id_ in removed if id_ in visible]
        return self._group.apply(updates, removed)

    chunks = filtered(FileStore.chunks)

    def uncontextualized(self, collections: Sequence[str]) -> tuple[str, ...]:
        return self._group.uncontextualized(list(filter(self._rules.sees_collection, collections)))

    def set_contexts(self, contexts: Sequence[tuple[str, str]]) -> int:
        self._rules.require_write()
        visible = set(self._rules.visible(id_ for id_, _ in contexts))
        return self._group.set_contexts([one for one in contexts if one[0] in visible])

    def drop_contexts(self, collections: Sequence[str]) -> int:
        for name in collections:
            self._rules.require_collection(name)
        return self._group.drop_contexts(collections)

    def _visible_documents(self) -> list[Document]:
        return [one for collection in self.collections() for one in self._group.documents(collection.name).values()]


class ScopedRetrieval(ScopedGroup[RetrievalStore]):
    """Implements `mindex.store.base.RetrievalStore`."""

    records = filtered(RetrievalStore.records)
    record = filtered(RetrievalStore.record)

    def resolve(self, prefix: str, limit: int = 10, *, retired: bool = False) -> tuple[str, ...]:
        """As many as are wanted, however many records of others have ids that start so."""
        read = limit
        while True:
            found = self._group.resolve(prefix, read, retired=retired)
            visible = self._rules.visible(found)
            if len(visible) >= limit or len(found) < read:
                return tuple(visible[:limit])
            read *= 4

    find_by_foreign_id = filtered(RetrievalStore.find_by_foreign_id)
    list = narrowed(RetrievalStore.list)
    label_counts = narrowed(RetrievalStore.label_counts)
    substring = narrowed(RetrievalStore.substring)

    def keyword(self, query: KeywordQuery, filters: Filters, limit: int) -> KeywordResult:
        query = replace(query, past=tuple(filter(self._rules.sees, query.past)))
        return self._group.keyword(query, self._rules.filters(filters), limit)

    def term_statistics(self, tokens: Sequence[str]) -> TermStatistics:
        """Tokens that only records of others hold are counted 0: else a note on unknown words would tell of them."""
        everywhere = self._group.term_statistics(tokens)
        scope = self._rules.filters(Filters(agent=self._rules.principal.agent, include_expired=True))
        frequency = {
            token: count if count and self._group.keyword(KeywordQuery(Term(token)), scope, 1).hits else 0
            for token, count in everywhere.frequency.items()
        }
        return TermStatistics(everywhere.records, frequency)

    # `choose` sees the frequencies in all records: nothing but the choice of tokens depends on them.
    records_with_tokens = narrowed(RetrievalStore.records_with_tokens)
    # Tokens of all records: spelling suggests one only if a record in scope contains it.
    terms = narrowed(RetrievalStore.terms)
    nearest = narrowed(RetrievalStore.nearest)
    neighbours = narrowed(RetrievalStore.neighbours)
    ranking_signals = narrowed(RetrievalStore.ranking_signals)

    def ranking_context(
        self, ids: Sequence[str], *, whole: int, filters: Filters, adjacent_to: Sequence[str] = ()
    ) -> RankingContext:
        """The ids are candidates of this store, which has left out what is not seen."""
        filters = self._rules.filters(filters)
        context = self._group.ranking_context(ids, whole=whole, filters=filters, adjacent_to=adjacent_to)
        return replace(context, records={id_: one for id_, one in context.records.items() if self._rules.sees(one)})


class ScopedVectors(ScopedGroup[VectorStore]):
    """Implements `mindex.store.base.VectorStore`. The server embeds: a principal stores no vectors."""

    def pending(self, model: Model) -> int:
        """At most a thousand are looked at: few records wait, and never for long."""
        return len(self.pending_records(model, _PAGE))

    pending_records = filtered(VectorStore.pending_records)
    put = for_all(VectorStore.put)
    pack = for_all(VectorStore.pack)
    stored = narrowed(VectorStore.stored)
    with_fluency = narrowed(VectorStore.with_fluency)
    embedded_records = filtered(VectorStore.embedded_records)
    active_space = narrowed(VectorStore.active_space)

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
    canary = narrowed(VectorStore.canary)
    put_canary = for_all(VectorStore.put_canary)
    drop_unused_spaces = for_all(VectorStore.drop_unused_spaces)


class ScopedCaches(ScopedGroup[CacheStore]):
    """Implements `mindex.store.base.CacheStore`. A value is found only by who knows what it was made of."""

    get = narrowed(CacheStore.get)
    put = narrowed(CacheStore.put)
    get_many = narrowed(CacheStore.get_many)
    put_many = narrowed(CacheStore.put_many)
    has_prefix = narrowed(CacheStore.has_prefix)
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
