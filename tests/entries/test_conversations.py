"""Turns of conversations: stored whole, found by any of their words, shown with their neighbours."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.errors import NotFoundError, SecretError, UsageError
from mindex.memory import Memory


@pytest.fixture
def memory(keyword_memory: Memory) -> Memory:
    return keyword_memory


def talk(memory: Memory, count: int = 6, session: str = "s1") -> list[str]:
    return [
        memory.conversations.add(f"question {n}", f"answer {n}", session_id=session, at=f"2026-03-01T10:{n:02}:00Z")[
            0
        ].id
        for n in range(count)
    ]


def test_a_turn_is_stored_with_speakers_and_date_in_front(memory: Memory) -> None:
    record, redacted = memory.conversations.add(
        "Where is the warehouse?", "In Rotterdam.", session_id="s1", tags=["logistics"], at="2026-03-01T10:00:00Z"
    )
    assert record.text == ("user (1 March 2026): Where is the warehouse?\n\nmain (1 March 2026): In Rotterdam.")
    assert record.fields == {
        "session_id": "s1",
        "user_message": "Where is the warehouse?",
        "agent_response": "In Rotterdam.",
    }
    assert (record.kind, record.tags, redacted) == ("turn", ("logistics",), ())
    assert [hit.record.id for hit in memory.search("Rotterdam", kinds=["turn"]).hits] == [record.id]
    assert [hit.record.id for hit in memory.search("march 2026").hits] == [record.id]


def test_sessions_are_listed_the_latest_first(memory: Memory) -> None:
    talk(memory, 3, "older")
    memory.conversations.add("Is the freeze over?", "Yes.", session_id="later", at="2026-03-02")
    page = memory.conversations.list()
    assert [(one.id, one.turns, one.summary) for one in page.sessions] == [
        ("later", 1, "Is the freeze over?"),
        ("older", 3, "question 0"),
    ]
    assert (page.total, memory.conversations.list(limit=1, offset=1).sessions) == (2, page.sessions[1:])
    assert memory.conversations.list(agent="nobody").total == 0
    for wrong in ({"limit": 0}, {"offset": -1}):
        with pytest.raises(UsageError, match="too small"):
            memory.conversations.list(**wrong)


def test_a_session_is_made_when_none_is_given(memory: Memory) -> None:
    one, _ = memory.conversations.add("a", "b")
    other, _ = memory.conversations.add("a", "b")
    assert one.fields["session_id"] != other.fields["session_id"]
    assert one.id != other.id


@pytest.mark.parametrize(("user", "agent"), [("hello", ""), ("", "hello")])
def test_one_side_of_a_turn_may_be_empty_but_not_both(memory: Memory, user: str, agent: str) -> None:
    record, _ = memory.conversations.add(user, agent)
    assert record.text.endswith(": hello")
    with pytest.raises(UsageError, match="both messages"):
        memory.conversations.add(" ", "")


def test_secrets_are_left_out_of_every_part(memory: Memory) -> None:
    key = "sk-ant-api03-" + "a1B2" * 10
    record, redacted = memory.conversations.add(f"my key: {key}", "password is hunter2hunter2", tags=[key])
    assert set(redacted) >= {"anthropic-key", "password"}
    assert key not in str(record) and "hunter2" not in str(record)
    assert key not in str(memory.store.retrieval.record(record.id))


def test_strict_mode_rejects_a_turn_with_a_secret(tmp_path: Path) -> None:
    options = {"embedding.provider": "none", "secrets.mode": "strict"}
    with Memory(tmp_path / "strict.db", options=options) as memory, pytest.raises(SecretError):
        memory.conversations.add("my key: sk-ant-api03-" + "a1B2" * 10, "thanks")


def test_a_search_is_narrowed_by_dates_and_sessions(memory: Memory) -> None:
    old, _ = memory.conversations.add("the harbour", "is old", session_id="a", at="2025-12-31")
    new, _ = memory.conversations.add("the harbour", "is new", session_id="b", at="2026-03-15")

    def found(**scope: str) -> set[str]:
        return {hit.record.id for hit in memory.search("harbour", kinds=["turn"], **scope).hits}  # type: ignore[arg-type]

    assert found() == {old.id, new.id}
    assert found(after="2026") == found(after="2026-03") == {new.id}
    assert found(before="2026-01") == {old.id}
    assert found(session="a") == {old.id}
    assert found(session="c") == set()
    recent, _ = memory.conversations.add("the harbour", "is here", session_id="c")
    assert found(after="2w") == {recent.id}


def test_a_hit_has_its_neighbours(memory: Memory) -> None:
    ids = talk(memory)
    talk(memory, 3, "s2")
    (hit,) = memory.search('"question 3"', session="s1", around=2).hits
    assert [turn.id for turn in hit.around] == [ids[1], ids[2], ids[4], ids[5]]
    (hit,) = memory.search('"question 0"', session="s1", around=1).hits
    assert [turn.id for turn in hit.around] == [ids[1]]
    assert memory.search('"question 3"', session="s1").hits[0].around == ()


def test_neighbours_that_were_found_themselves_are_not_shown_twice(memory: Memory) -> None:
    ids = talk(memory, 3)
    answer = memory.search("question", session="s1", around=2)
    assert {hit.record.id for hit in answer.hits} == set(ids)
    assert all(hit.around == () for hit in answer.hits)


def test_around_has_bounds(memory: Memory) -> None:
    talk(memory, 1)
    with pytest.raises(UsageError):
        memory.search("question", around=-1)
    assert "around cut to 20" in memory.search("question", around=1000).notes


def test_a_session_is_read_in_order_and_a_turn_with_its_neighbours(memory: Memory) -> None:
    ids = talk(memory)
    assert [turn.id for turn in memory.conversations.session("s1")] == ids
    assert memory.conversations.session("nowhere") == memory.conversations.session("") == ()
    assert [turn.id for turn in memory.conversations.around(ids[3])] == ids[1:6]
    assert [turn.id for turn in memory.conversations.around(ids[0][:8], 0, 1)] == ids[:2]
    with pytest.raises(NotFoundError):
        memory.conversations.around("zzzzzzzz")
    assert memory.conversations.around(memory.add("A memory has no neighbours").id) == ()


def test_a_forgotten_turn_is_not_a_neighbour(memory: Memory) -> None:
    ids = talk(memory, 3)
    memory.forget(ids[1])
    assert [turn.id for turn in memory.conversations.around(ids[0], 2, 2)] == [ids[0], ids[2]]
    assert [turn.id for turn in memory.conversations.session("s1")] == [ids[0], ids[2]]


def test_agents_find_only_their_own_turns(memory: Memory) -> None:
    talk(memory, 1, "shared")
    theirs, _ = memory.conversations.add("question 9", "answer", session_id="shared", agent="other")
    assert len(memory.conversations.session("shared")) == 1
    assert [turn.id for turn in memory.conversations.session("shared", agent="other")] == [theirs.id]
    assert len(memory.conversations.session("shared", agent="*")) == 2
    assert theirs.id not in {hit.record.id for hit in memory.search("question").hits}


def test_a_long_message_is_stored_whole_and_found_by_words_in_its_middle(memory: Memory) -> None:
    filler = "The weather stayed as it was and nobody said much about it. " * 400
    long = f"{filler}Only the zirconium valve in hall seven leaked. {filler}"
    record, _ = memory.conversations.add(long, "Noted.", session_id="s1")
    talk(memory, 5)
    (hit,) = memory.search("zirconium").hits
    assert hit.record.id == record.id
    assert hit.record.fields["user_message"] == long.strip()


@pytest.mark.slow
def test_a_long_message_is_found_by_the_meaning_of_its_middle(tmp_path: Path) -> None:
    filler = "The committee met on time and approved the minutes of its last session. " * 60
    with Memory(tmp_path / "model.db") as memory:
        record, _ = memory.conversations.add(
            f"{filler}\n\nMy daughter is allergic to peanuts, so we never keep any at home.\n\n{filler}", "I see."
        )
        for n in range(5):
            memory.conversations.add(f"How is the budget for item {n}?", "It has been approved.")
        answer = memory.search("which nuts is the child allergic to", mode="vector", floor=0)
        assert answer.hits[0].record.id == record.id


def test_the_text_of_a_turn_cannot_be_updated(memory: Memory) -> None:
    (id_,) = talk(memory, 1)
    with pytest.raises(UsageError, match="made from its fields"):
        memory.update(id_, text="something else")


def test_the_timeline_lists_turns(memory: Memory) -> None:
    talk(memory, 2)
    memory.add("Learnt on another day")
    events = memory.timeline.events("2026-03-01T00:00:00Z", "2026-03-02T00:00:00Z")
    assert [(event.kind, event.action) for event in events] == [("turn", "add")] * 2
    assert memory.timeline.events("2026-03-01", "2026-03-02", kinds=["memory"]) == ()
    assert len(memory.timeline.events("2026-03-01", None, "another day")) == 1
    with pytest.raises(UsageError, match="unknown kind"):
        memory.timeline.events("2026", kinds=["nothing"])
