"""A memory made of a row of another program."""

from __future__ import annotations

from typing import Any

from mindex.memories.summary import summarize
from mindex.model import Record
from mindex.store.export_rows import Link
from mindex.transfer.importer import ExportRow, ReadRow, SkippedRow

EMPTY = "it is empty"


def memory_row(where: str, id_: str, text: str, at: int, *, links: tuple[Link, ...] = (), **properties: Any) -> ReadRow:
    """Return a memory of the agent that imports, with the usual type and importance unless `properties` has others.

    Returns a SkippedRow for an empty text.
    """
    if not text.strip():
        return SkippedRow(where, EMPTY)
    values: dict[str, Any] = {"updated_at": at, "type": "fact", "importance": 5, "confidence": 1.0, **properties}
    values["summary"] = properties.get("summary") or summarize(text)
    return ExportRow(Record(id=id_, kind="memory", text=text, created_at=at, **values), links=links, where=where)
