"""Records requested by name, as JSON and as text."""

from __future__ import annotations

from dataclasses import replace

from mindex.datatypes import GetResult, Record
from mindex.entries.conversations import make_turn
from mindex.present.record_view import line_about, view_record
from mindex.present.records_view import view_records
from tests.present.values import records


def test_without_a_budget_all_is_shown() -> None:
    shown = view_records(GetResult(records("one", "two"), ("three",)), notes=["a note"])
    assert [row.text for row in shown.rows] == ["one", "two"]
    assert shown.json()["missing"] == ["three"]
    assert shown.json()["notes"] == ["a note"]
    assert shown.text().endswith("two\n\nmissing: three\n\nnote: a note")


def test_a_summary_that_the_text_begins_with_is_left_out() -> None:
    memory = Record(id="a", kind="memory", text="We use  Postgres. It has JSON.", summary="We use Postgres.")
    assert view_record(memory).summary is None
    assert view_record(replace(memory, summary="We use Postgres. It…")).summary is None
    assert view_record(replace(memory, summary="We use Postgres. It has JSON.")).summary is None
    assert view_record(replace(memory, summary="Postgres it is.")).summary == "Postgres it is."


def test_a_turn_does_not_repeat_its_question_as_a_summary() -> None:
    turn = make_turn("Hello! Where are the keys?", "With Mara.", agent="main", session_id="s", at=1_750_000_000_000)
    assert turn.summary == "Where are the keys?"
    assert view_records(GetResult((turn,))).text().count("Where are the keys?") == 1


def test_a_line_keeps_the_underscores_within_names_and_drops_those_of_markdown() -> None:
    profile = Record(id="p", kind="profile", text="user_info.name: Ann\nstyle: _very_ __short__")
    assert line_about(profile) == "user_info.name: Ann; style: very short"
