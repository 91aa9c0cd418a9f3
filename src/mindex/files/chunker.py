"""The chunker: splits a file's text into chunks with their section and exact lines."""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from mindex.datatypes import Chunk
from mindex.files.block_splitter import Span, paragraphs, split_blocks
from mindex.files.front_matter import FrontMatter, read_front_matter
from mindex.files.markdown_blocks import (
    MAX_TITLE,
    SECTION_LEVELS,
    Block,
    Section,
    line_starts,
    normalise_newlines,
    parse_blocks,
    sections,
)

# Part of every document's fingerprint: raise it whenever the same text would be split differently.
CHUNKER_VERSION = 3

# Beyond this a file is a log or a dump under any name; as plain text it costs no parsing.
MAX_LINES = 250_000

_LEADING_BLANK_LINES = re.compile(r"(?:[^\S\n]*\n)*")
_WORD = re.compile(r"\w")
# How a paragraph of MDX begins that is code of its module.
_MODULE_CODE = re.compile(r"(?:import|export)\b")


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A file and its chunks. `title` is the front matter's, else the first level-1 heading, else empty.

    `heading` is that heading. The front matter is a chunk only if it contains a long text, or if there is nothing else.

    A chunk's text is exactly the file's lines `first_line` to `last_line`, with two exceptions, both with `parts` > 1:
    parts of one overlong line share its number, and the later parts of an overlong table repeat its header.
    """

    title: str
    front_matter: FrontMatter
    chunks: tuple[Chunk, ...]
    heading: str = ""


def chunk_markdown(text: str, *, mdx: bool = False) -> ParsedDocument:
    """Chunk a markdown text by its sections; one of too many lines is chunked as plain text.

    With `mdx`, imports and exports are not text: they stay between two blocks of a chunk, but never make one.
    """
    # The last line ends like the others: else a section at the limit would be cut differently once something follows
    # it.
    text = normalise_newlines(text).removesuffix("\n") + "\n"
    if text.count("\n") > MAX_LINES:
        return chunk_text(text)
    starts = line_starts(text)
    front = read_front_matter(text)
    blocks = parse_blocks(text, starts, front.lines)
    if mdx:
        blocks = [block._replace(kind="rule") if _is_module_code(text, block) else block for block in blocks]
    chunks = [
        chunk
        for section in _sections_to_index(text, sections(blocks))
        for chunk in _chunks(text, starts, section.breadcrumb, section.blocks)
    ]
    if front.lines and (front.has_more or not chunks):  # the lines between its fences
        own = Block("paragraph", starts[1], starts[front.lines - 1])
        chunks = [*_chunks(text, starts, (), [own]), *chunks]
    heading = next((block.title for block in blocks if block.level == 1 and block.title), "")
    return ParsedDocument(front.title or heading, front, tuple(chunks), heading)


def chunk_text(text: str) -> ParsedDocument:
    """Chunk a plain text by its paragraphs, to the same sizes."""
    text = normalise_newlines(text)
    chunks = _chunks(text, line_starts(text), (), paragraphs(text))
    return ParsedDocument("", FrontMatter(), tuple(chunks))


def _sections_to_index(text: str, found: Sequence[Section]) -> Iterator[Section]:
    """Yield the sections that have a body, and each run of bare headings as one section.

    A bare heading above a section with a body needs no chunk: that section's breadcrumb holds it.
    """
    run: list[Section] = []
    for section, above_body in _with_place(text, found):
        if _has_body(section) or above_body:
            yield from _joined(run)
            run = []
        if _has_body(section):
            yield section
        elif section.blocks and not above_body:
            run.append(section)
    yield from _joined(run)


def _with_place(text: str, found: Sequence[Section]) -> Iterator[tuple[Section, bool]]:
    """Yield each section with the blocks to index, and whether it is a heading that a breadcrumb below it holds."""
    placed = []
    has_body_below = [False] * (SECTION_LEVELS + 1)  # by the level of the heading above
    for section in reversed(found):
        level = section.blocks[0].level if section.blocks else 0
        level = level if level <= SECTION_LEVELS else 0  # a deeper heading before the first section: in no breadcrumb
        section = Section(section.breadcrumb, _blocks_to_index(text, section))
        held = level > 0 and len(section.blocks) == 1 and section.blocks[0].end - section.blocks[0].start <= MAX_TITLE
        placed.append((section, held and has_body_below[level] and not _has_body(section)))
        for above in range(SECTION_LEVELS + 1):
            has_body_below[above] = above < level and (has_body_below[above] or _has_body(section))
    return reversed(placed)


def _blocks_to_index(text: str, section: Section) -> list[Block]:
    """Return the section's blocks, or none if these are headings without a word.

    Thematic breaks are left out: they stay between two blocks of a chunk but never at its edge, where a section added
    below would change the text of the one above.
    """
    blocks = [block for block in section.blocks if block.kind != "rule" and text[block.start : block.end].strip()]
    return (
        []
        if all(block.kind == "heading" and not _WORD.search(text, block.start, block.end) for block in blocks)
        else blocks
    )


def _has_body(section: Section) -> bool:
    return any(block.kind != "heading" for block in section.blocks)


def _joined(run: Sequence[Section]) -> Iterator[Section]:
    """Yield one section for a run of bare headings: its breadcrumb is what theirs have in common."""
    if run:
        levels = zip(*(section.breadcrumb for section in run), strict=False)
        shared = takewhile(lambda titles: len(set(titles)) == 1, levels)
        yield Section(tuple(titles[0] for titles in shared), [block for section in run for block in section.blocks])


def _is_module_code(text: str, block: Block) -> bool:
    return block.kind == "paragraph" and _MODULE_CODE.match(text, block.start, block.end) is not None


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
