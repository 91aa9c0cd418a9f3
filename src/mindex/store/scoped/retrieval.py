"""Reading and searching as one principal may: every filter is narrowed to what it sees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mindex.datatypes import Filters, Record, Term
from mindex.store.base import (
    KeywordQuery,
    KeywordResult,
    RankingContext,
    RankingSignals,
    RetrievalStore,
    TermStatistics,
)
from mindex.store.scoped.rules import ScopedGroup, narrowed, unchanged


class ScopedRetrieval(ScopedGroup[RetrievalStore]):
    """Implements `mindex.store.base.RetrievalStore`."""

    def records(self, ids: Sequence[str]) -> tuple[Record, ...]:
        return tuple(filter(self._rules.sees, self._group.records(ids)))

    def record(self, id_: str) -> Record | None:
        record = self._group.record(id_)
        return record if record is not None and self._rules.sees(record) else None

    def resolve(self, prefix: str, limit: int = 10, *, retired: bool = False) -> tuple[str, ...]:
        """As many as are wanted, however many records of others have ids that start so."""
        read = limit
        while True:
            found = self._group.resolve(prefix, read, retired=retired)
            visible = self._rules.visible(found)
            if len(visible) >= limit or len(found) < read:
                return tuple(visible[:limit])
            read *= 4

    def find_by_foreign_id(self, foreign_id: str, program: str = "") -> tuple[str, ...]:
        return tuple(self._rules.visible(self._group.find_by_foreign_id(foreign_id, program)))

    list = narrowed(RetrievalStore.list)
    label_counts = narrowed(RetrievalStore.label_counts)
    substring = narrowed(RetrievalStore.substring)

    def keyword(self, query: KeywordQuery, filters: Filters, limit: int) -> KeywordResult:
        query = replace(query, past=tuple(filter(self._rules.sees, query.past)))
        return self._group.keyword(query, self._rules.filters(filters), limit)

    def term_statistics(self, tokens: Sequence[str]) -> TermStatistics:
        """Tokens that only records of others hold are counted 0: else a note on unknown words would tell of them."""
        everywhere = self._group.term_statistics(tokens)
        scope = self._rules.filters(Filters(agent=self._rules.principal.agent, include_expired=True))
        frequency = {
            token: count if count and self._group.keyword(KeywordQuery(Term(token)), scope, 1).hits else 0
            for token, count in everywhere.frequency.items()
        }
        return TermStatistics(everywhere.records, frequency)

    # `choose` sees the frequencies in all records: nothing but the choice of tokens depends on them.
    records_with_tokens = narrowed(RetrievalStore.records_with_tokens)
    # Tokens of all records: spelling suggests one only if a record in scope contains it.
    terms = unchanged(RetrievalStore.terms)
    nearest = narrowed(RetrievalStore.nearest)
    neighbours = narrowed(RetrievalStore.neighbours)

    def ranking_signals(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        return self._group.ranking_signals(self._rules.visible(ids))

    def ranking_context(
        self, ids: Sequence[str], *, whole: int, filters: Filters, adjacent_to: Sequence[str] = ()
    ) -> RankingContext:
        """The ids are candidates of this store, which has left out what is not seen."""
        filters = self._rules.filters(filters)
        context = self._group.ranking_context(ids, whole=whole, filters=filters, adjacent_to=adjacent_to)
        return replace(context, records={id_: one for id_, one in context.records.items() if self._rules.sees(one)})
