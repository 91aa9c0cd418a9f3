"""The output formats for other programs: JSON, markdown, CSV, names of files."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace

import pytest

from mindex.model import GetResult, Record
from mindex.present.answer_view import View, view_answer
from mindex.present.output_formats import formatted
from mindex.present.records_view import view_records
from tests.present.values import answer, hit


@pytest.mark.parametrize("form", ["json", "md", "csv", "files"])
def test_every_format_names_the_file(form: str) -> None:
    out = formatted(view_answer(answer(hit(1), hit(2, 'a "quoted", text'))), form)
    assert "docs/caching.md" in out
    if form == "files":
        assert out == "docs/caching.md"
    if form == "json":
        assert json.loads(out)["total"] == 2


@pytest.mark.parametrize("view", ["full", "compact"])
def test_the_names_of_files_say_which_collection_where_there_are_several(view: View) -> None:
    hits = hit(1), replace(hit(2), record=replace(hit(2).record, collection="notes"))
    shown = view_answer(answer(*hits), view, several_collections=True)
    assert formatted(shown, "files") == "docs/docs/caching.md\nnotes/docs/caching.md"
    assert "`notes/docs/caching.md:2-7`" in formatted(shown, "md")
    rows = list(csv.DictReader(io.StringIO(formatted(shown, "csv"))))
    assert [row["path"] for row in rows] == ["docs/docs/caching.md", "notes/docs/caching.md"]
    records = view_records(GetResult(tuple(one.record for one in hits)), several_collections=True)
    assert formatted(records, "files") == "docs/docs/caching.md\nnotes/docs/caching.md"
    assert "collections" not in formatted(records, "json")


def test_markdown_shows_the_relevance_alone() -> None:
    out = formatted(view_answer(answer(hit(1))), "md")
    assert "relevance 0.9" in out and "score" not in out


def test_a_cut_is_marked_and_noted_in_every_format() -> None:
    shown = view_answer(answer(hit(1, "considerable " * 500), hit(2)), budget=200)
    note = "budget of 200 tokens: 1 of 2 shown, cut short"
    assert shown.notes == (note,)
    assert "considerable […truncated]" in shown.text()
    markdown = formatted(shown, "md")
    assert "considerable […truncated]" in markdown and markdown.endswith(f"\n\n> {note}")
    (row,) = csv.DictReader(io.StringIO(formatted(shown, "csv")))
    assert (row["truncated"], row["text"].endswith("considerable")) == ("true", True)
    (row,) = csv.DictReader(io.StringIO(formatted(view_answer(answer(hit(1))), "csv")))
    assert row["truncated"] == ""


def test_markdown_names_a_record_once() -> None:
    memory = Record(id="wfw2kchtxxq4", kind="memory", text="Postgres it is")
    assert formatted(view_records(GetResult((memory,))), "md") == "## wfw2kchtxxq4\n\nPostgres it is"
    titled = formatted(view_records(GetResult((replace(memory, title="Database"),))), "md")
    assert titled == "## Database\n\n`wfw2kchtxxq4`\n\nPostgres it is"
