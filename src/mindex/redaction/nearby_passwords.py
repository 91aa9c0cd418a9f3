"""Passwords in sentences: a word for one, or the name of a user, and near it a string that is not a word.

How near the two must be depends on the string (`password_values.Value`): the more it looks like a password, the looser
the words between them may be.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto

from mindex.redaction import password_words as words
from mindex.redaction.password_values import Value, value_class
from mindex.redaction.secret_checks import is_other_thing
from mindex.redaction.tables import Patterns
from mindex.redaction.word_place import MARKER, Span, is_in_a_name

PATTERN = Patterns("nearby_passwords", words.PARTS)
_REACH_AFTER, _REACH_BEFORE, _MAX_WORDS = 110, 70, 10
_REACH_LIST = 200


class Link(Enum):
    """The text between the word and a string."""

    STATED = auto()  # a form of *to be*, a colon, an arrow: `the pw of X is Y`, `mdp: Y`
    SET = auto()  # `reset to Y`, `auf Y gesetzt`, `type Y`
    NEXT = auto()  # nothing
    PAIRED = auto()  # nothing, and a user is named before: `user bob pass Y`
    BRACKETS = auto()  # nothing, and the two are in brackets: `(pw Y)`
    PHRASE = auto()  # what it is for: `пароль от сервера Y`
    LOOSE = auto()  # other words


ACCEPTED: dict[Link, frozenset[Value]] = {
    Link.STATED: frozenset({Value.STRONG, Value.MIXED, Value.ENDING, Value.SIGNED}),
    Link.SET: frozenset({Value.STRONG, Value.MIXED}),
    Link.NEXT: frozenset({Value.STRONG, Value.MIXED}),
    Link.PAIRED: frozenset({Value.STRONG, Value.MIXED, Value.ENDING, Value.SIGNED}),
    Link.BRACKETS: frozenset({Value.STRONG, Value.MIXED, Value.ENDING}),
    Link.PHRASE: frozenset({Value.STRONG, Value.MIXED}),
    Link.LOOSE: frozenset({Value.STRONG}),
}
_AT_CLAUSE_END = frozenset({Link.NEXT, Link.SET, Link.PHRASE})  # where a word with one digit is one
_BEFORE = frozenset({Value.STRONG})
_BEFORE_IS = frozenset({Value.STRONG, Value.MIXED})
_BEFORE_AS = frozenset({Value.STRONG, Value.MIXED, Value.ENDING})
_MIN_DIGITS = dict.fromkeys(Link, 999) | {Link.STATED: 6, Link.NEXT: 16, Link.PAIRED: 6}  # how many are a password
MIN_LENGTH, MIN_LENGTH_MIXED, MAX_LENGTH = 5, 6, 64

_OPENING, _CLOSING = "\"'`“”„«‹「『(*_~‘’»:=", "\"'`“”«»‹›」』)*_~‘’.,;:"
_CLOSING_PLAIN = _CLOSING.replace("*", "").replace("_", "").replace("~", "")
_SENTENCE_ENDS = tuple(".!?。！？;；")
_CLOSING_QUOTES = "\"'`”“’»)"
_PASSWORD_WORDS = frozenset(words.first_words("passwords")) | {"password", "passwort", "passphrase"}


def nearby_passwords(match: re.Match[str]) -> Iterator[Span]:
    """Yield the passwords that are said of the word: behind it, else before it, else in the next line."""
    text, start, end = match.string, match.start(), match.end()
    if (
        not PATTERN.password_word.fullmatch(match[0])
        or is_in_a_name(text, start, end)
        or PATTERN.other_key.match(text, end)
    ):
        return
    if is_other_thing(text, start) or (
        match[0].lower() == "pass" and PATTERN.other_pass.search(text[max(0, start - 20) : start])
    ):
        return
    is_several = bool(PATTERN.several_word.fullmatch(match[0]))
    if is_several and (colon := PATTERN.colon.match(text, end)):
        yield from _listed_values(text, colon.end())
    is_noun = not PATTERN.verb.fullmatch(match[0]) or bool(PATTERN.noun_before.search(text[max(0, start - 30) : start]))
    found = _value_after(text, start, end, is_noun and not is_several)
    if not found and not is_several:
        found = _value_before(text, start)
    if not found:
        found = _value_below(text, start, end)
    if found:
        if found[0] < found[1]:
            yield found
        yield from _further_values(text, found[1])


def _value_after(text: str, start: int, end: int, is_noun: bool) -> Span | None:
    link = Link.PAIRED if PATTERN.user_before.search(text[max(0, start - 60) : start]) else Link.NEXT
    if text[start - 1 : start] == "(":
        link = Link.BRACKETS
    elif text[max(0, start - 20) : start].lower().rpartition(" ")[0].rpartition(" ")[2] in words.AS:
        link = Link.PAIRED
    stop = _end_of_line(text, end, _REACH_AFTER)
    limit = stop + MAX_LENGTH
    after_comma = False
    for count, token in enumerate(PATTERN.token.finditer(text, end, limit)):
        raw = token[0]
        if token.start() >= stop or count > _MAX_WORDS or token.end() == limit:
            break
        if MARKER in raw:
            return token.end(), token.end()
        if raw[0] in ":=→" and len(raw) > 1:
            link = Link.STATED
        begin, finish = _trimmed(token)
        value = text[begin:finish]
        word = value.lower().replace("’", "'") or raw
        if word in _PASSWORD_WORDS:  # what follows is said of that word
            return None
        if _is_copula(raw, word, is_first=not count):
            # A sign after a comma belongs to another key: `'password' => '', 'host' => …`.
            link = Link.LOOSE if after_comma and not raw[-1].isalpha() else Link.STATED
            continue
        if _accepts(link, value, text, finish) and (is_noun or link is Link.STATED) and not raw.endswith(":"):
            return begin, finish
        if not count and not raw.strip("!"):  # `new wifi pw!! X`
            continue
        if raw.endswith(_SENTENCE_ENDS) or raw.rstrip(_CLOSING_QUOTES).endswith(("?", "？")):
            return _answer(text, token.end()) if raw.rstrip(_CLOSING_QUOTES).endswith(("?", "？")) else None
        after_comma = after_comma or raw.endswith((",", ";"))
        # `the pw was changed, now X`
        is_new = word in words.NOW and bool(PATTERN.changed.search(text, max(0, start - 30), token.start()))
        link = _next_link(link, raw, word, is_new)
    return None


def _further_values(text: str, end: int) -> Iterator[Span]:
    """Passwords that follow another one in its line: `from X to Y`, `X, new Y`, `X (web) and Y`."""
    stop = _end_of_line(text, end, _REACH_BEFORE)
    joined = False
    for count, token in enumerate(PATTERN.token.finditer(text, end, stop + MAX_LENGTH)):
        raw = token[0]
        begin, finish = _trimmed(token)
        value = text[begin:finish]
        if begin >= stop or count > _MAX_WORDS:
            return
        if MARKER in raw:
            joined = False
        elif joined and _accepts(Link.NEXT, value, text, finish) and value_class(value) is not Value.DIGITS:
            yield begin, finish
            joined = False
        elif raw in words.JOINING or value.lower() in words.JOINING or (joined and PATTERN.cjk_run.fullmatch(raw)):
            joined = True
        elif not PATTERN.beside_value.fullmatch(raw):
            return
        if raw.endswith(_SENTENCE_ENDS) and raw not in words.JOINING:
            return
        joined = joined or raw.endswith((",", "，", "、", "/"))


def _listed_values(text: str, end: int) -> Iterator[Span]:
    """The strong passwords in the rest of a line, each with its name: `passwords: NAS X, router Y`."""
    stop = _end_of_line(text, end, _REACH_LIST)
    for token in PATTERN.token.finditer(text, end, stop):
        begin, finish = _trimmed(token)
        if finish - begin >= MIN_LENGTH and value_class(text[begin:finish]) is Value.STRONG:
            yield begin, finish


def _end_of_line(text: str, start: int, reach: int) -> int:
    """Where the line of a place ends, at most `reach` characters behind it."""
    line_end = text.find("\n", start, start + reach)
    return line_end if line_end >= 0 else start + reach


def _is_copula(raw: str, word: str, *, is_first: bool) -> bool:
    if is_first and raw[0] in "の的" and len(raw) > 2:  # `パスワードの手順は`: not the password itself
        return False
    return raw in words.COPULAS or word in words.COPULAS or raw.endswith(words.COPULAS_AT_END)


def _next_link(link: Link, raw: str, word: str, is_new: bool) -> Link:
    if raw.endswith((":", "：", "→")):
        return Link.STATED
    if word in words.COMMANDS:
        return Link.STATED
    if word in words.TARGETS:
        return Link.SET
    if link is Link.STATED and word in words.FILLERS:
        return link
    if link in (Link.NEXT, Link.PHRASE, Link.SET) and (word in words.OWNERS or PATTERN.cjk_run.fullmatch(raw)):
        return Link.PHRASE
    if link is Link.PHRASE and word.isalpha() and not raw.endswith(","):
        return link
    return Link.SET if is_new else Link.LOOSE


def _accepts(link: Link, value: str, text: str, finish: int) -> bool:
    if len(value) < MIN_LENGTH:
        return False
    kind = value_class(value)
    if kind is Value.DIGITS:
        return len(value) >= _MIN_DIGITS[link]
    if kind is Value.SIGNED and (
        link is Link.SET or PATTERN.set_behind.match(text, finish)
    ):  # `changed to Ledger#2019`
        return _is_changed(text, finish) and not PATTERN.tracked.match(value)
    if kind is Value.ENDING and link is Link.SET:  # `auf Winter2025 gesetzt`
        if not _is_changed(text, finish):
            return False
        if PATTERN.changed_behind.match(text, finish):
            return len(value) >= MIN_LENGTH_MIXED
    if kind is Value.ENDING and link in _AT_CLAUSE_END:  # `new pass Qwoken-38`, and nothing behind it
        is_name = PATTERN.other_ending.fullmatch(value) and not _is_of_other_script(text, finish - len(value))
        return len(value) >= MIN_LENGTH_MIXED and not is_name and _ends_clause(text, finish)
    if kind not in ACCEPTED[link] or (kind is not Value.STRONG and len(value) < MIN_LENGTH_MIXED):
        return False
    return link is not Link.PHRASE or kind is Value.STRONG or (value.isalnum() and _ends_clause(text, finish))


def _is_changed(text: str, finish: int) -> bool:
    """Whether a word near the value says that something was changed: `reset to X`, `auf X geändert`."""
    return bool(PATTERN.changed.search(text, max(0, finish - 110), finish + 20))


def _is_of_other_script(text: str, begin: int) -> bool:
    """Whether a value of Latin letters follows a word of another script: `пароль от сервера Berezka2021`."""
    before = PATTERN.other_script.search(text[max(0, begin - 40) : begin])
    return before is not None and text[begin].isascii() and before["word"].lower() not in words.OWNERS


def _ends_clause(text: str, finish: int) -> bool:
    return bool(PATTERN.clause_end.match(text, finish))


def _value_before(text: str, start: int) -> Span | None:
    line = text.rfind("\n", max(0, start - _REACH_BEFORE), start) + 1
    tokens = list(PATTERN.token.finditer(text, max(line, start - _REACH_BEFORE), start))[::-1][:_MAX_WORDS]
    linked = near = False
    for count, token in enumerate(tokens):
        raw = token[0]
        if MARKER in raw:
            return token.end(), token.end()
        begin, finish = _trimmed(token)
        value = text[begin:finish]
        kind = value_class(value) if len(value) >= MIN_LENGTH else Value.OTHER
        accepted = _BEFORE_AS if near else _BEFORE_IS if linked else _BEFORE
        whole = begin == 0 or not text[begin - 1].isalnum()
        if whole and kind in accepted and (kind is Value.STRONG or len(value) >= MIN_LENGTH_MIXED):
            return begin, finish
        if raw.endswith(_SENTENCE_ENDS) or value.lower() in _PASSWORD_WORDS or (count > 8 and not linked):
            return None
        near = count < 3 and value.lower() in words.AS
        linked = (
            raw in words.VALUE_BEFORE or value.lower() in words.VALUE_BEFORE or raw.endswith(("が", "は", "를", "을"))
        )
    return None


def _answer(text: str, end: int) -> Span | None:
    """The one string that answers a question: `what's the wifi password?` and `GuestHouse#5`, also in the next line."""
    found = PATTERN.answer.match(text, end)
    if found and value_class(found["v"]) in (Value.STRONG, Value.MIXED):
        return found.span("v")
    return None


def _value_below(text: str, start: int, end: int) -> Span | None:
    """The strong password that is alone in the line below the word, which is also alone in its line: a copied form."""
    found = PATTERN.below.match(text, end) if PATTERN.line_start.search(text, max(0, start - 6), start) else None
    return found.span("v") if found and value_class(found["v"]) is Value.STRONG else None


def _trimmed(token: re.Match[str]) -> Span:
    """The token without the punctuation, quotes and bold marks around it."""
    raw = token[0]
    closing = _CLOSING if raw[0] in "*_~" else _CLOSING_PLAIN
    value = raw.lstrip(_OPENING)
    begin = token.end() - len(value)
    return begin, begin + len(value.rstrip(closing))


_REACH = 90
_AFTER_LOGIN = ".,;:)\"'`?"
_NOT_USERS = words.COPULAS | words.TARGETS | words.OWNERS | words.GRAMMAR


def login_pairs(match: re.Match[str]) -> Iterator[Span]:
    """Yield the password of `login: bob / hunter2`, `user bob hunter2x`, `creds are bob:hunter2`."""
    text, start, end = match.string, match.start(), match.end()
    if not PATTERN.login_word.fullmatch(match[0]) or is_in_a_name(text, start, end):
        return
    stop = _end_of_line(text, end, _REACH)
    limit = stop + MAX_LENGTH
    pair = PATTERN.login_pair.search(text, end, limit)
    while pair and pair.start("v") < stop and (pair.end() < limit or pair.end() == len(text)) and MARKER not in pair[0]:
        value = pair["v"].rstrip(_AFTER_LOGIN)
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
    value, sign = found["v"].rstrip(_AFTER_LOGIN), found["sign"]
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
