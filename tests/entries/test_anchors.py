"""Anchors of memories to lines of code: fresh, drifted or gone, shown with the memory."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mindex.datatypes import Record
from mindex.entries.anchors import anchor_state, make_anchor
from mindex.errors import NotFoundError, UsageError
from mindex.memory import Memory
from mindex.present.answer_view import VIEWS, view_answer
from mindex.present.records_view import view_records
from tests.running import within

CODE = "".join(f"line {n}\n" for n in range(1, 51))


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "src" / "app.py"
    path.parent.mkdir()
    path.write_text(CODE)
    return path


def state(kept: dict[str, object]) -> tuple[str, str]:
    now = anchor_state(kept)
    return now.at.rpartition(":")[2], now.state


def test_an_anchor_is_fresh_until_its_lines_change(code: Path) -> None:
    kept = make_anchor("src/app.py:10-20", Path.cwd())
    assert state(kept) == ("10-20", "fresh")
    code.write_text(CODE.replace("line 40", "line forty"))
    assert state(kept) == ("10-20", "fresh")
    code.write_text(CODE.replace("line 15\n", "line 15   \n").replace("\n", "\r\n"))
    assert state(kept) == ("10-20", "fresh")
    code.write_text(CODE.replace("line 15\n", "line fifteen\n"))
    assert state(kept) == ("10-20", "drifted")


def test_lines_that_begin_alike_elsewhere_are_not_the_anchored_ones(code: Path) -> None:
    kept = make_anchor("src/app.py:10-11", Path.cwd())
    code.write_text("".join(f"line 10\nanother end {number}\n" for number in range(20)))
    assert state(kept) == ("10-11", "drifted")


def test_lines_that_moved_are_found_where_they_are_now(code: Path) -> None:
    kept = make_anchor("src/app.py:10-20", Path.cwd())
    code.write_text("# new\n# head\n" + CODE)
    assert state(kept) == ("12-22", "drifted")
    code.write_text("\n".join(CODE.split("\n")[5:]))
    assert state(kept) == ("5-15", "drifted")


def test_an_anchor_to_a_missing_file_is_gone(code: Path) -> None:
    kept = make_anchor(f"{code}:3", Path("/"))
    assert state(kept) == ("3-3", "fresh")
    code.unlink()
    assert state(kept) == ("3-3", "gone")
    code.mkdir()
    assert state(kept) == ("3-3", "gone")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs pipes")
def test_a_pipe_in_place_of_the_file_does_not_block(code: Path) -> None:
    kept = make_anchor("src/app.py:1-2", Path.cwd())
    code.unlink()
    os.mkfifo(code)
    assert within(60, lambda: state(kept)) == ("1-2", "gone")


@pytest.mark.parametrize(
    "kept", [{}, {"path": "x"}, {"path": "\0", "first": 1, "last": 2}, {"path": "a", "first": "x", "last": None}]
)
def test_an_unreadable_anchor_is_gone_and_no_error(kept: dict[str, object]) -> None:
    assert anchor_state(kept).state == "gone"


def test_finding_moved_lines_is_cheap_even_when_many_lines_are_equal(code: Path) -> None:
    code.write_text("x\n" * 50_000)
    kept = make_anchor("src/app.py:1-2000", Path.cwd())
    code.write_text("x\ny\n" * 50_000)
    assert within(15, lambda: anchor_state(kept)).state == "drifted"


@pytest.mark.parametrize(
    ("reference", "error"),
    [
        ("src/app.py", UsageError),
        ("src/app.py:0-3", UsageError),
        ("src/app.py:20-10", UsageError),
        ("src/app.py:40-4000", UsageError),
        ("src/app.py:a-b", UsageError),
        ("src/none.py:1-2", NotFoundError),
        ("src:1-2", NotFoundError),
        ("\0:1", UsageError),
    ],
)
def test_a_reference_to_no_lines_is_refused_when_a_memory_is_added(
    code: Path, keyword_memory: Memory, reference: str, error: type[Exception]
) -> None:
    with pytest.raises(error):
        keyword_memory.add("The cache is filled here", anchor=reference)
    assert keyword_memory.list().total == 0


def test_search_and_get_show_the_anchor_state_in_every_view(code: Path, keyword_memory: Memory) -> None:
    memory = keyword_memory
    id_ = memory.add("The cache is filled here", anchor="src/app.py:10-20").id
    plain = memory.add("Another memory").id
    for change, expected in ((CODE, "fresh"), ("# new\n" + CODE, "drifted"), (None, "gone")):
        code.unlink() if change is None else code.write_text(change)
        place = f"{code}:{'11-21' if expected == 'drifted' else '10-20'}"
        (record,) = memory.get(id_).records
        shown = view_records(memory.get(id_))
        assert shown.json()["records"][0]["anchor"] == {"at": place, "state": expected}  # type: ignore[index, call-overload]
        assert f"anchor {place} {expected}" in shown.text()
        answer = memory.search("cache filled")
        for view in VIEWS:
            cut = view_answer(answer, view)
            assert f"anchor {place} {expected}" in cut.text()
            assert f'"state": "{expected}"'.replace(" ", "") in str(cut.json()).replace("'", '"').replace(" ", "")
        assert record.fields["anchor"]["hash"]  # type: ignore[index, call-overload]
    assert "anchor" not in view_records(memory.get(plain)).json()["records"][0]  # type: ignore[index, operator]


def test_an_update_sets_moves_and_removes_an_anchor(code: Path, keyword_memory: Memory) -> None:
    memory = keyword_memory
    id_ = memory.add("The cache is filled here", fields={"client": {"n": 1}}).id

    def kept() -> Record:
        record = memory.store.retrieval.record(id_)
        assert record is not None
        return record

    memory.update(id_, anchor="src/app.py:1-2")
    memory.update(id_, anchor="src/app.py:3-4")
    assert kept().fields["anchor"]["first"] == 3  # type: ignore[index, call-overload]
    assert kept().fields["client"] == {"n": 1}
    memory.update(id_, text="The cache is emptied here")
    assert kept().fields["anchor"]["first"] == 3  # type: ignore[index, call-overload]
    memory.update(id_, anchor="")
    assert kept().fields == {"client": {"n": 1}}
    memory.undo(id_)
    assert kept().fields["anchor"]["first"] == 3  # type: ignore[index, call-overload]
