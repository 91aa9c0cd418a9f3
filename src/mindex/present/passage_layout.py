"""How the chosen passages of one text are set: neighbours joined, gaps marked, each range of lines cited.

`Layout.size` says what a choice costs, from bytes that are counted once per passage; `Layout.runs` makes it.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from mindex.present.fence import INDENT, continued
from mindex.present.passages import Passage, code_parts, passages_of
from mindex.values import dataclass

GAP = "…"
_INLINE_GAP, _LINE_GAP = f" {GAP} ", f"\n{GAP}\n"
_WHOLE = 240  # characters: a shorter text is one passage


class Size(NamedTuple):
    """Bytes of a part of an answer, in its text and in its JSON."""

    text: int
    json: int

    def minus(self, other: Size) -> Size:
        return Size(self.text - other.text, self.json - other.json)


def size_of_text(part: str) -> Size:
    """The bytes of a stored text that begins within a line: indented as text, escaped as JSON."""
    return Size(
        len(continued(f"{part}x").encode("utf-8", "replace")) - 1,
        len(json.dumps(part, ensure_ascii=False).encode("utf-8", "replace")) - 2,
    )


@dataclass(frozen=True, slots=True)
class Run:
    """Chosen passages of one or more blocks side by side, with the lines of the file that they are from; 0: unknown."""

    text: str
    first_line: int = 0
    last_line: int = 0


class Layout:
    """The passages of one text, and what any choice of them costs and looks like."""

    def __init__(self, text: str, path: str = "", first_line: int = 0, *, longest_code: int = 0) -> None:
        """`path` and `first_line`: where the text is from, if it has lines to cite.

        A code block of more than `longest_code` bytes is split at its blank lines; 0: none is.
        """
        self.text = text
        self.path = path
        self.first_line = first_line if path else 0
        self.passages = _passages(text, longest_code)

    @cached_property
    def last_line(self) -> int:
        return self.first_line + self.text.rstrip().count("\n")

    @cached_property
    def _sizes(self) -> list[Size]:
        return [size_of_text(self.text[one.start : one.end]) for one in self.passages]

    @cached_property
    def _between(self) -> list[Size]:
        """The bytes of the blanks between each passage and the next one."""
        return [size_of_text(self.text[one.end : next_.start]) for one, next_ in pairwise(self.passages)]

    @cached_property
    def _citation(self) -> Size:
        """What a further range of lines costs at most: a line of the text; in the JSON, a gap and the range."""
        if not self.first_line:
            return Size(0, 0)
        last = str(self.last_line)
        return Size(
            len(f"\n{GAP} {self.path}:{last}-{last}\n{INDENT}".encode("utf-8", "replace")),
            len(r"\n…\n".encode()) + len(f'"{last}-{last}",'),
        )

    def bytes_of(self, passage: int) -> int:
        """The bytes of a passage in the larger half."""
        return max(1, *self._sizes[passage])

    @cached_property
    def leads(self) -> dict[int, int]:
        """The passage that leads each row of a table and each item of a list."""
        at = {(one.start, one.end): i for i, one in enumerate(self.passages)}
        return {i: at[one.lead] for i, one in enumerate(self.passages) if one.lead in at}

    def with_lead(self, passage: int, chosen: Sequence[int]) -> tuple[int, ...]:
        """The passage, and its lead if that is not chosen yet; nothing if the passage is chosen."""
        if passage in chosen:
            return ()
        lead = self.leads.get(passage, passage)
        return (passage,) if lead == passage or lead in chosen else (lead, passage)

    def size(self, chosen: Sequence[int]) -> Size:
        """The bytes of some passages, in order, with the marks and citations between them."""
        first = self._sizes[chosen[0]]
        text, json_ = first.text + len(INDENT), first.json
        runs = 1
        for one, next_ in pairwise(chosen):
            joint = self._joint(one, next_)
            if joint is None:
                size = self._citation
                runs += 1
            else:
                size = self._between[one] if next_ == one + 1 else size_of_text(joint)
            text += size.text + self._sizes[next_].text
            json_ += size.json + self._sizes[next_].json
        if runs > 1:
            json_ += len(',"lines":[]') + self._citation.json
        edges = 0 if self.first_line else 4 * (chosen[0] > 0) + 4 * (chosen[-1] < len(self.passages) - 1)
        return Size(text + edges, json_ + edges)

    def _joint(self, one: int, next_: int) -> str | None:
        """The text between two chosen passages; None: they are apart, and the second one is cited again."""
        before, behind = self.passages[one], self.passages[next_]
        if next_ == one + 1:
            return self.text[before.end : behind.start]
        if before.block != behind.block and self.first_line:
            return None
        return _LINE_GAP if self.text[behind.start - 1] == "\n" else _INLINE_GAP

    def runs(self, chosen: Sequence[int]) -> list[Run]:
        """The chosen passages as they are shown."""
        groups: list[tuple[int, list[str], int]] = []  # the first passage, the parts, the last passage
        previous = -1
        for i in chosen:
            part = self.text[self.passages[i].start : self.passages[i].end]
            joint = self._joint(previous, i) if groups else None
            if joint is None:
                groups.append((i, [part], i))
            else:
                first, parts, _ = groups.pop()
                groups.append((first, [*parts, joint, part], i))
            previous = i
        runs = [self._run(first, "".join(parts), last) for first, parts, last in groups]
        if not self.first_line and runs:
            before = f"{GAP} " if chosen[0] > 0 else ""
            behind = f" {GAP}" if chosen[-1] < len(self.passages) - 1 else ""
            runs = [Run(f"{before}{runs[0].text}{behind}")]
        return runs

    def _run(self, first: int, text: str, last: int) -> Run:
        if not self.first_line:
            return Run(text)
        start, end = self.passages[first].start, self.passages[last].end
        first_line = self.first_line + self.text.count("\n", 0, start)
        return Run(text, first_line, first_line + self.text.count("\n", start, end))

    def is_whole(self, chosen: Sequence[int]) -> bool:
        return len(chosen) == len(self.passages)


def _passages(text: str, longest_code: int) -> tuple[Passage, ...]:
    if len(text) <= _WHOLE:
        stripped = text.strip()
        start = text.find(stripped)
        return (Passage(start, start + len(stripped), 0),) if stripped else ()
    found = passages_of(text)
    if not longest_code:
        return found
    split: list[Passage] = []
    for one in found:
        size = max(size_of_text(text[one.start : one.end])) if one.is_code else 0
        split += code_parts(text, one, longest_code // 4) if size > longest_code else (one,)
    return tuple(split)
