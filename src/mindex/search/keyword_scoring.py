"""Keyword candidates refined by what BM25 leaves out: words side by side, and the share of the query. Pure.

BM25 adds words up, whether they form a phrase in the text or are far apart, and two common words may outweigh the one
that the query is about.
"""

from collections.abc import Mapping
from dataclasses import field

from mindex.search.query import ParsedQuery
from mindex.search.word_evidence import any_rare, shares, surprisal_by_id
from mindex.store.base import KeywordResult, ScoredRecord, TermStatistics
from mindex.store.rules.bm25 import MIN_SCORE
from mindex.values import dataclass

# This number of each group of kinds is examined more closely; those below are taken to contain no more than the least.
DESCRIBED = 50


@dataclass(frozen=True, slots=True)
class KeywordWeights:
    """How far BM25 is corrected.

    `pairs`: what two words count that are next to each other in the text as in the query, beside what each counts.
    `coverage`: the power of the share of the query that a hit contains, by which its score is multiplied.
    """

    pairs: float
    coverage: float


@dataclass(frozen=True, slots=True)
class KeywordCandidates:
    """Keyword candidates, best first, and what the first of them contain of the query."""

    hits: tuple[ScoredRecord, ...] = ()
    matched_shares: Mapping[str, float] = field(default_factory=dict)
    matched_tokens: Mapping[str, frozenset[str]] = field(default_factory=dict)
    surprises: Mapping[str, float] = field(default_factory=dict)
    looked_up: frozenset[str] = frozenset()
    statistics: TermStatistics | None = None


def keyword_candidates(found: KeywordResult, parsed: ParsedQuery, refining: KeywordWeights | None) -> KeywordCandidates:
    """`refining`: how the scores are corrected; None: they stay as they are."""
    if not found.hits:
        return KeywordCandidates()
    if parsed.strict:  # a record that fulfils a strict query matches all of it
        return KeywordCandidates(found.hits, {hit.id: 1.0 for hit in found.hits}, statistics=found.statistics)
    held = _with_parts(parsed, found.matched_tokens)
    matched = shares(parsed.tokens, held, found.statistics)
    surprise = surprisal_by_id(parsed.tokens, held, found.lengths, found.statistics)
    # Those below the ones that were looked at contain no more than the least of these. None was, in a damaged file.
    least_surprise = min(surprise.values(), default=0.0)
    surprise |= dict.fromkeys([hit.id for hit in found.hits if hit.id not in surprise], least_surprise)
    hits = found.hits
    if refining is not None:
        least = min(matched.values(), default=1.0)
        scored = [
            hit.with_score(max(MIN_SCORE, hit.score * matched.get(hit.id, least) ** refining.coverage))
            for hit in found.hits
        ]
        hits = tuple(sorted(scored, key=lambda hit: (-hit.score, hit.id)))
    looked_up = _looked_up(parsed, found)
    return KeywordCandidates(hits, matched, held, surprise, looked_up, found.statistics)


def sought(parsed: ParsedQuery) -> tuple[str, ...]:
    """The tokens that a record may contain of a query: its words, and its identifiers as one token each."""
    return tuple(dict.fromkeys((*parsed.tokens, *(whole for word in parsed.words for whole in word.identifiers))))


def _looked_up(parsed: ParsedQuery, found: KeywordResult) -> frozenset[str]:
    """The records that contain the one rare word, or the one identifier as a whole, that the query is; else none."""
    if len(parsed.text.split()) != 1 or len(parsed.words) != 1:
        return frozenset()
    (word,) = parsed.words
    if word.identifiers:
        return frozenset(id_ for id_, held in found.matched_tokens.items() if not held.isdisjoint(word.identifiers))
    if not any_rare(parsed.tokens, found.statistics):
        return frozenset()
    return frozenset(id_ for id_, held in found.matched_tokens.items() if held.issuperset(parsed.tokens))


def _with_parts(parsed: ParsedQuery, matched: Mapping[str, frozenset[str]]) -> dict[str, frozenset[str]]:
    """The tokens that records contain; a record with a whole identifier contains its parts as well."""
    compound = [word for word in parsed.words if word.identifiers]
    if not compound:
        return dict(matched)
    return {
        id_: tokens.union(token for word in compound if not tokens.isdisjoint(word.identifiers) for token in word.words)
        for id_, tokens in matched.items()
    }
