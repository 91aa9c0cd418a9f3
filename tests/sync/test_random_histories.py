"""The law of sync: machines that have exchanged everything have the same entries with the same history."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from mindex.entries.json_paths import leaves
from mindex.errors import MindexError
from mindex.memory import Memory
from mindex.store.base import Engine
from mindex.store.open import register_engine
from tests.contract.memory_engine import DATABASES, open_memory_store
from tests.sync.machines import DAY, Machine, deliver, exported, machines, sync_all

register_engine("toy", Engine(open_memory_store))

TEXTS = tuple(f"The {place} opens at {hour}" for place in ("harbour", "market", "museum") for hour in (6, 8))
TAGS = ("red", "blue", "green")
PATHS = ("user.name", "user.city", "tools.editor", "languages")

machine = st.integers(0, 2)
number = st.integers(0, 30)
text = st.sampled_from(TEXTS)
step = st.one_of(
    st.tuples(st.just("add"), machine, text, st.sampled_from(TAGS)),
    st.tuples(st.just("update"), machine, number, text),
    st.tuples(st.just("tag"), machine, number, st.sampled_from(TAGS)),
    st.tuples(st.sampled_from(["forget", "restore", "undo", "purge"]), machine, number),
    st.tuples(st.just("supersede"), machine, number, number),
    st.tuples(st.just("profile"), machine, st.sampled_from(PATHS), text),
    st.tuples(st.just("contact"), machine, st.sampled_from(["ann", "bo"]), st.sampled_from(["role", "company", ""])),
    st.tuples(st.just("edit contact"), machine, number, st.sampled_from(["role", "notes"]), text),
    st.tuples(st.just("project"), machine, st.sampled_from(["Harbour", "harbour", "Market"])),
    st.tuples(st.just("note"), machine, st.sampled_from(["/memories/a.md", "/memories/b.md"]), text),
    st.tuples(st.just("turn"), machine, text),
    st.tuples(st.just("sync"), machine),
    st.tuples(st.just("sync"), machine),
    st.tuples(st.just("deliver"), machine, machine, st.sampled_from([0.3, 0.8, 1.0]), st.booleans()),
    st.tuples(st.just("deliver"), machine, machine, st.just(1.0), st.booleans()),
)
# Each takes a sixth of a second: `MINDEX_TEST_HISTORIES=1000` runs as many as docs/sync.md speaks of.
HISTORIES = int(os.environ.get("MINDEX_TEST_HISTORIES", "150"))

histories = st.lists(step, min_size=12, max_size=50)
# What all machines know before they change it.
SHARED = [
    ("add", 0, TEXTS[0], "red"), ("add", 1, TEXTS[2], "blue"), ("add", 2, TEXTS[4], "green"),
    ("profile", 0, "user.name", "Ada"), ("contact", 1, "ann", "role"), ("note", 2, "/memories/a.md", TEXTS[0]),
]  # fmt: skip
clocks = st.tuples(*[st.sampled_from([0, 0, DAY, -DAY, 90_000])] * 3)
seeds = st.integers(0, 2**32)  # of ids: their order decides what of equal age holds


def run(made: list[Machine], steps: list[tuple[Any, ...]]) -> None:
    """Do what a random history says. What one machine refuses is left out."""
    for action, place, *details in steps:
        one = made[place]
        if action == "deliver":
            if details[0] != place:
                deliver(one, made[details[0]], share=details[1], only_its_own=details[2])
            continue
        if action == "sync":
            one.sync()
            continue
        with one.at_work() as memory, suppress(MindexError, IndexError):
            change(memory, action, details)


def change(memory: Memory, action: str, details: list[Any]) -> None:
    """Make one change, or raise the MindexError with which it is refused."""
    if action == "add":
        memory.add(details[0], tags=[details[1]], embed=False)
    elif action == "profile":
        memory.profile.set({details[0]: details[1]})
    elif action == "contact":
        name, field = details
        more = {field: f"{field} of {name}"} if field else {}
        memory.contacts.add(name=name.title(), email=f"{name}@example.org", **more)
    elif action == "project":
        memory.projects.add(name=details[0])
    elif action == "note":
        memory.notes.create("main", *details)
    elif action == "turn":
        memory.conversations.add(details[0], "Thanks.", session_id="s")
    elif ids := sorted(all_ids(memory)):
        change_one(memory, action, ids, details)


def change_one(memory: Memory, action: str, ids: list[str], details: list[Any]) -> None:
    id_ = ids[details[0] % len(ids)]
    if action == "edit contact":
        memory.contacts.update(memory.contacts.all()[0].id, **{details[1]: details[2]})
    elif action == "update":
        memory.update(id_, text=details[1])
    elif action == "tag":
        memory.update(id_, tags=[details[1]])
    elif action == "supersede":
        memory.update(ids[details[1] % len(ids)], supersedes=id_)
    else:
        {"forget": memory.forget, "restore": memory.restore, "undo": memory.undo, "purge": memory.purge}[action](id_)


def all_ids(memory: Memory) -> Iterator[str]:
    with memory.store.entries.export_snapshot() as snapshot:
        yield from [row.record.id for row in snapshot.rows]


def contents_of(made: list[Machine]) -> set[tuple[str, str]]:
    """Everything that was ever written on some machine: the texts of records, or the fields of which they are made."""
    found = set()
    for one in made:
        with one.store.entries.export_snapshot() as snapshot:
            for row in snapshot.rows:
                for change in row.history:
                    state = change.after
                    made_of_fields = state.kind in ("profile", "contact", "project")
                    contents = map(str, leaves(state.fields)) if made_of_fields else [state.text]
                    found |= {(state.id, content) for content in (*contents, *state.tags)}
    return found


def three(folder: str, url: str, ahead: tuple[int, ...], seed: int) -> AbstractContextManager[list[Machine]]:
    return machines(Path(folder), "a", "b", "c", url=url, ahead=ahead, seed=seed)


def check(steps: list[tuple[Any, ...]], ahead: tuple[int, ...], seed: int, url: str) -> None:
    with TemporaryDirectory() as folder, three(folder, url, ahead, seed) as made:
        run(made, SHARED)
        sync_all(made)
        run(made, steps)
        before = contents_of(made)
        sync_all(made)
        made[0].clock.now += 3 * DAY  # what the slow clocks kept for later is received now
        sync_all(made)
        first, *others = map(exported, made)
        for other in others:
            assert other == first
        purged = {row.record for one in made for row in one.store.sync.of_records([id_ for id_, _ in before])
                  if '"purged":true' in row.line}  # fmt: skip
        assert {one for one in before if one[0] not in purged} <= contents_of(made), "something was lost"
        live = [state for state, _ in first if state["kind"] == "memory" and state["retired_at"] is None]
        assert len({state["text"] for state in live}) == len(live), "two live memories have the same text"
        emails = [state["fields"].get("email") for state, _ in first
                  if state["kind"] == "contact" and state["retired_at"] is None]  # fmt: skip
        assert len(set(emails)) == len(emails), "two live contacts have the same address"
    DATABASES.clear()


@given(histories, clocks, seeds)
@settings(max_examples=25, phases=(Phase.reuse, Phase.generate))  # to shrink one takes minutes
def test_machines_that_exchanged_everything_have_the_same_entries(
    steps: list[tuple[Any, ...]], ahead: tuple[int, ...], seed: int
) -> None:
    check(steps, ahead, seed, "toy://")


@pytest.mark.slow
@given(histories, clocks, seeds)
@settings(max_examples=HISTORIES, phases=(Phase.generate,))
def test_many_random_histories_end_in_equal_memories(
    steps: list[tuple[Any, ...]], ahead: tuple[int, ...], seed: int
) -> None:
    check(steps, ahead, seed, "toy://")


@pytest.mark.slow
@given(histories, clocks, seeds)
@settings(max_examples=40, phases=(Phase.generate,))
def test_the_same_holds_for_sqlite_files(steps: list[tuple[Any, ...]], ahead: tuple[int, ...], seed: int) -> None:
    check(steps, ahead, seed, "")
