"""The screen of the interactive search as lines of text: the query, the hits, and the text of the chosen one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mindex.model import Range
from mindex.present.columns import fit, width_of
from mindex.present.record_view import RecordView
from mindex.present.terminal import for_terminal
from mindex.present.text import paint
from mindex.values import dataclass

PROMPT = "> "
_MATCH, _DIM, _CHOSEN, _RESET = "\x1b[1;31m", "\x1b[2m", "\x1b[7m", "\x1b[0m"
_TAB = " " * 4
_MOST_ROWS = 12  # hits that are listed at once


@dataclass(frozen=True, slots=True)
class Row:
    """A hit: its line in the list, what is known of it, and its text with the places that match."""

    id: str
    line: str
    facts: str
    text: str
    matches: tuple[Range, ...] = ()


@dataclass(frozen=True, slots=True)
class Screen:
    """What is shown. `chosen` is the place of a row, `scrolled` how many lines of its text are above the window."""

    query: str
    cursor: int
    status: str
    rows: tuple[Row, ...] = ()
    chosen: int = 0
    scrolled: int = 0


def row_of(view: RecordView, summary: str) -> Row:
    """The row of a hit; `summary` is its line, without its place."""
    place = view.place or view.kind or ""
    facts = [view.kind if view.kind != "chunk" else "file", view.type, (view.created_at or "")[:10]]
    facts += [f"relevance {view.relevance:g}" if view.relevance is not None else "", "weak" if view.weak else ""]
    facts += [" ".join(f"#{tag}" for tag in view.tags or ())]
    named = f"{view.title} · {summary}" if view.title and view.title != summary else summary
    return Row(view.id, f"{named} ({place})", " · ".join(filter(None, facts)), view.text or "", view.highlights or ())


def draw(screen: Screen, width: int, height: int, *, colour: bool = True) -> tuple[list[str], int]:
    """At most `height` lines of at most `width` columns, and the column of the cursor in the first of them.

    Nothing of what is stored can steer the terminal: control characters are shown.
    """
    width, height = max(width, 1), max(height, 1)
    prompt, column = _prompt(screen, width)
    lines = [prompt, paint(fit(_plain(screen.status), width), _DIM, colour)]
    listed = min(len(screen.rows), _MOST_ROWS, max(1, (height - 3) // 2))
    first = min(max(0, screen.chosen - listed + 1), max(0, len(screen.rows) - listed))
    for place in range(first, first + listed):
        is_chosen = place == screen.chosen
        shown = fit(("▸ " if is_chosen else "  ") + _plain(screen.rows[place].line), width)
        lines.append(paint(shown, _CHOSEN, colour and is_chosen))
    if screen.rows and height - len(lines) >= 3:
        row = screen.rows[screen.chosen]
        lines += [paint("─" * width, _DIM, colour), paint(fit(_plain(row.facts), width), _DIM, colour)]
        lines += text_lines(row, width, colour=colour)[screen.scrolled :]
    return lines[:height], column


def first_match(row: Row, width: int) -> int:
    """How many lines of a text to scroll over, so that its first match is near the top of the window."""
    before = Row("", "", "", row.text[: row.matches[0][0]]) if row.matches else None
    return max(0, len(text_lines(before, width, colour=False)) - 3) if before else 0


def text_lines(row: Row, width: int, *, colour: bool) -> list[str]:
    """The text in lines of at most so many columns, broken at a blank where there is one."""
    lines: list[str] = []
    line: list[tuple[str, bool]] = []
    for character, is_match in _characters(row.text, row.matches):
        if character == "\n":
            lines.append(_joined(line, colour))
            line = []
            continue
        line.append((character, is_match))
        if sum(width_of(one) for one, _ in line) > width:
            blank = next((at for at in range(len(line) - 1, 0, -1) if line[at][0] == " "), 0)
            end = blank or max(1, len(line) - 1)
            lines.append(_joined(line[:end], colour))
            line = line[end + (1 if blank else 0) :]
    return [*lines, _joined(line, colour)]


def _characters(text: str, matches: Sequence[Range]) -> Iterator[tuple[str, bool]]:
    """Each character as it is shown, and whether it is part of a match."""
    ends = iter(matches)
    start, end = next(ends, (len(text), len(text)))
    for at, character in enumerate(text):
        while at >= end and end < len(text):
            start, end = next(ends, (len(text), len(text)))
        shown = _TAB if character == "\t" else for_terminal(character)
        for one in shown:
            yield one, start <= at < end


def _joined(line: Sequence[tuple[str, bool]], colour: bool) -> str:
    parts, was_match = [], False
    for character, is_match in line:
        if colour and is_match != was_match:
            parts.append(_MATCH if is_match else _RESET)
        was_match = is_match
        parts.append(character)
    return "".join(parts) + (_RESET if colour and was_match else "")


def _prompt(screen: Screen, width: int) -> tuple[str, int]:
    """The line of the query, cut on the left where it is longer than the line, and the column of the cursor."""
    before = _plain(screen.query[: screen.cursor], is_query=True)
    while before and width_of(PROMPT + before) >= width:
        before = before[1:]
    column = width_of(PROMPT + before)
    after = _plain(screen.query[screen.cursor :], is_query=True)
    return fit(PROMPT + before, width, "") + fit(after, max(0, width - column), ""), min(column, width - 1)


def _plain(text: str, *, is_query: bool = False) -> str:
    """A text in one line, in which control characters are shown; blanks of a query stay."""
    line = text.replace("\n", " ").replace("\t", " ") if is_query else " ".join(text.split())
    return "".join(map(for_terminal, line))  # one by one: a stored sequence that looks like our colours is shown, too
