"""What a new memory is compared with: stored ones that share rare words, its near-duplicates and conflicts."""

from collections.abc import Container, Iterable, Mapping

from mindex.datatypes import Filters, Record, SimilarMemory
from mindex.entries.conflict_rules import is_update
from mindex.entries.contradiction_check import contradict
from mindex.entries.near_duplicates import NEAR_OVERLAP, keywords, overlap, probe_words
from mindex.lexicon.meaning import MOVED_FROM, MOVES, alternatives
from mindex.store.base import Store
from mindex.values import dataclass

_MAX_SIMILAR = 5
_CANDIDATES = 30
_CONFLICT_PROBES = 2
_CONFLICT_SHARE = 0.5  # of the shorter text's words: with fewer in common the conflict rules are not asked


@dataclass(frozen=True, slots=True)
class RelatedMemory:
    """A stored memory, and what it shares with a new one."""

    record: Record
    overlap: float  # words in both as a share of the longer text's words
    share: float  # of the shorter text's words


def find_related(store: Store, record: Record) -> tuple[RelatedMemory, ...]:
    """Live memories of the same agent that share rare words with one.

    Only the rarest words are searched for: a memory that shares enough words shares one of these. Memories in conflict
    may share less: the search also includes the rarest words that are stored at all, and alternatives to a value.
    """
    words = keywords(record.text)
    if not words or record.kind != "memory":
        return ()
    others = alternatives(words) | (MOVED_FROM if not MOVES.isdisjoint(words) else frozenset())

    def probes(frequency: Mapping[str, int]) -> list[str]:
        stored = sorted((word for word in words if frequency.get(word)), key=lambda word: (frequency[word], word))
        rare = [word for word in probe_words(words, frequency) if word in stored]
        return max(rare, stored[:_CONFLICT_PROBES], key=len) + [word for word in others if frequency.get(word)]

    scope = Filters(kinds=("memory",), agent=record.agent)
    found = store.retrieval.records_with_tokens(sorted(words | others), probes, scope, _CANDIDATES)
    return tuple(_related(words, other) for other in found if other.id != record.id)


def _related(words: frozenset[str], other: Record) -> RelatedMemory:
    own_words = keywords(other.text)
    shorter = min(len(words), len(own_words))
    return RelatedMemory(other, overlap(words, own_words), len(words & own_words) / shorter if shorter else 0.0)


def similar_among(
    record: Record, related: Iterable[RelatedMemory], types: tuple[str, ...], *, but: Container[str] = ()
) -> tuple[SimilarMemory, ...]:
    """Near-duplicates of a memory, of these types or any, the nearest first; `but` are ids that are none."""
    near = [
        SimilarMemory(one.record.id, one.record.summary, round(one.overlap, 2))
        for one in related
        if one.overlap >= NEAR_OVERLAP
        and one.record.agent == record.agent
        and (not types or one.record.type in types)
        and one.record.id not in but
        and not contradict(record.text, one.record.text)
    ]
    return tuple(sorted(near, key=lambda one: (-one.overlap, one.id))[:_MAX_SIMILAR])


def conflict_candidates(related: Iterable[RelatedMemory], text: str) -> list[Record]:
    """The memories that share enough with a text for the conflict rules to be asked; all of them for an update."""
    least = 0.0 if is_update(text) else _CONFLICT_SHARE
    return [one.record for one in related if one.share >= least]
