"""Split and join the blocks of one section into spans of the right size; code blocks and tables stay whole.

A span is two offsets, so its text is always the file's own.
"""

import re
import unicodedata
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

from mindex.files.markdown_blocks import Block, BlockKind

CHUNK_LIMIT = 2_000  # characters of a chunk, about 500 tokens
ATOM_LIMIT = 8_000  # characters of a code block or table, which is not split below that
FRAGMENT = 100  # characters: a smaller piece is joined to a neighbour

_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_SENTENCE_LINE = re.compile(r"[.!?:;…。\uff01\uff1f][\"'”’)\]*_`]*[ \t]*\n")
_LINE = re.compile(r"\n")
_SENTENCE = re.compile(r"[.!?…][\"'”’)\]]*\s+|[。\uff01\uff1f]")
_SPACE = re.compile(r"\s+")

# Where to cut, best first, and the least share of the limit that the piece before such a cut must have.
Preferences = tuple[tuple[re.Pattern[str], float], ...]
_PROSE: Preferences = (
    (_BLANK_LINE, 0.5), (_SENTENCE_LINE, 0.5), (_LINE, FRAGMENT / CHUNK_LIMIT), (_SENTENCE, 0.5), (_SPACE, 0.5),
)  # fmt: skip
_CODE: Preferences = ((_BLANK_LINE, FRAGMENT / ATOM_LIMIT), (_LINE, FRAGMENT / ATOM_LIMIT))
_ROWS: Preferences = ((_LINE, FRAGMENT / ATOM_LIMIT),)


@dataclass(frozen=True, slots=True)
class Span:
    """`text[start:end]`; one of several `parts` when a block that should stay whole was too long.

    `lead` is put in front of the text: the header of a table, for the parts that do not begin with it.
    """

    start: int
    end: int
    kind: BlockKind = "paragraph"
    part: int = 1
    parts: int = 1
    lead: str = ""

    @property
    def size(self) -> int:
        return self.end - self.start + len(self.lead)


def split_blocks(text: str, blocks: Sequence[Block]) -> list[Span]:
    """Return spans up to the limit: long blocks are cut, those that belong together stay so, small ones are joined."""
    heading = next((block.end - block.start for block in blocks[:1] if block.kind == "heading"), 0)
    space = max(CHUNK_LIMIT - heading, CHUNK_LIMIT // 2)  # the heading and the first piece of its body share a chunk
    pieces = [piece for group in _subsections(blocks) for piece in _group_pieces(text, group, space)]
    bound = _joined(pieces, partial(_bind, text))
    return _absorb_fragments(text, list(_joined(bound, _pack)))


def paragraphs(text: str) -> list[Block]:
    """Return the paragraphs of a plain text: what is between blank lines."""
    ends = [match.end() for match in _BLANK_LINE.finditer(text)]
    return [Block("paragraph", a, b) for a, b in pairwise([0, *ends, len(text)]) if text[a:b].strip()]


def _subsections(blocks: Sequence[Block]) -> Iterator[Sequence[Block]]:
    """Split before each heading: deeper headings start no section, but are the best places to cut at."""
    headings = [index for index, block in enumerate(blocks) if block.kind == "heading" and index > 0]
    for first, last in pairwise([0, *headings, len(blocks)]):
        yield blocks[first:last]


# ── cutting ───────────────────────────────────────────────────────────────────────────────────────────────────


def _group_pieces(text: str, blocks: Sequence[Block], space: int) -> Iterator[Span]:
    if len(blocks) > 1 and blocks[-1].end - blocks[0].start <= space:
        yield Span(blocks[0].start, blocks[-1].end, "group")
        return
    for block in blocks:
        yield from _pieces(text, block, block.start, block.end, space)


def _pieces(text: str, block: Block, start: int, end: int, space: int) -> Iterator[Span]:
    if block.kind == "code":
        yield from _numbered(block.kind, _cuts(text, start, end, ATOM_LIMIT, _CODE))
    elif block.kind == "table":
        yield from _table(text, start, end)
    elif end - start <= (CHUNK_LIMIT if block.kind == "heading" else space):
        yield Span(start, end, block.kind)
    elif block.children:
        # The text between two children (blank lines, link definitions) is part of the first one.
        bounds = [start, *(child.start for child in block.children[1:]), end]
        for child, (first, last) in zip(block.children, pairwise(bounds), strict=True):
            yield from _pieces(text, child, first, last, space)
    else:
        yield from _prose(text, _cuts(text, start, end, space, _PROSE))


def _cuts(text: str, start: int, end: int, limit: int, preferences: Preferences) -> list[int]:
    """Return offsets from start to end, at most `limit` apart, at the best places; the last piece is not a fragment."""
    cuts = [start]
    while (rest := end - cuts[-1]) > limit:
        latest = cuts[-1] + min(limit, rest - FRAGMENT)
        cuts.append(_best_cut(text, cuts[-1], latest, limit, preferences))
    return [*cuts, end]


def _best_cut(text: str, start: int, latest: int, limit: int, preferences: Preferences) -> int:
    for pattern, share in preferences:
        earliest = start + min(int(limit * share), (latest - start) // 2)
        if last := deque(pattern.finditer(text, earliest, latest), maxlen=1):
            return last[0].end()
    cut = latest
    while cut > start + 1 and _inside_character(text[cut - 1], text[cut]):
        cut -= 1
    return cut if cut > start + 1 else latest


def _inside_character(before: str, after: str) -> bool:
    """Return whether a cut here would separate an accent from its letter or split a joined emoji."""
    return before == "\u200d" or after in "\u200d\ufe0f" or unicodedata.combining(after) != 0


def _numbered(kind: BlockKind, cuts: Sequence[int], lead: str = "") -> list[Span]:
    parts = len(cuts) - 1
    return [Span(a, b, kind, i, parts, lead if i > 1 else "") for i, (a, b) in enumerate(pairwise(cuts), start=1)]


def _table(text: str, start: int, end: int) -> list[Span]:
    if end - start <= ATOM_LIMIT:
        return [Span(start, end, "table")]
    rows = text.find("\n", text.find("\n", start, end) + 1, end) + 1
    lead = text[start:rows]
    if len(lead) > ATOM_LIMIT // 4:  # a header of that size is not worth repeating
        lead = ""
    return _numbered("table", _cuts(text, start, end, ATOM_LIMIT - len(lead), _ROWS), lead)


def _prose(text: str, cuts: Sequence[int]) -> Iterator[Span]:
    # A piece that ends with a line is a separate span; pieces that share a line are numbered parts of one.
    shared = [cuts[0]]
    for cut in cuts[1:]:
        shared.append(cut)
        if text[cut - 1] == "\n" or cut == cuts[-1]:
            yield from _numbered("paragraph", shared)
            shared = [cut]


# ── joining ───────────────────────────────────────────────────────────────────────────────────────────────────


def _joined(pieces: Iterable[Span], join: Callable[[Span, Span], Span | None]) -> Iterator[Span]:
    """Join each piece with what precedes it, where `join` returns one span for the two."""
    current: Span | None = None
    for piece in pieces:
        both = join(current, piece) if current else None
        if current and not both:
            yield current
        current = both or piece
    if current:
        yield current


def _bind(text: str, before: Span, after: Span) -> Span | None:
    """Join a heading with the next piece, code with the paragraph before it, and `as follows:` with what follows."""
    if 1 not in (before.parts, after.parts) or not _belong_together(text, before, after):
        return None
    numbered = before if before.parts > 1 else after
    return replace(after, start=before.start, part=numbered.part, parts=numbered.parts)


def _belong_together(text: str, before: Span, after: Span) -> bool:
    if before.kind == "heading":
        return before.size <= CHUNK_LIMIT
    if after.kind == "code":
        return before.kind == "paragraph"
    introduces = before.kind == "paragraph" and text[before.start : before.end].rstrip().endswith(":")
    return introduces and (after.kind == "table" or before.size + after.size <= CHUNK_LIMIT)


def _pack(before: Span, after: Span) -> Span | None:
    """Fill each span up to the limit, in order: an addition at the end of a file changes no span before it."""
    fits = before.parts == after.parts == 1 and after.end - before.start <= CHUNK_LIMIT
    return replace(before, end=after.end) if fits else None


def _absorb_fragments(text: str, spans: Sequence[Span]) -> list[Span]:
    kept: list[Span] = []
    waiting: int | None = None  # the start of a fragment that joins the next span
    for index, span in enumerate(spans):
        if waiting is not None:
            span, waiting = replace(span, start=waiting), None
        words = text[span.start : span.end].strip("\n")
        is_last = index == len(spans) - 1
        if len(words) >= FRAGMENT or span.parts > 1:
            kept.append(span)
        elif not is_last and (not kept or words.rstrip().endswith(":")) and spans[index + 1].part == 1:
            waiting = span.start
        elif kept:
            kept[-1] = replace(kept[-1], end=span.end)
        else:
            kept.append(span)
    return kept
