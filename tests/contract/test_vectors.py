"""The laws of vectors: true cosines, filters before the top k, and what the background of a query is."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from mindex.clock import DAY_MS, now_ms
from mindex.datatypes import Collection, Filters, Model, RecordVectors, Term, VectorArray
from mindex.embedding_text import embedded_text
from mindex.errors import EmbeddingError, SpaceChangedError
from mindex.ids import short_hash
from mindex.store.base import KeywordQuery, Store
from tests.contract.records import EVERYTHING, MODEL, Open, axis, found, memory_of, nearest, turn, update

pytestmark = pytest.mark.slow  # thousands of vectors

OTHER_MODEL = Model("test", "other axes", 64)
WIDE = Model("test", "topics", 384)


def test_a_removed_chunk_is_found_neither_by_words_nor_by_its_vector(store: Store) -> None:
    store.files.apply([update("a.md", "apple", "pear")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)]), RecordVectors("idamd2", [axis(1)])])
    assert nearest(store, axis(1)) == ["idamd2", "idamd1"]
    store.files.apply([update("a.md", "apple")])
    assert found(store, "pear") == []
    assert nearest(store, axis(1)) == ["idamd1"]
    assert store.vectors.pending(MODEL) == 0


def test_vectors_are_read_with_the_fluency_they_were_stored_with(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two", "three")])
    given = [RecordVectors("idamd2", [axis(5), axis(0, 0.5)], 0.25), RecordVectors("idamd1", [axis(9)], 1.0)]
    store.vectors.put(MODEL, given)
    read = store.vectors.with_fluency(MODEL, ["idamd2", "idamd3", "idamd1", "none"])
    assert [(one.record, one.fluency) for one in read] == [("idamd2", 0.25), ("idamd1", 1.0)]
    for one, before in zip(read, given, strict=True):
        assert np.array_equal(np.asarray(one.vectors, np.float32), np.asarray(before.vectors, np.float32))


def test_nearest_returns_the_true_cosine_of_the_best_piece(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(5), axis(0, 0.5)]), RecordVectors("idamd2", [axis(9)])])
    first, second = store.retrieval.nearest(MODEL, np.asarray(axis(0), np.float32), EVERYTHING, 10).hits
    assert (first.id, second.id) == ("idamd1", "idamd2")
    assert first.score == pytest.approx(1 / np.sqrt(1.25), abs=1e-5)
    assert second.score == pytest.approx(0.0, abs=1e-5)


def test_a_scope_that_was_searched_before_follows_every_change(
    open_store: Open, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = Filters(agent="a", kinds=("memory",))
    end = now_ms() + DAY_MS
    store.entries.add([memory_of("one"), memory_of("soon", expires_at=end), turn("said", "s", 1)], by="me")
    ids = ("one", "soon", "said")
    store.vectors.put(MODEL, [RecordVectors(id_, [axis(number)]) for number, id_ in enumerate(ids)])

    def seen(which: Store) -> set[str]:
        return {hit.id for hit in which.retrieval.nearest(MODEL, np.asarray(axis(0), np.float32), scope, 10).hits}

    assert seen(store) == seen(store) == {"one", "soon"}
    other = open_store()
    other.entries.add([memory_of("two")], by="me")
    other.vectors.put(MODEL, [RecordVectors("two", [axis(5)])])
    assert seen(store) == {"one", "soon", "two"}
    other.entries.revise("one", lambda record: replace(record, retired_at=5), by="me", action="forget")
    assert seen(store) == {"soon", "two"}
    monkeypatch.setattr("mindex.clock.time", SimpleNamespace(time_ns=lambda: (end + 1) * 1_000_000))
    assert seen(store) == {"two"}


def test_vectors_of_another_space_are_never_compared(store: Store) -> None:
    store.files.apply([update("a.md", "one")])
    store.vectors.put(OTHER_MODEL, [RecordVectors("idamd1", [axis(0)])])
    with pytest.raises(SpaceChangedError, match=r"test/other axes now, not with test/axes"):
        nearest(store, axis(0))
    with pytest.raises(SpaceChangedError):
        store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)])])
    assert store.vectors.pending(MODEL) == 1
    assert store.vectors.pending(OTHER_MODEL) == 0


def test_a_vector_of_wrong_dimensions_is_refused(store: Store) -> None:
    store.files.apply([update("a.md", "one")])
    with pytest.raises(EmbeddingError, match="dimensions"):
        store.vectors.put(MODEL, [RecordVectors("idamd1", [[1.0, 0.0]])])
    with pytest.raises(EmbeddingError, match="dimensions"):
        store.retrieval.nearest(MODEL, np.ones(3, np.float32), EVERYTHING, 10)


def test_a_vector_of_a_removed_record_is_not_stored(store: Store) -> None:
    store.files.apply([update("a.md", "one")])
    assert store.vectors.put(MODEL, [RecordVectors("nowhere", [axis(0)]), RecordVectors("idamd1", [axis(1)])]) == 1


def test_pending_records_are_those_without_a_vector(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)])])
    assert [record.id for record in store.vectors.pending_records(MODEL, 10)] == ["idamd2"]


def test_another_process_finds_new_words_and_vectors_at_once_and_removed_ones_no_more(
    open_store: Open, store: Store
) -> None:
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


@pytest.mark.slow
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
    assert shared / (6 * 2 * 15) >= 0.99


def test_a_reader_that_loaded_an_older_packing_ranks_by_the_newer_one(open_store: Open, store: Store) -> None:
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


def test_a_vector_of_a_text_that_has_changed_is_not_stored(store: Store) -> None:
    store.files.apply([update("a.md", "one")])
    (record,) = store.retrieval.records(["idamd1"])
    other, same = (short_hash(embedded_text(replace(record, text=text))) for text in ("other words", record.text))
    assert store.vectors.put(MODEL, [RecordVectors(record.id, [axis(0)], of=other)]) == 0
    assert store.vectors.pending(MODEL) == 1
    assert store.vectors.put(MODEL, [RecordVectors(record.id, [axis(0)], of=same)]) == 1


def test_a_record_of_many_pieces_counts_once_among_the_nearest(store: Store) -> None:
    store.files.apply([update("a.md", *(f"text {number}" for number in range(51)))])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0, n / 10_000) for n in range(1_500)])])
    store.vectors.put(MODEL, [RecordVectors(f"idamd{n}", [axis(0, 0.5)]) for n in range(2, 52)])
    assert len(nearest(store, axis(0), limit=50)) == 50


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
        (Filters(agent="another"), {"idguideamd1", "idbmd1", "idcmd1"}),
        (Filters(matching=Term("redi")), {"idbmd1"}),
    ],
)
def test_filters_admit_the_same_to_keyword_search_vector_search_and_lists(
    store: Store, filters: Filters, expected: set[str]
) -> None:
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


def test_filters_are_applied_before_the_top_k_is_taken(store: Store) -> None:
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


def test_a_chunk_is_found_by_its_new_context_and_loses_the_vector_it_had(open_store: Open, store: Store) -> None:
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
    bare = short_hash(embedded_text(store.retrieval.records(["idamd1"])[0]))
    store.files.set_contexts([("idamd1", "of orchards")])
    assert store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)], of=bare)]) == 0
    placed = short_hash(embedded_text(store.retrieval.records(["idamd1"])[0]))
    assert store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)], of=placed)]) == 1
    assert list(store.vectors.stored(MODEL, ["idamd1", "gone"])) == ["idamd1"]


def test_chunks_lose_their_vectors_with_the_description_of_their_document_only(store: Store) -> None:
    def put(*fields: str) -> int:
        store.files.apply([update("a.md", "apple", "pear", fields=fields)])
        return store.vectors.pending(MODEL)

    assert put("description: of orchards", "status: draft") == 2
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)]), RecordVectors("idamd2", [axis(1)])])
    assert put("description: of orchards", "status: done") == 0
    assert put("description: of gardens", "status: done") == 2


@pytest.mark.parametrize("count", [3, 500, 6_000])
def test_each_group_of_kinds_brings_its_own_nearest(open_store: Open, store: Store, count: int) -> None:
    store.files.apply([update("a.md", *map(str, range(count)))])
    store.entries.add([memory_of("m"), turn("t", "s", 1)], by="me")
    generator = np.random.default_rng(3)
    vectors = generator.standard_normal((count, 64)).astype(np.float32) + 0.3
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    embedded = [RecordVectors(f"idamd{n + 1}", vectors[n : n + 1], fluency=0.8) for n in range(count)]
    entries = [RecordVectors("m", [-vectors[0]], fluency=0.4), RecordVectors("t", [-vectors[1]])]
    store.vectors.put(MODEL, [*embedded, *entries])
    store.vectors.pack()
    for engine in (store, open_store()):  # with the codes, and without
        near = engine.retrieval.nearest(MODEL, vectors[0], Filters(agent="a"), 2)
        found = {hit.id: hit for hit in near.hits}
        assert near.size == count + 2
        assert len(near.hits) == 4
        assert [hit.id for hit in near.hits] == sorted(found, key=lambda id_: -found[id_].score)
        assert (found["m"].fluency, found["m"].length) == (pytest.approx(0.4, abs=0.01), len("text of m"))
        assert found["idamd1"].fluency == pytest.approx(0.8, abs=0.01)
        assert (found["idamd1"].collection_size, found["t"].collection_size) == (1, 0)


def test_records_added_later_are_in_their_group(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)]), RecordVectors("idamd2", [axis(0)])])
    query = np.asarray(axis(0), np.float32)
    assert len(store.retrieval.nearest(MODEL, query, Filters(agent="a"), 1).hits) == 1
    store.entries.add([memory_of("m"), memory_of("n"), turn("t", "s", 1)], by="me")
    store.vectors.put(MODEL, [RecordVectors(id_, [axis(0)]) for id_ in ("m", "n", "t")])
    kinds = [hit.kind for hit in store.retrieval.nearest(MODEL, query, Filters(agent="a"), 1).hits]
    assert sorted(kinds) == ["chunk", "memory", "turn"]


def test_the_nearest_of_an_empty_scope_are_none(store: Store) -> None:
    store.files.apply([update("a.md", "one")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)])])
    near = store.retrieval.nearest(MODEL, np.asarray(axis(0), np.float32), Filters(kinds=("memory",)), 5)
    assert (near.hits, near.size) == ((), 0)


def test_entries_may_be_embedded_before_chunks(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two")])
    store.entries.add([memory_of("m")], by="me")
    assert [record.id for record in store.vectors.pending_records(MODEL, 9, entries_only=True)] == ["m"]
    assert [record.id for record in store.vectors.pending_records(MODEL, 9, ids=["idamd2", "nowhere"])] == ["idamd2"]


def test_the_active_space_comes_with_a_keyword_result(store: Store) -> None:
    store.files.apply([update("a.md", "apple")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)])])
    found = store.retrieval.keyword(KeywordQuery(Term("appl")), EVERYTHING, 5)
    assert found.active_space == store.vectors.active_space() == MODEL.fingerprint


# ── the neighbours of many vectors ────────────────────────────────────────────────────────────────────────────


def clustered(count: int, seed: int) -> VectorArray:
    """Unit vectors in clusters of different density, and some that are alike."""
    random = np.random.default_rng(seed)
    centres = random.standard_normal((max(count // 12, 1), MODEL.dimensions))
    noise = random.standard_normal((count, MODEL.dimensions)) * random.choice([0.0, 0.1, 0.4, 0.9], (count, 1))
    rows = centres[random.integers(len(centres), size=count)] + noise
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float32)


@pytest.mark.parametrize(("stored", "asked"), [(0, 20), (7, 1), (150, 40), (150, 3)])
def test_the_neighbours_of_many_vectors_are_what_one_search_for_each_finds(
    store: Store, stored: int, asked: int
) -> None:
    vectors = clustered(stored, 1) if stored else np.zeros((0, MODEL.dimensions), np.float32)
    records = [memory_of(f"m{number}") for number in range(stored)]
    others = [replace(memory_of(f"o{number}"), agent="b") for number in range(stored // 3)]
    store.entries.add([*records, *others, memory_of("long")], by="me")
    embedded = [RecordVectors(one.id, [row]) for one, row in zip(records, vectors, strict=True)]
    embedded += [RecordVectors(one.id, [row]) for one, row in zip(others, vectors, strict=False)]
    embedded.append(RecordVectors("long", clustered(12, 2)))
    store.vectors.put(MODEL, embedded)
    queries = np.concatenate([vectors[: asked - 1], clustered(asked, 3)])[:asked]
    scope = Filters(kinds=("memory",), agent="a")
    found = store.retrieval.neighbours(MODEL, queries, scope, 10, 0.5)
    assert found.records.keys() == {id_ for near in found.cosines for id_ in near}
    assert all(record == store.retrieval.record(id_) for id_, record in found.records.items())
    for query, neighbours in zip(queries, found.cosines, strict=True):
        hits = store.retrieval.nearest(MODEL, query, scope, 10).hits
        expected = sorted((hit.score for hit in hits if hit.score >= 0.5), reverse=True)
        assert sorted(neighbours.values(), reverse=True) == pytest.approx(expected, abs=1e-5)
        # Of equal cosines at the end of the list, any may be among the ten.
        certain = {hit.id for hit in hits if hit.score > max(0.5, expected[-1] if expected else 0.5) + 1e-5}
        assert certain <= neighbours.keys()


def test_the_neighbours_of_no_vectors_are_none(store: Store) -> None:
    none = np.zeros((0, MODEL.dimensions), np.float32)
    found = store.retrieval.neighbours(MODEL, none, Filters(kinds=("memory",), agent="a"), 10, 0.5)
    assert (found.cosines, found.records) == ((), {})
