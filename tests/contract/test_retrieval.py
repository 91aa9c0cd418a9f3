"""The laws of reading and searching: ids, lists, filters, literal texts, and what ranking asks for."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.clock import now_ms
from mindex.datatypes import Collection, Filters, Record, RecordVectors, Term
from mindex.store.base import Access, KeywordQuery, RankingSignals, Store
from mindex.store.rules.filters import admits, holds_literally
from tests.contract.records import EVERYONE, EVERYTHING, MODEL, axis, memory_of, nearest, turn, update


def test_records_come_in_the_order_of_the_ids_without_the_missing(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two", "three")])
    assert [record.id for record in store.retrieval.records(["idamd3", "nowhere", "idamd1"])] == ["idamd3", "idamd1"]


def test_a_short_id_resolves_to_the_ids_that_start_with_it(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two"), update("b.md", "three")])
    assert store.retrieval.resolve("ida") == ("idamd1", "idamd2")
    assert store.retrieval.resolve("zzz") == ()


def test_a_list_has_the_records_in_scope_newest_first_page_by_page(store: Store) -> None:
    store.files.apply([update("a.md", "one", "two", "three")])
    page = store.retrieval.list(EVERYTHING, limit=2)
    assert ([record.id for record in page.records], page.total) == (["idamd3", "idamd2"], 3)
    assert [record.id for record in store.retrieval.list(EVERYTHING, limit=2, offset=2).records] == ["idamd1"]


def test_labels_are_counted_over_the_records_in_scope(store: Store) -> None:
    mine = [memory_of("one", type="fact", tags=("tea", "Tea")), memory_of("two", type="fact", tags=("tea",))]
    theirs = replace(memory_of("theirs", type="event", tags=("rum",)), agent="b")
    store.entries.add([*mine, memory_of("old", type="task", tags=("tea",), expires_at=5), theirs], by="me")
    store.files.apply([update("a.md", "a text", tags=("tea",))])
    assert store.retrieval.label_counts("tag", Filters(agent="a")) == {"tea": 3, "Tea": 1}
    assert store.retrieval.label_counts("tag", Filters(agent="a", kinds=("chunk",))) == {"tea": 1}
    assert store.retrieval.label_counts("type", Filters(agent="a")) == {"fact": 2}
    assert store.retrieval.label_counts("type", EVERYONE) == {"fact": 2, "event": 1}
    assert store.retrieval.label_counts("tag", Filters(agent="b", kinds=("memory",), types=("fact",))) == {}


def test_substring_finds_records_that_hold_every_text_at_word_boundaries(store: Store) -> None:
    store.files.apply([update("a.md", "the catalogue costs 100%", "a catalogue_x"), update("b.md", "100 things")])
    assert store.retrieval.substring(["catalogue"], EVERYTHING, 10) == ("idamd1", "idamd2")
    assert store.retrieval.substring(["catalogue", "100%"], EVERYTHING, 10) == ("idamd1",)
    assert store.retrieval.substring(["catalog"], EVERYTHING, 10) == ("idamd2",)  # starts a part of an identifier
    assert store.retrieval.substring(["atalogue"], EVERYTHING, 10) == ()


def test_substring_counts_its_limit_after_the_words_were_checked(store: Store) -> None:
    store.files.apply([update("a.md", *(f"location {n}" for n in range(600)), "a cat", "catFactory")])
    assert store.retrieval.substring(["cat"], EVERYTHING, 1) == ("idamd601",)
    assert store.retrieval.substring(["cat"], EVERYTHING, 10) == ("idamd601", "idamd602")


def test_substring_inside_words_finds_letters_anywhere(store: Store) -> None:
    store.files.apply([update("a.md", "the catalogue costs 100%", "a catalogue_x"), update("b.md", "100 things")])
    assert store.retrieval.substring(["atalog"], EVERYTHING, 10, inside_words=True) == ("idamd1", "idamd2")
    assert store.retrieval.substring(["e_x"], EVERYTHING, 10, inside_words=True) == ("idamd2",)


def test_substring_inside_words_takes_any_text_and_has_those_with_most_of_them_first(store: Store) -> None:
    records = [memory_of("sure", confidence=0.9), memory_of("both", confidence=0.1), memory_of("none")]
    texts = {"sure": "Assam tea", "both": "green teapots from Assam", "none": "coffee"}
    store.entries.add([replace(record, text=texts[record.id]) for record in records], by="me")
    assert store.retrieval.substring(["ssa", "een"], EVERYONE, 9, inside_words=True) == ("both", "sure")
    assert store.retrieval.substring(["ssa", "een"], EVERYONE, 1, inside_words=True) == ("both",)
    assert store.retrieval.substring(["zzz", "tea"], EVERYONE, 9, inside_words=True) == ("sure", "both")


def test_what_is_excluded_is_found_by_no_search(store: Store) -> None:
    store.files.apply([update("a.md", "python and fastapi", "python and flask")])
    scope = replace(EVERYTHING, without=Term("fastapi"))
    assert [hit.id for hit in store.retrieval.keyword(KeywordQuery(Term("python")), scope, 10).hits] == ["idamd2"]
    assert store.retrieval.substring(["python"], scope, 10) == ("idamd2",)
    assert [record.id for record in store.retrieval.list(scope, limit=10).records] == ["idamd2"]


def test_what_is_excluded_is_not_among_the_nearest(store: Store) -> None:
    store.files.apply([update("a.md", "python and fastapi", "python and flask")])
    store.vectors.put(MODEL, [RecordVectors(f"idamd{n}", [axis(0)]) for n in (1, 2)])
    assert nearest(store, axis(0), replace(EVERYTHING, without=Term("fastapi"))) == ["idamd2"]


def adjacent(store: Store, *ids: str, filters: Filters = EVERYONE) -> set[tuple[str, str]]:
    return set(store.retrieval.ranking_context((), whole=0, filters=filters, adjacent_to=ids).adjacent_turns)


def test_adjacent_turns_are_next_in_the_order_of_time_then_of_number(store: Store) -> None:
    turns = [turn("late", "s", 9), turn("one", "s", 5), turn("two", "s", 5), turn("early", "s", 1), turn("x", "t", 5)]
    store.entries.add([turns[0], Record(id="m", kind="memory", text="added between", agent="a"), *turns[1:]], by="me")
    assert adjacent(store, "early") == {("early", "one")}
    assert adjacent(store, "one", "late") == {("one", "early"), ("one", "two"), ("late", "two")}
    assert adjacent(store, "x", "m", "unknown") == set()
    assert adjacent(store) == set()


def test_a_forgotten_turn_or_another_agents_is_not_adjacent(store: Store) -> None:
    store.entries.add([turn("one", "s", 1), turn("gone", "s", 2, retired_at=3), turn("two", "s", 3)], by="me")
    store.entries.add([replace(turn("theirs", "s", 2), agent="b")], by="me")
    assert adjacent(store, "one", "theirs") == {("one", "two")}


def test_an_adjacent_turn_is_in_scope_and_never_the_next_but_one(store: Store) -> None:
    store.entries.add([turn("one", "s", 1), turn("two", "s", 2), turn("three", "s", 3, tags=("Red",))], by="me")
    red = Filters(agent="a", tags=("red",))
    assert adjacent(store, "two", filters=red) == {("two", "three")}
    assert adjacent(store, "one", filters=red) == set()
    assert adjacent(store, "one", filters=Filters(agent="b")) == set()


# ── ids ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_record_is_read_by_its_id_whether_live_or_retired(store: Store) -> None:
    store.entries.add([memory_of("one")], by="me")
    store.entries.revise("one", lambda record: replace(record, retired_at=5), by="me", action="forget")
    retired = store.retrieval.record("one")
    assert retired is not None and retired.retired_at == 5
    assert (store.retrieval.records(["one"]), store.retrieval.record("nowhere")) == ((), None)


def test_ids_are_ordered_by_code_point_and_a_prefix_is_literal(store: Store) -> None:
    ids = ["a1", "a2", "B1", "aZ", "az", "a_", "a%"]
    store.entries.add([memory_of(id_) for id_ in ids], by="me")
    assert store.retrieval.resolve("") == tuple(sorted(ids))
    assert store.retrieval.resolve("a") == ("a%", "a1", "a2", "aZ", "a_", "az")
    assert store.retrieval.resolve("a_") == ("a_",)
    assert store.retrieval.resolve("A") == ()
    assert store.retrieval.resolve("a", 2) == ("a%", "a1")


def test_a_retired_id_resolves_only_on_demand(store: Store) -> None:
    store.entries.add([memory_of("one"), memory_of("other")], by="me")
    store.entries.revise("one", lambda record: replace(record, retired_at=5), by="me", action="forget")
    assert store.retrieval.resolve("o") == ("other",)
    assert store.retrieval.resolve("o", retired=True) == ("one", "other")


# ── filters ───────────────────────────────────────────────────────────────────────────────────────────────────

NOW = now_ms()
RECORDS = (
    Record("m1", "memory", "Green tea", agent="a", type="fact", tags=("Tea", "Größe"), importance=5, confidence=0.5,
           created_at=10, entities=("Zoë", "Riga")),
    Record("m2", "memory", "Black tea", agent="a", type="preference", tags=("tea",), importance=9, created_at=20,
           expires_at=NOW - 10_000),
    Record("m3", "memory", "Cake", agent="b", type="fact", confidence=1.0, created_at=20, expires_at=NOW + 1_000_000),
    Record("m4", "memory", "Old tea", agent="a", type="fact", created_at=15, retired_at=16),
    Record("t1", "turn", "asked about tea", agent="a", created_at=30, fields={"session_id": "s"}),
    Record("t2", "turn", "asked about cake", agent="b", created_at=30, fields={"session_id": "s"}),
)  # fmt: skip


@pytest.fixture
def filled(store: Store) -> Store:
    store.files.put_collection(Collection("more", "/more"))
    store.files.apply(
        [
            update("guide/a.md", "tea in the guide", tags=("TEA",)),
            update("b.md", "cake", collection="more"),
        ]
    )
    store.entries.add(RECORDS, by="me")
    return store


def optional(*values: object) -> st.SearchStrategy:
    return st.sampled_from([None, *values])


_FILTER = {
    "agent": st.sampled_from(["*", "a", "b", "A", "c"]),
    "kinds": st.sampled_from([(), ("memory",), ("chunk", "turn")]),
    "types": st.sampled_from([(), ("fact",), ("fact", "preference")]),
    "collections": st.sampled_from([(), ("docs",), ("docs", "more")]),
    "files_of": st.sampled_from([(), ("docs",), ("more", "none"), ("none",)]),
    "path": st.sampled_from(["", "guide", "guide/", "*.md", "b.md", "GUIDE"]),
    "tags": st.sampled_from([(), ("TEA",), ("grosse", "none")]),
    "all_tags": st.sampled_from([(), ("tea",), ("tea", "Grösse")]),
    "entities": st.sampled_from([(), ("zoe",), ("RIGA", "Oslo")]),
    "session": st.sampled_from(["", "s", "S"]),
    "min_importance": optional(0, 5, 9),
    "min_confidence": optional(0.0, 0.5, 0.9),
    "after": optional(10, 20),
    "before": optional(20, 31),
    "include_expired": st.booleans(),
    "matching": optional(Term("tea")),
}
# A few at a time: all of them together admit nothing.
FILTERS = (
    st.lists(st.sampled_from(sorted(_FILTER)), max_size=3, unique=True)
    .flatmap(lambda names: st.fixed_dictionaries({name: _FILTER[name] for name in names}))
    .map(lambda values: Filters(**{"agent": "*", **values}))
)


def test_filters_admit_what_the_law_says(filled: Store) -> None:
    every = [
        record for id_ in filled.retrieval.resolve("", 100, retired=True) if (record := filled.retrieval.record(id_))
    ]
    assert len(every) == 8

    @given(FILTERS)
    def check(filters: Filters) -> None:
        page = filled.retrieval.list(filters, limit=100)
        admitted = {record.id for record in every if admits(filters, record, NOW)}
        assert ({record.id for record in page.records}, page.total) == (admitted, len(admitted))

    check()


def test_a_filter_as_of_a_moment_leaves_out_what_changed_since(filled: Store) -> None:
    store, scope = filled, Filters(agent="*", kinds=("memory",), include_expired=True)
    before = {record.id for record in store.retrieval.list(scope, limit=9).records}
    assert before == {"m1", "m2", "m3"}
    change = store.entries.revise("m1", lambda record: replace(record, text="White tea"), by="me", action="update")
    then = replace(scope, as_of=change.at - 1)
    assert {record.id for record in store.retrieval.list(then, limit=9).records} == {"m2", "m3"}
    assert [record.text for record in store.entries.states_at(change.at - 1)] == ["Green tea"]


def test_records_of_one_moment_are_listed_by_path_then_by_place(store: Store) -> None:
    pages = [update("b.md", "three"), update("a.md", "one", "two")]
    same_time = [
        replace(page, records=tuple(replace(one, created_at=5) for one in page.records or ())) for page in pages
    ]
    store.files.apply(same_time)
    listed = [record.text for record in store.retrieval.list(EVERYTHING, limit=9).records]
    assert listed == ["one", "two", "three"]


@pytest.mark.parametrize("offset", [3, 10**6, 2**70])
def test_a_list_past_its_end_is_empty(store: Store, offset: int) -> None:
    store.files.apply([update("a.md", "one", "two", "three")])
    page = store.retrieval.list(EVERYTHING, limit=2, offset=offset)
    assert (page.records, page.total) == ((), 3)


# ── literal texts ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "words",
    [["CATALOGUE"], ["größe"], ["GRÖSSE"], ["GRößE"], ["東京"], ["ÉCOLE"], ["école"], ["page", "100%"], ["\\"], ["_"]],
)
@pytest.mark.parametrize("inside_words", [False, True])
def test_substring_folds_the_case_of_ascii_letters_only(store: Store, words: list[str], inside_words: bool) -> None:
    texts = ("a Catalogue of 100%", "Größe in 東京", "École_x", "back\\slash")
    store.files.apply([update("a.md", *texts)])
    records = store.retrieval.list(EVERYTHING, limit=9).records
    expected = {one.id for one in records if holds_literally(words, one.text, one.title, inside_words=inside_words)}
    assert set(store.retrieval.substring(words, EVERYTHING, 9, inside_words=inside_words)) == expected


def test_substring_has_the_most_confident_first_then_the_last_accessed(store: Store) -> None:
    records = [
        memory_of("sure", confidence=0.9),
        memory_of("old", confidence=0.5),
        memory_of("new", confidence=0.5),
        memory_of("none"),
    ]
    store.entries.add([replace(record, text=f"tea of {record.id}") for record in records], by="me")
    store.entries.log_access([Access("new", 99, "get")], oldest=0, rows=10)
    store.settle()
    assert store.retrieval.substring(["tea"], EVERYONE, 9) == ("sure", "new", "old", "none")
    assert store.retrieval.substring(["tea"], EVERYONE, 2) == ("sure", "new")


# ── ranking ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_ranking_signals_are_of_the_record_its_document_and_its_accesses(store: Store) -> None:
    store.files.apply([update("a.md", "one", domain="caching", instruction=True)])
    store.entries.add([memory_of("m", importance=7)], by="me")
    store.entries.log_access([Access("m", 50, "search", "q", 0.5), Access("m", 40, "get")], oldest=0, rows=10)
    store.settle()
    assert store.retrieval.ranking_signals(["m", "idamd1", "nowhere"]) == {
        "m": RankingSignals("m", "memory", importance=7, created_at=1, access_count=2, last_accessed=50),
        "idamd1": RankingSignals("idamd1", "chunk", "caching", True, None, 1_001, source="doca.md"),
    }


def test_a_ranking_context_has_all_signals_and_the_whole_records_of_the_first(store: Store) -> None:
    store.entries.add([memory_of(id_) for id_ in ("one", "two", "three")], by="me")
    ids = ["three", "nowhere", "one", "two"]
    context = store.retrieval.ranking_context(ids, whole=3, filters=EVERYONE)
    assert set(context.signals) == {"one", "two", "three"}
    assert {id_: record.text for id_, record in context.records.items()} == {
        "three": "text of three",
        "one": "text of one",
    }
    assert context.adjacent_turns == ()


def test_many_ids_are_read_in_one_call(store: Store) -> None:
    ids = [f"id{number:05}" for number in range(1_200)]
    store.entries.add([memory_of(id_) for id_ in ids], by="me")
    assert [record.id for record in store.retrieval.records(ids[::-1])] == ids[::-1]
    assert len(store.retrieval.ranking_signals(ids)) == len(store.entries.owners(ids)) == 1_200


def test_records_are_found_by_the_ids_that_other_programs_gave_them(store: Store) -> None:
    def told(id_: str, **fields: object) -> None:
        store.entries.add([memory_of(id_, fields=fields)], by="me")

    told("one", foreign_ids={"mudpuppy": "3", "short_id": "a1b2"})
    told("two", mudpuppy="3")
    told("three", foreign_ids={"memorizer": ["7", "3"]}, note="a1b2")
    told("four", foreign_ids="no object")
    chunk = update("a.md", "some text")
    records = tuple(replace(one, fields={"foreign_ids": {"memory-exchange": "ff00"}}) for one in chunk.records or ())
    store.files.apply([replace(chunk, records=records)])
    find = store.retrieval.find_by_foreign_id
    assert find("3") == ("one", "three")
    assert find("3", "mudpuppy") == ("one",)
    assert find("3", "memorizer") == find("7", "memorizer") == ("three",)
    for unknown in (("3", "short_id"), ("4", ""), ("mudpuppy", ""), ("7", "mudpuppy")):
        assert find(*unknown) == ()
    assert find("a1b2") == ("one",)
    assert find("ff00") == (records[0].id,)
    assert store.retrieval.record(records[0].id) == records[0]
