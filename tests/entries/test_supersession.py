"""Updates: a memory that says that it replaces an older value supersedes it; anything less clear does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mindex.entries.conflict_rules import find_difference
from mindex.entries.new_memory import NewMemory
from mindex.memory import Memory
from tests.search.asking import moment

OLD, NEW = "The retro is on Wednesdays", "The retro moved to Thursdays"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as opened:
        yield opened


def test_an_update_supersedes_the_older_value_and_says_why(memory: Memory) -> None:
    old = memory.add(OLD)
    new = memory.add(NEW)
    assert [(one.id, one.summary, one.why) for one in new.superseded] == [
        (old.id, OLD, "different dates: Wednesdays and Thursdays")
    ]
    assert not new.conflicts
    assert any(f"mindex restore {old.id}" in note for note in new.notes)
    assert [hit.record.id for hit in memory.search("when is the retro", mode="keyword").hits] == [new.id]
    record = memory.entries.find(old.id)
    assert record.superseded_by == new.id


def test_undo_takes_the_new_memory_and_the_supersession_back_as_one(memory: Memory) -> None:
    old, new = memory.add(OLD), memory.add(NEW)
    memory.undo()
    assert memory.entries.find(old.id).retired_at is None
    assert memory.entries.find(new.id).retired_at is not None


def test_a_restored_value_is_in_conflict_with_the_newer_one(memory: Memory) -> None:
    old, new = memory.add(OLD), memory.add(NEW)
    memory.restore(old.id)
    assert [one.id for one in memory.entries.conflicts(new.id)] == [old.id]


def test_as_of_finds_the_value_that_held_before(memory: Memory) -> None:
    old, earlier = memory.add(OLD), moment()
    assert memory.add(NEW).superseded
    found = memory.search("when is the retro", mode="keyword", as_of=earlier).hits
    assert [hit.record.id for hit in found] == [old.id]


def test_without_an_update_word_it_is_a_conflict(memory: Memory) -> None:
    old = memory.add("We use Redis for the queue")
    new = memory.add("We use NATS for the queue")
    assert not new.superseded
    assert [one.id for one in new.conflicts] == [old.id]


def test_the_setting_conflict_hides_nothing(tmp_path: Path) -> None:
    options = {"embedding.provider": "none", "memory.supersede": "conflict"}
    with Memory(tmp_path / "memory.db", options=options) as memory:
        old, new = memory.add(OLD), memory.add(NEW)
        assert not new.superseded
        assert [one.id for one in new.conflicts] == [old.id]
        assert memory.entries.find(old.id).retired_at is None


@pytest.mark.parametrize(
    ("older", "newer", "supersedes"),
    [("", "hook:abc", False), ("hook:abc", "hook:def", True), ("hook:abc", "", True), ("", "", True)],
)
def test_a_captured_memory_supersedes_only_captured_ones(
    memory: Memory, older: str, newer: str, supersedes: bool
) -> None:
    memory.entries.insert(NewMemory(OLD, source=older))
    found, _ = memory.entries.insert(NewMemory(NEW, source=newer))
    assert bool(found.superseded) == supersedes


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ({"tags": ("project:shop",)}, {"tags": ("project:blog",)}),
        ({"tags": ("project:shop",)}, {}),
        ({"agent": "a"}, {"agent": "b"}),
        ({"context": "Acme"}, {"context": ""}),
        ({"type": "event"}, {}),
    ],
)
def test_another_project_agent_context_or_an_event_is_never_superseded(
    memory: Memory, older: dict[str, object], newer: dict[str, object]
) -> None:
    memory.entries.insert(NewMemory(OLD, **older))  # type: ignore[arg-type]
    result, _ = memory.entries.insert(NewMemory(NEW, **newer))  # type: ignore[arg-type]
    assert not result.superseded


def test_the_same_text_again_supersedes_nothing(memory: Memory) -> None:
    memory.add(NEW)
    old = memory.add(OLD)
    assert not memory.add(NEW).superseded
    assert memory.entries.find(old.id).retired_at is None


def test_a_turn_is_never_superseded(memory: Memory) -> None:
    turn, *_ = memory.conversations.add(OLD, "Noted.", agent="main")
    assert not memory.add(NEW).superseded
    assert memory.entries.find(turn.id).retired_at is None


def test_moving_replaces_where_a_person_lives(memory: Memory) -> None:
    old = memory.add("I live in Vienna")
    assert [one.id for one in memory.add("I moved to Graz last month").superseded] == [old.id]


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("My sister lives in Porto", "My sister moved to Braga in May."),
        ("The office is in Porto", "The office has moved to Braga on Monday"),
        ("Meine Schwester wohnt in Porto", "Meine Schwester ist im Mai nach Braga gezogen"),
        ("Ma sœur habite à Porto", "Ma sœur a déménagé à Braga en mai 2026"),
        ("Mi hermana vive en Porto", "Mi hermana se mudó a Braga en mayo"),
    ],
)
def test_an_update_may_say_when_it_came(older: str, newer: str) -> None:
    difference = find_difference(older, newer)
    assert difference is not None and difference.is_update


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (
            "Ines works as lead firmware engineer at Kestrel Instruments.",
            "Ines no longer works at Kestrel Instruments; she is now at Halden Labs.",
        ),
        ("Ines works at Kestrel Instruments as lead engineer.", "Ines no longer works at Kestrel Instruments."),
        ("Omar works as head of sales for Halden Labs", "Omar doesn't work for Halden Labs any more"),
        ("Ines arbeitet als Ingenieurin bei Kestrel.", "Ines arbeitet nicht mehr bei Kestrel."),
        ("Ines travaille comme ingénieure chez Kestrel.", "Ines ne travaille plus chez Kestrel."),
        ("Ines trabaja como ingeniera en Kestrel.", "Ines ya no trabaja en Kestrel."),
        ("Sensors report every 15 minutes.", "Sensors no longer report every 15 minutes, they report every 5 minutes."),
        ("Ines drinks coffee", "Ines no longer drinks coffee, but she drinks tea"),
        ("Wir nutzen Redis.", "Wir nutzen Redis nicht mehr, wir nutzen jetzt NATS."),
    ],
)
def test_a_denied_statement_is_superseded(older: str, newer: str) -> None:
    difference = find_difference(older, newer)
    assert difference is not None and difference.is_update


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Ines drinks coffee with oat milk", "Ines no longer drinks coffee"),
        ("We use Redis for the queue in production", "We no longer use Redis for the queue"),
        ("Ines works as lead engineer at Kestrel", "Ines no longer works as lead engineer"),
        ("Ines works as lead engineer at Kestrel Instruments.", "Ines now works at Halden Labs."),
        ("Ines arbeitet als Ingenieurin bei Kestrel.", "Ines arbeitet jetzt bei Halden."),
        ("Ines lives in Porto with her sister.", "Ines moved to Braga."),
    ],
)
def test_an_update_that_leaves_a_detail_open_is_only_a_conflict(older: str, newer: str) -> None:
    difference = find_difference(older, newer)
    assert difference is not None and not difference.is_update


# Each block was written before the rule that it guards.
@pytest.mark.parametrize(
    ("older", "newer"),
    [
        # the role between the verb and the employer
        ("Ines works as lead engineer at Kestrel Instruments", "Ines no longer works at Kestrel"),
        ("Ines works as lead engineer at Kestrel", "Ines no longer works at Kestrel's office in Oslo"),
        ("Ines works as lead engineer at Kestrel", "Omar no longer works at Kestrel"),
        ("Ines works as lead engineer at Kestrel", "Ines' sister no longer works at Kestrel"),
        ("Ines works as lead engineer at Kestrel", "Ines no longer works at Halden Labs"),
        ("Ines worked as lead engineer at Kestrel", "Ines no longer works at Kestrel"),
        ("Ines doesn't work as lead engineer at Kestrel", "Ines now works at Kestrel"),
        ("Ines works as lead engineer at Kestrel", "Ines works at Halden Labs on Fridays"),
        ("Ines works as lead engineer at Kestrel", "Ines works at Kestrel now"),
        ("Ines might work as lead engineer at Kestrel", "Ines no longer works at Kestrel"),
        ("Ines works as a buyer for parts at Kestrel", "Ines no longer works at Kestrel Foods"),
        # a detail behind what is denied
        ("Ines eats meat substitutes", "Ines no longer eats meat"),
        ("Ines drinks coffee without sugar", "Ines no longer drinks coffee with sugar"),
        ("The API requires a token in production", "The API no longer requires a token in staging"),
        ("Ines drinks coffee at work", "Ines no longer drinks coffee at home"),
        ("The lab uses Slack bots for alerts", "The lab no longer uses Slack"),
        ("The lexer uses regexes for dates", "The parser no longer uses regexes"),
        ("Ines reads novels in French", "Ines no longer reads only novels"),
        ("Ines drank coffee with milk", "Ines no longer drinks coffee"),
        ("Ines does not drink coffee with milk", "Ines no longer drinks coffee"),
        ("The office in Porto serves lunch", "The office no longer serves lunch"),
        # a clause behind what is denied
        ("Sensors report every 5 minutes", "Sensors no longer report every 15 minutes, they report every 5 minutes"),
        ("Sensors report every 15 minutes", "Gateways no longer report every 15 minutes, they report every 5 minutes"),
        ("Ines drinks coffee", "Ines no longer drinks coffee, she only does so on Sundays"),
        ("Ines drinks tea", "Ines no longer drinks coffee, she drinks tea"),
        ("Ines drinks coffee", "Ines no longer drinks coffee, unless she is tired"),
        ("Ines works at Kestrel", "Ines no longer works at Halden Labs, she works at Kestrel"),
        ("Ines lives in Porto", "Omar no longer lives in Porto, he lives in Braga"),
        ("Ines drinks coffee", "Ines no longer drinks coffee, she still drinks it at work"),
        ("Ines works at Kestrel", "Ines no longer works at Kestrel, I think"),
        ("Ines works at Kestrel", "Ines no longer works at Kestrel, it seems"),
        ("Sensors report every 15 minutes", "Sensors no longer report every 15 minutes, they rest when it is cold"),
        ("The team uses NATS", "The team no longer uses Redis, it uses NATS"),
        ("The lift works", "If the lift no longer works, we take the stairs"),
        # what a person who moved left
        ("Ines lives in Porto with her sister", "Omar moved to Braga"),
        ("Ines lives in Porto with her sister", "Ines' sister moved to Braga"),
        ("Ines lives in Porto with her sister", "Ines moved to Porto"),
        ("Ines lives in Porto with her sister", "Ines moved to the search team"),
        ("Ines lives in Porto with her sister", "Ines wants to move to Braga"),
        ("Ines lives in Porto with her sister", "Ines might have moved to Braga"),
        ("Ines lived in Porto with her sister", "Ines moved to Braga"),
        ("Ines does not live in Porto with her sister", "Ines moved to Braga"),
        ("Ines lives in Porto with her sister", "Ines works in Braga now"),
        ("Ines lives in Porto with her sister", "The office moved to Braga"),
        # an update that says when it came
        ("Ines lives in Porto", "Omar moved to Braga in May"),
        ("Ines lives in Braga", "Ines moved to Braga in May"),
        ("Ines lives in Porto", "Ines travelled to Braga in May"),
        ("Ines lives in Porto", "Ines might have moved to Braga in May"),
        ("Ines lives in Porto", "Ines has not moved to Braga in May"),
        ("The retro is on Mondays in May", "The retro moved to Room Four in May"),
        ("The team meets in Porto", "The team sent a parcel to Braga in May"),
    ],
)
def test_what_may_still_hold_is_not_in_conflict_with_an_update(older: str, newer: str) -> None:
    assert find_difference(older, newer) is None
