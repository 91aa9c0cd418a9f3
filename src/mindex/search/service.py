"""Search as a service: the pipeline with the embedder of the active space, and what every answer gets afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Unpack

from mindex.access_log import AccessLog
from mindex.analyzer import analyze
from mindex.clock import now_ms
from mindex.config import Settings
from mindex.datatypes import MODES, Answer, Filters, Mode, Query, Record
from mindex.datatypes.guidance import Guidance
from mindex.embedding.selection import ActiveEmbedder, EmbedderSelection
from mindex.errors import EmbeddingError, SpaceChangedError, UsageError
from mindex.providers.embed.base import Embedder
from mindex.providers.factory import Providers
from mindex.search.boost import Boosts
from mindex.search.candidates import SignalWeights
from mindex.search.filters import make_filters, moment
from mindex.search.fuse import FUSIONS, fusion_named
from mindex.search.guidance import expired_note, unfinished_note
from mindex.search.hit_conflicts import with_conflicts
from mindex.search.keyword_scoring import KeywordWeights
from mindex.search.newer_first import replaced_notes
from mindex.search.option_types import Scope
from mindex.search.query import MAX_LIMIT, MAX_QUERY, parse, parse_plain
from mindex.search.ranking import NO_CONFIDENT_MATCH, RankingSettings, Stages, rank
from mindex.search.retrieval import LOOSELY_FOUND, Retrieval, Retrieved, retrieve
from mindex.search.time_words import names_time
from mindex.search.word_evidence import idf, shares, surprisal_by_id
from mindex.store.base import Store
from mindex.store.damage_notes import damage_notes
from mindex.values import replace

if TYPE_CHECKING:  # most searches need none of these (tests/test_costs.py)
    from mindex.datatypes import QueryTime
    from mindex.search.expand import QueryExpander
    from mindex.search.query_embedding import QueryEmbedder
    from mindex.search.rerank import RerankStage

_MAX_AROUND = 20
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
        self._all_indexed = False  # once every folder was, a search does not ask again

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
        if mode not in MODES:
            raise UsageError(f"unknown mode '{mode}'", f"use one of {', '.join(MODES)}")
        if rerank is None:
            rerank = self._settings.text("rerank.provider") != "none"
        asked = Query(
            query,
            filters,
            limit,
            offset,
            mode,
            fusion,
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
        domain = self._domain_of(current_file) if current_file else None
        asked, cut = self._checked(asked)
        # If vectors decide, a new entry waits for its own as long as for a model; the judgement knows its words.
        if mode == "vector" or (mode == "hybrid" and fusion_named(asked.fusion).vectors_decide):
            self._settle(self._settings.number("embedding.timeout"))
        elif mode == "hybrid":
            self._settle(_SETTLE_SECONDS)
        answer = self._answer(asked, domain)
        answer = replace(answer, notes=(*cut, *answer.notes)) if cut else answer
        if floor is None and (not answer.total or NO_CONFIDENT_MATCH in answer.notes):
            answer = self._with_correction(asked, domain, answer)
        answer = self._with_guidance(asked, answer, domain)
        if answer.tier != "substring":
            answer = replace(answer, terms=parse(answer.corrected_query or query).terms)
        if logged:
            self._access_log.log_search(query, answer)
        self.tiers[answer.tier] += 1
        if answer.total and offset >= answer.total:
            answer = replace(answer, notes=(*answer.notes, f"no results after {offset}: there are {answer.total}"))
        if filters.as_of is None:  # conflicts are those of now
            answer = with_conflicts(self._store, answer, asked.guidance)
            answer = replace(answer, notes=(*answer.notes, *replaced_notes(self._store, asked, answer.hits)))
        if damage := damage_notes(self._store):
            answer = replace(answer, notes=(*answer.notes, *damage))
        return self._with_surroundings(answer, around, filters.as_of)

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

    def rare_words(self, query: str, share: float) -> str:
        """The words of a query without the most common ones, as long as these weigh less than a share of it.

        No record without one of them holds that share of the query, and searching for common words takes longest.
        Words that no record contains have weight, but are also left out; '' when no other ones are left.
        """
        sought = parse(query).terms.tokens
        tokens = {word: sought.intersection(analyze(word).words) for word in query.split()}
        counts = self._store.retrieval.term_statistics(tuple(sought))
        weights = {token: idf(count, counts.records) for token, count in counts.frequency.items()}
        weighed = {word: sum(weights.get(token, 0.0) for token in found) for word, found in tokens.items()}
        left, kept = share * sum(weighed.values()), set(weighed)
        for word, weight in sorted(weighed.items(), key=lambda one: one[1]):
            left -= weight
            if left <= 0:
                break
            kept.discard(word)
        known = {token for token, count in counts.frequency.items() if count}
        return " ".join(word for word, found in tokens.items() if word in kept and not known.isdisjoint(found))

    def word_matches(self, query: str, records: Sequence[Record]) -> dict[str, tuple[float, float]]:
        """The share of a query that each record holds, and how unlikely that is by chance, in nats; by id."""
        tokens = tuple(parse(query).terms.tokens)
        words = {record.id: analyze(f"{record.title} {record.text}").words for record in records}
        matched = {id_: frozenset(tokens).intersection(found) for id_, found in words.items()}
        counts = self._store.retrieval.term_statistics(tokens)
        lengths = {id_: len(found) for id_, found in words.items()}
        held, by_chance = shares(tokens, matched, counts), surprisal_by_id(tokens, matched, lengths, counts)
        return {id_: (held[id_], by_chance[id_]) for id_ in words}

    def close(self) -> None:
        if self._embedder is not None and self._embedder[1] is not None:
            self._embedder[1].close()

    def _answer(self, query: Query, domain: str | None) -> Answer:
        try:
            retrieval = self._retrieval(query)
            retrieved = retrieve(retrieval, query)
        except EmbeddingError as error:
            retrieval, retrieved = self._retrieved_again(query, error)
        if query.mode != "keyword" and (notes := self._selection.notes()):
            retrieved = replace(retrieved, notes=(*retrieved.notes, *notes))
        return rank(retrieval, retrieved, query, self._ranking, self._stages, domain)

    def _retrieval(self, query: Query, active: ActiveEmbedder | None = None) -> Retrieval:
        by_words = Retrieval(self._store, None, self._ranking.candidates, self._ranking.refining)
        if query.mode == "keyword":
            return by_words
        active = active or self._selection.last_active() or self._selection.active()
        return replace(by_words, embedder=self._embedder_for(active), space=active.space)

    def _retrieved_again(self, query: Query, failure: EmbeddingError) -> tuple[Retrieval, Retrieved]:
        """The candidates from the new space if the model was changed during the search.

        Vectors that do not fit the stored ones, as a server's may from one moment to the next, leave the keywords.
        """
        for _ in range(_MAX_SPACE_CHANGES - 1):
            if not isinstance(failure, SpaceChangedError):
                break
            try:
                retrieval = self._retrieval(query, self._selection.active())
                return retrieval, retrieve(retrieval, query)
            except EmbeddingError as error:
                failure = error
        by_words = replace(query, mode="keyword")
        retrieval = self._retrieval(by_words)
        found = retrieve(retrieval, by_words)
        return retrieval, replace(found, notes=(*found.notes, f"no vectors: {failure}"))

    def _time_of(self, text: str, asked_at: str | None, filters: Filters) -> QueryTime | None:
        """The time that a query names, seen from when it is asked; None if it names none or none is wanted."""
        now = filters.as_of if asked_at is None else moment(asked_at)
        explicit = filters.after is not None or filters.before is not None
        if explicit or not names_time(text) or not self._settings.flag("search.time"):
            return None
        from mindex.search.question_time import time_of  # few queries name a time (tests/test_costs.py)

        return time_of(self._store, text, now_ms() if now is None else now, filters)

    def _checked(self, query: Query) -> tuple[Query, tuple[str, ...]]:
        """The query with its amounts in range, and notes on what had to be cut."""
        notes: list[str] = []
        if not query.text.strip():
            raise UsageError("the query is empty", "pass the words to search for")
        if query.limit < 1:
            raise UsageError(f"limit {query.limit} is too small", f"use 1 to {MAX_LIMIT}")
        if query.offset < 0:
            raise UsageError(f"offset {query.offset} is too small", "use 0 or more")
        if query.limit > MAX_LIMIT:
            notes.append(f"limit cut to {MAX_LIMIT}, the maximum")
        if len(query.text) > MAX_QUERY:
            notes.append(f"query cut to {MAX_QUERY} characters")
        fusion = query.fusion or self._ranking.fusion
        fusion_named(fusion)
        _check_weights(query, fusion)
        # For all that follows, the loose words of a strict query among it: what NOT names is out of scope.
        filters = replace(query.filters, without=parse(query.text).excluded)
        limit, text = min(query.limit, MAX_LIMIT), query.text[:MAX_QUERY]
        return replace(query, limit=limit, text=text, fusion=fusion, filters=filters), tuple(notes)

    def _with_correction(self, query: Query, domain: str | None, answer: Answer) -> Answer:
        """The answer to the query with its unknown words corrected, if that has a confident hit that holds them.

        Otherwise the answer as it is, with a note that names the words that may be meant.
        """
        from mindex.search.spelling import correct, did_you_mean, results_for  # most queries have a confident hit

        filters = replace(query.filters, without=parse(query.text).excluded)
        correction = correct(self._store, query.text, filters)
        if correction is None:
            return answer
        corrected = self._answer(replace(query, text=correction.query), domain)
        sure = [
            hit.record
            for hit in corrected.hits
            if not hit.weak
            and corrected.tier != "substring"
            and (hit.trace.matched_share or 0.0) >= correction.needed_share
        ]
        if correction.holds_words_of(sure):
            notes = (results_for(correction), *corrected.notes)
            return replace(corrected, query=query.text, corrected_query=correction.query, notes=notes)
        asked = did_you_mean(correction)
        return replace(answer, notes=(*answer.notes, asked)) if asked else answer

    def _with_guidance(self, query: Query, answer: Answer, domain: str | None) -> Answer:
        """The answer with notes on what its caller can do, where it has no hit that is sure.

        Expired entries are searched again only if there are some.
        """
        sure = any(not hit.weak for hit in answer.hits) and answer.tier != "substring"
        if (sure and LOOSELY_FOUND not in answer.notes) or query.offset:
            return answer
        if expired := self._count_expired(query, domain):
            note = expired_note(expired, query.guidance)
            return replace(answer, notes=(note,) if answer.vacant else (*answer.notes, note))
        if answer.vacant or self._all_indexed:
            return answer
        unfinished = unfinished_note(self._store, query.guidance)
        self._all_indexed = not unfinished
        return replace(answer, notes=(*answer.notes, unfinished)) if unfinished else answer

    def _count_expired(self, query: Query, domain: str | None) -> int:
        """How many hits the query would have among expired entries."""
        now, filters = now_ms(), query.filters
        if filters.include_expired or filters.as_of is not None or "entries" not in self._store.capabilities:
            return 0
        if not self._store.entries.expired(now):
            return 0
        everything = replace(filters, include_expired=True)
        again = replace(query, filters=everything, limit=MAX_LIMIT, weak=False, rerank=False, expand=False)
        found = (hit.record.expires_at for hit in self._answer(again, domain).hits)
        return sum(expires is not None and expires <= now for expires in found)

    def _with_surroundings(self, answer: Answer, around: int, as_of: int | None) -> Answer:
        """The hits with what only a shown hit needs: the state of its anchor, the turns before and after it."""
        if around < 0:
            raise UsageError(f"around {around} is too small", f"use 0 to {_MAX_AROUND}")
        shown = {hit.record.id for hit in answer.hits}
        hits = []
        for hit in answer.hits:
            turns: tuple[Record, ...] = ()
            if around and hit.record.kind == "turn":
                count = min(around, _MAX_AROUND)
                turns = self._store.entries.surrounding_turns(hit.record.id, count, count)
            others = tuple(
                turn for turn in turns if turn.id not in shown and (as_of is None or turn.created_at <= as_of)
            )
            record = current_anchor(hit.record)
            hits.append(hit if record is hit.record and not others else replace(hit, record=record, around=others))
        cut = (f"around cut to {_MAX_AROUND}",) if around > _MAX_AROUND else ()
        return replace(answer, hits=tuple(hits), notes=(*answer.notes, *cut))

    def _domain_of(self, current_file: str) -> str | None:
        # Only when a caller names the file it works on.
        from mindex.files.document_metadata import domain_of_current_file

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
    def _stages(self) -> Stages:
        return Stages(reranking=lambda: self._rerank_stage, expander=lambda: self._expander)

    @cached_property
    def _ranking(self) -> RankingSettings:
        number = self._settings.number
        return RankingSettings(
            fusion=self._settings.text("search.fusion"),
            weights={name: number(f"search.weights.{name}") for name in FUSIONS},
            candidates=self._settings.whole("search.candidates"),
            floor=number("search.floor"),
            weak=self._settings.flag("search.weak"),
            boosts=Boosts(
                number("boost.domain"), number("boost.instruction"), number("boost.memory"), number("memory.decay")
            ),
            refining=KeywordWeights(number("search.weights.pairs"), number("search.weights.coverage")),
            rerank=number("search.weights.rerank") if self._settings.is_set("search.weights.rerank") else None,
            expansion=number("search.weights.expansion"),
            signals=SignalWeights(
                number("search.weights.importance"),
                number("search.weights.recency"),
                number("search.weights.frequency"),
            ),
        )

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


def _check_weights(query: Query, fusion: str) -> None:
    given = {"vector_weight": query.vector_weight, "keyword_weight": query.keyword_weight}
    named = {name: weight for name, weight in given.items() if weight is not None}
    if not named:
        return
    names = " and ".join(named)
    for name, weight in named.items():
        if not 0 <= weight <= 1:  # NaN is neither
            raise UsageError(f"{name} {weight:g} is out of range", "use 0 to 1")
    if not any(weight != 0 for weight in given.values()):
        raise UsageError("vector_weight and keyword_weight are both 0", "set one of them above 0")
    if query.mode != "hybrid":
        raise UsageError(f"{names}: a {query.mode} search has only one score", "use it with mode hybrid")
    if fusion_named(fusion).one_list:
        raise UsageError(f"{names}: the fusion {fusion} has only one score", "use another fusion")


def current_anchor(record: Record) -> Record:
    """The record with the state of its anchor: `fresh`, `drifted` or `gone`. Others are returned unchanged."""
    if "anchor" not in record.fields:
        return record
    from mindex.entries.anchors import with_anchor_state  # few records have one

    return with_anchor_state(record)
