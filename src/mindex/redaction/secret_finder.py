"""Find the secrets in a text by the table of patterns, and replace them."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mindex.redaction.patterns import LIMIT, RULES, Rule

# What still belongs to a secret that was longer than its pattern looks.
_REST = re.compile(r"[^\s\"'`<>|&,;)\]}]*+")


# Where none of these words occurs, their rules find nothing; a text with none of them all is read through at once.
# Word → the rules that it may begin, or in the last table make worth trying.
_STARTS: dict[str, list[int]] = {}
_ANY_CASE_STARTS: dict[str, list[int]] = {}
_HINTS: dict[str, list[int]] = {}
for _rank, _rule in enumerate(RULES):
    for _word in _rule.starts:
        (_ANY_CASE_STARTS if _rule.any_case else _STARTS).setdefault(_word, []).append(_rank)
    for _word in _rule.hints:
        _HINTS.setdefault(_word, []).append(_rank)


class SecretSpan(NamedTuple):
    """A secret is `text[start:end]`."""

    start: int
    end: int
    kind: str


def find_secret_spans(text: str) -> list[SecretSpan]:
    """Return every secret, in order; overlapping ones are one, named by the rule that comes first in the table."""
    lowered = _lower(text)
    tried: set[int] = set()
    for table, read in ((_STARTS, text), (_ANY_CASE_STARTS, lowered), (_HINTS, text)):
        for word, ranks in table.items():
            if word in read:
                tried.update(ranks)
    places: dict[tuple[str, ...], list[int]] = {}  # rules that start with the same words share the search for them
    hits: list[tuple[int, int, int]] = []
    for rank in sorted(tried):
        rule = RULES[rank]
        if rule.starts not in places:
            places[rule.starts] = _occurrences(lowered if rule.any_case else text, rule.starts)
        here = places[rule.starts]
        if rule.hints and any(hint in text for hint in rule.hints):
            here = [match.start() for match in rule.pattern.finditer(text)]
        hits += ((start, end, rank) for start, end in _matches(rule, text, here))
    return _merge_overlaps(sorted(hits))


def _lower(text: str) -> str:
    """Return `text` in lower case and of the same length, which `str.lower` alone does not promise."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(low if len(low := char.lower()) == 1 else char for char in text)


def _occurrences(text: str, words: Iterable[str]) -> list[int]:
    """Return where any of the words begins. `str.find` passes over ordinary text many times faster than a pattern."""
    places: list[int] = []
    for word in words:
        at = text.find(word)
        while at >= 0:
            places.append(at)
            at = text.find(word, at + 1)
    return sorted(places)


def _matches(rule: Rule, text: str, places: Iterable[int]) -> Iterator[tuple[int, int]]:
    group = "v" if "v" in rule.pattern.groupindex else 0
    done = 0
    for place in places:
        # Places inside a secret are passed over unread, or a long one would be read again from each of them.
        match = rule.pattern.match(text, place) if place >= done else None
        if match and (not rule.check or rule.check(match)):
            start, done = match.span(group)
            if done - start >= LIMIT and (rest := _REST.match(text, done)):
                done = rest.end()
            yield start, done


def _merge_overlaps(hits: Iterable[tuple[int, int, int]]) -> list[SecretSpan]:
    spans: list[tuple[int, int, int]] = []
    for start, end, rank in hits:
        if spans and start < spans[-1][1]:
            first, last, best = spans.pop()
            start, end, rank = first, max(last, end), min(best, rank)
        spans.append((start, end, rank))
    return [SecretSpan(start, end, RULES[rank].kind) for start, end, rank in spans]


def replace_secrets(text: str, spans: Iterable[SecretSpan], *, keep_lines: bool) -> str:
    """Replace each secret by `[redacted:kind]`."""
    pieces: list[str] = []
    done = 0
    for span in spans:
        lines = "\n" * text.count("\n", span.start, span.end) if keep_lines else ""
        pieces += (text[done : span.start], f"[redacted:{span.kind}]", lines)
        done = span.end
    return "".join([*pieces, text[done:]])
