"""Maintenance as a service: backfill, optimize, scan for secrets, consolidate, statistics, purge what expired."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import islice

from mindex.access_log import AccessLog
from mindex.clock import now_ms
from mindex.datatypes import (
    Consolidation,
    Document,
    Filters,
    MemoryStatistics,
    Proposal,
    PurgeResult,
    Record,
    Report,
    SecretFinding,
    SecretsRemoved,
)
from mindex.embedding.selection import EmbedderSelection
from mindex.entries.conflicts import count_open_conflicts
from mindex.entries.consolidation import Consolidator
from mindex.entries.entries import Entries
from mindex.entries.growth import read_growth
from mindex.entries.merge import apply_merge
from mindex.entries.references import list_all
from mindex.entries.validation import validate_limit, validate_type
from mindex.errors import AccessDeniedError, EmbeddingError, MindexError, UsageError
from mindex.providers.factory import Providers
from mindex.providers.generate.base import Generator
from mindex.redaction.redactor import Redactor
from mindex.store.base import Store
from mindex.store.export_rows import ExportRow
from mindex.time_parser import parse_time
from mindex.values import dataclass

_MAX_PROPOSALS = 200
_MAX_BATCH = 200


@dataclass(frozen=True, slots=True)
class _StoredText:
    """A text of the store: where it is, and everything that would be removed with it."""

    place: str  # text, properties, history, document, collection, query, cache
    id: str  # of the record or document; the name of the collection; the kind of cached values
    text: str
    path: str = ""
    first_line: int = 0
    document: str = ""


@dataclass(frozen=True, slots=True)
class SecretScan:
    """Looks for secrets in entries (live, forgotten, and as they were), files, names, logged queries and caches."""

    _store: Store
    _redactor: Redactor

    def find(self) -> tuple[SecretFinding, ...]:
        """Every secret that is stored. Names and paths are shown without the secrets that they hold themselves."""
        return tuple(self._findings())

    def _findings(self) -> Iterator[SecretFinding]:
        shown = replace(self._redactor, mode="redact").redact_text
        for stored in self._texts():
            for match in self._redactor.find(stored.text):
                line = stored.first_line + match.line - 1 if stored.first_line else 0
                yield SecretFinding(shown(stored.id), match.kind, line, match.preview, shown(stored.path), stored.place)

    def remove(self, purge: Callable[[Sequence[str]], PurgeResult]) -> SecretsRemoved:
        """Remove what holds a secret; `purge` removes entries for good.

        Entries are removed with all their versions. A file's chunks are removed, and come back redacted when it is
        indexed again. A collection goes when its name or root holds the secret; else the pattern or the context does.
        Caches of the kind are emptied.
        """
        found = [stored for stored in self._texts() if self._redactor.find(stored.text)]
        entries = list(dict.fromkeys(one.id for one in found if one.place in _OF_ENTRIES and not one.document))
        documents = list(dict.fromkeys(one.document for one in found if one.document))
        queries = [one.text for one in found if one.place == "query"]
        kinds = list(dict.fromkeys(one.id for one in found if one.place == "cache"))
        if queries:
            self._store.entries.forget_queries(queries)
        if kinds:
            self._store.caches.clear(kinds)
        if documents:
            self._store.files.apply([], documents)
        collections = [one.id for one in found if one.place == "collection"]
        for name in collections:
            self._clean_collection(name)
        # Also without entries: what was deleted otherwise leaves the file's free pages by it.
        purged = purge(entries) if entries else self._purge_nothing()
        return SecretsRemoved(
            entries=purged.records,
            files=len(documents),
            collections=len(collections),
            queries=len(queries),
            caches=len(kinds),
            erased=purged.erased,
            notes=purged.notes,
        )

    def _purge_nothing(self) -> PurgeResult:
        if self._has_entries:
            return self._store.entries.purge([])
        return PurgeResult(erased=False, notes=("the service decides when deleted texts leave its disks",))

    @property
    def _has_entries(self) -> bool:
        return "entries" in self._store.capabilities

    def _clean_collection(self, name: str) -> None:
        collection = next(one for one in self._store.files.collections() if one.name == name)
        if self._redactor.find(collection.name) or self._redactor.find(collection.root):
            self._store.files.remove_collection(name)
            return
        clean = tuple(pattern for pattern in collection.exclude if not self._redactor.find(pattern))
        self._store.files.put_collection(
            replace(
                collection,
                exclude=clean,
                context=replace(self._redactor, mode="redact").redact_text(collection.context),
            )
        )

    def _texts(self) -> Iterator[_StoredText]:
        if self._has_entries:
            with self._store.entries.export_snapshot() as snapshot:
                for row in snapshot.rows:
                    yield from _texts_of_entry(row)
        for collection in self._store.files.collections():
            names = "\n".join((collection.name, collection.root, *collection.exclude, collection.context))
            yield _StoredText("collection", collection.name, names)
            for document in self._store.files.documents(collection.name).values():
                yield _StoredText("document", document.id, _names(document), document.path, document=document.id)
                for chunk in self._store.files.chunks(document.id):
                    first = chunk.first_line or 1
                    yield _StoredText("text", chunk.id, chunk.text, document.path, first, document.id)
                    yield _StoredText("properties", chunk.id, _properties(chunk), document.path, document=document.id)
        for query in self._store.entries.logged_queries() if self._has_entries else ():
            yield _StoredText("query", "", query)
        if "caches" in self._store.capabilities:
            for kind, key, value in self._store.caches.items():
                yield _StoredText("cache", kind, f"{key}\n{value.decode(errors='replace')}")


_OF_ENTRIES = frozenset({"text", "properties", "history"})


def _texts_of_entry(row: ExportRow) -> Iterator[_StoredText]:
    """The texts of an entry and of its former versions; what did not change is given once."""
    record = row.record
    yield _StoredText("text", record.id, record.text, first_line=1)
    yield _StoredText("properties", record.id, _properties(record))
    seen = {record.text, _properties(record)}
    for change in row.history:
        texts = [change.reason, change.by]
        for state in (change.before, change.after):
            texts += (state.text, _properties(state)) if state is not None else ()
        for text in texts:
            if text and text not in seen:
                seen.add(text)
                yield _StoredText("history", record.id, text)


def _properties(record: Record) -> str:
    """Everything of a record but its text, one property a line; a summary that is part of the text is left out."""
    summary = "" if record.summary in record.text else record.summary
    texts = (record.title, summary, record.context, record.source, record.agent, *record.tags, *record.entities)
    return "\n".join((*texts, json.dumps(dict(record.fields), ensure_ascii=False)))


def _names(document: Document) -> str:
    return "\n".join((document.path, document.title, *document.tags, *document.links, *document.fields))


@dataclass(frozen=True, slots=True)
class Maintenance:
    """`memory.maintenance`: embedding, indexes, statistics, secrets and consolidation."""

    _entries: Entries
    _selection: EmbedderSelection
    _providers: Providers
    _access_log: AccessLog
    _sees_everything: bool = True  # not a principal that sees a part of the store

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────

    def backfill(self, *, batch: int = 50, limit: int | None = None, report: Report | None = None) -> tuple[int, int]:
        """Embed all records without a vector. Returns the numbers of embedded and of remaining records.

        Raises EmbeddingError if the model is not available or embedded nothing, and AccessDeniedError for a principal
        that sees only a part of the store, because the numbers would be those of all agents.
        """
        if not self._sees_everything:
            raise AccessDeniedError(
                "vectors are made for all agents at once",
                "this server makes them automatically; search again in a moment",
            )
        if self._selection.embedder is None:
            if reason := self._selection.lean_reason:
                raise EmbeddingError(reason)
            raise EmbeddingError("no embedder is configured", "set embedding.provider to `local`")
        if batch < 1:
            raise UsageError(f"a batch of {batch} is too small", f"use 1 to {_MAX_BATCH}")
        self._selection.load()
        done = self._entries.queue.backfill(batch=min(batch, _MAX_BATCH), limit=limit, report=report)
        if done.failure is not None and not done.embedded:
            raise done.failure
        return done.embedded, done.remaining

    # ── the database ──────────────────────────────────────────────────────────────────────────────────────────

    def optimize(self, *, caches: bool = False) -> dict[str, int]:
        """Purge long expired entries, prune the access log, rebuild and merge the indexes, and free unused space.

        With `caches`, they are also emptied. Returns how many values of each kind were removed from them.
        """
        self.purge_expired()
        cleared = self._entries.store.caches.clear() if caches else {}
        self._entries.store.vectors.drop_unused_spaces()
        self._access_log.prune()
        self._entries.store.maintenance.optimize()
        return cleared

    def purge_expired(self) -> int:
        """Purge entries that expired more than `memory.grace_days` ago. Returns their number."""
        return self._entries.purge_expired()

    def statistics(self, agent: str | None = None, *, growth: bool = False) -> MemoryStatistics:
        """Return statistics of an agent's memories, with the number of conflicts.

        With `growth`, also the growth over time, the most recalled memories and those never recalled.
        """
        store, name = self._entries.store, agent or self._entries.agent
        return replace(
            store.entries.statistics(name),
            conflicts=count_open_conflicts(store, name),
            growth=read_growth(store, name, now_ms()) if growth else None,
        )

    def scan(self) -> tuple[SecretFinding, ...]:
        """Find secrets in all versions of all entries, in files, names, logged queries and caches."""
        return SecretScan(self._entries.store, self._entries.redactor).find()

    def remove_secrets(self) -> SecretsRemoved:
        """Purge the entries that hold a secret, in any version, and clean the rest; see `SecretScan.remove`."""
        return SecretScan(self._entries.store, self._entries.redactor).remove(self._entries.purge)

    # ── consolidation ─────────────────────────────────────────────────────────────────────────────────────────

    def consolidate(
        self,
        *,
        older_than: str | None = "30d",
        types: Sequence[str] = (),
        apply: bool = False,
        limit: int = 20,
        most: int | None = None,
        agent: str | None = None,
    ) -> Consolidation:
        """Propose merges of old memories: near-duplicates, and groups of unimportant ones.

        Nothing changes without `apply`. With it, the merged memory supersedes the originals, which stay in the history.
        Each proposal is applied completely or not at all, and one `undo` reverts it. Memories newer than `older_than`
        are left out (None: no limit); `most` considers only this number of the oldest memories.
        """
        for type_ in types:
            validate_type(type_)
        most_proposals = validate_limit(limit, _MAX_PROPOSALS)
        scope = Filters(kinds=("memory",), types=tuple(types), agent=agent or self._entries.agent)
        newest = None if older_than is None else parse_time(older_than)
        memories = self._oldest_memories(replace(scope, before=newest), most)
        younger = (
            0 if newest is None else self._entries.store.retrieval.list(replace(scope, after=newest), limit=1).total
        )
        notes = [f"limit cut to {_MAX_PROPOSALS}, the maximum"] if limit > _MAX_PROPOSALS else []
        embedder = self._selection.embedder
        model = embedder.model if embedder is not None else None
        consolidator = Consolidator(self._entries.store, model, self._generator(notes), self._entries.redactor)
        done: list[Proposal] = []
        for proposal in islice(consolidator.proposals(memories), most_proposals):
            if not apply:
                done.append(proposal)
                continue
            try:
                done.append(apply_merge(self._entries, proposal))
            except MindexError as error:  # the other proposals are applied, and this one is reported
                notes.append(f"left as it was: {error}")
                done.append(proposal)
        if apply and (new := [one.applied for one in done if one.applied]):
            notes += self._entries.queue.embed(*new)
        return Consolidation(tuple(done), len(memories), (*notes, *consolidator.notes), younger, older_than or "")

    def _generator(self, notes: list[str]) -> Generator | None:
        try:
            return self._providers.generator
        except MindexError as error:
            notes.append(f"merged by rule: {error}")
            return None

    def _oldest_memories(self, scope: Filters, most: int | None) -> list[Record]:
        """Live memories in scope, oldest first."""
        total = self._entries.store.retrieval.list(scope, limit=1).total
        offset = 0 if most is None else max(0, total - most)
        return [*list_all(self._entries.store, scope, offset=offset)][::-1]
