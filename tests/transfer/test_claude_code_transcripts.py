"""Claude Code's transcripts: the words of the user and of the assistant, without the work of the tools."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from mindex.memory import Memory
from mindex.store.export_rows import ExportRow
from mindex.transfer.importer_base import SkippedRow, detect_importer, load_importer
from mindex.transfer.importers import source_files
from tests.transfer.foreign_rows import NOON, lines, message

importer = load_importer("claude-code")


def turns(path: Path) -> list[tuple[object, object]]:
    rows = [one for one in importer.read(path) if isinstance(one, ExportRow)]
    return [(row.record.fields["user_message"], row.record.fields["agent_response"]) for row in rows]


def text(*parts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": part} for part in parts]


def test_a_turn_is_a_message_and_all_answers_to_it(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "s.jsonl",
        message("user", "Why is it slow?", 1),
        message("assistant", text("Let me look."), 2),
        message("assistant", [{"type": "tool_use", "name": "Read", "input": {"file": "a.py"}}], 3),
        message("user", [{"type": "tool_result", "content": "def noise(): ..."}], 4),
        message("assistant", [{"type": "thinking", "thinking": "hmm"}, *text("It copies.", "Twice.")], 5),
        message("user", text("Fix it.", "Please."), 6),
        message("assistant", "Done.", 7),
    )
    assert turns(path) == [
        ("Why is it slow?", "Let me look.\n\nIt copies.\nTwice."),
        ("Fix it.\nPlease.", "Done."),
    ]


def test_a_turn_has_its_session_source_and_time(tmp_path: Path) -> None:
    path = lines(tmp_path / "s.jsonl", message("user", "Why?", 1), message("assistant", text("Because."), 2))
    (row,) = importer.read(path)
    assert isinstance(row, ExportRow)
    record = row.record
    assert (record.kind, record.created_at, record.updated_at) == ("turn", NOON + 123, NOON + 123)
    assert (record.fields["session_id"], record.fields["cwd"]) == ("session-1", "/src/app")
    assert record.source == "claude-code:session-1:uuid-1"
    assert record.text == "user (1 March 2026): Why?\n\nassistant (1 March 2026): Because."
    assert record.agent == ""


def test_side_chains_and_the_programs_own_remarks_are_left_out(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "s.jsonl",
        {"type": "summary", "summary": "A parser", "leafUuid": "x"},
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
        {"type": "system", "content": "Conversation compacted", "sessionId": "session-1"},
        message("user", "Caveat: what follows was typed by nobody", 1, isMeta=True),
        message("user", "This session is being continued from a previous one", 2, isCompactSummary=True),
        message("user", "Look at the tests", 3, isSidechain=True),
        message("assistant", text("They pass"), 4, isSidechain=True),
        message("user", "<command-name>/clear</command-name>\n<command-args></command-args>", 5),
        message("user", "<local-command-stdout>done</local-command-stdout>", 6),
        message("user", text("[Request interrupted by user for tool use]"), 7),
        message("assistant", text("API Error: 529"), 8, isApiErrorMessage=True),
        message("user", "The question", 9),
    )
    assert turns(path) == [("The question", "")]


def test_the_users_words_are_kept_without_the_tags_around_them(tmp_path: Path) -> None:
    path = lines(
        tmp_path / "s.jsonl",
        message("user", "<command-message>review is running</command-message>\n<command-name>/review</command-name>\n"
                     "<command-args>the parser, please</command-args>", 1),
        message("user", text("<ide_opened_file>a.py</ide_opened_file>", "Rename it"), 2),
        message("user", "Use <b>bold</b> here.\n<system-reminder>be brief</system-reminder>", 3),
    )  # fmt: skip
    assert [asked for asked, _ in turns(path)] == ["/review the parser, please", "Rename it", "Use <b>bold</b> here."]


def test_an_answer_before_any_message_is_kept(tmp_path: Path) -> None:
    path = lines(tmp_path / "s.jsonl", message("assistant", text("Where were we?"), 1), message("user", "Here.", 2))
    assert turns(path) == [("", "Where were we?"), ("Here.", "")]


def test_a_broken_line_is_skipped_by_name_and_the_rest_is_imported(tmp_path: Path, keyword_memory: Memory) -> None:
    path = lines(
        tmp_path / "s.jsonl",
        message("user", "One", 1),
        '{"type": "user", "mess',
        "[1, 2]",
        "",
        "[" * 5000,
        {"type": "user", "sessionId": "session-1", "message": "words"},
        {"type": "assistant", "sessionId": "session-1", "message": {"content": {"text": "?"}}},
        message("user", None, 2),
        message("user", [None, 5, {"type": "text"}, {"type": "text", "text": 7}], 3),
        message("assistant", text("Two"), 4, timestamp="yesterday", sessionId=5, uuid=None),
    )
    with path.open("ab") as file:
        file.write(b'{"type": "user", "content": "cut o')
    report = keyword_memory.transfer.import_(path)
    assert (report.read, report.added) == (5, 1)
    assert {one.where: one.reason for one in report.skipped} == {
        "line 2": "it is not JSON",
        "line 3": "it is not a JSON object",
        "line 5": "it is nested too deeply",
        "line 11": "it is not JSON: the file ends in the middle of it",
    }
    assert turns(path) == [("One", "Two")]


def test_lines_that_are_too_large_are_skipped_by_name(
    tmp_path: Path, keyword_memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "LONGEST_LINE", 1000)
    monkeypatch.setattr(source_files, "MAX_VALUES", 100)
    path = lines(
        tmp_path / "s.jsonl", message("user", "x" * 5000), "[" + "[]," * 200 + "[]]", message("user", "Short", 2)
    )
    report = keyword_memory.transfer.import_(path)
    assert report.added == 1
    assert [one.where for one in report.skipped] == ["line 1", "line 2"]


def test_a_line_without_a_time_has_that_of_the_line_before(tmp_path: Path) -> None:
    path = lines(tmp_path / "s.jsonl", message("user", "Old", 1, timestamp=None), message("user", "New", 2),
                 message("user", "Newer", 3, timestamp=""))  # fmt: skip
    os.utime(path, (NOON / 1000, NOON / 1000))
    assert [one.record.created_at for one in importer.read(path) if isinstance(one, ExportRow)] == [
        NOON,
        NOON + 123,
        NOON + 123,
    ]


def test_all_sessions_of_a_folder_are_imported(tmp_path: Path, keyword_memory: Memory) -> None:
    projects = tmp_path / "projects"
    (projects / "-src-app" / "subagents").mkdir(parents=True)
    lines(projects / "-src-app" / "a.jsonl", message("user", "One", 1), "{")
    lines(
        projects / "-src-app" / "b.jsonl", message("user", "One", 1, sessionId="session-2"), message("user", "Two", 2)
    )
    lines(projects / "-src-app" / "subagents" / "agent-1.jsonl", message("user", "Side", 3, isSidechain=True))
    assert detect_importer(projects).name == "claude-code"
    report = keyword_memory.transfer.import_(projects)
    # A session that was resumed repeats the one before it.
    assert (report.added, report.duplicates) == (2, 1)
    assert [one.where for one in report.skipped] == ["-src-app/a.jsonl line 2"]


def test_a_turn_that_grew_after_an_import_is_imported_again(tmp_path: Path, keyword_memory: Memory) -> None:
    start: list[Any] = [message("user", "Why?", 1), message("assistant", text("Let me see."), 2)]
    keyword_memory.transfer.import_(lines(tmp_path / "s.jsonl", *start))
    report = keyword_memory.transfer.import_(
        lines(tmp_path / "s.jsonl", *start, message("assistant", text("A race."), 3))
    )
    assert report.added == 1
    assert keyword_memory.search("race", kinds=["turn"]).hits


def test_transcripts_are_distinguished_from_other_json_lines(tmp_path: Path) -> None:
    for number, line in enumerate(
        ('{"type": "user"}', '{"sessionId": "x"}', "nothing", "", '{"type": "user", "sessionId": "x"}')
    ):
        assert not importer.recognises(lines(tmp_path / f"{number}.jsonl", line))
    assert not importer.recognises(tmp_path / "gone.jsonl")
    (unread,) = importer.read(lines(tmp_path / "x.jsonl", "words"))
    assert isinstance(unread, SkippedRow)
