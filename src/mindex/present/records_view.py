"""Records that were requested by name or listed, as JSON and as text; `get` cuts them to a token budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeAlias

from mindex.model import Conflict, GetResult, QueryTerms, Record
from mindex.present.answer_view import compact_row, digest_rows
from mindex.present.budget import check_budget, cost_of, fit_records
from mindex.present.csv_format import csv_text
from mindex.present.fence import inline
from mindex.present.record_view import RecordView, view_record, with_usage
from mindex.present.text import line_text, note_lines, record_text
from mindex.present.to_json import Json, to_json
from mindex.present.token_count import count_tokens
from mindex.values import dataclass

ListView: TypeAlias = Literal["full", "compact", "digest"]
LIST_VIEWS: tuple[ListView, ...] = ("full", "compact", "digest")


@dataclass(frozen=True, slots=True)
class RecordsView:
    """Records cut to a budget: the same content as JSON and as text."""

    rows: tuple[RecordView, ...]
    missing: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    several_collections: bool = False  # then the name of a file says which one it is in; not part of the JSON

    def json(self) -> dict[str, Json]:
        return to_json(self)

    def text(self, *, colour: bool = False) -> str:
        blocks = [record_text(row, colour=colour) for row in self.rows]
        missing = [f"missing: {inline(reference)}" for reference in self.missing]
        return "\n\n".join([*blocks, *missing, *note_lines(self.notes)])

    @property
    def tokens(self) -> int:
        # CSV, too: its head line can cost more than the keys of one record as JSON.
        csv = csv_text(self.rows, hits=False, several_collections=self.several_collections)
        return max(cost_of(self), count_tokens(csv))


def view_records(
    found: GetResult, *, budget: int | None = None, notes: Sequence[str] = (), several_collections: bool = False
) -> RecordsView:
    """Return the records in order until the budget is spent.

    When not everything fits, the texts come first: fields that only describe a record are left out, then the text that
    no longer fits is cut and marked, and a note says so. Raises UsageError for a budget below `LEAST_BUDGET`.
    """
    check_budget(budget)
    rows = tuple(with_usage(view_record(record), record, found.usage.get(record.id)) for record in found.records)
    whole = RecordsView(rows, found.missing, (*found.notes, *found.why, *notes), several_collections)
    return whole if budget is None or whole.tokens <= budget else fit_records(whole, budget)


@dataclass(frozen=True, slots=True)
class PageView:
    """Some of the records in scope: the same content as JSON and as text."""

    rows: tuple[RecordView, ...]
    total: int
    has_more: bool
    several_collections: bool = False  # then the name of a file says which one it is in; not part of the JSON

    @property
    def notes(self) -> tuple[str, ...]:
        return ()

    def json(self) -> dict[str, Json]:
        return to_json(self)

    def text(self, *, colour: bool = False) -> str:
        head = f"{len(self.rows)} of {self.total}"
        if all(row.text is None for row in self.rows):
            return "\n".join([head, *map(line_text, self.rows)])
        return "\n\n".join([head, *(record_text(row, colour=colour) for row in self.rows)])


def view_page(
    records: Sequence[Record],
    total: int,
    offset: int,
    view: ListView = "full",
    *,
    conflicts: Mapping[str, tuple[Conflict, ...]] | None = None,
    several_collections: bool = False,
) -> PageView:
    """Return the records of a page in a view, each with the memories it conflicts with, by id."""
    if view == "digest":
        rows = digest_rows(records, QueryTerms(), with_collection=several_collections)
    elif view == "compact":
        rows = [compact_row(record, QueryTerms(), with_collection=several_collections) for record in records]
    else:
        rows = [view_record(record) for record in records]
    if conflicts:
        rows = [replace(row, conflicts=conflicts[row.id]) for row in rows]
    return PageView(tuple(rows), total, offset + len(rows) < total, several_collections)
