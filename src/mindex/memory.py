"""`Memory`: everything mindex does, as a library. It wires the services together and holds no logic of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING, Unpack

from mindex.access_log import AccessLog
from mindex.config import Settings, load_settings
from mindex.embedding.queue import EmbeddingQueue, Report
from mindex.embedding.selection import EmbedderSelection
from mindex.errors import UsageError
from mindex.model import Answer, Filters, GetResult, Mode
from mindex.providers.factory import ConfiguredProviders, Providers
from mindex.redaction.redactor import Redactor
from mindex.search.filters import Scope, make_filters
from mindex.search.pipeline import MAX_LIMIT
from mindex.search.service import SearchService
from mindex.store.base import Page, Store
from mindex.store.open import open_store

if TYPE_CHECKING:
    from mindex.embedding.models import Models
    from mindex.ingest.collection_service import Collections
    from mindex.ingest.service import IndexService
    from mindex.lookup.service import Lookup
    from mindex.maintenance import Maintenance
    from mindex.memories.agents import AgentName
    from mindex.memories.contacts_projects_skills import Things
    from mindex.memories.conversations import Conversations
    from mindex.memories.entries import Entries
    from mindex.memories.fact_extraction import FactExtraction
    from mindex.memories.field_specs import ThingKind
    from mindex.memories.lifecycle import EntryWriter, NewMemory
    from mindex.memories.notes import Notes
    from mindex.memories.profile import Profile
    from mindex.memories.service import EntryService
    from mindex.memories.timeline import Timeline
    from mindex.model import AddResult, Change, Check, IndexReport, PurgeResult, Record, RecordVectors, Status
    from mindex.model import Model as EmbeddingModel
    from mindex.transfer.service import Transfer


class Memory:
    """One memory: a store, its settings and its models.

    `with Memory("memory.db") as memory: memory.index("docs"); memory.search("how is data cached?")`. Safe to use from
    several threads. `query_wait` bounds how long a search waits for a model that is still loading (None: until it is
    loaded). `store` and `providers` replace the store of `db` and the models of the settings.
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
    ) -> None:
        flags = {**(options or {}), "db": str(db) if db is not None else None, "agent": agent}
        self.settings = settings or load_settings(flags)
        self.store = store or open_store(self.settings.database)
        self._agent = self.settings.text("agent")
        self._stop = threading.Event()
        self._redactor = Redactor(self.settings.secrets_mode)
        self._providers = providers or ConfiguredProviders(self.settings)
        self.embedding = EmbedderSelection(self.store, self.settings, self._providers)
        self.embedding_queue = EmbeddingQueue(
            self.store, self.embedding, on_stored=_link_near_duplicates, stop=self._stop
        )
        reading = self._redactor.for_reading().redact_text
        days, rows = self.settings.number("access_log.days"), self.settings.whole("access_log.rows")
        self._access_log = AccessLog(self.store, reading, days=days, rows=rows)
        self._search = SearchService(
            self.store,
            self.settings,
            self.embedding,
            self._providers,
            self._access_log,
            redact=reading,
            query_wait=query_wait,
        )

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.stop_background_work()
        self._search.close()
        self.store.close()

    def stop_background_work(self, seconds: float = 3.0) -> None:
        """Let the background finish what it is at; the rest stays pending for the next process."""
        until = monotonic() + seconds
        self._stop.set()
        self.embedding_queue.join(seconds)
        if "_fact_extraction" in self.__dict__:
            self._fact_extraction.join(until - monotonic())

    # ── search ────────────────────────────────────────────────────────────────────────────────────────────────

    def search(
        self,
        query: str,
        *,
        limit: int = 5,
        offset: int = 0,
        mode: Mode = "hybrid",
        fusion: str = "",
        current_file: str = "",
        floor: float | None = None,
        around: int = 0,
        rerank: bool | None = None,
        expand: bool = False,
        **scope: Unpack[Scope],
    ) -> Answer:
        """Search with plain words, or the query language of `mindex search --help`. `scope`: see `Scope`.

        `around` adds so many turns before and after each turn that is found. `rerank` has a cross-encoder read the
        first forty candidates (None: if one is configured); `expand` adds variants of the query that a language model
        writes. A stage that fails leaves a note. `floor` is the least relevance of a hit (None: the setting; 0: all).
        """
        return self._search.search(
            query,
            self.filters(**scope),
            limit=limit,
            offset=offset,
            mode=mode,
            fusion=fusion,
            current_file=current_file,
            floor=floor,
            around=around,
            rerank=rerank,
            expand=expand,
        )

    def filters(self, **scope: Unpack[Scope]) -> Filters:
        """The filters of a scope. Raises UsageError for an unknown kind, type or collection."""
        return make_filters(self.store, self._agent, **scope)

    def get(self, *references: str, as_of: str | None = None) -> GetResult:
        """Records by id, short id, path, `path:10-40`, glob, or a comma-separated list of these.

        Also `profile[.path]`, `history:ID`, `timeline:FROM..TO`, `due`, and `ID±2` for a turn with its neighbours.
        `as_of` returns entries as they were then; files are as they are now.
        """
        return self.lookup.get(*references, as_of=as_of)

    def list(self, filters: Filters | None = None, *, limit: int = 20, offset: int = 0) -> Page:
        """Records in scope, newest first, at most 50."""
        if limit < 1 or offset < 0:
            raise UsageError("limit starts at 1 and offset at 0", f"use a limit of 1 to {MAX_LIMIT}")
        return self.store.retrieval.list(
            filters or self.filters(), limit=min(limit, MAX_LIMIT), offset=min(offset, 2**62)
        )

    # ── entries ───────────────────────────────────────────────────────────────────────────────────────────────

    def add(
        self,
        text: str,
        *,
        type: str = "fact",  # noqa: A002 - the property's name
        importance: int | None = None,
        confidence: float = 1.0,
        tags: Sequence[str] = (),
        entities: Sequence[str] | None = None,
        summary: str = "",
        context: str = "",
        source: str = "",
        expires: str | int | None = None,
        supersedes: str = "",
        anchor: str = "",
        fields: Mapping[str, object] | None = None,
        agent: str | None = None,
        embed: bool = True,
    ) -> AddResult:
        """Add a memory. The same text again is the same memory; near-duplicates are stored and reported.

        `anchor` ties it to lines of a file (`src/app.py:10-40`): its state is reported when the memory is found.
        `fields` are stored with it and not searched.
        """
        return self._entry_service.add(
            text,
            type=type,
            importance=importance,
            confidence=confidence,
            tags=tags,
            entities=entities,
            summary=summary,
            context=context,
            source=source,
            expires=expires,
            supersedes=supersedes,
            anchor=anchor,
            fields=fields,
            agent=agent,
            embed=embed,
        )

    def add_many(self, memories: Iterable[NewMemory], *, embed: bool = True) -> Sequence[AddResult]:
        """Add many memories, 500 a transaction; they are not written to the daily log."""
        return self._entry_service.add_many(memories, embed=embed)

    def update(self, id_: str, *, reason: str = "", **changes: object) -> Change:
        """Change the given properties (those of `add`) of an entry."""
        return self._entry_service.update(id_, changes, reason)

    def forget(self, id_: str, reason: str = "") -> Change:
        """Retire an entry: no search finds it any more, and `restore` brings it back."""
        return self._entry_service.forget(id_, reason)

    def restore(self, id_: str, reason: str = "") -> Change:
        """Bring back a forgotten or superseded entry."""
        return self._entry_service.restore(id_, reason)

    def purge(self, *ids: str) -> PurgeResult:
        """Delete entries for good, from every table, index and history, and from the database itself."""
        return self._entry_service.purge(ids)

    def history(self, id_: str) -> tuple[Change, ...]:
        return self._entry_service.history(id_)

    def undo(self, reference: str) -> tuple[Change, int]:
        """Undo a change by its number, or an entry's latest. Returns the new change and the number of the undone one.

        Changes that were made as one (a consolidation, an undo) are undone as one; the notes say so.
        """
        return self._entry_service.undo(reference)

    # ── files ─────────────────────────────────────────────────────────────────────────────────────────────────

    def index(
        self,
        *folders: str | Path,
        name: str | None = None,
        context: str | None = None,
        exclude: Sequence[str] = (),
        force: bool = False,
        dry_run: bool = False,
        embed: bool = True,
        contextualize: bool | None = None,
        report: Report | None = None,
    ) -> IndexReport:
        """Index folders, or update every collection when none is named.

        `name` and `context` (one line about its content) go with one folder. With `contextualize` (None: as
        `index.contextualize` says) a language model places each chunk in its document; False together with `force`
        removes what it wrote; a dry run says what that would cost.
        """
        return self._index_service.index(
            *folders,
            name=name,
            context=context,
            exclude=exclude,
            force=force,
            dry_run=dry_run,
            embed=embed,
            contextualize=contextualize,
            report=report,
        )

    def watch(
        self,
        stop: threading.Event,
        *,
        refreshed: Callable[[IndexReport], None] | None = None,
        poll: bool = False,
        only: str = "",
    ) -> None:
        """Keep every collection, or `only` one, up to date until `stop` is set."""
        self._index_service.watch(stop, refreshed=refreshed, poll=poll, only=only)

    def status(self) -> Status:
        """What the memory holds, and how a search would be answered now."""
        from mindex.health import status

        return status(self.store, self.embedding)

    def doctor(self) -> tuple[Check, ...]:
        """Check everything that can be checked; each check says what to do about it."""
        from mindex.health import checks

        return checks(self.store, self.models)

    # ── groups and services ───────────────────────────────────────────────────────────────────────────────────
    # Each is imported and made when first used: a search must not pay for the others (tests/test_costs.py).

    @cached_property
    def collections(self) -> Collections:
        from mindex.ingest.collection_service import Collections

        return Collections(self.store, self.settings)

    @cached_property
    def lookup(self) -> Lookup:
        from mindex.lookup.service import Lookup
        from mindex.lookup.special_references import SpecialReferences

        special = SpecialReferences(
            self.store, self.history, self.conversations, self.profile, self.skills, self.timeline
        )
        return Lookup(self.store, self._redactor, self._access_log, special)

    @cached_property
    def entries(self) -> Entries:
        from mindex.memories.entries import Entries

        return Entries(self.store)

    @cached_property
    def conversations(self) -> Conversations:
        from mindex.memories.conversations import Conversations

        return Conversations(self.store, self._redactor, self.embedding_queue, self._agent_name, self._fact_extraction)

    @cached_property
    def profile(self) -> Profile:
        from mindex.memories.profile import Profile

        return Profile(self.store, self._redactor, self.embedding_queue, self._agent_name)

    @cached_property
    def contacts(self) -> Things:
        return self._make_things("contact")

    @cached_property
    def projects(self) -> Things:
        return self._make_things("project")

    @cached_property
    def skills(self) -> Things:
        return self._make_things("skill")

    def things(self, kind: str) -> Things:
        """The group of a kind: `contacts`, `projects` or `skills`. Raises UsageError for another kind."""
        groups = {"contact": "contacts", "project": "projects", "skill": "skills"}
        if kind not in groups:
            raise UsageError(f"unknown kind '{kind}'", f"use one of {', '.join(groups)}")
        group: Things = getattr(self, groups[kind])
        return group

    @cached_property
    def notes(self) -> Notes:
        from mindex.memories.notes import Notes

        return Notes(self.store, self._redactor, self._agent)

    @cached_property
    def timeline(self) -> Timeline:
        from mindex.memories.timeline import Timeline

        return Timeline(self.store, self._agent)

    @cached_property
    def models(self) -> Models:
        from mindex.embedding.models import Models

        return Models(self.store, self.settings, self.embedding, self._providers, _link_near_duplicates)

    @cached_property
    def transfer(self) -> Transfer:
        from mindex.transfer.service import Transfer

        return Transfer(self.store, self._redactor, self.embedding_queue, self._agent)

    @cached_property
    def maintenance(self) -> Maintenance:
        from mindex.maintenance import Maintenance

        return Maintenance(
            self.store,
            self._redactor,
            self._entry_writer,
            self._entry_service,
            self.embedding,
            self.embedding_queue,
            self._providers,
            self._agent,
        )

    def _make_things(self, kind: ThingKind) -> Things:
        from mindex.memories.contacts_projects_skills import Things

        return Things(kind, self.store, self._redactor, self.embedding_queue, self._agent_name)

    @cached_property
    def _index_service(self) -> IndexService:
        from mindex.ingest.service import IndexService

        return IndexService(
            self.store, self.settings, self._redactor, self.embedding, self.embedding_queue, self._providers
        )

    @cached_property
    def _entry_writer(self) -> EntryWriter:
        from mindex.memories.lifecycle import EntryWriter

        return EntryWriter(self.store, self._redactor, by=self._agent)

    @cached_property
    def _entry_service(self) -> EntryService:
        from mindex.memories.service import EntryService

        return EntryService(self.store, self._entry_writer, self.embedding_queue, self._agent_name, self.settings)

    @cached_property
    def _fact_extraction(self) -> FactExtraction:
        from mindex.memories.fact_extraction import FactExtraction

        return FactExtraction(
            self.store,
            self._providers,
            self._entry_writer,
            self._entry_service.after_add,
            enabled=self.settings.flag("generation.extract_facts"),
            in_background=lambda: self.embedding_queue.in_background,
            stop=self._stop,
        )

    @cached_property
    def _agent_name(self) -> AgentName:
        from mindex.memories.agents import AgentName

        return AgentName(self._agent, self._redactor)


def _link_near_duplicates(store: Store, model: EmbeddingModel, stored: Sequence[tuple[Record, RecordVectors]]) -> None:
    """Called with records whose vectors were just stored."""
    from mindex.memories.near_duplicate_links import link_near_duplicates  # needs numpy

    link_near_duplicates(store, model, stored)
