"""The front door: everything mindex can do, as a library. Wires the rooms together and holds no logic of its own."""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from time import monotonic
from types import TracebackType
from typing import TYPE_CHECKING

from mindex.clock import now_ms, parse_time
from mindex.config import Settings, load_settings
from mindex.errors import EmbeddingError, NotFoundError, UsageError
from mindex.knowing import Knowing
from mindex.model import (
    KINDS,
    MODES,
    TYPES,
    Answer,
    Check,
    Collection,
    CollectionStatus,
    Document,
    EmbeddingStatus,
    Filters,
    Found,
    IndexReport,
    Mode,
    Progress,
    Query,
    Record,
    Skipped,
    Status,
)
from mindex.providers.embed.base import Embedder, EmbedSettings, create_embedder
from mindex.search.boost import Boosts
from mindex.search.embedding import QueryEmbedder
from mindex.search.fuse import FUSIONS
from mindex.search.pipeline import MAX_LIMIT, Ranking, Searcher
from mindex.store.base import Access, Page
from mindex.store.sqlite.store import SqliteStore
from mindex.transferring import Transferring

if TYPE_CHECKING:
    from mindex.remember.secrets import Mode as SecretsMode

Report = Callable[[Progress], None]

_MOST_AROUND = 20


class Memory(Transferring, Knowing):
    """One memory: a database, its settings and its models.

    `with Memory("memory.db") as m: m.index("docs"); m.search("how is data cached?")`. Safe to use from several
    threads. `query_wait` bounds how long a question waits for a model that is still loading (None: until it is there).
    """

    def __init__(
        self,
        db: str | Path | None = None,
        *,
        agent: str | None = None,
        settings: Settings | None = None,
        options: Mapping[str, object] | None = None,
        query_wait: float | None = None,
    ) -> None:
        super().__init__()
        flags = {**(options or {}), "db": str(db) if db is not None else None, "agent": agent}
        self.settings = settings or load_settings(flags)
        self._query_wait = query_wait
        self.store = SqliteStore(self.settings.database)

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.stop_embedding()
        if "_query_embedder" in self.__dict__ and self._query_embedder is not None:
            self._query_embedder.close()
        self.store.close()

    # ── models, made when first needed ────────────────────────────────────────────────────────────────────────

    @cached_property
    def embedder(self) -> Embedder | None:
        settings = self.settings
        return create_embedder(
            EmbedSettings(
                provider=settings.text("embedding.provider"),
                model=settings.text("embedding.model"),
                url=settings.text("embedding.url"),
                api_key=settings.text("embedding.api_key"),
                timeout=settings.number("embedding.timeout"),
            )
        )

    @cached_property
    def _query_embedder(self) -> QueryEmbedder | None:
        if self.embedder is None:
            return None
        return QueryEmbedder(self.embedder, self.store, self._query_wait, self.settings.number("embedding.timeout"))

    @cached_property
    def _searcher(self) -> Searcher:
        settings = self.settings
        ranking = Ranking(
            fusion=settings.text("search.fusion"),
            weights={name: settings.number(f"search.weights.{name}") for name in FUSIONS},
            candidates=settings.whole("search.candidates"),
            floor=settings.number("search.floor"),
            boosts=Boosts(
                settings.number("boost.domain"),
                settings.number("boost.instruction"),
                settings.number("boost.memory"),
                settings.number("memory.decay"),
            ),
        )
        return Searcher(self.store, self._query_embedder, ranking)

    def load_model(self) -> None:
        """Load the embedding model now; raises EmbeddingError when it cannot be had."""
        if self.embedder is not None:
            self.embedder.load()

    # ── files ─────────────────────────────────────────────────────────────────────────────────────────────────

    def index(
        self,
        *folders: str | Path,
        name: str | None = None,
        exclude: Sequence[str] = (),
        force: bool = False,
        dry_run: bool = False,
        embed: bool = True,
        report: Report | None = None,
    ) -> IndexReport:
        """Index folders, or bring every known collection up to date when none is named."""
        from mindex.ingest.collections import collection_for
        from mindex.ingest.indexer import Boundary, Indexer
        from mindex.remember.secrets import BOUNDARY_VERSION

        started = monotonic()
        if name is not None and len(folders) != 1:
            raise UsageError("a name goes with one folder", "index one folder at a time to name it")
        known = list(self.store.collections())
        chosen = []
        for folder in folders:
            collection = collection_for(Path(folder), known, name=name, exclude=exclude)
            known = [*(other for other in known if other.name != collection.name), collection]
            chosen.append(collection)
        if not folders:
            chosen = [collection for collection in known if Path(collection.root).is_dir()]
        if not chosen and not known:
            raise UsageError("nothing is indexed yet", "name a folder: `mindex index docs`")
        indexer = Indexer(
            self.store,
            exclude=self.settings.texts("index.exclude"),
            max_bytes=self.settings.whole("index.max_bytes"),
            boundary=Boundary(self._boundary(), f"b{BOUNDARY_VERSION}{self.settings.text('secrets.mode')}"),
        )
        reports = []
        skipped: builtins.list[Skipped] = []
        notes: builtins.list[str] = []
        for collection in dict.fromkeys(chosen):
            if not dry_run:
                self.store.put_collection(collection)
            outcome, left_out = indexer.index(collection, force=force, dry_run=dry_run, report=report)
            reports.append(outcome)
            skipped.extend(left_out)
        embedded, pending, note = self._embed(embed and not dry_run, report)
        if note:
            notes.append(note)
        gone = [collection.name for collection in known if collection not in chosen and not folders]
        notes.extend(f"the folder of '{other}' is not there; its index is left as it was" for other in gone)
        return IndexReport(
            tuple(reports), tuple(skipped), embedded, pending, round(monotonic() - started, 2), tuple(notes)
        )

    def _embed(self, wanted: bool, report: Report | None) -> tuple[int, int, str]:
        if self.embedder is None:
            return 0, 0, ""
        if not wanted:
            return 0, self.store.pending(self.embedder.model), ""
        from mindex.ingest.backfill import backfill

        done = backfill(self.store, self.embedder, report=report)
        return done.embedded, done.remaining, done.note

    def add_collection(self, folder: str | Path, *, name: str | None = None, exclude: Sequence[str] = ()) -> Collection:
        """Remember a folder as a collection without indexing it yet; the collection it already is, if it is one."""
        from mindex.ingest.collections import collection_for

        known = self.store.collections()
        collection = collection_for(Path(folder), known, name=name, exclude=exclude)
        if collection not in known:
            self.store.put_collection(collection)
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
        known = (collection for collection in self.store.collections() if root.is_relative_to(collection.root))
        return next(known, None) or self.add_collection(root, name="workspace")

    def documents(self, starting: str = "", *, limit: int = 100) -> tuple[Document, ...]:
        """Indexed files whose path, or `collection/path`, starts so; collection by collection, in order of path."""
        found: builtins.list[Document] = []
        for collection in self.store.collections():
            for path, document in sorted(self.store.documents(collection.name).items()):
                if len(found) == limit:
                    return tuple(found)
                if path.startswith(starting) or f"{collection.name}/{path}".startswith(starting):
                    found.append(document)
        return tuple(found)

    def remove_collection(self, name: str) -> int:
        """Forget an indexed folder: its chunks leave the memory, its files stay as they are."""
        if name not in {collection.name for collection in self.store.collections()}:
            raise NotFoundError(f"there is no collection '{name}'", "`mindex status` lists them")
        return self.store.remove_collection(name)

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
            return [collection for collection in self.store.collections() if only in ("", collection.name)]

        def refresh(collections: Sequence[Collection]) -> None:
            roots = [collection.root for collection in collections if Path(collection.root).is_dir()]
            if roots:
                outcome = self.index(*roots)
                if refreshed is not None:
                    refreshed(outcome)

        watch(watched, refresh, stop, exclude=self.settings.texts("index.exclude"), poll=poll)

    def backfill(self, *, batch: int = 50, most: int | None = None, report: Report | None = None) -> tuple[int, int]:
        """Embed what has no vector yet: how many were, how many remain. Raises when the model cannot be had."""
        from mindex.ingest.backfill import backfill

        if self.embedder is None:
            raise EmbeddingError("no embedder is configured", "set embedding.provider to `local`")
        if batch < 1:
            raise UsageError(f"a batch of {batch} is too small", "use 1 to 200")
        self.embedder.load()
        done = backfill(self.store, self.embedder, batch=min(batch, 200), most=most, report=report)
        return done.embedded, done.remaining

    # ── questions ─────────────────────────────────────────────────────────────────────────────────────────────

    def search(
        self,
        query: str,
        *,
        limit: int = 5,
        offset: int = 0,
        mode: Mode = "hybrid",
        fusion: str = "",
        current_file: str = "",
        kinds: Sequence[str] = (),
        types: Sequence[str] = (),
        collections: Sequence[str] = (),
        path: str = "",
        tags: Sequence[str] = (),
        min_importance: int | None = None,
        min_confidence: float | None = None,
        after: str | None = None,
        before: str | None = None,
        include_expired: bool = False,
        entities: Sequence[str] = (),
        session: str = "",
        as_of: str | None = None,
        agent: str | None = None,
        floor: float | None = None,
        around: int = 0,
    ) -> Answer:
        """Answer a question. Plain words, or the query language of `mindex search --help`.

        `around` brings so many exchanges before and after each one of a conversation that is found.
        `floor` is the relevance below which a hit is not shown (None: as the settings say, 0: show all).
        """
        if mode not in MODES:
            raise UsageError(f"unknown mode '{mode}'", f"use one of {', '.join(MODES)}")
        filters = self.filters(
            kinds=kinds,
            types=types,
            collections=collections,
            path=path,
            tags=tags,
            min_importance=min_importance,
            min_confidence=min_confidence,
            after=after,
            before=before,
            include_expired=include_expired,
            entities=entities,
            session=session,
            as_of=as_of,
            agent=agent,
        )
        asked = Query(query, filters, limit, offset, mode, fusion, current_file, floor=floor)
        answer = self._searcher.search(asked, self._domain_of(current_file) if current_file else None)
        self._note_access([hit.record for hit in answer.hits], "search", query, answer)
        return self._with_surroundings(answer, around)

    def _with_surroundings(self, answer: Answer, around: int) -> Answer:
        """The hits with what only those that are shown need: where an anchor stands, what was said before and after."""
        if around < 0:
            raise UsageError(f"around {around} is too small", f"use 0 to {_MOST_AROUND}")
        shown = {hit.record.id for hit in answer.hits}
        hits = []
        for hit in answer.hits:
            turns: tuple[Record, ...] = ()
            if around and hit.record.kind == "turn":
                turns = self.store.neighbours(hit.record.id, min(around, _MOST_AROUND), min(around, _MOST_AROUND))
            beside = tuple(turn for turn in turns if turn.id not in shown)
            hits.append(replace(hit, record=_standing(hit.record), around=beside))
        cut = (f"around cut to {_MOST_AROUND}",) if around > _MOST_AROUND else ()
        return replace(answer, hits=tuple(hits), notes=(*answer.notes, *cut))

    def filters(
        self,
        *,
        kinds: Sequence[str] = (),
        types: Sequence[str] = (),
        collections: Sequence[str] = (),
        path: str = "",
        tags: Sequence[str] = (),
        min_importance: int | None = None,
        min_confidence: float | None = None,
        after: str | None = None,
        before: str | None = None,
        include_expired: bool = False,
        entities: Sequence[str] = (),
        session: str = "",
        as_of: str | None = None,
        agent: str | None = None,
    ) -> Filters:
        """What a search or a list may see; unknown kinds and collections are errors, not empty answers."""
        _known("kind", kinds, KINDS)
        _known("type", types, TYPES)
        if collections:
            _known("collection", collections, [collection.name for collection in self.store.collections()])
        return Filters(
            kinds=tuple(kinds),
            types=tuple(types),
            agent=agent or self.settings.text("agent"),
            collections=tuple(collections),
            path=path,
            tags=tuple(tags),
            min_importance=min_importance,
            min_confidence=min_confidence,
            after=parse_time(after) if after else None,
            before=parse_time(before) if before else None,
            include_expired=include_expired,
            entities=tuple(entities),
            session=session,
            as_of=parse_time(as_of) if as_of else None,
        )

    def _domain_of(self, current_file: str) -> str | None:
        from mindex.ingest.describe import domain_of

        return domain_of(current_file, self.settings.pairs("index.domains"), self.store.domains())

    def get(self, *references: str, as_of: str | None = None) -> Found:
        """Records by id, short id, path, `path:10-40`, glob or a comma-separated list of these.

        Also `profile[.path]`, `history:ID`, `timeline:FROM..TO`, `due`, and `ID±2` for an exchange with its neighbours.
        `as_of` brings what was told as it stood then; files come as they are now.
        """
        from mindex.reading import get
        from mindex.references import special

        moment = parse_time(as_of) if as_of else None
        found = get(self.store, references, self._boundary(reading=True), moment, lambda one: special(self, one, as_of))
        self._note_access(found.records, "get")
        return replace(found, records=tuple(map(_standing, found.records)))

    def read_file(self, path: str) -> Record:
        """One indexed file, whole, as it is on disk now."""
        from mindex.reading import read_file

        return read_file(self.store, path, self._boundary(reading=True))

    def _boundary(self, *, reading: bool = False) -> Callable[[str], str]:
        """What a file's text crosses. Reading it never fails for a secret: it is only not shown."""
        from mindex.remember.secrets import clean

        mode: SecretsMode = self.settings.text("secrets.mode")  # type: ignore[assignment]
        if reading and mode == "strict":
            mode = "redact"
        return lambda text: clean(text, mode, keep_lines=True).text

    def _note_access(
        self, records: Sequence[Record], action: str, query: str = "", answer: Answer | None = None
    ) -> None:
        """Remember, in the background, who was wanted. Only of what was told: files have no standing."""
        now = now_ms()
        scores = {hit.record.id: hit.score for hit in answer.hits} if answer else {}
        told = [
            Access(record.id, now, action, query[:500], scores.get(record.id))
            for record in records
            if record.kind != "chunk"
        ]
        days, rows = self.settings.number("access_log.days"), self.settings.whole("access_log.rows")
        self.store.note_access(told, oldest=now - int(days * 86_400_000), rows=rows)

    def list(self, filters: Filters | None = None, *, limit: int = 20, offset: int = 0) -> Page:
        """Records in scope, newest first."""
        if limit < 1 or offset < 0:
            raise UsageError("limit starts at 1 and offset at 0", f"use a limit of 1 to {MAX_LIMIT}")
        return self.store.list(filters or self.filters(), limit=min(limit, MAX_LIMIT), offset=min(offset, 2**62))

    # ── health ────────────────────────────────────────────────────────────────────────────────────────────────

    def status(self) -> Status:
        store = self.store.status()
        collections = tuple(
            CollectionStatus(
                collection.name,
                collection.root,
                store.collections[collection.name].documents,
                store.collections[collection.name].chunks,
                collection.indexed_at,
                missing=not Path(collection.root).is_dir(),
            )
            for collection in self.store.collections()
            if collection.name in store.collections  # else added since it was counted
        )
        embedding = EmbeddingStatus("none")
        if self.embedder is not None:
            model = self.embedder.model
            embedding = EmbeddingStatus(model.provider, model.name, model.dimensions, self.store.pending(model))
        return Status(
            db=store.location,
            schema=store.schema,
            records=store.records,
            collections=collections,
            embedding=embedding,
            tier="keyword" if self.embedder is None else "hybrid",
            size_bytes=store.size_bytes,
            caches=store.caches,
        )

    def doctor(self) -> tuple[Check, ...]:
        """Everything that can be checked, each with what to do about it."""
        checks = [*self.store.check(), self._model_check()]
        for collection in self.store.collections():
            there = Path(collection.root).is_dir()
            message = f"{collection.root} is there" if there else f"{collection.root} is not there"
            checks.append(Check(f"collection {collection.name}", there, message, "bring the folder back, or remove it"))
        if self.embedder is not None:
            pending = self.store.pending(self.embedder.model)
            message = f"{pending} records have no vector" if pending else "every record has its vector"
            checks.append(Check("pending vectors", not pending, message, "run `mindex backfill`"))
        return tuple(checks)

    def _model_check(self) -> Check:
        if self.embedder is None:
            return Check("embedding model", True, "none is configured: search is by keyword")
        try:
            length = len(self.embedder.embed_query("a question to see whether the model answers"))
        except EmbeddingError as error:
            return Check("embedding model", False, error.message, error.hint)
        return Check("embedding model", True, f"{self.embedder.model.name} answers with {length} dimensions")

    def optimize(self) -> None:
        """Remove what expired long ago, rebuild and merge the indexes, give unused space back."""
        self.purge_expired()
        self.store.optimize()


def _standing(record: Record) -> Record:
    """A record whose anchor says where it stands now, and whether what was there still is."""
    kept = record.fields.get("anchor")
    if not isinstance(kept, Mapping):
        return record
    from mindex.remember.anchors import anchored

    now = anchored(kept)
    return replace(record, fields={**record.fields, "anchor": {**kept, "at": now.at, "state": now.state}})


def _known(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    for value in given:
        if value not in known:
            raise UsageError(f"unknown {what} '{value}'", f"use one of {', '.join(known) or '(there is none yet)'}")
