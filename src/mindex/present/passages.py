"""Split a text into passages: sentences, list items, code blocks, table rows; each is a range of its characters.

Lines without a blank line between them form a block; the passages of a block follow each other without a gap.
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from mindex.datatypes import Range
from mindex.values import dataclass, replace

LONGEST = 480  # characters of a sentence; a longer one is cut at a clause, else between words
_LONGEST_LEAD = 160  # characters
SHORTEST = 24  # characters; a shorter sentence is joined to the next one

FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})")  # in a list or a tab, it is indented
_INDENTED = re.compile(r"(?: {4}|\t)")
HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")
_ITEM = re.compile(r"[ \t]*(?:[-*+•]|\d{1,3}[.)])\s")
_RULE_ROW = re.compile(r"[\s|:+-]*-[\s|:+-]*$")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’»)\]*_`]*\s+|[。！？｡][\"'”’」』）)\]]*\s*|\n(?=[ \t]*\n)")
# A full stop behind one of these, behind a lone letter or in a number of a list does not end a sentence.
_ABBREVIATION = re.compile(
    r"(?:^|[\s(\[“\"'])(?:[^\W\d_]|\d{1,2}|e\.g|i\.e|al|etc|cf|vs|approx|ca|figs?|eqs?|refs?|nos?|vol|pp|ch|sec"
    r"|dr|mrs?|ms|prof|st|inc|corp|co|ltd|jr|sr|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec)\.$",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[;:]\s+|[；：]|,\s+|[，、]")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Passage:
    """A range of a text. `lead` is the header of a row's table, or the line `…:` before a list item's list."""

    start: int
    end: int
    block: int  # the block it is in: passages of one block are cited by one range of lines
    is_code: bool = False
    is_heading: bool = False
    lead: Range | None = None


@lru_cache(maxsize=256)
def passages_of(text: str) -> tuple[Passage, ...]:
    """The passages of a text in order; blank lines between them belong to none."""
    found: list[Passage] = []
    for number, (lines, is_code) in enumerate(_blocks(text)):
        found += _of_block(text, number, lines, is_code)
    return tuple(_with_list_leads(text, found))


def _with_list_leads(text: str, passages: Sequence[Passage]) -> Iterator[Passage]:
    """The passages; a list item without the line that introduces its list would not say what it is one of."""
    lead: Range | None = None
    is_list, end = False, 0
    for one in passages:
        goes_on = is_list and "\n" not in text[end : one.start]
        is_list = not one.is_code and (goes_on or _ITEM.match(text, text.rfind("\n", 0, one.start) + 1) is not None)
        if not is_list:
            is_short = one.end - one.start <= _LONGEST_LEAD and not one.is_code and not one.is_heading
            lead = (one.start, one.end) if is_short and text[one.end - 1] in ":：" else None
        yield replace(one, lead=lead) if is_list and lead else one
        end = one.end


def code_parts(text: str, code: Passage, most: int) -> Iterator[Passage]:
    """The parts of a code block that does not fit: between blank lines, and lines of a part above `most` characters."""
    start = code.start
    ends = [found.end() for found in _BLANK_LINES.finditer(text, code.start, code.end)]
    for end in (*ends, code.end):
        for part in _lines_up_to(text, start, end, most):
            trimmed = _trimmed(text, *part)
            if trimmed[0] < trimmed[1]:
                yield Passage(*trimmed, code.block, is_code=True)
        start = end


def _lines_up_to(text: str, start: int, end: int, most: int) -> Iterator[Range]:
    """Runs of whole lines of at most `most` characters; a longer line is cut anywhere."""
    while end - start > most:
        line = text.rfind("\n", start, start + most) + 1
        cut = line if line > start else start + most
        yield start, cut
        start = cut
    yield start, end


def _blocks(text: str) -> Iterator[tuple[list[Range], bool]]:
    """The lines of each block, and whether it is code. A fence begins a block, and ends with its own mark."""
    lines: list[Range] = []
    fence = ""
    start = 0
    for line in text.split("\n"):
        place = (start, start + len(line))
        start = place[1] + 1
        if fence:
            lines.append(place)
            if line.strip().startswith(fence) and not line.strip().strip(fence[0]):
                yield lines, True
                lines, fence = [], ""
            continue
        mark = FENCE.match(line)
        if (mark or not line.strip()) and lines:
            yield lines, _is_indented_code(text, lines)
            lines = []
        if mark:
            fence = mark[1]
        if line.strip():
            lines.append(place)
    if lines:
        yield lines, bool(fence) or _is_indented_code(text, lines)


def _is_indented_code(text: str, lines: Sequence[Range]) -> bool:
    first = text[lines[0][0] : lines[0][1]]
    return not _ITEM.match(first) and all(_INDENTED.match(text, start, end) for start, end in lines)


def _of_block(text: str, number: int, lines: list[Range], is_code: bool) -> Iterator[Passage]:
    if is_code:
        yield Passage(lines[0][0], lines[-1][1], number, is_code=True)
        return
    at = 0
    while at < len(lines):
        line = text[slice(*lines[at])]
        last = at + 1
        if HEADING.match(line):
            yield Passage(*lines[at], number, is_heading=True)
        elif "|" in line and (rows := _table(text, lines, at)):
            yield from _rows(text, number, rows)
            last = at + len(rows)
        else:
            is_item = _ITEM.match(line) is not None
            while last < len(lines) and not _starts_passage(text, lines, last, is_item=is_item):
                last += 1
            yield from _sentences(text, lines[at][0], lines[last - 1][1], number)
        at = last


def _starts_passage(text: str, lines: Sequence[Range], at: int, *, is_item: bool) -> bool:
    """Whether a line begins a heading, a list item or a table."""
    line = text[slice(*lines[at])]
    if HEADING.match(line) or (_ITEM.match(line) and (is_item or not line[:1].isdigit())):
        return True
    return "|" in line and bool(_table(text, lines, at))


def _table(text: str, lines: Sequence[Range], at: int) -> list[Range]:
    """The lines from `at` on that form a table: at least two with a `|`, and the same number of columns in both."""
    rows: list[Range] = []
    for place in lines[at:]:
        if "|" not in text[slice(*place)]:
            break
        rows.append(place)
    return rows if len(rows) > 1 else []


def _rows(text: str, number: int, rows: list[Range]) -> Iterator[Passage]:
    has_rule = _RULE_ROW.match(text, *rows[1]) is not None
    header = (rows[0][0], rows[1 if has_rule else 0][1])
    yield Passage(*header, number)
    for start, end in rows[2 if has_rule else 1 :]:
        yield Passage(start, end, number, lead=header)


def _sentences(text: str, start: int, end: int, number: int) -> Iterator[Passage]:
    """The sentences of a paragraph or list item: short ones are joined, long ones are cut."""
    begin = start
    for found in _SENTENCE_END.finditer(text, start, end):
        stop = found.end()
        if stop >= end or stop - begin < SHORTEST or _is_abbreviation(text, begin, found.start() + 1):
            continue
        yield from _cut(text, begin, stop, number)
        begin = stop
    yield from _cut(text, begin, end, number)


def _is_abbreviation(text: str, begin: int, stop: int) -> bool:
    return text[stop - 1] == "." and _ABBREVIATION.search(text[max(begin, stop - 12) : stop]) is not None


def _cut(text: str, start: int, end: int, number: int) -> Iterator[Passage]:
    start, end = _trimmed(text, start, end)
    while end - start > LONGEST:
        stop = (
            _last_end(_CLAUSE_END, text, start, start + LONGEST)
            or _last_end(_SPACE, text, start, start + LONGEST)
            or start + LONGEST
        )
        if kept := _trimmed(text, start, stop):
            yield Passage(*kept, number)
        start = _trimmed(text, stop, end)[0]
    if start < end:
        yield Passage(start, end, number)


def _last_end(pattern: re.Pattern[str], text: str, start: int, end: int) -> int:
    """Where the last match in the second half of a range ends; 0 without one."""
    return max((found.end() for found in pattern.finditer(text, start + (end - start) // 2, end)), default=0)


def _trimmed(text: str, start: int, end: int) -> Range:
    """The range without blanks at its ends; a line keeps its indent."""
    while end > start and text[end - 1].isspace():
        end -= 1
    while start < end and text[start].isspace() and "\n" in text[start:end]:
        start += 1
    return start, end
