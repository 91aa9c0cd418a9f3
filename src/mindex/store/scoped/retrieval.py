"""Reading and searching as one principal may: every filter is narrowed to what it sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mindex.datatypes import Filters, Model, Record, Term, VectorArray
from mindex.store.base import (
    KeywordQuery,
    KeywordResult,
    Label,
    NearestRecords,
    Neighbours,
    Page,
    RankingContext,
    RankingSignals,
    TermStatistics,
    TokenChoice,
)
from mindex.store.scoped.rules import AccessRules


class ScopedRetrieval:
    """Implements `mindex.store.base.RetrievalStore`."""

    def __init__(self, rules: AccessRules) -> None:
        self._rules = rules
        self._retrieval = rules.store.retrieval

    def records(self, ids: Sequence[str]) -> tuple[Record, ...]:
        return tuple(filter(self._rules.sees, self._retrieval.records(ids)))

    def record(self, id_: str) -> Record | None:
        record = self._retrieval.record(id_)
        return record if record is not None and self._rules.sees(record) else None

    def resolve(self, prefix: str, limit: int = 10, *, retired: bool = False) -> tuple[str, ...]:
        """As many as are wanted, however many records of others have ids that start so."""
        read = limit
        while True:
            found = self._retrieval.resolve(prefix, read, retired=retired)
            visible = self._rules.visible(found)
            if len(visible) >= limit or len(found) < read:
                return tuple(visible[:limit])
            read *= 4

    def find_by_foreign_id(self, foreign_id: str, program: str = "") -> tuple[str, ...]:
        return tuple(self._rules.visible(self._retrieval.find_by_foreign_id(foreign_id, program)))

    def list(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        return self._retrieval.list(self._rules.filters(filters), limit=limit, offset=offset)

    def label_counts(self, label: Label, filters: Filters) -> dict[str, int]:
        return self._retrieval.label_counts(label, self._rules.filters(filters))

    def substring(
        self, literals: Sequence[str], filters: Filters, limit: int, *, inside_words: bool = False
    ) -> tuple[str, ...]:
        return self._retrieval.substring(literals, self._rules.filters(filters), limit, inside_words=inside_words)

    def keyword(self, query: KeywordQuery, filters: Filters, limit: int) -> KeywordResult:
        query = replace(query, past=tuple(filter(self._rules.sees, query.past)))
        return self._retrieval.keyword(query, self._rules.filters(filters), limit)

    def term_statistics(self, tokens: Sequence[str]) -> TermStatistics:
        """Tokens that only records of others hold are counted 0: else a note on unknown words would tell of them."""
        everywhere = self._retrieval.term_statistics(tokens)
        scope = self._rules.filters(Filters(agent=self._rules.principal.agent, include_expired=True))
        frequency = {
            token: count if count and self._retrieval.keyword(KeywordQuery(Term(token)), scope, 1).hits else 0
            for token, count in everywhere.frequency.items()
        }
        return TermStatistics(everywhere.records, frequency)

    def records_with_tokens(
        self, tokens: Sequence[str], choose: TokenChoice, filters: Filters, limit: int
    ) -> tuple[Record, ...]:
        """`choose` sees the frequencies in all records: nothing but the choice of tokens depends on them."""
        return self._retrieval.records_with_tokens(tokens, choose, self._rules.filters(filters), limit)

    def terms(self, prefix: str, *, shortest: int, longest: int, limit: int) -> dict[str, int]:
        """Tokens of all records: spelling suggests one only if a record in scope contains it."""
        return self._retrieval.terms(prefix, shortest=shortest, longest=longest, limit=limit)

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        return self._retrieval.nearest(model, vector, self._rules.filters(filters), limit)

    def neighbours(self, model: Model, vectors: VectorArray, filters: Filters, limit: int, least: float) -> Neighbours:
        return self._retrieval.neighbours(model, vectors, self._rules.filters(filters), limit, least)

    def ranking_signals(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        return self._retrieval.ranking_signals(self._rules.visible(ids))

    def ranking_context(
        self, ids: Sequence[str], *, whole: int, filters: Filters, adjacent_to: Sequence[str] = ()
    ) -> RankingContext:
        """The ids are candidates of this store, which has left out what is not seen."""
        filters = self._rules.filters(filters)
        context = self._retrieval.ranking_context(ids, whole=whole, filters=filters, adjacent_to=adjacent_to)
        return replace(context, records={id_: one for id_, one in context.records.items() if self._rules.sees(one)})
