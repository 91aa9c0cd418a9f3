"""Keyword candidates: BM25, more where words stand side by side as in the query, less where much of it is missing.

BM25 adds up what each word is worth, so a text that repeats one word may pass one that holds them all. Both
corrections were chosen by data, see docs/quality.md.
"""

from collections.abc import Mapping
from dataclasses import field

from mindex.model import Query, Record
from mindex.search.fuse import FUSIONS
from mindex.search.query import ParsedQuery, any_of
from mindex.search.relevance import are_rare, shares, surprises
from mindex.store.base import KeywordQuery, ScoredRecord, Store, TermStatistics
from mindex.store.rules.bm25 import LEAST_SCORE
from mindex.values import dataclass

# So many of each group of kinds are looked at more closely; those below are taken to hold no more than the least.
_LOOKED_AT = 50


@dataclass(frozen=True, slots=True)
class KeywordWeights:
    """How far BM25 is corrected.

    `pairs`: what two words count that stand in the text as in the query, beside what each counts for itself.
    `coverage`: the power of the share of the query that a hit holds, by which its score is multiplied.
    """

    pairs: float
    coverage: float


@dataclass(frozen=True, slots=True)
class KeywordCandidates:
    """Keyword candidates, best first; the share of the query's idf weight that the first of them hold, and how
    unlikely it is that they hold it by chance (`relevance.surprises`). `rare`: so is each word of the query."""

    hits: tuple[ScoredRecord, ...] = ()
    matched_shares: Mapping[str, float] = field(default_factory=dict)
    active_space: str = ""
    surprises: Mapping[str, float] = field(default_factory=dict)
    rare: bool = False
    statistics: TermStatistics | None = None


def keyword_candidates(
    store: Store,
    query: Query,
    parsed: ParsedQuery,
    past: Mapping[str, Record],
    limit: int,
    refining: KeywordWeights,
) -> KeywordCandidates:
    """The best records for a query's words. `past` are records as they stood at `as_of`."""
    if parsed.node is None:
        return KeywordCandidates()
    refines = FUSIONS[query.fusion].refines_words and not parsed.strict
    found = store.retrieval.keyword(
        KeywordQuery(
            parsed.node,
            tokens=() if parsed.strict else _sought(parsed),
            described=_LOOKED_AT,
            bonus=any_of(parsed.pairs) if refines and refining.pairs else None,
            bonus_weight=refining.pairs,
            past=tuple(past.values()),
            signals=FUSIONS[query.fusion].needs_signals,
        ),
        query.filters,
        limit,
    )
    space = found.active_space
    if not found.hits:
        return KeywordCandidates(active_space=space)
    if parsed.strict:  # a record that fulfils a strict query matches all of it
        return KeywordCandidates(found.hits, {hit.id: 1.0 for hit in found.hits}, space, statistics=found.statistics)
    held = _with_parts(parsed, found.matched_tokens)
    matched = shares(parsed.tokens, held, found.statistics)
    surprise = surprises(parsed.tokens, held, found.lengths, found.statistics)
    rare = are_rare(parsed.tokens, found.statistics)
    # Those below the ones that were looked at hold no more than the least of these. None was, in a damaged file.
    least_surprise = min(surprise.values(), default=0.0)
    surprise |= dict.fromkeys([hit.id for hit in found.hits if hit.id not in surprise], least_surprise)
    if not refines:
        return KeywordCandidates(found.hits, matched, space, surprise, rare, found.statistics)
    least = min(matched.values(), default=1.0)
    scored = [
        hit.with_score(max(LEAST_SCORE, hit.score * matched.get(hit.id, least) ** refining.coverage))
        for hit in found.hits
    ]
    best_first = tuple(sorted(scored, key=lambda hit: (-hit.score, hit.id)))
    return KeywordCandidates(best_first, matched, space, surprise, rare, found.statistics)


def _sought(parsed: ParsedQuery) -> tuple[str, ...]:
    """The tokens that a record may hold of a query: its words, and its identifiers as one token each."""
    return tuple(dict.fromkeys((*parsed.tokens, *(whole for word in parsed.words for whole in word.identifiers))))


def _with_parts(parsed: ParsedQuery, matched: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """The tokens that records hold; a record with a whole identifier holds its parts, too."""
    compound = [word for word in parsed.words if word.identifiers]
    if not compound:
        return dict(matched)
    return {
        id_: tokens.union(token for word in compound if not tokens.isdisjoint(word.identifiers) for token in word.words)
        for id_, tokens in matched.items()
    }
