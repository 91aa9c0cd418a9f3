"""Codes that work once and PINs in sentences: digits near a word for a code, and a word that says of which.

A six-digit error code is not a secret: without a word such as *one-time*, *2FA*, *backup* or *door* nothing is found.
"""

import re
from collections.abc import Iterator

from mindex.redaction import password_words as words
from mindex.redaction.password_values import Value, value_class
from mindex.redaction.tables import Patterns
from mindex.redaction.word_place import Span, is_in_a_name

_PATTERN = Patterns("one_time_codes", words.PARTS)
_NEAR = 60
_QUOTES = " \"'*`("


def one_time_codes(match: re.Match[str]) -> Iterator[Span]:
    """Yield the code or the list of codes that is said of the word, if it is one that works once."""
    text, start, end = match.string, match.start(), match.end()
    if not _PATTERN.digits.search(text, max(0, start - _NEAR), end + _NEAR) or is_in_a_name(text, start, end):
        return
    if _is_result(text, start, end):
        return
    is_one_time = _PATTERN.one_time_word.fullmatch(match[0]) and match[0] not in ("tan", "Tan")
    if not (is_one_time or _PATTERN.works_once.search(text, max(0, start - 30), end + 30)):
        return
    after = _PATTERN.code_after.match(text, end)
    if after and _is_code(after["v"], bool(after["link"].strip(_QUOTES)), after["link"]):
        yield after.span("all")
        return
    before = _PATTERN.code_before.search(text, max(0, start - _NEAR), start)
    if before and _is_code(before["v"], True, ""):
        yield before.span("v")


def pins(match: re.Match[str]) -> Iterator[Span]:
    """Yield the number that is said to be a PIN or to open a door."""
    text, start, end = match.string, match.start(), match.end()
    if not _PATTERN.digits.search(text, max(0, start - _NEAR), end + _NEAR) or is_in_a_name(text, start, end):
        return
    if _is_result(text, start, end):
        return
    head = match[0]
    if not (_PATTERN.pin_word.fullmatch(head) or _PATTERN.opens_door.search(text, max(0, start - 25), end + 25)):
        return
    found = _PATTERN.pin_after.match(text, end)
    if found and _PATTERN.reference.search(found["link"]):
        return
    is_stated = bool(found and found["link"].strip(_QUOTES))
    # `door code 4471`, `pincode 4471`; `pin 4471` may be one of a plug.
    is_named = bool(_PATTERN.opens_door.search(text, max(0, start - 12), start)) or head.lower() in (
        "pincode",
        "digicode",
        "passcode",
    )
    if found and (is_stated or is_named or head.isupper() or len(found["v"]) >= 6 or not head.isascii()):
        yield found.span("v")
        return
    before = (
        _PATTERN.pin_before.search(text, max(0, start - _NEAR), start) if _PATTERN.phrase_end.match(text, end) else None
    )
    if before and not before["v"].startswith(("19", "20")):
        yield before.span("v")


def _is_result(text: str, start: int, end: int) -> bool:
    return bool(
        _PATTERN.result_before.search(text, max(0, start - 20), start) or _PATTERN.result_after.match(text, end)
    )


def _is_code(value: str, is_stated: bool, link: str) -> bool:
    if _PATTERN.code_signs.search(link):
        return False
    plain = value.split("\n")[0].replace(" ", "").replace("-", "")
    if plain.isdigit():
        if len(plain) == 4 and plain[:2] in ("19", "20"):
            return False
        return len(plain) >= 6 or (is_stated and len(plain) >= 4)
    return (
        len(plain) >= 6 and len(_PATTERN.digit.findall(plain)) > 1 and value_class(plain) in (Value.MIXED, Value.STRONG)
    )
