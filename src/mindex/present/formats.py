"""An answer, or records asked for by name, for other programs: markdown, CSV, or just the names of the files."""

from __future__ import annotations

import io

from mindex.present.records import RecordsView
from mindex.present.text import TRUNCATED
from mindex.present.views import AnswerView, compact_json

FORMATS = ("text", "json", "md", "csv", "files")

_COLUMNS = (
    "id",
    "kind",
    "path",
    "first_line",
    "last_line",
    "title",
    "score",
    "relevance",
    "tokens",
    "text",
    "truncated",
)
_OF_HITS = ("score", "relevance")  # what was asked for by name has neither, and its head shall cost no more than JSON
# Forms with no room for a note: whoever prints them says it elsewhere.
WITHOUT_NOTES = ("csv", "files")


def formatted(shown: AnswerView | RecordsView, form: str) -> str:
    if form == "json":
        return compact_json(shown.json())
    if form == "md":
        return _markdown(shown)
    if form == "csv":
        return _csv(shown)
    if form == "files":
        return "\n".join(dict.fromkeys(_file(row.path, row.at, row.id) for row in shown.rows))
    return shown.text()


def _file(path: str | None, at: str | None, id_: str) -> str:
    return path or (at.rsplit(":", 1)[0] if at else id_)


def _place(at: str | None) -> dict[str, str]:
    """The columns of a place that a short view has in one: `path:first-last`."""
    path, colon, lines = (at or "").rpartition(":")
    first, dash, last = lines.partition("-")
    return {"path": path, "first_line": first, "last_line": last} if colon and dash else {}


def _markdown(shown: AnswerView | RecordsView) -> str:
    blocks = []
    for row in shown.rows:
        where = f"{row.path}:{row.first_line}-{row.last_line}" if row.path else (row.at or row.id)
        head = row.title or where
        facts = [f"`{fact}`" for fact in dict.fromkeys((where, row.id)) if fact != head]
        facts += [] if row.score is None else [f"score {row.score:g}"]
        text = f"{row.text}{TRUNCATED if row.truncated else ''}" if row.text else ""
        blocks.append("\n\n".join(filter(None, (f"## {head}", " · ".join(facts), text))))
    return "\n\n".join([*blocks, *(f"> {note}" for note in shown.notes)])


def _csv(shown: AnswerView | RecordsView) -> str:
    import csv

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = [column for column in _COLUMNS if isinstance(shown, AnswerView) or column not in _OF_HITS]
    writer.writerow(columns)
    for row in shown.rows:
        place = _place(row.at) if row.path is None else {}
        cells = {column: getattr(row, column) for column in columns} | place
        writer.writerow((cells | {"truncated": "true" if row.truncated else ""}).values())
    return out.getvalue().rstrip("\n")
