"""The front door: everything mindex can do, as a library. Wires the rooms together and holds no logic of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TypedDict, Unpack

from mindex.clock import now_ms, parse_time
from mindex.config import Settings, load_settings
from mindex.errors import EmbeddingError, UsageError
from mindex.filing import Filing
from mindex.knowing import Knowing
from mindex.model import (
    KINDS,
    MODES,
    TYPES,
    Answer,
    Check,
    CollectionStatus,
    EmbeddingStatus,
    Filters,
    Found,
    Mode,
    Progress,
    Query,
    Record,
    Status,
)
from mindex.search.boost import Boosts
from mindex.search.embedding import QueryEmbedder
from mindex.search.fuse import FUSIONS
from mindex.search.pipeline import MAX_LIMIT, Ranking, Searcher
from mindex.store.base import Access, Page
from mindex.store.sqlite.store import SqliteStore
from mindex.transferring import Transferring

Report = Callable[[Progress], None]

_MOST_AROUND = 20


class Scope(TypedDict, total=False):
    """What `search` and `filters` may be told of what is to be seen; see `filters`."""

    kinds: Sequence[str]
    types: Sequence[str]
    collections: Sequence[str]
    path: str
    tags: Sequence[str]
    min_importance: int | None
    min_confidence: float | None
    after: str | None
    before: str | None
    include_expired: bool
    entities: Sequence[str]
    session: str
    as_of: str | None
    agent: str | None


class Memory(Filing, Transferring, Knowing):
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
    def _query_embedder(self) -> QueryEmbedder | None:
        if self.embedder is None:
            return None
        return QueryEmbedder(self.embedder, self.store, self._query_wait, self.settings.number("embedding.timeout"))

    @cached_property
    def _ranking(self) -> Ranking:
        settings = self.settings
        return Ranking(
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

    @cached_property
    def _searcher(self) -> Searcher:
        return Searcher(self.store, self._query_embedder, self._ranking)

    @cached_property
    def _keyword_searcher(self) -> Searcher:
        """For questions that ask for no vectors: they do not wait for the model's module either."""
        return Searcher(self.store, None, self._ranking)

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
        floor: float | None = None,
        around: int = 0,
        **scope: Unpack[Scope],
    ) -> Answer:
        """Answer a question. Plain words, or the query language of `mindex search --help`.

        `around` brings so many exchanges before and after each one of a conversation that is found.
        `floor` is the relevance below which a hit is not shown (None: as the settings say, 0: show all).
        """
        if mode not in MODES:
            raise UsageError(f"unknown mode '{mode}'", f"use one of {', '.join(MODES)}")
        filters = self.filters(**scope)
        asked = Query(query, filters, limit, offset, mode, fusion, current_file, floor=floor)
        searcher = self._keyword_searcher if mode == "keyword" else self._searcher
        answer = searcher.search(asked, self._domain_of(current_file) if current_file else None)
        self._note_access([hit.record for hit in answer.hits], "search", query, answer)
        return self._with_surroundings(answer, around, filters.as_of)

    def _with_surroundings(self, answer: Answer, around: int, as_of: int | None) -> Answer:
        """The hits with what only those that are shown need: where an anchor stands, what was said before and after."""
        if around < 0:
            raise UsageError(f"around {around} is too small", f"use 0 to {_MOST_AROUND}")
        shown = {hit.record.id for hit in answer.hits}
        hits = []
        for hit in answer.hits:
            turns: tuple[Record, ...] = ()
            if around and hit.record.kind == "turn":
                turns = self.store.neighbours(hit.record.id, min(around, _MOST_AROUND), min(around, _MOST_AROUND))
            beside = tuple(
                turn for turn in turns if turn.id not in shown and (as_of is None or turn.created_at <= as_of)
            )
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

    def _note_access(
        self, records: Sequence[Record], action: str, query: str = "", answer: Answer | None = None
    ) -> None:
        """Remember, in the background, who was wanted. Only of what was told: files have no standing."""
        now = now_ms()
        scores = {hit.record.id: hit.score for hit in answer.hits} if answer else {}
        if all(record.kind == "chunk" for record in records):
            return
        asked = self._boundary(reading=True)(query[:500]) if query else ""
        told = [
            Access(record.id, now, action, asked, scores.get(record.id)) for record in records if record.kind != "chunk"
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
