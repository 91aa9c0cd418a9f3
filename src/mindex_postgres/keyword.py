"""Keyword search in PostgreSQL: BM25 in plain SQL over our own tokens and our own counts of them.

A query of plain words looks at the records that hold its rarest words first, and at those that hold only common words
where these are too few: a common word says little, and its records are many.
"""

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from mindex.analyzer import COLUMN_WEIGHTS, COLUMNS, is_lone
from mindex.datatypes import AllOf, AnyOf, Filters, KeywordNode, Phrase, Prefix, Term, Without
from mindex.store.base import KeywordQuery, KeywordResult, ScoredRecord, TermStatistics
from mindex.store.engine_parts import (
    Condition,
    KeywordScope,
    best_first,
    bm25,
    first_of_each_group,
    is_countable,
    join,
    plain_terms,
    size_if_small,
    space_rows,
)
from mindex.values import dataclass
from mindex_postgres import words
from mindex_postgres.filter_sql import (
    condition,
    holds_any,
    match_condition,
    needle,
    sees_everything,
    token_condition,
)
from mindex_postgres.transaction import Transaction

# `w` is first a row of `terms`, then one of the best of them: what is wanted of these alone is read for no other row.
_RANKED = """
SELECT w.record, w.score, r.kind, w.length, {gaps}, {bonus}, {held} FROM (
    SELECT w.*, {score} AS score FROM terms w {joined} WHERE {match} ORDER BY score DESC, w.seq LIMIT %s
) w JOIN records r ON r.owner = w.owner AND r.id = w.record {texts} ORDER BY w.score DESC, w.seq
"""
_SCOPED = "JOIN records r ON r.owner = w.owner AND r.id = w.record"
_TEXTS = "JOIN words t ON t.owner = w.owner AND t.record = w.record"
_HOLDS = "w.terms[width_bucket({number}::bigint, w.terms)] = {number}"
_FREQUENCY = "w.frequencies[width_bucket({number}::bigint, w.terms)]"
_SHARE = "CASE WHEN {holds} THEN %s * (1 - {norm} / ({frequency} + {norm})) ELSE 0 END"
# Added to the length of a hit: SQLite counts the spaces around tokens and empty columns, and the weights of a search
# were chosen with these lengths.
_FULL = ", ".join(f"nullif(t.{column}, '')" for column in COLUMNS)
_GAPS = f"{len(COLUMNS) + 1} - num_nonnulls({_FULL})"
_OCCURRENCES = "%s * (octet_length(t.{column}) - octet_length(replace(t.{column}, %s, '')))"
_COUNT_IN_SCOPE = f"SELECT {{counts}} FROM terms w {_SCOPED} WHERE {{match}}"
# This number of records is scored before a common word of the query is left out of the choice of records.
_CANDIDATES = 3_000


@dataclass(frozen=True, slots=True)
class _Counts:
    """How common the tokens and phrases of a query are, and how many tokens a live record has on average."""

    statistics: TermStatistics
    average_length: float
    phrases: Mapping[Phrase, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _IndexHit:
    """A record of the index that matches: how often it holds each leaf of the bonus, and which tokens of the query."""

    hit: ScoredRecord
    frequencies: Sequence[float]
    matched: frozenset[str]
    length: int
    gaps: int


class KeywordSearch:
    """Keyword searches in one snapshot."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def statistics(self, tokens: Sequence[str]) -> TermStatistics:
        return _statistics(self._transaction, tokens, KeywordScope()).statistics

    def search(self, query: KeywordQuery, filters: Filters, limit: int, now: int) -> KeywordResult:
        """See `RetrievalStore.keyword`."""
        transaction = self._transaction
        scope = _scope_of(transaction, filters, now)
        counts = _read_counts(transaction, query, scope)
        found = {one.hit.id: one for one in _ranked_in_index(transaction, query, scope, limit, counts)}
        hits = tuple(one.hit for one in found.values())
        past = {record.id: record for record in query.past}
        if past:
            hits = best_first((*hits, *_scores_of_past(query.node, query, counts)))[:limit]
        if query.bonus is not None:
            bonus = _bonus_scores(query.bonus, list(found.values()), counts, is_all=len(found) < limit)
            bonus |= {hit.id: hit.score for hit in _scores_of_past(query.bonus, query, counts)}
            hits = best_first(hit.with_score(hit.score + query.bonus_weight * bonus.get(hit.id, 0.0)) for hit in hits)
        described = [hit.id for hit in first_of_each_group(hits, query.described)]
        frequency = counts.statistics.frequency
        statistics = TermStatistics(counts.statistics.records, {token: frequency[token] for token in query.tokens})
        return KeywordResult(
            hits,
            statistics if query.tokens else TermStatistics(0, {}),
            {
                id_: bm25.matched_tokens(past[id_], query.tokens) if id_ in past else found[id_].matched
                for id_ in described
            },
            space_rows.read_roles(transaction).active,
            {id_: bm25.length(past[id_]) if id_ in past else found[id_].length + found[id_].gaps for id_ in described},
        )


# ── ranking ───────────────────────────────────────────────────────────────────────────────────────────────────


def _scores_of_past(node: KeywordNode, query: KeywordQuery, counts: _Counts) -> list[ScoredRecord]:
    return bm25.score_records(node, query.past, counts.statistics, counts.average_length)


def _bonus_scores(node: KeywordNode, found: Sequence[_IndexHit], counts: _Counts, *, is_all: bool) -> dict[str, float]:
    """The scores of the bonus. `is_all` says that these are all records that match the query.

    No table knows how many records hold a phrase: where these are not all, it is taken to be in the middle, by ratio,
    between its holders among them and those of its rarest token.
    """
    scores = dict.fromkeys((one.hit.id for one in found), 0.0)
    for at, leaf in enumerate(bm25.wanted_leaves(node)):
        held = [(one, one.frequencies[at]) for one in found if one.frequencies and one.frequencies[at]]
        holders = _holders(leaf, counts)
        if isinstance(leaf, Phrase):
            holders = len(held) if is_all else int((len(held) * holders) ** 0.5)
        weight = bm25.idf(min(holders, counts.statistics.records), counts.statistics.records) * (bm25.K1 + 1)
        for one, frequency in held:
            norm = bm25.K1 * (1 - bm25.B + bm25.B * one.length / max(1.0, counts.average_length))
            scores[one.hit.id] += weight * frequency / (frequency + norm)
    return scores


def _ranked_in_index(
    transaction: Transaction, query: KeywordQuery, scope: KeywordScope, limit: int, counts: _Counts
) -> list[_IndexHit]:
    """The best records of the index for a query, without its bonus."""
    ranking = _Ranking(transaction, query, counts, scope.condition, limit)
    frequency = counts.statistics.frequency
    tokens = [term.token for term in plain_terms(query.node)]
    if not tokens or scope.size is not None:
        return ranking.read(match_condition(transaction, query.node))
    rarest = sorted((token for token in tokens if frequency[token]), key=lambda one: frequency[one])
    chosen = _rarest([frequency[token] for token in rarest])
    while rarest:
        hits = ranking.read(holds_any(rarest[:chosen]))
        if len(hits) >= limit or chosen >= len(rarest):
            return hits
        chosen += 1
    return []


def _rarest(frequencies: Sequence[int]) -> int:
    """How many tokens, the rarest first, choose the records that are scored; at least one."""
    total = 0
    for at, frequency in enumerate(frequencies):
        total += frequency
        if total > _CANDIDATES:
            return max(1, at)
    return len(frequencies)


class _Ranking:
    """The statement that ranks records for one query, but for the choice of these records."""

    def __init__(
        self, transaction: Transaction, query: KeywordQuery, counts: _Counts, scope: Condition | None, limit: int
    ) -> None:
        self._transaction = transaction
        self._tokens = query.tokens if query.described else ()
        self._scope = scope
        self._limit = limit
        self._score = _score(query.node, counts)
        self._bonus = _frequencies(transaction, query.bonus) if query.bonus is not None else Condition("'{}'::real[]")
        held = join(", ", [_held(transaction, token) for token in self._tokens])
        self._held = Condition(f"ARRAY[{held.sql}]::boolean[]", held.parameters)
        self._gaps = _GAPS if query.described else "0"
        self._node_texts = _TEXTS if _needs_texts(query.node) else ""
        self._hit_texts = _TEXTS if query.described or _needs_texts(query.bonus) else ""

    def read(self, match: Condition) -> list[_IndexHit]:
        """The best of the records that fulfil a condition."""
        where = match if self._scope is None else join(" AND ", [match, self._scope])
        query = _RANKED.format(
            gaps=self._gaps,
            bonus=self._bonus.sql,
            held=self._held.sql,
            score=self._score.sql,
            joined=f"{self._node_texts} {_SCOPED if self._scope else ''}",
            match=where.sql,
            texts=self._hit_texts,
        )
        values = (*self._bonus.parameters, *self._held.parameters, *self._score.parameters, *where.parameters)
        return [
            _IndexHit(
                ScoredRecord(id_, max(score, bm25.MIN_SCORE), kind),
                frequencies or (),
                frozenset(token for token, holds in zip(self._tokens, held, strict=True) if holds),
                length,
                gaps,
            )
            for id_, score, kind, length, gaps, frequencies, held in self._transaction.rows(query, *values, self._limit)
        ]


def _score(node: KeywordNode, counts: _Counts) -> Condition:
    """BM25 as `rules.bm25` defines it, for a row of `terms w`; f / (f + norm) is written as 1 - norm / (f + norm)."""
    per_token = bm25.K1 * bm25.B / max(1.0, counts.average_length)
    # As float8: a bare number would be a `numeric`, which takes twice the time of all the rest.
    norm = f"({bm25.K1 * (1 - bm25.B)}::float8 + {per_token}::float8 * w.length)"
    shares = []
    for leaf in bm25.wanted_leaves(node):
        holds, frequency = _holds(leaf), _frequency(leaf)
        weight = bm25.idf(_holders(leaf, counts), counts.statistics.records) * (bm25.K1 + 1)
        share = _SHARE.format(holds=holds, norm=norm, frequency=frequency.sql)
        shares.append(Condition(share, (weight, *frequency.parameters)))
    return join(" + ", shares)


def _frequencies(transaction: Transaction, node: KeywordNode) -> Condition:
    """How often a row holds each leaf of a node; NULL where it does not match."""
    frequencies = []
    for leaf in bm25.wanted_leaves(node):
        frequency = _frequency(leaf)
        frequencies.append(Condition(f"CASE WHEN {_holds(leaf)} THEN {frequency.sql} ELSE 0 END", frequency.parameters))
    listed = join(", ", frequencies)
    if all(isinstance(one, AnyOf) for one in _inner_nodes(node)):
        return Condition(f"ARRAY[{listed.sql}]::real[]", listed.parameters)
    match = match_condition(transaction, node)
    return Condition(
        f"CASE WHEN {match.sql} THEN ARRAY[{listed.sql}]::real[] END", match.parameters + listed.parameters
    )


def _holds(leaf: Term | Prefix | Phrase) -> str:
    """Whether a row may hold a leaf: whether it holds its tokens. A number of ours cannot be parsed as text."""
    if isinstance(leaf, Prefix):
        return "true"
    tokens = leaf.tokens if isinstance(leaf, Phrase) else (leaf.token,)
    return " AND ".join(_HOLDS.format(number=words.term_number(token)) for token in dict.fromkeys(tokens))


def _held(transaction: Transaction, token: str) -> Condition:
    """Whether a row holds a token; a single character of a script without spaces counts where it begins a pair."""
    return token_condition(transaction, token) if is_lone(token) else Condition(_holds(Term(token)))


def _frequency(leaf: Term | Prefix | Phrase) -> Condition:
    """How often a row holds a leaf, each occurrence counted by the weight of its column."""
    if isinstance(leaf, Term) and leaf.column is None:
        return Condition(_FREQUENCY.format(number=words.term_number(leaf.token)))
    text = needle(leaf)
    size = len(text.encode())
    columns = [leaf.column] if leaf.column else list(COLUMN_WEIGHTS)
    counted = [Condition(_OCCURRENCES.format(column=one), (COLUMN_WEIGHTS[one] / size, text)) for one in columns]
    joined = join(" + ", counted)
    return Condition(f"({joined.sql})", joined.parameters)


def _needs_texts(node: KeywordNode | None) -> bool:
    """Whether a score depends on the places of the tokens: the table `terms` does not know that."""
    return node is not None and any(not isinstance(leaf, Term) or leaf.column for leaf in bm25.wanted_leaves(node))


def _inner_nodes(node: KeywordNode) -> list[KeywordNode]:
    """The operators of a query."""
    match node:
        case AllOf(nodes) | AnyOf(nodes):
            return [node, *(inner for one in nodes for inner in _inner_nodes(one))]
        case Without():
            return [node]
        case _:
            return []


def _holders(leaf: Term | Prefix | Phrase, counts: _Counts) -> int:
    """How many records hold a leaf; of a phrase that was not counted, how many hold its rarest token."""
    frequency = counts.statistics.frequency
    if isinstance(leaf, Phrase):
        return counts.phrases.get(leaf, min(frequency[token] for token in leaf.tokens))
    return frequency[leaf.token]


# ── counts ────────────────────────────────────────────────────────────────────────────────────────────────────


def _scope_of(transaction: Transaction, filters: Filters, now: int) -> KeywordScope:
    if sees_everything(transaction, filters, now):
        return KeywordScope()
    scope = condition(transaction, filters, now)
    return KeywordScope(scope, size_if_small(transaction, scope) if is_countable(filters) else None)


def _read_counts(transaction: Transaction, query: KeywordQuery, scope: KeywordScope) -> _Counts:
    """All counts that a query needs: of its tokens in one read, and of its phrases."""
    bonus = bm25.query_tokens(query.bonus) if query.bonus is not None else ()
    tokens = [*query.tokens, *sorted(bm25.query_tokens(query.node)), *sorted(bonus)]
    counts = _statistics(transaction, tokens, scope)
    phrases = {leaf: 0 for leaf in bm25.wanted_leaves(query.node) if isinstance(leaf, Phrase)}
    for phrase in phrases:
        held, joined = match_condition(transaction, phrase), ""
        if scope.condition is not None and scope.size is not None:
            held, joined = join(" AND ", [held, scope.condition]), _SCOPED
        count = f"SELECT count(*) FROM terms w {joined} WHERE {held.sql}"
        phrases[phrase] = transaction.value(count, *held.parameters)
    return replace(counts, phrases=phrases)


def _statistics(transaction: Transaction, tokens: Sequence[str], scope: KeywordScope) -> _Counts:
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
        frequency[token] = transaction.value(f"SELECT count(*) FROM terms w WHERE {held.sql}", *held.parameters)
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
