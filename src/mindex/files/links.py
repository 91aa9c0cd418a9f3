"""Links of a file to others: what is stored of them, and which indexed file each one means.

A stored link is a path below the root of its collection, or `[[name]]` for a wiki link, which names a page wherever it
lies. Either may end with `#` and a heading, or `#^` and the id of a block.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from posixpath import dirname, join, normpath
from urllib.parse import unquote

from mindex.datatypes import Document, Record
from mindex.files.document_metadata import prose, without_code_spans
from mindex.files.front_matter import unique

MAX_LINKS = 200

_LINK = re.compile(r"(?P<image>!\[[^\[\]\n]*)?\]\(\s*(?:<(?P<angled>[^<>\n]+)>|(?P<bare>[^\s()<>]+))")
_DEFINITION = re.compile(r"^ {0,3}\[[^\[\]\n]*\]:[ \t]*<?(?P<target>[^\s<>]+)>?", re.MULTILINE)
# An embedded page (`![[page]]`) is a link, an embedded image is not.
_WIKI = re.compile(r"(?P<embeds>!)?\[\[(?P<page>[^\[\]|#\\\n]+)(?P<place>#[^\[\]|\\\n]*)?(?:\\?\|[^\[\]\n]*)?\]\]")
_MEDIA = re.compile(r"\.(?!mdx?$|markdown$|txt$)\w{2,5}$", re.IGNORECASE)
_STORED_WIKI = re.compile(r"\[\[(?P<page>[^#]+?)(?:#(?P<place>.*))?\]\]", re.DOTALL)
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.\-]*:|//")
_HEADING = re.compile(r"^ {0,3}#{1,6}[ \t]+(?P<title>.+?)[ \t#]*$", re.MULTILINE)
_SUFFIX = re.compile(r"\.(?:mdx?|markdown|txt)$", re.IGNORECASE)
_BETWEEN_WORDS = re.compile(r"[\s_-]+")
_INDEX_PAGES = ("index", "readme")


def document_links(path: str, text: str) -> tuple[str, ...]:
    """Return the links of the file at `path`, or of a part of its text, as they are stored; paths have `/`."""
    words = without_code_spans(prose(text))
    here = dirname(path)
    targets = [link["angled"] or link["bare"] for link in _LINK.finditer(words) if not link["image"]]
    targets += [definition["target"] for definition in _DEFINITION.finditer(words)]
    paths = (_path(target, here) for target in targets)
    pages = (link for link in _WIKI.finditer(words) if not (link["embeds"] and _MEDIA.search(link["page"].strip())))
    wiki = (f"[[{link['page'].strip()}{link['place'] or ''}]]" for link in pages if link["page"].strip())
    return unique((link for link in (*paths, *wiki) if link.partition("#")[0] != path), MAX_LINKS)


def _path(target: str, here: str) -> str:
    """Return the path below the root that a link means; empty for anchors, addresses and paths outside the root."""
    if _SCHEME.match(target):
        return ""
    target, mark, place = target.partition("#")
    target = unquote(target.partition("?")[0]).replace("\\", "/")
    if not target or not target.isprintable():
        return ""
    below_root = target.startswith("/") or not here
    resolved = normpath(target.lstrip("/") if below_root else f"{here}/{target}")
    outside = resolved in (".", "..") or resolved.startswith(("../", "/"))
    return "" if outside else resolved + mark + unquote(place)


@dataclass(frozen=True, slots=True)
class Target:
    """The document that a link means, and the heading or block (`^id`) in it; empty for all of it."""

    document: Document
    place: str


class LinkTargets:
    """Finds the document of a collection that a link means."""

    def __init__(self, documents: Iterable[Document]) -> None:
        # Of two pages with one name the one nearest to the root is meant, unless a page lies beside the link.
        self.documents = sorted(documents, key=lambda one: (one.path.count("/"), one.path))
        self._by_path: dict[str, Document] = {}
        self._by_name: dict[str, Document] = {}
        for document in self.documents:
            for path in _paths_of(document.path):
                self._by_path.setdefault(path, document)
            parts = _page_key(document.path).split("/")
            for start in range(len(parts)):
                self._by_name.setdefault("/".join(parts[start:]), document)
        for document in self.documents:  # a file's path and name go before the title or alias of another one
            self._by_path.setdefault(_page_key(document.path), document)
            for name in (document.title, *_aliases(document)):
                self._by_name.setdefault(_page_key(name), document)

    def find(self, link: str, source: str) -> Target | None:
        """Return what a stored link of the file at the path `source` means; None for a file that is not indexed."""
        wiki = _STORED_WIKI.fullmatch(link)
        if wiki is None:
            path, _, place = link.partition("#")
            document = self._by_path.get(path.rstrip("/").casefold())
            return Target(document, place) if document else None
        page = _page_key(wiki["page"])
        beside = normpath(join(_page_key(dirname(source)), page))
        document = self._by_path.get(beside) or self._by_name.get(page.lstrip("./"))
        return Target(document, wiki["place"] or "") if document else None


def _paths_of(path: str) -> Iterator[str]:
    """Yield the paths by which links name a file: with and without its suffix, and its folder for an index page."""
    folded = path.casefold()
    bare = _SUFFIX.sub("", folded)
    yield from (folded, bare)
    folder, _, name = bare.rpartition("/")
    if folder and name in _INDEX_PAGES:
        yield folder


def _page_key(name: str) -> str:
    """Return a page's name for comparison: `Page Name`, `page-name.md` and `Page_Name` are one page."""
    return _BETWEEN_WORDS.sub("-", _SUFFIX.sub("", name.strip()).casefold())


def _aliases(document: Document) -> Iterator[str]:
    for field in document.fields:
        key, _, value = field.partition(": ")
        if key in ("alias", "aliases"):
            yield from (value, *value.split(", "))


def place_in(chunks: Iterable[Record], place: str) -> Record | None:
    """Return the chunk that holds a heading or a block (`^id`) of its document; the first one if none does."""
    chunks = tuple(chunks)
    if place.startswith("^"):
        mark = re.compile(rf"(?:^|\s){re.escape(place)}\s*$", re.MULTILINE)
        holding = (chunk for chunk in chunks if mark.search(chunk.text))
    else:
        heading = _anchor(place.rpartition("#")[2])
        holding = (chunk for chunk in chunks if place and heading in map(_anchor, _HEADING.findall(chunk.text)))
    return next(holding, next(iter(chunks), None))


def _anchor(title: str) -> str:
    """Return the anchor of a heading as pages have it: `Redis: set-up` → `redis-set-up`."""
    return _BETWEEN_WORDS.sub("-", re.sub(r"[^\w\s-]", "", title).strip().casefold())
