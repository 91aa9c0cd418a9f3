"""The laws of transactions, batches, and writers that meet."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from mindex.datatypes import Change, Record
from mindex.entries.new_memory import NewMemory
from mindex.entries.undo import last_batch, undo
from mindex.errors import NotFoundError
from mindex.memory import Memory
from mindex.store.base import AddOutcome, Store
from tests.contract.records import EVERYONE, Open, found, memory_of


def retire(store: Store, id_: str) -> Change:
    return store.entries.revise(id_, lambda record: replace(record, retired_at=5), by="me", action="forget")


def test_writes_of_a_transaction_are_seen_by_its_writer_at_once_and_by_others_at_its_end(open_store: Open) -> None:
    store, other = open_store(), open_store()
    store.entries.add([memory_of("one")], by="me")
    with store.entries.transaction() as moment:
        store.entries.add([memory_of("two")], by="me")
        change = retire(store, "one")
        assert (store.retrieval.record("two") is not None, found(store, "two", filters=EVERYONE)) == (True, ["two"])
        assert (other.retrieval.record("two"), found(other, "one", filters=EVERYONE)) == (None, ["one"])
    assert change.at == moment
    assert (other.retrieval.record("two") is not None, found(other, "one", filters=EVERYONE)) == (True, [])


def test_a_transaction_that_fails_leaves_nothing(open_store: Open) -> None:
    store = open_store()
    store.entries.add([memory_of("one")], by="me")
    with pytest.raises(ZeroDivisionError), store.entries.transaction():
        store.entries.add([memory_of("two", tags=("new",))], by="me")
        retire(store, "one")
        raise ZeroDivisionError
    assert (store.retrieval.record("two"), found(store, "one", filters=EVERYONE)) == (None, ["one"])
    assert len(store.entries.history("one")) == 1
    assert all(check.ok for check in store.maintenance.check())


def test_a_write_that_fails_inside_a_transaction_is_rolled_back_alone(store: Store) -> None:
    with store.entries.transaction():
        store.entries.add([memory_of("one")], by="me")
        with pytest.raises(ZeroDivisionError):
            store.entries.revise("one", lambda _: 1 / 0, by="me", action="update")  # type: ignore[arg-type, return-value]
        with pytest.raises(NotFoundError), store.entries.transaction():
            store.entries.add([memory_of("two")], by="me")
            retire(store, "gone")
        store.entries.add([memory_of("three")], by="me")
    assert [bool(store.retrieval.record(id_)) for id_ in ("one", "two", "three")] == [True, False, True]


def test_other_threads_and_processes_wait_for_a_transaction(open_store: Open) -> None:
    store, other = open_store(), open_store()
    added: list[str] = []

    def add(where: Store, id_: str) -> None:
        where.entries.add([memory_of(id_)], by="me")
        added.append(id_)

    threads = [threading.Thread(target=add, args=pair) for pair in ((store, "mine"), (other, "theirs"))]
    with store.entries.transaction():
        store.entries.add([memory_of("one")], by="me")
        for thread in threads:
            thread.start()
        threads[0].join(0.2)
        assert (added, store.retrieval.record("mine")) == ([], None)
    for thread in threads:
        thread.join(30)
    assert sorted(added) == ["mine", "theirs"]


# ── batches ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_all_changes_of_a_batch_have_one_id(store: Store) -> None:
    store.entries.add([memory_of("before")], by="me")
    with store.entries.transaction(batch=True):
        store.entries.add([memory_of("one"), memory_of("two")], by="me")
        with store.entries.transaction():  # a block inside another one is part of it
            retire(store, "before")
    after = retire(store, "one")
    ids = [change.batch for id_ in ("before", "one", "two") for change in store.entries.history(id_)]
    batch = ids[1]
    assert (batch != "", Counter(ids), after.batch) == (True, {batch: 3, "": 2}, "")
    assert [(change.record, change.action) for change in store.entries.batch(batch)] == [
        ("one", "add"),
        ("two", "add"),
        ("before", "forget"),
    ]
    assert (store.entries.batch(""), store.entries.batch("unknown")) == ((), ())


def test_batches_have_different_ids(store: Store) -> None:
    for id_ in ("one", "two"):
        with store.entries.transaction(batch=True):
            store.entries.add([memory_of(id_)], by="me")
    (first,), (second,) = store.entries.history("one"), store.entries.history("two")
    assert "" != first.batch != second.batch != ""


def test_a_memory_that_supersedes_another_one_is_a_batch_and_is_undone_as_one(store: Store) -> None:
    entries = Memory(store=store, agent="me", options={"secrets.mode": "off", "embedding.provider": "none"}).entries
    old, newer, newest = (
        entries.insert(NewMemory(f"The office is in {city}", agent="me"))[0].id for city in ("Berlin", "Bonn", "Kiel")
    )
    entries.modify(newer, {"supersedes": old, "importance": 9})
    added = entries.insert(NewMemory("The office is in Mainz", agent="me", supersedes=newest))[0].id
    for winner, loser in ((added, newest), (newer, old)):
        batch = last_batch(store, "me")
        assert [change.record for change in batch] == [winner, loser]
        assert batch == store.entries.batch(batch[0].batch) and batch[0].batch == batch[1].batch != ""
        assert last_batch(store, "me") == batch
        undo(store, winner, "me")
        record = store.retrieval.record(loser)
        assert record is not None and (record.retired_at, record.superseded_by) == (None, "")
    with pytest.raises(NotFoundError):
        last_batch(store, "another")


def test_a_transaction_has_one_moment(store: Store) -> None:
    store.entries.add([memory_of("one"), memory_of("two")], by="me")
    with store.entries.transaction() as moment:
        changes = [retire(store, id_) for id_ in ("one", "two")]
        with store.entries.transaction() as inner:
            pass
    assert {inner, *(change.at for change in changes)} == {moment}


# ── two writers at once ───────────────────────────────────────────────────────────────────────────────────────


def at_once(jobs: list[Callable[[], object]]) -> list[object]:
    """Run every job in a separate thread, all started together. Returns results and errors."""
    ready, results = threading.Barrier(len(jobs)), [None] * len(jobs)

    def run(number: int) -> None:
        ready.wait(30)
        try:
            results[number] = jobs[number]()
        except Exception as error:
            results[number] = error

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(jobs))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def added(store: Store, record: Record, **options: str) -> AddOutcome:
    return store.entries.add([record], by="me", **options)[0]  # type: ignore[arg-type]


def test_writers_that_add_the_same_content_at_once_store_it_once(open_store: Open) -> None:
    stores = [open_store(), open_store()]
    records = [replace(memory_of(f"m{n}"), text="the same") for n in range(8)]
    outcomes = at_once([lambda n=n: added(stores[n % 2], records[n]) for n in range(8)])  # type: ignore[misc]
    assert sorted(outcome.created for outcome in outcomes) == [False] * 7 + [True]  # type: ignore[attr-defined]
    assert len({outcome.id for outcome in outcomes}) == 1  # type: ignore[attr-defined]


def test_writers_that_take_the_same_name_at_once_share_it_never(open_store: Open) -> None:
    stores = [open_store(), open_store()]
    records = [Record(f"c{n}", "contact", str(n), agent="a", fields={"name": "Zoë"}) for n in range(8)]
    jobs = [lambda n=n: added(stores[n % 2], records[n], unique="name") for n in range(8)]  # type: ignore[misc]
    assert sorted(outcome.created for outcome in at_once(jobs)) == [False] * 7 + [True]  # type: ignore[attr-defined]


def test_writers_at_once_never_get_the_same_number(open_store: Open) -> None:
    stores = [open_store(), open_store()]
    jobs = [lambda n=n: added(stores[n % 2], memory_of(f"m{n}")) for n in range(24)]  # type: ignore[misc]
    assert all(isinstance(outcome, AddOutcome) for outcome in at_once(jobs))
    records = stores[0].retrieval.records([f"m{n}" for n in range(24)])
    assert sorted(record.number or 0 for record in records) == list(range(1, 25))
    changes = [change.change for record in records for change in stores[1].entries.history(record.id)]
    assert len(set(changes)) == 24


def test_no_revision_is_lost_where_writers_meet(open_store: Open) -> None:
    stores = [open_store(), open_store()]
    added(stores[0], memory_of("one"))

    def append(number: int) -> Change:
        return stores[number % 2].entries.revise(
            "one", lambda record: replace(record, tags=(*record.tags, f"t{number}")), by="me", action="update"
        )

    results = at_once([lambda n=n: append(n) for n in range(12)])  # type: ignore[misc]
    assert all(isinstance(change, Change) for change in results), results
    record = stores[0].retrieval.record("one")
    assert record is not None and sorted(record.tags) == sorted(f"t{n}" for n in range(12))
    history = stores[0].entries.history("one")
    assert [change.before for change in history[1:]] == [change.after for change in history[:-1]]


def test_of_two_revisions_to_one_content_at_once_one_is_refused(open_store: Open) -> None:
    stores = [open_store(), open_store()]
    for id_ in ("one", "two"):
        added(stores[0], memory_of(id_))

    def rewrite(number: int, id_: str) -> Change:
        return stores[number].entries.revise(
            id_, lambda record: replace(record, text="the same"), by="me", action="update"
        )

    results = at_once([lambda: rewrite(0, "one"), lambda: rewrite(1, "two")])
    assert sorted(type(result).__name__ for result in results) == ["Change", "ConflictError"]


def test_transactions_at_once_do_not_mix(open_store: Open) -> None:
    stores = [open_store(), open_store()]

    def both(number: int) -> None:
        with stores[number % 2].entries.transaction(batch=True):
            added(stores[number % 2], memory_of(f"x{number}"))
            added(stores[number % 2], memory_of(f"y{number}"))

    assert at_once([lambda n=n: both(n) for n in range(6)]) == [None] * 6  # type: ignore[misc]
    for number in range(6):
        (first,), (second,) = (stores[0].entries.history(f"{name}{number}") for name in "xy")
        assert first.batch == second.batch and len(stores[0].entries.batch(first.batch)) == 2
