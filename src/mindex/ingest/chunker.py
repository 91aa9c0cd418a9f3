"""The chunker: splits a file's text into chunks with their section and exact lines."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mindex.ingest.block_splitter import Span, paragraphs, split_blocks
from mindex.ingest.front_matter import FrontMatter, read_front_matter
from mindex.ingest.markdown_blocks import Block, Section, line_starts, normalise_newlines, parse_blocks, sections
from mindex.model import Chunk

# Part of every document's fingerprint: raise it whenever the same text would be split differently.
CHUNKER_VERSION = 1

# Beyond this a file is a log or a dump, whatever its name; as plain text it costs no parsing.
MAX_LINES = 250_000

_LEADING_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A file and its chunks. `title` is the front matter's, else the first level-1 heading, else empty.

    A chunk's text is exactly the file's lines `first_line` to `last_line`, with two exceptions, both with `parts` > 1:
    parts of one overlong line share its number, and the later parts of an overlong table repeat its header.
    """

    title: str
    front_matter: FrontMatter
    chunks: tuple[Chunk, ...]


def chunk_markdown(text: str) -> ParsedDocument:
    """Chunk a markdown text by its sections; one of too many lines is chunked as plain text."""
    # The last line ends like the others: else a section at the limit would be cut anew once something follows it.
    text = normalise_newlines(text).removesuffix("\n") + "\n"
    if text.count("\n") > MAX_LINES:
        return chunk_text(text)
    starts = line_starts(text)
    front = read_front_matter(text)
    blocks = parse_blocks(text, starts, front.lines)
    chunks: list[Chunk] = []
    if front.has_prose:
        chunks += _chunks(text, starts, (), [Block("paragraph", 0, min(starts[front.lines], len(text)))])
    for section in sections(blocks):
        if body := _blocks_with_body(text, section):
            chunks += _chunks(text, starts, section.breadcrumb, body)
    title = front.title or next((block.title for block in blocks if block.level == 1 and block.title), "")
    return ParsedDocument(title, front, tuple(chunks))


def chunk_text(text: str) -> ParsedDocument:
    """Chunk a plain text by its paragraphs, to the same sizes."""
    text = normalise_newlines(text)
    chunks = _chunks(text, line_starts(text), (), paragraphs(text))
    return ParsedDocument("", FrontMatter(), tuple(chunks))


def _blocks_with_body(text: str, section: Section) -> list[Block]:
    """Return the section's blocks, or none when it is only a heading, which adds nothing to the breadcrumb.

    Thematic breaks are left out: they stay between two blocks of a chunk but never at its edge, where a section added
    below would change the text of the one above.
    """
    blocks = [block for block in section.blocks if block.kind != "rule" and text[block.start : block.end].strip()]
    return blocks if any(block.kind != "heading" for block in blocks) else []


def _chunks(text: str, starts: Sequence[int], breadcrumb: tuple[str, ...], blocks: Sequence[Block]) -> Iterator[Chunk]:
    for span in split_blocks(text, blocks):
        start, end = _without_blank_lines(text, span)
        if start < end:
            first, last = bisect_right(starts, start), bisect_right(starts, end - 1)
            yield Chunk(span.lead + text[start:end], breadcrumb, first, last, span.part, span.parts)


def _without_blank_lines(text: str, span: Span) -> tuple[int, int]:
    blank = _LEADING_BLANK_LINES.match(text, span.start, span.end)
    start = blank.end() if blank else span.start
    end = start + len(text[start : span.end].rstrip())
    # The last line keeps its trailing spaces: two of them are a line break in markdown.
    line_end = text.find("\n", end, span.end)
    return start, span.end if line_end < 0 else line_end
