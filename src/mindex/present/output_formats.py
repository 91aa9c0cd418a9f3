"""The output formats of `search` and `get` beside text: JSON, markdown, CSV, or only the names of the files."""

from collections.abc import Callable, Mapping

from mindex.present.answer_view import AnswerView
from mindex.present.csv_format import csv_text
from mindex.present.record_view import RecordView, file_name
from mindex.present.records_view import RecordsView
from mindex.present.text import marked_text
from mindex.present.to_json import compact_json

WITHOUT_NOTES = ("csv", "files")  # formats that cannot hold a note: the caller prints it elsewhere


def formatted(shown: AnswerView | RecordsView, form: str) -> str:
    """Return the output in one of `FORMATS`."""
    return FORMATS[form](shown)


def _files(shown: AnswerView | RecordsView) -> str:
    paths = (_path(row, shown) or (row.at.rsplit(":", 1)[0] if row.at else row.id) for row in shown.rows)
    return "\n".join(dict.fromkeys(paths))


def _path(row: RecordView, shown: AnswerView | RecordsView) -> str:
    """The path of a row, with its collection where there are several; empty in a view without paths."""
    return file_name(row.path, row.collection if shown.several_collections else "")


def _markdown(shown: AnswerView | RecordsView) -> str:
    blocks = []
    for row in shown.rows:
        path = _path(row, shown)
        where = f"{path}:{row.first_line}-{row.last_line}" if path else row.at or row.id
        head = row.title or where
        facts = [f"`{fact}`" for fact in dict.fromkeys((where, row.id)) if fact != head]
        facts += [] if row.relevance is None else [f"relevance {row.relevance:g}"]
        text = marked_text(row) if row.text else ""
        blocks.append("\n\n".join(filter(None, (f"## {head}", " · ".join(facts), text))))
    return "\n\n".join([*blocks, *(f"> {note}" for note in shown.notes)])


def _csv(shown: AnswerView | RecordsView) -> str:
    hits = isinstance(shown, AnswerView)
    return csv_text(shown.rows, hits=hits, several_collections=shown.several_collections)


FORMATS: Mapping[str, Callable[[AnswerView | RecordsView], str]] = {
    "text": lambda shown: shown.text(),
    "json": compact_json,
    "md": _markdown,
    "csv": _csv,
    "files": _files,
}
