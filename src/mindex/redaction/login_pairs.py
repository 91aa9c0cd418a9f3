"""The passwords of logins in sentences: the name of a user and behind it a string that is not a word."""

import re
from collections.abc import Iterator

from mindex.redaction import password_words as words
from mindex.redaction.nearby_passwords import ACCEPTED, MAX_LENGTH, MIN_LENGTH_MIXED, Link
from mindex.redaction.password_values import Value, value_class
from mindex.redaction.word_place import MARKER, Span, is_in_a_name

_REACH = 90
_CLOSING = ".,;:)\"'`?"
_LOGIN_WORD = re.compile(words.words_pattern(words.LOGINS), re.IGNORECASE)
_ACCOUNT_WORD = re.compile(words.words_pattern(words.ACCOUNTS), re.IGNORECASE)
_NOT_USERS = words.COPULAS | words.TARGETS | words.OWNERS | words.GRAMMAR
_VALUE = r"[\"'`]?(?P<v>[^\s\"'`]{6,64}+)(?![^\s\"'`])"
_PAIR = re.compile(
    r"(?<![\w.@/\\-])(?P<user>[A-Za-z][\w.@+\\-]{1,40})[\"'`]?"
    r"(?P<sign>[ ]?[/|][ ]?|:[ ]?|,?[ ](?:(?:and|und|y|et|i|и|och|og|ja|en|ve|with|mit)[ ])?)" + _VALUE
)
_ACCOUNT_PAIR = re.compile(r"[\"'`]?(?P<sign>[ ][/|][ ]|:|[ ])" + _VALUE)


def login_pairs(match: re.Match[str]) -> Iterator[Span]:
    """Yield the password of `login: bob / hunter2`, `user bob hunter2x`, `creds are bob:hunter2`."""
    text, start, end = match.string, match.start(), match.end()
    if not _LOGIN_WORD.fullmatch(match[0]) or is_in_a_name(text, start, end):
        return
    line_end = text.find("\n", end, end + _REACH)
    stop = line_end if line_end >= 0 else end + _REACH
    for pair in _PAIR.finditer(text, end, stop + MAX_LENGTH):
        if MARKER in pair[0] or pair.start("v") >= stop or pair.end() == stop + MAX_LENGTH:
            return
        value, sign = pair["v"].rstrip(_CLOSING), pair["sign"].strip()
        kind = value_class(value) if len(value) >= MIN_LENGTH_MIXED else Value.OTHER
        if not sign and pair["user"].lower() in _NOT_USERS:
            continue
        is_first = not text[end : pair.start()].strip(" :=\"'`")
        spaced = " " in pair["sign"] or sign != "/"
        accepted = ACCEPTED[Link.PAIRED if sign else Link.NEXT] if spaced else ACCEPTED[Link.LOOSE]
        if kind in accepted and (sign or is_first):
            yield pair.start("v"), pair.start("v") + len(value)
            return


def account_pairs(match: re.Match[str]) -> Iterator[Span]:
    """Yield the password of `admin / hunter22`."""
    text, start, end = match.string, match.start(), match.end()
    found = _ACCOUNT_PAIR.match(text, end)
    if found and _ACCOUNT_WORD.fullmatch(match[0]) and not is_in_a_name(text, start, end):
        value = found["v"].rstrip(_CLOSING)
        if (
            len(value) >= MIN_LENGTH_MIXED
            and value_class(value) in ACCEPTED[Link.NEXT if found["sign"].strip() else Link.LOOSE]
        ):
            yield found.start("v"), found.start("v") + len(value)
