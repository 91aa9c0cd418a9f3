"""Codes that work once and PINs in sentences: digits near a word for a code, and a word that says of which.

A six-digit error code is not a secret: without a word such as *one-time*, *2FA*, *backup* or *door* nothing is found.
"""

import re
from collections.abc import Iterator

from mindex.redaction import password_words as words
from mindex.redaction.password_values import Value, value_class
from mindex.redaction.word_place import Span, is_in_a_name

_NEAR = 60
_DIGITS = re.compile(r"\d{4}|\d{2,3}[ -]\d|\d[A-Za-z]{1,7}-?[A-Za-z]{0,7}\d")
_DIGIT = re.compile(r"\d")
# Directly before or behind the word for a code: the code is a result. `error code`, `Fehlercode`, `code d'erreur`.
_RESULT_BEFORE = re.compile(rf"(?:{words.RESULT})[^\W\d_]{{0,7}}[\"'`]?[ -]?(?:a[ ]|the[ ])?$", re.IGNORECASE)
_RESULT_AFTER = re.compile(
    rf"[ ]?(?:d['’]|de |di |af |van )?(?:{words.RESULT})|[ ](?:review|path|base|owner|snippet|freeze|coverage|style)",
    re.IGNORECASE,
)
# `door code: see PR #5512`
_REFERENCE = re.compile(
    r"(?<![^\W\d_])(?:PR|MR|issue|ticket|bug|case|task|commit|section|page|line|port|RFC)s?[ ]$", re.IGNORECASE
)
_ONE_TIME, _PIN = re.compile(words.ONE_TIME, re.IGNORECASE), re.compile(words.PIN, re.IGNORECASE)
_ONE_TIME_WORD = re.compile(words.words_pattern(words.ONE_TIME_CODES), re.IGNORECASE)
_PIN_WORD = re.compile(words.words_pattern(words.PINS), re.IGNORECASE)
_CODE_SIGNS = re.compile(r"[(=<>{}\[\]/\\&]|[`'\"].*[`'\"]")  # such signs before a number are those of code
_QUOTES = " \"'*`("
# No code is followed by a unit, a per cent sign or a further part of a number.
_UNITS = (
    "seconds?|sec|min|minutes?|hours?|days?|ms|characters?|chars?|digits?|bits?|bytes?|times|users?|people|cents?|usd|eur"
    "|dollars?|euros?|stellig|stellen|zeichen|caractères|caracteres|cifre|dígitos|цифр|символ|tekens|位|文字|桁|자|분|秒|[年月日号號番円元时時分点人名件个個枚次回歳度页頁ペ년월일원번회개명호세]"
)
_CJK = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # no blank is between a number and the next word
_END = rf"(?!(?![{_CJK}])\w|[%€$£]|[.,:/-](?![{_CJK}])\w|[ ]?(?:{_UNITS})(?![a-z]))"
_GROUPS = r"\d{3}[ -]\d{3}(?![ -]?\d)|\d\d[ ]\d\d[ ]\d\d(?![ ]?\d)|\d{4}[ -]\d{4}|\d{4,10}"
_LETTERS_AND_DIGITS = r"(?=[A-Za-z-]{0,20}\d)(?:[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){1,5}|[A-Za-z0-9]{6,16})"
_AND = r"(?:[\s,;/*`-]{1,4}|[,;]?\n[ \t]{0,4}\d{1,2}[.)][ ]|,?[ ](?:and|or|und|oder|et|y|e|i|en|och|og|и|та|&|\+)[ ])"
_CODE = rf"(?<![A-Za-z0-9_.,#$€£/:@-])(?:[A-Z]-)?(?:{_GROUPS}|{_LETTERS_AND_DIGITS}){_END}"
_CODE_AFTER = re.compile(
    r"(?P<link>(?:(?![.!?;][ ])[^\n\d]){0,40}?(?:[:：]?[ \t]*\n[ \t*-]{0,4}(?:\d{1,2}[.)][ ])?)?)"
    rf"(?P<all>(?P<v>{_CODE})(?>(?:{_AND}{_CODE}){{0,40}}))"
)
_CODE_BEFORE = re.compile(
    rf"(?P<v>{_CODE})[\"'`]?[ ]{{0,2}}"
    r"(?:is|ist|est|es|è|é|jest|to|är|er|on|--?|—|–|:|является|это|为|是|は|が|as|als)[ ]?"
    r"[^\n.\d]{0,40}$"
)
_KEYPAD = r"(?=\d{0,4}[AB]\d{0,5}(?!\w))[\dAB]{4,6}"  # of doors in France: `47B12`
_PIN_AFTER = re.compile(
    r"(?P<link>(?:(?![.!?;][ ])[^\n\d]){0,30}?)(?<![A-Za-z0-9_.,#$€£/@-])"
    rf"(?P<v>#?\d{{4,8}}[#*]?|\d\d(?:-\d\d){{2,3}}|{_KEYPAD})" + _END
)
_PIN_BEFORE = re.compile(
    r"(?<![A-Za-z0-9_.,:#$€£/@-])(?P<v>#?\d{4,8}[#*]?)[ ](?:is|ist|est|es|è|é|jest|är|er|on|as|als|comme|como)[ ]"
    r"(?:(?:the|my|our|your|its|a|die|der|das|mein\w*|unser\w*|le|la|el|mon|notre|il|mi|o|minha?|de|het)[ ])?"
    r"(?:[^\W\d_]{2,12}[ ])?$"
)
_PHRASE_END = re.compile(
    r"\s*(?:$|[.,;:!?)\n]|(?:for|to|of|on|für|zum|zur|vom|von|pour|de|du|da|do|del|della|para|per|van)\b)"
)


def one_time_codes(match: re.Match[str]) -> Iterator[Span]:
    """Yield the code or the list of codes that is said of the word, if it is one that works once."""
    text, start, end = match.string, match.start(), match.end()
    if not _DIGITS.search(text, max(0, start - _NEAR), end + _NEAR) or is_in_a_name(text, start, end):
        return
    if _is_result(text, start, end):
        return
    is_one_time = _ONE_TIME_WORD.fullmatch(match[0]) and match[0] not in ("tan", "Tan")
    if not (is_one_time or _ONE_TIME.search(text, max(0, start - 30), end + 30)):
        return
    after = _CODE_AFTER.match(text, end)
    if after and _is_code(after["v"], bool(after["link"].strip(_QUOTES)), after["link"]):
        yield after.span("all")
        return
    before = _CODE_BEFORE.search(text, max(0, start - _NEAR), start)
    if before and _is_code(before["v"], True, ""):
        yield before.span("v")


def pins(match: re.Match[str]) -> Iterator[Span]:
    """Yield the number that is said to be a PIN or to open a door."""
    text, start, end = match.string, match.start(), match.end()
    if not _DIGITS.search(text, max(0, start - _NEAR), end + _NEAR) or is_in_a_name(text, start, end):
        return
    if _is_result(text, start, end):
        return
    head = match[0]
    if not (_PIN_WORD.fullmatch(head) or _PIN.search(text, max(0, start - 25), end + 25)):
        return
    found = _PIN_AFTER.match(text, end)
    if found and _REFERENCE.search(found["link"]):
        return
    is_stated = bool(found and found["link"].strip(_QUOTES))
    # `door code 4471`, `pincode 4471`; `pin 4471` may be one of a plug.
    is_named = bool(_PIN.search(text, max(0, start - 12), start)) or head.lower() in ("pincode", "digicode", "passcode")
    if found and (is_stated or is_named or head.isupper() or len(found["v"]) >= 6 or not head.isascii()):
        yield found.span("v")
        return
    before = _PIN_BEFORE.search(text, max(0, start - _NEAR), start) if _PHRASE_END.match(text, end) else None
    if before and not before["v"].startswith(("19", "20")):
        yield before.span("v")


def _is_result(text: str, start: int, end: int) -> bool:
    return bool(_RESULT_BEFORE.search(text, max(0, start - 20), start) or _RESULT_AFTER.match(text, end))


def _is_code(value: str, is_stated: bool, link: str) -> bool:
    if _CODE_SIGNS.search(link):
        return False
    plain = value.split("\n")[0].replace(" ", "").replace("-", "")
    if plain.isdigit():
        if len(plain) == 4 and plain[:2] in ("19", "20"):
            return False
        return len(plain) >= 6 or (is_stated and len(plain) >= 4)
    return len(plain) >= 6 and len(_DIGIT.findall(plain)) > 1 and value_class(plain) in (Value.MIXED, Value.STRONG)
