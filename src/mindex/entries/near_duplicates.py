"""What a memory is compared with: stored ones that share rare words or are close as vectors, and its near-duplicates.

Near-duplicates are two texts that share most of their words and do not contradict each other.

The overlap of two sets of words is their intersection as a share of the **larger** set. The share of the smaller set
would make every long text a duplicate of each short one inside it, and the look-up could not be bounded: a short
stored text may share any one word of a long new one. With Jaccard, two texts of equal length would have to share three
quarters of their words to reach .6: two reworded words in six would hide a duplicate. The share of the larger set is
what "60 % of the words" means to a reader, and it bounds the look-up: see `probe_words`. Of 153,735 pairs of different
sentences of our documents it finds 7 near.
"""

from collections.abc import Container, Iterable, Mapping, Sequence

from mindex.analyzer import STOP_WORDS, analyze_query
from mindex.datatypes import Filters, Model, Record, RecordVectors, SimilarMemory, VectorArray
from mindex.datatypes.records import CONFLICT_LINK
from mindex.entries.conflict_rules import READ_LIMIT, Difference, contradict, is_update
from mindex.entries.conflicts import conflict_between, conflicting
from mindex.lexicon import meaning as known
from mindex.store.base import NewLink, Store
from mindex.values import dataclass

NEAR_OVERLAP = 0.6  # of words
NEAR_COSINE = 0.92  # of vectors
CONFLICT_COSINE = 0.5  # of vectors: what the conflict rules are asked about
NEAR_LINK = "near"  # the kind of the link between two near-duplicates
_MAX_SIMILAR = 5
_BY_WORDS, _BY_VECTOR = 30, 10  # candidates
_CONFLICT_PROBES = 2
_CONFLICT_SHARE = 0.5  # of the shorter text's words: with fewer in common the conflict rules are not asked
_LINKS_AT_ONCE = 500  # in one transaction

# Contractions alone carry no meaning; `conflict_rules` judges what a `not` does to a text.
_MEANINGLESS = STOP_WORDS | known.folded("contractions")
_FIRST_UNSPACED = "\u0e00"  # from here on letters are pairs of characters, which are short and yet have a meaning


def keywords(text: str) -> frozenset[str]:
    """Return the stems that carry meaning; all stems when none does.

    A hyphened or camel-cased name is its words, so that `dark-mode` is dark mode; one with numbers or scraps in it
    (`v2.1.4`, `user_id`) counts once, or a version alone would make two texts alike.
    """
    found: set[str] = set()
    function_words: set[str] = set()
    for word in analyze_query(text[:READ_LIMIT]):
        if word.stop:
            function_words.update(word.words)
        elif word.identifiers and not all(len(part) > 2 and part.isalpha() for part in word.words):
            found.add(max(word.identifiers, key=len))
        else:
            for stem in word.words:
                (found if _carries_meaning(stem) else function_words).add(stem)
    return frozenset(found or function_words)


def _carries_meaning(stem: str) -> bool:
    if stem in _MEANINGLESS:
        return False
    return len(stem) > 2 or stem[0] >= _FIRST_UNSPACED or not stem.isalpha()


def overlap(a: frozenset[str], b: frozenset[str]) -> float:
    """Return the share of the larger set's words that both sets have, 0 to 1."""
    if a == b:
        return 1.0
    return len(a & b) / max(len(a), len(b))


def probe_words(words: frozenset[str], frequency: Mapping[str, int]) -> tuple[str, ...]:
    """Return the rarest 40 % + 1 of the words: every set that overlaps by .6 or more contains one of them.

    Such a set shares at least .6 of the larger set, so at least .6 · n of these n words, and lacks at most ⌊.4 · n⌋ of
    them: among any ⌊.4 · n⌋ + 1 words is one that it contains. The rarest words have the fewest rows to read.
    """
    rarest = sorted(words, key=lambda word: (frequency.get(word, 0), word))
    return tuple(rarest[: len(words) * 2 // 5 + 1])  # in integers: .4 · 5 must be 2, never 1.99


# ── by words ──────────────────────────────────────────────────────────────────────────────────────────────────


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
    others = known.alternatives(words)
    if not words.isdisjoint(known.stems("moves")):
        others |= known.stems("moved_from")

    def probes(frequency: Mapping[str, int]) -> list[str]:
        stored = sorted((word for word in words if frequency.get(word)), key=lambda word: (frequency[word], word))
        rare = [word for word in probe_words(words, frequency) if word in stored]
        return max(rare, stored[:_CONFLICT_PROBES], key=len) + [word for word in others if frequency.get(word)]

    scope = Filters(kinds=("memory",), agent=record.agent)
    found = store.retrieval.records_with_tokens(sorted(words | others), probes, scope, _BY_WORDS)
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


def conflicting_among(record: Record, related: Iterable[RelatedMemory]) -> dict[str, Difference]:
    """The related memories that one is in conflict with, by id; an update is compared with all of them."""
    least = 0.0 if is_update(record.text) else _CONFLICT_SHARE
    return conflicting(record, [one.record for one in related if one.share >= least])


# ── by vectors ────────────────────────────────────────────────────────────────────────────────────────────────


def link_close_memories(store: Store, model: Model, stored: Sequence[tuple[Record, RecordVectors]]) -> None:
    """Link each memory whose vectors were just stored with near-duplicates of its type, and with conflicts of any.

    Close vectors find the same fact in other words, and memories that came in without a search by words.
    """
    memories = [(record, embedded.vectors[0]) for record, embedded in stored if record.kind == "memory"]
    for agent in dict.fromkeys(record.agent for record, _ in memories):
        own = [(record, vector) for record, vector in memories if record.agent == agent]
        links = _close_links(store, model, agent, own)
        for start in range(0, len(links), _LINKS_AT_ONCE):
            store.entries.link(links[start : start + _LINKS_AT_ONCE])


def _close_links(
    store: Store, model: Model, agent: str, embedded: Sequence[tuple[Record, Sequence[float] | VectorArray]]
) -> list[NewLink]:
    """Return the links of one agent's memories that were just stored: with conflicts and near-duplicates."""
    import numpy as np  # only texts that were embedded need it

    scope = Filters(kinds=("memory",), agent=agent)
    vectors = np.stack([np.asarray(vector, np.float32) for _, vector in embedded])
    found = store.retrieval.neighbours(model, vectors, scope, _BY_VECTOR, CONFLICT_COSINE)
    pairs: set[tuple[str, str]] = set()
    links: list[NewLink] = []
    for (embedded_record, _), close in zip(embedded, found.cosines, strict=True):
        one = found.records.get(embedded_record.id, embedded_record)  # as it is now
        for other_id, cosine in close.items():
            other = found.records.get(other_id)
            if other is None or other.id == one.id or (other.id, one.id) in pairs:
                continue
            pairs.add((one.id, other.id))
            if conflict_between(one, other):
                links.append((one.id, other.id, CONFLICT_LINK, 1.0))
            elif cosine >= NEAR_COSINE and one.type == other.type and not contradict(one.text, other.text):
                links.append((one.id, other.id, NEAR_LINK, round(cosine, 3)))
    return links
