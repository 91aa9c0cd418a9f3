"""Copying a memory from one store to another: everything, once, and again after an interruption."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mindex.datatypes import Model, Progress, Record, RecordVectors
from mindex.datatypes.spaces import EmbedderSpec
from mindex.datatypes.transfer import CopyReport
from mindex.errors import ConflictError, StoreError
from mindex.memory import Memory
from mindex.store.base import Store
from mindex.transfer import copy_store as module
from mindex.transfer.copy_store import copy_store
from tests.conftest import HANDBOOK, write
from tests.running import is_one_error, kill, run_here, start

MODEL = Model("openai", "some-model", 8)
KEYWORD = {"embedding.provider": "none"}
POSTGRES = pytest.param("postgres", marks=[pytest.mark.server, pytest.mark.postgres])

New = Callable[[str], str]


@pytest.fixture
def new(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[New]:
    """Names new databases of an engine."""
    with ExitStack() as stack:

        def name(engine: str) -> str:
            if engine == "postgres":
                return str(stack.enter_context(request.getfixturevalue("postgres_server").schema()))
            return str(tmp_path / f"{engine}-{random.randrange(10**9)}.db")

        yield name


@contextmanager
def opened(*databases: str) -> Iterator[tuple[Memory, ...]]:
    with ExitStack() as stack:
        yield tuple(stack.enter_context(Memory(one, options=KEYWORD)) for one in databases)


def fill(database: str, *, vectors: bool = True, root: Path = HANDBOOK) -> None:
    """A memory with something in every table."""
    with Memory(database, options=KEYWORD) as memory:
        memory.index(root)
        chunk = memory.store.files.chunks(next(iter(memory.store.files.documents(root.name).values())).id)[0]
        memory.store.files.set_contexts([(chunk.id, "A sentence about the harbour.")])
        tea = memory.add("Ada prefers tea", type="preference", tags=["tea"], importance=7).id
        memory.update(tea, text="Ada prefers green tea")
        old = memory.add("The office is in Rome").id
        new = memory.add("The office is in Oslo", supersedes=old).id
        memory.forget(memory.add("A mistake").id)
        memory.undo(tea)
        with memory.store.entries.transaction(batch=True):
            for number in range(3):
                memory.add(f"Batch entry {number}")
        memory.conversations.add("Is the freeze over?", "Yes, since Monday.", session_id="planning")
        memory.profile.set({"user": {"name": "Ada"}})
        memory.contacts.add(name="Tomasz Wrona", email="tomasz@example.org")
        memory.skills.add(name="Bake bread", description="With rye.", trigger_type="manual", instructions="Mix.")
        memory.store.entries.link([(tea, new, "similar", 0.5)])
        memory.search("office")
        memory.get(tea)
        with Memory(database, agent="scout", options=KEYWORD) as scout:
            scout.add("The scout drinks rum")
        if vectors:
            memory.store.vectors.put_canary(MODEL, np.ones(8, np.float32))
            give_vectors(memory.store, MODEL)
        memory.store.settle()


def give_vectors(store: Store, model: Model, least: int = 0) -> None:
    made = random.Random(7)
    pending = store.vectors.pending_records(model, 10_000)
    vectors = [
        RecordVectors(record.id, [[made.random() for _ in range(model.dimensions)]] * (1 + number % 2), 0.75)
        for number, record in enumerate(pending)
    ]
    store.vectors.put(model, vectors[least:], EmbedderSpec("openai", "some-model", "http://127.0.0.1:9"))


def content(store: Store) -> dict[str, Any]:
    """All that a store holds, in a form that can be compared."""
    documents = {one.name: store.files.documents(one.name) for one in store.files.collections()}
    with store.entries.export_snapshot(log=True) as snapshot:
        entries = list(snapshot.rows)
        numbers = dict(snapshot.last_numbers)
    ids = [row.record.id for row in entries]
    chunks = {one.id: store.files.chunks(one.id) for found in documents.values() for one in found.values()}
    ids += [chunk.id for found in chunks.values() for chunk in found]
    vectors = {
        one.record: (np.asarray(one.vectors).tolist(), round(one.fluency, 5))
        for one in store.vectors.with_fluency(MODEL, ids)
    }
    spaces = [(one.model, one.embedder_spec, one.vectors, one.active) for one in store.vectors.spaces()]
    canary = store.vectors.canary(MODEL)
    return {
        "collections": store.files.collections(),
        "documents": documents,
        "chunks": chunks,
        "entries": entries,
        "log": [row.accesses.log for row in entries if row.accesses],
        "numbers": numbers,
        "vectors": vectors,
        "spaces": spaces,
        "canary": None if canary is None else canary.tolist(),
    }


def copy(source: str, target: str, **more: Any) -> CopyReport:
    with opened(source) as (memory,):
        return memory.transfer.copy(target, **more)


def assert_same(source: str, target: str) -> None:
    with opened(source, target) as (one, other):
        mine, theirs = content(one.store), content(other.store)
        for name, part in mine.items():
            assert theirs[name] == part, name
        assert all(check.ok for check in other.doctor() if check.name not in ("embedding model", "vectors of a sample"))


@pytest.mark.parametrize(
    ("one", "other"),
    [("sqlite", "sqlite"), pytest.param("sqlite", "postgres", marks=POSTGRES.marks),
     pytest.param("postgres", "sqlite", marks=POSTGRES.marks),
     pytest.param("postgres", "postgres", marks=POSTGRES.marks)],
)  # fmt: skip
def test_everything_is_copied_and_verified(new: New, one: str, other: str) -> None:
    source, target = new(one), new(other)
    fill(source)
    report = copy(source, target)
    assert report.verified, report
    assert report.notes == ()
    tables = {table.table: table for table in report.tables}
    assert tables.keys() >= {"collections", "documents", "chunks", "memory", "turn", "changes", "links", "vectors"}
    assert all(table.source == table.copied == table.target for table in report.tables)
    assert tables["accesses"].source > 0
    assert_same(source, target)


def test_a_copy_answers_and_is_changed_like_the_original(new: New) -> None:
    source, target = new("sqlite"), new("sqlite")
    fill(source)
    copy(source, target)
    with opened(source, target) as (one, other):
        mine, theirs = (memory.search("redis cache", limit=10) for memory in (one, other))
        assert [(hit.record.id, hit.score) for hit in mine.hits] == [(hit.record.id, hit.score) for hit in theirs.hits]
        batches = {change.batch for change in one.store.entries.changes_between(0, 2**62)} - {""}
        assert all(other.store.entries.batch(one_) == one.store.entries.batch(one_) for one_ in batches)
        assert max(len(other.store.entries.batch(one_)) for one_ in batches) == 3
        ids = [memory.add("Something new").id for memory in (one, other)]
        assert {memory.store.retrieval.record(id_).number for memory, id_ in zip((one, other), ids, strict=True)} == {
            13
        }  # type: ignore[union-attr]


def test_a_second_copy_copies_nothing_and_a_later_one_what_is_new(new: New) -> None:
    source, target = new("sqlite"), new("sqlite")
    fill(source)
    copy(source, target)
    assert {table.copied for table in copy(source, target).tables} == {0}
    with opened(source) as (memory,):
        memory.add("Told after the first copy")
    report = copy(source, target)
    assert report.verified
    assert {table.table: table.copied for table in report.tables if table.copied} == {"memory": 1, "changes": 1}


def test_a_dry_run_counts_and_stores_nothing(new: New) -> None:
    source, target = new("sqlite"), new("sqlite")
    fill(source)
    report = copy(source, target, dry_run=True)
    assert not Path(target).exists()
    assert report.verified is None
    done = copy(source, target)
    assert {one.table: one.copied for one in report.tables} == {one.table: one.copied for one in done.tables}
    assert {one.copied for one in copy(source, target, dry_run=True).tables} == {0}


# ── interrupted ───────────────────────────────────────────────────────────────────────────────────────────────

WRITES = {
    "files": ("put_collection", "apply", "set_contexts"),
    "entries": ("restore_rows", "restore_links"),
    "vectors": ("put", "put_canary", "pack"),
}


def stop_at(monkeypatch: pytest.MonkeyPatch, store: Store, number: int, *, after: bool) -> None:
    """Let the copy end at its n-th write: before it, or after it was committed."""
    left = [number]

    def stopped(call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            left[0] -= 1
            if left[0] == 0 and not after:
                raise StoreError("the power went out", "wait")
            result = call(*arguments, **named)
            if left[0] == 0:
                raise StoreError("the power went out", "wait")
            return result

        return run

    for group, names in WRITES.items():
        for name in names:
            monkeypatch.setattr(getattr(store, group), name, stopped(getattr(getattr(store, group), name)))


@pytest.mark.slow
@pytest.mark.parametrize("after", [False, True])
def test_a_copy_that_ends_at_any_write_goes_on_and_is_complete(
    new: New, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: bool
) -> None:
    monkeypatch.setattr(module, "_BATCH", 4)
    source = new("sqlite")
    fill(source, root=write(tmp_path / "docs", {f"{n}.md": f"# Page {n}\n\nText of page {n}." for n in range(9)}))
    with opened(source) as (one,):
        expected = content(one.store)
        for number in range(1, 1000):
            target = new("sqlite")
            with opened(target) as (other,), pytest.MonkeyPatch.context() as patch:
                stop_at(patch, other.store, number, after=after)
                try:
                    copy_store(one.store, other.store, names=("one", "other"))
                    break  # it has fewer writes
                except StoreError:
                    pass
            with opened(target) as (other,):
                report = copy_store(one.store, other.store, names=("one", "other"))
                assert report.verified, (number, report)
                assert content(other.store) == expected, number
    assert number > 15


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["sqlite", POSTGRES])
def test_a_copy_that_is_killed_again_and_again_loses_and_doubles_nothing(new: New, engine: str) -> None:
    source, target = new("sqlite"), new(engine)
    fill(source)
    with opened(source) as (memory,):
        entries = [Record(f"entry{number}", "memory", f"Memory number {number}", agent="ann") for number in range(1500)]
        memory.store.entries.add(entries, by="ann")
        give_vectors(memory.store, MODEL)
    interrupted = 0
    with opened(target) as (other,):
        for least in (1, 74, 80, 500, 1000, 1500):  # records in the target when its writer is killed
            process = start("copy", source, target, env={"MINDEX_EMBEDDING_PROVIDER": "none"})
            while process.poll() is None and stored(other.store) < least:
                time.sleep(random.uniform(0.001, 0.02))
            interrupted += process.poll() is None
            kill(process)
    assert interrupted > 2
    assert run_here("copy", source, target).code == 0
    assert_same(source, target)


def stored(store: Store) -> int:
    return sum(store.maintenance.status().records.values())


# ── a target, or a source, that changes ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("engine", ["sqlite", POSTGRES])
def test_a_target_with_other_rows_is_refused_and_unchanged(new: New, engine: str) -> None:
    source, target = new("sqlite"), new(engine)
    fill(source, vectors=False)
    with opened(target) as (other,):
        own = other.add("Only here").id
        before = content(other.store)
    with pytest.raises(ConflictError, match=f"has the entry {own}") as raised:
        copy(source, target)
    assert "export" in raised.value.hint
    with opened(target) as (other,):
        assert content(other.store) == before


def test_a_target_with_other_files_is_refused(new: New, tmp_path: Path) -> None:
    source, target = new("sqlite"), new("sqlite")
    fill(source, vectors=False)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\nWords.")
    with opened(target) as (other,):
        other.index(tmp_path / "docs")
    with pytest.raises(ConflictError, match="has the collection docs"):
        copy(source, target)


def test_an_entry_that_was_changed_in_the_target_is_not_overwritten_and_the_difference_is_said(new: New) -> None:
    source, target = new("sqlite"), new("sqlite")
    fill(source)
    copy(source, target)
    with opened(target) as (other,):
        contact = other.contacts.list().records[0]
        other.contacts.update(contact.id, notes="Changed in the copy.")
    report = copy(source, target)
    assert report.verified is False
    assert {one.table for one in report.tables if one.same is False} >= {"contact", "changes"}
    assert any("differ" in note for note in report.notes)
    with opened(target) as (other,):
        assert "Changed in the copy." in other.contacts.list().records[0].text


def test_entries_added_during_a_copy_are_left_to_the_next_one_and_reported(new: New) -> None:
    source, target = new("sqlite"), new("sqlite")
    fill(source)
    with opened(source) as (memory,):
        added: list[str] = []

        def add(progress: Progress) -> None:
            if not added:
                time.sleep(0.002)  # later than the start, in milliseconds
                added.append(memory.add("Told while the copy ran").id)
                with Memory(source, options=KEYWORD) as indexer:
                    indexer.index(HANDBOOK)

        report = memory.transfer.copy(target, report=add)
    assert added
    assert "entries were changed in the source during the copy; run it again" in " ".join(report.notes)
    again = copy(source, target)
    assert again.verified and again.notes == ()
    assert_same(source, target)


# ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_vectors_of_another_model_are_left_to_backfill(new: New) -> None:
    source, target = new("sqlite"), new("sqlite")
    fill(source, vectors=False)
    copy(source, target)
    with opened(source, target) as (one, other):
        give_vectors(one.store, MODEL)
        give_vectors(other.store, Model("openai", "another-model", 4), least=1)
    report = copy(source, target)
    assert report.verified
    assert "vectors" not in {table.table for table in report.tables}
    (note,) = report.notes
    assert "the target is embedded with another model than openai/some-model" in note
    assert "`mindex backfill`" in note


def test_vectors_of_a_model_that_answers_otherwise_are_left_to_backfill(new: New) -> None:
    source, target = new("sqlite"), new("sqlite")
    fill(source)
    with opened(target) as (other,):
        other.store.vectors.put_canary(MODEL, np.array([1, 0, 0, 0, 0, 0, 0, 0], np.float32))
    report = copy(source, target)
    assert "makes other vectors in the target" in report.notes[0]
    assert "vectors" not in {table.table for table in report.tables}


# ── the command ───────────────────────────────────────────────────────────────────────────────────────────────


def test_the_command_prints_a_table_and_fails_where_the_stores_differ(new: New) -> None:
    source, target = new("sqlite"), new("sqlite")
    fill(source)
    ran = run_here("copy", source, target)
    assert ran.code == 0
    assert "both hold the same" in ran.out.splitlines()[0]
    assert any(
        line.split() == ["changes", *ran.out.split("changes")[1].split()[:3], "same"] for line in ran.out.splitlines()
    )
    with opened(target) as (other,):
        other.contacts.update(other.contacts.list().records[0].id, notes="Changed.")
    ran = run_here("copy", source, target, "--json")
    assert (ran.code, ran.json["verified"]) == (1, False)


@pytest.mark.parametrize("engine", [POSTGRES])
def test_a_record_that_the_target_cannot_hold_is_named_and_the_rest_is_copied(new: New, engine: str) -> None:
    source, target = new("sqlite"), new(engine)
    fill(source, vectors=False)
    with opened(source) as (memory,):
        refused = memory.add("More important than an integer can say").id
        record = memory.store.retrieval.record(refused)
        assert record is not None
        memory.store.entries.revise(
            refused, lambda record: replace(record, importance=2**40), by="main", action="update"
        )
        entries = sum(memory.store.maintenance.status().records.values())
    ran = run_here("copy", source, target)
    assert ran.code == 1 and f"memory {refused} was not copied: a value cannot be" in ran.out + ran.err
    with opened(target) as (memory,):
        assert sum(memory.store.maintenance.status().records.values()) == entries - 1
        assert memory.store.retrieval.record(refused) is None


def test_the_command_refuses_what_it_cannot_copy(new: New, tmp_path: Path) -> None:
    source = new("sqlite")
    fill(source, vectors=False)
    is_one_error(run_here("copy", tmp_path / "nowhere.db", tmp_path / "x.db"), "there is no database")
    is_one_error(run_here("copy", source, source), "cannot be copied to itself", code=2)
    is_one_error(
        run_here("copy", source, tmp_path / "x.db", "--agent", "ann"),
        "copy cannot be combined with --db or --agent",
        code=2,
    )
    is_one_error(run_here("copy", source, "moon://there"), "no engine for moon://")
    assert not (tmp_path / "x.db").exists()
