"""Keeps the daily log from being read back: what was told stands in the memory already."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from mindex.daily_log_format import blank_lines, is_daily_log, is_log_line
from mindex.ingest.markdown_blocks import normalise_newlines
from mindex.model import Chunk

_HEADING = re.compile(r" {0,3}#{1,6}(?:\s|$)")


def without_log_lines(path: str, text: str) -> str:
    """A daily log without the lines that mindex wrote, each left empty so that line numbers hold.

    Any `memory/YYYY-MM-DD.md` is one, wherever it is indexed: were it only the configured workspace's, a process that
    knows of no workspace would index the lines and the next one drop them again. What people write stays.
    """
    return blank_lines(text) if is_daily_log(path) else text


def cut_at_log_lines(path: str, text: str, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    """The chunks of a daily log, cut where its `text` has lines of ours.

    Otherwise a thought below a hundred of them would be a hundred empty lines long, and another text, to be embedded
    again, whenever one of them is purged.
    """
    if not is_daily_log(path):
        return chunks
    ours = {number for number, line in enumerate(normalise_newlines(text).split("\n"), 1) if is_log_line(line)}
    return [piece for chunk in chunks for piece in _pieces(chunk, ours)]


def _pieces(chunk: Chunk, ours: set[int]) -> Iterator[Chunk]:
    lines = list(enumerate(chunk.text.split("\n"), chunk.first_line))
    # A part of one overlong line or table does not have the lines of the file, and holds none of ours.
    if ours.isdisjoint(range(chunk.first_line, chunk.last_line + 1)) or lines[-1][0] != chunk.last_line:
        yield chunk
        return
    for is_ours, group in groupby(lines, lambda line: line[0] in ours):
        piece = [] if is_ours else list(group)
        while piece and not piece[-1][1].strip():
            piece.pop()
        while piece and not piece[0][1].strip():
            piece.pop(0)
        # A heading without a body says nothing that a breadcrumb does not.
        if any(line.strip() and not _HEADING.match(line) for _, line in piece):
            joined = "\n".join(line for _, line in piece)
            yield replace(chunk, text=joined, first_line=piece[0][0], last_line=piece[-1][0])
