"""Text of others in results of ours: control characters are shown instead of obeyed, and quotations have an end."""

import json
import re

# All but newline, tab, and a carriage return before a newline.
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")
# As JSON escapes them, short or by number. A pair of backslashes is a backslash, in which no escape begins.
_ESCAPED = re.compile(
    r"(?P<pair>\\\\)|\\(?P<short>[bf])|\\u00(?P<number>0[0-8bcef]|1[0-9a-f]|7f|[89][0-9a-f])|\\r(?!\\n)"
)
_SHORT = {"b": "\b", "f": "\f"}
_PICTURES, _DEL_PICTURE, _UNKNOWN = 0x2400, "\u2421", "\ufffd"
# What would end a quotation, separates facts in a line of ours, or marks a command that the reader may run.
_ENDS_QUOTE = str.maketrans({"“": "'", "”": "'", "`": "'", "·": "•"})
_MAX_QUOTED = 200


def without_controls(text: str) -> str:
    """Return a text with a picture in place of each control character: `␛` for ESC, `␇` for BEL."""
    return _CONTROL.sub(lambda found: _picture(found[0]), text)


def json_without_controls(text: str) -> str:
    """Return a text without control characters; if it is JSON, its values do not contain them either."""
    if "\\" in text and text.startswith(("{", "[")) and _is_json(text):
        text = _ESCAPED.sub(_unescaped_picture, text)
    return without_controls(text)


def quotation(text: str) -> str:
    """Return what another program reported, for a message of ours: one line in quotation marks, at most 200 characters.

    Nothing in it can end the quotation, so what follows the closing mark is ours.
    """
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split()).translate(_ENDS_QUOTE)
    return f"“{line if len(line) <= _MAX_QUOTED else f'{line[: _MAX_QUOTED - 1]}…'}”"


def _picture(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return chr(_PICTURES + code)
    return _DEL_PICTURE if code == 0x7F else _UNKNOWN


def _unescaped_picture(found: re.Match[str]) -> str:
    if found["pair"]:
        return found[0]
    if found["number"]:
        return _picture(chr(int(found["number"], 16)))
    return _picture(_SHORT.get(found["short"] or "", "\r"))


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True
