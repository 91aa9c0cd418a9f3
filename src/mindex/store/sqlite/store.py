"""The default engine: one SQLite file, standard library only, no extension required."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mindex.analyzer import ANALYZER_VERSION
from mindex.clock import now_ms
from mindex.errors import StoreBusyError, StoreError
from mindex.model import Change, Collection, Document, Filters, KeywordNode, Model, Record, RecordVectors
from mindex.store.base import (
    Access,
    AddOutcome,
    ChunkCounts,
    CollectionCount,
    DocumentUpdate,
    NearestRecords,
    Page,
    RankingSignals,
    ScoredRecord,
    StoreStatus,
    TermStatistics,
)
from mindex.store.sqlite import access, cache, entries, keyword, records, turns
from mindex.store.sqlite.background import BackgroundWriter
from mindex.store.sqlite.connection import DEFAULT_WAIT, Database
from mindex.store.sqlite.migrations import migrate, version_of
from mindex.store.sqlite.model_outputs import ModelOutputs
from mindex.store.sqlite.spaces import Spaces
from mindex.store.sqlite.transfer_methods import Moving

if TYPE_CHECKING:  # numpy costs more than a whole keyword search: only vectors bring it in
    from mindex.model import Check, MemoryStatistics, PurgeResult, VectorArray
    from mindex.model.spaces import EmbedderSpec
    from mindex.store.sqlite.vectors import SqliteVectors


# Whoever opens a file does not wait longer for somebody who rebuilds its words.
_REBUILD_WAIT = 2.0
_COUNT_KINDS = "SELECT kind, count(*) FROM records WHERE retired_at IS NULL GROUP BY kind"
_COUNT_COLLECTIONS = """
SELECT c.name, count(DISTINCT d.key), count(r.key)
FROM collections c LEFT JOIN documents d ON d.collection = c.key LEFT JOIN records r ON r.document = d.key
GROUP BY c.key
"""


class SqliteStore(Moving, ModelOutputs, Spaces):
    """Implements `mindex.store.base.Store`."""

    def __init__(self, path: str | Path, *, wait: float = DEFAULT_WAIT, cache_rows: int = cache.CACHE_ROWS) -> None:
        """`cache_rows` bounds each kind of cache; 0 keeps nothing."""
        self._cache_rows = cache_rows
        self._database = Database(Path(path), wait=wait)
        try:
            self._schema = migrate(self._database)
            self._follow_analyzer()
        except BaseException:
            self._database.close()
            raise
        self._background = BackgroundWriter(self._database)
        self._unwritten: dict[tuple[str, str], bytes] = {}  # values for the cache that wait in the background

    @cached_property
    def _vectors(self) -> SqliteVectors:
        from mindex.store.sqlite.vectors import SqliteVectors

        return SqliteVectors(self._database)

    @property
    def read_only(self) -> bool:
        return self._database.read_only

    # ── the analyzer's version ────────────────────────────────────────────────────────────────────────────────

    def _follow_analyzer(self) -> None:
        """Rebuild the words after an upgrade, unless another process is at it: until then the old ones are found."""
        with self._database.read() as connection:
            version = _analyzer_version(connection)
        if version < ANALYZER_VERSION and not self._database.read_only:
            with suppress(StoreBusyError), self._database.write(wait=_REBUILD_WAIT) as connection:
                if _analyzer_version(connection) < ANALYZER_VERSION:
                    self._rebuild_words(connection)

    def _rebuild_words(self, connection: sqlite3.Connection) -> None:
        connection.execute("DELETE FROM records_fts")
        for id_, key in connection.execute("SELECT id, key FROM records WHERE retired_at IS NULL").fetchall():
            for record in records.records(connection, [id_]):
                keyword.index(connection, key, record)
        connection.execute("UPDATE meta SET value = ? WHERE key = 'analyzer'", (str(ANALYZER_VERSION),))

    def _may_write(self, connection: sqlite3.Connection) -> None:
        """A newer mindex may have taken the file over while this process runs: its words are not ours to write."""
        if _analyzer_version(connection) > ANALYZER_VERSION or version_of(connection) > self._schema:
            raise StoreError(
                f"{self._database.path} was indexed by a newer mindex", "restart this process after the upgrade"
            )

    # ── collections and documents ─────────────────────────────────────────────────────────────────────────────

    def collections(self) -> tuple[Collection, ...]:
        with self._database.read() as connection:
            return records.collections(connection)

    def put_collection(self, collection: Collection) -> None:
        with self._database.write() as connection:
            records.put_collection(connection, collection)

    def remove_collection(self, name: str) -> int:
        self._background.flush()
        with self._database.write() as connection:
            return records.remove_collection(connection, name)

    def documents(self, collection: str) -> dict[str, Document]:
        with self._database.read() as connection:
            return records.documents(connection, collection)

    def find_documents(self, path: str) -> tuple[Document, ...]:
        with self._database.read() as connection:
            return records.find_documents(connection, path)

    def domains(self) -> frozenset[str]:
        with self._database.read() as connection:
            return frozenset(domain for (domain,) in connection.execute("SELECT DISTINCT domain FROM documents"))

    def apply(self, updates: Sequence[DocumentUpdate], removed: Iterable[str] = ()) -> ChunkCounts:
        applied = ChunkCounts()
        with self._database.write() as connection:
            self._may_write(connection)
            for id_ in removed:  # first: a new file may stand where an old one was
                applied += ChunkCounts(removed=records.remove_document(connection, id_))
            for update in updates:
                applied += records.apply_update(connection, update)
        return applied

    # ── records ───────────────────────────────────────────────────────────────────────────────────────────────

    def records(self, ids: Sequence[str]) -> tuple[Record, ...]:
        with self._database.read() as connection:
            return records.records(connection, ids)

    def chunks(self, document: str) -> tuple[Record, ...]:
        with self._database.read() as connection:
            return records.chunks(connection, document)

    def resolve(self, prefix: str, limit: int = 10, *, retired: bool = False) -> tuple[str, ...]:
        with self._database.read() as connection:
            return records.resolve(connection, prefix, limit, retired=retired)

    def list(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        with self._database.read() as connection:
            return records.listed(connection, filters, limit, offset)

    # ── what was told ─────────────────────────────────────────────────────────────────────────────────────────

    @contextmanager
    def together(self) -> Iterator[int]:
        with self._database.together() as connection:
            self._may_write(connection)
            yield self._now()

    def _now(self) -> int:
        return self._database.moment or now_ms()

    def add(
        self, added: Sequence[Record], *, by: str, reason: str = "", unique: str = "", once: bool = False
    ) -> tuple[AddOutcome, ...]:
        with self._database.write(durable=True) as connection:
            self._may_write(connection)
            return tuple(entries.add(connection, record, by, reason, unique=unique, once=once) for record in added)

    def revise(
        self, id_: str, change: Callable[[Record], Record], *, by: str, action: str, reason: str = "", unique: str = ""
    ) -> Change:
        with self._database.write(durable=True) as connection:
            self._may_write(connection)
            return entries.revise(
                connection, id_, change, by=by, action=action, reason=reason, now=self._now(), unique=unique
            )

    def purge(self, ids: Sequence[str]) -> PurgeResult:
        self._background.flush()  # what waits there may hold words of what goes
        with self._database.write(durable=True) as connection:
            self._may_write(connection)
            purged = entries.purge(connection, ids)
            cache.clear(connection, cache.OF_WORDS)
        self._vectors.pack(force=True)
        return replace(purged, erased=self._database.compact())

    def record(self, id_: str) -> Record | None:
        with self._database.read() as connection:
            return entries.one(connection, id_)

    def by_number(self, agent: str, number: int) -> str | None:
        with self._database.read() as connection:
            return entries.by_number(connection, agent, number)

    def agents(self) -> tuple[str, ...]:
        with self._database.read() as connection:
            return entries.agents(connection)

    def history(self, id_: str) -> tuple[Change, ...]:
        with self._database.read() as connection:
            return entries.history(connection, id_)

    def change(self, number: int) -> Change | None:
        with self._database.read() as connection:
            return entries.change(connection, number)

    def superseded(self, id_: str) -> tuple[str, ...]:
        with self._database.read() as connection:
            return entries.superseded(connection, id_)

    def changes_between(self, after: int, before: int) -> Iterator[Change]:
        beyond = 0
        while True:
            with self._database.read() as connection:
                page = entries.changes_between(connection, after, before, beyond)
            if not page:
                return
            yield from page
            after, beyond = page[-1].at, page[-1].change

    def memory_statistics(self, agent: str) -> MemoryStatistics:
        with self._database.read() as connection:
            return entries.statistics(connection, agent, now_ms())

    def states_at(self, moment: int) -> tuple[Record, ...]:
        with self._database.read() as connection:
            return entries.states_at(connection, moment)

    def link(self, source: str, target: str, kind: str, weight: float) -> None:
        with self._database.write() as connection:
            entries.link(connection, source, target, kind, weight, now_ms())

    def linked(self, id_: str, kind: str) -> tuple[str, ...]:
        with self._database.read() as connection:
            return entries.linked(connection, id_, kind)

    def neighbours(self, id_: str, before: int, after: int) -> tuple[Record, ...]:
        with self._database.read() as connection:
            return turns.neighbours(connection, id_, before, after)

    def beside(self, ids: Sequence[str], filters: Filters) -> tuple[tuple[str, str], ...]:
        with self._database.read() as connection:
            return turns.beside(connection, ids, filters, now_ms())

    def expired(self, before: int) -> tuple[str, ...]:
        with self._database.read() as connection:
            rows = connection.execute("SELECT id FROM records WHERE expires_at < ?", (before,))
            return tuple(id_ for (id_,) in rows)

    def note_access(self, accesses: Sequence[Access], *, oldest: int, rows: int) -> None:
        if accesses:
            self._background.submit(lambda connection: access.note(connection, accesses, oldest=oldest, rows=rows))

    # ── retrieval ─────────────────────────────────────────────────────────────────────────────────────────────

    def keyword(self, query: KeywordNode, filters: Filters, limit: int) -> tuple[ScoredRecord, ...]:
        with self._database.read() as connection:
            return keyword.ranked(connection, query, filters, limit, now_ms())

    def statistics(self, tokens: Sequence[str], filters: Filters | None = None) -> TermStatistics:
        with self._database.read() as connection:
            if filters is None:
                return keyword.statistics(connection, tokens)
            return keyword.statistics_within(connection, tokens, filters, now_ms())

    def holding(self, ids: Sequence[str], tokens: Sequence[str]) -> dict[str, frozenset[str]]:
        with self._database.read() as connection:
            return keyword.holding(connection, ids, tokens)

    def turns(self, ids: Sequence[str]) -> frozenset[str]:
        with self._database.read() as connection:
            return turns.turns(connection, ids)

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        return self._vectors.nearest(model, vector, filters, limit)

    def substring(self, words: Sequence[str], filters: Filters, limit: int) -> tuple[str, ...]:
        with self._database.read() as connection:
            return records.substring(connection, words, filters, limit)

    def signals(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        with self._database.read() as connection:
            return records.signals(connection, ids)

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────

    def put_vectors(
        self, model: Model, vectors: Sequence[RecordVectors], embedder_spec: EmbedderSpec | None = None
    ) -> int:
        with self._database.read() as connection:
            self._may_write(connection)
        return self._vectors.put(model, vectors, embedder_spec)

    def pack_vectors(self) -> None:
        self._vectors.pack()

    # ── caches and health ─────────────────────────────────────────────────────────────────────────────────────

    def cached(self, kind: str, key: str) -> bytes | None:
        return self.cached_many(kind, [key]).get(key)

    def remember_cached(self, kind: str, key: str, value: bytes) -> None:
        self.remember_cached_many(kind, {key: value})

    def cached_many(self, kind: str, keys: Sequence[str]) -> dict[str, bytes]:
        waiting = {key: self._unwritten.get((kind, key)) for key in keys} if self._unwritten else {}
        found = {key: value for key, value in waiting.items() if value is not None}
        if len(found) == len(set(keys)):
            return found
        with self._database.read() as connection:
            return cache.get_many(connection, kind, keys) | found

    def has_cached(self, kind: str, start: str) -> bool:
        if any(waiting == kind and key.startswith(start) for waiting, key in tuple(self._unwritten)):
            return True
        with self._database.read() as connection:
            return cache.has(connection, kind, start)

    def remember_cached_many(self, kind: str, values: Mapping[str, bytes], *, now: bool = False) -> None:
        """Until they are written they are read from here: the next page of an answer comes sooner than that."""
        if not values or not self._cache_rows:
            return
        if now:
            with self._database.write() as connection:
                cache.put(connection, kind, values, self._cache_rows)
            return
        kept = {(kind, key): value for key, value in values.items()}
        self._unwritten |= kept

        def forget() -> None:
            for key in kept:
                self._unwritten.pop(key, None)

        self._background.submit(lambda connection: cache.put(connection, kind, values, self._cache_rows), done=forget)

    def clear_caches(self, kinds: Sequence[str] = ()) -> dict[str, int]:
        self._background.flush()
        with self._database.write() as connection:
            return cache.clear(connection, kinds)

    def status(self) -> StoreStatus:
        with self._database.read() as connection:
            kinds = dict(connection.execute(_COUNT_KINDS))
            counted = connection.execute(_COUNT_COLLECTIONS)
            collections = {name: CollectionCount(documents, chunks) for name, documents, chunks in counted}
            caches = cache.counts(connection)
        return StoreStatus(
            location=str(self._database.path),
            schema=self._schema,
            records=kinds,
            collections=collections,
            size_bytes=_size(self._database.path),
            caches=caches,
        )

    def check(self) -> tuple[Check, ...]:
        from mindex.store.sqlite.health import checks

        with self._database.read() as connection:
            return checks(connection)

    def optimize(self) -> None:
        """Rebuild what is derived, merge the keyword index, pack the vectors, give free pages back."""
        from mindex.store.sqlite.health import checks, drop_unusable_vectors

        with self._database.write() as connection:
            self._may_write(connection)
            if not all(check.ok for check in checks(connection)):
                self._rebuild_words(connection)
                drop_unusable_vectors(connection)
            connection.execute("INSERT INTO records_fts (records_fts) VALUES ('optimize')")
        self._vectors.pack(force=True)
        self._database.compact()

    def settle(self) -> None:
        self._background.flush()

    def close(self) -> None:
        self._background.close()
        self._database.close()


def _analyzer_version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("SELECT value FROM meta WHERE key = 'analyzer'").fetchone()[0])


def _size(path: Path) -> int:
    files = (path, path.with_name(path.name + "-wal"))
    return sum(file.stat().st_size for file in files if file.exists())
