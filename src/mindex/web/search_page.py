"""The first page: search as you type, with filters; without a query, what is newest. And an indexed file."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from starlette.responses import Response
from starlette.routing import Route

from mindex.datatypes import KINDS, Answer, Hit, QueryTerms, Record
from mindex.datatypes.guidance import Guidance
from mindex.errors import MindexError
from mindex.memory import Memory
from mindex.present.budget import snippet
from mindex.present.record_view import RecordView, view_record
from mindex.search.query import parse
from mindex.text_match import matched_ranges
from mindex.web.markup import markdown, marked
from mindex.web.paths import file_path, record_path
from mindex.web.site import Call, Site

_PAGE = 10
_GUIDANCE = Guidance(
    fill="index a folder under Collections, or add a memory",
    add="add one under Add",
    wait="load this page again in a moment",
    vectors="load this page again in a moment",
)
_PASSAGE = 420  # bytes of a hit's text
# The filters of the form, with their names in `Memory.search`.
_MANY = {"kind": "kinds", "type": "types", "tag": "tags", "collection": "collections"}
_ONE = ("after", "before", "agent")
_LINES = re.compile(r"(\d{1,7})-(\d{1,7})")
_MARKDOWN = (".md", ".mdx", ".markdown")
_MAX_RENDERED = 400_000  # characters: a longer file is shown line by line


def search_routes(site: Site) -> list[Route]:
    return [site.page("/", _search), site.page("/tags", _tags), site.page("/files/{collection}/{path:path}", _show)]


def _search(call: Call) -> Response:
    query, scope, offset = call.given("q"), _scope(call), call.offset
    is_typing = bool(call.given("typing"))
    memory = call.memory
    shown: dict[str, Any]
    if query:
        answer = memory.search(
            query, limit=_PAGE, offset=offset, logged=not is_typing, guidance=_GUIDANCE, passages=True, **scope
        )
        rows = [_row(row, query) for row in view_hits(answer)]
        shown = {"rows": rows, "total": answer.total, "has_more": answer.has_more, "answer": answer}
    else:
        page = memory.list(memory.filters(**scope), limit=_PAGE, offset=offset)
        rows = [_row(_cut(view_record(record), Hit(record, 0.0, 0.0))) for record in page.records]
        shown = {"rows": rows, "total": page.total, "has_more": offset + len(rows) < page.total, "answer": None}
    filters = {name: call.request.query_params.getlist(name) for name in (*_MANY, *_ONE)}
    return call.render(
        "search.html",
        query=query,
        offset=offset,
        page_size=_PAGE,
        filters={name: [value for value in values if value.strip()] for name, values in filters.items()},
        collections=[one.name for one in memory.collections.list()],
        agents=memory.entries.agents() if call.principal.is_owner and call.has_entries else (),
        kinds=KINDS,
        **shown,
    )


def view_hits(answer: Answer) -> list[RecordView]:
    """The hits with the passages that answer, with the matches and the stages of their scores."""
    return [_cut(view_record(hit.record, hit, explain=True), hit, answer) for hit in answer.hits]


def _cut(view: RecordView, hit: Hit, answer: Answer | None = None) -> RecordView:
    """The view with at most a few passages of its text."""
    terms, weights = (answer.terms, answer.term_weights) if answer else (QueryTerms(), {})
    text = snippet(hit, terms, weights, _PASSAGE)
    return replace(view, text=text, highlights=matched_ranges(text, terms) or None)


def _row(row: RecordView, query: str = "") -> dict[str, Any]:
    """A row of the list: the view, the address of its page, and its stages as bars."""
    address = record_path(row.id)
    if row.kind == "chunk" and row.path and row.collection:
        address = file_path(row.collection, row.path, row.first_line, row.last_line, query)
    return {"view": row, "address": address, "bars": _bars(row.explain) if row.explain else ()}


def _bars(hit: Hit) -> list[dict[str, Any]]:
    """What each stage added to the score: its name, the amount, and the bar's place on a scale of 100."""
    stages = [stage for stage in hit.trace.stages if abs(stage.change) >= 0.0005]
    most = max((abs(stage.change) for stage in stages), default=1.0)
    return [
        {"name": stage.name, "change": stage.change, "width": max(1, round(100 * abs(stage.change) / most))}
        for stage in stages
    ]


def _scope(call: Call) -> dict[str, Any]:
    given = call.request.query_params
    many = {option: [one.strip() for one in given.getlist(name) if one.strip()] for name, option in _MANY.items()}
    one = {name: call.given(name) for name in _ONE}
    return {name: value for name, value in {**many, **one}.items() if value}


def _tags(call: Call) -> Response:
    return call.render("tags.html", tags=call.memory.labels.tags())


# ── an indexed file ───────────────────────────────────────────────────────────────────────────────────────────


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
