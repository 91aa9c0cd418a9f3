"""What a keyword query matches, and what a keyword score means: BM25 over finished tokens.

This is the law that every engine follows, and how an engine scores records that are not in its index. The score of a
record is the sum over the terms of the query of

    idf × frequency × (K1 + 1) / (frequency + K1 × (1 − B + B × length / average length))

where `frequency` counts the occurrences of the term in the record, each multiplied by the weight of its column, and
`length` the record's tokens. `idf` is ln((N − n + ½) / (n + ½)), but never below 1e-6: N records, of which n hold the
term. An engine whose ranking function is another one may scale its scores, but not change their ratios by much.
"""

from collections.abc import Iterator, Sequence
from math import log

from mindex.analyzer import COLUMN_WEIGHTS, analyze_record, is_lone
from mindex.datatypes import AllOf, AnyOf, KeywordNode, Phrase, Prefix, Record, Term, Without
from mindex.store.results import ScoredRecord, TermStatistics

K1, B = 1.2, 0.75
# The least score of a match: scores are divided by each other.
MIN_SCORE = 1e-9
_MIN_IDF = 1e-6

Leaf = Term | Prefix | Phrase
# The tokens of a record by column, in order.
TokenColumns = dict[str, list[str]]


def idf(holders: int, records: int) -> float:
    """The weight of a term that `holders` of `records` hold; almost nothing where that is more than half of them."""
    odds = (records - holders + 0.5) / (holders + 0.5)
    return max(_MIN_IDF, log(odds)) if odds > 1 else _MIN_IDF


def matches(node: KeywordNode, record: Record) -> bool:
    """Whether a keyword query matches a record."""
    return _matches(node, _columns(record))


def score_records(
    node: KeywordNode, records: Sequence[Record], statistics: TermStatistics, average_length: float
) -> list[ScoredRecord]:
    """The records that match, with their scores, best first. `statistics` counts the tokens of the query."""
    scored = ((one, score_columns(node, _columns(one), statistics, average_length)) for one in records)
    found = [ScoredRecord(one.id, score, one.kind) for one, score in scored if score]
    return sorted(found, key=lambda hit: (-hit.score, hit.id))


def score_columns(node: KeywordNode, columns: TokenColumns, statistics: TermStatistics, average_length: float) -> float:
    """The score of a record by its tokens; 0 when the query does not match it."""
    return max(MIN_SCORE, _score(node, columns, statistics, average_length)) if _matches(node, columns) else 0.0


def matched_tokens(record: Record, tokens: Sequence[str]) -> frozenset[str]:
    """Those of these tokens that a record is indexed under; a single CJK character is by the pairs that it begins."""
    return held_tokens(_columns(record), tokens)


def held_tokens(columns: TokenColumns, tokens: Sequence[str]) -> frozenset[str]:
    """See `matched_tokens`."""
    present = frozenset(token for column in columns.values() for token in column)
    first = {token[0] for token in present}
    return frozenset(token for token in tokens if token in present or (is_lone(token) and token in first))


def length(record: Record) -> int:
    """The number of tokens that a record is indexed under."""
    return sum(map(len, _columns(record).values()))


def wanted_leaves(node: KeywordNode) -> Iterator[Leaf]:
    """The terms, prefixes and phrases of a query, in order, without those that it excludes."""
    match node:
        case AllOf(nodes) | AnyOf(nodes):
            for one in nodes:
                yield from wanted_leaves(one)
        case Without(keep, _):
            yield from wanted_leaves(keep)
        case _:
            yield node


def query_tokens(node: KeywordNode) -> frozenset[str]:
    """The tokens whose frequencies a score depends on."""
    return frozenset(token for leaf in wanted_leaves(node) for token in _tokens(leaf))


def _columns(record: Record) -> TokenColumns:
    return {name: tokens.split() for name, tokens in analyze_record(record)._asdict().items()}


def _matches(node: KeywordNode, columns: TokenColumns) -> bool:
    match node:
        case AllOf(nodes):
            return all(_matches(one, columns) for one in nodes)
        case AnyOf(nodes):
            return any(_matches(one, columns) for one in nodes)
        case Without(keep, drop):
            return _matches(keep, columns) and not _matches(drop, columns)
        case _:
            return _frequency(node, columns) > 0


def _score(node: KeywordNode, columns: TokenColumns, statistics: TermStatistics, average_length: float) -> float:
    length = sum(map(len, columns.values()))
    norm = K1 * (1 - B + B * length / max(1.0, average_length))
    score = 0.0
    for leaf in wanted_leaves(node):
        frequency = _frequency(leaf, columns)
        holders = min(statistics.frequency.get(token, 0) for token in _tokens(leaf))
        score += idf(holders, statistics.records) * frequency * (K1 + 1) / (frequency + norm)
    return score


def _tokens(leaf: Leaf) -> tuple[str, ...]:
    return leaf.tokens if isinstance(leaf, Phrase) else (leaf.token,)


def _frequency(leaf: Leaf, columns: TokenColumns) -> float:
    """How often a leaf occurs, each occurrence counted by the weight of its column."""
    return sum(
        weight * _count(leaf, columns[name]) for name, weight in COLUMN_WEIGHTS.items() if leaf.column in (None, name)
    )


def _count(leaf: Leaf, tokens: list[str]) -> int:
    match leaf:
        case Term(token):
            return tokens.count(token)
        case Prefix(token):
            return sum(one.startswith(token) for one in tokens)
        case Phrase(phrase):
            size = len(phrase)
            return sum(tuple(tokens[i : i + size]) == phrase for i in range(len(tokens) - size + 1))
