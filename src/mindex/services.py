"""Wires the services of one memory: each is imported and made when first used, with what it needs."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING

from mindex.access_log import AccessLog
from mindex.config import Settings
from mindex.datatypes.guidance import Guidance
from mindex.embedding.queue import EmbeddingQueue
from mindex.embedding.selection import EmbedderSelection
from mindex.providers.factory import Providers
from mindex.redaction.redactor import Redactor
from mindex.search.service import SearchService
from mindex.store.base import Store

if TYPE_CHECKING:
    from mindex.datatypes import Model, Record, RecordVectors
    from mindex.embedding.models import Models
    from mindex.entries.capture import Capture
    from mindex.entries.conversations import Conversations
    from mindex.entries.entries import Entries
    from mindex.entries.fact_extraction import FactExtraction
    from mindex.entries.field_entries import FieldEntries
    from mindex.entries.field_specs import FieldEntryKind
    from mindex.entries.lifecycle import EntryWriter
    from mindex.entries.note_files import Notes
    from mindex.entries.profile import Profile
    from mindex.entries.projects import Projects
    from mindex.entries.service import EntryService
    from mindex.entries.timeline import Timeline
    from mindex.entries.write_context import WriteContext
    from mindex.files.collections import Collections
    from mindex.files.service import IndexService
    from mindex.lookup.labels import Labels
    from mindex.lookup.service import Lookup
    from mindex.maintenance import Maintenance
    from mindex.sync.service import Sync
    from mindex.transfer.service import Transfer


class Services:
    """The services of one memory."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        providers: Providers,
        query_wait: float | None,
        guidance: Guidance,
        shared: Services | None = None,
    ) -> None:
        """`shared` are the services whose embedder and queue serve these, too: those of the whole store."""
        self.store = store
        self.settings = settings
        self.providers = providers
        self.agent = settings.text("agent")
        self.redactor = Redactor(settings.secrets_mode)
        self.sees_everything = shared is None
        if shared is None:
            self.stop = threading.Event()
            self.selection = EmbedderSelection(store, settings, providers)
            self.queue = EmbeddingQueue(store, self.selection, on_stored=_link_close_memories, stop=self.stop)
        else:
            self.stop, self.selection, self.queue = shared.stop, shared.selection, shared.queue
        redact = self.redactor.for_reading().redact_text
        days, rows = settings.number("access_log.days"), settings.whole("access_log.rows")
        self.access_log = AccessLog(store, redact, days=days, rows=rows)
        if shared is None:
            self.access_log.prune_later()
        self.search = SearchService(
            store,
            settings,
            self.selection,
            providers,
            self.access_log,
            redact=redact,
            query_wait=query_wait,
            guidance=guidance,
            settle=self.queue.join,
        )

    def stop_background_work(self, seconds: float) -> None:
        until = monotonic() + seconds
        self.stop.set()
        self.queue.join(seconds)
        if "fact_extraction" in self.__dict__:  # made by the first turn
            self.fact_extraction.join(until - monotonic())

    # ── files ─────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def index(self) -> IndexService:
        from mindex.files.service import IndexService  # no search needs it

        return IndexService(self.store, self.settings, self.redactor, self.selection, self.queue, self.providers)

    @cached_property
    def collections(self) -> Collections:
        from mindex.files.collections import Collections  # no search needs it

        return Collections(self.store, self.settings)

    @cached_property
    def lookup(self) -> Lookup:
        from mindex.entries.field_specs import FIELD_ENTRY_KINDS  # no search needs it
        from mindex.lookup.indexed_files import IndexedFiles  # no search needs it
        from mindex.lookup.links import Links  # no search needs it
        from mindex.lookup.service import Lookup  # no search needs it
        from mindex.lookup.special_references import SpecialReferences  # no search needs it

        special = SpecialReferences(
            self.store, self.entries, self.profile, self.field_entries("skill"), self.timeline, self.labels, self.agent
        )
        files = IndexedFiles(self.store.files, self.redactor.for_reading())
        things = tuple(self.field_entries(kind) for kind in FIELD_ENTRY_KINDS)
        return Lookup(self.store, files, special, Links(self.store, files), self.access_log, self.agent, things)

    @cached_property
    def labels(self) -> Labels:
        from mindex.lookup.labels import Labels  # no search needs it

        return Labels(self.store, self.agent)

    # ── entries ───────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def write_context(self) -> WriteContext:
        from mindex.entries.write_context import WriteContext  # no search needs it

        return WriteContext(self.store, self.redactor, self.agent)

    @cached_property
    def entry_writer(self) -> EntryWriter:
        from mindex.entries.lifecycle import EntryWriter  # no search needs it

        return EntryWriter(self.write_context)

    @cached_property
    def entry_service(self) -> EntryService:
        from mindex.entries.service import EntryService  # no search needs it

        return EntryService(self.write_context, self.entry_writer, self.queue, self.settings)

    @cached_property
    def entries(self) -> Entries:
        from mindex.entries.entries import Entries  # no search needs it

        return Entries(self.store)

    @cached_property
    def conversations(self) -> Conversations:
        from mindex.entries.conversations import Conversations  # no search needs it

        return Conversations(self.write_context, self.queue, self.fact_extraction)

    @cached_property
    def capture(self) -> Capture:
        from mindex.entries.capture import Capture  # no search needs it

        return Capture(self.write_context, self.entry_writer, self.fact_extraction)

    @cached_property
    def fact_extraction(self) -> FactExtraction:
        from mindex.entries.fact_extraction import FactExtraction  # no search needs it

        enabled = self.settings.flag("generation.extract_facts")
        return FactExtraction(
            self.store, self.providers, self.entry_writer, self.entry_service, self.queue, enabled, self.stop
        )

    @cached_property
    def profile(self) -> Profile:
        from mindex.entries.profile import Profile  # no search needs it

        return Profile(self.write_context, self.queue)

    def field_entries(self, kind: FieldEntryKind) -> FieldEntries:
        from mindex.entries.field_entries import FieldEntries  # no search needs it

        return self.projects if kind == "project" else FieldEntries(kind, self.write_context, self.queue)

    @cached_property
    def projects(self) -> Projects:
        from mindex.entries.projects import Projects  # no search needs it

        return Projects("project", self.write_context, self.queue, self.sees_everything)

    @cached_property
    def notes(self) -> Notes:
        from mindex.entries.note_files import Notes  # no search needs it

        return Notes(self.write_context)

    @cached_property
    def timeline(self) -> Timeline:
        from mindex.entries.timeline import Timeline  # no search needs it

        return Timeline(self.store, self.agent)

    # ── the whole memory ──────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def models(self) -> Models:
        from mindex.embedding.models import Models  # no search needs it

        return Models(self.store, self.settings, self.selection, self.providers, _link_close_memories)

    @cached_property
    def transfer(self) -> Transfer:
        from mindex.transfer.service import Transfer  # no search needs it

        return Transfer(self.store, self.redactor, self.queue, self.agent)

    @cached_property
    def sync(self) -> Sync:
        from mindex.sync.service import Sync  # no search needs it

        return Sync(self.store, self.redactor, self.queue)

    @cached_property
    def maintenance(self) -> Maintenance:
        from mindex.maintenance import Maintenance  # no search needs it

        return Maintenance(
            self.write_context,
            self.entry_writer,
            self.entry_service,
            self.selection,
            self.queue,
            self.providers,
            self.access_log,
            self.sees_everything,
        )


def _link_close_memories(store: Store, model: Model, stored: Sequence[tuple[Record, RecordVectors]]) -> None:
    """Called with records whose vectors were just stored."""
    from mindex.entries.near_duplicates import link_close_memories  # only what embeds needs it

    link_close_memories(store, model, stored)
