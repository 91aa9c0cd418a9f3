"""The laws of embedding spaces: one is searched, one may be filled beside it, and they change places in one step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from mindex.errors import SpaceChangedError
from mindex.model import Filters, Model, Record, RecordVectors
from mindex.model.spaces import EmbedderSpec, Space
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
    tell(store, "a", "b", "c")
    give(store, OLD, "a", "b", "c")
    return store


def tell(store: Store, *ids: str) -> None:
    store.entries.add([Record(id_, "memory", f"words of {id_}", agent="main", type="fact") for id_ in ids], by="test")


def one_hot(model: Model, position: int) -> np.ndarray:
    vector = np.zeros(model.dimensions, np.float32)
    vector[position % model.dimensions] = 1.0
    return vector


def give(store: Store, model: Model, *ids: str, embedder_spec: EmbedderSpec | None = None) -> int:
    return store.vectors.put(model, [RecordVectors(id_, [one_hot(model, ord(id_[0]))]) for id_ in ids], embedder_spec)


def nearest(store: Store, model: Model, id_: str) -> str:
    return store.retrieval.nearest(model, one_hot(model, ord(id_[0])), Filters(), 1).hits[0].id


def names(spaces: Sequence[Space]) -> list[tuple[str, bool, bool, int]]:
    return [(space.model.name, space.active, space.next, space.vectors) for space in spaces]


def retire(store: Store, id_: str) -> None:
    store.entries.revise(id_, lambda record: replace(record, retired_at=1), by="test", action="forget")


def test_an_empty_store_searches_no_space(open_store: Open) -> None:
    store = open_store()
    assert (store.vectors.active_space(), store.vectors.spaces()) == ("", ())


def test_the_first_vectors_make_their_space_the_searched_one(store: Store) -> None:
    assert store.vectors.active_space() == OLD.fingerprint
    assert names(store.vectors.spaces()) == [("old", True, False, 3)]


def test_how_an_embedder_is_made_again_is_written_with_its_space(open_store: Open) -> None:
    store = open_store()
    tell(store, "a")
    give(store, NEW, "a", embedder_spec=HERE)
    (space,) = open_store().vectors.spaces()
    assert (space.model, space.embedder_spec, space.fingerprint) == (NEW, HERE, NEW.fingerprint)


def test_a_space_nobody_described_is_known_by_its_own_name(store: Store) -> None:
    (space,) = store.vectors.spaces()
    assert (space.model, space.embedder_spec) == (OLD, EmbedderSpec("test", "old"))


def test_a_space_that_is_filled_serves_nobody_until_they_change_places(store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    assert give(store, NEW, "a", "b") == 2
    assert names(store.vectors.spaces()) == [("old", True, False, 3), ("new/er", False, True, 2)]
    assert nearest(store, OLD, "b") == "b"
    with pytest.raises(SpaceChangedError, match="embedded with test/old now, not with test/new/er"):
        nearest(store, NEW, "b")


def test_they_do_not_change_places_while_a_record_is_missing(store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    give(store, NEW, "a", "b")
    assert not store.vectors.switch_space(NEW)
    assert store.vectors.active_space() == OLD.fingerprint
    give(store, NEW, "c")
    assert store.vectors.switch_space(NEW)
    assert store.vectors.active_space() == NEW.fingerprint
    assert names(store.vectors.spaces()) == [("new/er", True, False, 3), ("old", False, False, 3)]


def test_what_is_told_meanwhile_is_waited_for(open_store: Open, store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    give(store, NEW, "a", "b", "c")
    elsewhere = open_store()
    tell(elsewhere, "d")
    give(elsewhere, OLD, "d")
    assert not store.vectors.switch_space(NEW)
    give(store, NEW, "d")
    assert store.vectors.switch_space(NEW)


def test_what_changes_meanwhile_is_waited_for(store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    give(store, NEW, "a", "b", "c")
    store.entries.revise("b", lambda record: replace(record, text="other words"), by="test", action="update")
    assert (store.vectors.pending(OLD), store.vectors.pending(NEW)) == (1, 1)
    give(store, OLD, "b")
    assert not store.vectors.switch_space(NEW)


def test_what_waits_for_its_first_vector_or_is_forgotten_keeps_nobody_waiting(store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    tell(store, "d")
    retire(store, "c")
    give(store, NEW, "a", "b")
    assert store.vectors.switch_space(NEW)
    assert store.vectors.pending(NEW) == 1


def test_other_processes_meet_the_change_with_their_next_question(open_store: Open, store: Store) -> None:
    reader = open_store()
    assert nearest(reader, OLD, "c") == "c"
    store.vectors.begin_space(NEW, HERE)
    give(store, NEW, "a", "b", "c")
    assert nearest(reader, OLD, "c") == "c"
    assert store.vectors.switch_space(NEW)
    assert reader.vectors.active_space() == NEW.fingerprint
    with pytest.raises(SpaceChangedError):
        nearest(reader, OLD, "c")
    with pytest.raises(SpaceChangedError):
        give(reader, OLD, "a")
    assert nearest(reader, NEW, "c") == "c"


def test_a_change_by_two_processes_at_once_is_one_change(open_store: Open, store: Store) -> None:
    other = open_store()
    for one in (store, other):
        one.vectors.begin_space(NEW, HERE)
        give(one, NEW, "a", "b", "c")
    assert store.vectors.switch_space(NEW) and other.vectors.switch_space(NEW)
    assert names(store.vectors.spaces())[0] == ("new/er", True, False, 3)


def test_the_old_vectors_go_and_the_space_with_them(store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    give(store, NEW, "a", "b", "c")
    assert store.vectors.drop_unused_spaces() == 0
    store.vectors.switch_space(NEW)
    assert store.vectors.drop_unused_spaces() == 1
    assert names(store.vectors.spaces()) == [("new/er", True, False, 3)]
    assert all(check.ok for check in store.maintenance.check())


def test_an_abandoned_change_leaves_nothing_behind(open_store: Open, store: Store) -> None:
    abandoned = open_store()
    abandoned.vectors.begin_space(THIRD, HERE)
    give(abandoned, THIRD, "a", "b")
    store.vectors.begin_space(NEW, HERE)
    assert store.vectors.drop_unused_spaces() == 1
    with pytest.raises(SpaceChangedError):
        give(abandoned, THIRD, "c")
    with pytest.raises(SpaceChangedError, match="ended the change to test/third"):
        abandoned.vectors.switch_space(THIRD)
    assert names(store.vectors.spaces()) == [("old", True, False, 3), ("new/er", False, True, 0)]


def test_a_change_to_what_is_searched_already_ends_the_one_under_way(store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    give(store, NEW, "a")
    store.vectors.begin_space(OLD, EmbedderSpec("test", "old"))
    assert store.vectors.drop_unused_spaces() == 1
    assert names(store.vectors.spaces()) == [("old", True, False, 3)]


def test_a_change_goes_on_where_it_was_left(open_store: Open, store: Store) -> None:
    store.vectors.begin_space(NEW, HERE)
    give(store, NEW, "a", "b")
    later = open_store()
    later.vectors.begin_space(NEW, HERE)
    assert [record.id for record in later.vectors.pending_records(NEW, 10)] == ["c"]
    give(later, NEW, "c")
    assert later.vectors.switch_space(NEW)


def test_there_and_back_again_gives_the_first_answers(store: Store) -> None:
    for model in (NEW, OLD, THIRD, OLD):
        store.vectors.begin_space(model, HERE)
        give(store, model, "a", "b", "c")
        assert store.vectors.switch_space(model)
        store.vectors.drop_unused_spaces()
        assert [nearest(store, model, id_) for id_ in "abc"] == ["a", "b", "c"]
        assert names(store.vectors.spaces()) == [(model.name, True, False, 3)]


def test_a_store_without_vectors_takes_its_first_space_by_a_change_as_well(open_store: Open) -> None:
    store = open_store()
    tell(store, "a")
    store.vectors.begin_space(NEW, HERE)
    give(store, NEW, "a")
    assert store.vectors.active_space() == ""
    assert store.vectors.switch_space(NEW)
    assert nearest(store, NEW, "a") == "a"


# ── canaries ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_what_a_model_made_of_the_fixed_sentence_is_kept_with_its_space(open_store: Open, store: Store) -> None:
    assert store.vectors.canary(OLD) is None
    assert list(store.vectors.put_canary(OLD, one_hot(OLD, 1))) == [0, 1, 0, 0]
    assert list(store.vectors.put_canary(OLD, one_hot(OLD, 2))) == [0, 1, 0, 0]  # the first one stays
    kept = open_store().vectors.canary(OLD)
    assert kept is not None
    assert list(kept) == [0, 1, 0, 0]
    assert store.vectors.canary(THIRD) is None


def test_a_canary_of_a_space_without_vectors_gives_way(open_store: Open) -> None:
    store = open_store()
    store.vectors.put_canary(OLD, one_hot(OLD, 1))
    assert list(store.vectors.put_canary(OLD, one_hot(OLD, 2))) == [0, 0, 1, 0]


def test_a_canary_goes_with_its_space(store: Store) -> None:
    store.vectors.put_canary(OLD, one_hot(OLD, 1))
    store.vectors.begin_space(NEW, HERE)
    give(store, NEW, "a", "b", "c")
    store.vectors.put_canary(NEW, one_hot(NEW, 3))
    store.vectors.switch_space(NEW)
    store.vectors.drop_unused_spaces()
    assert store.vectors.canary(OLD) is None
    assert store.vectors.canary(NEW) is not None


def test_another_edition_of_a_space_is_another_space(open_store: Open, store: Store) -> None:
    again = replace(OLD, edition=1)
    store.vectors.begin_space(again, HERE)
    assert store.vectors.pending(again) == 3
    give(store, again, "a", "b", "c")
    assert store.vectors.switch_space(again)
    with pytest.raises(SpaceChangedError, match="embedded anew with test/old meanwhile"):
        give(open_store(), OLD, "a")
    store.vectors.drop_unused_spaces()
    (space,) = store.vectors.spaces()
    assert (space.model, space.name) == (again, "test/old")
    assert nearest(store, again, "b") == "b"


def test_a_few_records_that_have_their_vectors(store: Store) -> None:
    tell(store, "d")
    retire(store, "a")
    assert [record.id for record in store.vectors.embedded_records(OLD, 5)] == ["b", "c"]
    assert [record.id for record in store.vectors.embedded_records(OLD, 1)] == ["b"]
    assert store.vectors.embedded_records(NEW, 5) == ()


@pytest.mark.parametrize("packed", ["before", "after"])
def test_a_large_space_is_searched_whole_by_whoever_was_there_before(
    open_store: Open, store: Store, packed: str
) -> None:
    count = 1_500
    vectors = np.random.default_rng(5).normal(size=(count, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    wide, wider = Model("test", "wide", 64), Model("test", "wider", 64)
    tell(store, *(f"r{number}" for number in range(count)))

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
