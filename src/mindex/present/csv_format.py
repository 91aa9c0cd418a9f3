"""The CSV of records and hits: a head line, then a line per record."""

from __future__ import annotations

import io
from collections.abc import Sequence

from mindex.present.record_view import RecordView, file_name

_COLUMNS = (
    "id", "kind", "path", "first_line", "last_line", "title", "score", "relevance", "tokens", "text", "truncated",
)  # fmt: skip
_HIT_COLUMNS = ("score", "relevance")


def csv_text(rows: Sequence[RecordView], *, hits: bool, several_collections: bool) -> str:
    """Return the CSV of rows; only that of `hits` has the columns `score` and `relevance`.

    With `several_collections` a path begins with the name of its collection.
    """
    import csv  # 1 ms of a cold search, which hardly any needs

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = [column for column in _COLUMNS if hits or column not in _HIT_COLUMNS]
    writer.writerow(columns)
    for row in rows:
        place = _place_columns(row.at)
        if row.path is not None:
            place = {"path": file_name(row.path, row.collection if several_collections else "")}
        cells = {column: getattr(row, column) for column in columns} | place
        writer.writerow((cells | {"truncated": "true" if row.truncated else ""}).values())
    return out.getvalue().rstrip("\n")


def _place_columns(at: str | None) -> dict[str, str]:
    """The three columns of a place that a short view has in one: `path:first-last`."""
    path, colon, lines = (at or "").rpartition(":")
    first, dash, last = lines.partition("-")
    return {"path": path, "first_line": first, "last_line": last} if colon and dash else {}
