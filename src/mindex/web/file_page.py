"""An indexed file: rendered, or line by line, with the lines of a hit marked, its links and what links to it."""

from __future__ import annotations

import re
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from mindex.datatypes import QueryTerms, Record
from mindex.errors import MindexError
from mindex.memory import Memory
from mindex.search.query import parse
from mindex.text_match import matched_ranges
from mindex.web.markup import markdown, marked
from mindex.web.site import Call, Site

_LINES = re.compile(r"(\d{1,7})-(\d{1,7})")
_MARKDOWN = (".md", ".mdx", ".markdown")
_MAX_RENDERED = 400_000  # characters: a longer file is shown line by line


def file_routes(site: Site) -> list[Route]:
    return [site.page("/files/{collection}/{path:path}", _show)]


def _show(call: Call) -> Response:
    collection, path = call.named("collection"), call.named("path")
    memory = call.memory
    record = memory.lookup.read_file(f"{collection}/{path}")
    span = _LINES.fullmatch(call.given("lines"))
    hit = (int(span[1]), int(span[2])) if span else None
    is_markdown = path.lower().endswith(_MARKDOWN) and len(record.text) <= _MAX_RENDERED
    is_source = not is_markdown or call.given("view") == "source"
    query = call.given("q")
    terms = parse(query).terms if query else None
    links, link_notes = _linked(memory, f"links:{collection}/{path}")
    backlinks, _ = _linked(memory, f"backlinks:{collection}/{path}")
    return call.render(
        "file.html",
        record=record,
        hit=hit,
        query=query,
        is_markdown=is_markdown,
        is_source=is_source,
        body=None if is_source else markdown(record.text, record.collection, record.path, hit=hit, terms=terms),
        lines=_lines(record.text, terms, hit) if is_source else (),
        links=links,
        link_notes=link_notes,
        backlinks=backlinks,
    )


def _linked(memory: Memory, reference: str) -> tuple[tuple[Record, ...], tuple[str, ...]]:
    try:
        found = memory.lookup.get(reference)
    except MindexError:  # a path with a comma or a glob in it: the file is shown without its links
        return (), ()
    return found.records, found.notes


def _lines(text: str, terms: QueryTerms | None, hit: tuple[int, int] | None) -> list[dict[str, Any]]:
    """Each line with its number, its matches and whether it is one of the hit's."""
    return [
        {
            "number": number,
            "text": marked(line, matched_ranges(line, terms) if terms else ()),
            "is_hit": hit is not None and hit[0] <= number <= hit[1],
        }
        for number, line in enumerate(text.split("\n"), start=1)
    ]
