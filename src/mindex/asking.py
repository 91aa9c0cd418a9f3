"""The part of the front door for questions: what searches, with which models, in which scope, and who was wanted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict, Unpack

from mindex.clock import now_ms, parse_time
from mindex.errors import EmbeddingError, SpaceChangedError, UsageError
from mindex.filing import Filing
from mindex.model import KINDS, MODES, TYPES, Answer, Filters, Mode, Query, Record
from mindex.modelling import ActiveEmbedder
from mindex.providers.embed.base import Embedder
from mindex.search.boost import Boosts
from mindex.search.fuse import FUSIONS
from mindex.search.keyword_scoring import KeywordWeights
from mindex.search.pipeline import RankingSettings, SearchPipeline
from mindex.store.base import Access
from mindex.values import dataclass

if TYPE_CHECKING:  # what most questions do without
    from mindex.search.expand import QueryExpander
    from mindex.search.query_embedding import QueryEmbedder
    from mindex.search.rerank import RerankStage

_MOST_AROUND = 20
# A question waits no longer than this for other words to be asked in.
_MOST_EXPANDING = 10.0
# A model is changed now and then; whoever meets it three times in one question brought one that does not fit.
_MOST_CHANGES = 3


@dataclass(frozen=True, slots=True)
class _Asking:
    """What answers questions, and for whose vectors it was made."""

    held: ActiveEmbedder
    embedder: QueryEmbedder | None
    searcher: SearchPipeline


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


class Asking(Filing):
    """Mixed into Memory. A stage that cannot be had leaves the one before it standing."""

    _query_wait: float | None
    _asking: _Asking | None = None

    # ── models, made when first needed ────────────────────────────────────────────────────────────────────────

    def _query_embedder(self, embedder: Embedder | None) -> QueryEmbedder | None:
        if embedder is None:
            return None
        from mindex.embedding.canary import CanaryEmbedder
        from mindex.search.query_embedding import QueryEmbedder

        if isinstance(embedder, CanaryEmbedder):
            embedder = embedder.for_questions()
        return QueryEmbedder(embedder, self.store, self._query_wait, self.settings.number("embedding.timeout"))

    @cached_property
    def _ranking(self) -> RankingSettings:
        settings = self.settings
        return RankingSettings(
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
            refining=KeywordWeights(
                settings.number("search.weights.pairs"), settings.number("search.weights.coverage")
            ),
            neighbours=settings.number("search.weights.neighbours"),
            rerank=settings.number("search.weights.rerank"),
            expansion=settings.number("search.weights.expansion"),
        )

    def _make_searcher(self, embedder: QueryEmbedder | None) -> SearchPipeline:
        return SearchPipeline(
            self.store,
            embedder,
            self._ranking,
            reranking=lambda: self._reranking,
            expander=lambda: self._expander,
        )

    @cached_property
    def _reranking(self) -> RerankStage:
        """With the reranker of the settings; whoever asks for one without naming it means the local one."""
        from mindex.providers.rerank.base import create_reranker
        from mindex.search.rerank import RerankStage

        reranker = self.reranker or create_reranker(replace(self._provider_settings("rerank"), provider="local"))
        assert reranker is not None  # only `none` has none
        return RerankStage(reranker, self.store, self.settings.number("rerank.timeout"))

    @cached_property
    def _expander(self) -> QueryExpander | None:
        if self.generator is None:
            return None
        from mindex.search.expand import QueryExpander

        seconds = min(_MOST_EXPANDING, self.settings.number("generation.timeout"))
        # The boundary's patterns are compiled when a question crosses it: for a model that is down, none does.
        return QueryExpander(self.generator, self.store, seconds, lambda text: self._boundary(reading=True)(text))

    @property
    def _searcher(self) -> SearchPipeline:
        """For the space that is searched now: another process may have changed the model since the last question."""
        held = self.held()
        asking = self._asking
        if asking is None or asking.held is not held:
            embedder = self._query_embedder(held.embedder)
            # Whoever still asks with the one before finishes with it; it ends when nobody holds it any more.
            asking = self._asking = _Asking(held, embedder, self._make_searcher(embedder))
        return asking.searcher

    @cached_property
    def _keyword_searcher(self) -> SearchPipeline:
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
        if answer.total and offset >= answer.total:
            answer = replace(answer, notes=(*answer.notes, f"nothing is left after {offset}: there are {answer.total}"))
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
                turns = self.store.entries.surrounding_turns(
                    hit.record.id, min(around, _MOST_AROUND), min(around, _MOST_AROUND)
                )
            beside = tuple(
                turn for turn in turns if turn.id not in shown and (as_of is None or turn.created_at <= as_of)
            )
            hits.append(replace(hit, record=with_anchor_state(hit.record), around=beside))
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
            _known("collection", collections, [collection.name for collection in self.store.files.collections()])
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
        from mindex.ingest.document_metadata import domain_of

        return domain_of(current_file, self.settings.pairs("index.domains"), self.store.files.domains())

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
        self.store.entries.log_access(told, oldest=now - int(days * 86_400_000), rows=rows)


def with_anchor_state(record: Record) -> Record:
    """A record whose anchor says where it stands now, and whether what was there still is."""
    kept = record.fields.get("anchor")
    if not isinstance(kept, Mapping):
        return record
    from mindex.memories.anchors import anchor_state

    now = anchor_state(kept)
    return replace(record, fields={**record.fields, "anchor": {**kept, "at": now.at, "state": now.state}})


def _known(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    for value in given:
        if value not in known:
            raise UsageError(f"unknown {what} '{value}'", f"use one of {', '.join(known) or '(there is none yet)'}")
