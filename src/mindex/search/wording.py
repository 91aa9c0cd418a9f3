"""The keyword half: BM25, more where words stand side by side as in the question, less where much of it is missing.

BM25 adds up what each word is worth, so a text that repeats one word may pass one that holds them all. Both
corrections were chosen by data, see docs/quality.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mindex.model import KeywordNode, Query, Record
from mindex.search.fuse import REFINES_WORDS
from mindex.search.past import keyword as keyword_of_past
from mindex.search.past import tokens_of
from mindex.search.query import ParsedQuery, any_of
from mindex.search.relevance import shares
from mindex.store.base import Scored, Store, TermStatistics

# So many are looked at more closely; whoever stands below them is taken to hold no more than the least of them.
_LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class Refining:
    """How far BM25 is corrected.

    `pairs`: what two words count that stand in the text as in the question, beside what each counts for itself.
    `coverage`: the power of the share of the question that a hit holds, by which its score is multiplied.
    """

    pairs: float = 0.5
    coverage: float = 0.5


@dataclass(frozen=True, slots=True)
class Worded:
    """What a question's words found, best first, and what share of its weight the first of them hold."""

    hits: tuple[Scored, ...] = ()
    held: Mapping[str, float] = field(default_factory=dict)

    @property
    def coverage(self) -> float:
        """What the best hit holds; of one that only stands first among equals, what the least of the others does."""
        return self.held.get(self.hits[0].id, min(self.held.values(), default=0.0)) if self.hits else 0.0


def by_words(
    store: Store,
    query: Query,
    parsed: ParsedQuery,
    past: Mapping[str, Record],
    limit: int,
    refining: Refining,
) -> Worded:
    """The best records for a question's words. `past` are records as they stood then, if the past is asked about."""
    if parsed.node is None:
        return Worded()
    statistics = TermStatistics(0, {}) if parsed.strict and not past else store.statistics(parsed.tokens)
    found = _found(store, query, parsed.node, past, statistics, limit)
    if not found:
        return Worded()
    if parsed.strict:  # whoever fulfils a demand holds all of it
        return Worded(found, {found[0].id: 1.0})
    refined = query.fusion in REFINES_WORDS
    pairs = any_of(parsed.pairs) if refined else None
    if pairs is not None:
        beside = {hit.id: hit.score for hit in _found(store, query, pairs, past, statistics, limit)}
        found = _best_first(Scored(hit.id, hit.score + refining.pairs * beside.get(hit.id, 0.0)) for hit in found)
    first = [hit.id for hit in (found[:_LOOKED_AT] if refined else found[:1])]
    tokens = store.holding([id_ for id_ in first if id_ not in past], parsed.tokens)
    tokens |= {id_: tokens_of(past[id_]) for id_ in first if id_ in past}
    held = shares(parsed.tokens, tokens, statistics)
    if refined:
        least = min(held.values(), default=1.0)
        found = _best_first(Scored(hit.id, hit.score * held.get(hit.id, least) ** refining.coverage) for hit in found)
    return Worded(found, held)


def _found(
    store: Store,
    query: Query,
    node: KeywordNode,
    past: Mapping[str, Record],
    statistics: TermStatistics,
    limit: int,
) -> tuple[Scored, ...]:
    found = store.keyword(node, query.filters, limit)
    if not past:
        return found
    return _best_first((*found, *keyword_of_past(node, tuple(past.values()), statistics)))[:limit]


def _best_first(hits: Iterable[Scored]) -> tuple[Scored, ...]:
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.id)))
