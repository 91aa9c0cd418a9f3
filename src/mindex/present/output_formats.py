"""The output formats of `search` and `get` beside text: JSON, markdown, CSV, or only the names of the files."""

import io
from collections.abc import Callable, Mapping

from mindex.present.answer_view import AnswerView
from mindex.present.records_view import RecordsView
from mindex.present.text import marked_text
from mindex.present.to_json import compact_json

WITHOUT_NOTES = ("csv", "files")  # formats that cannot hold a note: the caller prints it elsewhere

_COLUMNS = (
    "id", "kind", "path", "first_line", "last_line", "title", "score", "relevance", "tokens", "text", "truncated",
)  # fmt: skip
_HIT_COLUMNS = ("score", "relevance")  # only of hits: without them the head of other records costs no more than JSON


def formatted(shown: AnswerView | RecordsView, form: str) -> str:
    """Return the output in one of `FORMATS`."""
    return FORMATS[form](shown)


def _files(shown: AnswerView | RecordsView) -> str:
    files = (row.path or (row.at.rsplit(":", 1)[0] if row.at else row.id) for row in shown.rows)
    return "\n".join(dict.fromkeys(files))


def _markdown(shown: AnswerView | RecordsView) -> str:
    blocks = []
    for row in shown.rows:
        where = row.place or row.id
        head = row.title or where
        facts = [f"`{fact}`" for fact in dict.fromkeys((where, row.id)) if fact != head]
        facts += [] if row.score is None else [f"score {row.score:g}"]
        text = marked_text(row) if row.text else ""
        blocks.append("\n\n".join(filter(None, (f"## {head}", " · ".join(facts), text))))
    return "\n\n".join([*blocks, *(f"> {note}" for note in shown.notes)])


def _csv(shown: AnswerView | RecordsView) -> str:
    import csv  # 1 ms of a cold search, which hardly any needs

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = [column for column in _COLUMNS if isinstance(shown, AnswerView) or column not in _HIT_COLUMNS]
    writer.writerow(columns)
    for row in shown.rows:
        place = _place_columns(row.at) if row.path is None else {}
        cells = {column: getattr(row, column) for column in columns} | place
        writer.writerow((cells | {"truncated": "true" if row.truncated else ""}).values())
    return out.getvalue().rstrip("\n")


def _place_columns(at: str | None) -> dict[str, str]:
    """The three columns of a place that a short view has in one: `path:first-last`."""
    path, colon, lines = (at or "").rpartition(":")
    first, dash, last = lines.partition("-")
    return {"path": path, "first_line": first, "last_line": last} if colon and dash else {}


FORMATS: Mapping[str, Callable[[AnswerView | RecordsView], str]] = {
    "text": lambda shown: shown.text(),
    "json": compact_json,
    "md": _markdown,
    "csv": _csv,
    "files": _files,
}
