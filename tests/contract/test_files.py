"""The laws of files: collections, documents and their chunks."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.datatypes import Collection, Document, Record
from mindex.errors import CollectionError
from mindex.store.base import ChunkCounts, DocumentUpdate, Store
from mindex.store.rules.filters import glob_matches
from tests.contract.records import found, update


def test_a_stored_chunk_is_read_back_unchanged(store: Store) -> None:
    change = update(
        "a.md", "one `x`", domain="caching", instruction=True, tags=("Redis", "東京"), fields=("due: May", "aliases: ß")
    )
    store.files.apply([change])
    (record,) = store.retrieval.records(["idamd1"])
    assert change.records is not None
    assert record == change.records[0]
    assert store.files.documents("docs") == {"a.md": change.document}


def test_applying_the_same_document_again_keeps_every_chunk(store: Store) -> None:
    assert store.files.apply([update("a.md", "one", "two")]).added == 2
    again = store.files.apply([update("a.md", "one", "two")])
    assert (again.added, again.kept, again.removed) == (0, 2, 0)


def test_an_update_without_chunks_keeps_those_that_are_stored(store: Store) -> None:
    change = update("a.md", "apple")
    store.files.apply([change])
    store.files.apply([DocumentUpdate(change.document, None)])
    assert found(store, "apple") == ["idamd1"]


def test_a_moved_document_is_found_by_its_new_path(store: Store) -> None:
    store.files.apply([update("old.md", "apple")])
    moved = update("old.md", "apple")
    document = Document("docold.md", "docs", "harbour/new.md", "fp", 1, 1, domain="harbour")
    assert moved.records is not None
    records = tuple(Record(**{**_values(r), "path": "harbour/new.md", "domain": "harbour"}) for r in moved.records)
    assert store.files.apply([DocumentUpdate(document, records)]).kept == 1
    assert found(store, "harbour") == ["idoldmd1"]
    assert store.retrieval.records(["idoldmd1"])[0].path == "harbour/new.md"


def test_every_chunk_is_found_by_the_fields_of_its_document(store: Store) -> None:
    store.files.apply([update("a.md", "apple", "pear", fields=("status: done", "aliases: orchard"))])
    assert found(store, "orchard") == found(store, "status") == ["idamd1", "idamd2"]
    assert store.files.apply([update("a.md", "apple", "pear", fields=("aliases: garden",))]).kept == 2
    assert found(store, "orchard") == found(store, "aliases") == []
    assert found(store, "garden") == ["idamd1", "idamd2"]
    assert store.retrieval.records(["idamd1"])[0].document_fields == ("aliases: garden",)


def _values(record: Record) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__slots__}


def test_removing_a_collection_removes_its_documents_and_chunks(store: Store) -> None:
    store.files.apply([update("a.md", "apple", "pear")])
    assert store.files.remove_collection("docs") == 2
    assert store.files.collections() == ()
    assert found(store, "apple") == []


def test_documents_are_found_by_path_end_of_path_and_glob(store: Store) -> None:
    store.files.apply([update("guide/setup.md", "x"), update("other/setup.md", "y"), update("zz.md", "z")])
    assert [d.path for d in store.files.find_documents("zz.md")] == ["zz.md"]
    assert [d.path for d in store.files.find_documents("docs/zz.md")] == ["zz.md"]
    assert [d.path for d in store.files.find_documents("setup.md")] == ["guide/setup.md", "other/setup.md"]
    assert [d.path for d in store.files.find_documents("guide/*")] == ["guide/setup.md"]
    assert store.files.find_documents("etup.md") == ()


def test_a_chunk_that_stays_keeps_its_context(store: Store) -> None:
    store.files.put_collection(Collection("other", "/other"))
    store.files.apply([update("a.md", "apple"), update("b.md", "pear"), update("c.md", "plum", collection="other")])
    assert store.files.uncontextualized(["docs"]) == ("idamd1", "idbmd1")
    store.files.set_contexts([("idamd1", "of orchards")])
    store.files.apply([update("a.md", "apple", "grape", domain="fruit", tags=("Red",))])
    assert found(store, "orchards") == ["idamd1"]
    assert store.files.uncontextualized(["docs", "other"]) == ("idamd2", "idbmd1", "idcmd1")
    assert store.files.uncontextualized([]) == ()


def test_a_collection_is_updated_under_its_name_and_root(store: Store) -> None:
    described = Collection("docs", "/docs", ("*.tmp",), "Notes of the harbour", 7)
    store.files.put_collection(described)
    store.files.put_collection(Collection("a", "/a"))
    assert store.files.collections() == (Collection("a", "/a"), described)


@pytest.mark.parametrize("other", [Collection("docs", "/elsewhere"), Collection("other", "/docs")])
def test_a_name_or_root_of_another_collection_is_refused(store: Store, other: Collection) -> None:
    with pytest.raises(CollectionError):
        store.files.put_collection(other)
    assert store.files.collections() == (Collection("docs", "/docs"),)


def test_the_chunks_of_a_document_come_in_order(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two", "three"), update("b.md", "four")])
    assert [chunk.text for chunk in store.files.chunks("doca.md")] == ["one", "two", "three"]
    assert store.files.chunks("nowhere") == ()


def test_an_update_moves_chunks_to_their_new_places(store: Store) -> None:
    first = update("a.md", "one", "two", "three")
    store.files.apply([first])
    assert first.records is not None
    one, _, three = first.records
    counts = store.files.apply([DocumentUpdate(first.document, (three, one))])
    assert counts == ChunkCounts(added=0, kept=2, removed=1)
    assert [chunk.id for chunk in store.files.chunks("doca.md")] == [three.id, one.id]
    assert found(store, "two") == []


def test_a_document_takes_the_place_of_another_one_with_its_path(store: Store) -> None:
    store.files.apply([update("a.md", "apple")])
    newer = Document("newer", "docs", "a.md", "fp", 1, 1)
    chunk = Record("chunk", "chunk", "pear", document="newer", collection="docs", path="a.md")
    store.files.apply([DocumentUpdate(newer, (chunk,))])
    assert [document.id for document in store.files.documents("docs").values()] == ["newer"]
    assert (found(store, "apple"), found(store, "pear")) == ([], ["chunk"])


def test_removed_documents_go_before_new_ones_come(store: Store) -> None:
    store.files.apply([update("a.md", "apple", "pear")])
    counts = store.files.apply([update("b.md", "plum")], removed=["doca.md", "nowhere"])
    assert counts == ChunkCounts(added=1, kept=0, removed=2)
    assert list(store.files.documents("docs")) == ["b.md"]


def test_the_domains_are_those_of_all_documents(store: Store) -> None:
    store.files.apply(
        [update("a.md", "x", domain="caching"), update("b.md", "y", domain="caching"), update("c.md", "z")]
    )
    assert store.files.domains() == {"caching", "root"}


def test_a_chunk_has_no_context_until_one_is_set(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two"), update("b.md", "three")])
    assert store.files.uncontextualized(["docs", "unknown"]) == ("idamd1", "idamd2", "idbmd1")
    assert store.files.set_contexts([("idamd2", "About harbours"), ("nowhere", "x"), ("idamd2", "About harbours")]) == 1
    assert store.files.uncontextualized(["docs"]) == ("idamd1", "idbmd1")
    assert store.files.uncontextualized([]) == ()


def test_dropped_contexts_are_found_no_more(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two")])
    store.files.set_contexts([("idamd1", "harbour"), ("idamd2", "harbour")])
    assert len(found(store, "harbour")) == 2
    assert store.files.drop_contexts(["docs"]) == 2
    assert (found(store, "harbour"), store.files.drop_contexts(["docs"])) == ([], 0)
    assert len(store.files.uncontextualized(["docs"])) == 2


# ── how paths match ───────────────────────────────────────────────────────────────────────────────────────────

PATHS = ("a.md", "A.md", "guide/a.md", "guide/deep/b.md", "größe/東京.md", "x[1].md", "x1.md", "a-b.md", "a]b.md")


@pytest.mark.parametrize(
    "pattern",
    ["*.md", "?.md", "guide/*", "*/b.md", "[ab].md", "[^a].md", "[a-z].md", "x[[]1].md", "x[1].md", "*東*", "gr??e/*",
     "a[]-]b.md", "[z-a].md", "[^z-a].md", "[a.md", "**/b.md", "*"],
)  # fmt: skip
def test_a_glob_matches_as_the_law_says(store: Store, pattern: str) -> None:
    store.files.apply([update(path, "text") for path in PATHS])
    expected = [path for path in sorted(PATHS) if path == pattern] or [
        path for path in sorted(PATHS) if glob_matches(pattern, path) or glob_matches(pattern, f"docs/{path}")
    ]
    assert [document.path for document in store.files.find_documents(pattern)] == expected


def test_a_path_matches_with_its_case(store: Store) -> None:
    store.files.apply([update(path, "text") for path in PATHS])
    assert [document.path for document in store.files.find_documents("A.md")] == ["A.md"]
    assert store.files.find_documents("GUIDE/a.md") == ()


@given(st.text("ab[]^-*?/ä", max_size=8), st.text("ab[]^-/ä", max_size=6))
def test_a_pattern_of_the_law_never_fails(pattern: str, text: str) -> None:
    assert glob_matches(pattern, text) in (True, False)
    assert glob_matches("*", text)


def test_the_fields_of_a_chunk_are_stored_and_follow_an_update(store: Store) -> None:
    first = update("a.md", "some text")
    (plain,) = first.records or ()

    def apply(fields: dict[str, object]) -> Record | None:
        store.files.apply([replace(first, records=(replace(plain, fields=fields),))])
        return store.retrieval.record(plain.id)

    assert apply({"chunk_index": 3}) == replace(plain, fields={"chunk_index": 3})
    assert apply({"chunk_index": 4}) == replace(plain, fields={"chunk_index": 4})
    assert apply({}) == plain
