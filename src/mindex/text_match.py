"""Where a text holds what a query seeks, as ranges of characters: words by the analyzer, literal texts by letters."""

import re
from collections.abc import Iterable, Iterator
from string import ascii_lowercase, ascii_uppercase

from mindex.analyzer import is_identifier, is_unsegmented, is_word_character, locate, starts_part
from mindex.datatypes import QueryTerms, Range

_ASCII_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_JOINERS = "-_./\\:@#+"  # between the parts of an identifier
_SEGMENTS = re.compile(r"[/\\:@#]")  # between the identifiers of a path or an address
_SLUGS = re.compile(r"[/\\:@#-]")  # and between words of an address that are joined by hyphens


def matched_ranges(text: str, terms: QueryTerms) -> tuple[Range, ...]:
    """The ranges of a text that match a query, in order; they neither overlap nor touch."""
    found: list[Range] = []
    if terms.tokens or terms.prefixes:
        found += ((start, end) for token, start, end, _ in locate(text) if _is_sought(token, terms))
    for literal in terms.literals:
        found += literal_ranges(text, literal, inside_words=terms.inside_words)
    return merged_ranges(found)


def _is_sought(token: str, terms: QueryTerms) -> bool:
    return token in terms.tokens or (bool(terms.prefixes) and token.startswith(terms.prefixes))


def merged_ranges(ranges: Iterable[Range]) -> tuple[Range, ...]:
    """The ranges in order; those that overlap or touch become one."""
    merged: list[Range] = []
    for start, end in sorted(ranges):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return tuple(merged)


def literal_ranges(text: str, literal: str, *, inside_words: bool = False) -> Iterator[Range]:
    """Where a text holds a literal text: as whole words, or from the start of a part of an identifier.

    `cat` is found in `cat` and `catFactory`, not in `location` or `category`; with `inside_words` in all of them. In
    scripts without spaces it is found anywhere. A letter from a to z matches in either case, every other character only
    itself: engines differ in how they fold the rest, and this is what all of them can do fast.
    """
    folded, sought = text.translate(_ASCII_LOWER), literal.translate(_ASCII_LOWER)
    start = folded.find(sought) if sought else -1
    while start >= 0:
        end = start + len(sought)
        if inside_words or (_begins_word(text, start) and _ends_word_or_part(text, start, end)):
            yield start, end
        start = folded.find(sought, start + 1)


def identifier_around(text: str, start: int, end: int) -> str:
    """The identifier that a range of a text is in.

    Of a path or an address that is its part between slashes, colons and the like; where the range has some itself, from
    the first to the last of them.
    """
    before, after = start, end
    while before > 0 and _is_joined(text[before - 1]):
        before -= 1
    while after < len(text) and _is_joined(text[after]):
        after += 1
    left, right = text[before:start], text[end:after]
    separator = _SLUGS if _SEGMENTS.search(left + right) else _SEGMENTS
    return (separator.split(left)[-1] + text[start:end] + separator.split(right)[0]).strip(_JOINERS)


def _is_joined(character: str) -> bool:
    return is_word_character(character) or character in _JOINERS


def _begins_word(text: str, start: int) -> bool:
    return _is_boundary(text[start : start + 1]) or _is_boundary(text[start - 1 : start]) or starts_part(text, start)


def _ends_word_or_part(text: str, start: int, end: int) -> bool:
    if _is_boundary(text[end - 1 : end]) or _is_boundary(text[end : end + 1]):
        return True
    last = max(start, text.rfind(" ", start, end) + 1)  # of several words, the last may go on
    return is_identifier(identifier_around(text, last, end))


def _is_boundary(character: str) -> bool:
    """Whether a word may end before and after a character; '' is the end of a text."""
    return not is_word_character(character) or is_unsegmented(character)
