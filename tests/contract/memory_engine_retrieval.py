"""Reading and searching records of the in-memory engine: every search reads all records in scope."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np

from mindex.analyzer import COLUMNS, analyze_record
from mindex.clock import now_ms
from mindex.datatypes import AnyOf, Filters, KeywordNode, Model, Record, Term, VectorArray
from mindex.errors import EmbeddingError
from mindex.store.base import (
    KeywordQuery,
    KeywordResult,
    Label,
    NearestRecords,
    Neighbours,
    Page,
    RankingContext,
    RankingSignals,
    ScoredRecord,
    TermStatistics,
    TokenChoice,
)
from mindex.store.rules import bm25
from mindex.store.rules.filters import admits, count_held, holds_literally
from mindex.store.rules.kind_groups import first_of_each_group
from mindex.store.rules.neighbours import one_by_one
from mindex.store.rules.spaces import require_role
from tests.contract.memory_engine_entries import session_of
from tests.contract.memory_engine_tables import Connection, Tables


class MemoryRetrieval:
    """Implements `mindex.store.base.RetrievalStore`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # ── reading ───────────────────────────────────────────────────────────────────────────────────────────────

    def records(self, ids: Sequence[str]) -> tuple[Record, ...]:
        return _records(self._connection.read(), ids)

    def record(self, id_: str) -> Record | None:
        return self._connection.read().records.get(id_)

    def resolve(self, prefix: str, limit: int = 10, *, retired: bool = False) -> tuple[str, ...]:
        records = self._connection.read().records.values()
        ids = (one.id for one in records if one.id.startswith(prefix) and (retired or one.retired_at is None))
        return tuple(sorted(ids)[:limit])

    def find_by_foreign_id(self, foreign_id: str, program: str = "") -> tuple[str, ...]:
        found = []
        for record in self._connection.read().records.values():
            ids = record.fields.get("foreign_ids")
            for name, value in ids.items() if isinstance(ids, dict) else ():
                values = value if isinstance(value, list) else [value]
                if program in ("", name) and foreign_id in values and record.id not in found:
                    found.append(record.id)
        return tuple(found)

    def list(self, filters: Filters, *, limit: int, offset: int = 0) -> Page:
        tables = self._connection.read()
        position = {id_: at for ids in tables.chunks.values() for at, id_ in enumerate(ids)}
        scope = _in_scope(tables, filters)
        scope.sort(key=lambda one: (-one.created_at, one.path, position.get(one.id, 0)))
        return Page(tuple(scope[offset : offset + limit]), len(scope))

    def label_counts(self, label: Label, filters: Filters) -> dict[str, int]:
        scope = _in_scope(self._connection.read(), filters)
        labels = (set(one.tags) if label == "tag" else {one.type} - {""} for one in scope)
        return dict(Counter(name for names in labels for name in names))

    def substring(
        self, literals: Sequence[str], filters: Filters, limit: int, *, inside_words: bool = False
    ) -> tuple[str, ...]:
        scope = _in_scope(self._connection.read(), filters)
        found = [one for one in scope if holds_literally(literals, one.text, one.title, inside_words=inside_words)]
        found.sort(key=self._confidence_and_age)
        if inside_words:
            found.sort(key=lambda one: count_held(literals, one.text, one.title, inside_words=True), reverse=True)
        return tuple(one.id for one in found[:limit])

    def _confidence_and_age(self, record: Record) -> tuple[float, int, int]:
        """The order of `substring`: the most confident first, then the last accessed."""
        accesses = self._connection.database.accesses.get(record.id)
        confidence = -1.0 if record.confidence is None else record.confidence
        return -confidence, -(accesses.last_at if accesses else record.updated_at), -record.updated_at

    # ── keywords ──────────────────────────────────────────────────────────────────────────────────────────────

    def keyword(self, query: KeywordQuery, filters: Filters, limit: int) -> KeywordResult:
        tables = self._connection.read()
        scope = _in_scope(tables, filters)
        found = {one.id: one for one in (*scope, *query.past)}
        average = _average_length(tables)
        hits = _ranked(query.node, found.values(), scope, average)[:limit]
        if query.bonus is not None:
            candidates = [found[hit.id] for hit in hits]
            bonus = {hit.id: hit.score for hit in _ranked(query.bonus, candidates, scope, average)}
            hits = [replace(hit, score=hit.score + query.bonus_weight * bonus.get(hit.id, 0.0)) for hit in hits]
            hits.sort(key=lambda hit: (-hit.score, hit.id))
        described = [found[hit.id] for hit in first_of_each_group(hits, query.described)]
        matched = {record.id: bm25.matched_tokens(record, query.tokens) for record in described}
        lengths = {record.id: bm25.length(record) for record in described}
        return KeywordResult(tuple(hits), _statistics(query.tokens, scope), matched, tables.roles.active, lengths)

    def term_statistics(self, tokens: Sequence[str]) -> TermStatistics:
        return _statistics(tokens, _live(self._connection.read()))

    def records_with_tokens(
        self, tokens: Sequence[str], choose: TokenChoice, filters: Filters, limit: int
    ) -> tuple[Record, ...]:
        if not (chosen := choose(self.term_statistics(tokens).frequency)):
            return ()
        query = KeywordQuery(AnyOf(tuple(map(Term, chosen))))
        return self.records([hit.id for hit in self.keyword(query, filters, limit).hits])

    def terms(self, prefix: str, *, shortest: int, longest: int, limit: int) -> dict[str, int]:
        live = _live(self._connection.read())
        held = Counter(token for record in live for token in {*" ".join(analyze_record(record)).split()})
        fitting = (one for one in sorted(held) if one.startswith(prefix) and shortest <= len(one) <= longest)
        return {token: held[token] for token in islice(fitting, limit)}

    # ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────

    def neighbours(self, model: Model, vectors: VectorArray, filters: Filters, limit: int, least: float) -> Neighbours:
        found = one_by_one(lambda vector: self.nearest(model, vector, filters, limit), vectors, least)
        return Neighbours.read(found, self.records)

    def nearest(self, model: Model, vector: VectorArray, filters: Filters, limit: int) -> NearestRecords:
        query = np.asarray(vector, np.float32).reshape(-1)
        if len(query) != model.dimensions:
            raise EmbeddingError(
                f"the query has {len(query)} dimensions, {model.name} has {model.dimensions}",
                "check embedding.model, then run `mindex doctor`",
            )
        tables = self._connection.read()
        require_role(tables.roles, model)
        scope = [one for one in _in_scope(tables, filters) if tables.has_vectors(model, one.id)]
        if not scope:
            return NearestRecords((), 0)
        vectors = [tables.vectors[model.fingerprint, one.id] for one in scope]
        cosines = [one.pieces @ query for one in vectors]
        sizes = Counter(document.collection for document in tables.documents.values())
        hits = [
            ScoredRecord(
                record.id,
                float(pieces.max()),
                record.kind,
                0 if record.kind == "chunk" else len(record.text),
                vector.fluency,
                sizes.get(record.collection, 0) if record.kind == "chunk" else 0,
            )
            for record, pieces, vector in zip(scope, cosines, vectors, strict=True)
        ]
        hits.sort(key=lambda hit: -hit.score)
        return NearestRecords(tuple(first_of_each_group(hits, limit)), sum(map(len, cosines)))

    # ── ranking ───────────────────────────────────────────────────────────────────────────────────────────────

    def ranking_signals(self, ids: Sequence[str]) -> dict[str, RankingSignals]:
        return self._signals(self._connection.read(), ids)

    def ranking_context(
        self, ids: Sequence[str], *, whole: int, filters: Filters, adjacent_to: Sequence[str] = ()
    ) -> RankingContext:
        tables = self._connection.read()
        return RankingContext(
            self._signals(tables, ids),
            _adjacent_turns(tables, adjacent_to, filters),
            {record.id: record for record in _records(tables, ids[:whole])},
        )

    def _signals(self, tables: Tables, ids: Sequence[str]) -> dict[str, RankingSignals]:
        signals = {}
        for record in (tables.records[id_] for id_ in ids if id_ in tables.records):
            accesses = self._connection.database.accesses.get(record.id)
            signals[record.id] = RankingSignals(
                record.id,
                record.kind,
                record.domain,
                record.instruction,
                record.importance,
                record.created_at,
                accesses.count if accesses else 0,
                accesses.last_at if accesses else None,
                record.document or (str(record.fields.get("session_id", "")) if record.kind == "turn" else ""),
            )
        return signals


def _records(tables: Tables, ids: Sequence[str]) -> tuple[Record, ...]:
    found = (tables.records[id_] for id_ in ids if id_ in tables.records)
    return tuple(record for record in found if record.retired_at is None)


def _live(tables: Tables) -> list[Record]:
    return [record for record in tables.records.values() if record.retired_at is None]


def _in_scope(tables: Tables, filters: Filters) -> list[Record]:
    """The live records that filters admit. Those that changed after `as_of` are left out: the caller has their past."""
    now = now_ms()
    changed = {one.record for one in tables.changes.values() if filters.as_of is not None and one.at > filters.as_of}
    return [one for one in tables.records.values() if one.id not in changed and admits(filters, one, now)]


def _ranked(
    node: KeywordNode, records: Iterable[Record], scope: Sequence[Record], average_length: float
) -> list[ScoredRecord]:
    """The records that match, best first; how rare a word is among the records in scope decides what it is worth."""
    statistics = _statistics(sorted(bm25.query_tokens(node)), scope)
    return bm25.score_records(node, list(records), statistics, average_length)


def _average_length(tables: Tables) -> float:
    """The number of tokens that a live record has on average."""
    columns = [analyze_record(record) for record in _live(tables)]
    tokens = sum(len(getattr(one, name).split()) for one in columns for name in COLUMNS)
    return tokens / max(1, len(columns))


def _statistics(tokens: Sequence[str], records: Sequence[Record]) -> TermStatistics:
    frequency = dict.fromkeys(tokens, 0)
    for record in records:
        for token in bm25.matched_tokens(record, tokens):
            frequency[token] += 1
    return TermStatistics(len(records), frequency)


def _adjacent_turns(tables: Tables, ids: Sequence[str], filters: Filters) -> tuple[tuple[str, str], ...]:
    """Pairs of each turn and the one right before or after it in its session, where that is in scope."""
    if not ids:
        return ()
    scope = {record.id for record in _in_scope(tables, filters)}
    pairs = []
    for id_ in ids:
        turns = [turn.id for turn in session_of(tables, id_)]
        if id_ in turns:
            at = turns.index(id_)
            pairs += [(id_, other) for other in (*turns[max(0, at - 1) : at], *turns[at + 1 : at + 2])]
    return tuple((id_, other) for id_, other in pairs if other in scope)
