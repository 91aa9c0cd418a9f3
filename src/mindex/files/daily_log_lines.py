"""The lines that mindex wrote into a daily log are not indexed: their memories are stored already."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from mindex.daily_log_format import blank_log_lines, is_daily_log, is_log_header, is_log_line
from mindex.datatypes import Chunk
from mindex.files.markdown_blocks import normalise_newlines

_HEADING = re.compile(r" {0,3}#{1,3}\s+(?P<title>.*?)[\s#]*")


def without_log_lines(path: str, text: str) -> str:
    """Return the text of a file; if it is a daily log, the lines that mindex wrote are empty.

    Line numbers and the lines of people stay. Any `memory/YYYY-MM-DD.md` is a daily log: if only those of the
    configured workspace were, a process without a workspace would index the lines and the next would drop them again.
    """
    return blank_log_lines(text) if is_daily_log(path) else text


def cut_at_log_lines(path: str, text: str, chunks: Sequence[Chunk]) -> Sequence[Chunk]:
    """Return the chunks of a daily log, cut where its `text` has lines that mindex wrote.

    Otherwise a note below a hundred of them would begin with a hundred empty lines, and would be another text, to be
    embedded again, whenever one of them is purged. The header of the log, which mindex also wrote, is not a chunk.
    """
    if not is_daily_log(path):
        return chunks
    log_lines = {number for number, line in enumerate(normalise_newlines(text).split("\n"), 1) if is_log_line(line)}
    pieces = (piece for chunk in chunks for piece in _pieces(chunk, log_lines))
    return [piece for piece in pieces if not is_log_header(piece.text.strip())]


def _pieces(chunk: Chunk, log_lines: set[int]) -> Iterator[Chunk]:
    lines = list(enumerate(chunk.text.split("\n"), chunk.first_line))
    # A part of one overlong line or table does not have the lines of the file, and no line of the log.
    if log_lines.isdisjoint(range(chunk.first_line, chunk.last_line + 1)) or lines[-1][0] != chunk.last_line:
        yield chunk
        return
    section = chunk.breadcrumb[-1] if chunk.breadcrumb else ""
    pieces = []
    for written, group in groupby(lines, lambda line: line[0] in log_lines):
        piece = [] if written else list(group)
        while piece and not piece[-1][1].strip():
            piece.pop()
        while piece and not piece[0][1].strip():
            piece.pop(0)
        if piece:
            joined = "\n".join(line for _, line in piece)
            pieces.append(replace(chunk, text=joined, first_line=piece[0][0], last_line=piece[-1][0]))
    # The heading of the section is in the breadcrumb of its other pieces.
    own = [piece for piece in pieces if (heading := _HEADING.fullmatch(piece.text)) and heading["title"] == section]
    yield from [piece for piece in pieces if piece not in own] or pieces
