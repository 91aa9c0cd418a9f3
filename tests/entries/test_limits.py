"""What is too long or too many is refused at once, by every way in, and an import names the row that it leaves out."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from mindex import limits
from mindex.entries.new_memory import NewMemory
from mindex.errors import NotFoundError, UsageError
from mindex.memory import Memory
from tests.conftest import write

DOCS = Path(__file__).parents[2] / "docs"
HUGE = "word " * 20_000_000  # 100 MB: redacting or storing it would take minutes

TOO_MUCH: dict[str, dict[str, object]] = {
    "summary": {"summary": "x" * (limits.MAX_SUMMARY + 1)},
    "tag": {"tags": ["x" * (limits.MAX_TAG + 1)]},
    "tags": {"tags": [f"tag{number}" for number in range(limits.MAX_TAGS + 1)]},
    "entity": {"entities": ["x" * (limits.MAX_NAME + 1)]},
    "entities": {"entities": [f"name{number}" for number in range(limits.MAX_TAGS + 1)]},
    "context": {"context": "x" * (limits.MAX_FIELD + 1)},
    "source": {"source": "x" * (limits.MAX_FIELD + 1)},
    "a field": {"fields": {"custom": {"deep": ["x" * (limits.MAX_FIELD + 1)]}}},
    "values in fields": {"fields": {"custom": [[number] for number in range(limits.MAX_VALUES + 1)]}},
    "the name of a field": {"fields": {"x" * (limits.MAX_NAME + 1): 1}},
}
AS_MUCH: dict[str, object] = {
    "summary": "x" * limits.MAX_SUMMARY,
    "tags": [f"{number:0{limits.MAX_TAG}}" for number in range(limits.MAX_TAGS)],
    "entities": ["x" * limits.MAX_NAME],
    "context": "word " * (limits.MAX_FIELD // 5),
    "source": "word " * (limits.MAX_FIELD // 5),
    "fields": {"custom": "word " * (limits.MAX_FIELD // 5)},
}


@pytest.mark.parametrize("what", TOO_MUCH)
def test_a_memory_with_too_much_is_refused(keyword_memory: Memory, what: str) -> None:
    with pytest.raises(UsageError, match=r"characters, at most|are too many"):
        keyword_memory.add("Backups run at noon", **TOO_MUCH[what])  # type: ignore[arg-type]
    with pytest.raises(UsageError):
        keyword_memory.add_many([NewMemory("Backups run at noon", **TOO_MUCH[what])])  # type: ignore[arg-type]
    id_ = keyword_memory.add("Deploys run at night").id
    with pytest.raises(UsageError):
        keyword_memory.update(id_, **TOO_MUCH[what])  # type: ignore[arg-type]
    assert keyword_memory.list().total == 1


def test_as_much_as_the_limits_is_stored(keyword_memory: Memory) -> None:
    id_ = keyword_memory.add("Backups run at noon", **AS_MUCH).id  # type: ignore[arg-type]
    assert len(keyword_memory.entries.find(id_).tags) == limits.MAX_TAGS
    keyword_memory.update(id_, reason="x" * limits.MAX_FIELD, **AS_MUCH)  # type: ignore[arg-type]


CALLS: dict[str, Callable[[Memory, str], object]] = {
    "summary": lambda memory, text: memory.add("x", summary=text),
    "text": lambda memory, text: memory.add(text),
    "tag": lambda memory, text: memory.add("x", tags=[text]),
    "type": lambda memory, text: memory.add("x", type=text),
    "field": lambda memory, text: memory.add("x", fields={"a": text}),
    "agent": lambda memory, text: memory.add("x", agent=text),
    "reason": lambda memory, text: memory.forget(memory.add("kept").id, text),
    "session": lambda memory, text: memory.conversations.add("a", "b", session_id=text),
    "speaker": lambda memory, text: memory.conversations.add("a", "b", speaker=text),
    "turn": lambda memory, text: memory.conversations.add(text, "b"),
    "turn's tag": lambda memory, text: memory.conversations.add("a", "b", tags=[text]),
    "profile": lambda memory, text: memory.profile.set({"user.name": text}),
    "contact": lambda memory, text: memory.contacts.add(name=text),
    "notes": lambda memory, text: memory.contacts.add(name="Anna", notes=text),
    "project": lambda memory, text: memory.projects.add(name=text),
    "skill": lambda memory, text: memory.skills.add(name="x", trigger_type="manual", instructions=text),
    "reference": lambda memory, text: memory.get(text),
}


@pytest.mark.parametrize("what", CALLS)
def test_what_is_huge_is_refused_before_it_is_read(keyword_memory: Memory, what: str) -> None:
    keyword_memory.add("warm")  # what is imported with the first call
    started = time.process_time()
    with pytest.raises(UsageError):
        CALLS[what](keyword_memory, HUGE)
    # Redacting it takes minutes; encoding it to count its bytes, a tenth of a second.
    assert time.process_time() - started < 10


def test_a_profile_has_at_most_a_thousand_values(keyword_memory: Memory) -> None:
    profile = keyword_memory.profile
    profile.set({"list": list(range(limits.MAX_VALUES))})
    with pytest.raises(UsageError, match=r"1,001 values"):
        profile.set({"one.more": 1})
    profile.set({"list": [1, 2]}, replace=True)
    profile.set({"one.more": 1})


MANY = [str(number) for number in range(limits.MAX_VALUES + 1)]
LARGE = ["word " * 1_000] * 60  # 300 kB
TOO_MANY: dict[str, Callable[[Memory, list[str]], object]] = {
    "fields of a memory": lambda memory, texts: memory.add("x", fields={"a": {"b": texts}}),
    "changed fields": lambda memory, texts: memory.update(memory.add("kept").id, fields={"a": texts}),
    "links": lambda memory, texts: memory.contacts.add(name="Anna", links=texts),
    "participants": lambda memory, texts: memory.projects.add(name="Atlas", participants=texts),
    "sources": lambda memory, texts: memory.projects.add(name="Atlas", sources=texts),
    "tools": lambda memory, texts: memory.skills.add(
        name="x", trigger_type="manual", instructions="x", required_tools=texts
    ),
    "plan": lambda memory, texts: memory.skills.add(
        name="x", trigger_type="manual", instructions="x", execution_plan=[{"id": one} for one in texts]
    ),
    "trigger": lambda memory, texts: memory.skills.add(
        name="x", trigger_type="manual", instructions="x", trigger_config={"x": texts}
    ),
    "profile": lambda memory, texts: memory.profile.set({"user.names": texts}),
}


@pytest.mark.parametrize("what", TOO_MANY)
@pytest.mark.parametrize(("texts", "named"), [(MANY, "1,000"), (LARGE, "262,144")])
def test_the_values_of_one_record_are_limited_in_number_and_size(
    keyword_memory: Memory, what: str, texts: list[str], named: str
) -> None:
    with pytest.raises(UsageError, match=f"{named}"):
        TOO_MANY[what](keyword_memory, texts)


def test_too_many_values_are_refused_before_they_are_looked_at(keyword_memory: Memory) -> None:
    keyword_memory.add("warm")
    started = time.process_time()
    with pytest.raises(UsageError, match="1,000"):
        keyword_memory.contacts.add(name="Anna", links=["x"] * 20_000_000)
    assert time.process_time() - started < 5  # to redact them takes minutes


def test_changes_one_by_one_do_not_make_a_record_larger(keyword_memory: Memory) -> None:
    skills = keyword_memory.skills
    made = skills.add(name="x", trigger_type="manual", instructions="x", required_tools=MANY[:600])
    with pytest.raises(UsageError, match=r"the skill would have 1,\d+ values, at most 1,000 are allowed"):
        skills.update(made.id, execution_plan=[{"id": one} for one in MANY[:600]])
    skills.update(made.id, required_tools=MANY[:300], execution_plan=[{"id": one} for one in MANY[:600]])


def test_a_list_that_holds_itself_is_refused(keyword_memory: Memory) -> None:
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(UsageError, match="nested more than 50 deep"):
        keyword_memory.add("x", fields={"a": endless})


def test_a_long_turn_with_a_secret_is_imported_without_the_secret(keyword_memory: Memory, tmp_path: Path) -> None:
    secret = "AKIA" + "Q3EGWJ5TLXN2RBVD"
    keyword_memory.conversations.add("word " * 4_000 + "the end", "b")
    keyword_memory.transfer.export(tmp_path / "all.jsonl")
    exported = (tmp_path / "all.jsonl").read_text().replace("the end", secret)
    (tmp_path / "all.jsonl").write_text(exported)
    with Memory(tmp_path / "other.db", options={"embedding.provider": "none"}) as other:
        assert other.transfer.import_(tmp_path / "all.jsonl").skipped == ()
        (turn,) = other.list().records
        assert secret not in turn.text and "[redacted:" in turn.text


def test_a_get_takes_a_hundred_references(keyword_memory: Memory) -> None:
    names = [f"abcd{number}" for number in range(limits.MAX_REFERENCES + 1)]
    keyword_memory.get(*names[1:])
    with pytest.raises(UsageError, match="at most 100"):
        keyword_memory.get(*names)


def test_a_file_that_grew_beyond_the_limit_is_not_read_for_two_lines(keyword_memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"a.md": "one\ntwo\nthree"})
    keyword_memory.index(root)
    assert keyword_memory.get("a.md:1-2").records[0].text == "one\ntwo"
    with (root / "a.md").open("ab") as file:
        file.truncate(limits.MAX_FILE_BYTES + 1)
    found = keyword_memory.get("a.md:1-2")
    assert (found.records, "too large: 20,000,001 bytes" in found.why[0]) == ((), True)
    with pytest.raises(NotFoundError):
        keyword_memory.lookup.read_file("a.md")


@pytest.mark.parametrize("what", ["summary", "tag", "tags", "context", "a field", "values in fields"])
def test_an_import_names_the_row_that_it_leaves_out(keyword_memory: Memory, tmp_path: Path, what: str) -> None:
    keyword_memory.add("Backups run at noon")
    keyword_memory.add("Deploys run at night")
    keyword_memory.transfer.export(tmp_path / "all.jsonl")
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    changed = [json.loads(line) for line in lines]
    entry = next(one for one in changed if "Backups" in str(one.get("text")))
    entry.update(TOO_MUCH[what])
    (tmp_path / "all.jsonl").write_text("\n".join(json.dumps(one) for one in changed))
    with Memory(tmp_path / "other.db", options={"embedding.provider": "none"}) as other:
        report = other.transfer.import_(tmp_path / "all.jsonl")
        (skipped,) = report.skipped
        assert (report.added, sum(table.dropped for table in report.tables)) == (1, 1)
        assert re.search(r"at most|too many", skipped.reason)


def test_the_documentation_lists_every_limit() -> None:
    page = (DOCS / "memories.md").read_text(encoding="utf-8")
    table = page.partition("## Limits")[2]
    values = {name: value for name, value in vars(limits).items() if name.startswith("MAX_")}
    for name, value in values.items():
        shown = {limits.MAX_TEXT_BYTES: "1 MiB", limits.MAX_VALUES_BYTES: "256 KiB", limits.MAX_FILE_BYTES: "20 MB"}
        assert f" {shown.get(value, f'{value:,}')} " in table, name
