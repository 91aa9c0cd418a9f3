"""Private sections, such as those between `<private>` and `</private>`: cut out of every text, in every mode.

`<secret>`, `<sensitive>` and `<redact>` also mark them, but only in pairs: alone they are placeholders, as in
`--password <secret>`. A `<private>` that is not closed reaches to the end of the text.
"""

import re
from collections.abc import Iterable, Sequence

Section = tuple[int, int]  # start and end, tags included

_UNPAIRED = "private"
_NAMES = f"{_UNPAIRED}|secret|sensitive|redact"
# An opening may have attributes, or lack its `>` when the text was cut off; `<` after the name keeps
# `<private<private>` from leaving a tag behind.
_TAG = re.compile(
    rf"<(?P<name>{_NAMES})(?=[\s/><])[^>]*+(?P<empty>(?<=/)>)?>?|</(?P<close>{_NAMES})\s*+>", re.IGNORECASE
)


def find_private_sections(text: str) -> list[Section]:
    """Return the outermost sections, in order."""
    sections: list[Section] = []
    opened: dict[str, list[int]] = {}  # where sections of each name begin that are not closed yet
    for tag in _TAG.finditer(text):
        name = (tag["name"] or tag["close"]).lower()
        starts = opened.setdefault(name, [])
        if tag["close"]:
            if starts:
                sections.append((starts.pop(), tag.end()))
        elif not tag["empty"]:
            starts.append(tag.start())
        elif name == _UNPAIRED:
            sections.append(tag.span())
    sections += ((start, len(text)) for start in opened.get(_UNPAIRED, ()))
    return _outermost(sections)


def _outermost(sections: Sequence[Section]) -> list[Section]:
    """Return the sections in order; those that overlap as one."""
    found: list[Section] = []
    for start, end in sorted(sections):
        if found and start < found[-1][1]:
            found[-1] = (found[-1][0], max(end, found[-1][1]))
        else:
            found.append((start, end))
    return found


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
