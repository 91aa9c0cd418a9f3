"""Metadata of a file beside its text: domain, instruction flag, tags, links."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from fnmatch import translate
from itertools import pairwise
from posixpath import dirname, normpath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from mindex.ingest.front_matter import unique

if TYPE_CHECKING:  # searches call `domain_of_current_file` and need no markdown parser
    from mindex.ingest.chunker import ParsedDocument

ROOT_DOMAIN = "root"
MAX_TAGS = 30
MAX_LINKS = 200

_FENCE = re.compile(r"[ \t>]*(`{3,}|~{3,})")
_CODE_SPAN = re.compile(r"(?<!`)`([^`\n]{2,80})`(?!`)")
_NAME = re.compile(r"[@$.]?[^\W\d]\w*(?:(?:::|->|[./\-:#])\w+)*")
_COMMIT = re.compile(r"(?=[a-f]*\d)[0-9a-f]{7,40}")
_CONSTANTS = frozenset({"true", "false", "null", "none", "nil", "undefined"})

_LINK = re.compile(r"(?P<image>!\[[^\[\]\n]*)?\]\(\s*(?:<(?P<angled>[^<>\n]+)>|(?P<bare>[^\s()<>]+))")
_DEFINITION = re.compile(r"^ {0,3}\[[^\[\]\n]*\]:[ \t]*<?(?P<target>[^\s<>]+)>?", re.MULTILINE)
_WIKI = re.compile(r"(?<!!)\[\[(?P<target>[^\[\]|#\n]+)[^\[\]\n]*\]\]")
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]*:|//")


def document_tags(parsed: ParsedDocument) -> tuple[str, ...]:
    """Return the tags of a whole file; `chunk_tags` finds a chunk's own."""
    names = (name for chunk in parsed.chunks for name in _names(_prose(chunk.text)))
    return unique((*parsed.front_matter.tags, *names), MAX_TAGS)


def document_links(path: str, parsed: ParsedDocument) -> tuple[str, ...]:
    """Return the links of the file at `path` as paths; all of them are relative to the root, with `/`."""
    targets = (target for chunk in parsed.chunks for target in _links(_prose(chunk.text), path))
    return unique((target for target in targets if target != path), MAX_LINKS)


def is_instruction(path: str) -> bool:
    return path.lower().endswith(".instructions.md")


def chunk_tags(text: str) -> tuple[str, ...]:
    """Return the names in backticks of one chunk: `PolicyController`, `user_id`, `redis.conf`."""
    return unique(_names(_prose(text)), MAX_TAGS)


def domain_of_path(path: str) -> str:
    """Return x for a path with `domains/x/`, else the top folder, else `root`."""
    folders = path.split("/")[:-1]
    for above, folder in pairwise(folders):
        if above.casefold() == "domains":
            return folder
    return folders[0] if folders else ROOT_DOMAIN


def domain_of_current_file(current_file: str, domain_map: Mapping[str, str], known: Collection[str]) -> str | None:
    """Return the domain of a file that is being edited: by the configured map, else by a part of its path, else None.

    A key of the map is a folder, a file or a glob, and matches at any part of the path, since editors send absolute
    paths; the longest key wins. Case and the kind of slash are ignored.
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
        return re.match(rf"(?:.*/)?{translate(key)}", path) is not None
    return f"/{key}/" in f"/{path}/"


def _slashes(path: str) -> str:
    return path.replace("\\", "/").removeprefix("./").strip("/")


def _prose(text: str) -> str:
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


def _names(prose: str) -> Iterator[str]:
    for span in _CODE_SPAN.finditer(prose):
        name = span[1].strip().removesuffix("()")
        is_name = len(name) > 1 and _NAME.fullmatch(name)
        if is_name and name.lower() not in _CONSTANTS and not _COMMIT.fullmatch(name):
            yield name


def _links(prose: str, path: str) -> Iterator[str]:
    prose = _CODE_SPAN.sub("", prose)
    here = dirname(path)
    targets = [(link["angled"] or link["bare"], here) for link in _LINK.finditer(prose) if not link["image"]]
    targets += [(definition["target"], here) for definition in _DEFINITION.finditer(prose)]
    for wiki in _WIKI.finditer(prose):
        page = wiki["target"].strip()
        page = page if "." in page.rsplit("/", 1)[-1] else f"{page}.md"
        # A wiki link with folders starts at the root, one without names a neighbour.
        targets.append((page, "" if "/" in page and not page.startswith(".") else here))
    return filter(None, (_resolve(target, folder) for target, folder in targets))


def _resolve(target: str, here: str) -> str:
    """Return the path below the root that a link means; empty for anchors, addresses and paths outside the root."""
    if _SCHEME.match(target):
        return ""
    target = unquote(re.split(r"[#?]", target, maxsplit=1)[0]).replace("\\", "/")
    if not target or not target.isprintable():
        return ""
    below_root = target.startswith("/") or not here
    resolved = normpath(target.lstrip("/") if below_root else f"{here}/{target}")
    return "" if resolved == "." or resolved.startswith(("../", "/")) or resolved == ".." else resolved
