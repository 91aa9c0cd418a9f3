"""Disguises of secrets: letters that only look different, tokens that go on in the next line, base64 of a secret."""

import re
import unicodedata
from functools import cache

from mindex.redaction.secret_checks import scrambled
from mindex.redaction.tables import Rule, load_parts

BETWEEN_LINES = load_parts("private_keys")["between_lines"]

# Full-width forms and mathematical letters. Brackets, commas and colons are left: Chinese texts use them as such.
_LOOK_ALIKES = re.compile(r"[\uff0b\uff0d-\uff19\uff1d\uff20-\uff3a\uff3f\uff41-\uff5a\uff5e\U0001d400-\U0001d7ff]")
_TOKEN_PART = re.compile(r"[\w+/.~-]{1,400}+(?:={1,2}(?![\w=]))?")
# The end of a line within a token: a continuation or a closed quote before it, marks of a quotation after it.
_LINE_END = re.compile(
    rf"(?:[\"'][ ]?[+.]?)?[ \t]{{0,3}}\\?[ \t]{{0,3}}(?:\r?\n|<br[ ]?/?>|\\r?\\?n){BETWEEN_LINES}(?:\\n)?"
)
_MAX_LINES = 8
_WORDS = re.compile(r"[A-Z]?[a-z]{2,}")
_CASES_AND_DIGITS = re.compile(r"[a-z]+|[A-Z]+|[0-9]+")
_CAPITAL_INSIDE = re.compile(r"[a-z][A-Z]|[A-Z]{2}[a-z]")


@cache
def _plain(char: str) -> str:
    plain = unicodedata.normalize("NFKC", char)
    return plain if len(plain) == 1 else char


def fold_look_alikes(text: str) -> str:
    """Return `text` with full-width and mathematical letters as ASCII; every character keeps its place."""
    return text if text.isascii() else _LOOK_ALIKES.sub(lambda match: _plain(match[0]), text)


def wrapped_end(rule: Rule, text: str, start: int, end: int | None) -> int | None:
    """Return where the token that starts at `start` ends when it goes on in the next lines; None when it does not.

    `end` is the end of what the rule matches without that, or None.
    """
    part = _TOKEN_PART.match(text, start)
    if part is None or (end is not None and end < part.end()):
        return None
    parts, ends = [part[0]], [part.end()]
    for _ in range(_MAX_LINES):
        line_end = _LINE_END.match(text, ends[-1])
        part = _TOKEN_PART.match(text, line_end.end()) if line_end else None
        if part is None or text[part.end() : part.end() + 1] in ("=", ":", "("):  # the key of another field
            break
        tail = part[0].rstrip(".")
        # A whole token ends at a line's end more often than not: only what a machine wrote continues it.
        if not (_is_random(tail) if end is not None or len(parts) > 1 else _is_no_word(tail)):
            break
        parts.append(tail)
        ends.append(part.start() + len(tail))
    if len(parts) == 1:
        return None
    joined = "".join(parts)
    match = rule.pattern.match(joined)
    if match is None or match.end() <= len(parts[0]) or (rule.check and not rule.check(match)):
        return None
    left = len(joined) - match.end()
    while left >= len(parts[-1]):
        left -= len(parts.pop())
        ends.pop()
    return ends[-1] - left


def _is_random(value: str) -> bool:
    """Also of a few characters: `KKmMDi`, `8SLvo7`, not `GitHub`."""
    if scrambled(value):
        return True
    rest = _WORDS.sub("", value)
    mixed = len(_CASES_AND_DIGITS.findall(value)) > 2
    return len(value) >= 5 and mixed and bool(rest) and not rest.isdigit() and not value.isupper()


def _is_no_word(value: str) -> bool:
    return any(char.isdigit() for char in value) or bool(_CAPITAL_INSIDE.search(value))
