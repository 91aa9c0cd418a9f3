"""The laws of keyword search: what matches, what a score means, and what comes with the hits."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace

import pytest

from mindex.analyzer import COLUMNS, analyze_record
from mindex.datatypes import AllOf, AnyOf, Collection, Filters, KeywordNode, Phrase, Prefix, Record, Term, Without
from mindex.store.base import KeywordQuery, Store
from mindex.store.rules import bm25
from tests.contract.records import EVERYONE, EVERYTHING, memory_of, turn, update


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
def test_every_kind_of_query_node_matches_the_same_on_every_engine(
    store: Store, node: KeywordNode, expected: set[str]
) -> None:
    store.files.apply([update("a.md", "a red apple", "apples are red", "an appliance", "a pear")])
    assert {hit.id[-1] for hit in store.retrieval.keyword(KeywordQuery(node), EVERYTHING, 10).hits} == expected


def test_statistics_count_the_records_that_hold_a_token(store: Store) -> None:
    store.files.apply([update("a.md", "apple apple", "apple pear")])
    statistics = store.retrieval.term_statistics(["appl", "pear", "unknown"])
    assert statistics.records == 2
    assert dict(statistics.frequency) == {"appl": 2, "pear": 1, "unknown": 0}


def test_records_are_found_by_the_tokens_that_are_chosen_by_frequency(store: Store) -> None:
    store.files.put_collection(Collection("other", "/other"))
    store.files.apply(
        [update("a.md", "apple pear", "apple", "pear pear plum"), update("b.md", "pear", collection="other")]
    )
    seen: list[dict[str, int]] = []

    def rarest(frequency: Mapping[str, int]) -> list[str]:
        seen.append(dict(frequency))
        return [min((token for token in frequency if frequency[token]), key=lambda token: frequency[token])]

    scope = Filters(collections=("docs",), agent="*")
    found = store.retrieval.records_with_tokens(["pear", "appl", "unknown"], rarest, scope, 10)
    assert seen == [{"appl": 2, "pear": 3, "unknown": 0}]
    assert {record.id for record in found} == {"idamd1", "idamd2"}
    assert all(record == store.retrieval.record(record.id) for record in found)
    both = store.retrieval.keyword(KeywordQuery(AnyOf((Term("appl"), Term("pear")))), scope, 2).hits
    found = store.retrieval.records_with_tokens(["appl", "pear"], list, scope, 2)
    assert [record.id for record in found] == [hit.id for hit in both]
    assert store.retrieval.records_with_tokens(["appl"], lambda _: (), scope, 10) == ()


def test_terms_begin_as_asked_and_count_the_live_records_that_hold_them(store: Store) -> None:
    store.files.apply([update("a.md", "apple apple applications", "apple pear", "äpfel app_id")])
    store.entries.add([memory_of("m", title="apply")], by="me")
    store.entries.revise("m", lambda record: replace(record, retired_at=2), by="me", action="forget")

    def terms(prefix: str, shortest: int = 1, longest: int = 64, limit: int = 10) -> dict[str, int]:
        return store.retrieval.terms(prefix, shortest=shortest, longest=longest, limit=limit)

    assert terms("ap") == {"apfel": 1, "app": 1, "app_id": 1, "appl": 2, "applic": 1}
    assert list(terms("app", 4, 6, 2)) == ["app_id", "appl"]
    assert list(terms("pear", 4, 4)) == ["pear"]
    assert terms("absent") == {}


def test_the_tokens_of_a_record_are_those_it_was_indexed_under(store: Store) -> None:
    store.files.apply([update("a.md", "PolicyController runs")])
    tokens = ("polici", "control", "policycontrol", "run", "page", "absent")
    query = KeywordQuery(Term("run"), tokens=tokens, described=5)
    assert store.retrieval.keyword(query, EVERYTHING, 10).matched_tokens == {"idamd1": frozenset(tokens[:-1])}


def test_a_hit_says_what_kind_of_record_it_is(store: Store) -> None:
    store.files.apply([update("a.md", "said")])
    store.entries.add([turn("one", "s", 1), Record(id="m", kind="memory", text="said so", agent="a")], by="me")
    for filters in (EVERYONE, Filters(agent="a")):
        hits = store.retrieval.keyword(KeywordQuery(Term("said")), filters, 10).hits
        assert {hit.id: hit.kind for hit in hits} == {"idamd1": "chunk", "one": "turn", "m": "memory"}


def test_a_single_cjk_character_matches_the_pairs_that_it_begins(store: Store) -> None:
    store.files.apply([update("a.md", "东京的值班工程师", "a latin letter v alone")])
    query = KeywordQuery(Term("page"), tokens=("东", "东京", "师", "v", "l"), described=5)
    held = store.retrieval.keyword(query, EVERYTHING, 10).matched_tokens
    assert held == {"idamd1": {"东", "东京"}, "idamd2": {"v"}}
    assert store.retrieval.term_statistics(["东", "京", "v"]).frequency == {"东": 1, "京": 1, "v": 1}


# ── what a score means ────────────────────────────────────────────────────────────────────────────────────────

WORDS = ("tea", "cake", "harbour", "ship", "crane", "lamp", "parcel", "hall")


def corpus(count: int) -> list[Record]:
    """Texts of different lengths, in which some words are rare and some common."""
    chosen = random.Random(1)
    weights = [8, 5, 3, 3, 2, 2, 1, 1]
    return [
        replace(memory_of(f"m{n:03}"), text=f"{' '.join(chosen.choices(WORDS, weights, k=chosen.randint(3, 30)))} n{n}")
        for n in range(count)
    ]


@pytest.mark.parametrize(
    "node",
    [
        Term("parcel"),
        AnyOf((Term("tea"), Term("parcel"), Term("hall"))),
        AllOf((Term("tea"), Term("ship"))),
        Without(AnyOf((Term("crane"), Term("lamp"))), Term("cake")),
        Term("lamp", "text"),
    ],
)
def test_the_ratios_of_scores_are_those_of_bm25(store: Store, node: KeywordNode) -> None:
    records = corpus(150)
    store.entries.add(records, by="me")
    statistics = store.retrieval.term_statistics(sorted(bm25.query_tokens(node)))
    columns = [analyze_record(record) for record in records]
    average = sum(len(getattr(one, name).split()) for one in columns for name in COLUMNS) / len(columns)
    expected = {hit.id: hit.score for hit in bm25.score_records(node, records, statistics, average)}
    hits = store.retrieval.keyword(KeywordQuery(node), EVERYONE, 200).hits
    assert {hit.id for hit in hits} == expected.keys()
    best = hits[0]
    for hit in hits:
        assert hit.score / best.score == pytest.approx(expected[hit.id] / expected[best.id], rel=0.02)


def test_a_word_that_all_records_hold_still_has_a_positive_score(store: Store) -> None:
    store.files.apply([update("a.md", *["apple"] * 5)])
    hits = store.retrieval.keyword(KeywordQuery(Term("appl")), EVERYTHING, 10).hits
    assert len(hits) == 5 and all(hit.score > 0 for hit in hits)


def test_a_word_that_is_common_in_a_small_scope_weighs_little_there(store: Store) -> None:
    store.files.put_collection(Collection("boats", "/boats"))
    store.files.apply([update(f"{n}.md", f"something else {n}") for n in range(60)])
    store.files.apply([update("b.md", *[f"boat number {n}" for n in range(9)], "boat with a sail", collection="boats")])
    scope = Filters(collections=("boats",))
    hits = store.retrieval.keyword(KeywordQuery(AnyOf((Term("boat"), Term("sail")))), scope, 20).hits
    assert hits[0].id == "idbmd10"
    assert hits[0].score > 5 * hits[1].score


def test_equal_scores_keep_one_order(store: Store) -> None:
    store.files.apply([update("a.md", *["apple"] * 9)])
    first, second = (store.retrieval.keyword(KeywordQuery(Term("appl")), EVERYTHING, 5).hits for _ in range(2))
    assert first == second
    assert first == store.retrieval.keyword(KeywordQuery(Term("appl")), EVERYTHING, 9).hits[:5]


# ── what comes with the hits ──────────────────────────────────────────────────────────────────────────────────


def test_a_bonus_raises_hits_and_adds_none(store: Store) -> None:
    store.files.apply([update("a.md", "login page here", "page with a login", "a page", "plum")])
    plain = KeywordQuery(Term("login"))
    with_bonus = replace(plain, bonus=AnyOf((Phrase(("login", "page")), Term("plum"))), bonus_weight=0.5)
    before = {hit.id: hit.score for hit in store.retrieval.keyword(plain, EVERYTHING, 10).hits}
    after = store.retrieval.keyword(with_bonus, EVERYTHING, 10).hits
    assert [hit.id for hit in after] == ["idamd1", "idamd2"]
    assert after[0].score > before["idamd1"] and after[1].score == pytest.approx(before["idamd2"])
    bonus = store.retrieval.keyword(KeywordQuery(Phrase(("login", "page"))), EVERYTHING, 10).hits[0].score
    assert after[0].score == pytest.approx(before["idamd1"] + 0.5 * bonus, rel=0.02)


def test_statistics_count_a_small_scope_for_itself(store: Store) -> None:
    store.files.apply([update("a.md", "apple", "pear", "apple pear")])
    store.entries.add([memory_of("m")], by="me")
    query = KeywordQuery(Term("appl"), tokens=("appl", "pear", "unknown"))
    statistics = store.retrieval.keyword(query, Filters(kinds=("chunk",)), 10).statistics
    assert (statistics.records, dict(statistics.frequency)) == (3, {"appl": 2, "pear": 2, "unknown": 0})


def test_only_the_best_hits_are_described(store: Store) -> None:
    store.files.apply([update("a.md", "apple apple", "apple and something else")])
    found = store.retrieval.keyword(KeywordQuery(Term("appl"), tokens=("appl",), described=1), EVERYTHING, 10)
    assert (len(found.hits), found.matched_tokens) == (2, {"idamd1": {"appl"}})


def test_a_limit_bounds_the_hits(store: Store) -> None:
    store.files.apply([update("a.md", *["apple"] * 9)])
    assert len(store.retrieval.keyword(KeywordQuery(Term("appl")), EVERYTHING, 4).hits) == 4


# ── earlier states ────────────────────────────────────────────────────────────────────────────────────────────


def test_an_earlier_state_is_scored_as_if_it_were_in_the_index(store: Store) -> None:
    store.entries.add(corpus(100), by="me")
    present = store.retrieval.record("m007")
    assert present is not None
    past = replace(present, id="past")
    node = AnyOf((Term("tea"), Term("harbour"), Term("n7")))
    hits = store.retrieval.keyword(KeywordQuery(node, tokens=("n7",), described=9, past=(past,)), EVERYONE, 200)
    scores = {hit.id: hit.score for hit in hits.hits}
    assert scores["past"] == pytest.approx(scores["m007"], rel=0.05)
    assert hits.matched_tokens["past"] == {"n7"}
    assert next(hit.kind for hit in hits.hits if hit.id == "past") == "memory"


def test_an_earlier_state_that_does_not_match_is_left_out(store: Store) -> None:
    store.entries.add(corpus(10), by="me")
    past = Record("past", "memory", "nothing of it", agent="a")
    hits = store.retrieval.keyword(KeywordQuery(Term("tea"), past=(past,)), EVERYONE, 200).hits
    assert "past" not in {hit.id for hit in hits}


def test_the_active_space_comes_with_a_keyword_result(store: Store) -> None:
    store.files.apply([update("a.md", "apple")])
    assert store.retrieval.keyword(KeywordQuery(Term("appl")), EVERYTHING, 5).active_space == ""
