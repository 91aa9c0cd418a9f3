"""Search as a service: check a query, retrieve and rank its candidates, complete the answer, log it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container
from functools import cached_property, partial
from typing import TYPE_CHECKING, Unpack

from mindex.access_log import AccessLog
from mindex.clock import now_ms
from mindex.config import Settings
from mindex.datatypes import Answer, Filters, Mode, Query
from mindex.datatypes.guidance import Guidance
from mindex.embedding.selection import ActiveEmbedder, EmbedderSelection
from mindex.errors import EmbeddingError, SpaceChangedError
from mindex.providers.embed.base import Embedder
from mindex.providers.factory import Providers
from mindex.search.completion import LeftOut, completed, with_correction
from mindex.search.filters import make_filters, moment
from mindex.search.fuse import fusion_named
from mindex.search.option_types import Scope
from mindex.search.page import choose, make_answer
from mindex.search.query import MAX_QUERY, ParsedQuery, parse, parse_plain
from mindex.search.query_checks import checked
from mindex.search.ranking import RankingSettings, rank
from mindex.search.retrieval import Retrieval, Retrieved, retrieve, with_variants, with_window
from mindex.search.substring_tier import substring_answer
from mindex.search.word_evidence import holds_all
from mindex.store.base import Store
from mindex.times import names_time
from mindex.values import replace

if TYPE_CHECKING:  # most searches need none of these (tests/test_costs.py)
    from mindex.datatypes import QueryTime
    from mindex.search.expand import QueryExpander
    from mindex.search.query_embedding import QueryEmbedder
    from mindex.search.rerank import RerankStage

# A search waits no longer than this for variants of its query.
_MAX_EXPANSION_SECONDS = 10.0
# A search waits so long for the vectors of entries that were just added, which a loaded model makes in far less.
# Without them, one in five of 40 was not among the first two hits, on a busy machine.
_SETTLE_SECONDS = 0.3
# A model is changed now and then; three changes during one search mean an embedder that does not fit its space.
_MAX_SPACE_CHANGES = 3


class SearchService:
    """Searches one store. A stage that cannot run leaves the answer of the stage before it, and a note."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        selection: EmbedderSelection,
        providers: Providers,
        access_log: AccessLog,
        *,
        redact: Callable[[str], str],
        query_wait: float | None,
        guidance: Guidance,
        settle: Callable[[float], None],
    ) -> None:
        """`redact` cleans what an expanding language model is shown. `query_wait` and `guidance`: see `Memory`.

        `settle` is the maximum number of seconds to wait for entries that are being embedded.
        """
        self._store = store
        self._settings = settings
        self._selection = selection
        self._providers = providers
        self._access_log = access_log
        self._redact = redact
        self._query_wait = query_wait
        self._guidance = guidance
        self._settle = settle
        self._embedder: tuple[ActiveEmbedder, QueryEmbedder | None] | None = None
        self.tiers: Counter[str] = Counter()  # searches by the tier that answered
        self._left_out = LeftOut(store)

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
        weak: bool | None = None,
        around: int = 0,
        rerank: bool | None = None,
        expand: bool = False,
        inside_words: bool = False,
        logged: bool = True,
        vector_weight: float | None = None,
        keyword_weight: float | None = None,
        guidance: Guidance | None = None,
        passages: bool = False,
        now: str | None = None,
        **scope: Unpack[Scope],
    ) -> Answer:
        """See `SearchOptions`."""
        filters = make_filters(self._store, self._settings.text("agent"), **scope)
        if rerank is None:
            rerank = self._settings.text("rerank.provider") != "none"
        asked, cut = checked(
            Query(
                query,
                filters,
                limit,
                offset,
                mode,
                fusion or self._ranking.fusion,
                floor=floor,
                weak=weak,
                rerank=rerank,
                expand=expand,
                inside_words=inside_words,
                vector_weight=vector_weight,
                keyword_weight=keyword_weight,
                guidance=guidance or self._guidance,
                passages=passages,
                time=self._time_of(query[:MAX_QUERY], now, filters),
            )
        )
        parsed = parse(asked.text)
        # For all that follows, the loose words of a strict query among it: what NOT names is out of scope.
        asked = replace(asked, filters=replace(filters, without=parsed.excluded))
        self._wait_for_vectors(asked)
        ask = partial(self._answer, domain=self._domain_of(current_file) if current_file else None)
        answer = ask(asked, parsed)
        answer = replace(answer, notes=(*cut, *answer.notes))
        if floor is None and (not answer.total or answer.only_weak):
            answer = with_correction(self._store, asked, answer, ask)
        answer = self._left_out.noted(asked, parsed, answer, ask)
        if logged:
            self._access_log.log_search(query, answer)
        self.tiers[answer.tier] += 1
        return completed(self._store, asked, answer, around)

    def log_shown(self, answer: Answer, ids: Container[str]) -> None:
        """See `Memory.log_shown`."""
        self._access_log.log_search(answer.query, answer, ids)

    def count(self, query: str, **scope: Unpack[Scope]) -> int:
        """How many records in scope a keyword search of this query matches, however many candidates it ranks."""
        parsed = parse(query)
        filters = make_filters(self._store, self._settings.text("agent"), **scope)
        for node in (parsed.node, parse_plain(parsed.text).node) if parsed.strict else (parsed.node,):
            matching = replace(filters, matching=node, without=parsed.excluded)
            if node is not None and (total := self._store.retrieval.list(matching, limit=1).total):
                return total
        return 0

    def close(self) -> None:
        if self._embedder is not None and self._embedder[1] is not None:
            self._embedder[1].close()

    def _wait_for_vectors(self, query: Query) -> None:
        """Let entries that were just added be embedded first.

        If vectors decide, a new entry waits for its own as long as for a model; the judgement knows its words.
        """
        if query.mode == "vector" or (query.mode == "hybrid" and fusion_named(query.fusion).vectors_decide):
            self._settle(self._settings.number("embedding.timeout"))
        elif query.mode == "hybrid":
            self._settle(_SETTLE_SECONDS)

    def _answer(self, query: Query, parsed: ParsedQuery, domain: str | None) -> Answer:
        """Retrieve, rank, choose what is shown, and fill the page; `completion` adds what a caller needs beside it."""
        try:
            retrieval = self._retrieval(query)
            retrieved = retrieve(retrieval, query, parsed)
        except EmbeddingError as error:
            retrieval, retrieved = self._retrieved_again(query, parsed, error)
        if query.mode != "keyword" and (notes := self._selection.notes()):
            retrieved = replace(retrieved, notes=(*retrieved.notes, *notes))
        retrieved = with_window(retrieval, query, retrieved)
        if query.expand:
            retrieved = with_variants(retrieval, query, retrieved, lambda: self._expander)
        ranked = rank(self._store, retrieved, query, self._ranking, lambda: self._rerank_stage, domain)
        shown = choose(self._store, ranked, query, self._ranking)
        # A text with all words of the query is a better hit than one with its letters, even in a store full of them.
        if not shown.confident and not holds_all(ranked.candidates.matched_share):
            text, limit = retrieved.parsed.text, self._ranking.candidates
            if by_letters := substring_answer(self._store, query, text, shown.notes, limit):
                return by_letters
        return make_answer(retrieval, retrieved, ranked, shown, query, self._ranking.candidates)

    def _retrieval(self, query: Query, active: ActiveEmbedder | None = None) -> Retrieval:
        by_words = Retrieval(self._store, None, self._ranking.candidates, self._ranking.refining)
        if query.mode == "keyword":
            return by_words
        active = active or self._selection.last_active() or self._selection.active()
        return replace(by_words, embedder=self._embedder_for(active), space=active.space)

    def _retrieved_again(
        self, query: Query, parsed: ParsedQuery, failure: EmbeddingError
    ) -> tuple[Retrieval, Retrieved]:
        """The candidates from the new space if the model was changed during the search.

        Vectors that do not fit the stored ones, as a server's may from one moment to the next, leave the keywords.
        """
        for _ in range(_MAX_SPACE_CHANGES - 1):
            if not isinstance(failure, SpaceChangedError):
                break
            try:
                retrieval = self._retrieval(query, self._selection.active())
                return retrieval, retrieve(retrieval, query, parsed)
            except EmbeddingError as error:
                failure = error
        by_words = replace(query, mode="keyword")
        retrieval = self._retrieval(by_words)
        found = retrieve(retrieval, by_words, parsed)
        return retrieval, replace(found, notes=(*found.notes, f"no vectors: {failure}"))

    def _time_of(self, text: str, asked_at: str | None, filters: Filters) -> QueryTime | None:
        """The time that a query names, seen from when it is asked; None if it names none or none is wanted."""
        now = filters.as_of if asked_at is None else moment(asked_at)
        explicit = filters.after is not None or filters.before is not None
        if explicit or not names_time(text) or not self._settings.flag("search.time"):
            return None
        from mindex.search.question_time import time_of  # few queries name a time (tests/test_costs.py)

        return time_of(self._store, text, now_ms() if now is None else now, filters)

    def _domain_of(self, current_file: str) -> str | None:
        from mindex.files.document_metadata import domain_of_current_file  # only if a caller names its file

        return domain_of_current_file(current_file, self._settings.pairs("index.domains"), self._store.files.domains())

    # ── parts ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _embedder_for(self, active: ActiveEmbedder) -> QueryEmbedder | None:
        """The embedder of queries for a space; another one only if the space is not that of the last search."""
        if active.embedder is not None:
            self._selection.note_use()
        current = self._embedder
        if current is None or current[0] is not active:
            # A search that still uses the one before finishes with it.
            current = self._embedder = (active, self._query_embedder(active.embedder))
        return current[1]

    @cached_property
    def _ranking(self) -> RankingSettings:
        return RankingSettings.of(self._settings)

    def _query_embedder(self, embedder: Embedder | None) -> QueryEmbedder | None:
        if embedder is None:
            return None
        from mindex.embedding.canary import CanaryEmbedder  # only with a model
        from mindex.search.query_embedding import QueryEmbedder  # only with a model

        if isinstance(embedder, CanaryEmbedder):
            embedder = embedder.for_queries()
        return QueryEmbedder(embedder, self._store, self._query_wait, self._settings.number("embedding.timeout"))

    @cached_property
    def _rerank_stage(self) -> RerankStage:
        from mindex.search.rerank import RerankStage  # only with a model

        return RerankStage(self._providers.requested_reranker, self._store, self._settings.number("rerank.timeout"))

    @cached_property
    def _expander(self) -> QueryExpander | None:
        generator = self._providers.generator
        if generator is None:
            return None
        from mindex.search.expand import QueryExpander  # only with a model

        seconds = min(_MAX_EXPANSION_SECONDS, self._settings.number("generation.timeout"))
        return QueryExpander(generator, self._store, seconds, self._redact)
