"""How stored text stands in a text output: apart, so that it cannot look like a header, a note or another record.

Lines that mindex writes begin in the first column. Every line of a stored text is indented, and a stored value inside a
line of ours has no line break and no `·`. So a line that begins in the first column is ours, whatever a text holds.
This costs half a token a line. JSON keeps the characters as they are.
"""

import re

INDENT = "  "
# What any reader may take for the end of a line: those of `str.splitlines`.
_BREAK = re.compile("\r\n|[\n\r\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_LINE_START = re.compile(f"({_BREAK.pattern})(?!{_BREAK.pattern}|\\Z)")
_SEPARATOR, _HARMLESS = "·", "•"


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
