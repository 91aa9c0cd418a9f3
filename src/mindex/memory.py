"""`Memory`: everything mindex does, as a library. Its services are imported and made when first used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from threading import Event, Lock
from time import monotonic
from typing import TYPE_CHECKING, Unpack

from mindex.access_log import AccessLog
from mindex.config import Settings, load_settings
from mindex.datatypes import Answer, Filters, GetResult
from mindex.datatypes.guidance import LIBRARY, Guidance
from mindex.embedding.queue import EmbeddingQueue
from mindex.embedding.selection import EmbedderSelection
from mindex.errors import UsageError
from mindex.providers.factory import ConfiguredProviders, Providers
from mindex.redaction.redactor import Redactor
from mindex.search.filters import make_filters
from mindex.search.option_types import Scope, SearchOptions
from mindex.search.query import MAX_LIMIT
from mindex.search.query_words import rare_words, word_matches
from mindex.search.service import SearchService
from mindex.store.base import Page, Store
from mindex.store.damage_notes import damage_notes
from mindex.store.open import open_store, repair_file
from mindex.user_folders import default_database

if TYPE_CHECKING:
    from mindex.access_tokens import Tokens
    from mindex.datatypes import (
        AddResult,
        Change,
        Check,
        IndexReport,
        Model,
        PurgeResult,
        Record,
        RecordVectors,
        Report,
        Status,
    )
    from mindex.datatypes.access_tokens import Principal
    from mindex.datatypes.reports import RepairReport
    from mindex.embedding.models import Models
    from mindex.entries.capture import Capture
    from mindex.entries.conversations import Conversations
    from mindex.entries.entries import Entries
    from mindex.entries.fact_extraction import FactExtraction
    from mindex.entries.field_entries import FieldEntries
    from mindex.entries.new_memory import NewMemory
    from mindex.entries.note_files import Notes
    from mindex.entries.option_types import AddOptions, Changes
    from mindex.entries.profile import Profile
    from mindex.entries.projects import Projects
    from mindex.entries.timeline import Timeline
    from mindex.files.collections import Collections
    from mindex.files.service import IndexOptions, IndexService, WatchOptions
    from mindex.lookup.labels import Labels
    from mindex.lookup.service import Lookup
    from mindex.maintenance import Maintenance
    from mindex.sync.service import Sync
    from mindex.transfer.service import Transfer


class Memory:
    """One memory: a store, its settings and its models.

    Use it as a context manager, or call `close`. It is safe to use from several threads.

    db: a file, or a URL such as `postgresql://USER@HOST/NAME`; default: as the settings say.
    agent: the agent whose entries are read and written, `*` for all; default: as the settings say.
    settings, options: settings to use instead of the user config, and values that override it by key.
    query_wait: seconds that a search waits for a model that is still loading; None: until it is loaded.
    store, providers: replace the store of `db` and the models of the settings.
    guidance: the words in which notes say what to do next, for a caller that is not Python.
    creates: whether to create a missing database; otherwise NotFoundError is raised.

    Raises ConfigError for invalid settings, and StoreError if the database cannot be opened.
    """

    def __init__(
        self,
        db: str | Path | None = None,
        *,
        agent: str | None = None,
        settings: Settings | None = None,
        options: Mapping[str, object] | None = None,
        query_wait: float | None = None,
        store: Store | None = None,
        providers: Providers | None = None,
        guidance: Guidance = LIBRARY,
        creates: bool = True,
    ) -> None:
        flags = {**(options or {}), "db": str(db) if db is not None else None, "agent": agent}
        self.settings = settings or load_settings(flags)
        self.store = store or open_store(self.settings.database, replica=self.settings.text("db_read"), creates=creates)
        self._providers = providers or ConfiguredProviders(self.settings)
        self._query_wait = query_wait
        self._guidance = guidance
        self._stop = Event()
        self.embedding = EmbedderSelection(self.store, self.settings, self._providers)
        self.embedding_queue = EmbeddingQueue(
            self.store, self.embedding, on_stored=_link_close_memories, stop=self._stop
        )
        self._sees_everything = True
        self._prepare_search()
        self._access_log.prune_later()

    def _prepare_search(self) -> None:
        """Make the services that every search uses; the others are made when they are first used."""
        settings = self.settings
        self._agent = settings.text("agent")
        self._views: dict[Principal, Memory] = {}
        self._making_view = Lock()
        self._redactor = Redactor.of(settings)
        redact = self._redactor.for_reading().redact_text
        days, rows = settings.number("access_log.days"), settings.whole("access_log.rows")
        self._access_log = AccessLog(self.store, redact, days=days, rows=rows)
        self._search = SearchService(
            self.store,
            settings,
            self.embedding,
            self._providers,
            self._access_log,
            redact=redact,
            query_wait=self._query_wait,
            guidance=self._guidance,
            settle=self.embedding_queue.join,
        )

    def acting_as(self, principal: Principal) -> Memory:
        """Return this memory as a principal sees it: it has only visible records, and acts as their agent.

        It shares the store's connections and the models with this one, and is closed with it.
        """
        if principal.is_owner:
            return self
        with self._making_view:
            if principal not in self._views:
                self._views[principal] = self._view(principal)
            return self._views[principal]

    def _view(self, principal: Principal) -> Memory:
        from mindex.access_tokens import settings_for  # only a server with tokens needs it
        from mindex.store.scoped.store import ScopedStore  # only a server with tokens needs it

        view = object.__new__(type(self))
        view.store = ScopedStore(self.store, principal)
        view.settings = settings_for(principal, self.settings, self.folder)
        view._providers, view._query_wait, view._guidance = self._providers, self._query_wait, self._guidance
        view._stop, view.embedding, view.embedding_queue = self._stop, self.embedding, self.embedding_queue
        view._sees_everything = False
        view._prepare_search()
        return view

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def folder(self) -> Path:
        """The folder for other files of this memory: that of the database file, or the data folder for a server."""
        return self.store.folder or default_database().parent

    def close(self) -> None:
        """Finish the background work and close the database."""
        self.stop_background_work()
        for one in (*self._views.values(), self):
            one._search.close()
        self.store.close()

    def stop_background_work(self, seconds: float = 3.0) -> None:
        """Finish the current background work; the rest stays pending for the next process."""
        until = monotonic() + seconds
        self._stop.set()
        self.embedding_queue.join(seconds)
        for one in (self, *self._views.values()):
            if "_fact_extraction" in one.__dict__:  # made by the first turn
                one._fact_extraction.join(until - monotonic())

    def search_tiers(self) -> Counter[str]:
        """Count the searches that each tier has answered, of all principals."""
        views = list(self._views.values())
        return sum((view.search_tiers() for view in views), self._search.tiers.copy())

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def search(self, query: str, **options: Unpack[SearchOptions]) -> Answer:
        """Search with plain words, or the query language of `mindex search --help`.

        If a stage fails (embedding, reranking, expansion), the answer comes from the stage before it, with a note. If
        no hit is confident and a word of the query occurs in no text, the answer may be that to its `corrected_query`.

        Raises UsageError for an invalid option, and NotFoundError for an unknown collection.

        Options:
            limit (int, default 5): Number of results, at most 50.
            offset (int, default 0): Number of results to skip.
            mode (Mode, default 'hybrid'): Retrieval mode.
            fusion (str): Fusion method (default: setting).
            current_file (str): File being edited; boosts its domain.
            rerank (bool | None): Rerank the first 40 with a cross-encoder (default: if configured).
            floor (float | None): Minimum relevance of a hit, 0 to 1 (default: setting).
            around (int, default 0): Number of turns before and after each turn.
            expand (bool): Also search LLM-written rewordings.
            inside_words (bool): Find each word of the query also inside other words.
            logged (bool, default True): Count the hits as accessed; off while a query is being typed.
            vector_weight (float | None): Weight of vectors in a hybrid score, 0 to 1 (default: that of the fusion).
            keyword_weight (float | None): Weight of keywords in a hybrid score, 0 to 1 (default: that of the fusion).
            guidance (Guidance | None): Words of the notes that say what to do next.
            passages (bool): Add the cosines by which passages are chosen.
            kinds (Sequence[str]): Only records of this kind.
            types (Sequence[str]): Only this type: decision, how-to, problem ….
            collections (Sequence[str]): Only this collection.
            path (str): Only files that match, or in this folder.
            tags (Sequence[str]): Only records with any of these tags.
            all_tags (Sequence[str]): Only records with all of these tags.
            entities (Sequence[str]): Only memories about this name.
            min_importance (int | None): Minimum importance, 1 to 10.
            min_confidence (float | None): Minimum confidence, 0 to 1.
            after (str | None): Not before this time: 2h, 7d, yesterday, last week, march, 2026-03-01.
            before (str | None): Before this time.
            as_of (str | None): Entries as of this time.
            now (str | None): Time at which the question is asked (default: now).
            include_expired (bool): Include expired memories.
            session (str): Only turns of this session.
            agent (str | None): Agent whose entries are searched, `*` for all (default: setting).
            weak (bool | None): Also show weak hits, unless a floor is given (default: yes).
        """
        return self._search.search(query, **options)

    def log_shown(self, answer: Answer, ids: Container[str]) -> None:
        """Log an access for the confident hits that were shown, if a budget cut away others.

        Call `search` with `logged=False` before.
        """
        self._search.log_shown(answer, ids)

    def count(self, query: str, **scope: Unpack[Scope]) -> int:
        """Count the records in scope that a keyword search finds, without a limit."""
        return self._search.count(query, **scope)

    def rare_words(self, query: str, share: float) -> str:
        """Return the known words of a query without the most common ones, while those weigh less than `share` of it."""
        return rare_words(self.store, query, share)

    def word_matches(self, query: str, records: Sequence[Record]) -> dict[str, tuple[float, float]]:
        """Return, by id, the share of a query that each record contains, and how unlikely that is by chance, in nats.

        The second value grows with the number of words: `add a button` is found by chance more easily than a question.
        """
        return word_matches(self.store, query, records)

    def filters(self, **scope: Unpack[Scope]) -> Filters:
        """Return the filters of a scope. Raises UsageError for an unknown kind, type or collection."""
        return make_filters(self.store, self._agent, **scope)

    def get(self, *references: str, as_of: str | None = None) -> GetResult:
        """Return records by id, short id, path, `path:10-40`, glob, or a comma-separated list of these.

        Also `ID±2` for a chunk with those around it in its file, or a turn in its session; `#5` for an entry by its
        number; `doc://PATH` and `memory://ID`; an id of another program (`mem_a1`, or `mudpuppy:3`) from before an
        import; the name of contacts, projects or skills, of which there may be several; `links:ID` and `backlinks:ID`
        for the files that a file links to and that link to it, `profile[.path]`, `history:ID`, `timeline[:FROM..TO]`,
        `due` and `conflicts`. `as_of` returns entries as they were then; files are as they are now. References that
        match nothing are in `missing` of the result.
        """
        return self.lookup.get(*references, as_of=as_of)

    def list(self, filters: Filters | None = None, *, limit: int = 20, offset: int = 0) -> Page:
        """Return records in scope, newest first, at most 50. Raises UsageError for a limit below 1."""
        if limit < 1 or offset < 0:
            raise UsageError("limit starts at 1 and offset at 0", f"use a limit of 1 to {MAX_LIMIT}")
        return self.store.retrieval.list(filters or self.filters(), limit=min(limit, MAX_LIMIT), offset=offset)

    def history(self, id_: str) -> tuple[Change, ...]:
        """Return every change of an entry, oldest first. Raises NotFoundError."""
        return self.entries.history(id_)

    def status(self) -> Status:
        """Return the numbers of stored and pending records, and the tier that a search would have now."""
        from mindex.health import status  # no search needs it

        return status(self.store, self.embedding, self.folder)

    def doctor(self, *, deep: bool = False, report: Report | None = None) -> tuple[Check, ...]:
        """Check the database, the folders and the models. Each check has a hint; `deep` reads every row."""
        from mindex.health import checks  # no search needs it

        found = checks(self.store, self.models, deep=deep, report=report)
        stamps = self.sync.check() if "sync" in self.store.capabilities else None
        return found if stamps is None else (*found, stamps)

    @staticmethod
    def repair(database: str | Path, target: str | Path, *, report: Report | None = None) -> RepairReport:
        """Copy the readable rows of a damaged database file into a new file; the damaged file is not changed.

        Raises UsageError for a database that is not a file, ConflictError if the target exists, and StoreError
        if nothing can be read.
        """
        return repair_file(str(database), Path(target).expanduser(), report)

    def damage_notes(self) -> tuple[str, ...]:
        """Return notes on damaged rows that were left out since the memory was opened."""
        return damage_notes(self.store)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, text: str, **properties: Unpack[AddOptions]) -> AddResult:
        """Add a memory. Adding the same text again returns the same memory; near-duplicates are stored and reported.

        Rules estimate the type, the importance, the entities and the summary if they are not given. The result contains
        near-duplicates, conflicts, superseded memories and the kinds of redacted secrets. Raises UsageError for an
        invalid property, NotFoundError for an unknown id in `supersedes`, and SecretError in strict mode.

        Options:
            type (str): One of fact, preference, decision, event, insight, task, relationship, entity, self,
                background, pattern, project, contact, reference, how-to, problem.
            importance (int | None): Importance, 1 to 10 (default: estimated).
            confidence (float, default 1.0): 0 to 1.
            tags (Sequence[str]): Tag.
            entities (Sequence[str] | None): Entity name; default: detected.
            summary (str): Summary, at most 20 words (default: first sentence).
            context (str): Context, for example a project.
            source (str): Source.
            expires (str | int | None): Expiry: 30d, 2h, friday, next week, 2027-01-31.
            supersedes (str): Id of the memory that this one replaces.
            anchor (str): File lines that the memory is about.
            fields (Mapping[str, object] | None): Fields that are stored with it and not searched.
            agent (str | None): Agent that the memory belongs to (default: setting).
            embed (bool, default True): Make its vector now, before the call returns.
        """
        return self.entries.add(text, **properties)

    def add_many(self, memories: Iterable[NewMemory], *, embed: bool = True) -> Sequence[AddResult]:
        """Add many memories, 500 per transaction, without the daily log. Raises UsageError."""
        return self.entries.add_many(memories, embed=embed)

    def update(self, id_: str, *, reason: str = "", **changes: Unpack[Changes]) -> Change:
        """Change the given properties (those of `add`) of an entry. Raises NotFoundError or UsageError."""
        return self.entries.update(id_, changes, reason)

    def forget(self, id_: str, reason: str = "") -> Change:
        """Exclude an entry from every search, until `restore`. Raises NotFoundError."""
        return self.entries.forget(id_, reason)

    def restore(self, id_: str, reason: str = "") -> Change:
        """Bring back a forgotten or superseded entry. Raises NotFoundError."""
        return self.entries.restore(id_, reason)

    def last_batch(self) -> tuple[Change, ...]:
        """Return the changes that `undo` without a reference would undo: the last batch of this agent.

        Undos and imports are skipped. Raises NotFoundError if there are none.
        """
        return self.entries.last_batch()

    def undo(self, reference: str = "") -> tuple[Change, int]:
        """Undo a change by its number, the latest change of an entry by its id, or the last batch of this agent.

        Returns the new change and the undone number. By id, each call goes one change further back. The number of an
        undo reverts that undo. All changes of one batch (a supersession, a consolidation, an undo) are undone together;
        the notes list them. Raises NotFoundError, and ConflictError if the change cannot be undone.
        """
        return self.entries.undo(reference)

    def purge(self, *ids: str) -> PurgeResult:
        """Delete entries permanently: from all tables and indexes, the history and the file. Raises NotFoundError."""
        return self.entries.purge(ids)

    def index(self, *folders: str | Path, **options: Unpack[IndexOptions]) -> IndexReport:
        """Index folders, or update all collections if none is named. Raises NotFoundError for a missing folder.

        The options are those of `mindex index`: `name`, `context`, `exclude`, `force`, `dry_run` …
        """
        return self._index.index(*folders, **options)

    def watch(self, stop: Event, **options: Unpack[WatchOptions]) -> None:
        """Keep all collections up to date until `stop` is set.

        Changes are indexed at once. Their chunks, and all other records without vectors, are embedded in a thread.
        """
        self._index.watch(stop, **options)

    # ── groups ────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def collections(self) -> Collections:
        from mindex.files.collections import Collections  # no search needs it

        return Collections(self.store, self.settings)

    @cached_property
    def _index(self) -> IndexService:
        from mindex.files.service import IndexService  # no search needs it

        return IndexService(
            self.store, self.settings, self._redactor, self.embedding, self.embedding_queue, self._providers
        )

    @cached_property
    def lookup(self) -> Lookup:
        from mindex.entries.field_entries import FieldEntries  # no search needs it
        from mindex.entries.field_specs import FIELD_ENTRY_KINDS  # no search needs it
        from mindex.entries.profile import Profile  # no search needs it
        from mindex.lookup.indexed_files import IndexedFiles  # no search needs it
        from mindex.lookup.service import Lookup  # no search needs it
        from mindex.lookup.special_references import (
            Links,  # no search needs it
            SpecialReferences,  # no search needs it
        )

        entries = self._entries
        skills, profile = FieldEntries("skill", entries), Profile(entries)
        files = IndexedFiles(self.store.files, self._redactor.for_reading())
        links = Links(self.store, files)
        special = SpecialReferences(entries, profile, skills, self.timeline, self.labels, links)
        named = tuple(FieldEntries(kind, entries) for kind in FIELD_ENTRY_KINDS)
        return Lookup(self.store, files, special, self._access_log, self._agent, named)

    @cached_property
    def labels(self) -> Labels:
        from mindex.lookup.labels import Labels  # no search needs it

        return Labels(self.store, self._agent)

    @property
    def entries(self) -> Entries:
        """The entries of this memory. Raises UnsupportedError if the engine stores files only."""
        if "entries" not in self.store.capabilities:
            _ = self.store.entries
        return self._entries

    @cached_property
    def _entries(self) -> Entries:
        from mindex.entries.entries import Entries  # no search needs it

        return Entries(self.store, self.settings, self._redactor, self._agent, self.embedding_queue)

    @cached_property
    def conversations(self) -> Conversations:
        from mindex.entries.conversations import Conversations  # no search needs it

        return Conversations(self.entries, self._fact_extraction)

    @cached_property
    def capture(self) -> Capture:
        from mindex.entries.capture import Capture  # no search needs it

        return Capture(self._entries, self._fact_extraction)

    @cached_property
    def _fact_extraction(self) -> FactExtraction:
        from mindex.entries.fact_extraction import FactExtraction  # no search needs it

        return FactExtraction(
            self._entries, self._providers, self.settings.flag("generation.extract_facts"), self._stop
        )

    @cached_property
    def profile(self) -> Profile:
        from mindex.entries.profile import Profile  # no search needs it

        return Profile(self.entries)

    @cached_property
    def contacts(self) -> FieldEntries:
        from mindex.entries.field_entries import FieldEntries  # no search needs it

        return FieldEntries("contact", self.entries)

    @cached_property
    def projects(self) -> Projects:
        from mindex.entries.projects import Projects  # no search needs it

        return Projects("project", self.entries, self._sees_everything)

    @cached_property
    def skills(self) -> FieldEntries:
        from mindex.entries.field_entries import FieldEntries  # no search needs it

        return FieldEntries("skill", self.entries)

    def field_entries(self, kind: str) -> FieldEntries:
        """Return `contacts`, `projects` or `skills` by kind. Raises UsageError for another kind."""
        groups = {"contact": self.contacts, "project": self.projects, "skill": self.skills}
        if kind not in groups:
            raise UsageError(f"unknown kind '{kind}'", f"use one of {', '.join(groups)}")
        return groups[kind]

    @cached_property
    def notes(self) -> Notes:
        from mindex.entries.note_files import Notes  # no search needs it

        return Notes(self.entries)

    @cached_property
    def timeline(self) -> Timeline:
        from mindex.entries.timeline import Timeline  # no search needs it

        return Timeline(self.store, self._agent)

    @cached_property
    def models(self) -> Models:
        from mindex.embedding.models import Models  # no search needs it

        return Models(self.store, self.settings, self.embedding, self._providers, _link_close_memories)

    @cached_property
    def transfer(self) -> Transfer:
        from mindex.transfer.service import Transfer  # no search needs it

        return Transfer(self.store, self._redactor, self.embedding_queue, self._agent)

    @cached_property
    def sync(self) -> Sync:
        from mindex.sync.service import Sync  # no search needs it

        return Sync(self.store, self._redactor, self.embedding_queue)

    @cached_property
    def maintenance(self) -> Maintenance:
        from mindex.maintenance import Maintenance  # no search needs it

        return Maintenance(self._entries, self.embedding, self._providers, self._access_log, self._sees_everything)

    @cached_property
    def tokens(self) -> Tokens:
        from mindex.access_tokens import Tokens  # no search needs it

        return Tokens(self.store, self.folder)


def _link_close_memories(store: Store, model: Model, stored: Sequence[tuple[Record, RecordVectors]]) -> None:
    """Called with records whose vectors were just stored."""
    from mindex.entries.near_duplicates import link_close_memories  # only what embeds needs it

    link_close_memories(store, model, stored)
