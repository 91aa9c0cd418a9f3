"""Which passages are shown within a budget: those with the most gain per byte, over all hits.

Passages are taken by gain per byte, and those that no longer fit are passed over. The cost of a passage is an estimate
that does not depend on what is shown beside it. So the gain never falls with the space: if more space has room for a
passage that less space passed over, all passages after it have less gain for the same bytes. The sums of estimates that
are tried are the same numbers for every budget, and the largest whose passages really fit is shown, so a larger budget
never gains less. Among the choices for the first hits, for the first two, for the first three … the one with the
largest gain is taken, so a larger limit never gains less either.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, Sequence
from math import exp, fsum, log
from typing import TYPE_CHECKING, NamedTuple

from mindex.analyzer import analyze
from mindex.datatypes import Hit, QueryTerms
from mindex.present.passage_layout import Layout, Size
from mindex.present.record_view import heading_of
from mindex.text_match import literal_ranges
from mindex.values import dataclass

if TYPE_CHECKING:
    from mindex.present.passages import Passage

# Chosen on the development set `passages_dev`, see docs/quality.md.
_TERM_POWER = 3  # of the share of the query's weight that a passage has: many of its words say more than each alone
_COSINE = 6.0  # e to the power of this times the distance to the best cosine
_NEIGHBOUR, _OTHER_BLOCK = 0.15, 0.05  # of the value of a passage that the one beside it has, in its block or not
# The answer may be near words of the query and have none of them. So each passage also has a part of what is around it,
# which falls slowly with each passage between and with the words that are missing: a larger budget fills the best hits.
_CONTEXT, _CONTEXT_FADE, _CONTEXT_POWER, _MIN_CONTEXT = 0.04, 0.9, 2, 0.02
_LENGTH_POWER = 0.5  # of the length of a passage: a longer one says more
_SEEN, _MIN_SEEN = 0.6, 0.3  # what a word is worth again for each earlier hit that has it, and at least
_REPEATED = 1e-6  # of the gain of a passage that an earlier hit has as well
_JOINT = 4  # bytes between two passages, as an estimate
_MOST, _STEP = 1.06, 1.03  # estimates that are tried: from this multiple of the space down, by this factor
_LINK_TARGET = re.compile(r"!\[[^\]]*\]\([^)]*\)|(?<=\])\([^)]*\)")  # and images: a reader does not read them
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
    """A passage that may be shown. `size` is an estimate, independent of other passages."""

    source: int
    passage: int  # -1: the row itself
    gain: float
    size: int


# ── gains ─────────────────────────────────────────────────────────────────────────────────────────────────────


def passage_gains(
    hits: Sequence[Hit], layouts: Sequence[Layout], terms: QueryTerms, weights: Mapping[str, float]
) -> list[tuple[float, ...]]:
    """The gain of each passage: evidence of its hit × what it has of the query, its nearness and its place.

    A gain depends on the query, the hit and the hits before it alone, so that it is the same for any budget or limit.
    """
    shares = _Shares(terms, weights)
    top = max((hit.relevance for hit in hits[:1]), default=0.0)
    near = max((max(hit.piece_cosines, default=0.0) for hit in hits[:1]), default=0.0)
    seen: dict[str, int] = {}
    texts: set[str] = set()
    gains = []
    for hit, layout in zip(hits, layouts, strict=True):
        evidence = hit.relevance / top if top > 0 else 1.0
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
    read = [_LINK_TARGET.sub("", layout.text[one.start : one.end]) for one in passages]
    matched = list(map(shares.matched, read))
    cosines = _passage_cosines(hit, passages)
    near = max(near, max(cosines, default=0.0))
    nearness = [exp(_COSINE * (cosine - near)) for cosine in cosines]
    totals = [sum(found.values()) for found in matched]
    said = [total**_TERM_POWER * one for total, one in zip(totals, nearness, strict=True)]
    about = [max(total**_CONTEXT_POWER, _MIN_CONTEXT) * one for total, one in zip(totals, nearness, strict=True)]
    said = _with_lent(said, passages, _NEIGHBOUR, _OTHER_BLOCK)
    about = _with_lent(about, passages, _CONTEXT_FADE, _CONTEXT_FADE)
    gains = []
    for i, (found, total) in enumerate(zip(matched, totals, strict=True)):
        new = sum(share * max(_SEEN ** seen.get(term, 0), _MIN_SEEN) for term, share in found.items())
        value = said[i] * (new / total if total else 1.0) + _CONTEXT * about[i]
        gains.append(evidence * value * len(read[i]) ** _LENGTH_POWER)
    heading = heading_of(hit.record).casefold()
    own = [" ".join(layout.text[one.start : one.end].split()).casefold() for one in passages]
    for i, text in enumerate(own):
        if text in texts or (passages[i].is_heading and text.strip("# ") == heading):
            gains[i] *= _REPEATED
    texts.update(own)
    for first, lead in _first_led(layout).items():  # a lead is shown with one that it leads, never alone
        gains[first] += gains[lead]
        gains[lead] = 0.0
    for term in {term for found in matched for term in found}:
        seen[term] = seen.get(term, 0) + 1
    return tuple(gains)


def _first_led(layout: Layout) -> dict[int, int]:
    """The first passage of each table and list that has a lead, and that lead."""
    return {passage: lead for lead, passage in {lead: one for one, lead in reversed(layout.leads.items())}.items()}


def _with_lent(values: Sequence[float], passages: Sequence[Passage], in_block: float, beyond: float) -> list[float]:
    """The value of each passage and what it has of the best one before or behind it: less with each passage between."""
    lent = [0.0] * len(values)
    for order in (range(1, len(values)), range(len(values) - 2, -1, -1)):
        passed = 0.0
        for i in order:
            before = i - order.step
            fade = in_block if passages[before].block == passages[i].block else beyond
            passed = max(passed, values[before]) * fade
            lent[i] = max(lent[i], passed)
    return [value + more for value, more in zip(values, lent, strict=True)]


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
    """The passages to show in a space: of the first sources, of one fewer … those with the largest gain."""
    items = sorted(
        (item for number, source in enumerate(sources) for item in _items(number, source)),
        key=lambda item: (-item.gain / item.size, item.source, item.passage),
    )
    best = Choice((None,) * len(sources), 0.0, Size(0, 0))
    count = len(sources)
    while count and items:
        found, count = _largest_that_fits(items, sources, space)
        if found.gain > best.gain:
            best = found
        items = [item for item in items if item.source < count]
    return best


def _largest_that_fits(items: Sequence[_Item], sources: Sequence[Source], space: Size) -> tuple[Choice, int]:
    """The choice for the largest estimate that fits, and the last source that any of those tried had a passage of."""
    last = 0
    seen: set[tuple[_Item, ...]] = set()
    for step in range(int(log(max(1.0, _MOST * min(space))) / log(_STEP)), 0, -1):
        taken = _greedy(items, _STEP**step)
        if not taken:
            break
        last = max(last, *(item.source for item in taken))
        if taken in seen:
            continue
        seen.add(taken)
        choice = _choice(taken, sources)
        if _fits(choice.size, space):
            return choice, last
    return Choice((None,) * len(sources), 0.0, Size(0, 0)), last


def _greedy(items: Sequence[_Item], space: float) -> tuple[_Item, ...]:
    """The items that fit, by their gain per byte; larger ones are passed over."""
    taken: list[_Item] = []
    for item in items:
        if item.size <= space:
            taken.append(item)
            space -= item.size
    return tuple(taken)


def _choice(taken: Sequence[_Item], sources: Sequence[Source]) -> Choice:
    """The passages of some items in the order of their text, with the heads of their tables."""
    wanted: dict[int, list[int]] = {}
    for item in taken:
        chosen = wanted.setdefault(item.source, [])
        if item.passage >= 0:
            for one in sources[item.source].layout.with_lead(item.passage, chosen):
                insort(chosen, one)
    shown = tuple(tuple(wanted[i]) if i in wanted else None for i in range(len(sources)))
    sizes = [_row_size(source, chosen) for source, chosen in zip(sources, shown, strict=True) if chosen is not None]
    gain = fsum(item.gain for item in taken)  # the same for the same passages in any order
    return Choice(shown, gain, Size(sum(one.text for one in sizes), sum(one.json for one in sizes)))


def _row_size(source: Source, chosen: Sequence[int]) -> Size:
    inside = source.layout.size(chosen) if chosen else Size(0, 0)
    return Size(source.head.text + inside.text, source.head.json + inside.json)


def _items(number: int, source: Source) -> Iterator[_Item]:
    """The passages of a source; the one with the most gain per byte pays for the head line."""
    if not source.gains:
        yield _Item(number, -1, _LINE_GAIN / (1 + number), max(source.head))
        return
    gains = source.gains
    sizes = [source.layout.bytes_of(i) + _JOINT for i in range(len(gains))]
    for first, lead in _first_led(source.layout).items():
        sizes[first] += sizes[lead]
    best = max(range(len(gains)), key=lambda i: (gains[i] / sizes[i], -i))
    for i, (gain, size) in enumerate(zip(gains, sizes, strict=True)):
        yield _Item(number, i, gain, size + max(source.head) if i == best else size)


def choose_in_order(sources: Sequence[Source], space: Size) -> Choice:
    """As many passages as fit from the first one on, as one reads."""
    shown: list[tuple[int, ...] | None] = [None] * len(sources)
    used, gain = Size(0, 0), 0.0
    for number, source in enumerate(sources):
        count = len(source.layout.passages)
        left = space.minus(used)
        fitting = bisect_left(
            range(min(1, count), count + 1), True, key=lambda some: not _fits(_row_size(source, range(some)), left)
        )
        if not fitting:
            break
        chosen = tuple(range(fitting if count else 0))
        shown[number] = chosen
        size = _row_size(source, chosen)
        used, gain = Size(used.text + size.text, used.json + size.json), gain + sum(source.gains[:fitting])
        if fitting < count:
            break
    return Choice(tuple(shown), gain, used)


def _fits(size: Size, space: Size) -> bool:
    return size.text <= space.text and size.json <= space.json
