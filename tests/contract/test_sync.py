"""The laws of what is shared with other machines: rows of changes, and the storing of merged records."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindex.datatypes import Change, Record
from mindex.store.base import Store
from mindex.store.sync_rows import MergedChange, MergedRecord, SyncRow
from tests.contract.records import EVERYONE, Open, found, memory_of


def merged(record: Record, *stamps: str, text: str = "text of", undoes: str = "") -> MergedRecord:
    """A record whose text was changed once for each stamp after the first."""
    history = []
    before: Record | None = None
    for number, stamp in enumerate(stamps):
        after = replace(record, text=f"{text} {stamp}", updated_at=number + 1)
        action = "update" if before else "add"
        undone = undoes if stamp == stamps[-1] else ""
        change = Change(0, record.id, number + 1, "me", "undo" if undone else action, "", before, after)
        history.append(MergedChange(stamp, change, undone))
        before = after
    assert before is not None
    return MergedRecord(before, tuple(history))


def rows_of(merged_record: MergedRecord) -> list[SyncRow]:
    return [SyncRow(one.stamp, merged_record.record.id, "{}") for one in merged_record.history]


def put(store: Store, one: MergedRecord) -> None:
    store.sync.put(rows_of(one))
    store.sync.put_merged([one])


def test_a_fact_is_there_for_the_next_process_and_replaced_by_its_name(open_store: Open) -> None:
    store = open_store()
    assert store.sync.facts() == {}
    store.sync.put_fact("machines", "a")
    store.sync.put_fact("machines", "b")
    store.sync.put_fact("offsets", "{}")
    assert open_store().sync.facts() == {"machines": "b", "offsets": "{}"}


def test_rows_are_found_by_record_and_by_stamp_in_the_order_of_stamps(store: Store) -> None:
    rows = [SyncRow("2.b", "one", "second", 7), SyncRow("1.a", "one", "first"), SyncRow("1.b", "two", "other")]
    store.sync.put(rows)
    assert store.sync.of_records(["one"]) == (rows[1], rows[0])
    assert store.sync.with_stamps(["2.b", "1.b", "9.z"]) == (rows[2], rows[0])
    assert store.sync.stamps() == {"1.a", "1.b", "2.b"}
    assert store.sync.latest() == "2.b"


def test_a_row_takes_the_place_of_the_one_with_its_stamp_and_can_be_dropped(store: Store) -> None:
    store.sync.put([SyncRow("1.a", "one", "first"), SyncRow("2.a", "one", "second")])
    store.sync.put([SyncRow("1.a", "one", "again", 3)])
    store.sync.drop(["2.a", "9.z"])
    assert store.sync.of_records(["one"]) == (SyncRow("1.a", "one", "again", 3),)
    store.sync.drop(["1.a"])
    assert store.sync.latest() == ""


def test_changes_without_a_row_are_not_synced_yet(store: Store) -> None:
    store.entries.add([memory_of("one"), memory_of("two")], by="me")
    first, second = store.sync.unsynced(0, 10)
    assert (first.record, second.record, second.action) == ("one", "two", "add")
    assert store.sync.unsynced(0, 1) == (first,)
    assert store.sync.unsynced(first.change, 10) == (second,)
    store.sync.put([SyncRow("1.a", "one", "{}", first.change)])
    assert store.sync.unsynced(0, 10) == (second,)


def test_a_purge_empties_the_lines_of_its_records(store: Store) -> None:
    store.entries.add([memory_of("one"), memory_of("two")], by="me")
    store.sync.put([SyncRow("1.a", "one", "secret", 1), SyncRow("2.a", "two", "stays", 2)])
    assert store.sync.purged() == ()
    store.entries.purge(["one"])
    assert store.sync.purged() == ("one",)
    assert [row.line for row in store.sync.of_records(["one", "two"])] == ["", "stays"]


def test_a_merged_record_is_stored_with_its_history_under_the_next_number(store: Store) -> None:
    store.entries.add([memory_of("one")], by="me")
    put(store, merged(memory_of("two"), "1.b", "2.b"))
    record = store.retrieval.record("two")
    assert record is not None and (record.number, record.text) == (2, "text of 2.b")
    history = store.entries.history("two")
    assert [(change.action, change.after.text) for change in history] == [
        ("add", "text of 1.b"),
        ("update", "text of 2.b"),
    ]
    assert history[1].before == history[0].after and history[1].after == record
    assert [row.change for row in store.sync.of_records(["two"])] == [change.change for change in history]
    assert found(store, "2.b", EVERYONE) == ["two"]
    assert [change.record for change in store.sync.unsynced(0, 10)] == ["one"]


def test_a_later_change_is_appended_and_the_numbers_before_it_stay(store: Store) -> None:
    put(store, merged(memory_of("one"), "1.a", "2.b"))
    before = store.entries.history("one")
    put(store, merged(memory_of("one"), "1.a", "2.b", "3.a"))
    after = store.entries.history("one")
    assert after[:2] == before
    assert after[2].change > before[1].change
    assert found(store, "3.a", EVERYONE) == ["one"]


def test_an_earlier_change_comes_before_those_that_it_was_merged_with(store: Store) -> None:
    put(store, merged(memory_of("one"), "1.a", "3.a"))
    first = store.entries.history("one")[0]
    put(store, merged(memory_of("one"), "1.a", "2.b", "3.a"))
    history = store.entries.history("one")
    assert [change.after.text for change in history] == ["text of 1.a", "text of 2.b", "text of 3.a"]
    assert history[0] == first
    assert [change.change for change in history] == [row.change for row in store.sync.of_records(["one"])]
    assert store.sync.unsynced(0, 10) == ()


def test_the_time_of_a_record_that_two_machines_made_is_that_of_the_merge(store: Store) -> None:
    put(store, merged(memory_of("one"), "2.a"))
    put(store, merged(replace(memory_of("one"), created_at=77), "1.b", "2.a"))
    record = store.retrieval.record("one")
    assert record is not None and (record.created_at, record.number) == (77, 1)


def test_a_change_that_is_merged_no_more_leaves_the_history(store: Store) -> None:
    put(store, merged(memory_of("one"), "1.a", "2.b"))
    store.sync.put_merged([merged(memory_of("one"), "1.a")])
    assert [change.after.text for change in store.entries.history("one")] == ["text of 1.a"]
    assert [bool(row.change) for row in store.sync.of_records(["one"])] == [True, False]


def test_the_reason_of_an_undo_names_the_number_that_the_undone_change_has_here(store: Store) -> None:
    store.entries.add([memory_of("other")], by="me")
    put(store, merged(memory_of("one"), "1.a", "2.b", "3.b", undoes="2.b"))
    history = store.entries.history("one")
    assert history[2].reason == f"undo of change {history[1].change}"


def test_two_merged_records_may_be_the_same_until_one_is_retired(store: Store) -> None:
    put(store, merged(memory_of("one"), "1.a", text="same"))
    two = merged(memory_of("two"), "1.a")
    store.sync.put_merged([replace(two, record=replace(two.record, text="same 1.a"))])
    assert sorted(found(store, "same", EVERYONE)) == ["one", "two"]
    assert (store.sync.duplicate_of("one"), store.sync.duplicate_of("two")) == ("two", "one")
    store.entries.revise("two", lambda record: replace(record, retired_at=5), by="me", action="forget")
    assert (store.sync.duplicate_of("one"), store.sync.duplicate_of("two")) == (None, None)


def test_an_expired_memory_is_not_a_duplicate(store: Store) -> None:
    put(store, merged(memory_of("one"), "1.a", text="same"))
    put(store, merged(memory_of("two", expires_at=5), "1.a", text="same"))
    assert (store.sync.duplicate_of("one"), store.sync.duplicate_of("two")) == (None, None)


def test_records_of_other_kinds_are_the_same_by_their_unique_field(store: Store) -> None:
    for id_, email in (("one", "ann@example.org"), ("two", "ANN@example.org"), ("three", "bo@example.org")):
        contact = replace(memory_of(id_, fields={"email": email}), kind="contact")
        put(store, merged(contact, f"1.{id_}", text=id_))
    assert store.sync.duplicate_of("one", "email") == "two"
    assert store.sync.duplicate_of("three", "email") is None


def test_a_block_that_raises_takes_back_what_was_merged(store: Store) -> None:
    with pytest.raises(RuntimeError), store.entries.transaction():
        put(store, merged(memory_of("one"), "1.a"))
        store.sync.put_fact("machines", "a")
        assert store.retrieval.record("one") is not None
        raise RuntimeError
    assert store.retrieval.record("one") is None
    assert store.sync.stamps() == frozenset()
    assert store.sync.facts() == {}
