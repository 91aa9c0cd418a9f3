"""The laws of maintenance, and what a store says of itself."""

from __future__ import annotations

from dataclasses import replace

import pytest

from mindex.datatypes import Progress, RecordVectors
from mindex.errors import UnsupportedError
from mindex.store.base import GROUPS, CollectionCount, Store
from tests.contract.records import MODEL, axis, found, memory_of, nearest, update


def test_a_sound_store_passes_its_checks_before_and_after_optimizing(store: Store) -> None:
    store.files.apply([update("a.md", "apple", "pear")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)])])
    assert all(check.ok for check in store.maintenance.check())
    store.maintenance.optimize()
    assert all(check.ok for check in store.maintenance.check())
    assert found(store, "apple") == ["idamd1"]
    assert nearest(store, axis(0)) == ["idamd1"]
    status = store.maintenance.status()
    assert status.records == {"chunk": 2}
    assert (status.collections["docs"].documents, status.collections["docs"].chunks) == (1, 2)
    assert status.size_bytes is None or status.size_bytes > 0  # None: the engine cannot tell


def test_a_deep_check_reads_all_and_finds_nothing_wrong_in_a_sound_store(store: Store) -> None:
    store.files.apply([update("a.md", "apple", "pear")])
    store.entries.add([memory_of("m"), memory_of("n")], by="me")
    store.entries.revise("m", lambda record: replace(record, text="peach"), by="me", action="update")
    store.entries.revise("n", lambda record: replace(record, retired_at=5), by="me", action="forget")
    store.entries.link([("m", "n", "similar", 0.5)])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)]), RecordVectors("m", [axis(1)])])
    steps: list[Progress] = []
    checks = store.maintenance.check_deep(steps.append)
    assert [check for check in checks if not check.ok] == []
    assert not steps or steps[-1].done == steps[-1].total
    assert store.maintenance.damaged() == ()


def test_the_status_counts_live_records_documents_and_chunks(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two"), update("b.md", "three")])
    store.entries.add([memory_of("m")], by="me")
    status = store.maintenance.status()
    assert dict(status.records) == {"chunk": 3, "memory": 1}
    assert dict(status.collections) == {"docs": CollectionCount(2, 3)}
    assert status.location


def test_a_group_that_is_not_served_says_so_when_it_is_reached(store: Store) -> None:
    assert store.capabilities <= GROUPS
    for group in GROUPS - store.capabilities:
        with pytest.raises(UnsupportedError, match=group):
            getattr(store, group)
