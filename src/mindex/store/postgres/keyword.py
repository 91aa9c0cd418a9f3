"""Keyword search in PostgreSQL: BM25 in plain SQL over our own tokens and our own counts of them.

A query of plain words looks at the records that hold its rarest words first, and at those that hold only common words
where these are too few: a common word says little, and its records are many.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from mindex.analyzer import COLUMN_WEIGHTS, is_lone
from mindex.model import AllOf, AnyOf, Filters, KeywordNode, Phrase, Prefix, Term, Without
from mindex.store.postgres import words
from mindex.store.postgres.connection import Transaction
from mindex.store.postgres.filter_sql import (
    Condition,
    condition,
    join,
    match_condition,
    needle,
    plain_tokens,
    sees_everything,
    token_condition,
)
from mindex.store.postgres.spaces import read_roles
from mindex.store.results import KeywordQuery, KeywordResult, ScoredRecord, TermStatistics
from mindex.store.rules import bm25
from mindex.store.rules.kind_groups import first_of_each_group
from mindex.values import dataclass

_RANKED = """
SELECT hit.record, hit.score, r.kind FROM (
    SELECT w.owner, w.record, w.seq, {score} AS score FROM words w {scoped} WHERE {match}
    ORDER BY score DESC, w.seq LIMIT %s
) hit JOIN records r ON r.owner = hit.owner AND r.id = hit.record ORDER BY hit.score DESC, hit.seq
"""
_SCOPED = "JOIN records r ON r.owner = w.owner AND r.id = w.record"
_SHARE = "%s * (1 - {norm} / ({frequency} + {norm}))"
_OCCURRENCES = "%s * (octet_length(w.{column}) - octet_length(replace(w.{column}, %s, '')))"
_COUNT_IN_SCOPE = f"SELECT {{counts}} FROM words w {_SCOPED} WHERE {{match}}"
_DESCRIBED = "SELECT record, length, tokens FROM words WHERE record = ANY(%s)"
# A scope of at most so many records is counted for itself: how rare a word is among them, not among all.
_SMALL_SCOPE = 2_000
# So many records are scored before a common word of the query is left out of the choice of records.
_CANDIDATES = 2_000


@dataclass(frozen=True, slots=True)
class _Scope:
    """The records that filters leave. Without a condition it is all of them; `size` is counted if small."""

    condition: Condition | None = None
    size: int | None = None


@dataclass(frozen=True, slots=True)
class _Counts:
    """How common the tokens of a query are, and how many tokens a live record has on average."""

    statistics: TermStatistics
    average_length: float


def search(transaction: Transaction, query: KeywordQuery, filters: Filters, limit: int, now: int) -> KeywordResult:
    """See `RetrievalStore.keyword`. The transaction is one snapshot."""
    scope = _scope_of(transaction, filters, now)
    counts = _read_counts(transaction, query, scope)
    hits = _ranked(transaction, query, query.node, scope, limit, counts)
    if query.bonus is not None and hits:
        bonus = {hit.id: hit.score for hit in _ranked(transaction, query, query.bonus, scope, limit, counts)}
        hits = _best_first(hit.with_score(hit.score + query.bonus_weight * bonus.get(hit.id, 0.0)) for hit in hits)
    described = first_of_each_group(hits, query.described)
    past = {record.id: record for record in query.past}
    matched, lengths = _described(transaction, [hit.id for hit in described if hit.id not in past], query.tokens)
    for hit in described:
        if hit.id in past:
            matched[hit.id] = bm25.matched_tokens(past[hit.id], query.tokens)
            lengths[hit.id] = bm25.length(past[hit.id])
    frequency = counts.statistics.frequency
    statistics = TermStatistics(counts.statistics.records, {token: frequency[token] for token in query.tokens})
    return KeywordResult(
        hits, statistics if query.tokens else TermStatistics(0, {}), matched, read_roles(transaction).active, lengths
    )


def statistics(transaction: Transaction, tokens: Sequence[str]) -> TermStatistics:
    """How common tokens are among all live records."""
    return _statistics(transaction, tokens, _Scope()).statistics


# ── ranking ───────────────────────────────────────────────────────────────────────────────────────────────────


def _ranked(
    transaction: Transaction, query: KeywordQuery, node: KeywordNode, scope: _Scope, limit: int, counts: _Counts
) -> tuple[ScoredRecord, ...]:
    """The best records for a node, those of the past among them."""
    hits = _ranked_in_index(transaction, node, scope, limit, counts)
    if not query.past:
        return hits
    past = bm25.score_records(node, query.past, counts.statistics, counts.average_length)
    return _best_first((*hits, *past))[:limit]


def _best_first(hits: Iterable[ScoredRecord]) -> tuple[ScoredRecord, ...]:
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.id)))


def _ranked_in_index(
    transaction: Transaction, node: KeywordNode, scope: _Scope, limit: int, counts: _Counts
) -> tuple[ScoredRecord, ...]:
    score = _score(node, counts)
    frequency = counts.statistics.frequency
    tokens = plain_tokens(node)
    if not tokens or scope.size is not None:
        return _read_ranked(transaction, score, match_condition(transaction, node), scope, limit)
    rarest = sorted((token for token in tokens if frequency[token]), key=lambda one: frequency[one])
    chosen = _rarest([frequency[token] for token in rarest])
    while rarest:
        match = Condition("w.tokens && %s::text[]", (rarest[:chosen],))
        hits = _read_ranked(transaction, score, match, scope, limit)
        if len(hits) >= limit or chosen >= len(rarest):
            return hits
        chosen += 1
    return ()


def _rarest(frequencies: Sequence[int]) -> int:
    """How many tokens, the rarest first, choose the records that are scored; at least one."""
    total = 0
    for at, frequency in enumerate(frequencies):
        total += frequency
        if total > _CANDIDATES:
            return max(1, at)
    return len(frequencies)


def _read_ranked(
    transaction: Transaction, score: Condition, match: Condition, scope: _Scope, limit: int
) -> tuple[ScoredRecord, ...]:
    where = match if scope.condition is None else join(" AND ", [match, scope.condition])
    query = _RANKED.format(score=score.sql, scoped="" if scope.condition is None else _SCOPED, match=where.sql)
    rows = transaction.rows(query, *score.parameters, *where.parameters, limit)
    return tuple(ScoredRecord(id_, max(value, bm25.LEAST_SCORE), kind) for id_, value, kind in rows)


def _score(node: KeywordNode, counts: _Counts) -> Condition:
    """BM25 as `rules.bm25` defines it, for a row of `words w`; f / (f + norm) is written as 1 - norm / (f + norm)."""
    per_token = bm25.K1 * bm25.B / max(1.0, counts.average_length)
    # As float8: a bare number would be a `numeric`, which takes twice the time of all the rest.
    norm = f"({bm25.K1 * (1 - bm25.B)}::float8 + {per_token}::float8 * w.length)"
    shares = []
    for leaf in _leaves(node):
        frequency = _frequency(leaf)
        weight = bm25.idf(_holders(leaf, counts.statistics), counts.statistics.records) * (bm25.K1 + 1)
        share = _SHARE.format(norm=norm, frequency=frequency.sql)
        shares.append(Condition(share, (weight, *frequency.parameters)))
    return join(" + ", shares)


def _frequency(leaf: Term | Prefix | Phrase) -> Condition:
    """How often a row holds a leaf, each occurrence counted by the weight of its column."""
    if isinstance(leaf, Term) and leaf.column is None:
        return Condition("coalesce(w.weights[array_position(w.tokens, %s)], 0)", (leaf.token,))
    text = needle(leaf)
    size = len(text.encode())
    columns = [leaf.column] if leaf.column else list(COLUMN_WEIGHTS)
    counted = [Condition(_OCCURRENCES.format(column=one), (COLUMN_WEIGHTS[one] / size, text)) for one in columns]
    joined = join(" + ", counted)
    return Condition(f"({joined.sql})", joined.parameters)


def _leaves(node: KeywordNode) -> list[Term | Prefix | Phrase]:
    match node:
        case AllOf(nodes) | AnyOf(nodes):
            return [leaf for one in nodes for leaf in _leaves(one)]
        case Without(keep, _):
            return _leaves(keep)
        case _:
            return [node]


def _holders(leaf: Term | Prefix | Phrase, counts: TermStatistics) -> int:
    if isinstance(leaf, Phrase):
        return min(counts.frequency[token] for token in leaf.tokens)
    return counts.frequency[leaf.token]


# ── counts ────────────────────────────────────────────────────────────────────────────────────────────────────


def _scope_of(transaction: Transaction, filters: Filters, now: int) -> _Scope:
    if sees_everything(transaction, filters, now):
        return _Scope()
    scope = condition(transaction, filters, now)
    return _Scope(scope, _size_if_small(transaction, filters, scope))


def _size_if_small(transaction: Transaction, filters: Filters, scope: Condition) -> int | None:
    """How many records are in scope, if few: of a scope that indexes know, an agent, kind, collection or session."""
    whose = Filters(agent=filters.agent, kinds=filters.kinds, collections=filters.collections, session=filters.session)
    if replace(filters, include_expired=whose.include_expired) != whose:
        return None
    count = f"SELECT count(*) FROM (SELECT 1 FROM records r WHERE {scope.sql} LIMIT %s) few"
    size = int(transaction.value(count, *scope.parameters, _SMALL_SCOPE + 1))
    return size if size <= _SMALL_SCOPE else None


def _read_counts(transaction: Transaction, query: KeywordQuery, scope: _Scope) -> _Counts:
    """All counts that a query needs, in one read."""
    bonus = bm25.query_tokens(query.bonus) if query.bonus is not None else ()
    return _statistics(transaction, [*query.tokens, *sorted(bm25.query_tokens(query.node)), *sorted(bonus)], scope)


def _statistics(transaction: Transaction, tokens: Sequence[str], scope: _Scope) -> _Counts:
    """How common tokens are among the records in scope, where these are few; else among all."""
    tokens = list(dict.fromkeys(tokens))
    is_small = scope.size is not None
    counts = words.read_counts(transaction, [words.RECORDS, words.LENGTH, *(() if is_small else tokens)])
    average = counts[words.LENGTH] / max(1, counts[words.RECORDS])
    if scope.condition is not None and scope.size is not None:
        frequency = _count_in_scope(transaction, tokens, scope.condition)
        return _Counts(TermStatistics(scope.size, frequency), average)
    frequency = {token: counts[token] for token in tokens}
    for token in filter(is_lone, tokens):
        held = token_condition(transaction, token)
        frequency[token] = transaction.value(f"SELECT count(*) FROM words w WHERE {held.sql}", *held.parameters)
    return _Counts(TermStatistics(counts[words.RECORDS], frequency), average)


def _count_in_scope(transaction: Transaction, tokens: Sequence[str], scope: Condition) -> dict[str, int]:
    if not tokens:
        return {}
    held = [token_condition(transaction, token) for token in tokens]
    counted = join(", ", [Condition(f"count(*) FILTER (WHERE {one.sql})", one.parameters) for one in held])
    query = _COUNT_IN_SCOPE.format(counts=counted.sql, match=scope.sql)
    row = transaction.row(query, *counted.parameters, *scope.parameters)
    assert row is not None
    return dict(zip(tokens, row, strict=True))


def _described(
    transaction: Transaction, ids: Sequence[str], tokens: Sequence[str]
) -> tuple[dict[str, frozenset[str]], dict[str, int]]:
    """Which of the tokens each record holds, and how many it has in all."""
    if not ids:
        return {}, {}
    wanted, lone = frozenset(tokens), [token for token in tokens if is_lone(token)]
    matched, lengths = {}, {}
    for id_, length, held in transaction.rows(_DESCRIBED, list(ids)):
        first = {token[0] for token in held} if lone else set()
        matched[id_] = wanted.intersection(held) | first.intersection(lone)
        lengths[id_] = length
    return matched, lengths
