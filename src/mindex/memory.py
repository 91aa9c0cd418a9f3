"""The front door: everything mindex can do, as a library. Wires the rooms together and holds no logic of its own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypedDict, Unpack

from mindex.choosing import Choosing
from mindex.clock import now_ms, parse_time
from mindex.config import Settings, load_settings
from mindex.errors import EmbeddingError, SpaceChangedError, UsageError
from mindex.filing import Filing
from mindex.knowing import Knowing
from mindex.model import (
    KINDS,
    MODES,
    TYPES,
    Answer,
    Filters,
    Found,
    Mode,
    Progress,
    Query,
    Record,
)
from mindex.modelling import Held
from mindex.providers.embed.base import Embedder
from mindex.search.boost import Boosts
from mindex.search.fuse import FUSIONS
from mindex.search.pipeline import MAX_LIMIT, Ranking, Searcher
from mindex.search.wording import Refining
from mindex.store.base import Access, Page, Store
from mindex.store.sqlite.store import SqliteStore
from mindex.transferring import Transferring

if TYPE_CHECKING:  # what most questions do without
    from mindex.model import Check, Status
    from mindex.search.embedding import QueryEmbedder
    from mindex.search.expand import Expander
    from mindex.search.rerank import Reranking

Report = Callable[[Progress], None]

_MOST_AROUND = 20
# A question waits no longer than this for other words to be asked in.
_MOST_EXPANDING = 10.0
# A model is changed now and then; whoever meets it three times in one question brought one that does not fit.
_MOST_CHANGES = 3


@dataclass(frozen=True, slots=True)
class _Asking:
    """What answers questions, and for whose vectors it was made."""

    held: Held
    embedder: QueryEmbedder | None
    searcher: Searcher


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


class Memory(Filing, Transferring, Knowing, Choosing):
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
        self._asking: _Asking | None = None
        self.store = self._open_store()

    def _open_store(self) -> Store:
        return SqliteStore(self.settings.database)

    def __enter__(self) -> Memory:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self.stop_embedding()
        if self._asking is not None and self._asking.embedder is not None:
            self._asking.embedder.close()
        self.store.close()

    # ── models, made when first needed ────────────────────────────────────────────────────────────────────────

    def _query_embedder(self, embedder: Embedder | None) -> QueryEmbedder | None:
        if embedder is None:
            return None
        from mindex.search.embedding import QueryEmbedder

        return QueryEmbedder(embedder, self.store, self._query_wait, self.settings.number("embedding.timeout"))

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
            refining=Refining(settings.number("search.weights.pairs"), settings.number("search.weights.coverage")),
            neighbours=settings.number("search.weights.neighbours"),
            rerank=settings.number("search.weights.rerank"),
            expansion=settings.number("search.weights.expansion"),
        )

    def _make_searcher(self, embedder: QueryEmbedder | None) -> Searcher:
        return Searcher(
            self.store,
            embedder,
            self._ranking,
            reranking=lambda: self._reranking,
            expander=lambda: self._expander,
        )

    @cached_property
    def _reranking(self) -> Reranking:
        """With the reranker of the settings; whoever asks for one without naming it means the local one."""
        from mindex.providers.rerank.base import create_reranker
        from mindex.search.rerank import Reranking

        reranker = self.reranker or create_reranker(replace(self._provider_settings("rerank"), provider="local"))
        assert reranker is not None  # only `none` has none
        return Reranking(reranker, self.store, self.settings.number("rerank.timeout"))

    @cached_property
    def _expander(self) -> Expander | None:
        if self.generator is None:
            return None
        from mindex.search.expand import Expander

        seconds = min(_MOST_EXPANDING, self.settings.number("generation.timeout"))
        return Expander(self.generator, self.store, seconds)

    @property
    def _searcher(self) -> Searcher:
        """For the space that is searched now: another process may have changed the model since the last question."""
        held = self.held()
        asking = self._asking
        if asking is None or asking.held is not held:
            embedder = self._query_embedder(held.embedder)
            # Whoever still asks with the one before finishes with it; it ends when nobody holds it any more.
            asking = self._asking = _Asking(held, embedder, self._make_searcher(embedder))
        return asking.searcher

    @cached_property
    def _keyword_searcher(self) -> Searcher:
        """For questions that ask for no vectors: they do not wait for the model's module either."""
        return self._make_searcher(None)

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
        rerank: bool | None = None,
        expand: bool = False,
        **scope: Unpack[Scope],
    ) -> Answer:
        """Answer a question. Plain words, or the query language of `mindex search --help`.

        `around` brings so many exchanges before and after each one of a conversation that is found.
        `rerank` has a cross-encoder read the first forty (None: if one is configured); `expand` has a language model
        put the question in other words, too. A stage that fails leaves its note, and the answer without it.
        `floor` is the relevance below which a hit is not shown (None: as the settings say, 0: show all).
        """
        if mode not in MODES:
            raise UsageError(f"unknown mode '{mode}'", f"use one of {', '.join(MODES)}")
        filters = self.filters(**scope)
        if rerank is None:
            rerank = self.settings.text("rerank.provider") != "none"
        asked = Query(
            query, filters, limit, offset, mode, fusion, current_file, floor=floor, rerank=rerank, expand=expand
        )
        answer = self._answered(asked, self._domain_of(current_file) if current_file else None)
        self._note_access([hit.record for hit in answer.hits], "search", query, answer)
        return self._with_surroundings(answer, around, filters.as_of)

    def _answered(self, asked: Query, domain: str | None) -> Answer:
        """An answer from one space: when the model is changed in the middle, it is asked again.

        Vectors that do not fit what is stored, as a server's may from one moment to the next, leave the words.
        """
        if asked.mode == "keyword":
            return self._keyword_searcher.search(asked, domain)
        for _ in range(_MOST_CHANGES):
            try:
                answer = self._searcher.search(asked, domain)
                return replace(answer, notes=(*answer.notes, *self.model_notes()))
            except EmbeddingError as error:
                failure = error
                if not isinstance(error, SpaceChangedError):
                    break
        answer = self._keyword_searcher.search(replace(asked, mode="keyword"), domain)
        return replace(answer, notes=(*answer.notes, f"no vectors: {failure}"))

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
        from mindex.model import CollectionStatus, Status

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
        return Status(
            db=store.location,
            schema=store.schema,
            records=store.records,
            collections=collections,
            embedding=self.embedding_status(),
            tier="keyword" if self.embedder is None else "hybrid",
            size_bytes=store.size_bytes,
            caches=store.caches,
        )

    def doctor(self) -> tuple[Check, ...]:
        """Everything that can be checked, each with what to do about it."""
        from mindex.model import Check

        checks = [*self.store.check(), *self.model_checks()]
        for collection in self.store.collections():
            there = Path(collection.root).is_dir()
            message = f"{collection.root} is there" if there else f"{collection.root} is not there"
            checks.append(Check(f"collection {collection.name}", there, message, "bring the folder back, or remove it"))
        return tuple(checks)

    def optimize(self, *, caches: bool = False) -> dict[str, int]:
        """Remove what expired long ago, rebuild and merge the indexes, give unused space back.

        With `caches` they are emptied, too: answers how many values of each kind went.
        """
        self.purge_expired()
        cleared = self.store.clear_caches() if caches else {}
        self.store.drop_spaces()
        self.store.optimize()
        return cleared


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
