"""Correct the tags of files that version 0.1.0 indexed: it stored the names in inline code as tags.

A tag is kept if it comes from the front matter or is a `#tag` of the text.
"""

import re
from collections.abc import Collection, Sequence
from itertools import chain, takewhile

from mindex.values import dataclass

_MAX_TAGS = 30
_CODE_SPAN = re.compile(r"(?<!`)`([^`\n]{2,80})`(?!`)")
_FRONT_MATTER_LINES = 3  # at least, if it contains anything


@dataclass(frozen=True, slots=True)
class TaggedChunk:
    """What decides over the stored tags of a chunk."""

    text: str
    tags: tuple[str, ...]
    first_line: int


@dataclass(frozen=True, slots=True)
class CorrectedTags:
    """The tags of a document and, in the order of its chunks, of each chunk.

    `unsure`: a tag may be one of the front matter or a name in the code of every chunk; only the file tells which. It
    is kept if its place among the tags shows that it is of the front matter.
    """

    document: tuple[str, ...]
    chunks: tuple[tuple[str, ...], ...]
    unsure: bool = False


def correct_tags(chunks: Sequence[TaggedChunk], fields: Sequence[str]) -> CorrectedTags:
    """Remove the tags that were names in inline code. `fields` are those of the document's front matter."""
    if not chunks:
        return CorrectedTags((), ())
    folded = [tuple(map(str.casefold, chunk.tags)) for chunk in chunks]
    code = [_names_in_code(chunk.text.casefold(), tags) for chunk, tags in zip(chunks, folded, strict=True)]
    front: Sequence[str] = ()
    unsure = False
    if fields or min(chunk.first_line for chunk in chunks) > _FRONT_MATTER_LINES:
        front, unsure = _front_matter_tags(folded, set.intersection(*code), chunks[0].text.casefold(), bool(fields))
    kept = tuple(
        tuple(tag for tag, name in zip(chunk.tags, names, strict=True) if name in front or name not in in_code)
        for chunk, names, in_code in zip(chunks, folded, code, strict=True)
    )
    of_document: dict[str, str] = {}
    for tag in chain.from_iterable(kept):
        of_document.setdefault(tag.casefold(), tag)
    return CorrectedTags(tuple(of_document.values())[:_MAX_TAGS], kept, unsure)


def _front_matter_tags(
    tags: Sequence[tuple[str, ...]], code: Collection[str], text: str, has_fields: bool
) -> tuple[Sequence[str], bool]:
    """Return the tags that are probably in the front matter, and whether a name in code was judged.

    Each chunk had the tags of the front matter first, then its `#tags`, its names in code in the order of the text, and
    the parts of nested tags. `code`: the names in the code of every chunk. `text`: the first chunk's, folded.
    """
    together = takewhile(lambda alike: len(set(alike)) == 1, zip(*tags, strict=False))
    front = [alike[0] for alike in together]
    is_part = [any(one.startswith(f"{tag}/") for one in tags[0]) for tag in front]
    last_sure = max((at for at, tag in enumerate(front) if tag not in code and not is_part[at]), default=-1)
    sure, judged = front[: last_sure + 1], [tag for tag in front[last_sure + 1 :] if tag in code]
    names = [span.strip().removesuffix("()") for span in _CODE_SPAN.findall(text)]
    places = [names.index(tag) if tag in names else len(names) for tag in judged]
    # A name before one that comes earlier in the text is not code there. Front matter without other fields
    # has a tag.
    out_of_order = [at for at, place in enumerate(places) if min(places[at:]) < place]
    count = out_of_order[-1] + 1 if out_of_order else 1 if not sure and not has_fields else 0
    return [*sure, *judged[:count]], bool(judged)


def _names_in_code(text: str, tags: Collection[str]) -> set[str]:
    """Return the folded tags that a folded text contains in backticks."""
    return {tag for tag in tags if _is_code(tag, text)} if "`" in text else set()


def _is_code(tag: str, text: str) -> bool:
    """Return whether a folded text contains a tag in backticks, and not as `#tag` or the start of `#tag/…`."""
    if not (f"`{tag}`" in text or f"`{tag}()`" in text or re.search(rf"`\s+{re.escape(tag)}(?:\(\))?\s*`", text)):
        return False
    return f"#{tag}" not in text or not re.search(rf"(?<![\w`(&#/])#{re.escape(tag)}(?![\w-])", text)
