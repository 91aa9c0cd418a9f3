"""The laws of exporting entries and restoring them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mindex.datatypes import Change, Record
from mindex.datatypes.program_numbers import LAST_NUMBER
from mindex.store.base import Access, Store
from mindex.store.export_rows import (
    Accesses,
    ExportRow,
    Extraction,
    ImportPreview,
    Link,
    RestoreOptions,
    RestoreOutcome,
)
from tests.contract.records import EVERYONE, Open, found, memory_of, turn, update

OPTIONS = RestoreOptions("importer", "an import", unique={"contact": "name"})


def exported(store: Store, agent: str = "*") -> list[ExportRow]:
    with store.entries.export_snapshot(agent) as snapshot:
        rows = list(snapshot.rows)
        assert snapshot.total == len(rows)
    return rows


def restored(store: Store, rows: Sequence[ExportRow], preview: ImportPreview | None = None) -> list[RestoreOutcome]:
    return list(store.entries.restore_rows(rows, OPTIONS, preview))


def forget(store: Store, id_: str) -> None:
    store.entries.revise(id_, lambda record: replace(record, retired_at=5), by="me", action="forget", reason="no more")


@pytest.fixture
def filled(store: Store) -> Store:
    store.files.apply([update("a.md", "not exported")])
    store.entries.add([memory_of("one"), memory_of("two", tags=("tea",)), turn("t", "s", 3)], by="me")
    store.entries.add([replace(memory_of("theirs"), agent="A")], by="you")
    store.entries.link([("one", "two", "near", 0.75)])
    store.entries.mark_extracted("t", 2)
    forget(store, "one")
    return store


def test_an_export_has_every_entry_with_all_that_belongs_to_it(filled: Store) -> None:
    rows = {row.record.id: row for row in exported(filled)}
    assert list(rows) == ["theirs", "one", "two", "t"]
    assert [change.action for change in rows["one"].history] == ["add", "forget"]
    assert [(link.target, link.kind, link.weight) for link in rows["one"].links] == [("two", "near", 0.75)]
    assert rows["t"].extraction is not None and rows["t"].extraction.facts == 2
    assert rows["one"].record == filled.retrieval.record("one")
    assert [row.record.id for row in exported(filled, "A")] == ["theirs"]
    with filled.entries.export_snapshot() as snapshot:
        assert dict(snapshot.last_numbers) == {"A": 4, "a": 4}


def test_an_export_is_of_one_moment(filled: Store, open_store: Open) -> None:
    other = open_store()
    with filled.entries.export_snapshot("a") as snapshot:
        first = next(snapshot.rows)
        other.entries.add([memory_of("new")], by="me")
        forget(other, "two")
        rest = {row.record.id: row for row in snapshot.rows}
    assert [first.record.id, *rest] == ["one", "two", "t"]
    assert (rest["two"].record.retired_at, len(rest["two"].history)) == (None, 1)


def test_what_was_exported_is_restored_the_same(filled: Store) -> None:
    rows = exported(filled)
    filled.entries.purge([row.record.id for row in rows])
    outcomes = restored(filled, rows)
    assert {outcome.outcome for outcome in outcomes} == {"added"}
    assert filled.entries.restore_links([(row.record.id, link) for row in rows for link in row.links]) == 2
    assert exported(filled) == rows
    assert sorted(found(filled, "text", EVERYONE)) == ["theirs", "two"]
    assert filled.entries.count_unextracted("*") == 0
    assert {outcome.outcome for outcome in restored(filled, rows)} == {"duplicate"}
    assert exported(filled) == rows


def test_a_row_without_history_gets_its_import_as_first_change(store: Store) -> None:
    (outcome,) = restored(store, [ExportRow(memory_of("one"))])
    assert outcome == RestoreOutcome("added", "one", 1)
    (change,) = store.entries.history("one")
    assert (change.action, change.by, change.reason, change.at) == ("import", "importer", "an import", 1)


def test_a_row_of_another_record_with_its_id_is_a_conflict(store: Store) -> None:
    store.entries.add([memory_of("one")], by="me")
    other_agent = replace(memory_of("one"), agent="b")
    other_kind = replace(memory_of("one"), kind="turn")
    assert [one.outcome for one in restored(store, [ExportRow(other_agent), ExportRow(other_kind)])] == ["conflict"] * 2


def test_the_same_content_comes_in_once(store: Store) -> None:
    store.entries.add([memory_of("one")], by="me")
    rows = [replace(memory_of(id_), text=text) for id_, text in (("two", "text of one"), ("x", "new"), ("y", "new"))]
    outcomes = restored(store, [ExportRow(record) for record in rows])
    assert [(one.outcome, one.id) for one in outcomes] == [("duplicate", "one"), ("added", "x"), ("duplicate", "x")]


def test_a_retired_row_comes_in_beside_the_live_one_of_its_content(store: Store) -> None:
    store.entries.add([memory_of("one")], by="me")
    (outcome,) = restored(store, [ExportRow(replace(memory_of("two"), text="text of one", retired_at=3))])
    assert outcome.outcome == "added"
    assert found(store, "text", EVERYONE) == ["one"]


def test_a_unique_name_that_is_taken_is_a_conflict_with_its_holder(store: Store) -> None:
    contacts = [
        Record(id_, "contact", name, agent="a", fields={"name": name}) for id_, name in (("c", "Zoë"), ("d", "ZOË"))
    ]
    outcomes = restored(store, [ExportRow(record) for record in contacts])
    assert [(one.outcome, one.id) for one in outcomes] == [("added", "c"), ("conflict", "c")]


@pytest.mark.parametrize(("number", "expected"), [(7, 7), (1, 8), (None, 8), (0, 8), (-5, 8), (LAST_NUMBER + 1, 8)])
def test_a_number_is_kept_where_it_is_free(store: Store, number: int | None, expected: int) -> None:
    store.entries.add([replace(memory_of("one"), number=1)], by="me")
    options = replace(OPTIONS, above={"a": 7})
    record = replace(memory_of("two"), number=number)
    history = (Change(0, "two", 1, "them", "add", "", None, record),)
    (outcome,) = store.entries.restore_rows([ExportRow(record, history)], options)
    stored = store.retrieval.record("two")
    assert stored is not None and outcome.number == stored.number == expected
    assert store.entries.history("two")[0].after.number == expected
    store.entries.add([memory_of("next")], by="me")
    following = store.retrieval.record("next")
    assert following is not None and following.number == max(expected, 7) + 1


def test_changes_keep_their_numbers_where_all_of_a_records_are_free(store: Store) -> None:
    store.entries.add([memory_of("one")], by="me")
    taken = store.entries.history("one")[0].change
    kept, moved = replace(memory_of("kept"), number=5), replace(memory_of("moved"), number=6)

    def history(record: Record, *numbers: int) -> tuple[Change, ...]:
        return tuple(Change(number, record.id, number, "them", "update", "", record, record) for number in numbers)

    rows = [ExportRow(moved, history(moved, taken, 901)), ExportRow(kept, history(kept, 500, 900))]
    restored(store, rows)
    assert [change.change for change in store.entries.history("kept")] == [500, 900]
    renumbered = [change.change for change in store.entries.history("moved")]
    assert min(renumbered) > 900 and renumbered == sorted(renumbered)
    assert [change.at for change in store.entries.history("moved")] == [taken, 901]


def test_a_preview_judges_rows_and_stores_nothing(store: Store) -> None:
    store.entries.add([memory_of("one")], by="me")
    preview = ImportPreview()
    first = restored(store, [ExportRow(memory_of("one")), ExportRow(memory_of("two"))], preview)
    second = restored(store, [ExportRow(memory_of("two")), ExportRow(memory_of("three"))], preview)
    assert [(one.outcome, one.number) for one in (*first, *second)] == [
        ("duplicate", None),
        ("added", 2),
        ("duplicate", None),
        ("added", 3),
    ]
    assert [record.id for record in store.retrieval.list(EVERYONE, limit=9).records] == ["one"]


def test_a_batch_that_an_export_does_not_carry_is_known_by_its_changes(store: Store) -> None:
    records = [memory_of("one"), memory_of("two"), memory_of("three")]
    reasons = ["consolidated one and 1 more", "consolidated one and 1 more", "something else"]
    rows = [
        ExportRow(record, (Change(0, record.id, 9, "me", "update", reason, record, record),))
        for record, reason in zip(records, reasons, strict=True)
    ]
    restored(store, rows[:1])
    restored(store, rows[1:])
    batches = [store.entries.history(record.id)[0].batch for record in records]
    assert batches[0] == batches[1] != "" == batches[2]
    assert [change.record for change in store.entries.batch(batches[0])] == ["one", "two"]


def test_a_batch_that_an_export_carries_keeps_its_id(store: Store) -> None:
    records = [memory_of("one"), memory_of("two")]
    for record in records:
        restored(store, [ExportRow(record, (Change(0, record.id, 9, "me", "update", "", record, record, batch="b7"),))])
    assert [(change.record, change.batch) for change in store.entries.batch("b7")] == [("one", "b7"), ("two", "b7")]


def test_links_are_restored_where_both_ends_exist(store: Store) -> None:
    store.entries.add([memory_of("one"), memory_of("two")], by="me")
    links = [
        ("one", Link("two", "near", 0.5, 7)),
        ("one", Link("gone", "near", 0.5)),
        ("gone", Link("one", "near", 0.5)),
    ]
    assert store.entries.restore_links(links) == 1
    assert store.entries.restore_links(links) == 0
    assert (store.entries.linked("one", "near"), store.entries.linked("two", "near")) == (("two",), ())


def test_a_link_that_is_found_again_keeps_its_time(store: Store) -> None:
    store.entries.add([memory_of("one"), memory_of("two")], by="me")
    store.entries.restore_links([("one", Link("two", "near", 0.5, 7)), ("two", Link("one", "near", 0.5, 7))])
    store.entries.link([("two", "one", "near", 0.75)])
    links = {row.record.id: row.links for row in exported(store)}
    assert links == {"one": (Link("two", "near", 0.75, 7),), "two": (Link("one", "near", 0.75, 7),)}


def test_an_extraction_is_restored_with_its_turn(store: Store) -> None:
    restored(store, [ExportRow(turn("t", "s", 1), extraction=Extraction(5, 2)), ExportRow(turn("u", "s", 2))])
    assert (store.entries.is_unextracted("t"), store.entries.is_unextracted("u")) == (False, True)


def test_accesses_are_exported_and_restored(filled: Store) -> None:
    def counted() -> dict[str, Accesses]:
        return {row.record.id: row.accesses for row in exported(filled) if row.accesses}

    filled.entries.log_access([Access("two", 7, "get"), Access("two", 9, "search", "tea")], oldest=0, rows=100)
    filled.settle()
    rows = exported(filled)
    assert counted() == {"two": Accesses(2, 9)}
    filled.entries.purge([row.record.id for row in rows])
    restored(filled, rows)
    assert counted() == {"two": Accesses(2, 9)}
    signals = filled.retrieval.ranking_signals(["two"])["two"]
    assert (signals.access_count, signals.last_accessed) == (2, 9)
    # Those of a duplicate are not added to what is counted already.
    restored(filled, [replace(row, accesses=Accesses(5, 50)) for row in rows])
    assert counted() == {"two": Accesses(2, 9)}


def test_the_log_of_accesses_is_exported_on_request_and_restored(filled: Store) -> None:
    logged = (Access("two", 7, "get"), Access("two", 9, "search", "tea", 0.5))
    filled.entries.log_access(logged, oldest=0, rows=100)
    filled.settle()

    def log(*, asked: bool) -> list[tuple[Access, ...]]:
        with filled.entries.export_snapshot(log=asked) as snapshot:
            return [row.accesses.log for row in snapshot.rows if row.accesses]

    assert (log(asked=False), log(asked=True)) == ([()], [logged])
    with filled.entries.export_snapshot(log=True) as snapshot:
        rows = list(snapshot.rows)
    filled.entries.purge([row.record.id for row in rows])
    restored(filled, rows)
    assert log(asked=True) == [logged]


def test_a_record_is_found_by_the_former_ids_of_a_row_with_its_text(filled: Store) -> None:
    twin = ExportRow(replace(memory_of("twin"), text="text of two", fields={"foreign_ids": {"mudpuppy": "8"}}))
    for _ in range(2):
        assert restored(filled, [twin], ImportPreview()) == [RestoreOutcome("duplicate", "two")]
        assert restored(filled, [twin]) == [RestoreOutcome("duplicate", "two")]
    assert filled.retrieval.find_by_foreign_id("8", "mudpuppy") == ("two",)
    third = replace(twin, record=replace(twin.record, id="third", fields={"foreign_ids": {"mudpuppy": "9"}}))
    restored(filled, [third])
    two = filled.retrieval.record("two")
    assert two is not None and two.fields == {"foreign_ids": {"mudpuppy": ["8", "9"]}}
    assert [change.action for change in filled.entries.history("two")] == ["add"]
    assert two.updated_at == 1
