"""The keyword half: BM25, more where words stand side by side as in the question, less where much of it is missing.

BM25 adds up what each word is worth, so a text that repeats one word may pass one that holds them all. Both
corrections were chosen by data, see docs/quality.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from mindex.model import Query, Record
from mindex.search.fuse import REFINES_WORDS
from mindex.search.query import ParsedQuery, any_of
from mindex.search.relevance import shares
from mindex.store.base import KeywordQuery, ScoredRecord, Store
from mindex.store.rules.bm25 import LEAST_SCORE
from mindex.values import dataclass

# So many are looked at more closely; whoever stands below them is taken to hold no more than the least of them.
_LOOKED_AT = 50


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
    active_space: str = ""

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
    refines = query.fusion in REFINES_WORDS and not parsed.strict
    found = store.retrieval.keyword(
        KeywordQuery(
            parsed.node,
            tokens=() if parsed.strict else _sought(parsed),
            described=_LOOKED_AT if refines else 1,
            bonus=any_of(parsed.pairs) if refines else None,
            bonus_weight=refining.pairs,
            past=tuple(past.values()),
        ),
        query.filters,
        limit,
    )
    space = found.active_space
    if not found.hits:
        return Worded(active_space=space)
    if parsed.strict:  # whoever fulfils a demand holds all of it
        return Worded(found.hits, {found.hits[0].id: 1.0}, space)
    held = shares(parsed.tokens, _with_parts(parsed, found.matched_tokens), found.statistics)
    if not refines:
        return Worded(found.hits, held, space)
    least = min(held.values(), default=1.0)
    scored = [
        replace(hit, score=max(LEAST_SCORE, hit.score * held.get(hit.id, least) ** refining.coverage))
        for hit in found.hits
    ]
    return Worded(tuple(sorted(scored, key=lambda hit: (-hit.score, hit.id))), held, space)


def _sought(parsed: ParsedQuery) -> tuple[str, ...]:
    """The tokens that a record may hold of a question: its words, and its identifiers as one token each."""
    return tuple(dict.fromkeys((*parsed.tokens, *(whole for word in parsed.words for whole in word.identifiers))))


def _with_parts(parsed: ParsedQuery, matched: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """The tokens that records hold; a record with a whole identifier holds its parts, too."""
    return {
        id_: tokens.union(
            token for word in parsed.words if not tokens.isdisjoint(word.identifiers) for token in word.words
        )
        for id_, tokens in matched.items()
    }
