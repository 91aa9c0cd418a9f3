"""The keyword half: BM25, more where words stand side by side as in the question, less where much of it is missing.

BM25 adds up what each word is worth, so a text that repeats one word may pass one that holds them all. Both
corrections were chosen by data, see docs/quality.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field

from mindex.model import KeywordNode, Query, Record
from mindex.search.as_of import holding as holding_of_past
from mindex.search.as_of import keyword as keyword_of_past
from mindex.search.fuse import REFINES_WORDS
from mindex.search.query import ParsedQuery, any_of
from mindex.search.relevance import shares
from mindex.store.base import ScoredRecord, Store, TermStatistics
from mindex.values import dataclass

# So many are looked at more closely; whoever stands below them is taken to hold no more than the least of them.
_LOOKED_AT = 50
# What was found at all has a score, however little of the question it holds: scores are divided by the best.
_LEAST = 1e-9


@dataclass(frozen=True, slots=True)
class KeywordWeights:
    """How far BM25 is corrected.

    `pairs`: what two words count that stand in the text as in the question, beside what each counts for itself.
    `coverage`: the power of the share of the question that a hit holds, by which its score is multiplied.
    """

    pairs: float = 0.5
    coverage: float = 0.5


@dataclass(frozen=True, slots=True)
class Worded:
    """What a question's words found, best first, and what share of its weight the first of them hold."""

    hits: tuple[ScoredRecord, ...] = ()
    held: Mapping[str, float] = field(default_factory=dict)

    @property
    def coverage(self) -> float:
        """The most that any of those that were looked at holds: how far the words of this question can be trusted."""
        return max(self.held.values(), default=0.0) if self.hits else 0.0


def by_words(
    store: Store,
    query: Query,
    parsed: ParsedQuery,
    past: Mapping[str, Record],
    limit: int,
    refining: KeywordWeights,
) -> Worded:
    """The best records for a question's words. `past` are records as they stood then, if the past is asked about."""
    if parsed.node is None:
        return Worded()
    statistics = (
        TermStatistics(0, {})
        if parsed.strict and not past
        else store.retrieval.term_statistics(parsed.tokens, query.filters)
    )
    found = _found(store, query, parsed.node, past, statistics, limit)
    if not found:
        return Worded()
    if parsed.strict:  # whoever fulfils a demand holds all of it
        return Worded(found, {found[0].id: 1.0})
    if query.fusion not in REFINES_WORDS:
        return Worded(found, shares(parsed.tokens, _tokens_of(store, parsed, past, [found[0].id]), statistics))
    scores = {hit.id: hit.score for hit in found}
    pairs = any_of(parsed.pairs)
    if pairs is not None:
        for hit in _found(store, query, pairs, past, statistics, limit):
            if hit.id in scores:
                scores[hit.id] += refining.pairs * hit.score
        scores = _best_first(scores)
    held = shares(parsed.tokens, _tokens_of(store, parsed, past, list(scores)[:_LOOKED_AT]), statistics)
    least = min(held.values(), default=1.0)
    scores = {id_: max(_LEAST, score * held.get(id_, least) ** refining.coverage) for id_, score in scores.items()}
    return Worded(tuple(ScoredRecord(id_, score) for id_, score in _best_first(scores).items()), held)


def _tokens_of(
    store: Store, parsed: ParsedQuery, past: Mapping[str, Record], ids: Sequence[str]
) -> dict[str, frozenset[str]]:
    """Which of the question's tokens these records hold; whoever holds an identifier whole holds its parts, too."""
    sought = (*parsed.tokens, *(whole for word in parsed.words for whole in word.identifiers))
    there = store.retrieval.matched_tokens([id_ for id_ in ids if id_ not in past], sought)
    there |= {id_: holding_of_past(past[id_], sought) for id_ in ids if id_ in past}
    return {
        id_: tokens.union(
            token for word in parsed.words if not tokens.isdisjoint(word.identifiers) for token in word.words
        )
        for id_, tokens in there.items()
    }


def _found(
    store: Store,
    query: Query,
    node: KeywordNode,
    past: Mapping[str, Record],
    statistics: TermStatistics,
    limit: int,
) -> tuple[ScoredRecord, ...]:
    found = store.retrieval.keyword(node, query.filters, limit)
    if not past:
        return found
    then = keyword_of_past(node, tuple(past.values()), statistics)
    return tuple(sorted((*found, *then), key=lambda hit: (-hit.score, hit.id))[:limit])


def _best_first(scores: Mapping[str, float]) -> dict[str, float]:
    return dict(sorted(scores.items(), key=lambda item: (-item[1], item[0])))
