"""The laws of numbers in other programs: who gets one and when, that it is given once, and that exports keep it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from mindex.datatypes import Record
from mindex.datatypes.access_tokens import Principal
from mindex.datatypes.program_numbers import LAST_NUMBER, Renumbered
from mindex.store.base import Store
from mindex.store.export_rows import ExportRow, ImportPreview, RestoreOptions
from mindex.store.scoped.store import ScopedStore
from tests.contract.records import Open, memory_of

MUDPUPPY = RestoreOptions("importer", "an import", program="mudpuppy")


def contact(id_: str, number: int | None = None) -> Record:
    return Record(id_, "contact", id_, agent="a", number=number, fields={"name": id_})


def at(store: Store, number: int, kind: str = "memory", *, program: str = "mudpuppy", agent: str = "a") -> str | None:
    return store.entries.by_number(agent, number, program=program, kind=kind)


def imported(
    store: Store, *records: Record, options: RestoreOptions = MUDPUPPY, preview: ImportPreview | None = None
) -> list[Renumbered]:
    outcomes = store.entries.restore_rows([ExportRow(record) for record in records], options, preview)
    return [one for outcome in outcomes for one in outcome.renumbered]


def records(store: Store, *ids: str) -> Sequence[Record]:
    return store.retrieval.records(ids)


def exported(store: Store) -> list[ExportRow]:
    with store.entries.export_snapshot() as snapshot:
        return list(snapshot.rows)


@pytest.fixture
def filled(store: Store) -> Store:
    """Two memories with the native numbers 1 and 2."""
    store.entries.add([memory_of("one"), memory_of("two")], by="me")
    return store


def test_an_entry_has_no_number_in_a_program_before_it_is_shown_there(filled: Store) -> None:
    assert (filled.entries.by_number("a", 1), at(filled, 1), at(filled, 1, program="memorizer")) == ("one", None, None)
    assert filled.entries.numbers("mudpuppy", ["one", "two"]) == {}
    assert filled.entries.give_numbers("mudpuppy", records(filled, "two")) == {"two": 2}
    assert (at(filled, 1), at(filled, 2), at(filled, 2, program="memorizer")) == (None, "two", None)
    assert filled.entries.numbers("mudpuppy", ["one", "two"]) == {"two": 2}


def test_a_number_of_an_entry_stays_the_same(filled: Store, open_store: Open) -> None:
    first = filled.entries.give_numbers("mudpuppy", records(filled, "one", "two"))
    assert open_store().entries.give_numbers("mudpuppy", records(filled, "two", "one")) == first == {"one": 1, "two": 2}


def test_an_imported_number_names_its_record_in_that_program_alone(filled: Store) -> None:
    assert imported(filled, memory_of("theirs", number=1)) == []
    assert (at(filled, 1), at(filled, 1, program="memorizer"), filled.entries.by_number("a", 1)) == (
        "theirs",
        None,
        "one",
    )
    assert [one.number for one in records(filled, "theirs")] == [3]
    assert at(filled, 1, agent="b") is at(filled, 1, "contact", program="memorizer") is None


def test_an_entry_whose_native_number_is_taken_in_a_program_gets_a_new_one(filled: Store) -> None:
    imported(filled, memory_of("theirs", number=1), memory_of("last", number=40))
    assert filled.entries.give_numbers("mudpuppy", records(filled, "one", "two")) == {"one": 41, "two": 2}
    assert (at(filled, 1), at(filled, 41)) == ("theirs", "one")
    filled.entries.add([memory_of("next")], by="me")
    assert [one.number for one in records(filled, "next")] == [42]


def test_each_kind_counts_alone(store: Store) -> None:
    options = RestoreOptions("importer", "an import", program="memorizer")
    assert imported(store, memory_of("fact", number=3), contact("ana", 3), options=options) == []
    assert at(store, 3, program="memorizer") == "fact"
    assert at(store, 3, "contact", program="memorizer") == "ana"
    assert at(store, 3, "project", program="memorizer") is None


def test_a_program_without_numbers_for_a_kind_gives_none(store: Store) -> None:
    store.entries.add([contact("ana")], by="me")
    assert store.entries.give_numbers("mudpuppy", records(store, "ana")) == {}
    assert store.entries.give_numbers("openai", records(store, "ana")) == {}


def test_a_number_is_not_given_again_after_a_purge(filled: Store) -> None:
    imported(filled, memory_of("theirs", number=1))
    filled.entries.purge(["theirs"])
    assert at(filled, 1) is None
    assert filled.entries.give_numbers("mudpuppy", records(filled, "one")) == {"one": 4}
    assert imported(filled, memory_of("other", number=1)) == [Renumbered("memory", 1, 5, "mudpuppy")]
    imported(filled, memory_of("theirs", number=1))  # the same record again
    assert at(filled, 1) == "theirs"


def test_a_forgotten_entry_keeps_its_number(filled: Store) -> None:
    filled.entries.give_numbers("mudpuppy", records(filled, "one"))
    filled.entries.revise("one", lambda record: replace(record, retired_at=5), by="me", action="forget")
    assert at(filled, 1) == "one"


def test_a_row_that_is_merged_is_found_by_its_own_number_too(filled: Store) -> None:
    same = [replace(memory_of(id_, number=number), text="text of one") for id_, number in (("x", 7), ("y", 9))]
    assert imported(filled, *same) == []
    assert (at(filled, 7), at(filled, 9)) == ("one", "one")
    assert filled.entries.numbers("mudpuppy", ["one"]) == {"one": 7}
    assert filled.entries.give_numbers("mudpuppy", records(filled, "one")) == {"one": 7}


def test_a_taken_number_is_replaced_and_reported_with_its_kind(store: Store) -> None:
    imported(store, memory_of("one", number=7))
    above = replace(MUDPUPPY, above={"a": 8})
    assert imported(store, memory_of("two", number=7), memory_of("three", number=8), options=above) == [
        Renumbered("memory", 7, 9, "mudpuppy")  # its native number as well
    ]
    assert store.entries.numbers("mudpuppy", ["one", "two", "three"]) == {"one": 7, "two": 9, "three": 8}
    assert [at(store, number) for number in (7, 8, 9)] == ["one", "three", "two"]


@pytest.mark.parametrize("number", [0, -5, LAST_NUMBER + 1, 2**63, 2**80])
def test_a_number_out_of_range_is_replaced(store: Store, number: int) -> None:
    (renumbered,) = imported(store, memory_of("one", number=number))
    assert renumbered == Renumbered("memory", number, renumbered.new, "mudpuppy")
    assert (at(store, renumbered.new), at(store, number)) == ("one", None)


def test_a_preview_foresees_new_numbers_and_stores_none(store: Store) -> None:
    imported(store, memory_of("one", number=7))
    preview = ImportPreview()
    rows = [[memory_of("two", number=7)], [memory_of("two", number=7), memory_of("three", number=7)]]
    foreseen = [imported(store, *row, preview=preview) for row in rows]
    assert store.entries.numbers("mudpuppy", ["two", "three"]) == {}
    assert [imported(store, *row) for row in rows] == foreseen
    assert [one.kind for one in foreseen[0]] == ["memory"] and len(foreseen[1]) == 2


def test_an_export_has_the_numbers_and_restoring_it_keeps_them(filled: Store) -> None:
    imported(filled, replace(memory_of("x", number=7), text="text of one"), memory_of("theirs", number=1))
    filled.entries.give_numbers("memorizer", records(filled, "one"))
    rows = exported(filled)
    assert {row.record.id: dict(row.numbers) for row in rows} == {
        "one": {"memorizer": (1,), "mudpuppy": (7,)},
        "two": {},
        "theirs": {"mudpuppy": (1,)},
    }
    filled.entries.purge([row.record.id for row in rows])
    filled.entries.restore_rows(rows, RestoreOptions("copy"))
    assert exported(filled) == rows
    assert (at(filled, 7), at(filled, 1), at(filled, 1, program="memorizer")) == ("one", "theirs", "one")


def test_numbers_of_one_transaction_are_given_or_not(filled: Store) -> None:
    with pytest.raises(ValueError, match="no"), filled.entries.transaction():
        filled.entries.give_numbers("mudpuppy", records(filled, "one"))
        raise ValueError("no")
    assert (at(filled, 1), filled.entries.numbers("mudpuppy", ["one"])) == (None, {})


def test_a_principal_that_may_only_read_is_shown_numbers_of_what_it_sees(filled: Store) -> None:
    filled.entries.add([replace(memory_of("theirs"), agent="b")], by="me")
    reader = ScopedStore(filled, Principal("reader", "a", "read"))
    assert reader.entries.give_numbers("mudpuppy", records(filled, "one", "theirs")) == {"one": 1}
    filled.entries.give_numbers("mudpuppy", records(filled, "theirs"))
    assert reader.entries.numbers("mudpuppy", ["one", "theirs"]) == {"one": 1}
