"""Which passages are shown within a budget: those with the most gain per byte, over all hits.

All passages of a page have one order, which does not depend on the budget, and as much of its beginning is shown as
fits. So a larger budget shows all that a smaller one does. Among the orders of the first hits, of the first two, of the
first three … the one with the largest gain is taken, so a larger limit never gains less. An order that leaves out its
large passages is tried as well, because one that does not fit would end it.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator, Mapping, Sequence
from math import exp
from typing import TYPE_CHECKING, NamedTuple

from mindex.analyzer import analyze
from mindex.datatypes import Hit, QueryTerms
from mindex.present.passage_layout import Layout, Size
from mindex.text_match import literal_ranges
from mindex.values import dataclass

if TYPE_CHECKING:
    from mindex.present.passages import Passage

# Chosen on the development set `passages_dev`, see docs/quality.md.
_TERM_POWER = 3  # of the share of the query's weight that a passage has: many of its words say more than each alone
_COSINE = 6.0  # e to the power of this times the distance to the best cosine
_NEIGHBOUR, _OTHER_BLOCK = 0.15, 0.05  # of the value of a passage that the one beside it has, in its block or not
_LENGTH_POWER = 0.5  # of the length of a passage: a longer one says more
_SEEN, _MIN_SEEN = 0.6, 0.3  # what a word is worth again for each earlier hit that has it, and at least
_UNMATCHED = 1e-5  # without a word of the query: the value of the nearest passage, or what the others have of the best
_REPEATED = 1e-6  # of the gain of a passage that an earlier hit has as well
_LARGE = 600  # bytes: above this, a passage that does not fit may end an order early
_LINE_GAIN = 1e-9  # of a hit that is only a line


@dataclass(frozen=True, slots=True)
class Source:
    """A row that passages are chosen for: what it costs without them, and each passage with its gain.

    Without passages the row itself is what is shown.
    """

    head: Size
    layout: Layout
    gains: tuple[float, ...] = ()


class Choice(NamedTuple):
    """The passages that are shown of each source, None for a source that is not; their summed gain; and the bytes."""

    shown: tuple[tuple[int, ...] | None, ...]
    gain: float
    size: Size


class _Item(NamedTuple):
    """A passage in the order."""

    key: float
    source: int
    place: int  # among the passages of its source, best first
    passage: int  # -1: the row itself
    size: int


# ── gains ─────────────────────────────────────────────────────────────────────────────────────────────────────


def passage_gains(
    hits: Sequence[Hit], layouts: Sequence[Layout], terms: QueryTerms, weights: Mapping[str, float]
) -> list[tuple[float, ...]]:
    """The gain of each passage: evidence of its hit × what it has of the query, its nearness and its place.

    A gain depends on the query, the hit and the hits before it alone, so that it is the same for any budget or limit.
    """
    shares = _Shares(terms, weights)
    top = max((hit.score for hit in hits[:1]), default=0.0)
    near = max((max(hit.piece_cosines, default=0.0) for hit in hits[:1]), default=0.0)
    seen: dict[str, int] = {}
    texts: set[str] = set()
    gains = []
    for hit, layout in zip(hits, layouts, strict=True):
        evidence = max(hit.score, 0.0) / top if top > 0 else 1.0
        gains.append(_gains_of(hit, layout, shares, evidence, near, seen, texts))
    return gains


def _gains_of(
    hit: Hit,
    layout: Layout,
    shares: _Shares,
    evidence: float,
    near: float,
    seen: dict[str, int],
    texts: set[str],
) -> tuple[float, ...]:
    passages = layout.passages
    matched = [shares.matched(layout.text[one.start : one.end]) for one in passages]
    cosines = _passage_cosines(hit, passages)
    near = max(near, max(cosines, default=0.0))
    values = [
        max(sum(found.values()) ** _TERM_POWER, _UNMATCHED) * exp(_COSINE * (cosine - near))
        for found, cosine in zip(matched, cosines, strict=True)
    ]
    best = max(range(len(values)), key=values.__getitem__, default=0)
    lent = _lent_by_neighbours(values, passages)
    gains = []
    for i, (passage, found) in enumerate(zip(passages, matched, strict=True)):
        value = values[i] + lent[i] if found or i == best else lent[i] + _UNMATCHED * values[best] / (1 + abs(i - best))
        total = sum(found.values())
        new = sum(share * max(_SEEN ** seen.get(term, 0), _MIN_SEEN) for term, share in found.items())
        length = passage.end - passage.start
        gains.append(evidence * value * (new / total if total else 1.0) * length**_LENGTH_POWER)
    own = [" ".join(layout.text[one.start : one.end].split()).casefold() for one in passages]
    for i, text in enumerate(own):
        if text in texts:
            gains[i] *= _REPEATED
    texts.update(own)
    for term in {term for found in matched for term in found}:
        seen[term] = seen.get(term, 0) + 1
    return tuple(gains)


def _lent_by_neighbours(values: Sequence[float], passages: Sequence[Passage]) -> list[float]:
    """What each passage has of the values beside it: less with each passage, and least from another block."""
    lent = [0.0] * len(values)
    for order in (range(len(values)), range(len(values) - 1, -1, -1)):
        passed, before = 0.0, -1
        for i in order:
            if before >= 0:
                passed = max(passed, values[before])
                passed *= _NEIGHBOUR if passages[before].block == passages[i].block else _OTHER_BLOCK
            lent[i] = max(lent[i], passed)
            before = i
    return lent


def _passage_cosines(hit: Hit, passages: Sequence[Passage]) -> list[float]:
    """The cosine of each passage: that of the pieces that it is in, by how much of it is in each."""
    ranges = []
    if len(hit.piece_cosines) > 1:
        from mindex.embedding_text import piece_ranges  # its patterns are compiled; a search by keyword does without

        ranges = piece_ranges(hit.record)
    if len(ranges) != len(hit.piece_cosines):
        return [max(hit.piece_cosines, default=0.0)] * len(passages)
    cosines = []
    for one in passages:
        inside = [max(0, min(one.end, end) - max(one.start, start)) for start, end in ranges]
        weighed = sum(length * cosine for length, cosine in zip(inside, hit.piece_cosines, strict=True))
        cosines.append(weighed / max(1, sum(inside)))
    return cosines


class _Shares:
    """The share of the query's weight that each term has, and which of them a text has."""

    def __init__(self, terms: QueryTerms, weights: Mapping[str, float]) -> None:
        self._terms = terms
        usual = sum(weights.values()) / len(weights) if weights else 1.0
        sought = (*terms.tokens, *terms.prefixes, *terms.literals)
        total = sum(max(weights.get(term, usual), 0.0) for term in sought) or 1.0
        self._shares = {term: max(weights.get(term, usual), 0.0) / total for term in sought}

    def matched(self, text: str) -> dict[str, float]:
        terms = self._terms
        analysis = analyze(text)
        found = terms.tokens.intersection(analysis.words) | terms.tokens.intersection(analysis.identifiers)
        if terms.prefixes:
            words = (*analysis.words, *analysis.identifiers)
            found |= {prefix for prefix in terms.prefixes if any(word.startswith(prefix) for word in words)}
        for literal in terms.literals:
            if any(literal_ranges(text, literal, inside_words=terms.inside_words)):
                found |= {literal}
        return {term: self._shares[term] for term in found}


# ── order and budget ──────────────────────────────────────────────────────────────────────────────────────────


def choose(sources: Sequence[Source], space: Size) -> Choice:
    """The passages to show in a space: of all the orders, the one whose passages that fit have the largest gain."""
    order = _order(sources)
    largest = max(space)
    sizes = {item.size for item in order if _LARGE < item.size <= largest}
    walk = _Walk(sources, space)
    best = walk.choice(order)
    if len(order) == sum(max(1, len(one)) for one in best.shown if one is not None):
        return best
    for count in range(len(sources), 0, -1):
        pool = order if count == len(sources) else [item for item in order if item.source < count]
        for cap in (largest + 1, *sorted(sizes, reverse=True)):
            if count == len(sources) and cap > largest and not sizes:
                continue  # the first choice
            choice = walk.choice([item for item in pool if item.size < cap])
            if choice.gain > best.gain:
                best = choice
    return best


def choose_in_order(sources: Sequence[Source], space: Size) -> Choice:
    """As many passages as fit from the first one on, as one reads."""
    return _Walk(sources, space).choice(
        [
            _Item(0.0, number, place, place if source.layout.passages else -1, 0)
            for number, source in enumerate(sources)
            for place in range(max(1, len(source.layout.passages)))
        ]
    )


def _order(sources: Sequence[Source]) -> list[_Item]:
    items: list[_Item] = []
    for number, source in enumerate(sources):
        items += _chain(number, source)
    return sorted(items, key=lambda item: (-item.key, item.source, item.place))


def _chain(number: int, source: Source) -> Iterator[_Item]:
    """The passages of a source, best first. The first of them also pay for its head line, so they share one key."""
    if not source.gains:
        yield _Item(_LINE_GAIN / (1 + number), number, 0, -1, max(source.head))
        return
    layout, gains = source.layout, source.gains
    sizes = [layout.bytes_of(i) for i in range(len(gains))]
    ranked = sorted(range(len(gains)), key=lambda i: (-gains[i] / sizes[i], i))
    groups: list[tuple[float, int, int]] = []  # gain, bytes, passages
    for place, i in enumerate(ranked):
        group = (gains[i], sizes[i] + (0 if place else max(source.head)), 1)
        while groups and groups[-1][0] * group[1] < group[0] * groups[-1][1]:
            before = groups.pop()
            group = (before[0] + group[0], before[1] + group[1], before[2] + group[2])
        groups.append(group)
    place = 0
    for gain, size, count in groups:
        for i in ranked[place : place + count]:
            yield _Item(gain / size, number, place, i, sizes[i])
            place += 1


class _Walk:
    """Takes passages in order until the next one does not fit."""

    def __init__(self, sources: Sequence[Source], space: Size) -> None:
        self._sources = sources
        self._space = space

    def choice(self, order: Sequence[_Item]) -> Choice:
        taken: dict[int, list[int]] = {}
        sizes: dict[int, Size] = {}
        text = json = 0
        gain = 0.0
        for item in order:
            source = self._sources[item.source]
            have = taken.get(item.source, [])
            new = () if item.passage < 0 else source.layout.with_lead(item.passage, have)
            if item.passage >= 0 and not new:
                continue
            wanted = [*have]
            for one in new:
                insort(wanted, one)
            inside = source.layout.size(wanted) if wanted else Size(0, 0)
            before = sizes.get(item.source, Size(0, 0))
            after = Size(source.head.text + inside.text, source.head.json + inside.json)
            if text + after.text - before.text > self._space.text or json + after.json - before.json > self._space.json:
                break
            text += after.text - before.text
            json += after.json - before.json
            taken[item.source], sizes[item.source] = wanted, after
            gain += sum(source.gains[one] for one in new) if new else _LINE_GAIN
        shown = tuple(tuple(taken[i]) if i in taken else None for i in range(len(self._sources)))
        return Choice(shown, gain, Size(text, json))
