"""Tokens without a recognizable form: text that a machine made, beside a word that says what it is.

The word is the name of a service that gives such tokens away, or `key`, `token`, `secret`. Texts in base64 are decoded:
the base64 of a secret is a secret.
"""

import re
from collections.abc import Callable, Iterator
from functools import cache

from mindex.redaction.private_keys import BETWEEN_LINES
from mindex.redaction.secret_checks import decoded_text, scrambled
from mindex.redaction.tables import load_table

_CANDIDATE = re.compile(r"(?<![\w+/~.-])[\w+/-][\w+/~.-]{14,}+={0,2}")
_ENCODED_LINE = 40  # the shortest line of base64 that a program wraps
_ENCODED_LINES = re.compile(
    rf"(?P<lines>[A-Za-z0-9+/]{{{_ENCODED_LINE},}}+"
    rf"(?>(?:(?:\r?\n|\\n){BETWEEN_LINES}[A-Za-z0-9+/]{{{_ENCODED_LINE},}}+)*)={{0,2}})"
    rf"(?:(?:\r?\n|\\n){BETWEEN_LINES}(?![a-z]+\b)[A-Za-z0-9+/]{{1,{_ENCODED_LINE}}}+={{0,2}})?"
)
_BETWEEN = re.compile(rf"(?:\r?\n|\\n){BETWEEN_LINES}")
_PARTS = re.compile(r"[A-Za-z0-9]{14,}+")
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_SIGNS = re.compile(r"[^A-Za-z0-9]+")
_WORD = re.compile(r"(?<![A-Za-z0-9])[A-Za-z][a-z]{3,}(?![A-Za-z0-9])")
_SIGNS_BEFORE = re.compile(r"(?<![^\s\"'=:(])[\w+/~.!#$%^*?@-]{1,64}$")
_SIGNS_AFTER = re.compile(r"[!#$%^*?@+~][\w+/~.!#$%^*?@-]{0,64}+(?<![.?!])")
_BEFORE, _AFTER = 64, 40  # how far from the token its name may be

_NAME = re.compile(
    r"(?:api|access|secret|private|signing|encryption|licen[cs]e|account|master|service|auth|app|client)[ _-]?"
    r"key(?![a-z])|secrets?(?![a-z])|token(?![a-z])|credential|passw|bearer|[_-]key(?![a-z])"
    r"|(?<![a-z])(?:dsn|webhook)(?![a-z])"
)
_KEY_BEFORE = re.compile(r"(?<![a-z])key[\"'`]?[ ]?(?:[:=]|is\b)")
_KEY_WORD = re.compile(r"key(?![a-z])|token|secret|credential")
# A prefix and a long random rest: of a service that is not in the table.
_PREFIXED = re.compile(r"[A-Za-z][A-Za-z0-9]{1,11}_(?:[A-Za-z0-9]{1,8}_)?([A-Za-z0-9]{30,256})")
# Services whose tokens have no prefix; of those that are also words, `token` or `key` must be there as well.
_SERVICES = load_table("services")
_ALSO_WORDS = frozenset(_SERVICES["also_words"])


@cache
def _service_pattern() -> re.Pattern[str]:
    """Compiled when a random token is met: that takes 3 ms."""
    names = "|".join(sorted(_SERVICES["names"], key=len, reverse=True))
    return re.compile(rf"(?<![a-z])(?:{names})(?![a-z])")


# The text right before a value that is not a secret.
_OTHER_NAME = re.compile(
    r"(?:sha-?\d*|md5|hash(?:es)?|checksum|digest|commit|rev|revision|etag|integrity|fingerprint|public[ _-]?key|nonce|"
    r"(?<![a-z])[a-z_-]{0,30}(?:_|-|\b)ids?|uuid|guid|version|image|model|tag|branch|file|path|cursor|class|href|src|next_token)"
    r"[\"'`]?[ ]?(?:is|are|of|was|->|[:=@(])?[ ]?[\"'`]?$"
)
_ID_IN_CODE = re.compile(r"[a-z]I[dD]s?[\"'`]?[ ]?[:=][ ]?[\"'`]?$")
_IN_ADDRESS = re.compile(r"://[^\s\"']*$|(?:sha\d{1,3}|md5|blake\w{1,3}|arn)[-:=][^\s\"']*$")
# `"name": "…`, `name: …` at the start of a line, `name=…`.
_ASSIGNED_TO = re.compile(
    r"(?:[\"']([\w.-]{1,60})[\"']\s{0,3}[:=]|(?:^|\n)[ \t-]*([\w.-]{1,60})[ ]?[:=]"
    r"|(?<![\w.-])([\w.-]{1,60})=)[ ]{0,3}[\"'`]?$"
)
_OPEN_KEYS = frozenset("value val key data default text content string".split())
_MARKER = re.compile(r"\[redacted:[^\]\s]*\]|^[\w:-]*\]|\[[\w:-]*$")

Span = tuple[int, int, str]


def find_random_tokens(text: str, find_inside: Callable[[str], str]) -> Iterator[Span]:
    """Yield start, end and kind of each. `find_inside` returns the kind of a secret in a decoded text, or ''."""
    match = _CANDIDATE.search(text)
    block_end = 0  # a block of lines is read once, not again from each of its lines
    while match:
        start = match.start()
        if match[0][0] in "+-" and text[start - 1 : start] in ("", "\n"):  # the mark of a line in a diff
            start += 1
        value = text[start : match.end()].rstrip(".-/~")
        end = start + len(value)
        decoded = decoded_text(value) if len(value) >= 20 else ""
        lines = _ENCODED_LINES.match(text, start) if start >= block_end and _begins_text(value) else None
        if lines:
            block_end = lines.end()
            end, decoded = _decoded_lines(text, lines) or (end, decoded)
        if decoded and (kind := find_inside(decoded)):
            yield start, end, kind
        elif kind := _named_kind(text, start, end, value):
            yield _whole(text, start, end, kind)
        match = _CANDIDATE.search(text, max(end, start + 1))


def _begins_text(value: str) -> bool:
    """Whether a long line of base64 is that of a text; its last letters may need the next line."""
    return len(value) >= _ENCODED_LINE and bool(decoded_text(value[: len(value) // 4 * 4]))


def _decoded_lines(text: str, lines: re.Match[str]) -> tuple[int, str] | None:
    """The end and the text of base64 in several lines; None when they are not the base64 of one text."""
    for end in (lines.end(), lines.end("lines")):  # what follows may also be a word
        if decoded := decoded_text(_BETWEEN.sub("", text[lines.start() : end])):
            return end, decoded
    return None


def _whole(text: str, start: int, end: int, kind: str) -> Span:
    """The span with the signs around it that a password generator uses: half of a key is not left."""
    before, after = _SIGNS_BEFORE.search(text, max(0, start - 64), start), _SIGNS_AFTER.match(text, end)
    return before.start() if before else start, after.end() if after else end, kind


def _named_kind(text: str, start: int, end: int, value: str) -> str:
    """The kind that the words around a token give it; '' if they give none, or it is not random."""
    is_uuid = bool(_UUID.fullmatch(value))
    if not is_uuid and not _is_random(value[:256]):
        return ""
    shown = _MARKER.sub(" ", text[max(0, start - _BEFORE) : start]).rpartition("\n\n")[2]
    before = shown.lower()
    if _ID_IN_CODE.search(shown) or _OTHER_NAME.search(before) or _IN_ADDRESS.search(before):
        return ""
    after = _MARKER.sub(" ", text[end : end + _AFTER]).lower().partition("\n")[0]
    key = _ASSIGNED_TO.search(before)
    if key and (name := key[1] or key[2] or key[3]) not in _OPEN_KEYS:  # the key says what it is, and nothing else
        before, after = f"{name}:", ""
    words = f"{before} … {after}"
    service = _service_pattern().search(words)
    if service and (not (is_uuid or service[0] in _ALSO_WORDS) or _KEY_WORD.search(words)):
        return f"{service[0]}-key"
    if is_uuid:
        return ""
    if _NAME.search(words) or _KEY_BEFORE.search(before):
        return "secret"
    prefixed = _PREFIXED.fullmatch(value)
    return "token" if prefixed and scrambled(prefixed[1]) else ""


def _is_random(value: str) -> bool:
    """One long part is, or all of it without the signs that base64 has for two of its letters."""
    if value.startswith("//") or "example" in value.lower() or ("/" in value and len(_WORD.findall(value)) > 1):
        return False  # an address, a sample, a path
    if any(map(scrambled, _PARTS.findall(value))):
        return True
    letters = _SIGNS.sub("", value)
    few_signs = (len(value) - len(letters)) * 5 <= len(value)
    return few_signs and "." not in value and not _WORD.search(value) and len(letters) >= 14 and scrambled(letters)
