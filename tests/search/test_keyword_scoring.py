"""Keyword scores: adjacent words count more, and a record with more of the query ranks higher."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.datatypes import Answer, Hit, Phrase
from mindex.memory import Memory
from mindex.search.fuse import FUSIONS, Candidates, fuse
from mindex.search.query import parse_plain
from mindex.store.base import KeywordQuery, ScoredRecord
from tests.conftest import write
from tests.search.asking import moment, stages

Make = Callable[..., Memory]

BESIDE = "beside.md", "Our login page shows the weather every day.\n"
APART = "apart.md", "Our page shows the weather every login day.\n"
# The first says one word again and again, the second holds them all, each once in a long text.
REPEATS = "repeats.md", "Turbine turbine turbine turbine.\n"
HOLDS = (
    "holds.md",
    "The turbine hall has a spare bearing in a box below the stairs, next to the old lathe and a vice. Nobody has used "
    "them for years, but the caretaker oils both every spring, sweeps the floor, opens the windows and writes a line "
    "into the green book that lies on the shelf beside the door, so that whoever comes after him knows all of it.\n",
)
FILLER = {f"filler{n}.md": f"Nothing about it is said in note {n}, only hall {n}.\n" for n in range(6)}


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A memory without a model that contains these pages; the caller closes it."""

    def made(*pages: tuple[str, str], **options: object) -> Memory:
        memory = Memory(tmp_path / "memory.db", options={"embedding.provider": "none", **options})
        memory.index(write(tmp_path / "docs", {**FILLER, **dict(pages)}))
        return memory

    return made


def by_path(answer: Answer) -> dict[str, Hit]:
    return {hit.record.path: hit for hit in answer.hits}


def keyword_hits(memory: Memory, query: str) -> tuple[ScoredRecord, ...]:
    """What the store finds for plain words, with its own scores."""
    node = parse_plain(query).node
    assert node is not None
    return memory.store.retrieval.keyword(KeywordQuery(node), memory.filters(), 200).hits


def order(answer: Answer) -> list[str]:
    return [hit.record.path for hit in answer.hits]


# ── pairs ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("query", "pairs"),
    [
        ("login page errors", [("login", "page"), ("page", "error")]),
        ("state of the art review", [("art", "review")]),
        ("what is it", []),
        ("login", []),
        ("PolicyController fails", [("polici", "control"), ("control", "fail")]),
        ("page page page", [("page", "page")]),
        ("值班工程师 固件升级", []),
        ("redis 缓存 server", []),
        ("redis server 缓存 disk error", [("redi", "server"), ("disk", "error")]),
    ],
)
def test_the_pairs_of_a_query_are_its_neighbouring_words_and_never_span_a_stop_word(
    query: str, pairs: list[tuple[str, str]]
) -> None:
    assert list(parse_plain(query).pairs) == [Phrase(pair) for pair in pairs]


@given(st.text())
def test_a_pair_is_always_of_two_words_of_the_query(query: str) -> None:
    parsed = parse_plain(query)
    for pair in parsed.pairs:
        assert len(pair.tokens) == 2
        assert set(pair.tokens) <= set(parsed.tokens)


def test_words_side_by_side_beat_the_same_words_apart(make: Make) -> None:
    with make(BESIDE, APART) as memory:
        hits = by_path(memory.search("login page"))
    assert hits["beside.md"].score > hits["apart.md"].score
    assert hits["beside.md"].trace.keyword_score > hits["apart.md"].trace.keyword_score  # type: ignore[operator]


def test_without_a_weight_for_pairs_only_the_words_count(make: Make) -> None:
    with make(BESIDE, APART, **{"search.weights.pairs": 0}) as memory:
        hits = by_path(memory.search("login page"))
    assert hits["beside.md"].score == pytest.approx(hits["apart.md"].score)


def test_words_with_a_stop_word_between_them_are_not_a_pair(make: Make) -> None:
    with make(("a.md", "A login to the page of ours.\n"), ("b.md", "The page of ours, a login to.\n")) as memory:
        hits = by_path(memory.search("login to the page"))
    assert hits["a.md"].score == pytest.approx(hits["b.md"].score)


def test_an_identifier_counts_more_if_its_parts_are_together(make: Make) -> None:
    together = "a.md", "Whatever the policy controller decides is final.\n"
    apart = "b.md", "Whatever policy the final controller decides is.\n"
    with make(together, apart) as memory:
        hits = by_path(memory.search("PolicyController"))
    assert hits["a.md"].score > hits["b.md"].score


# ── coverage ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_text_with_all_the_words_beats_one_that_repeats_one_of_them(make: Make) -> None:
    with make(REPEATS, HOLDS) as memory:
        assert order(memory.search("spare turbine lathe"))[0] == "holds.md"
        raw = keyword_hits(memory, "turbine vice")
        paths = {record.id: record.path for record in memory.store.retrieval.records([hit.id for hit in raw])}
        assert [paths[hit.id] for hit in raw[:2]] == ["repeats.md", "holds.md"], "BM25 alone prefers the repetition"
        assert order(memory.search("turbine vice"))[0] == "holds.md"


def test_without_a_weight_for_coverage_it_is_bm25_that_decides_the_order_by_keyword(make: Make) -> None:
    with make(REPEATS, HOLDS, **{"search.weights.coverage": 0}) as memory:
        assert order(memory.search("turbine vice", mode="keyword"))[0] == "repeats.md"


def test_relevance_follows_what_a_hit_holds_itself(make: Make) -> None:
    with make(REPEATS, HOLDS) as memory:
        hits = by_path(memory.search("turbine vice", floor=0))
    assert not hits["holds.md"].weak
    assert hits["repeats.md"].relevance < 0.3


def test_an_unknown_word_counts_as_missing(make: Make) -> None:
    with make(HOLDS) as memory:
        (known,) = memory.search("turbine bearing").hits
        (unknown,) = memory.search("turbine zeppelin", floor=0).hits
    assert known.trace.matched_share == pytest.approx(1.0)
    assert unknown.trace.matched_share is not None
    assert 0 < unknown.trace.matched_share < 0.6


@pytest.mark.parametrize("query", ["PolicyController", "policycontroller", "Policy Controller"])
def test_a_whole_identifier_matches_its_parts(make: Make, query: str) -> None:
    """`PolicyController` is asked in parts and whole; a text that writes it in one word holds it all the same."""
    with make(("a.md", "The policycontroller decides.\n"), ("b.md", "The PolicyController decides.\n")) as memory:
        hits = by_path(memory.search(query))
    assert hits["b.md"].relevance > 0.8
    if query != "Policy Controller":
        assert hits["a.md"].relevance > 0.8


@pytest.mark.parametrize("query", ["值", "东", "值 东", "Tokyo 值"])
def test_a_single_chinese_character_is_found_by_the_pairs_it_begins(make: Make, query: str) -> None:
    with make(("zh.md", "# Tokyo\n\n东京的值班工程师每周一交接。\n")) as memory:
        answer = memory.search(query)
    assert (answer.tier, order(answer)) == ("keyword", ["zh.md"])
    assert answer.hits[0].trace.matched_share == pytest.approx(1.0)


@pytest.mark.parametrize("query", ["C++", "c#", "v2.1.4", "a.b.c", "x_y"])
def test_every_hit_has_a_score_above_zero(make: Make, query: str) -> None:
    with make(("a.md", "cplusplus csharp v2_1_4 2_1_4 a_b_c x_y\n"), ("b.md", "C++ c# v2.1.4 a.b.c x_y\n")) as memory:
        hits = by_path(memory.search(query))
    assert hits["b.md"].score > 0
    assert hits["b.md"].relevance > 0.9


# ── only for blend, and only for plain words ──────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("fusion", [name for name, one in FUSIONS.items() if not one.refines_words])
@pytest.mark.parametrize("query", ["login page", "turbine vice", "hall weather day"])
def test_the_other_fusions_score_bm25_as_it_is(make: Make, fusion: str, query: str) -> None:
    """They are formulas of other programs: what goes in is the engine's score, and what comes out is theirs."""
    with make(BESIDE, APART, REPEATS, HOLDS) as memory:
        answer = memory.search(query, fusion=fusion, floor=0, limit=50)
        raw = keyword_hits(memory, query)
        expected = fuse(fusion, Candidates(raw, has_vector=False), memory._search._ranking.weights[fusion])
    assert len(answer.hits) == len(raw)
    for hit in answer.hits:
        assert stages(hit).get("keyword", 0.0) == pytest.approx(expected[hit.record.id].keyword)
        assert hit.trace.keyword_score == pytest.approx({one.id: one.score for one in raw}[hit.record.id])


def test_reciprocal_ranks_are_those_of_bm25(make: Make) -> None:
    with make(REPEATS, HOLDS) as memory:
        answer = memory.search("turbine vice", fusion="rrf", floor=0)
    assert order(answer)[:2] == ["repeats.md", "holds.md"]
    assert [hit.score for hit in answer.hits[:2]] == pytest.approx([1 / 61, 1 / 62])


@pytest.mark.parametrize("query", ["login AND page", "login OR page", "content:page", "log* page", "page NOT turbine"])
def test_a_strict_query_is_ranked_by_bm25_alone_and_matched_wholly_by_each_hit(make: Make, query: str) -> None:
    with make(BESIDE, APART) as memory:
        hits = by_path(memory.search(query))
    assert set(hits) == {"beside.md", "apart.md"}
    assert hits["beside.md"].score == pytest.approx(hits["apart.md"].score)
    assert {hit.trace.matched_share for hit in hits.values()} == {1.0}


# ── many equals, pages, the past ──────────────────────────────────────────────────────────────────────────────


def pages_of(memory: Memory, query: str, size: int) -> list[Hit]:
    found: list[Hit] = []
    while True:
        page = memory.search(query, limit=size, offset=len(found), floor=0)
        found += page.hits
        if not page.has_more:
            return found


def test_more_than_fifty_equals_are_all_reached_each_once_and_equally_relevant(make: Make) -> None:
    alike = [(f"equal{n:03}.md", f"The lighthouse of bay{n:03} blinks.\n") for n in range(120)]
    with make(*alike) as memory:
        found = pages_of(memory, "lighthouse", 7)
        whole = pages_of(memory, "lighthouse", 50)
    assert [hit.record.id for hit in found] == [hit.record.id for hit in whole]
    assert len({hit.record.id for hit in found}) == len(found) == 120
    assert len({round(hit.score, 9) for hit in found}) == 1
    assert {round(hit.relevance, 9) for hit in found} == {round(found[0].relevance, 9)}
    assert found[0].trace.matched_share == pytest.approx(1.0)


def test_those_that_were_not_looked_at_never_pass_those_that_were(make: Make) -> None:
    both = [(f"both{n:03}.md", f"The lighthouse blinks over quay number{n:03}.\n") for n in range(60)]
    one = [(f"one{n:03}.md", f"The lighthouse blinks over cliff number{n:03}.\n") for n in range(60)]
    with make(*one, *both) as memory:
        found = [hit.record.path for hit in pages_of(memory, "quay lighthouse", 50)]
    assert len(found) == 120
    assert {path[:4] for path in found[:60]} == {"both"}


@pytest.mark.parametrize("query", ["login page weather", "hall note", "turbine hall vice", "lighthouse day"])
def test_the_first_hit_depends_on_neither_limit_nor_offset(make: Make, query: str) -> None:
    alike = [(f"equal{n:03}.md", f"The lighthouse of bay{n:03} blinks day and night.\n") for n in range(70)]
    with make(BESIDE, APART, REPEATS, HOLDS, *alike) as memory:
        whole = [hit.record.id for hit in memory.search(query, floor=0, limit=50).hits]
        for limit in (1, 2, 10):
            first = memory.search(query, floor=0, limit=limit).hits
            assert [hit.record.id for hit in first] == whole[:limit]
        second = memory.search(query, floor=0, limit=3, offset=1).hits
        assert [hit.record.id for hit in second] == whole[1:4]


def test_entries_of_the_past_are_refined_like_those_of_the_present(keyword_memory: Memory) -> None:
    memory = keyword_memory
    for n in range(6):
        memory.add(f"Nothing of that is in note {n}")
    beside, apart = memory.add(BESIDE[1]).id, memory.add(APART[1]).id
    repeats, holds = memory.add(REPEATS[1]).id, memory.add(HOLDS[1]).id
    then = moment()
    for id_ in (beside, apart, repeats, holds):
        memory.update(id_, text=f"Something else entirely {id_}")
    assert memory.search("login page").hits == memory.search("turbine vice").hits == ()
    login = memory.search("login page", as_of=then).hits
    assert [hit.record.id for hit in login] == [beside, apart]
    assert login[0].score > login[1].score
    assert [hit.record.text for hit in login] == [BESIDE[1].strip(), APART[1].strip()]
    turbine = {hit.record.id: hit for hit in memory.search("turbine vice", as_of=then).hits}
    assert not turbine[holds].weak
    assert turbine[repeats].weak


def test_a_single_character_of_the_past_matches_the_pairs_it_begins(keyword_memory: Memory) -> None:
    told = keyword_memory.add("东京的值班工程师每周一交接").id
    then = moment()
    keyword_memory.update(told, text="Something else entirely")
    (hit,) = keyword_memory.search("值", as_of=then).hits
    assert hit.record.id == told
    assert hit.trace.matched_share == pytest.approx(1.0)


@pytest.mark.model
def test_a_long_page_that_holds_the_one_rare_word_asked_for_is_relevant(tmp_path: Path) -> None:
    tail = " ".join(f"It says word{n} and number{n} of the list." for n in range(60))
    pages = {f"also{n}.md": f"Beside it stands dedupe, as number {n} of those that are used.\n" for n in range(20)}
    pages["long.md"] = f"# Remove copies\n\nThe command dedupe simplifies the tree. {tail}\n"
    with Memory(tmp_path / "memory.db") as memory:
        memory.index(write(tmp_path / "docs", {**FILLER, **pages}))
        hits = by_path(memory.search("dedupe", limit=30, weak=False))
    assert not hits["long.md"].weak and not hits["also1.md"].weak
