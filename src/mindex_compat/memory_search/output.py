"""How `ms search` prints results: six formats, three amounts of detail, and a budget."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

from mindex.mcp.dialect_parts import body
from mindex_compat.memory_search.search import Found, Result, tokens_of

Format = Literal["human", "json", "csv", "xml", "md", "files"]
View = Literal["full", "compact", "digest"]
_SNIPPET_LINES = 5
_COLUMNS = ("file", "score", "lineStart", "lineEnd", "snippet")


def printed(found: Found, form: Format, view: View, *, explain: bool = False, budget: int | None = None) -> str:
    """Return the output. A budget is a hard limit on the tokens of all results, as they are printed."""
    if form == "json" and view == "full":
        return json.dumps(capped_results(found, explain=explain, budget=budget), ensure_ascii=False, indent=2)
    row = _row_text(form, view, explain)
    shown, total = _within(found.results, row, budget)
    if view == "compact":
        rows = [one.compact() for one in shown]
        tokens = sum(one.tokens for one in shown)
        return _json({"results": rows, "totalTokens": tokens, **_cost(found, shown, total, budget)})
    if form == "json":
        return _json({"results": [one.digest() for one in shown], **_cost(found, shown, total, budget)})
    if not shown:
        return "No matches found." if not found.results else f"No result fits into {budget} tokens."
    text = "\n".join(map(row, shown)) if form == "human" else _FORMATS[form](found.request.query, shown)
    if len(shown) < len(found.results) and form == "human":
        text += f"\n{len(shown)} of {len(found.results)} results: the rest is beyond --budget {budget}"
    return text


def capped_results(found: Found, *, explain: bool = False, budget: int | None = None) -> dict[str, object]:
    """Return the JSON of a search."""
    shown, total = _within(found.results, _row_text("json", "full", explain), budget)
    rows = [one.json(explain=explain) for one in shown]
    return {"query": found.request.query, "results": rows, **_cost(found, shown, total, budget)}


def _cost(found: Found, shown: Sequence[Result], total: int, budget: int | None) -> dict[str, object]:
    """Return what JSON says of a budget; nothing without one."""
    cost = {"truncated": len(shown) < len(found.results), "totalTokens": total}
    return {} if budget is None else {"budget": cost}


def _within(
    results: Sequence[Result], row: Callable[[Result], str], budget: int | None
) -> tuple[Sequence[Result], int]:
    """Return as many results as a budget has room for, and their tokens."""
    total = 0
    for count, one in enumerate(results):
        cost = tokens_of(row(one))
        if budget is not None and total + cost > budget:
            return results[:count], total
        total += cost
    return results, total


def _row_text(form: Format, view: View, explain: bool) -> Callable[[Result], str]:
    """Return what prints one result in this form and view."""
    if view == "compact":
        return lambda one: _json(one.compact())
    if view == "digest":
        return lambda one: _json(one.digest()) if form == "json" else f"{_place(one)} #{one.passage.id}"
    if form == "json":
        return lambda one: _json(one.json(explain=explain))
    if form != "human":
        return lambda one: _FORMATS[form]("", [one])
    return lambda one: "\n".join(_human(one, explain))


def _place(one: Result) -> str:
    return f"{one.passage.file}:{one.passage.first_line}-{one.passage.last_line}"


def _human(one: Result, explain: bool) -> Iterator[str]:
    about = f" {one.passage.type}" if one.passage.type else ""
    weak = " weak" if one.hit.weak else ""
    yield f"{_place(one)} ({one.score:.0%}{weak}) #{one.passage.id}{about}"
    lines = one.snippet.split("\n")
    yield body("\n".join([*lines[:_SNIPPET_LINES], *(["…"] if len(lines) > _SNIPPET_LINES else [])]))
    if explain:
        yield "  " + " ".join(f"{name}={value:.4g}" for name, value in one.explained().items())


def _csv(_: str, results: Sequence[Result]) -> str:
    text = io.StringIO()
    rows = (
        [one.passage.file, one.score, one.passage.first_line, one.passage.last_line, one.snippet] for one in results
    )
    csv.writer(text, lineterminator="\n").writerows([_COLUMNS, *rows])
    return text.getvalue().removesuffix("\n")


def _xml(query: str, results: Sequence[Result]) -> str:
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', f"<results query={quoteattr(_legal(query))}>"]
    for one in results:
        row = one.json(explain=False)
        parts = "".join(f"<{name}>{escape(_legal(str(row[name])))}</{name}>" for name in _COLUMNS)
        lines.append(f"  <result>{parts}</result>")
    return "\n".join([*lines, "</results>"])


def _legal(text: str) -> str:
    """Replace what XML 1.0 cannot contain."""
    return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)


def _markdown(query: str, results: Sequence[Result]) -> str:
    head = [f"# Search: {query}", "", "| # | File | Score | Lines |", "|---|---|---|---|"]
    rows = (
        f"| {number} | {PurePath(one.passage.file).name} | {one.score:.0%} |"
        f" {one.passage.first_line}-{one.passage.last_line} |"
        for number, one in enumerate(results, start=1)
    )
    return "\n".join([*head, *rows])


def _files(_: str, results: Sequence[Result]) -> str:
    return "\n".join(dict.fromkeys(one.passage.file for one in results))


_FORMATS: Mapping[str, Callable[[str, Sequence[Result]], str]] = {
    "csv": _csv, "xml": _xml, "md": _markdown, "files": _files,
}  # fmt: skip


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False)
