"""The laws of caches."""

from __future__ import annotations

from mindex.store.base import Store
from tests.contract.records import Open


def test_a_cached_value_is_there_for_the_next_process(open_store: Open, store: Store) -> None:
    store.caches.put("kind", "key", b"value")
    store.settle()
    assert open_store().caches.get("kind", "key") == b"value"
    assert store.caches.get("kind", "other") is None


def test_a_cached_value_is_there_at_once_and_gone_when_cleared(open_store: Open, store: Store) -> None:
    """The next page of a search is read before the background has written."""
    store.caches.put("kind", "key", b"value")
    store.caches.put("kind", "empty", b"")
    assert store.caches.get("kind", "key") == b"value"
    assert store.caches.get("kind", "empty") == b""
    assert store.caches.get_many("kind", ["key", "other", "empty"]) == {"key": b"value", "empty": b""}
    assert store.caches.get_many("another", ["key"]) == {}
    store.settle()
    assert open_store().caches.get_many("kind", ["key", "empty"]) == {"key": b"value", "empty": b""}
    store.caches.put("kind", "late", b"value")
    assert store.caches.clear(["kind"]) == {"kind": 3}
    assert store.caches.get("kind", "late") is None


def test_everything_that_is_cached_can_be_read_in_order(store: Store) -> None:
    assert list(store.caches.items()) == []
    store.caches.put("words", "b", b"two")
    store.caches.put("words", "a", b"one")
    store.caches.put_many("bytes", {"c": b"\xff"}, now=True)
    assert list(store.caches.items()) == [("bytes", "c", b"\xff"), ("words", "a", b"one"), ("words", "b", b"two")]


def test_many_values_are_cached_in_one_call_and_read_in_one(open_store: Open, store: Store) -> None:
    many = {f"key {number}": str(number).encode() for number in range(1200)}
    store.caches.put_many("kind", many, now=True)
    assert open_store().caches.get_many("kind", [*many, "unknown"]) == many
    assert store.caches.get_many("other", list(many)) == {}
    assert store.caches.get_many("kind", []) == {}


def test_a_value_is_known_by_how_its_key_begins(store: Store, open_store: Open) -> None:
    assert not store.caches.has_prefix("kind", "question")
    store.caches.put("kind", "question:text", b"1")
    assert store.caches.has_prefix("kind", "question")  # at once: pending writes also count
    store.settle()
    for one in (store, open_store()):
        assert one.caches.has_prefix("kind", "question")
        assert one.caches.has_prefix("kind", "question:text")
        assert not one.caches.has_prefix("kind", "question:texts")
        assert not one.caches.has_prefix("other", "question")
