"""Metadata of a file beside its text: domain, instruction flag, tags."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from fnmatch import translate
from itertools import pairwise
from typing import TYPE_CHECKING

from mindex.files.front_matter import unique

if TYPE_CHECKING:  # searches call `domain_of_current_file` and need no markdown parser
    from mindex.files.chunker import ParsedDocument

ROOT_DOMAIN = "root"
MAX_TAGS = 30

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_CODE_SPAN = re.compile(r"(?<!`)`([^`\n]{2,80})`(?!`)")

# `{#id}`, `{ #id .class key=value }`, `{: #id }` of pandoc, kramdown and MkDocs: an id in it is not a tag.
_ATTRIBUTE = r"""(?:[#.][^\s{}]++|[\w:-]++=(?:"[^"\n]*+"|'[^'\n]*+'|[^\s{}"']++))"""
_ATTRIBUTE_LIST = re.compile(rf"\{{(?::[^{{}}\n]*+|[ \t]*+{_ATTRIBUTE}(?:[ \t]++{_ATTRIBUTE})*+[ \t]*+)\}}")

# `#tag` as in Obsidian: not at the start of indented code, not `#123`, and no colour.
_INLINE_TAG = re.compile(
    r"(?:^ {0,3}|(?<=\S)[ \t]+|(?<=\()(?<!\]\())#(?P<tag>(?=[\d_/-]*[^\W\d_])[\w/-]{1,64})(?=[\s.,;:!?)\]\"'*]|$)",
    re.MULTILINE,
)
_COLOUR = re.compile(r"(?=[a-f]*\d|.{3}$|(.)\1{5}$)(?:[0-9a-f]{3,4}|[0-9a-f]{6}|[0-9a-f]{8})", re.IGNORECASE)


def document_tags(parsed: ParsedDocument) -> tuple[str, ...]:
    """Return the tags of a whole file; `chunk_tags` finds a chunk's own."""
    own = (tag for chunk in parsed.chunks for tag in chunk_tags(chunk.text))
    return unique((*parsed.front_matter.tags, *own), MAX_TAGS)


def is_instruction(path: str) -> bool:
    return path.lower().endswith(".instructions.md")


def chunk_tags(text: str, own: Sequence[str] = ()) -> tuple[str, ...]:
    """Return the tags of one chunk: `own` ones and inline `#tags`.

    Those that a tag is nested in (`project` of `project/alpha`) come last.
    """
    tags = [*own, *_inline_tags(prose(text))]
    return unique((*tags, *(parent for tag in tags for parent in _parents(tag))), MAX_TAGS)


def domain_of_path(path: str) -> str:
    """Return x for a path with `domains/x/`, else the top folder, else `root`."""
    folders = path.split("/")[:-1]
    for above, folder in pairwise(folders):
        if above.casefold() == "domains":
            return folder
    return folders[0] if folders else ROOT_DOMAIN


def domain_of_current_file(current_file: str, domain_map: Mapping[str, str], known: Collection[str]) -> str | None:
    """Return the domain of a file that is being edited: by the configured map, else by a part of its path, else None.

    A key of the map is a folder, a file or a glob of either, and matches at any part of the path, since editors send
    absolute paths; the longest key wins. Case and the kind of slash are ignored.
    """
    path = _slashes(current_file).casefold()
    spelled = {name.casefold(): name for name in known}
    for key in sorted(domain_map, key=lambda key: (-len(key), key)):
        if _covers(_slashes(key).casefold(), path):
            return spelled.get(domain_map[key].casefold(), domain_map[key])
    *folders, name = path.split("/")
    for part in (*reversed(folders), name.split(".")[0]):
        # A folder called root on a disk does not mean the domain of files that lie in no folder.
        if part in spelled and part != ROOT_DOMAIN:
            return spelled[part]
    return None


def _covers(key: str, path: str) -> bool:
    if not key:
        return False
    if any(character in key for character in "*?["):
        return any(re.match(rf"(?:.*/)?{translate(pattern)}", path) for pattern in (key, f"{key}/*"))
    return f"/{key}/" in f"/{path}/"


def _slashes(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./").strip("/")


def prose(text: str) -> str:
    """Return the text without its fenced code, in which nothing is a link or a name."""
    if "```" not in text and "~~~" not in text:
        return text
    kept: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            kept.append(line)
    return "\n".join(kept)


def without_code_spans(prose: str) -> str:
    return _CODE_SPAN.sub("", prose)


def _inline_tags(prose: str) -> Iterator[str]:
    if "#" not in prose:
        return
    for match in _INLINE_TAG.finditer(_ATTRIBUTE_LIST.sub("", without_code_spans(prose))):
        tag = match["tag"].strip("/-")
        if tag and not _COLOUR.fullmatch(tag):
            yield tag


def _parents(tag: str) -> Iterator[str]:
    parts = tag.split("/")
    yield from ("/".join(parts[:count]) for count in range(len(parts) - 1, 0, -1))
