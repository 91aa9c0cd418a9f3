"""Import the bookmarks that browsers export as HTML: each becomes a memory with the tag `bookmark`."""

from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

from mindex.extension import ExportRow, Importer, SkippedRow, foreign_id, memory_row, now_ms


class Bookmarks(Importer):
    name = "bookmarks"

    def recognises(self, path: Path) -> bool:
        if path.suffix not in (".html", ".htm") or not path.is_file():
            return False
        with path.open("rb") as file:
            return b"NETSCAPE-Bookmark-file" in file.read(200)

    def read(self, path: Path) -> Iterator[ExportRow | SkippedRow]:
        parser = _Links()
        parser.feed(path.read_text(encoding="utf-8", errors="replace"))
        for number, (attributes, title) in enumerate(parser.links, start=1):
            where, address = f"bookmark {number}", attributes.get("href") or ""
            if not address.startswith(("http://", "https://")):
                yield SkippedRow(where, "its address does not start with http:// or https://")
                continue
            added = attributes.get("add_date") or ""
            at = int(added) * 1000 if added.isdecimal() else now_ms()
            id_ = foreign_id(self.name, address, title)
            text = f"{title or 'Bookmark'}: {address}"
            yield memory_row(where, id_, text, at, type="reference", tags=("bookmark",), source=address)


class _Links(HTMLParser):
    """Collect the attributes and the text of each link of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[tuple[dict[str, str | None], str]] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.links.append((dict(attrs), ""))
            self._inside = True

    def handle_data(self, data: str) -> None:
        if self._inside:
            attributes, title = self.links[-1]
            self.links[-1] = (attributes, title + data)

    def handle_endtag(self, tag: str) -> None:
        self._inside = self._inside and tag != "a"


importer = Bookmarks()
