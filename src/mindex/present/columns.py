"""Texts in the columns of a terminal, where a Chinese character takes two and an accent none."""

import unicodedata


def width_of(text: str) -> int:
    """How many columns a text takes; it must have no control characters (see `present.terminal`)."""
    return len(text) if text.isascii() else sum(map(_columns, text))


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def fit(text: str, width: int, cut: str = "…") -> str:
    """The text, or as much of its beginning as fits into the columns, with a mark where it was cut."""
    if width_of(text) <= width:
        return text
    left, end = width - len(cut), 0
    while end < len(text) and (left := left - _columns(text[end])) >= 0:
        end += 1
    return text[:end] + cut[: max(0, width)]
