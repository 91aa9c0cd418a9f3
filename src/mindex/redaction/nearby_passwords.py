"""Passwords in sentences: a word for one, and near it a string that is not a word.

How near the two must be depends on the string (`password_values.Value`): the more it looks like a password, the looser
the words between them may be.
"""

import re
from collections.abc import Iterator
from enum import Enum, auto

from mindex.redaction import password_words as words
from mindex.redaction.password_values import Value, value_class
from mindex.redaction.secret_checks import OTHER_THING
from mindex.redaction.word_place import MARKER, Span, is_in_a_name

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

_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_TOKEN = re.compile(
    rf"[{_CJK}]+|[\u3001-\u301f\uff01-\uff0f\uff1a-\uff20]|[^\s{_CJK}\u3001-\u301f\uff01-\uff0f\uff1a-\uff20]+"
)
_OPENING, _CLOSING = "\"'`“”„«‹「『(*_~‘’»:=", "\"'`“”«»‹›」』)*_~‘’.,;:"
_CLOSING_PLAIN = _CLOSING.replace("*", "").replace("_", "").replace("~", "")
_SENTENCE_ENDS = tuple(".!?。！？;；")
# `policy2025`, `step-12`: as often the name of something else.
_OTHER_ENDING = re.compile(r"[^\W\d_]+(?:19|20)\d\d|[^\W\d_]*[a-z][_-]\d")
# After a value, before the next one: punctuation, and what the value is for.
_BESIDE_VALUE = re.compile(r"[\"'`,)*_|/，、]+|\([^\s()]{1,20}\)[,/]?")
_CJK_RUN = re.compile(rf"[{_CJK}]+")
_CLAUSE_END = re.compile(
    rf"[\"'`)*]{{0,2}}(?:[.,;!?)]|\s*$|\s*\n|[ ]-|[ ][–—(]|[ ](?:{words.PARTICLES})(?![^\W\d_]))", re.IGNORECASE
)
# `pass` is a verb, `contra` and `passe` are words of other meanings: before a noun there is another word.
_VERB = re.compile(r"pass|passe|la contra|clave|пас|sandi|ww", re.IGNORECASE)
_NOUN_BEFORE = re.compile(
    r"(?:^|[\n,;:(–—+*|/-][ ]?|\b(?:the|my|our|his|her|your|new|old|temp\w*|root|admin|wi-?fi|wlan|db|sudo|ssh|vpn"
    r"|login|user(?:name)? \S+|account|with|guest|default|initial|same|and|y|und|et|e|la|mi|tu|su|nueva|le|il)[ ]"
    rf"|(?:{words.CHANGE})[^\W\d_]{{0,8}}[ ])$",
    re.IGNORECASE,
)
_CHANGE = re.compile(words.CHANGE, re.IGNORECASE)
# `clave primaria`, `clave del éxito`: keys of another kind.
_OTHER_KEY = re.compile(
    r"[ ](?:primari|for[aá]ne|extern|únic|unic|compuest|candidat|p[uú]blic|del [eé]xito)", re.IGNORECASE
)
# `this pass`, `second pass`, `ski pass`: of a compiler, or a card.
_OTHER_PASS = re.compile(
    r"\b(?:this|each|every|first|second|third|last|final|another|single|next|compiler|optimi[sz]er|optimi[sz]ation|render"
    r"|ski|boarding|hall|season|bus|train|day|museum)[ ]$",
    re.IGNORECASE,
)
# The word before a value of Latin letters, in another script.
_OTHER_SCRIPT = re.compile(r"(?P<word>[^\W\d_A-Za-z\u00c0-\u024f]+)[\s:«„\"'`]{1,3}$")
# Behind a value in languages whose verb is last: `パスワードを X に変更`.
_SET_BEHIND = re.compile(
    r"[」』\"'`]?[ ]?(?:으?로|에|に|へ|を)[ ]?(?:바|변경|설정|設定|変更|した|改)|[ ](?:olarak|yap)"
)
# Numbered things of trackers: `reset … to issue#4412`.
_TRACKED = re.compile(
    r"(?:issue|ticket|bug|pr|mr|gh|pull|task|case|story|incident|order|player|user)s?#", re.IGNORECASE
)
_CHANGED_BEHIND = re.compile(rf"[\"'`»“]?[ ](?:{words.CHANGE})", re.IGNORECASE)
_CLOSING_QUOTES = "\"'`”“’»)"
_USER_BEFORE = re.compile(
    r"\b(?:user(?:name)?|login|benutzer|utilisateur|identifiant|compte|usuario|utente|usuário|gebruiker|użytkownik|логин"
    r"|account|als|as|konto|uživatel|käyttäjä|användare|bruger|bruker|用户名|ユーザー名?|아이디)"
    r"[ :=]{1,2}\S{1,40}[ ,/]{1,3}(?:(?:and|und|y|et|e|i|и|with|mit|con|com|avec|the|a)[ ])?$",
    re.IGNORECASE,
)
_PASSWORD_WORD = re.compile(
    words.words_pattern(words.PASSWORDS, words.SEVERAL_PASSWORDS, words.COLLOQUIAL), re.IGNORECASE
)
_SEVERAL = re.compile(words.words_pattern(words.SEVERAL_PASSWORDS), re.IGNORECASE)
_LINE_START = re.compile(r"(?:^|\n)[ \t#*>-]{0,5}$")
_BELOW = re.compile(r"\**[ \t]*\n[ \t]*(?P<v>[^\s\"'`]{6,64}+)[ \t]*(?=\n|\Z)")
_COLON = re.compile(r"[ ]?[:：]")
_PASSWORD_WORDS = frozenset(words.first_words(words.PASSWORDS)) | {"password", "passwort", "passphrase"}
_ANSWER = re.compile(
    r"[ \t]*\n?(?:[\w .-]{1,20}:[ ])?[ \t>]*(?:it'?s[ ]|its[ ])?[\"'`]?(?P<v>[^\s\"'`]{6,64}+)(?<![.,])[\"'`.]?[ \t]*"
    r"(?=\n|\Z)"
)


def nearby_passwords(match: re.Match[str]) -> Iterator[Span]:
    """Yield the passwords that are said of the word: behind it, else before it, else in the next line."""
    text, start, end = match.string, match.start(), match.end()
    if not _PASSWORD_WORD.fullmatch(match[0]) or is_in_a_name(text, start, end) or _OTHER_KEY.match(text, end):
        return
    if OTHER_THING.match(text, start) or (
        match[0].lower() == "pass" and _OTHER_PASS.search(text[max(0, start - 20) : start])
    ):
        return
    is_several = bool(_SEVERAL.fullmatch(match[0]))
    if is_several and (colon := _COLON.match(text, end)):
        yield from _listed_values(text, colon.end())
    is_noun = not _VERB.fullmatch(match[0]) or bool(_NOUN_BEFORE.search(text[max(0, start - 30) : start]))
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
    link = Link.PAIRED if _USER_BEFORE.search(text[max(0, start - 60) : start]) else Link.NEXT
    if text[start - 1 : start] == "(":
        link = Link.BRACKETS
    elif text[max(0, start - 20) : start].lower().rpartition(" ")[0].rpartition(" ")[2] in words.AS:
        link = Link.PAIRED
    line_end = text.find("\n", end, end + _REACH_AFTER)
    stop = line_end if line_end >= 0 else end + _REACH_AFTER
    limit = stop + MAX_LENGTH
    after_comma = False
    for count, token in enumerate(_TOKEN.finditer(text, end, limit)):
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
        is_new = word in words.NOW and bool(_CHANGE.search(text, max(0, start - 30), token.start()))
        link = _next_link(link, raw, word, is_new)
    return None


def _further_values(text: str, end: int) -> Iterator[Span]:
    """Passwords that follow another one in its line: `from X to Y`, `X, new Y`, `X (web) and Y`."""
    line_end = text.find("\n", end, end + _REACH_BEFORE)
    stop = line_end if line_end >= 0 else end + _REACH_BEFORE
    joined = False
    for count, token in enumerate(_TOKEN.finditer(text, end, stop + MAX_LENGTH)):
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
        elif raw in words.JOINING or value.lower() in words.JOINING or (joined and _CJK_RUN.fullmatch(raw)):
            joined = True
        elif not _BESIDE_VALUE.fullmatch(raw):
            return
        if raw.endswith(_SENTENCE_ENDS) and raw not in words.JOINING:
            return
        joined = joined or raw.endswith((",", "，", "、", "/"))


def _listed_values(text: str, end: int) -> Iterator[Span]:
    """The strong passwords in the rest of a line, each with its name: `passwords: NAS X, router Y`."""
    line_end = text.find("\n", end, end + _REACH_LIST)
    stop = line_end if line_end >= 0 else end + _REACH_LIST
    for token in _TOKEN.finditer(text, end, stop):
        begin, finish = _trimmed(token)
        if finish - begin >= MIN_LENGTH and value_class(text[begin:finish]) is Value.STRONG:
            yield begin, finish


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
    if link in (Link.NEXT, Link.PHRASE, Link.SET) and (word in words.OWNERS or _CJK_RUN.fullmatch(raw)):
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
    if kind is Value.SIGNED and (link is Link.SET or _SET_BEHIND.match(text, finish)):  # `changed to Ledger#2019`
        return _is_changed(text, finish) and not _TRACKED.match(value)
    if kind is Value.ENDING and link is Link.SET:  # `auf Winter2025 gesetzt`
        if not _is_changed(text, finish):
            return False
        if _CHANGED_BEHIND.match(text, finish):
            return len(value) >= MIN_LENGTH_MIXED
    if kind is Value.ENDING and link in _AT_CLAUSE_END:  # `new pass Qwoken-38`, and nothing behind it
        is_name = _OTHER_ENDING.fullmatch(value) and not _is_of_other_script(text, finish - len(value))
        return len(value) >= MIN_LENGTH_MIXED and not is_name and _ends_clause(text, finish)
    if kind not in ACCEPTED[link] or (kind is not Value.STRONG and len(value) < MIN_LENGTH_MIXED):
        return False
    return link is not Link.PHRASE or kind is Value.STRONG or (value.isalnum() and _ends_clause(text, finish))


def _is_changed(text: str, finish: int) -> bool:
    """Whether a word near the value says that something was changed: `reset to X`, `auf X geändert`."""
    return bool(_CHANGE.search(text, max(0, finish - 110), finish + 20))


def _is_of_other_script(text: str, begin: int) -> bool:
    """Whether a value of Latin letters follows a word of another script: `пароль от сервера Berezka2021`."""
    before = _OTHER_SCRIPT.search(text[max(0, begin - 40) : begin])
    return before is not None and text[begin].isascii() and before["word"].lower() not in words.OWNERS


def _ends_clause(text: str, finish: int) -> bool:
    return bool(_CLAUSE_END.match(text, finish))


def _value_before(text: str, start: int) -> Span | None:
    line = text.rfind("\n", max(0, start - _REACH_BEFORE), start) + 1
    tokens = list(_TOKEN.finditer(text, max(line, start - _REACH_BEFORE), start))[::-1][:_MAX_WORDS]
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
    found = _ANSWER.match(text, end)
    if found and value_class(found["v"]) in (Value.STRONG, Value.MIXED):
        return found.span("v")
    return None


def _value_below(text: str, start: int, end: int) -> Span | None:
    """The strong password that is alone in the line below the word, which is also alone in its line: a copied form."""
    found = _BELOW.match(text, end) if _LINE_START.search(text, max(0, start - 6), start) else None
    return found.span("v") if found and value_class(found["v"]) is Value.STRONG else None


def _trimmed(token: re.Match[str]) -> Span:
    """The token without the punctuation, quotes and bold marks around it."""
    raw = token[0]
    closing = _CLOSING if raw[0] in "*_~" else _CLOSING_PLAIN
    value = raw.lstrip(_OPENING)
    begin = token.end() - len(value)
    return begin, begin + len(value.rstrip(closing))
