"""The best passage of a text: the lines around the words that match a query."""

import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from mindex.analyzer import analyze, is_unsegmented
from mindex.datatypes import Range

# What a reader needs behind the last match to see how its sentence ends.
_AFTER = 80
# The share of the space beside the matches that lies before them, and for the sake of a whole line.
_BEFORE, _MAX_BEFORE = 1 / 3, 2 / 3
_SENTENCE_START = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_SPACE = re.compile(r"\s")
_LONG_WORD = 40  # characters: a longer word is cut anywhere


def best_passage(text: str, matches: Sequence[Range], size: int) -> Range:
    """The part of a text to show in at most `size` characters: lines around the best matches, else the beginning.

    It starts and ends between lines where these are short, else between sentences, else between words.
    """
    if len(text) <= size:
        return 0, len(text)
    if size <= 0:
        return 0, 0
    first, last = _best_matches(text, matches, size)
    if last + min(_AFTER, size // 4) <= size:
        return 0, _not_blank(text, 0, _end(text, last, size), size)
    start = _start(text, first, size - (last - first))
    while start < first and text[start] in "\r\n":
        start += 1
    return start, _not_blank(text, start, _end(text, last, start + size), start + size)


def _not_blank(text: str, start: int, end: int, limit: int) -> int:
    """The end of a part; where only blanks lie before it, the limit: a word longer than the part is cut."""
    return end if text[start:end].strip() else min(limit, len(text))


def _best_matches(text: str, matches: Sequence[Range], size: int) -> Range:
    """From the first to the last of the matches within `size` characters that say most; (0, 0) without a match.

    Different words say more than one word again, and a word says less the more often the text has it. Of matches that
    say the same, those that are closest together are taken.
    """
    words, counts = _words_and_counts(text, matches)
    best, most = (0, 0), (0.0, 0)
    for i, (first, _) in enumerate(matches):
        seen: set[str] = set()
        score = 0.0
        for (_, end), found in zip(matches[i:], words[i:], strict=True):
            if end - first > size:
                break
            if new := found - seen:
                seen |= new
                score += sum(1 / counts[word] for word in new)
                if (round(score, 6), first - end) > most:
                    best, most = (first, end), (round(score, 6), first - end)
    return best


@lru_cache(maxsize=256)  # a budget asks again and again
def telling_matches(text: str, matches: tuple[Range, ...], limit: int) -> tuple[Range, ...]:
    """At most `limit` of the matches, in order: those of the words that the text has least often."""
    if len(matches) <= limit:
        return matches
    words, counts = _words_and_counts(text, matches)
    rarest = sorted(zip(matches, words, strict=True), key=lambda one: min((counts[word] for word in one[1]), default=0))
    return tuple(sorted(match for match, _ in rarest[:limit]))


def _words_and_counts(text: str, matches: Sequence[Range]) -> tuple[list[frozenset[str]], Counter[str]]:
    """The words of each match, and how often the matches have each word."""
    words = [frozenset(analyze(text[start:end]).words) for start, end in matches]
    return words, Counter(word for found in words for word in found)


def _start(text: str, first: int, space: int) -> int:
    """Where to start, with `space` characters beside the matches, of which the first is at `first`."""
    earliest = max(0, first - int(_BEFORE * space))
    line = text.find("\n", max(0, earliest - 1), first) + 1 if earliest else 0
    if line or not earliest:
        return line
    line = text.rfind("\n", 0, first) + 1  # a little more than its share, for a whole line
    if first - line <= _MAX_BEFORE * space:
        return line
    for boundary in (_SENTENCE_START, _SPACE):
        if found := boundary.search(text, earliest - 1, first):
            return found.end()
    return earliest if is_unsegmented(text[earliest]) else first


def _end(text: str, last: int, latest: int) -> int:
    """Where to end between the last match, 0 without one, and `latest`."""
    if latest >= len(text):
        return len(text)
    line = text.rfind("\n", last, latest + 1)
    if last and line >= 0 and 2 * (line - last) >= latest - last:
        return line
    if text[latest].isspace():
        return latest
    space = max(text.rfind(" ", last, latest), text.rfind("\n", last, latest))
    return space if space > 0 and latest - space < _LONG_WORD else latest
