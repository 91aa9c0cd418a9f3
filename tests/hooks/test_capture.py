"""Stop, pre-compact and session end store what was said, once."""

from __future__ import annotations

import json
import threading

import pytest

from mindex.entries.capture import CapturedTurn
from mindex.errors import UsageError
from mindex.hooks.turn_capture import MAX_BYTES
from tests.hooks.conftest import Project

ASKED, ANSWERED = "why does the build fail?", "The cache folder is missing."


def test_the_turns_of_a_transcript_are_stored(project: Project) -> None:
    project.write((ASKED, ANSWERED), ("and now?", "Now it builds."))
    assert project.hook("stop") == ""
    assert project.turns() == [(ASKED, ANSWERED), ("and now?", "Now it builds.")]


@pytest.mark.parametrize("event", ["stop", "pre-compact", "session-end"])
def test_a_hook_that_runs_again_stores_nothing_new(project: Project, event: str) -> None:
    project.write((ASKED, ANSWERED))
    for _ in range(3):
        project.hook(event)
    assert project.turns() == [(ASKED, ANSWERED)]


def test_a_turn_that_went_on_replaces_what_was_stored_of_it(project: Project) -> None:
    project.write((ASKED, ANSWERED))
    project.hook("stop")
    text = {"type": "assistant", "uuid": "b", "message": {"content": [{"type": "text", "text": "I made it."}]}}
    with project.transcript.open("a") as file:
        file.write(json.dumps(text) + "\n")
    project.hook("stop")
    assert project.turns() == [(ASKED, f"{ANSWERED}\n\nI made it.")]


def test_a_secret_in_the_names_of_a_session_or_its_folder_is_not_stored(project: Project) -> None:
    token = "gh" + "p_" + "Zx7Qp2Lm9Rt4Vb8Ns1Wd6Kf3Hj5Gc0Ya2Ue7"
    turn = CapturedTurn("turn1234", token, 1, "we decided to use tea", "ok", f"gemini:{token}", f"/home/{token}", token)
    with project.memory() as memory:
        memory.capture.add([turn])
        assert len(memory.list().records) == 2
        assert memory.maintenance.scan() == ()


def test_what_import_would_add_is_there_already(project: Project) -> None:
    project.write((ASKED, ANSWERED))
    project.hook("stop")
    with project.memory() as memory:
        assert memory.transfer.import_(project.transcript, source="claude-code").added == 0


def test_a_turn_that_was_forgotten_or_purged_is_not_stored_again(project: Project) -> None:
    project.write((ASKED, ANSWERED))
    project.hook("stop")
    with project.memory() as memory:
        (turn,) = memory.list(memory.filters(kinds=("turn",))).records
        memory.forget(turn.id)
    project.hook("session-end")
    assert project.turns() == []
    with project.memory() as memory:
        memory.purge(turn.id)
    project.hook("session-end")
    assert project.turns() == []


def test_the_answer_of_the_message_counts_while_the_transcript_lags_behind(project: Project) -> None:
    project.write((ASKED, ""))
    project.hook("stop", last_assistant_message=ANSWERED)
    assert project.turns() == [(ASKED, ANSWERED)]


def test_a_question_without_an_answer_waits_until_the_session_ends(project: Project) -> None:
    project.write((ASKED, ""))
    project.hook("stop")
    assert project.turns() == []
    project.hook("session-end")
    assert project.turns() == [(ASKED, "")]


def test_a_line_that_is_still_being_written_is_read_the_next_time(project: Project) -> None:
    project.write((ASKED, ANSWERED), ("and now?", "Now it builds."))
    whole = project.transcript.read_bytes()
    project.transcript.write_bytes(whole[:-20])
    project.hook("stop")
    assert project.turns() == [(ASKED, ANSWERED)]
    project.transcript.write_bytes(whole)
    project.hook("stop")
    assert project.turns() == [(ASKED, ANSWERED), ("and now?", "Now it builds.")]


def test_lines_that_are_not_json_are_skipped(project: Project) -> None:
    project.transcript.write_bytes(b'\xff\xfe\n{"type": "user"\n[]\n' + b"[" * 100_000 + b"\n\n")
    project.write((ASKED, ANSWERED))
    project.hook("stop")
    assert project.turns() == [(ASKED, ANSWERED)]


def test_of_a_transcript_of_100_megabytes_the_end_is_read(project: Project) -> None:
    project.write(("the first question", "the first answer"))
    with project.transcript.open("ab") as file:
        line = (
            b'{"type": "user", "message": {"content": [{"type": "tool_result", "content": "'
            + b"x" * 999_900
            + b'"}]}}\n'
        )
        for _ in range(100):
            file.write(line)
    project.write((ASKED, ANSWERED), first=1)
    project.hook("stop")
    assert project.turns() == [(ASKED, ANSWERED)]


def test_a_turn_with_megabytes_of_work_keeps_its_question_and_its_last_answer(project: Project) -> None:
    project.write(("hello", "Hello."))
    project.hook("stop")
    project.write((ASKED, ANSWERED), first=1, work="x" * (2 * MAX_BYTES))
    project.hook("stop")
    assert project.turns() == [("hello", "Hello."), (ASKED, ANSWERED)]


def test_a_transcript_that_became_shorter_is_read_again(project: Project) -> None:
    project.write(("hello " * 100, "Hello."))
    project.hook("stop")
    project.transcript.unlink()
    project.write((ASKED, ANSWERED), first=5)
    project.hook("stop")
    assert project.turns()[-1] == (ASKED, ANSWERED)


def test_secrets_are_redacted_and_private_sections_cut(project: Project) -> None:
    key = "sk-proj-" + "abcDEF0123456789" * 3
    project.write((f"use the key {key} <private>my salary</private> for the build", "Done."))
    project.hook("stop")
    ((asked, _),) = project.turns()
    assert asked.startswith("use the key [redacted:")
    assert key not in asked
    assert "salary" not in asked


def test_a_message_that_is_private_as_a_whole_is_not_stored(project: Project) -> None:
    project.write(("<private>my salary is 100", "That is a lot."))
    project.hook("stop")
    assert project.turns() == []


def test_what_was_recalled_is_not_stored_as_the_words_of_the_user(project: Project) -> None:
    project.write((f"{ASKED}\n<mindex-recall>\nRemembered: x\n</mindex-recall>", ANSWERED))
    project.hook("stop")
    assert project.turns() == [(ASKED, ANSWERED)]


def test_two_hooks_at_once_store_a_turn_once(project: Project) -> None:
    project.write((f"We decided to paint it green. {ASKED}", ANSWERED))
    threads = [threading.Thread(target=project.hook, args=(event,)) for event in ("stop", "session-end", "stop")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(project.turns()) == 1
    assert project.memories() == ["We decided to paint it green."]


def test_what_a_user_states_becomes_a_memory_of_low_confidence(project: Project) -> None:
    project.write(("We decided to paint the harbour green. I prefer short answers.", "Noted."))
    project.hook("stop")
    with project.memory() as memory:
        records = memory.list(memory.filters(kinds=("memory",))).records  # of one moment: in no order
        decision, preference = sorted(records, key=lambda record: record.type)
        events = memory.timeline.events(source="hook")
    assert (decision.type, decision.tags, decision.confidence) == ("decision", ("project:harbour",), 0.6)
    assert (preference.type, preference.tags, preference.text) == ("preference", (), "I prefer short answers.")
    assert decision.source.startswith("hook:")
    assert {event.id for event in events} >= {decision.id, preference.id}
    assert len(events) == 3


def test_one_undo_takes_back_all_that_a_call_stored(project: Project) -> None:
    project.write(("We decided to paint the harbour green.", "Noted."), ("I prefer short answers.", "Noted."))
    project.hook("stop")
    with project.memory() as memory:
        (decision,) = memory.list(memory.filters(types=("decision",))).records
        memory.undo(decision.id)
    assert (project.turns(), project.memories()) == ([], [])


def test_with_a_language_model_configured_rules_find_no_facts_and_no_model_is_called(project: Project) -> None:
    project.options |= {
        "generation.provider": "openai",
        "generation.model": "any",
        "generation.url": "http://127.0.0.1:9",
    }
    project.write(("We decided to paint the harbour green.", "Noted."))
    project.hook("stop")
    assert len(project.turns()) == 1
    assert project.memories() == []


def test_an_agent_without_a_readable_transcript_sends_both_sides(project: Project) -> None:
    project.hook("stop", "gemini", prompt=ASKED, prompt_response=ANSWERED)
    project.hook("stop", "gemini", prompt=ASKED, prompt_response=ANSWERED)
    assert project.turns() == [(ASKED, ANSWERED)]


def test_what_gemini_puts_before_a_prompt_is_not_the_words_of_the_user(project: Project) -> None:
    asked = f"<hook_context>&lt;mindex-start&gt;\nx</hook_context>\n\n{ASKED}"
    project.hook("stop", "gemini", prompt=asked, prompt_response=ANSWERED)
    assert project.turns() == [(ASKED, ANSWERED)]


def test_an_agent_may_send_the_question_before_and_the_answer_alone(project: Project) -> None:
    project.hook("prompt", "codex", prompt=ASKED)
    project.hook("stop", "codex", last_assistant_message=ANSWERED)
    assert project.turns() == [(ASKED, ANSWERED)]


def test_a_file_that_is_not_a_transcript_is_refused(project: Project) -> None:
    with pytest.raises(UsageError, match="is not a transcript"):
        project.hook("stop", transcript_path="/etc/passwd")
