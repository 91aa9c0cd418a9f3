"""The part of the front door for folders: what is indexed, kept up to date, and given its vectors."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from mindex.errors import EmbeddingError, MindexError, NotFoundError, UsageError
from mindex.model import Collection, Document, Progress
from mindex.store.base import DocumentUpdate
from mindex.telling import Telling
from mindex.values import dataclass

if TYPE_CHECKING:
    from mindex.model import ContextPlan, IndexReport, SkippedFile
    from mindex.providers.generate.base import Generator

Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class _Placed:
    """What came of placing chunks in their documents, or what it would cost."""

    written: int | None = None
    plan: ContextPlan | None = None
    embedded: int = 0
    notes: tuple[str, ...] = ()


class Filing(Telling):
    """Mixed into Memory. Files are read, never written."""

    def index(
        self,
        *folders: str | Path,
        name: str | None = None,
        exclude: Sequence[str] = (),
        force: bool = False,
        dry_run: bool = False,
        embed: bool = True,
        contextualize: bool | None = None,
        report: Report | None = None,
    ) -> IndexReport:
        """Index folders, or bring every known collection up to date when none is named.

        With `contextualize` (None: as `index.contextualize` says) a language model places each chunk in its document;
        False together with `force` takes back what it wrote;
        a dry run says what that would cost.
        """
        from mindex.ingest.collections import collection_for
        from mindex.ingest.indexer import Boundary, Indexer
        from mindex.model import IndexReport
        from mindex.redaction.redactor import REDACTION_VERSION

        started = monotonic()
        if name is not None and len(folders) != 1:
            raise UsageError("a name goes with one folder", "index one folder at a time to name it")
        known = list(self.store.files.collections())
        chosen = []
        for folder in folders:
            collection = collection_for(Path(folder), known, name=name, exclude=exclude)
            known = [*(other for other in known if other.name != collection.name), collection]
            chosen.append(collection)
        if not folders:
            chosen = [collection for collection in known if Path(collection.root).is_dir()]
        chosen = list(dict.fromkeys(chosen))
        if not chosen and not known:
            raise UsageError("nothing is indexed yet", "name a folder: `mindex index docs`")
        indexer = Indexer(
            self.store,
            exclude=self.settings.texts("index.exclude"),
            max_bytes=self.settings.whole("index.max_bytes"),
            boundary=Boundary(self._boundary(), f"b{REDACTION_VERSION}{self.settings.text('secrets.mode')}"),
        )
        reports = []
        skipped: list[SkippedFile] = []
        notes: list[str] = []
        for collection in chosen:
            if not dry_run:
                self.store.files.put_collection(collection)
            outcome, left_out = indexer.index(collection, force=force, dry_run=dry_run, report=report)
            reports.append(outcome)
            skipped.extend(left_out)
        if force and contextualize is False and not dry_run:
            dropped = self.store.files.drop_contexts([collection.name for collection in chosen])
            notes.extend([f"what a language model wrote about {dropped} chunks was taken back"] if dropped else [])
        embedded, pending, note = self._embed(embed and not dry_run, report)
        notes.extend([note] if note else [])
        notes.extend(self.model_notes())
        placed = _Placed()
        if self.settings.flag("index.contextualize") if contextualize is None else contextualize:
            if dry_run:
                placed = self._plan_contexts(update for one in chosen for update in indexer.rehearsed(one, force=force))
            else:
                placed = self._contextualize([collection.name for collection in chosen], embed, report)
                pending = self._embed(False, None)[1]
            notes.extend(placed.notes)
        gone = [collection.name for collection in known if collection not in chosen and not folders]
        notes.extend(f"the folder of '{other}' is not there; its index is left as it was" for other in gone)
        return IndexReport(
            tuple(reports),
            tuple(skipped),
            embedded + placed.embedded,
            pending,
            round(monotonic() - started, 2),
            tuple(dict.fromkeys(notes)),
            placed.written,
            placed.plan,
        )

    def _embed(self, wanted: bool, report: Report | None) -> tuple[int, int, str]:
        embedder = self.embedder
        if embedder is None:
            return 0, 0, ""
        if not wanted:
            return 0, self.store.vectors.pending(embedder.model), ""
        done = self._backfilled(report=report)
        return done.embedded, done.remaining, done.note

    def _contextualize(self, names: Sequence[str], embed: bool, report: Report | None) -> _Placed:
        """Have chunks placed in their documents. A model that fails, or that is none, is no error."""
        from mindex.ingest.contextualize import contextualize

        generator, note = self._generator_or_note()
        if generator is None:
            return _Placed(written=0, notes=(note,))
        embedded = 0

        def written() -> None:
            """A chunk lost its vector with its new words: it is not left without one for the length of the job."""
            nonlocal embedded
            embedded += self._embed(embed, None)[0]

        done = contextualize(
            self.store,
            generator,
            names,
            self._boundary(),
            patience=self.settings.number("generation.timeout"),
            written=written,
            report=report,
        )
        anew, _, note = self._embed(embed, report)
        notes = tuple(part for part in (done.note, note) if part)
        return _Placed(written=done.written, embedded=embedded + anew, notes=notes)

    def _plan_contexts(self, documents: Iterable[DocumentUpdate]) -> _Placed:
        from mindex.ingest.contextualize import plan_contexts

        generator, note = self._generator_or_note()
        plan = plan_contexts(self.store, generator.name if generator is not None else "", documents)
        return _Placed(plan=plan, notes=(note,) if note else ())

    def _generator_or_note(self) -> tuple[Generator | None, str]:
        try:
            generator = self.generator
        except MindexError as error:
            return None, f"no contexts: {error}"
        return generator, "" if generator else "no contexts: no language model is configured; set generation.provider"

    def add_collection(self, folder: str | Path, *, name: str | None = None, exclude: Sequence[str] = ()) -> Collection:
        """Remember a folder as a collection without indexing it yet; the collection it already is, if it is one."""
        from mindex.ingest.collections import collection_for

        known = self.store.files.collections()
        collection = collection_for(Path(folder), known, name=name, exclude=exclude)
        if collection not in known:
            self.store.files.put_collection(collection)
        return collection

    def workspace(self) -> Collection | None:
        """The collection that the workspace is, its folder made if it is missing; None when it is not to be indexed."""
        folder = self.settings.workspace
        if folder is None or not self.settings.flag("workspace.auto_index"):
            return None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            root = folder.resolve()
        except (OSError, RuntimeError) as error:
            raise UsageError(f"{folder} cannot be the workspace ({error})", "set workspace.path to a folder") from None
        # Indexed already, itself or with the folder it lies in: under whatever name, it is kept up to date.
        known = (collection for collection in self.store.files.collections() if root.is_relative_to(collection.root))
        return next(known, None) or self.add_collection(root, name="workspace")

    def documents(self, starting: str = "", *, limit: int = 100) -> tuple[Document, ...]:
        """Indexed files whose path, or `collection/path`, starts so; collection by collection, in order of path."""
        found: list[Document] = []
        for collection in self.store.files.collections():
            for path, document in sorted(self.store.files.documents(collection.name).items()):
                if len(found) == limit:
                    return tuple(found)
                if path.startswith(starting) or f"{collection.name}/{path}".startswith(starting):
                    found.append(document)
        return tuple(found)

    def remove_collection(self, name: str) -> int:
        """Forget an indexed folder: its chunks leave the memory, its files stay as they are."""
        if name not in {collection.name for collection in self.store.files.collections()}:
            raise NotFoundError(f"there is no collection '{name}'", "`mindex status` lists them")
        return self.store.files.remove_collection(name)

    def watch(
        self,
        stop: threading.Event,
        *,
        refreshed: Callable[[IndexReport], None] | None = None,
        poll: bool = False,
        only: str = "",
    ) -> None:
        """Keep every collection, or `only` one, up to date until `stop` is set."""
        from mindex.ingest.watch import watch

        def watched() -> Sequence[Collection]:
            return [collection for collection in self.store.files.collections() if only in ("", collection.name)]

        def refresh(collections: Sequence[Collection]) -> None:
            roots = [collection.root for collection in collections if Path(collection.root).is_dir()]
            if roots:
                outcome = self.index(*roots)
                if refreshed is not None:
                    refreshed(outcome)

        watch(watched, refresh, stop, exclude=self.settings.texts("index.exclude"), poll=poll)

    def backfill(self, *, batch: int = 50, most: int | None = None, report: Report | None = None) -> tuple[int, int]:
        """Embed what has no vector yet: how many were, how many remain. Raises when the model cannot be had."""
        embedder = self.embedder
        if embedder is None:
            raise EmbeddingError("no embedder is configured", "set embedding.provider to `local`")
        if batch < 1:
            raise UsageError(f"a batch of {batch} is too small", "use 1 to 200")
        embedder.load()
        done = self._backfilled(batch=min(batch, 200), most=most, report=report)
        if done.failure is not None and not done.embedded:
            raise done.failure
        return done.embedded, done.remaining

    def _boundary(self, *, reading: bool = False) -> Callable[[str], str]:
        """What a file's text crosses. Reading it never fails for a secret: it is only not shown."""
        from mindex.redaction.redactor import redact

        mode = "redact" if reading and self._secrets_mode == "strict" else self._secrets_mode
        return lambda text: redact(text, mode, keep_lines=True).text
