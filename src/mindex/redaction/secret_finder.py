"""Find the secrets in a text by the table of patterns and by the words around random tokens, and replace them."""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from mindex.redaction.column_values import find_column_values
from mindex.redaction.disguises import fold_look_alikes, wrapped_end
from mindex.redaction.patterns import RULES
from mindex.redaction.random_tokens import find_random_tokens
from mindex.redaction.tables import LIMIT, UNBROKEN, Find, Rule
from mindex.redaction.user_rules import UserRule
from mindex.word_cache import WordCache

# What still belongs to a secret that was longer than its pattern looks.
_REST = re.compile(r"[^\s\"'`<>|&,;)\]}]*+")
_USER, _RANDOM = -1, len(RULES)  # rank before and after every rule of the table
# Rules that start with the same words share the search for them, and for what has to follow them: the first of each.
_BEGINNINGS = [(rule.starts, rule.head) for rule in RULES]
_SHARED = tuple(map(_BEGINNINGS.index, _BEGINNINGS))


class SecretSpan(NamedTuple):
    """A secret is `text[start:end]`."""

    start: int
    end: int
    kind: str


_Hit = tuple[int, int, int, str]  # start, end, rank, kind


def find_secret_spans(text: str, user_rules: Sequence[UserRule] = ()) -> list[SecretSpan]:
    """Return every secret, in order; overlapping ones are one, named by the user's rule or the first of the table."""
    text = fold_look_alikes(text)
    runs = text.split()
    hits = _rule_hits(text, runs)
    for rule in user_rules:
        hits += ((start, end, _USER, rule.kind) for start, end in rule.spans(text))
    if "\n" in text:  # a table has several lines
        hits += ((start, end, _RANDOM, kind) for start, end, kind in find_column_values(text, _lower(text)))
    if max(map(len, runs), default=0) >= UNBROKEN:
        hits += ((start, end, _RANDOM, kind) for start, end, kind in find_random_tokens(text, _kind_inside))
    return _merge_overlaps(sorted(hits)) if hits else []


def _kind_inside(text: str) -> str:
    """The kind of the first secret in a decoded text; ''. What is encoded twice is not looked for."""
    hits = sorted(_rule_hits(text, text.split()), key=lambda hit: hit[2])
    return hits[0][3] if hits else ""


def _rule_hits(text: str, runs: Iterable[str]) -> list[_Hit]:
    lowered = _lower(text)
    places: dict[int, list[int]] = {}
    hits: list[_Hit] = []
    is_ascii = lowered.isascii()
    may_be_near: object = None
    for rank in sorted(_possible_rules(lowered, runs)):
        rule = RULES[rank]
        if rule.find:
            if may_be_near is None:
                may_be_near = _MAY_BE_NEAR.search(text) or False
            if not may_be_near:
                continue
        here = places.get(_SHARED[rank]) if rule.starts else _NOWHERE
        if here is None:
            starts = _ASCII_STARTS[rank] if is_ascii else rule.starts
            here = _occurrences(lowered if rule.any_case else text, starts)
            if here and rule.head:
                begins = rule.compiled(rule.head).match
                here = [place for place in here if begins(text, place)]
            places[_SHARED[rank]] = here
        if rule.hints and (by_hint := _found_by_hint(rule, text)):
            here = sorted({*here, *by_hint})
        if here:
            found = _near(rule.find, rule, text, here) if rule.find else _matches(rule, text, here)
            hits += ((start, end, rank, rule.kind) for start, end in found)
    return hits


def _found_by_hint(rule: Rule, text: str) -> list[int]:
    for hint in rule.hints:
        if hint in text:
            return [match.start() for match in rule.pattern.finditer(text)]
    return []


# A text without the sign that a word has is not searched for it.
_SIGNS = ("_", "-", ".", ":", "=", "")


def _rules_by_word() -> dict[str, list[tuple[str, set[int]]]]:
    """The starts and hints of rules, in lower case and by a sign that each has, and the rules that have each of them.

    Of several words (`docker login`) the longest: what is looked up has no blank.
    """
    table: dict[str, set[int]] = {}
    for rank, rule in enumerate(RULES):
        for words in sorted(rule.in_run[1]) if rule.find else (*rule.starts, *rule.hints):
            table.setdefault(max(words.lower().split(), key=len), set()).add(rank)
    by_sign: dict[str, list[tuple[str, set[int]]]] = {sign: [] for sign in _SIGNS}
    for word, found in table.items():
        by_sign[next(sign for sign in _SIGNS if sign in word)].append((word, found))
    return by_sign


_NEAR_WORDS = {
    word: frozenset(rank for rank, rule in enumerate(RULES) if word in rule.in_run[0])
    for word in frozenset[str]().union(*(rule.in_run[0] for rule in RULES))
}
_LETTERS = re.compile(r"[^\W\d_]+")
_WORDS = _rules_by_word()
# The starts of a rule that can be in a text of ASCII.
_ASCII_STARTS = tuple(tuple(filter(str.isascii, rule.starts)) for rule in RULES)
_NONE: frozenset[int] = frozenset()
_NOWHERE: list[int] = []
_MAY_WRAP = ("\n", "\\", "<br")  # the ends of lines within a token begin with one of these
# What passwords near a word for them have, and most sentences do not: a digit, or a sign inside a word.
_MAY_BE_NEAR = re.compile(r"[0-9]|[^\W_][!#$%&*+?~^@§€][^\W_]")


def _possible_rules(lowered: str, runs: Iterable[str]) -> frozenset[int]:
    """Return the rules whose starts or hints may be in a text: of 240 a paragraph has 15, a sentence one."""
    if any(map(lowered.__contains__, _MAY_WRAP)):
        return _rules_in(lowered).union(*filter(None, map(_near_rules_of_run, runs)))
    return _NONE.union(*filter(None, map(_rules_of_run, runs)))


def _rules_in(lowered: str) -> frozenset[int]:
    likely = (words for sign, words in _WORDS.items() if sign in lowered)
    return _NONE.union(*[ranks for words in likely for word, ranks in words if word in lowered])


def _find_rules_of_run(run: str) -> frozenset[int]:
    """The rules of which a run without blanks has a start or a hint, but those that match only longer runs."""
    found = (rank for rank in _rules_in(_lower(run)) if RULES[rank].unbroken <= len(run))
    return _find_near_rules_of_run(run).union(found)


def _find_near_rules_of_run(run: str) -> frozenset[int]:
    """The rules of which a run has a whole word."""
    if run.isalpha():
        return _NEAR_WORDS.get(run.lower(), _NONE)
    return _NONE.union(*[_NEAR_WORDS[word] for word in _LETTERS.findall(run.lower()) if word in _NEAR_WORDS])


# Most words of a sentence were met before: this takes a quarter of reading all of it.
_rules_of_run = WordCache(_find_rules_of_run).__getitem__
_near_rules_of_run = WordCache(_find_near_rules_of_run).__getitem__


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


def _near(find: Find, rule: Rule, text: str, places: Iterable[int]) -> Iterator[tuple[int, int]]:
    done = 0
    for place in places:
        if place >= done and (match := rule.pattern.match(text, place)):
            done = match.end()  # the longest word counts, not the shorter ones in it
            yield from find(match)


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
