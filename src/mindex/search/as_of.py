"""Questions about the past: what changed since then is taken from history and scored as the index would score it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import log

from mindex.analyzer import COLUMN_WEIGHTS, analyze_record, fold, is_lone
from mindex.model import AllOf, AnyOf, Filters, KeywordNode, Phrase, Prefix, Record, Term, Without
from mindex.store.base import ScoredRecord, TermStatistics

# BM25 as SQLite's FTS5 has it compiled in, so that scores of then and now stand side by side.
_K1, _B = 1.2, 0.75

_Leaf = Term | Prefix | Phrase
_Columns = dict[str, list[str]]


def admits(filters: Filters, record: Record) -> bool:
    """Whether the filters let a record of the past through; the same demands that the store makes of the present."""
    moment = filters.as_of or 0
    tags, entities = set(map(fold, record.tags)), set(map(fold, record.entities))
    return all(
        (
            record.retired_at is None,
            filters.agent in ("*", record.agent),
            not filters.collections and not filters.path,  # only files have these
            not filters.kinds or record.kind in filters.kinds,
            not filters.types or record.type in filters.types,
            not filters.tags or not tags.isdisjoint(map(fold, filters.tags)),
            tags.issuperset(map(fold, filters.all_tags)),
            not filters.entities or not entities.isdisjoint(map(fold, filters.entities)),
            not filters.session or record.fields.get("session_id") == filters.session,
            filters.min_importance is None or (record.importance or 0) >= filters.min_importance,
            filters.min_confidence is None or (record.confidence or 0) >= filters.min_confidence,
            filters.after is None or record.created_at >= filters.after,
            filters.before is None or record.created_at < filters.before,
            filters.include_expired or record.expires_at is None or record.expires_at > moment,
        )
    )


def keyword(node: KeywordNode, records: Sequence[Record], statistics: TermStatistics) -> list[ScoredRecord]:
    """The records that match, with the score the index would give them, best first."""
    found = []
    for record in records:
        analysed = analyze_record(record)
        columns: _Columns = {name: getattr(analysed, name).split() for name in COLUMN_WEIGHTS}
        if _matches(node, columns):
            found.append(ScoredRecord(record.id, max(1e-9, _score(node, columns, statistics))))
    return sorted(found, key=lambda hit: (-hit.score, hit.id))


def holding(record: Record, tokens: Sequence[str]) -> frozenset[str]:
    """Which of these tokens the index would hold the record under."""
    columns = analyze_record(record)
    there = frozenset(token for name in COLUMN_WEIGHTS for token in getattr(columns, name).split())
    begun = {token[0] for token in there}
    return frozenset(token for token in tokens if token in there or (is_lone(token) and token in begun))


def _matches(node: KeywordNode, columns: _Columns) -> bool:
    match node:
        case AllOf(nodes):
            return all(_matches(one, columns) for one in nodes)
        case AnyOf(nodes):
            return any(_matches(one, columns) for one in nodes)
        case Without(keep, drop):
            return _matches(keep, columns) and not _matches(drop, columns)
        case _:
            return _weight(node, columns) > 0


def _score(node: KeywordNode, columns: _Columns, statistics: TermStatistics) -> float:
    length = sum(map(len, columns.values()))
    norm = _K1 * (1 - _B + _B * length / max(1.0, statistics.average_length))
    score = 0.0
    for leaf in _leaves(node):
        weight = _weight(leaf, columns)
        tokens = leaf.tokens if isinstance(leaf, Phrase) else (leaf.token,)
        holders = min(statistics.frequency.get(token, 0) for token in tokens)
        idf = max(1e-6, log((statistics.records - holders + 0.5) / (holders + 0.5)))
        score += idf * weight * (_K1 + 1) / (weight + norm)
    return score


def _leaves(node: KeywordNode) -> Iterator[_Leaf]:
    match node:
        case AllOf(nodes) | AnyOf(nodes):
            for one in nodes:
                yield from _leaves(one)
        case Without(keep, _):
            yield from _leaves(keep)
        case _:
            yield node


def _weight(leaf: _Leaf, columns: _Columns) -> float:
    """How often a leaf occurs, each occurrence counted by its column."""
    return sum(
        weight * _count(leaf, columns[name]) for name, weight in COLUMN_WEIGHTS.items() if leaf.column in (None, name)
    )


def _count(leaf: _Leaf, tokens: list[str]) -> int:
    match leaf:
        case Term(token):
            return tokens.count(token)
        case Prefix(token):
            return sum(one.startswith(token) for one in tokens)
        case Phrase(phrase):
            size = len(phrase)
            return sum(tuple(tokens[i : i + size]) == phrase for i in range(len(tokens) - size + 1))
