"""Sections between `<private>` and `</private>`: cut out of every text, in every mode."""

import re
from collections.abc import Iterable

Section = tuple[int, int]  # start and end, tags included

# An opening may have attributes, or lack its `>` when the text was cut off; `<` after the name keeps
# `<private<private>` from leaving a tag behind.
_TAG = re.compile(r"<private(?=[\s/><])[^>]*+(?P<empty>(?<=/)>)?>?|(?P<close></private\s*+>)", re.IGNORECASE)


def find_private_sections(text: str) -> list[Section]:
    """Return the outermost sections; one that is not closed reaches to the end of the text."""
    sections: list[Section] = []
    if "<private" not in text and "<private" not in text.lower():
        return sections
    depth = start = 0
    for tag in _TAG.finditer(text):
        if tag["close"]:
            if depth == 1:
                sections.append((start, tag.end()))
            depth = max(0, depth - 1)
        elif tag["empty"]:
            if not depth:
                sections.append(tag.span())
        else:
            start = start if depth else tag.start()
            depth += 1
    if depth:
        sections.append((start, len(text)))
    return sections


def cut_sections(text: str, sections: Iterable[Section], *, keep_lines: bool) -> str:
    """Cut the sections out, leaving a space where two words would otherwise become one."""
    pieces: list[str] = []
    done = 0
    last = ""
    for start, end in sections:
        piece = text[done:start]
        last = piece[-1:] or last
        lines = "\n" * text.count("\n", start, end) if keep_lines else ""
        after = text[end : end + 1]
        gap = lines or (" " if last.strip() and after.strip() else "")
        pieces += (piece, gap)
        last = gap[-1:] or last
        done = end
    return "".join([*pieces, text[done:]])
