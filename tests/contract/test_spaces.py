"""The laws of embedding spaces: one is active, one may be filled beside it, and a switch is one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from mindex.datatypes import Filters, Model, Record, RecordVectors
from mindex.datatypes.spaces import EmbedderSpec, Space
from mindex.errors import SpaceChangedError
from mindex.store.base import Store

OLD = Model("test", "old", 4)
NEW = Model("test", "new/er", 8, "cls", "ask: ", "text: ", 512, 0.4, 0.06)
THIRD = Model("test", "third", 4)
HERE = EmbedderSpec("test", "the new one", "http://127.0.0.1:1/v1")

Open = Callable[[], Store]


@pytest.fixture
def store(open_store: Open) -> Store:
    """Three records with their vectors in the old space."""
    store = open_store()
    add_memories(store, "a", "b", "c")
    embed(store, OLD, "a", "b", "c")
    return store


def add_memories(store: Store, *ids: str) -> None:
    store.entries.add([Record(id_, "memory", f"words of {id_}", agent="main", type="fact") for id_ in ids], by="test")


def one_hot(model: Model, position: int) -> np.ndarray:
    vector = np.zeros(model.dimensions, np.float32)
    vector[position % model.dimensions] = 1.0
    return vector


def embed(store: Store, model: Model, *ids: str, embedder_spec: EmbedderSpec | None = None) -> int:
    return store.vectors.put(model, [RecordVectors(id_, [one_hot(model, ord(id_[0]))]) for id_ in ids], embedder_spec)


def nearest(store: Store, model: Model, id_: str) -> str:
    return store.retrieval.nearest(model, one_hot(model, ord(id_[0])), Filters(), 1).hits[0].id


def names(spaces: Sequence[Space]) -> list[tuple[str, bool, bool, int]]:
    return [(space.model.name, space.active, space.next, space.vectors) for space in spaces]


def retire(store: Store, id_: str) -> None:
    store.entries.revise(id_, lambda record: replace(record, retired_at=1), by="test", action="forget")


def test_an_empty_store_has_no_active_space(open_store: Open) -> None:
    store = open_store()
    assert (store.vectors.active_space(), store.vectors.spaces()) == ("", ())


def test_the_first_vectors_make_their_space_the_active_one(store: Store) -> None:
    assert store.vectors.active_space() == OLD.fingerprint
    assert names(store.vectors.spaces()) == [("old", True, False, 3)]


def test_the_embedder_spec_is_stored_with_its_space(open_store: Open) -> None:
    store = open_store()
    add_memories(store, "a")
    embed(store, NEW, "a", embedder_spec=HERE)
    (space,) = open_store().vectors.spaces()
    assert (space.model, space.embedder_spec, space.fingerprint) == (NEW, HERE, NEW.fingerprint)


def test_a_space_without_an_embedder_spec_has_one_of_its_model(store: Store) -> None:
    (space,) = store.vectors.spaces()
    assert (space.model, space.embedder_spec) == (OLD, EmbedderSpec("test", "old"))


def test_a_space_that_is_being_filled_is_not_searched_before_the_switch(store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    assert embed(store, NEW, "a", "b") == 2
    assert names(store.vectors.spaces()) == [("old", True, False, 3), ("new/er", False, True, 2)]
    assert nearest(store, OLD, "b") == "b"
    with pytest.raises(SpaceChangedError, match="embedded with test/old now, not with test/new/er"):
        nearest(store, NEW, "b")


def test_no_switch_while_the_new_space_lacks_a_record(store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    embed(store, NEW, "a", "b")
    assert not store.vectors.switch_space(NEW)
    assert store.vectors.active_space() == OLD.fingerprint
    embed(store, NEW, "c")
    assert store.vectors.switch_space(NEW)
    assert store.vectors.active_space() == NEW.fingerprint
    assert names(store.vectors.spaces()) == [("new/er", True, False, 3), ("old", False, False, 3)]


def test_no_switch_before_an_entry_added_during_the_change_has_its_vector(open_store: Open, store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    embed(store, NEW, "a", "b", "c")
    elsewhere = open_store()
    add_memories(elsewhere, "d")
    embed(elsewhere, OLD, "d")
    assert not store.vectors.switch_space(NEW)
    embed(store, NEW, "d")
    assert store.vectors.switch_space(NEW)


def test_no_switch_before_an_entry_revised_during_the_change_has_its_vector(store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    embed(store, NEW, "a", "b", "c")
    store.entries.revise("b", lambda record: replace(record, text="other words"), by="test", action="update")
    assert (store.vectors.pending(OLD), store.vectors.pending(NEW)) == (1, 1)
    embed(store, OLD, "b")
    assert not store.vectors.switch_space(NEW)


def test_records_without_a_vector_in_the_old_space_do_not_delay_the_switch(store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    add_memories(store, "d")
    retire(store, "c")
    embed(store, NEW, "a", "b")
    assert store.vectors.switch_space(NEW)
    assert store.vectors.pending(NEW) == 1


def test_other_processes_notice_the_switch_with_their_next_search(open_store: Open, store: Store) -> None:
    reader = open_store()
    assert nearest(reader, OLD, "c") == "c"
    store.vectors.begin_space(NEW, HERE)
    embed(store, NEW, "a", "b", "c")
    assert nearest(reader, OLD, "c") == "c"
    assert store.vectors.switch_space(NEW)
    assert reader.vectors.active_space() == NEW.fingerprint
    with pytest.raises(SpaceChangedError):
        nearest(reader, OLD, "c")
    with pytest.raises(SpaceChangedError):
        embed(reader, OLD, "a")
    assert nearest(reader, NEW, "c") == "c"


def test_two_processes_that_switch_at_once_switch_once(open_store: Open, store: Store) -> None:
    other = open_store()
    for one in (store, other):
        one.vectors.begin_space(NEW, HERE)
        embed(one, NEW, "a", "b", "c")
    assert store.vectors.switch_space(NEW) and other.vectors.switch_space(NEW)
    assert names(store.vectors.spaces())[0] == ("new/er", True, False, 3)


def test_an_unused_space_is_dropped_with_its_vectors(store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    embed(store, NEW, "a", "b", "c")
    assert store.vectors.drop_unused_spaces() == 0
    store.vectors.switch_space(NEW)
    assert store.vectors.drop_unused_spaces() == 1
    assert names(store.vectors.spaces()) == [("new/er", True, False, 3)]
    assert all(check.ok for check in store.maintenance.check())


def test_a_space_whose_filling_was_abandoned_is_dropped(open_store: Open, store: Store) -> None:
    abandoned = open_store()
    abandoned.vectors.begin_space(THIRD, HERE)
    embed(abandoned, THIRD, "a", "b")
    store.vectors.begin_space(NEW, HERE)
    assert store.vectors.drop_unused_spaces() == 1
    with pytest.raises(SpaceChangedError):
        embed(abandoned, THIRD, "c")
    with pytest.raises(SpaceChangedError, match="ended the change to test/third"):
        abandoned.vectors.switch_space(THIRD)
    assert names(store.vectors.spaces()) == [("old", True, False, 3), ("new/er", False, True, 0)]


def test_beginning_the_active_space_ends_the_filling_of_another(store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    embed(store, NEW, "a")
    store.vectors.begin_space(OLD, EmbedderSpec("test", "old"))
    assert store.vectors.drop_unused_spaces() == 1
    assert names(store.vectors.spaces()) == [("old", True, False, 3)]


def test_filling_goes_on_where_it_was_interrupted(open_store: Open, store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    embed(store, NEW, "a", "b")
    later = open_store()
    later.vectors.begin_space(NEW, HERE)
    assert [record.id for record in later.vectors.pending_records(NEW, 10)] == ["c"]
    embed(later, NEW, "c")
    assert later.vectors.switch_space(NEW)


def test_a_switch_back_to_the_first_space_finds_the_same(store: Store) -> None:
    for model in (NEW, OLD, THIRD, OLD):
        store.vectors.begin_space(model, HERE)
        embed(store, model, "a", "b", "c")
        assert store.vectors.switch_space(model)
        store.vectors.drop_unused_spaces()
        assert [nearest(store, model, id_) for id_ in "abc"] == ["a", "b", "c"]
        assert names(store.vectors.spaces()) == [(model.name, True, False, 3)]


def test_a_store_without_vectors_switches_to_its_first_space(open_store: Open) -> None:
    store = open_store()
    add_memories(store, "a")
    store.vectors.begin_space(NEW, HERE)
    embed(store, NEW, "a")
    assert store.vectors.active_space() == ""
    assert store.vectors.switch_space(NEW)
    assert nearest(store, NEW, "a") == "a"


# ── canaries ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_canary_is_stored_with_its_space(open_store: Open, store: Store) -> None:
    assert store.vectors.canary(OLD) is None
    assert list(store.vectors.put_canary(OLD, one_hot(OLD, 1))) == [0, 1, 0, 0]
    assert list(store.vectors.put_canary(OLD, one_hot(OLD, 2))) == [0, 1, 0, 0]  # the first one stays
    kept = open_store().vectors.canary(OLD)
    assert kept is not None
    assert list(kept) == [0, 1, 0, 0]
    assert store.vectors.canary(THIRD) is None


def test_a_canary_of_a_space_without_vectors_is_replaced(open_store: Open) -> None:
    store = open_store()
    store.vectors.put_canary(OLD, one_hot(OLD, 1))
    assert list(store.vectors.put_canary(OLD, one_hot(OLD, 2))) == [0, 0, 1, 0]


def test_a_canary_is_dropped_with_its_space(store: Store) -> None:
    store.vectors.put_canary(OLD, one_hot(OLD, 1))
    store.vectors.begin_space(NEW, HERE)
    embed(store, NEW, "a", "b", "c")
    store.vectors.put_canary(NEW, one_hot(NEW, 3))
    store.vectors.switch_space(NEW)
    store.vectors.drop_unused_spaces()
    assert store.vectors.canary(OLD) is None
    assert store.vectors.canary(NEW) is not None


def test_another_edition_of_a_space_is_another_space(open_store: Open, store: Store) -> None:
    again = replace(OLD, edition=1)
    store.vectors.begin_space(again, HERE)
    assert store.vectors.pending(again) == 3
    embed(store, again, "a", "b", "c")
    assert store.vectors.switch_space(again)
    with pytest.raises(SpaceChangedError, match="embedded again with test/old during"):
        embed(open_store(), OLD, "a")
    store.vectors.drop_unused_spaces()
    (space,) = store.vectors.spaces()
    assert (space.model, space.name) == (again, "test/old")
    assert nearest(store, again, "b") == "b"


def test_embedded_records_are_the_first_that_have_vectors(store: Store) -> None:
    add_memories(store, "d")
    retire(store, "a")
    assert [record.id for record in store.vectors.embedded_records(OLD, 5)] == ["b", "c"]
    assert [record.id for record in store.vectors.embedded_records(OLD, 1)] == ["b"]
    assert store.vectors.embedded_records(NEW, 5) == ()


@pytest.mark.parametrize("packed", ["before", "after"])
def test_a_reader_of_the_old_space_searches_all_of_a_large_new_one(open_store: Open, store: Store, packed: str) -> None:
    count = 1_500
    vectors = np.random.default_rng(5).normal(size=(count, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    wide, wider = Model("test", "wide", 64), Model("test", "wider", 64)
    add_memories(store, *(f"r{number}" for number in range(count)))

    def fill(one: Store, model: Model, order: np.ndarray) -> None:
        one.vectors.begin_space(model, HERE)
        given = [RecordVectors(f"r{number}", vectors[order[number]][None, :]) for number in range(count)]
        one.vectors.put(model, given)
        one.vectors.put(model, [RecordVectors(id_, vectors[:1]) for id_ in "abc"])

    straight, turned = np.arange(count), np.arange(count)[::-1]
    fill(store, wide, straight)
    store.vectors.pack()
    assert store.vectors.switch_space(wide)
    store.vectors.drop_unused_spaces()
    readers = [open_store(), open_store()]
    for reader in readers:
        assert reader.retrieval.nearest(wide, vectors[7], Filters(), 3).hits[0].id == "r7"
    readers[1].retrieval.nearest(wide, vectors[7], Filters(), 3)  # holds the codes as well
    fill(store, wider, turned)
    if packed == "before":
        store.vectors.pack()
    for reader in readers:
        assert reader.retrieval.nearest(wide, vectors[9], Filters(), 3).hits[0].id == "r9"
    assert store.vectors.switch_space(wider)
    store.vectors.drop_unused_spaces()
    if packed == "after":
        store.vectors.pack()
    for reader in readers:
        for number in (1, 9, 750, 1_498):
            found = reader.retrieval.nearest(wider, vectors[number], Filters(), 3)
            assert (found.hits[0].id, found.size) == (f"r{count - 1 - number}", count + 3)


# ── another name for a space ──────────────────────────────────────────────────────────────────────────────────

RENAMED = replace(OLD, name="new", sha256="0" * 64)


def former_ids(store: Store, limit: int = 10) -> list[str]:
    return [record.id for record in store.vectors.former_records(limit)[0]]


def test_a_renamed_space_keeps_its_vectors_and_its_canary(store: Store) -> None:
    store.vectors.put_canary(OLD, one_hot(OLD, 2))
    assert store.vectors.rename_space(OLD, RENAMED, HERE)
    assert names(store.vectors.spaces()) == [("new", True, False, 3)]
    assert store.vectors.spaces()[0].embedder_spec == HERE
    assert nearest(store, RENAMED, "b") == "b"
    canary = store.vectors.canary(RENAMED)
    assert canary is not None
    assert canary.tolist() == one_hot(OLD, 2).tolist()
    assert store.vectors.canary(OLD) is None
    assert (store.vectors.count_former(), former_ids(store)) == (0, [])


def test_a_model_whose_space_was_renamed_neither_stores_nor_searches(store: Store) -> None:
    nearest(store, OLD, "a")
    store.vectors.rename_space(OLD, RENAMED, HERE, mixed=True)
    with pytest.raises(SpaceChangedError):
        embed(store, OLD, "a")
    with pytest.raises(SpaceChangedError):
        nearest(store, OLD, "a")


def test_former_vectors_are_passed_in_the_order_of_their_records_and_new_records_are_none(store: Store) -> None:
    assert store.vectors.rename_space(OLD, RENAMED, HERE, one_hot(OLD, 1), mixed=True)
    add_memories(store, "d")
    assert embed(store, RENAMED, "d") == 1
    assert (store.vectors.count_former(), former_ids(store)) == (3, ["a", "b", "c"])
    records, position = store.vectors.former_records(2)
    assert [record.id for record in records] == ["a", "b"]
    assert former_ids(store) == ["a", "b", "c"]  # a run that stops here begins with them again
    store.vectors.pass_former(position)
    assert (store.vectors.count_former(), former_ids(store)) == (1, ["c"])
    store.vectors.pass_former(0)  # by a slower process
    assert former_ids(store) == ["c"]
    store.vectors.pass_former(store.vectors.former_records(2)[1])
    assert (store.vectors.count_former(), former_ids(store)) == (0, [])
    assert (nearest(store, RENAMED, "a"), store.vectors.pending(RENAMED)) == ("a", 0)


def test_a_forgotten_record_has_no_former_vector(store: Store) -> None:
    store.vectors.rename_space(OLD, RENAMED, HERE, mixed=True)
    retire(store, "b")
    assert (store.vectors.count_former(), former_ids(store)) == (2, ["a", "c"])


def test_a_space_is_not_renamed_over_another_one_or_while_it_is_replaced(store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    assert not store.vectors.rename_space(OLD, RENAMED, HERE, mixed=True)
    assert not store.vectors.rename_space(OLD, NEW, HERE)
    assert not store.vectors.rename_space(THIRD, RENAMED, HERE)
    assert [space.model.name for space in store.vectors.spaces()] == ["old", "new/er"]


def test_after_a_change_of_model_no_vector_is_a_former_one(store: Store) -> None:
    store.vectors.rename_space(OLD, RENAMED, HERE, mixed=True)
    store.vectors.begin_space(NEW, HERE)
    embed(store, NEW, "a", "b", "c")
    assert store.vectors.switch_space(NEW)
    assert (store.vectors.count_former(), former_ids(store)) == (0, [])
