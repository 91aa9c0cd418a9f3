"""Indexing as a service: folders become chunks, chunks get vectors and, if wanted, contexts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, TypedDict

from mindex.config import Settings
from mindex.datatypes import Collection, IndexReport, Report
from mindex.embedding.queue import EmbeddingQueue, OnEmbedded
from mindex.embedding.selection import EmbedderSelection
from mindex.errors import MindexError, UsageError
from mindex.files.collections import collection_for, refuse_unusable_names, root_problem
from mindex.files.indexer import Indexer
from mindex.files.watch import watch
from mindex.project_file import find_project_file
from mindex.providers.factory import Providers
from mindex.redaction.redactor import Redactor
from mindex.store.base import DocumentUpdate, Store
from mindex.values import dataclass

if TYPE_CHECKING:
    from mindex.datatypes import ContextPlan
    from mindex.providers.generate.base import Generator


class IndexOptions(TypedDict, total=False):
    """The options of `Memory.index`."""

    name: str | None  # name of the collection; needs exactly one folder
    context: str | None  # one line about the collection's content; needs exactly one folder
    exclude: Sequence[str]  # patterns of files to exclude, in .gitignore syntax
    force: bool  # read unchanged files again
    dry_run: bool  # report what would change, without changing it
    embed: bool  # embed new chunks before the call returns
    # Have a language model describe each chunk's place in its document (None: the setting). False together with `force`
    # removes these descriptions; a dry run reports the number of calls and tokens.
    contextualize: bool | None
    report: Report | None  # called with the progress


class WatchOptions(TypedDict, total=False):
    """The options of `Memory.watch`."""

    refreshed: Callable[[IndexReport], None]  # called with the report of each update
    embedded: OnEmbedded  # called after each embedding in the background
    poll: bool  # poll for changes, for drives without file-system events
    only: str  # name of the only collection to watch


@dataclass(frozen=True, slots=True)
class _ContextOutcome:
    """What contextualizing did, or, in a dry run, what it would cost."""

    written: int | None = None
    plan: ContextPlan | None = None
    embedded: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexService:
    """Indexes folders into one store. User files are read, never written."""

    _store: Store
    _settings: Settings
    _redactor: Redactor
    _selection: EmbedderSelection
    _queue: EmbeddingQueue
    _providers: Providers

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
        """See `IndexOptions`."""
        started = monotonic()
        stored = self._store.files.collections()
        known, chosen = self._collections(stored, folders, name, context, exclude)
        done = []
        indexers = [self._indexer(collection) for collection in chosen]
        notes = [note for indexer in indexers for note in indexer.project_notes]
        for collection, indexer in zip(chosen, indexers, strict=True):
            if not dry_run and collection not in stored:
                self._store.files.put_collection(collection)
            done.append(indexer.index(force=force, dry_run=dry_run, report=report))
        names = [collection.name for collection in chosen]
        if force and contextualize is False and not dry_run:
            dropped = self._store.files.drop_contexts(names)
            notes += [f"what a language model wrote about {dropped} chunks was taken back"] if dropped else []
        new = [id_ for indexer in indexers for id_ in indexer.written_chunks]
        embedded, pending, note = self._embed(embed and not dry_run, report, new)
        notes += [*([note] if note else []), *self._selection.notes()]
        contexts = _ContextOutcome()
        if self._settings.flag("index.contextualize") if contextualize is None else contextualize:
            if dry_run:
                updates = (update for indexer in indexers for update in indexer.planned_updates(force=force))
                contexts = self._plan_contexts(updates)
            else:
                contexts = self._contextualize(names, embed, report)
                pending = self._queue.pending()
            notes += contexts.notes
        folders_known = [] if folders else [collection for collection in known if not collection.imported]
        unread = [collection for collection in folders_known if collection not in chosen]
        notes += (f"the folder of '{one.name}': {root_problem(one)}; its index is left as it was" for one in unread)
        reports = tuple(outcome for outcome, _ in done)
        if dry_run and self._selection.embedder is not None:
            pending += sum(one.chunks_added for one in reports)
        skipped = tuple(file for _, files in done for file in files)
        seconds = round(monotonic() - started, 2)
        numbers = (embedded + contexts.embedded, pending, seconds, contexts.written)
        return IndexReport(reports, skipped, *numbers, contexts.plan, tuple(dict.fromkeys(notes)), dry_run)

    def _collections(
        self,
        stored: Sequence[Collection],
        folders: Sequence[str | Path],
        name: str | None,
        context: str | None,
        exclude: Sequence[str],
    ) -> tuple[list[Collection], list[Collection]]:
        """Returns the known collections and those to index: the folders', or every one whose root can be read."""
        if name is not None and len(folders) != 1:
            raise UsageError("--name needs exactly one folder", "index one folder at a time to name it")
        if context is not None and len(folders) != 1:
            raise UsageError("--context needs exactly one folder", "index one folder at a time to describe it")
        context = None if context is None else " ".join(self._redactor.redact_text(context).split())
        known = list(stored)
        chosen = [] if folders else [one for one in known if not one.imported and not root_problem(one)]
        for folder in folders:
            collection = collection_for(Path(folder), known, name=name, context=context, exclude=exclude)
            if collection not in known:
                refuse_unusable_names(collection, self._redactor)
            known = [*(other for other in known if other.name != collection.name), collection]
            chosen.append(collection)
        if all(collection.imported for collection in known):
            raise UsageError("nothing is indexed yet", "name a folder: `mindex index docs`")
        return known, list(dict.fromkeys(chosen))

    def _indexer(self, collection: Collection) -> Indexer:
        """Returns the indexer with the user's limits, narrowed by the file of the project that the collection is in."""
        return Indexer(
            self._store,
            collection,
            exclude=self._settings.texts("index.exclude"),
            max_bytes=self._settings.whole("index.max_bytes"),
            redactor=self._redactor,
            project=find_project_file(Path(collection.root)),
        )

    def _embed(self, wanted: bool, report: Report | None, new: Sequence[str] | None = None) -> tuple[int, int, str]:
        """Returns how many chunks were embedded, how many wait, and a note when the model failed.

        A server embeds the `new` chunks now and the others in the background: no caller waits for other folders.
        """
        if not self._selection.embeds:
            return 0, 0, ""
        if not wanted:
            return 0, self._queue.pending(), ""
        if new is not None and self._queue.in_background:
            embedded, note = self._queue.embed_now(new, report)
            return embedded, self._queue.pending(), note
        done = self._queue.backfill(report=report)
        return done.embedded, done.remaining, done.note

    def watch(
        self,
        stop: Event,
        *,
        refreshed: Callable[[IndexReport], None] = lambda _: None,
        embedded: OnEmbedded = lambda _: None,
        poll: bool = False,
        only: str = "",
    ) -> None:
        """See `Memory.watch`."""

        def watched() -> Sequence[Collection]:
            known = self._store.files.collections()
            return [one for one in known if only in ("", one.name) and not one.imported]

        def refresh(collections: Sequence[Collection]) -> None:
            roots = [collection.root for collection in collections if not root_problem(collection)]
            if not roots:
                return
            in_server = self._queue.in_background  # its own threads embed what else waits
            refreshed(self.index(*roots, embed=in_server))
            if not in_server:
                self._queue.backfill_in_background(embedded)

        watch(watched, refresh, stop, exclude=self._settings.texts("index.exclude"), poll=poll)

    # ── contexts ──────────────────────────────────────────────────────────────────────────────────────────────

    def _contextualize(self, names: Sequence[str], embed: bool, report: Report | None) -> _ContextOutcome:
        """Have a language model place chunks in their documents. A model that fails, or is missing, is a note."""
        from mindex.files.contextualize import contextualize  # few users have a language model write contexts

        generator, note = self._generator_or_note()
        if generator is None:
            return _ContextOutcome(written=0, notes=(note,))
        embedded = 0

        def embed_stored() -> None:
            """A chunk loses its vector with its new text: embed it again before the job is over."""
            nonlocal embedded
            embedded += self._embed(embed, None)[0]

        timeout = self._settings.number("generation.timeout")
        written, failure = contextualize(
            self._store, generator, names, self._redactor, timeout=timeout, on_stored=embed_stored, report=report
        )
        last, _, note = self._embed(embed, report)
        notes = tuple(part for part in (failure, note) if part)
        return _ContextOutcome(written=written, embedded=embedded + last, notes=notes)

    def _plan_contexts(self, updates: Iterable[DocumentUpdate]) -> _ContextOutcome:
        from mindex.files.contextualize import plan_contexts  # as above

        generator, note = self._generator_or_note()
        plan = plan_contexts(self._store, generator.name if generator else "", updates)
        return _ContextOutcome(plan=plan, notes=(note,) if note else ())

    def _generator_or_note(self) -> tuple[Generator | None, str]:
        try:
            generator = self._providers.generator
        except MindexError as error:
            return None, f"no contexts: {error}"
        return generator, "" if generator else "no contexts: no language model is configured; set generation.provider"
