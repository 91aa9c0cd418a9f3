"""How stored text is shown in a text output: apart, so that it cannot look like a header, a note or another record.

Lines that mindex writes begin in the first column. Every line of a stored text is indented, and a stored value inside a
line of ours has no line break and no `·`. So a line that begins in the first column is ours, for every text.
This costs half a token a line. Markdown, where an indented line is code, has a quote block instead: a line that begins
with `>` is stored, any other line is ours. JSON keeps the characters as they are.
"""

import json
import re

INDENT = "  "
# What any reader may take for the end of a line: those of `str.splitlines`.
_BREAK = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_LINE_START = re.compile(f"({_BREAK.pattern})(?!{_BREAK.pattern}|\\Z)")
_EVERY_LINE = re.compile(f"({_BREAK.pattern})(?=({_BREAK.pattern}|\\Z)?)")
_SEPARATOR, _HARMLESS = "·", "•"
_QUOTE = ">"
# Reasons to quote a name that fills a line: control characters, and characters that end a line or change its direction.
_NOT_PLAIN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]")


def one_line(text: str) -> str:
    """Return a text whose line breaks are blanks, for a line of ours that ends with it."""
    return _BREAK.sub(" ", text)


def inline(value: str) -> str:
    """Return a stored value for a line of facts: in one line, and without the mark that separates them."""
    return one_line(value).replace(_SEPARATOR, _HARMLESS)


def body(text: str) -> str:
    """Return a stored text below a line of ours: each of its lines is indented, empty ones stay empty."""
    return continued(text) if _BREAK.match(text) or not text else INDENT + continued(text)


def continued(text: str, indent: str = INDENT) -> str:
    """Return a stored text that begins within a line of ours: its further lines are indented."""
    return _LINE_START.sub(lambda found: found[1] + indent, text)


def quoted(text: str) -> str:
    """Return a stored text as a quote block of markdown: each of its lines begins with `>`."""
    start = _QUOTE if _BREAK.match(text) or not text else f"{_QUOTE} "
    return start + _EVERY_LINE.sub(lambda found: found[1] + _QUOTE + ("" if found[2] is not None else " "), text)


def name_line(name: str) -> str:
    """Return the name of a file as one line: as it is, or as a JSON string if it holds what a line cannot show.

    A name that begins with a quotation mark is also quoted: a line that does is always JSON.
    """
    if not _NOT_PLAIN.search(name) and not name.startswith('"'):
        return name
    return _NOT_PLAIN.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(name, ensure_ascii=False))
