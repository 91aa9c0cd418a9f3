"""At the start of a session: what matters for the project, within 300 tokens."""

from __future__ import annotations

from mindex.present.token_count import count_tokens
from tests.hooks.conftest import Project


def test_nothing_is_said_when_there_is_nothing(project: Project) -> None:
    with project.memory() as memory:
        memory.add("A fact that is neither a decision nor a preference.")
    assert project.hook("session-start") == ""


def test_decisions_of_the_project_preferences_and_the_last_session_are_named(project: Project) -> None:
    project.write(("We decided to paint the pier green. I prefer short answers.", "Noted."), ("why green?", "Rust."))
    project.hook("stop")
    said = project.hook("session-start", session="s2")
    assert "(decision, 20" in said
    assert "We decided to paint the pier green." in said
    assert "I prefer short answers." in said
    assert "(last session, 2026-11-16, 2 turns) “We decided to paint the pier green." in said
    assert "last: “why green?”" in said


def test_decisions_of_another_project_are_left_out(project: Project) -> None:
    with project.memory() as memory:
        memory.add("We decided to sell the lighthouse.", type="decision", tags=["project:lighthouse"])
        memory.add("We decided to sell the castle.", type="decision")
        memory.add("The harbour is painted green.", type="decision")
    said = project.hook("session-start")
    assert "The harbour is painted green." in said
    assert "lighthouse" not in said
    assert "castle" not in said


def test_with_its_own_agent_all_decisions_are_of_the_project(project: Project) -> None:
    project.options["agent"] = "harbour-agent"
    with project.memory() as memory:
        memory.add("We decided to sell the castle.", type="decision")
    assert "castle" in project.hook("session-start")


def test_a_decision_that_was_superseded_is_not_open(project: Project) -> None:
    with project.memory() as memory:
        old = memory.add("The harbour is painted red.", type="decision").id
        memory.add("The harbour is painted green.", type="decision", supersedes=old)
    said = project.hook("session-start")
    assert "green" in said
    assert "red." not in said


def test_a_start_has_at_most_300_tokens(project: Project) -> None:
    with project.memory() as memory:
        for number in range(9):
            memory.add(f"Decision {number} about the harbour. " + "Ünïcode. " * 40, type="decision")
            memory.add(f"Preference {number} of the user. " + "Ünïcode. " * 40, type="preference")
    assert 0 < count_tokens(project.hook("session-start")) <= 300


def test_a_resumed_session_gets_nothing_twice(project: Project) -> None:
    with project.memory() as memory:
        memory.add("I prefer short answers.", type="preference")
    assert project.hook("session-start", source="startup")
    assert project.hook("session-start", source="resume") == ""
    assert project.hook("session-start", source="compact")


def test_many_later_entries_of_other_projects_hide_nothing(project: Project) -> None:
    project.write(("We decided to paint the pier green.", "Noted."), ("why green?", "Rust."))
    project.hook("stop")
    with project.memory() as memory:
        for number in range(60):
            memory.add(f"The lighthouse gets lamp {number}.", type="decision", tags=["project:lighthouse"])
        for number in range(12):
            memory.conversations.add(
                "which lamp?", f"Lamp {number}.", session_id=f"l{number}", tags=["project:lighthouse"]
            )
    said = project.hook("session-start", session="s2")
    assert "We decided to paint the pier green." in said
    assert "2 turns) “We decided to paint the pier green." in said
    assert "amp" not in said


def test_a_long_last_session_is_named_by_its_first_question(project: Project) -> None:
    project.write(("how deep is the pier?", "Nine metres."), *[(f"what about pile {one}?", "Ok.") for one in range(57)])
    project.hook("stop")
    said = project.hook("session-start", session="s2")
    assert "58 turns) “how deep is the pier?”; last: “what about pile 56?”" in said


def test_a_session_that_continues_gets_the_one_before(project: Project) -> None:
    project.write(("how deep is the pier?", "Nine metres."), session="s0")
    project.hook("stop", session="s0")
    project.transcript.unlink()
    project.write(*[(f"what about pile {one}?", "Ok.") for one in range(58)])
    project.hook("stop")
    assert "1 turn) “how deep is the pier?”" in project.hook("session-start", source="compact")
