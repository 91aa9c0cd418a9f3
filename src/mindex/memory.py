"""`Memory`: everything mindex does, as a library. It has no logic of its own: methods and groups call the services."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from copy import copy
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING, Unpack

from mindex.config import Settings, load_settings
from mindex.datatypes import Answer, Filters, GetResult
from mindex.datatypes.guidance import LIBRARY, Guidance
from mindex.embedding.queue import EmbeddingQueue
from mindex.embedding.selection import EmbedderSelection
from mindex.errors import UsageError
from mindex.providers.factory import ConfiguredProviders, Providers
from mindex.search.filters import Scope, make_filters
from mindex.search.query import MAX_LIMIT
from mindex.search.service import SearchOptions
from mindex.services import Services
from mindex.store.base import Page, Store
from mindex.store.damage_notes import damage_notes
from mindex.store.open import open_store, repair_file
from mindex.user_folders import default_database

if TYPE_CHECKING:
    from mindex.access_tokens import Tokens
    from mindex.datatypes import AddResult, Change, Check, IndexReport, PurgeResult, Record, Report, Status
    from mindex.datatypes.access_tokens import Principal
    from mindex.datatypes.reports import RepairReport
    from mindex.embedding.models import Models
    from mindex.entries.capture import Capture
    from mindex.entries.conversations import Conversations
    from mindex.entries.entries import Entries
    from mindex.entries.field_entries import FieldEntries
    from mindex.entries.lifecycle import NewMemory
    from mindex.entries.note_files import Notes
    from mindex.entries.profile import Profile
    from mindex.entries.projects import Projects
    from mindex.entries.service import AddOptions
    from mindex.entries.timeline import Timeline
    from mindex.files.collections import Collections
    from mindex.files.service import IndexOptions, WatchOptions
    from mindex.lookup.labels import Labels
    from mindex.lookup.service import Lookup
    from mindex.maintenance import Maintenance
    from mindex.sync.service import Sync
    from mindex.transfer.service import Transfer


class Memory:
    """One memory: a store, its settings and its models.

    `with Memory("memory.db") as memory: memory.index("docs"); memory.search("how is data cached?")`. Safe to use from
    several threads. `query_wait` bounds how long a search waits for a model that is still loading (None: until it is
    loaded). `store` and `providers` replace the store of `db` and the models of the settings. `guidance` are the words
    in which notes say what to do next, for a caller that is not Python. Without `creates`, a database that is not there
    raises NotFoundError.
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
        providers = providers or ConfiguredProviders(self.settings)
        self._services = Services(self.store, self.settings, providers, query_wait, guidance)
        self._query_wait = query_wait
        self._guidance = guidance
        self._views: dict[Principal, Memory] = {}
        self._making_view = Lock()

    def __enter__(self) -> Memory:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def folder(self) -> Path:
        """Where other files of this memory belong: beside a database file, in the user's data folder for a server."""
        return self.store.folder or default_database().parent

    def close(self) -> None:
        self.stop_background_work()
        for view in self._views.values():
            view._services.search.close()
        self._services.search.close()
        self.store.close()

    def stop_background_work(self, seconds: float = 3.0) -> None:
        """Let the background finish its current work; the rest stays pending for the next process."""
        self._services.stop_background_work(seconds)
        for view in self._views.values():
            view._services.stop_background_work(seconds)

    def search_tiers(self) -> Counter[str]:
        """How many searches each tier has answered, of all principals."""
        views = list(self._views.values())
        return sum((view.search_tiers() for view in views), self._services.search.tiers.copy())

    def acting_as(self, principal: Principal) -> Memory:
        """This memory as a principal sees it: what it may not see does not exist there, and it acts as its agent.

        It shares the store's connections and the models with this one, and is closed with it.
        """
        if principal.is_owner:
            return self
        with self._making_view:
            if principal not in self._views:
                self._views[principal] = self._view(principal)
            return self._views[principal]

    def _view(self, principal: Principal) -> Memory:
        from mindex.access_tokens import settings_for  # as above
        from mindex.store.scoped.store import ScopedStore  # only a server with tokens needs it

        view = copy(self)
        view.store = ScopedStore(self.store, principal)
        view.settings = settings_for(principal, self.settings, self.folder)
        view._views = {}
        view._services = Services(
            view.store, view.settings, self._services.providers, self._query_wait, self._guidance, self._services
        )
        return view

    @property
    def _services_of_entries(self) -> Services:
        """The services, for what needs entries. Raises UnsupportedError where the engine stores files only."""
        if "entries" not in self.store.capabilities:
            _ = self.store.entries
        return self._services

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def search(self, query: str, **options: Unpack[SearchOptions]) -> Answer:
        """Search with plain words, or the query language of `mindex search --help`. Options: see `SearchOptions`.

        A stage that fails (embedding, reranking, expansion) leaves the answer of the stage before it, and a note. Where
        no hit is confident and no text holds a word of the query, the answer may be that to its `corrected_query`.
        """
        return self._services.search.search(query, **options)

    def log_shown(self, answer: Answer, ids: Container[str]) -> None:
        """Log an access to those confident hits of a search that were shown: a budget may have cut away others.

        The search itself is not `logged` then.
        """
        self._services.search.log_shown(answer, ids)

    def count(self, query: str, **scope: Unpack[Scope]) -> int:
        """How many records in scope hold the words of a query, as a keyword search finds them; not capped."""
        return self._services.search.count(query, **scope)

    def rare_words(self, query: str, share: float) -> str:
        """The known words of a query without the most common ones, as long as these weigh less than a share of it."""
        return self._services.search.rare_words(query, share)

    def word_matches(self, query: str, records: Sequence[Record]) -> dict[str, tuple[float, float]]:
        """The share of a query that each record holds, and how unlikely that is by chance, in nats; by id.

        The second grows with the number of words: `add a button` is found by chance more easily than a question.
        """
        return self._services.search.word_matches(query, records)

    def filters(self, **scope: Unpack[Scope]) -> Filters:
        """The filters of a scope. Raises UsageError for an unknown kind, type or collection."""
        return make_filters(self.store, self.settings.text("agent"), **scope)

    def get(self, *references: str, as_of: str | None = None) -> GetResult:
        """Records by id, short id, path, `path:10-40`, glob, or a comma-separated list of these.

        Also `ID±2` for a chunk with those around it in its file, or a turn in its session; `#5` for an entry by its
        number; `doc://PATH` and `memory://ID`; an id of another program (`mem_a1`, or `mudpuppy:3`) from before an
        import; the name of contacts, projects or skills, of which there may be several; `links:ID` and `backlinks:ID`
        for the files that a file links to and that link to it, `profile[.path]`, `history:ID`, `timeline[:FROM..TO]`,
        `due` and `conflicts`. `as_of` returns entries as they were then; files are as they are now.
        """
        return self.lookup.get(*references, as_of=as_of)

    def list(self, filters: Filters | None = None, *, limit: int = 20, offset: int = 0) -> Page:
        """Records in scope, newest first, at most 50."""
        if limit < 1 or offset < 0:
            raise UsageError("limit starts at 1 and offset at 0", f"use a limit of 1 to {MAX_LIMIT}")
        return self.store.retrieval.list(filters or self.filters(), limit=min(limit, MAX_LIMIT), offset=offset)

    def history(self, id_: str) -> tuple[Change, ...]:
        """Every change of an entry, oldest first."""
        return self.entries.history(id_)

    def status(self) -> Status:
        """How much is stored, and which tier a search would have now."""
        from mindex.health import status  # as in `Services`

        return status(self.store, self.embedding, self.folder)

    def doctor(self, *, deep: bool = False, report: Report | None = None) -> tuple[Check, ...]:
        """Check everything that can be checked; each check says what to do about it. `deep` reads every row."""
        from mindex.health import checks  # as in `Services`

        found = checks(self.store, self.models, deep=deep, report=report)
        stamps = self.sync.check() if "sync" in self.store.capabilities else None
        return found if stamps is None else (*found, stamps)

    @staticmethod
    def repair(database: str | Path, target: str | Path, *, report: Report | None = None) -> RepairReport:
        """Save what can be read of a damaged database file into a new one; the damaged one stays as it is.

        Raises UsageError for a database that is no file, ConflictError when the target exists, and StoreError when
        nothing can be read.
        """
        return repair_file(str(database), Path(target).expanduser(), report)

    def damage_notes(self) -> tuple[str, ...]:
        """A note on damaged rows that were left out since the memory was opened; none where there were none."""
        return damage_notes(self.store)

    # ── writing ───────────────────────────────────────────────────────────────────────────────────────────────

    def add(self, text: str, **properties: Unpack[AddOptions]) -> AddResult:
        """Add a memory. The same text again is the same memory; near-duplicates are stored and reported."""
        return self._services_of_entries.entry_service.add(text, **properties)

    def add_many(self, memories: Iterable[NewMemory], *, embed: bool = True) -> Sequence[AddResult]:
        """Add many memories, 500 a transaction; they are not written to the daily log."""
        return self._services_of_entries.entry_service.add_many(memories, embed=embed)

    def update(self, id_: str, *, reason: str = "", **changes: object) -> Change:
        """Change the given properties (those of `add`) of an entry."""
        return self._services_of_entries.entry_service.update(id_, changes, reason)

    def forget(self, id_: str, reason: str = "") -> Change:
        """Retire an entry: no search finds it any more, and `restore` brings it back."""
        return self._services_of_entries.entry_writer.forget(id_, reason)

    def restore(self, id_: str, reason: str = "") -> Change:
        """Bring back a forgotten or superseded entry."""
        return self._services_of_entries.entry_service.restore(id_, reason)

    def last_batch(self) -> tuple[Change, ...]:
        """The changes that `undo` without a reference undoes: the last ones that this agent made as one.

        Undos and imports are passed over. Raises NotFoundError if there are none.
        """
        return self._services_of_entries.entry_service.last_batch()

    def undo(self, reference: str = "") -> tuple[Change, int]:
        """Undo a change by its number, an entry's latest by its id, or the last changes that this agent made as one.

        Returns the new change and the undone number. By id, each call goes one change further back. The number of an
        undo undoes that undo, which is a redo. Changes that were made as one (a supersession, a consolidation, an undo)
        are undone as one, which the notes list.
        """
        return self._services_of_entries.entry_service.undo(reference)

    def purge(self, *ids: str) -> PurgeResult:
        """Delete entries for good, from every table, index and history, and from the database itself."""
        return self._services_of_entries.entry_service.purge(ids)

    def index(self, *folders: str | Path, **options: Unpack[IndexOptions]) -> IndexReport:
        """Index folders, or update every collection when none is named. Options: see `IndexOptions`."""
        return self._services.index.index(*folders, **options)

    def watch(self, stop: Event, **options: Unpack[WatchOptions]) -> None:
        """Keep every collection up to date until `stop` is set. Options: see `WatchOptions`.

        Changes are indexed at once; their chunks, and all other records without vectors, are embedded in a thread.
        """
        self._services.index.watch(stop, **options)

    # ── groups ────────────────────────────────────────────────────────────────────────────────────────────────

    @property
    def collections(self) -> Collections:
        return self._services.collections

    @property
    def lookup(self) -> Lookup:
        return self._services.lookup

    @property
    def labels(self) -> Labels:
        return self._services.labels

    @property
    def entries(self) -> Entries:
        return self._services_of_entries.entries

    @property
    def conversations(self) -> Conversations:
        return self._services_of_entries.conversations

    @property
    def capture(self) -> Capture:
        return self._services.capture

    @property
    def profile(self) -> Profile:
        return self._services_of_entries.profile

    @property
    def contacts(self) -> FieldEntries:
        return self._services_of_entries.field_entries("contact")

    @property
    def projects(self) -> Projects:
        return self._services_of_entries.projects

    @property
    def skills(self) -> FieldEntries:
        return self._services_of_entries.field_entries("skill")

    @property
    def notes(self) -> Notes:
        return self._services_of_entries.notes

    @property
    def timeline(self) -> Timeline:
        return self._services_of_entries.timeline

    @property
    def models(self) -> Models:
        return self._services.models

    @property
    def transfer(self) -> Transfer:
        return self._services.transfer

    @property
    def sync(self) -> Sync:
        return self._services.sync

    @property
    def maintenance(self) -> Maintenance:
        return self._services.maintenance

    @property
    def tokens(self) -> Tokens:
        from mindex.access_tokens import Tokens  # as in `Services`

        return Tokens(self.store, self.folder)

    @property
    def embedding(self) -> EmbedderSelection:
        return self._services.selection

    @property
    def embedding_queue(self) -> EmbeddingQueue:
        return self._services.queue

    def field_entries(self, kind: str) -> FieldEntries:
        """`contacts`, `projects` or `skills`, by kind. Raises UsageError for another kind."""
        groups = {"contact": self.contacts, "project": self.projects, "skill": self.skills}
        if kind not in groups:
            raise UsageError(f"unknown kind '{kind}'", f"use one of {', '.join(groups)}")
        return groups[kind]
