"""An answer, or records asked for by name, for other programs: markdown, CSV, or just the names of the files."""

from __future__ import annotations

import io

from mindex.present.found import ShownRecords
from mindex.present.views import Shown, compact_json

FORMATS = ("text", "json", "md", "csv", "files")

_COLUMNS = ("id", "kind", "path", "first_line", "last_line", "title", "score", "relevance", "tokens", "text")


def formatted(shown: Shown | ShownRecords, form: str) -> str:
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


def _markdown(shown: Shown | ShownRecords) -> str:
    blocks = []
    for row in shown.rows:
        where = f"{row.path}:{row.first_line}-{row.last_line}" if row.path else (row.at or row.id)
        head = f"## {row.title or where}\n\n`{where}` · `{row.id}`"
        score = "" if row.score is None else f" · score {row.score:g}"
        blocks.append(f"{head}{score}" + (f"\n\n{row.text}" if row.text else ""))
    return "\n\n".join([*blocks, *(f"> {note}" for note in shown.notes)])


def _csv(shown: Shown | ShownRecords) -> str:
    import csv

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(_COLUMNS)
    for row in shown.rows:
        place = _place(row.at) if row.path is None else {}
        writer.writerow([place.get(column, getattr(row, column)) for column in _COLUMNS])
    return out.getvalue().rstrip("\n")
