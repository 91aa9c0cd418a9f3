"""Parse markdown into a tree of blocks with exact offsets, and into sections by its headings."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock
from markdown_it.token import Token

BlockKind: TypeAlias = Literal[
    "heading", "paragraph", "code", "table", "html", "rule", "list", "item", "quote", "group"
]

SECTION_LEVELS = 3  # deeper headings stay inside their section
MAX_NESTING = 60  # of lists and quotes; deeper ones are plain text, so that no input exhausts the stack
NESTED_LINES = 500_000  # lines × levels: a line costs the parser time at every level it may belong to
MAX_TITLE = 200  # a breadcrumb goes in front of every chunk: a heading of a whole page must not

_LEAVES: dict[str, BlockKind] = {
    "heading_open": "heading", "paragraph_open": "paragraph", "fence": "code", "code_block": "code",
    "table_open": "table", "html_block": "html", "hr": "rule",
}  # fmt: skip
_CONTAINERS: dict[str, BlockKind] = {
    "bullet_list_open": "list", "ordered_list_open": "list", "list_item_open": "item", "blockquote_open": "quote",
}  # fmt: skip
_CLOSINGS = frozenset(name.replace("_open", "_close") for name in _CONTAINERS)
_DEEPEST = "mindex:deepest"  # in the parser's environment, beside its own keys
_NEWLINES = re.compile(r"\r\n?")
_MARKUP = re.compile(r"[\\`*_\[\]<&{]")
_WIKI_LINK = re.compile(r"\[\[(?:[^\[\]|\n]*\|)?([^\[\]|\n]+)\]\]")  # shown as its alias, or as the page's name
_ATTRIBUTES = re.compile(r"\s*\{[#.:][^{}]*\}\s*$")  # `## Title {#anchor}`


class Block(NamedTuple):  # not a dataclass: a file has more of these than of anything else
    """A piece of markdown: `text[start:end]`."""

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    title: str = ""
    children: tuple[Block, ...] = ()


@dataclass(frozen=True, slots=True)
class Section:
    """A heading of level 1 to 3 and everything up to the next one; the heading is the first block."""

    breadcrumb: tuple[str, ...]
    blocks: list[Block] = field(default_factory=list)


def normalise_newlines(text: str) -> str:
    """Return `text` with CommonMark's line ends as `\\n`: a form feed or U+2028 does not start a new line."""
    return _NEWLINES.sub("\n", text)


def line_starts(text: str) -> list[int]:
    """Return the offset at which each line begins, and one past the end of the text."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    return starts


def parse_blocks(text: str, starts: Sequence[int], first_line: int = 0) -> list[Block]:
    """Return the top-level blocks from `first_line` (0-based) on. Every line that is not blank belongs to one."""
    env: dict[str, object] = {_DEEPEST: max(6, min(MAX_NESTING, NESTED_LINES // len(starts)))}
    tokens = _BLOCK_PARSER.parse(text[starts[first_line] :], env)
    size = len(text)

    def offset(line: int) -> int:
        return min(starts[first_line + line], size)

    blocks: list[Block] = []
    opened: list[tuple[BlockKind, int, int, list[Block]]] = [("group", 0, size, blocks)]
    for index, token in enumerate(tokens):
        first, last = token.map or (0, 0)
        if kind := _LEAVES.get(token.type):
            heading = kind == "heading" and len(opened) == 1
            title = _plain(tokens[index + 1].content, env) if heading else ""
            level = int(token.tag[1]) if heading else 0
            opened[-1][3].append(Block(kind, offset(first), offset(last), level, title))
        elif container := _CONTAINERS.get(token.type):
            opened.append((container, offset(first), offset(last), []))
        elif token.type in _CLOSINGS:
            kind, start, end, children = opened.pop()
            opened[-1][3].append(Block(kind, start, end, children=tuple(children)))
    return list(_without_gaps(text, blocks, offset(0)))


def sections(blocks: Iterable[Block]) -> list[Section]:
    """Group blocks by the headings of level 1 to 3; the first section is what comes before any heading."""
    found = [Section(())]
    path: list[Block] = []
    for block in blocks:
        if 1 <= block.level <= SECTION_LEVELS:
            while path and path[-1].level >= block.level:
                path.pop()
            path.append(block)
            found.append(Section(tuple(heading.title for heading in path if heading.title)))
        found[-1].blocks.append(block)
    return found


def _without_gaps(text: str, blocks: Sequence[Block], start: int) -> Iterable[Block]:
    # Link definitions make no token, but are text of the file.
    for block in blocks:
        if text[start : block.start].strip():
            yield Block("paragraph", start, block.start)
        yield block
        start = max(start, block.end)
    if text[start:].strip():
        yield Block("paragraph", start, len(text))


def _plain(markup: str, env: dict[str, object]) -> str:
    """Return a heading as plain text, as the rendered page shows it."""
    markup = _WIKI_LINK.sub(r"\1", markup[: 4 * MAX_TITLE])
    if _MARKUP.search(markup):
        children = _INLINE_PARSER.parseInline(markup, env)[0].children or []
        markup = _ATTRIBUTES.sub("", "".join(map(_visible, children)))
    words = " ".join(markup.split())
    return words if len(words) <= MAX_TITLE else words[: MAX_TITLE - 1].rstrip() + "…"


def _visible(token: Token) -> str:
    if token.type in ("text", "code_inline", "image"):  # an image's content is its alternative text
        return token.content
    return " " if token.type in ("softbreak", "hardbreak") else ""


def _too_deep(state: StateBlock, line: int, _last: int, silent: bool) -> bool:
    # The parser's own limit skips to the end of the file, headings and all; this one takes a line at a time.
    if silent or state.level < state.env[_DEEPEST]:
        return False
    state.line = line + 1
    return True


def _block_parser() -> MarkdownIt:
    # Inline markup is parsed for headings alone: nothing else needs it, and it is where the time goes.
    parser = MarkdownIt("commonmark", {"maxNesting": 10 * MAX_NESTING}).enable("table")
    parser.disable(["inline", "text_join"])
    parser.block.ruler.before("table", "too_deep", _too_deep)
    return parser


_BLOCK_PARSER = _block_parser()
_INLINE_PARSER = MarkdownIt("commonmark")
