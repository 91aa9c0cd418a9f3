"""The passwords of logins in sentences: the name of a user and behind it a string that is not a word."""

import re
from collections.abc import Iterator

from mindex.redaction import password_words as words
from mindex.redaction.nearby_passwords import ACCEPTED, MAX_LENGTH, MIN_LENGTH_MIXED, PATTERN, Link
from mindex.redaction.password_values import Value, value_class
from mindex.redaction.word_place import MARKER, Span, is_in_a_name

_REACH = 90
_CLOSING = ".,;:)\"'`?"
_NOT_USERS = words.COPULAS | words.TARGETS | words.OWNERS | words.GRAMMAR


def login_pairs(match: re.Match[str]) -> Iterator[Span]:
    """Yield the password of `login: bob / hunter2`, `user bob hunter2x`, `creds are bob:hunter2`."""
    text, start, end = match.string, match.start(), match.end()
    if not PATTERN.login_word.fullmatch(match[0]) or is_in_a_name(text, start, end):
        return
    line_end = text.find("\n", end, end + _REACH)
    stop = line_end if line_end >= 0 else end + _REACH
    limit = stop + MAX_LENGTH
    pair = PATTERN.login_pair.search(text, end, limit)
    while pair and pair.start("v") < stop and (pair.end() < limit or pair.end() == len(text)) and MARKER not in pair[0]:
        value = pair["v"].rstrip(_CLOSING)
        if len(value) >= MIN_LENGTH_MIXED and value_class(value) in _accepted(text, end, pair):
            yield pair.start("v"), pair.start("v") + len(value)
            return
        pair = PATTERN.login_pair.search(text, pair.end("user"), limit)


def _accepted(text: str, end: int, pair: re.Match[str]) -> frozenset[Value]:
    """What the password may be: after a blank only behind a name that is given as one."""
    sign, user = pair["sign"], pair["user"]
    if sign == "/":  # a path
        return ACCEPTED[Link.LOOSE]
    if sign.strip() in ("/", "|") or sign == ":":
        return ACCEPTED[Link.PAIRED]
    before = text[end : pair.start()].rstrip(" \"'`=")
    is_named = not before.strip(":") or before.endswith(":") or "@" in user or sign.strip().isalpha()
    return ACCEPTED[Link.NEXT] if is_named and user.lower() not in _NOT_USERS else frozenset()


def account_pairs(match: re.Match[str]) -> Iterator[Span]:
    """Yield the password of `admin / hunter22` and `admin/Welcome9!`."""
    text, start, end = match.string, match.start(), match.end()
    found = PATTERN.account_pair.match(text, end)
    if not found or ":" in found["v"] or not PATTERN.account_word.fullmatch(match[0]):
        return
    value, sign = found["v"].rstrip(_CLOSING), found["sign"]
    if sign == "/":
        if (start and text[start - 1] in "/\\.-_@") or not PATTERN.not_a_path.fullmatch(value):
            return
        accepted = frozenset({Value.STRONG})
    elif is_in_a_name(text, start, end):
        return
    else:
        accepted = ACCEPTED[Link.NEXT if sign.strip() else Link.LOOSE]
    if len(value) >= MIN_LENGTH_MIXED and value_class(value) in accepted:
        yield found.start("v"), found.start("v") + len(value)
