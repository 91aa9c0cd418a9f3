"""The output formats for other programs: JSON, XML, markdown, CSV, names of files."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.datatypes import GetResult, Record
from mindex.present.answer_view import View, view_answer
from mindex.present.output_formats import formatted, within_budget
from mindex.present.records_view import view_records
from mindex.present.token_count import count_tokens
from tests.present.values import answer, hit


@pytest.mark.parametrize("form", ["json", "md", "csv", "files", "xml"])
def test_every_format_names_the_file(form: str) -> None:
    out = formatted(view_answer(answer(hit(1), hit(2, 'a "quoted", text'))), form)
    assert "docs/caching.md" in out
    if form == "files":
        assert out == "docs/caching.md"
    if form == "json":
        assert json.loads(out)["total"] == 2


@pytest.mark.parametrize("view", ["full", "compact"])
def test_the_names_of_files_include_the_collection_if_there_are_several(view: View) -> None:
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
    shown = view_answer(answer(hit(1, "considerable " * 500), hit(2, "considerable " * 500)), budget=300)
    note = "budget of 300 tokens: 1 of 2 shown, as passages"
    assert shown.notes == (note,)
    assert "considerable […truncated]" in shown.text()
    markdown = formatted(shown, "md")
    assert "considerable […truncated]" in markdown and markdown.endswith(f"\n\nnote: {note}")
    (row,) = csv.DictReader(io.StringIO(formatted(shown, "csv")))
    assert (row["truncated"], row["text"].endswith("considerable")) == ("true", True)
    (row,) = csv.DictReader(io.StringIO(formatted(view_answer(answer(hit(1))), "csv")))
    assert row["truncated"] == ""


def test_markdown_names_a_record_once() -> None:
    memory = Record(id="wfw2kchtxxq4", kind="memory", text="Postgres it is")
    assert formatted(view_records(GetResult((memory,))), "md") == "## wfw2kchtxxq4\n\n> Postgres it is"
    titled = formatted(view_records(GetResult((replace(memory, title="Database"),))), "md")
    assert titled == "## Database\n\n`wfw2kchtxxq4`\n\n> Postgres it is"


def test_markdown_of_a_stored_text_stays_markdown_in_its_quote_block() -> None:
    text = "## Use\n\n```sh\nmake\n\nmake test\n```"
    out = formatted(view_records(GetResult((Record("wfw2kchtxxq4", "memory", text),))), "md")
    assert out == "## wfw2kchtxxq4\n\n> ## Use\n>\n> ```sh\n> make\n>\n> make test\n> ```"


def test_a_budget_holds_for_markdown_of_a_text_with_many_empty_lines() -> None:
    record = Record("wfw2kchtxxq4", "memory", "a\n\n\n\n" * 2_000)
    shown = within_budget(lambda budget: view_records(GetResult((record,)), budget=budget), "md", 200)
    assert 100 < count_tokens(formatted(shown, "md")) <= 200


# ── names of files ────────────────────────────────────────────────────────────────────────────────────────────


@given(
    names=st.lists(
        st.text(st.characters(exclude_categories=["Cs"]), min_size=1)
        | st.sampled_from(["a\nb.md", '"a"', "a\\b", "é"]),
        min_size=1,
        unique=True,
    )
)
def test_a_line_is_one_file_with_any_name(names: list[str]) -> None:
    records = tuple(Record(f"chunk{at}", "chunk", "text", path=name) for at, name in enumerate(names))
    lines = formatted(view_records(GetResult(records)), "files").splitlines()
    assert [json.loads(line) if line.startswith('"') else line for line in lines] == names


def test_a_name_without_control_characters_is_shown_as_it_is() -> None:
    record = Record("chunk1", "chunk", "text", path="a b\\c/é 交接.md")
    assert formatted(view_records(GetResult((record,))), "files") == "a b\\c/é 交接.md"


# ── XML ───────────────────────────────────────────────────────────────────────────────────────────────────────


def as_json(element: ElementTree.Element, like: Any) -> Any:
    """An element as the JSON that it was made of, whose types it does not have."""
    if isinstance(like, list):
        return [as_json(part, value) for part, value in zip(element, like, strict=True)]
    if isinstance(like, dict):
        parts = {part.get("name", part.tag): part for part in element}
        assert len(parts) == len(element)
        return {name: as_json(parts[name], value) for name, value in like.items()}
    text = element.text or ""
    return type(like)(text) if not isinstance(like, bool) else text == "true"


# All that XML 1.0 can hold.
_XML_TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\ufffe\uffff").filter(
    lambda one: one >= " " or one in "\t\n\r"
))  # fmt: skip


@given(text=_XML_TEXT, title=_XML_TEXT, key=_XML_TEXT.filter(lambda key: key not in ("", "name", "type")))
def test_a_parser_reads_back_from_xml_what_json_has(text: str, title: str, key: str) -> None:
    fields: dict[str, object] = {"name": "Ada", key: {"a b": [1, 2.5, True, "<&>"]}}
    record = Record("wfw2kchtxxq4", "contact", text, title, tags=("a & b", "c"), fields=fields)
    shown = view_records(GetResult((record,), missing=("<nothing>",), notes=("a note",)))
    parsed = ElementTree.fromstring(formatted(shown, "xml"))
    assert as_json(parsed, shown.json()) == shown.json()


def test_a_character_that_xml_cannot_hold_is_replaced() -> None:
    record = Record("wfw2kchtxxq4", "memory", "a\x00b\x1bc\ud800d\uffffe\r\nf")
    parsed = ElementTree.fromstring(formatted(view_records(GetResult((record,))), "xml"))
    assert parsed.findtext("records/record/text") == "a\ufffdb\ufffdc\ufffdd\ufffde\r\nf"


def test_xml_names_the_parts_of_a_list_like_the_list() -> None:
    parsed = ElementTree.fromstring(formatted(view_answer(answer(hit(1), hit(2))), "xml"))
    assert parsed.tag == "mindex"
    assert [one.findtext("id") for one in parsed.findall("results/result")] == [hit(1).record.id, hit(2).record.id]
    assert parsed.findtext("total") == "2"
