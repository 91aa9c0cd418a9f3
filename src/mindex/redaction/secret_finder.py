"""Find the secrets in a text by the table of patterns and by the words around random tokens, and replace them."""

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mindex.redaction.disguises import fold_look_alikes, wrapped_end
from mindex.redaction.patterns import RULES
from mindex.redaction.random_tokens import find_random_tokens
from mindex.redaction.rule import LIMIT, Rule

# What still belongs to a secret that was longer than its pattern looks.
_REST = re.compile(r"[^\s\"'`<>|&,;)\]}]*+")
_RANDOM = len(RULES)  # ranks after every rule


class SecretSpan(NamedTuple):
    """A secret is `text[start:end]`."""

    start: int
    end: int
    kind: str


_Hit = tuple[int, int, int, str]  # start, end, rank, kind


def find_secret_spans(text: str) -> list[SecretSpan]:
    """Return every secret, in order; overlapping ones are one, named by the rule that comes first in the table."""
    text = fold_look_alikes(text)
    random = ((start, end, _RANDOM, kind) for start, end, kind in find_random_tokens(text, _kind_inside))
    return _merge_overlaps(sorted([*_rule_hits(text), *random]))


def _kind_inside(text: str) -> str:
    """The kind of the first secret in a decoded text; ''. What is encoded twice is not looked for."""
    hits = sorted(_rule_hits(text), key=lambda hit: hit[2])
    return hits[0][3] if hits else ""


def _rule_hits(text: str) -> list[_Hit]:
    lowered = _lower(text)
    places: dict[tuple[str, ...], list[int]] = {}  # rules that start with the same words share the search for them
    hits: list[_Hit] = []
    for rank in _possible_rules(lowered):
        rule = RULES[rank]
        if rule.starts not in places:
            places[rule.starts] = _occurrences(lowered if rule.any_case else text, rule.starts)
        here = places[rule.starts]
        if rule.hints and any(hint in text for hint in rule.hints):
            here = sorted({*here, *(match.start() for match in rule.pattern.finditer(text))})
        if here:
            hits += ((start, end, rank, rule.kind) for start, end in _matches(rule, text, here))
    return hits


_GRAM = 3


def _rules_by_gram() -> tuple[dict[str, set[int]], set[int]]:
    """The rules by the first characters of their starts, and those that have none or shorter ones."""
    by_gram: dict[str, set[int]] = {}
    others = set()
    for rank, rule in enumerate(RULES):
        if rule.hints or any(len(start) < _GRAM for start in rule.starts):
            others.add(rank)
            continue
        for start in rule.starts:
            by_gram.setdefault(start[:_GRAM].lower(), set()).add(rank)
    return by_gram, others


_BY_GRAM, _OTHERS = _rules_by_gram()


def _possible_rules(lowered: str) -> list[int]:
    """Return the rules whose starts may be in a text, in order: of 240 an ordinary paragraph needs 30."""
    grams = {lowered[at : at + _GRAM] for at in range(len(lowered) - _GRAM + 1)}
    return sorted(_OTHERS.union(*(_BY_GRAM[gram] for gram in _BY_GRAM.keys() & grams)))


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
        if place < done:  # inside a secret: passed over unread, or a long one would be read again from each of them
            continue
        span = None
        match = rule.pattern.match(text, place)
        if match and (not rule.check or rule.check(match)):
            start, end = match.span(group)
            if end - start >= LIMIT and (rest := _REST.match(text, end)):
                end = rest.end()
            span = start, end
        if rule.wraps and (end_in_next_line := wrapped_end(rule, text, place, span[1] if span else None)):
            span = span[0] if span else place, end_in_next_line
        if span:
            done = span[1]
            yield span


def _merge_overlaps(hits: Iterable[_Hit]) -> list[SecretSpan]:
    spans: list[_Hit] = []
    for start, end, rank, kind in hits:
        if spans and start < spans[-1][1]:
            first, last, best, name = spans.pop()
            start, end, (rank, kind) = first, max(last, end), min((best, name), (rank, kind))
        spans.append((start, end, rank, kind))
    return [SecretSpan(start, end, kind) for start, end, _, kind in spans]


def replace_secrets(text: str, spans: Iterable[SecretSpan], *, keep_lines: bool) -> str:
    """Replace each secret by `[redacted:kind]`."""
    pieces: list[str] = []
    done = 0
    for span in spans:
        lines = "\n" * text.count("\n", span.start, span.end) if keep_lines else ""
        pieces += (text[done : span.start], f"[redacted:{span.kind}]", lines)
        done = span.end
    return "".join([*pieces, text[done:]])
