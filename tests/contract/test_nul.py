"""The law of NUL: it is stored nowhere, and U+FFFD is stored in its place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from mindex.datatypes import Change, Collection, Record
from mindex.entries.new_memory import NewMemory
from mindex.memory import Memory
from mindex.store.base import Access, Store
from mindex.store.export_rows import Accesses, ExportRow, Link
from mindex.store.sync_rows import MergedChange, MergedRecord, SyncRow
from tests.contract.records import EVERYONE, found, memory_of, update

NUL = "a\0b"
SAME = "a\ufffdb"
NESTED: dict[str, Any] = {NUL: [NUL, {"deep": NUL, "n": 1}], "name": NUL}
NESTED_SAME = {SAME: [SAME, {"deep": SAME, "n": 1}], "name": SAME}
TEXTS = ("text", "title", "agent", "type", "summary", "context", "source")


def with_nul(id_: str, **more: Any) -> Record:
    texts = {name: f"{id_} {NUL}" for name in TEXTS if name not in ("agent", "type")}
    names: dict[str, Any] = {"tags": (NUL, "t"), "entities": ("e", NUL), "fields": NESTED}
    return replace(memory_of(id_), agent=NUL, type=NUL, **{**texts, **names, **more})


def without(id_: str, **more: Any) -> Record:
    texts = {name: f"{id_} {SAME}" for name in TEXTS if name not in ("agent", "type")}
    names: dict[str, Any] = {"tags": (SAME, "t"), "entities": ("e", SAME), "fields": NESTED_SAME}
    return replace(memory_of(id_), agent=SAME, type=SAME, **{**texts, **names, **more})


def same(record: Record | None, id_: str) -> bool:
    assert record is not None
    return record == without(id_, number=record.number, updated_at=record.updated_at)


def test_an_entry_is_added_without_nul(store: Store) -> None:
    store.entries.add([with_nul("one")], by=NUL, reason=NUL)
    assert same(store.retrieval.record("one"), "one")
    (change,) = store.entries.history("one")
    assert (change.by, change.reason, same(change.after, "one")) == (SAME, SAME, True)
    assert found(store, "b", filters=EVERYONE) == ["one"]
    assert store.retrieval.label_counts("tag", EVERYONE) == {SAME: 1, "t": 1}


def test_many_entries_are_added_without_nul_and_known_by_what_is_stored(store: Store) -> None:
    store.entries.add([with_nul(f"m{number}") for number in range(20)], by="me")
    assert all(same(store.retrieval.record(f"m{number}"), f"m{number}") for number in range(20))
    again = [with_nul(f"n{number}", text=f"m{number} {NUL}") for number in range(20)]
    assert [one.created for one in store.entries.add(again, by="me")] == [False] * 20
    (outcome,) = store.entries.add([without("other", text=f"m3 {SAME}")], by="me")
    assert (outcome.id, outcome.created) == ("m3", False)


def test_an_entry_is_revised_without_nul(store: Store) -> None:
    store.entries.add([memory_of("one")], by="me")
    change = store.entries.revise(
        "one", lambda record: replace(with_nul("one"), agent=record.agent), by=NUL, action="update", reason=NUL
    )
    assert change == store.entries.history("one")[-1]
    assert same(replace(change.after, agent=SAME), "one") and (change.by, change.reason) == (SAME, SAME)
    assert store.retrieval.record("one") == change.after


def test_the_rules_of_entries_store_no_nul(store: Store) -> None:
    entries = Memory(store=store, agent="me", options={"secrets.mode": "off", "embedding.provider": "none"}).entries
    added, _ = entries.insert(NewMemory(f"The gate {NUL}", agent="me", tags=(NUL,), entities=(NUL,), fields=NESTED))
    entries.modify(added.id, {"text": f"The door {NUL}", "tags": ["x\0"]}, f"because {NUL}")
    record = store.retrieval.record(added.id)
    assert record is not None and (record.text, record.tags) == (f"The door {SAME}", ("x\ufffd",))
    assert record.fields == NESTED_SAME
    assert store.entries.history(added.id)[-1].reason == f"because {SAME}"
    assert entries.insert(NewMemory(f"The door {SAME}", agent="me"))[0].id == added.id


def test_rows_are_restored_without_nul(store: Store) -> None:
    first, second = with_nul("one"), with_nul("two")
    older = replace(first, text=f"older {NUL}")
    history = (
        Change(0, "one", 1, NUL, "add", "", None, older),
        Change(0, "one", 2, NUL, "update", NUL, older, first, batch=NUL),
    )
    accesses = Accesses(1, 5, (Access("one", 5, "search", NUL),))
    rows = [ExportRow(first, history, (Link("two", "near", 0.5),), accesses=accesses), ExportRow(second)]
    from tests.contract.test_export import restored

    restored(store, rows)
    assert same(store.retrieval.record("one"), "one") and same(store.retrieval.record("two"), "two")
    old, new = store.entries.history("one")
    assert (old.by, old.after.text, new.reason, new.batch) == (SAME, f"older {SAME}", SAME, SAME)
    assert new.before is not None and same(new.after, "one") and new.before.text == f"older {SAME}"
    assert store.entries.logged_queries() == (SAME,)


def test_merged_records_are_stored_without_nul(store: Store) -> None:
    record = with_nul("one")
    change = Change(0, "one", 1, NUL, "add", NUL, None, record)
    store.sync.put([SyncRow("1.a", "one", "{}")])
    store.sync.put_merged([MergedRecord(record, (MergedChange("1.a", change, ""),))])
    assert same(store.retrieval.record("one"), "one")
    (stored,) = store.entries.history("one")
    assert (stored.by, stored.reason, same(stored.after, "one")) == (SAME, SAME, True)


def test_files_are_stored_without_nul(store: Store) -> None:
    store.files.put_collection(Collection("docs", "/docs", ("x\0",), NUL))
    changed = update("a.md", f"words {NUL}", title=NUL, tags=(NUL,), links=(NUL,), fields=(f"k: {NUL}",), domain=NUL)
    store.files.apply([changed])
    store.settle()
    (collection,) = store.files.collections()
    assert (collection.exclude, collection.context) == (("x\ufffd",), SAME)
    document = store.files.documents("docs")["a.md"]
    assert (document.title, document.tags, document.links, document.fields) == (SAME, (SAME,), (SAME,), (f"k: {SAME}",))
    (chunk,) = store.files.chunks(document.id)
    assert (chunk.text, chunk.tags, chunk.document_fields) == (f"words {SAME}", (SAME,), (f"k: {SAME}",))


def test_a_query_is_logged_without_nul(store: Store) -> None:
    store.entries.add([memory_of("one")], by="me")
    store.entries.log_access([Access("one", 3, "search", f"words {NUL}", 0.5)], oldest=0, rows=10)
    store.settle()
    assert store.entries.logged_queries() == (f"words {SAME}",)
