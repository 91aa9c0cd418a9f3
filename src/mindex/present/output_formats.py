"""The output formats of `search`, `get` and `list` beside text: JSON, XML, markdown, CSV, or only names of files."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias, TypeVar

from mindex.errors import UsageError
from mindex.present.answer_view import AnswerView
from mindex.present.budget import MIN_BUDGET
from mindex.present.csv_format import csv_text
from mindex.present.fence import inline, name_line, quoted
from mindex.present.record_view import RecordView, file_name
from mindex.present.records_view import PageView, RecordsView
from mindex.present.text import marked_text, note_lines
from mindex.present.to_json import Json, compact_json
from mindex.present.token_count import count_tokens

Shown: TypeAlias = AnswerView | RecordsView | PageView
S = TypeVar("S", AnswerView, RecordsView)

WITHOUT_NOTES = ("csv", "files")  # formats that cannot hold a note: the caller prints it elsewhere
_LONGER = {"xml": "XML", "md": "markdown"}  # formats that may take more tokens than text and JSON


def formatted(shown: Shown, form: str) -> str:
    """Return the output in one of `FORMATS`."""
    return FORMATS[form](shown)


def within_budget(view: Callable[[int | None], S], form: str, budget: int | None) -> S:
    """Return the view of which the output in a format fits a budget.

    A view is cut for text and JSON. XML says the same with more tokens, and markdown may, so they are cut more. Raises
    UsageError for a budget in which nothing fits.
    """
    shown, allowed = view(budget), budget
    while form in _LONGER and budget and allowed and (cost := count_tokens(formatted(shown, form))) > budget:
        if allowed == MIN_BUDGET:
            what = f"a budget of {budget} tokens is too small for {_LONGER[form]}"
            raise UsageError(what, f"allow {cost}, or use JSON")
        allowed = max(MIN_BUDGET, min(allowed - 1, allowed * budget // cost))
        shown = view(allowed)
        notes = tuple(note.replace(f"budget of {allowed} tokens", f"budget of {budget} tokens") for note in shown.notes)
        shown = replace(shown, notes=notes)
    return shown


def _files(shown: Shown) -> str:
    paths = (_path(row, shown) or (row.at.rsplit(":", 1)[0] if row.at else row.id) for row in shown.rows)
    return "\n".join(map(name_line, dict.fromkeys(paths)))


def _path(row: RecordView, shown: Shown) -> str:
    """The path of a row, with its collection if there are several; empty in a view without paths."""
    return file_name(row.path, row.collection if shown.several_collections else "")


def _markdown(shown: Shown) -> str:
    blocks = []
    for row in shown.rows:
        path = _path(row, shown)
        where = f"{path}:{row.first_line}-{row.last_line}" if path else row.at or row.id
        head = row.title or where
        facts = [f"`{inline(fact)}`" for fact in dict.fromkeys((where, row.id)) if fact != head]
        facts += [] if row.relevance is None else [f"relevance {row.relevance:g}"]
        text = quoted(marked_text(row)) if row.text else ""
        blocks.append("\n\n".join(filter(None, (f"## {inline(head)}", " · ".join(facts), text))))
    return "\n\n".join([*blocks, *note_lines(shown.notes)])


def _csv(shown: Shown) -> str:
    hits = isinstance(shown, AnswerView)
    return csv_text(shown.rows, hits=hits, several_collections=shown.several_collections)


_XML_HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
_XML_NAME = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)
# What XML 1.0 cannot hold, not even escaped.
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_XML_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "\r": "&#13;"}
_XML_ATTRIBUTE_ESCAPES = _XML_ESCAPES | {'"': "&quot;", "\n": "&#10;", "\t": "&#9;"}  # a parser makes blanks of these


def _xml(shown: Shown) -> str:
    """The content of the JSON: an element for each key, and for each part of a list one named like the list."""
    return "\n".join([_XML_HEAD, *_elements("mindex", shown.json(), 0)])


def _elements(name: str, value: Json, depth: int) -> Iterator[str]:
    """The lines of one element, indented by its depth."""
    indent = "  " * depth
    # A key that a user chose may not be a valid XML name.
    start = end = name
    if not _XML_NAME.fullmatch(name):
        start, end = f'value name="{_escaped(name, _XML_ATTRIBUTE_ESCAPES)}"', "value"
    if isinstance(value, dict | list) and value:
        yield f"{indent}<{start}>"
        part = name[:-1] if name.endswith("s") else "item"
        for key, inner in value.items() if isinstance(value, dict) else ((part, inner) for inner in value):
            yield from _elements(key, inner, depth + 1)
        yield f"{indent}</{end}>"
    else:
        text = "" if value is None or isinstance(value, dict | list) else _escaped(_plain(value))
        yield f"{indent}<{start}>{text}</{end}>" if text else f"{indent}<{start}/>"


def _plain(value: str | int | float) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _escaped(text: str, escapes: Mapping[str, str] = _XML_ESCAPES) -> str:
    return "".join(escapes.get(character, character) for character in _NOT_XML.sub("\ufffd", text))


FORMATS: Mapping[str, Callable[[Shown], str]] = {
    "text": lambda shown: shown.text(),
    "json": compact_json,
    "xml": _xml,
    "md": _markdown,
    "csv": _csv,
    "files": _files,
}
