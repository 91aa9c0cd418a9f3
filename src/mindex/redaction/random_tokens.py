"""Tokens without a recognizable form: text that a machine made, beside a word that says what it is.

The word is the name of a service that gives such tokens away, or `key`, `token`, `secret`. Texts in base64 are decoded:
the base64 of a secret is a secret.
"""

import re
from collections.abc import Callable, Iterator

from mindex.redaction.disguises import BETWEEN_LINES
from mindex.redaction.secret_checks import decoded_text, scrambled
from mindex.redaction.tables import Patterns, load_table

_ENCODED_LINE = 40  # the shortest line of base64 that a program wraps
_BEFORE, _AFTER = 64, 40  # how far from the token its name may be

# Of the services whose tokens have no prefix, those that are also words: `token` or `key` must be there as well.
_SERVICES = load_table("random_tokens")
_ALSO_WORDS = frozenset(_SERVICES["also_words"])
_PATTERN = Patterns(
    "random_tokens",
    {
        "between_lines": BETWEEN_LINES,
        "encoded_line": str(_ENCODED_LINE),
        "services": "|".join(sorted(_SERVICES["names"], key=len, reverse=True)),
    },
)
_OPEN_KEYS = frozenset("value val key data default text content string".split())

Span = tuple[int, int, str]


def find_random_tokens(text: str, find_inside: Callable[[str], str]) -> Iterator[Span]:
    """Yield start, end and kind of each. `find_inside` returns the kind of a secret in a decoded text, or ''."""
    match = _PATTERN.candidate.search(text)
    block_end = 0  # a block of lines is read once, not again from each of its lines
    while match:
        start = match.start()
        if match[0][0] in "+-" and text[start - 1 : start] in ("", "\n"):  # the mark of a line in a diff
            start += 1
        value = text[start : match.end()].rstrip(".-/~")
        end = start + len(value)
        decoded = decoded_text(value) if len(value) >= 20 else ""
        lines = _PATTERN.encoded_lines.match(text, start) if start >= block_end and _begins_text(value) else None
        if lines:
            block_end = lines.end()
            end, decoded = _decoded_lines(text, lines) or (end, decoded)
        if decoded and (kind := find_inside(decoded)):
            yield start, end, kind
        elif kind := _named_kind(text, start, end, value):
            yield _whole(text, start, end, kind)
        match = _PATTERN.candidate.search(text, max(end, start + 1))


def _begins_text(value: str) -> bool:
    """Whether a long line of base64 is that of a text; its last letters may need the next line."""
    return len(value) >= _ENCODED_LINE and bool(decoded_text(value[: len(value) // 4 * 4]))


def _decoded_lines(text: str, lines: re.Match[str]) -> tuple[int, str] | None:
    """The end and the text of base64 in several lines; None when they are not the base64 of one text."""
    for end in (lines.end(), lines.end("lines")):  # what follows may also be a word
        if decoded := decoded_text(_PATTERN.between.sub("", text[lines.start() : end])):
            return end, decoded
    return None


def _whole(text: str, start: int, end: int, kind: str) -> Span:
    """The span with the signs around it that a password generator uses: half of a key is not left."""
    before, after = _PATTERN.signs_before.search(text, max(0, start - 64), start), _PATTERN.signs_after.match(text, end)
    return before.start() if before else start, after.end() if after else end, kind


def _named_kind(text: str, start: int, end: int, value: str) -> str:
    """The kind that the words around a token give it; '' if they give none, or it is not random."""
    is_uuid = bool(_PATTERN.uuid.fullmatch(value))
    if not is_uuid and not _is_random(value[:256]):
        return ""
    shown = _PATTERN.marker.sub(" ", text[max(0, start - _BEFORE) : start]).rpartition("\n\n")[2]
    before = shown.lower()
    if _PATTERN.id_in_code.search(shown) or _PATTERN.other_name.search(before) or _PATTERN.in_address.search(before):
        return ""
    after = _PATTERN.marker.sub(" ", text[end : end + _AFTER]).lower().partition("\n")[0]
    key = _PATTERN.assigned_to.search(before)
    if key and (name := key[1] or key[2] or key[3]) not in _OPEN_KEYS:  # the key says what it is, and nothing else
        before, after = f"{name}:", ""
    words = f"{before} … {after}"
    service = _PATTERN.service.search(words)
    if service and (not (is_uuid or service[0] in _ALSO_WORDS) or _PATTERN.key_word.search(words)):
        return f"{service[0]}-key"
    if is_uuid:
        return ""
    if _PATTERN.name.search(words) or _PATTERN.key_before.search(before):
        return "secret"
    prefixed = _PATTERN.prefixed.fullmatch(value)
    return "token" if prefixed and scrambled(prefixed[1]) else ""


def _is_random(value: str) -> bool:
    """One long part is, or all of it without the signs that base64 has for two of its letters."""
    if value.startswith("//") or "example" in value.lower() or ("/" in value and len(_PATTERN.word.findall(value)) > 1):
        return False  # an address, a sample, a path
    if any(map(scrambled, _PATTERN.parts.findall(value))):
        return True
    letters = _PATTERN.signs.sub("", value)
    few_signs = (len(value) - len(letters)) * 5 <= len(value)
    return (
        few_signs and "." not in value and not _PATTERN.word.search(value) and len(letters) >= 14 and scrambled(letters)
    )
