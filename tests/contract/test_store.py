"""The laws of a store. Written against the door: a further engine is one more parameter of the fixture."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mindex.errors import EmbeddingError, NotFoundError, SpaceChangedError
from mindex.ids import embedded_text_hash, short_hash
from mindex.model import (
    AllOf,
    AnyOf,
    Change,
    Collection,
    Document,
    Filters,
    KeywordNode,
    Model,
    Phrase,
    Prefix,
    Record,
    RecordVectors,
    Term,
    Without,
)
from mindex.search.query import parse
from mindex.store.base import DocumentUpdate, KeywordQuery, RetryPolicy, Store

MODEL = Model("test", "axes", 64)
OTHER_MODEL = Model("test", "other axes", 64)
WIDE = Model("test", "topics", 384)
EVERYTHING = Filters()
EVERYONE = Filters(agent="*")

Open = Callable[[], Store]


@pytest.fixture
def store(open_store: Open) -> Store:
    store = open_store()
    store.files.put_collection(Collection("docs", "/docs"))
    return store


def update(path: str, *texts: str, collection: str = "docs", **document: object) -> DocumentUpdate:
    embedder_spec = Document(f"doc{path}", collection, path, "fp", 1, 1, **document)  # type: ignore[arg-type]
    records = tuple(
        Record(
            id=f"id{path}{number}".replace(".", "").replace("/", ""),
            kind="chunk",
            text=text,
            title=f"Page {path}",
            document=embedder_spec.id,
            collection=collection,
            path=path,
            first_line=number,
            last_line=number,
            created_at=1_000 + number,
            domain=embedder_spec.domain,
            instruction=embedder_spec.instruction,
            tags=embedder_spec.tags,
        )
        for number, text in enumerate(texts, start=1)
    )
    return DocumentUpdate(embedder_spec, records)


def axis(number: int, lean: float = 0.0) -> list[float]:
    vector = np.zeros(64, np.float32)
    vector[number] = 1.0
    vector[(number + 1) % 64] = lean
    return list(map(float, vector / np.linalg.norm(vector)))


def found(store: Store, query: str, filters: Filters = EVERYTHING, limit: int = 10) -> list[str]:
    node = parse(query).node
    assert node is not None
    return [hit.id for hit in store.retrieval.keyword(KeywordQuery(node), filters, limit).hits]


def nearest(store: Store, vector: list[float], filters: Filters = EVERYTHING, limit: int = 10) -> list[str]:
    return [hit.id for hit in store.retrieval.nearest(MODEL, np.asarray(vector, np.float32), filters, limit).hits]


# ── records and documents ─────────────────────────────────────────────────────────────────────────────────────


def test_what_was_stored_comes_back_whole(store: Store) -> None:
    change = update("a.md", "one `x`", domain="caching", instruction=True, tags=("Redis", "東京"))
    store.files.apply([change])
    (record,) = store.retrieval.records(["idamd1"])
    assert change.records is not None
    assert record == change.records[0]
    assert store.files.documents("docs") == {"a.md": change.document}


def test_records_come_in_the_order_asked_for_without_the_missing(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two", "three")])
    assert [record.id for record in store.retrieval.records(["idamd3", "nowhere", "idamd1"])] == ["idamd3", "idamd1"]


def test_applying_the_same_document_again_keeps_every_chunk(store: Store) -> None:
    assert store.files.apply([update("a.md", "one", "two")]).added == 2
    again = store.files.apply([update("a.md", "one", "two")])
    assert (again.added, again.kept, again.removed) == (0, 2, 0)


def test_a_chunk_that_is_gone_leaves_words_and_vectors_behind_at_once(store: Store) -> None:
    store.files.apply([update("a.md", "apple", "pear")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)]), RecordVectors("idamd2", [axis(1)])])
    assert nearest(store, axis(1)) == ["idamd2", "idamd1"]
    store.files.apply([update("a.md", "apple")])
    assert found(store, "pear") == []
    assert nearest(store, axis(1)) == ["idamd1"]
    assert store.vectors.pending(MODEL) == 0


def test_a_touched_document_keeps_its_chunks(store: Store) -> None:
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


def _values(record: Record) -> dict[str, object]:
    return {name: getattr(record, name) for name in record.__slots__}


def test_removing_a_collection_removes_all_it_held(store: Store) -> None:
    store.files.apply([update("a.md", "apple", "pear")])
    assert store.files.remove_collection("docs") == 2
    assert store.files.collections() == ()
    assert found(store, "apple") == []


def test_short_ids_resolve_to_what_starts_with_them(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two"), update("b.md", "three")])
    assert store.retrieval.resolve("ida") == ("idamd1", "idamd2")
    assert store.retrieval.resolve("zzz") == ()


def test_documents_are_found_by_path_end_of_path_and_glob(store: Store) -> None:
    store.files.apply([update("guide/setup.md", "x"), update("other/setup.md", "y"), update("zz.md", "z")])
    assert [d.path for d in store.files.find_documents("zz.md")] == ["zz.md"]
    assert [d.path for d in store.files.find_documents("docs/zz.md")] == ["zz.md"]
    assert [d.path for d in store.files.find_documents("setup.md")] == ["guide/setup.md", "other/setup.md"]
    assert [d.path for d in store.files.find_documents("guide/*")] == ["guide/setup.md"]
    assert store.files.find_documents("etup.md") == ()


def test_list_pages_through_what_is_in_scope_newest_first(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two", "three")])
    page = store.retrieval.list(EVERYTHING, limit=2)
    assert ([record.id for record in page.records], page.total) == (["idamd3", "idamd2"], 3)
    assert [record.id for record in store.retrieval.list(EVERYTHING, limit=2, offset=2).records] == ["idamd1"]


# ── keyword ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_keyword_scores_are_positive_and_best_first(store: Store) -> None:
    store.files.apply([update("a.md", "apple apple pear", "apple", "plum", "fig", "date")])
    hits = store.retrieval.keyword(KeywordQuery(AnyOf((Term("appl"), Term("pear")))), EVERYTHING, 10).hits
    assert [hit.id for hit in hits] == ["idamd1", "idamd2"]
    assert hits[0].score > hits[1].score > 0


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (Term("appl"), {"1", "2"}),
        (Prefix("app"), {"1", "2", "3"}),
        (Phrase(("red", "appl")), {"1"}),
        (AllOf((Term("appl"), Term("red"))), {"1", "2"}),
        (AnyOf((Term("pear"), Term("applianc"))), {"3", "4"}),
        (Without(Term("appl"), Phrase(("red", "appl"))), {"2"}),
        (Term("page", "title"), {"1", "2", "3", "4"}),
        (Term("page", "text"), set()),
    ],
)
def test_every_kind_of_query_node_means_the_same_everywhere(
    store: Store, node: KeywordNode, expected: set[str]
) -> None:
    store.files.apply([update("a.md", "a red apple", "apples are red", "an appliance", "a pear")])
    assert {hit.id[-1] for hit in store.retrieval.keyword(KeywordQuery(node), EVERYTHING, 10).hits} == expected


def test_statistics_count_the_records_that_hold_a_token(store: Store) -> None:
    store.files.apply([update("a.md", "apple apple", "apple pear")])
    statistics = store.retrieval.term_statistics(["appl", "pear", "unknown"])
    assert statistics.records == 2
    assert dict(statistics.frequency) == {"appl": 2, "pear": 1, "unknown": 0}


def test_the_tokens_of_a_record_are_those_it_was_indexed_under(store: Store) -> None:
    store.files.apply([update("a.md", "PolicyController runs")])
    asked = ("polici", "control", "policycontrol", "run", "page", "absent")
    query = KeywordQuery(Term("run"), tokens=asked, described=5)
    assert store.retrieval.keyword(query, EVERYTHING, 10).matched_tokens == {"idamd1": frozenset(asked[:-1])}


def test_substring_wants_every_word_literally_and_escapes_wildcards(store: Store) -> None:
    store.files.apply([update("a.md", "the catalogue costs 100%", "a catalogue_x"), update("b.md", "100 things")])
    assert store.retrieval.substring(["atalog"], EVERYTHING, 10) == ("idamd1", "idamd2")
    assert store.retrieval.substring(["atalog", "100%"], EVERYTHING, 10) == ("idamd1",)
    assert store.retrieval.substring(["e_x"], EVERYTHING, 10) == ("idamd2",)


# ── vectors ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_nearest_gives_the_true_cosine_of_the_best_piece(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(5), axis(0, 0.5)]), RecordVectors("idamd2", [axis(9)])])
    first, second = store.retrieval.nearest(MODEL, np.asarray(axis(0), np.float32), EVERYTHING, 10).hits
    assert (first.id, second.id) == ("idamd1", "idamd2")
    assert first.score == pytest.approx(1 / np.sqrt(1.25), abs=1e-5)
    assert second.score == pytest.approx(0.0, abs=1e-5)


def test_vectors_of_another_space_are_never_compared(store: Store) -> None:
    store.files.apply([update("a.md", "one")])
    store.vectors.put(OTHER_MODEL, [RecordVectors("idamd1", [axis(0)])])
    with pytest.raises(SpaceChangedError, match=r"test/other axes now, not with test/axes"):
        nearest(store, axis(0))
    with pytest.raises(SpaceChangedError):
        store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)])])
    assert store.vectors.pending(MODEL) == 1
    assert store.vectors.pending(OTHER_MODEL) == 0


def test_wrong_dimensions_are_refused_with_the_way_out(store: Store) -> None:
    store.files.apply([update("a.md", "one")])
    with pytest.raises(EmbeddingError, match="dimensions"):
        store.vectors.put(MODEL, [RecordVectors("idamd1", [[1.0, 0.0]])])
    with pytest.raises(EmbeddingError, match="dimensions"):
        store.retrieval.nearest(MODEL, np.ones(3, np.float32), EVERYTHING, 10)


def test_a_vector_for_a_record_that_has_gone_is_dropped(store: Store) -> None:
    store.files.apply([update("a.md", "one")])
    assert store.vectors.put(MODEL, [RecordVectors("nowhere", [axis(0)]), RecordVectors("idamd1", [axis(1)])]) == 1


def test_pending_records_are_those_without_a_vector(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)])])
    assert [record.id for record in store.vectors.pending_records(MODEL, 10)] == ["idamd2"]


def test_another_process_sees_vectors_words_and_deletions_at_once(open_store: Open, store: Store) -> None:
    other = open_store()
    store.files.apply([update("a.md", "apple", "pear")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)])])
    assert nearest(other, axis(0)) == ["idamd1"]
    store.vectors.put(MODEL, [RecordVectors("idamd2", [axis(1)])])
    assert nearest(other, axis(1)) == ["idamd2", "idamd1"]
    store.vectors.put(MODEL, [RecordVectors("idamd2", [axis(7)])])
    assert nearest(other, axis(7))[0] == "idamd2"
    store.files.apply([], ["doca.md"])
    assert nearest(other, axis(1)) == []
    assert found(other, "apple") == []


def test_many_vectors_are_ranked_as_an_exhaustive_scan_would(open_store: Open, store: Store) -> None:
    count = 6_000  # enough to leave the exhaustive path
    random = np.random.default_rng(1)
    topics = random.normal(size=(300, WIDE.dimensions))
    vectors = topics[random.integers(300, size=count)] + random.normal(size=(count, WIDE.dimensions))
    vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)
    store.files.apply([update("a.md", *(f"text {number}" for number in range(count)))])
    store.vectors.put(WIDE, [RecordVectors(f"idamd{n + 1}", vectors[n : n + 1]) for n in range(count)])
    store.vectors.pack()
    fresh = open_store()  # starts from the packed form without codes; its second search has them
    shared = 0
    for number in range(6):
        query = vectors[number] + random.normal(size=WIDE.dimensions).astype(np.float32) * 0.02
        query = (query / np.linalg.norm(query)).astype(np.float32)
        cosines = vectors @ query
        true = [f"idamd{n + 1}" for n in np.argsort(-cosines)[:15]]
        for engine in (store, fresh):
            answer = engine.retrieval.nearest(WIDE, query, EVERYTHING, 200)
            shared += len(set(true) & {hit.id for hit in answer.hits[:15]})
            assert answer.hits[0].score == pytest.approx(float(cosines.max()), abs=1e-5)
            assert answer.size == count
            assert answer.mean == pytest.approx(float(cosines.mean()), abs=0.02)
            assert answer.std == pytest.approx(float(cosines.std()), rel=0.4)
    assert shared / (6 * 2 * 15) >= 0.99


def test_a_reader_that_met_an_older_packing_is_not_misled_by_a_newer_one(open_store: Open, store: Store) -> None:
    random = np.random.default_rng(3)
    vectors = random.normal(size=(1_600, WIDE.dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    store.files.apply([update("a.md", *(f"text {number}" for number in range(1_600)))])
    store.vectors.put(WIDE, [RecordVectors(f"idamd{n + 1}", vectors[n : n + 1]) for n in range(1_200)])
    store.maintenance.optimize()
    reader = open_store()
    reader.retrieval.nearest(WIDE, vectors[0], EVERYTHING, 10)  # holds the sign bits of this packing, not its codes
    store.vectors.put(WIDE, [RecordVectors(f"idamd{n + 1}", vectors[n : n + 1]) for n in range(1_200, 1_600)])
    reader.retrieval.nearest(WIDE, vectors[0], EVERYTHING, 10)
    store.maintenance.optimize()
    for number in (5, 1_300):
        assert reader.retrieval.nearest(WIDE, vectors[number], EVERYTHING, 10).hits[0].id == f"idamd{number + 1}"


def test_a_vector_of_words_that_changed_meanwhile_is_not_stored(store: Store) -> None:
    store.files.apply([update("a.md", "one")])
    (record,) = store.retrieval.records(["idamd1"])
    assert (
        store.vectors.put(MODEL, [RecordVectors(record.id, [axis(0)], of=short_hash(record.title, "other words"))]) == 0
    )
    assert store.vectors.pending(MODEL) == 1
    assert (
        store.vectors.put(MODEL, [RecordVectors(record.id, [axis(0)], of=short_hash(record.title, record.text))]) == 1
    )


def test_a_record_of_many_pieces_does_not_crowd_the_others_out(store: Store) -> None:
    store.files.apply([update("a.md", *(f"text {number}" for number in range(51)))])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0, n / 10_000) for n in range(1_500)])])
    store.vectors.put(MODEL, [RecordVectors(f"idamd{n}", [axis(0, 0.5)]) for n in range(2, 52)])
    assert len(nearest(store, axis(0), limit=50)) == 50


# ── scope ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("filters", "expected"),
    [
        (Filters(collections=("more",)), {"idcmd1"}),
        (Filters(path="guide/*"), {"idguideamd1"}),
        (Filters(path="guide"), {"idguideamd1"}),
        (Filters(path="gui"), set()),
        (Filters(tags=("REDIS", "nothing")), {"idbmd1"}),
        (Filters(all_tags=("redis", "nothing")), set()),
        (Filters(all_tags=("redis", "ttl")), {"idbmd1"}),
        (Filters(kinds=("memory",)), set()),
        (Filters(kinds=("chunk",)), {"idguideamd1", "idbmd1", "idcmd1"}),
        (Filters(after=1_001, before=1_002), {"idguideamd1", "idbmd1", "idcmd1"}),
        (Filters(after=1_002), set()),
        (Filters(types=("fact",)), set()),
        (Filters(min_importance=1), set()),
        (Filters(agent="somebody else"), {"idguideamd1", "idbmd1", "idcmd1"}),
        (Filters(matching=Term("redi")), {"idbmd1"}),
    ],
)
def test_filters_mean_the_same_in_both_halves_and_in_lists(store: Store, filters: Filters, expected: set[str]) -> None:
    store.files.put_collection(Collection("more", "/more"))
    store.files.apply(
        [
            update("guide/a.md", "apple"),
            update("b.md", "apple redis", tags=("Redis", "TTL")),
            update("c.md", "apple", collection="more"),
        ]
    )
    ids = ["idguideamd1", "idbmd1", "idcmd1"]
    store.vectors.put(MODEL, [RecordVectors(id_, [axis(0)]) for id_ in ids])
    assert set(found(store, "apple", filters)) == expected
    assert set(nearest(store, axis(0), filters)) == expected
    assert {record.id for record in store.retrieval.list(filters, limit=10).records} == expected


def test_a_rare_scope_among_many_foreign_rows_still_gets_its_full_k(store: Store) -> None:
    store.files.put_collection(Collection("rare", "/rare"))
    crowd = [update(f"{number}.md", *["apple"] * 50) for number in range(100)]
    rare = update("r.md", *["some words and an apple in a longer text"] * 8, collection="rare")
    store.files.apply([*crowd, rare])
    assert rare.records is not None
    store.vectors.put(MODEL, [RecordVectors(record.id, [axis(0)]) for one in crowd for record in one.records or ()])
    store.vectors.put(MODEL, [RecordVectors(record.id, [axis(3, 0.1)]) for record in rare.records])
    scope = Filters(collections=("rare",))
    assert len(found(store, "apple", scope, limit=8)) == 8
    assert len(nearest(store, axis(0), scope, limit=8)) == 8


# ── what language models wrote ────────────────────────────────────────────────────────────────────────────────


def test_a_chunk_is_found_by_its_context_and_loses_the_vector_it_had(open_store: Open, store: Store) -> None:
    store.files.apply([update("a.md", "apple", "pear")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)]), RecordVectors("idamd2", [axis(1)])])
    other = open_store()
    assert nearest(other, axis(0)) == ["idamd1", "idamd2"]
    assert store.files.set_contexts([("idamd1", "of orchards"), ("gone", "of nothing")]) == 1
    assert found(other, "orchards") == ["idamd1"]
    assert nearest(other, axis(0)) == ["idamd2"]
    assert store.vectors.pending(MODEL) == 1
    assert store.files.set_contexts([("idamd1", "of orchards")]) == 0


def test_a_vector_of_a_chunk_without_its_context_is_not_stored(store: Store) -> None:
    store.files.apply([update("a.md", "apple")])
    bare = embedded_text_hash("chunk", "Page a.md", "", "apple")
    store.files.set_contexts([("idamd1", "of orchards")])
    assert store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)], of=bare)]) == 0
    placed = embedded_text_hash("chunk", "Page a.md", "of orchards", "apple")
    assert store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)], of=placed)]) == 1
    assert list(store.vectors.stored(MODEL, ["idamd1", "gone"])) == ["idamd1"]


def test_a_kept_chunk_keeps_its_context_and_its_words(store: Store) -> None:
    store.files.put_collection(Collection("other", "/other"))
    store.files.apply([update("a.md", "apple"), update("b.md", "pear"), update("c.md", "plum", collection="other")])
    assert store.files.uncontextualized(["docs"]) == ("idamd1", "idbmd1")
    store.files.set_contexts([("idamd1", "of orchards")])
    store.files.apply([update("a.md", "apple", "grape", domain="fruit", tags=("Red",))])
    assert found(store, "orchards") == ["idamd1"]
    assert store.files.uncontextualized(["docs", "other"]) == ("idamd2", "idbmd1", "idcmd1")
    assert store.files.uncontextualized([]) == ()


def test_an_exchange_is_asked_once(store: Store) -> None:
    turns = [Record(id=f"t{n}", kind="turn", text=f"said {n}", agent=f"a{n % 2}", created_at=9 - n) for n in range(4)]
    store.entries.add([*turns, Record(id="m", kind="memory", text="told", agent="a0")], by="me")
    assert [record.id for record in store.entries.unextracted("*", 3)] == ["t3", "t2", "t1"]
    assert [record.id for record in store.entries.unextracted("a0", 9)] == ["t2", "t0"]
    store.entries.mark_extracted("t2", 0)
    store.entries.mark_extracted("m", 1)
    assert (store.entries.count_unextracted("a0"), store.entries.count_unextracted("*")) == (1, 3)
    store.entries.purge(["t2"])
    assert store.entries.count_unextracted("*") == 3


def test_an_exchange_that_went_unanswered_is_asked_after_the_others_and_may_rest(store: Store) -> None:
    turns = [Record(id=f"t{n}", kind="turn", text=f"said {n}", agent="a", created_at=n) for n in range(3)]
    store.entries.add(turns, by="me")
    for id_ in ("t0", "t0", "gone"):
        store.entries.mark_unanswered(id_)
    assert [record.id for record in store.entries.unextracted("a", 9)] == ["t1", "t2", "t0"]
    assert [record.id for record in store.entries.unextracted("a", 9, RetryPolicy(2, 0))] == ["t1", "t2"]
    assert (
        store.entries.count_unextracted("a", RetryPolicy(3, 0)),
        store.entries.count_unextracted("a", RetryPolicy(2, 2**50)),
    ) == (
        3,
        3,
    )
    assert store.entries.is_unextracted("t0") and not store.entries.is_unextracted("gone")
    store.entries.mark_extracted("t0", 1)
    store.entries.mark_unanswered("t0")  # another process was slower, and failed
    assert (store.entries.is_unextracted("t0"), store.entries.count_unextracted("*", RetryPolicy(1, 0))) == (False, 2)
    store.entries.purge(["t1"])
    assert [record.id for record in store.entries.unextracted("*", 9)] == ["t2"]


# ── together ──────────────────────────────────────────────────────────────────────────────────────────────────


def memory_of(id_: str, **more: Any) -> Record:
    return Record(id=id_, kind="memory", text=f"text of {id_}", agent="a", created_at=1, updated_at=1, **more)


def retire(store: Store, id_: str) -> Change:
    return store.entries.revise(id_, lambda record: replace(record, retired_at=5), by="me", action="forget")


def test_what_is_written_together_is_there_with_the_end_and_for_its_writer_at_once(open_store: Open) -> None:
    store, other = open_store(), open_store()
    store.entries.add([memory_of("one")], by="me")
    with store.entries.transaction() as moment:
        store.entries.add([memory_of("two")], by="me")
        change = retire(store, "one")
        assert (store.retrieval.record("two") is not None, found(store, "two", filters=EVERYONE)) == (True, ["two"])
        assert (other.retrieval.record("two"), found(other, "one", filters=EVERYONE)) == (None, ["one"])
    assert change.at == moment
    assert (other.retrieval.record("two") is not None, found(other, "one", filters=EVERYONE)) == (True, [])


def test_what_fails_in_the_middle_leaves_nothing_of_it(open_store: Open) -> None:
    store = open_store()
    store.entries.add([memory_of("one")], by="me")
    with pytest.raises(ZeroDivisionError), store.entries.transaction():
        store.entries.add([memory_of("two", tags=("new",))], by="me")
        retire(store, "one")
        raise ZeroDivisionError
    assert (store.retrieval.record("two"), found(store, "one", filters=EVERYONE)) == (None, ["one"])
    assert len(store.entries.history("one")) == 1
    assert all(check.ok for check in store.maintenance.check())


def test_a_part_that_fails_is_taken_back_alone(store: Store) -> None:
    with store.entries.transaction():
        store.entries.add([memory_of("one")], by="me")
        with pytest.raises(ZeroDivisionError):
            store.entries.revise("one", lambda _: 1 / 0, by="me", action="update")  # type: ignore[arg-type, return-value]
        with pytest.raises(NotFoundError), store.entries.transaction():
            store.entries.add([memory_of("two")], by="me")
            retire(store, "gone")
        store.entries.add([memory_of("three")], by="me")
    assert [bool(store.retrieval.record(id_)) for id_ in ("one", "two", "three")] == [True, False, True]


def test_other_threads_and_processes_wait_for_those_who_write_together(open_store: Open) -> None:
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


# ── conversations ─────────────────────────────────────────────────────────────────────────────────────────────


def turn(id_: str, session: str, at: int, **more: Any) -> Record:
    fields = {"session_id": session}
    return Record(id=id_, kind="turn", text=f"said {id_}", agent="a", created_at=at, fields=fields, **more)


def beside(store: Store, *ids: str, filters: Filters = EVERYONE) -> set[tuple[str, str]]:
    return set(store.retrieval.ranking_context((), whole=0, filters=filters, adjacent_to=ids).adjacent_turns)


def test_exchanges_stand_beside_each_other_in_the_order_of_time_then_of_telling(store: Store) -> None:
    told = [turn("late", "s", 9), turn("one", "s", 5), turn("two", "s", 5), turn("early", "s", 1), turn("x", "t", 5)]
    store.entries.add([told[0], Record(id="m", kind="memory", text="told between", agent="a"), *told[1:]], by="me")
    assert beside(store, "early") == {("early", "one")}
    assert beside(store, "one", "late") == {("one", "early"), ("one", "two"), ("late", "two")}
    assert beside(store, "x", "m", "nobody") == set()
    assert beside(store) == set()


def test_what_was_forgotten_or_is_another_agents_is_beside_nobody(store: Store) -> None:
    store.entries.add([turn("one", "s", 1), turn("gone", "s", 2, retired_at=3), turn("two", "s", 3)], by="me")
    store.entries.add([replace(turn("theirs", "s", 2), agent="b")], by="me")
    assert beside(store, "one", "theirs") == {("one", "two")}


def test_beside_is_who_is_in_scope_and_never_the_next_but_one(store: Store) -> None:
    store.entries.add([turn("one", "s", 1), turn("two", "s", 2), turn("three", "s", 3, tags=("Red",))], by="me")
    red = Filters(agent="a", tags=("red",))
    assert beside(store, "two", filters=red) == {("two", "three")}
    assert beside(store, "one", filters=red) == set()
    assert beside(store, "one", filters=Filters(agent="b")) == set()


def test_a_hit_says_what_kind_of_record_it_is(store: Store) -> None:
    store.files.apply([update("a.md", "said")])
    store.entries.add([turn("one", "s", 1), Record(id="m", kind="memory", text="said so", agent="a")], by="me")
    for filters in (EVERYONE, Filters(agent="a")):
        hits = store.retrieval.keyword(KeywordQuery(Term("said")), filters, 10).hits
        assert {hit.id: hit.kind for hit in hits} == {"idamd1": "chunk", "one": "turn", "m": "memory"}


def test_a_single_character_is_held_by_the_pairs_that_it_begins(store: Store) -> None:
    store.files.apply([update("a.md", "东京的值班工程师", "a latin letter v alone")])
    query = KeywordQuery(Term("page"), tokens=("东", "东京", "师", "v", "l"), described=5)
    held = store.retrieval.keyword(query, EVERYTHING, 10).matched_tokens
    assert held == {"idamd1": {"东", "东京"}, "idamd2": {"v"}}
    assert store.retrieval.term_statistics(["东", "京", "v"]).frequency == {"东": 1, "京": 1, "v": 1}


# ── caches and health ─────────────────────────────────────────────────────────────────────────────────────────


def test_a_cached_value_is_there_for_the_next_process(open_store: Open, store: Store) -> None:
    store.caches.put("kind", "key", b"value")
    store.settle()
    assert open_store().caches.get("kind", "key") == b"value"
    assert store.caches.get("kind", "other") is None


def test_a_cached_value_is_there_at_once_and_gone_when_cleared(open_store: Open, store: Store) -> None:
    """The next page of an answer is asked for sooner than anybody writes."""
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


def test_many_cached_values_are_kept_at_once_and_found_together(open_store: Open, store: Store) -> None:
    many = {f"key {number}": str(number).encode() for number in range(1200)}
    store.caches.put_many("kind", many, now=True)
    assert open_store().caches.get_many("kind", [*many, "unknown"]) == many
    assert store.caches.get_many("other", list(many)) == {}
    assert store.caches.get_many("kind", []) == {}


def test_whether_anything_is_kept_for_a_question_is_told_by_how_its_keys_begin(
    store: Store, open_store: Callable[[], Store]
) -> None:
    assert not store.caches.has_prefix("kind", "question")
    store.caches.put("kind", "question:text", b"1")
    assert store.caches.has_prefix("kind", "question")  # at once: what waits to be written counts, too
    store.settle()
    for one in (store, open_store()):
        assert one.caches.has_prefix("kind", "question")
        assert one.caches.has_prefix("kind", "question:text")
        assert not one.caches.has_prefix("kind", "question:texts")
        assert not one.caches.has_prefix("other", "question")


def test_a_healthy_store_says_so_and_stays_so_when_optimized(store: Store) -> None:
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
