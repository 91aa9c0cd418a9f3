"""References of `get` beside ids and files: profiles, histories, timelines, due skills, turns with neighbours."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mindex.clock import now_ms, to_iso
from mindex.errors import AmbiguousIdError, UsageError
from mindex.memory import Memory
from mindex.present.records_view import view_records
from tests.conftest import write
from tests.running import wait_until


@pytest.fixture
def memory(keyword_memory: Memory) -> Memory:
    return keyword_memory


def test_the_profile_and_its_paths_are_returned(memory: Memory) -> None:
    memory.profile.set({"user": {"name": "Anna", "langs": ["py", "go"]}, "n": 5})
    found = memory.get("profile", "profile.user.name", "profile.user.langs[1]", "profile.n", "profile.user.langs")
    assert found.missing == ()
    whole, name, lang, number, langs = found.records
    assert json.loads(whole.text) == {"user": {"name": "Anna", "langs": ["py", "go"]}, "n": 5}
    assert (name.text, lang.text, number.text, json.loads(langs.text)) == ("Anna", "go", "5", ["py", "go"])
    assert {record.kind for record in found.records} == {"profile"}
    assert (name.id, name.title) == ("profile.user.name", "user.name")


def test_a_path_of_the_profile_without_a_value_is_missing(memory: Memory) -> None:
    assert memory.get("profile").missing == ("profile",)
    memory.profile.set({"user": {"name": "Anna"}})
    assert memory.get("profile.user.age", "profile[0]").missing == ("profile.user.age", "profile[0]")


def test_a_file_called_profile_is_the_file(memory: Memory, tmp_path: Path) -> None:
    memory.profile.set({"md": "not this"})
    memory.index(write(tmp_path / "docs", {"profile.md": "# The file"}))
    assert [record.text for record in memory.get("profile.md").records] == ["# The file"]


@pytest.mark.slow
def test_the_profile_as_it_was_at_a_time(memory: Memory) -> None:
    memory.profile.set({"city": "Oslo"})
    before = now_ms()
    wait_until(lambda: to_iso(now_ms()) > to_iso(before))
    moment = to_iso(now_ms())
    wait_until(lambda: to_iso(now_ms()) > moment)
    memory.profile.set({"city": "Genoa"})
    assert memory.get("profile.city", as_of=moment).records[0].text == "Oslo"
    assert memory.get("profile.city").records[0].text == "Genoa"
    assert memory.get("profile", as_of="2020").missing == ("profile",)


def test_tags_types_and_sessions_are_listed_as_one_record_each(memory: Memory) -> None:
    memory.add("Anna drinks tea", type="preference", tags=["tea", "anna"])
    memory.add("Tea is served at five", type="fact", tags=["tea"])
    memory.conversations.add("When is tea served?", "At five.", session_id="kitchen", at="2026-03-01")
    tags, types, sessions = memory.get("tags", "types", "sessions").records
    assert (tags.kind, tags.title, tags.text) == ("tags", "2 tags", "2 tea\n1 anna")
    assert types.text.startswith("1 fact\n1 preference\n0 background\n")
    assert (sessions.title, sessions.text.splitlines()[1]) == (
        "1 conversation",
        "kitchen  1 exchange  2026-03-01  When is tea served?",
    )


def test_a_history_is_a_record_for_each_change_newest_first(memory: Memory) -> None:
    id_ = memory.add("Mara prefers tabs").id
    memory.update(id_, text="Mara prefers spaces", reason="she said so")
    memory.forget(id_, "she left")
    found = memory.get(f"history:{id_[:8]}")
    assert [record.fields["action"] for record in found.records] == ["forget", "update", "add"]
    assert "text: Mara prefers tabs → Mara prefers spaces" in found.records[1].text
    assert found.records[1].fields == {"action": "update", "by": "main", "reason": "she said so"}
    assert [record.id for record in found.records] == [str(change.change) for change in memory.history(id_)[::-1]]
    memory.undo(found.records[0].id)
    assert memory.get(id_).missing == ()


def test_a_history_of_nothing_is_missing_and_an_ambiguous_one_an_error(memory: Memory) -> None:
    assert memory.get("history:zzzzzzzz", "history:").missing == ("history:zzzzzzzz", "history:")
    ids = [memory.add(f"Thing {n}").id for n in range(40)]
    first = max({id_[0] for id_ in ids}, key=lambda letter: sum(id_.startswith(letter) for id_ in ids))
    with pytest.raises(AmbiguousIdError):
        memory.get(f"history:{first}")


def test_a_timeline_is_one_record(memory: Memory) -> None:
    id_ = memory.add("Learnt today").id
    memory.contacts.add(name="Anna")
    (record,) = memory.get("timeline:1d..").records
    assert (record.kind, record.id, record.title) == ("timeline", "timeline:1d..", "2 events")
    assert f"add memory {id_} Learnt today" in record.text and "Anna" in record.text
    (record,) = memory.get("timeline:2020-01..2020-02").records
    assert record.text == "nothing in that time"
    for reference in ("timeline:2026x", "timeline:port 8443", "timeline:whenever..", "timeline:1m.."):
        with pytest.raises(UsageError):
            memory.get(reference)


def test_a_timeline_of_a_period_groups_by_day_and_names_what_superseded(memory: Memory) -> None:
    old = memory.add("The retro is on Wednesdays").id
    new = memory.add("The retro moved to Thursdays").id
    memory.update(new, importance=9)
    for reference in ("timeline:today", "timeline:diese Woche", "timeline:today..tomorrow"):
        (record,) = memory.get(reference).records
        heading, *lines = record.text.splitlines()
        assert heading.endswith(": 2 learnt, 1 superseded, 1 changed")
        assert [line.split()[1] for line in lines] == ["add", "add", "supersede", "update"]
        assert f"supersede memory {old} The retro is on Wednesdays (superseded by {new} by rule" in record.text
    assert memory.get("timeline:last week").records[0].text == "nothing in that time"


@pytest.mark.parametrize("reference", ["timeline", "timeline:", "timeline:.."])
def test_a_timeline_without_a_beginning_is_the_last_seven_days_newest_first(memory: Memory, reference: str) -> None:
    first, second = memory.add("Learnt first").id, memory.add("Learnt second").id
    (record,) = memory.get(reference).records
    assert record.text.index(second) < record.text.index(first)
    assert memory.get("timeline:..3 days ago").records[0].text == "nothing in that time"
    in_order = memory.get("timeline:yesterday..tomorrow").records[0].text
    assert in_order.index(first) < in_order.index(second)


def test_due_returns_the_skills_that_are_due_and_an_empty_list_is_not_an_error(memory: Memory) -> None:
    empty = memory.get("due")
    assert (empty.records, empty.missing, empty.notes) == ((), (), ("nothing is due",))
    assert view_records(empty).json() == {"records": [], "missing": [], "notes": ["nothing is due"]}
    assert view_records(empty).text() == "note: nothing is due"
    skill = memory.skills.add(
        name="Brief", trigger_type="interval", instructions="Sum up", trigger_config={"interval_minutes": 5}
    )
    found = memory.get("due")
    assert [record.id for record in found.records] == [skill.id]
    shown = view_records(found)
    assert shown.json()["records"][0]["fields"]["since"] == to_iso(skill.created_at)  # type: ignore[index, call-overload]
    assert "instructions: Sum up" in shown.text() and 'trigger_config: {"interval_minutes": 5}' in shown.text()


@pytest.mark.parametrize("sign", ["±", "+-", "~"])
def test_a_turn_is_returned_with_its_neighbours(memory: Memory, sign: str) -> None:
    ids = [
        memory.conversations.add(f"question {n}", "answer", session_id="s", at=f"2026-03-01T10:{n:02}:00Z")[0].id
        for n in range(7)
    ]
    assert [record.id for record in memory.get(f"{ids[3]}{sign}2").records] == ids[1:6]
    assert [record.id for record in memory.get(f"{ids[0][:8].upper()}{sign}1").records] == ids[:2]
    assert [record.id for record in memory.get(f"{ids[3]}{sign}0").records] == [ids[3]]


def test_a_record_that_is_not_a_turn_has_no_neighbours(memory: Memory) -> None:
    id_ = memory.add("A memory").id
    assert memory.get(f"{id_}±2", "zzzzzzzz±2").missing == (f"{id_}±2", "zzzzzzzz±2")


def test_special_references_mix_with_ids_and_files(memory: Memory, tmp_path: Path) -> None:
    memory.index(write(tmp_path / "docs", {"a.md": "# A file"}))
    id_ = memory.add("A memory").id
    memory.profile.set({"name": "Anna"})
    found = memory.get(f"a.md,{id_},profile.name", f"history:{id_}", f"timeline:{datetime.now(UTC).year}..", "nowhere")
    assert [record.kind for record in found.records] == ["chunk", "memory", "profile", "history", "timeline"]
    assert found.missing == ("nowhere",)


def test_agents_read_their_own_profile_and_timeline(memory: Memory, tmp_path: Path) -> None:
    memory.profile.set({"name": "Anna"})
    with Memory(tmp_path / "memory.db", agent="other", options={"embedding.provider": "none"}) as other:
        assert other.get("profile").missing == ("profile",)
        assert other.get("timeline:1d..").records[0].text == "nothing in that time"


def test_a_budget_cuts_a_history_at_its_oldest_changes(memory: Memory) -> None:
    id_ = memory.add("Version 0 " + "words " * 100).id
    for n in range(1, 10):
        memory.update(id_, text=f"Version {n} " + "words " * 100)
    shown = view_records(memory.get(f"history:{id_}"), budget=1500)
    assert shown.tokens <= 1500
    assert "Version 9" in (shown.rows[0].text or "")
    assert len(shown.rows) < 10


SECTIONS = "# Guide\n\n" + "".join(f"## Part {number}\n\nThe words of part {number}.\n\n" for number in range(1, 8))


@pytest.mark.parametrize("sign", ["±", "+-", "~"])
def test_a_chunk_comes_with_those_around_it_in_its_file(memory: Memory, tmp_path: Path, sign: str) -> None:
    memory.index(write(tmp_path / "docs", {"guide.md": SECTIONS, "other.md": "# Other\n\nthe words of part 4"}))
    (document,) = (one for one in memory.collections.documents_of("docs") if one.path == "guide.md")
    chunks = memory.collections.chunks(document.id)
    assert len(chunks) == 7
    assert memory.get(f"{chunks[3].id}{sign}2").records == chunks[1:6]
    assert memory.get(f"{chunks[0].id[:8]}{sign}1").records == chunks[:2]
    assert memory.get(f"{chunks[6].id}{sign}99").records == chunks


def test_a_memory_has_no_neighbours(memory: Memory) -> None:
    added = memory.add("a memory")
    found = memory.get(f"{added.id}±2", "nothing±2")
    assert found.missing == (f"{added.id}±2", "nothing±2")
    assert found.why == (
        f"'{added.id}' is neither a chunk nor a turn of a conversation",
        "there is no record 'nothing'",
    )


def test_an_entry_says_how_often_it_was_returned(memory: Memory) -> None:
    added = memory.add("The cache lives in Redis")
    assert "never accessed" in view_records(memory.get(added.id)).text()
    memory.search("cache")
    memory.store.settle()  # accesses are written in the background
    found = memory.get(added.id)
    usage = found.usage[added.id]
    assert usage.count == 2 and usage.last_at is not None  # this access is not counted yet
    shown = view_records(found)
    assert f"accessed 2 times, last {to_iso(usage.last_at)}" in shown.text()
    (row,) = shown.json()["records"]  # type: ignore[misc]
    assert (row["access_count"], row["last_accessed"]) == (2, to_iso(usage.last_at))  # type: ignore[index,call-overload]
