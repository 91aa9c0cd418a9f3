"""The judgement: its evidence as numbers, its sum, and what names, neighbours and other wordings add to it."""

from __future__ import annotations

from math import isclose, log

import pytest

from mindex.search.candidates import Candidates
from mindex.search.judgement import (
    Scores,
    add_names,
    add_neighbours,
    add_variant,
    boost_change,
    evidence,
    judge,
    relevance,
    stands_out,
)
from mindex.search.judgement_weights import (
    BY_WORDS,
    MIN_COSINE,
    MIN_LOG_ODDS,
    MIN_SURPRISE,
    NAMED,
    NEIGHBOUR,
    TERMS,
    WITH_VECTORS,
)
from mindex.search.keyword_scoring import KeywordWeights, keyword_candidates
from mindex.search.query import parse
from mindex.store.base import KeywordResult, ScoredRecord, TermStatistics

PAGE = ScoredRecord("page", 4.0, "chunk")
OTHER = ScoredRecord("other", 8.0, "chunk")
MEMORY = ScoredRecord("memory", 2.0, "memory", length=200)


def _plain(values: dict[str, float]) -> Scores:
    return Scores(values, lambda _id: ())


def _evidence(candidates: Candidates, id_: str) -> dict[str, float]:
    return dict(zip(TERMS, evidence(candidates)[id_][1], strict=True))


def test_the_evidence_of_a_candidate_that_words_and_vectors_found() -> None:
    candidates = Candidates(
        keyword=(OTHER, PAGE),
        vector=(PAGE, MEMORY),
        cosines={"page": 0.5, "memory": 0.2},
        matched_shares={"page": 0.75, "other": 0.5},
        surprises={"page": 55.0, "other": 12.0},
        fluency={"page": 0.8, "memory": 0.6},
        words=3,
        is_question=True,
        looked_up=frozenset({"page"}),
        strict=True,
        capped=True,
    )
    assert _evidence(candidates, "page") == pytest.approx(
        {
            "kind": 1, "cosine": 10 * 0.8 * 0.2, "unread": 0.2, "keyword": 0.5, "unread_keyword": 0.1,
            "matched_share": 0.75, "surprise": 4.0, "look_up": 1, "length": 0, "words": log(4) - 1.5, "question": 1,
            "unlisted": 0, "strict": 6,
        }
    )  # fmt: skip
    # Not among the nearest: as near as the last of its kind, and as fluent as the others are on average.
    other = _evidence(candidates, "other")
    assert (other["cosine"], other["unread"]) == pytest.approx((10 * 0.7 * 0.2, 0.3))
    assert (other["surprise"], other["look_up"]) == pytest.approx((1.2, 0))
    memory = _evidence(candidates, "memory")
    assert (memory["keyword"], memory["matched_share"], memory["unlisted"]) == (0, 0, 1)
    assert memory["length"] == pytest.approx(log(200) - 5)
    assert memory["cosine"] == pytest.approx(10 * 0.6 * -0.1)


def test_a_record_without_a_vector_is_judged_by_words() -> None:
    candidates = Candidates(
        keyword=(PAGE, MEMORY), vector=(MEMORY,), cosines={"memory": 0.4}, unembedded=frozenset({"page"})
    )
    found = evidence(candidates)
    assert (found["page"][0], found["memory"][0]) == (BY_WORDS["file"], WITH_VECTORS["entry"])
    assert evidence(Candidates(keyword=(MEMORY,)))["memory"][0] == BY_WORDS["entry"]


def test_the_log_odds_are_the_sum_of_the_terms_that_are_shown() -> None:
    candidates = Candidates(keyword=(PAGE,), matched_shares={"page": 0.5}, surprises={"page": 8.0}, words=20)
    scores = judge(candidates)
    values = _evidence(candidates, "page")
    assert values["words"] == log(13) - 1.5 and values["question"] == 0  # no more than twelve words count
    expected = {name: weight * values[name] for name, weight in zip(TERMS, BY_WORDS["file"], strict=True)}
    assert {one.name: one.change for one in scores.stages("page")} == {k: v for k, v in expected.items() if v}
    assert isclose(scores.total["page"], sum(expected.values()))


def test_a_name_that_several_pages_share_is_weaker() -> None:
    scores = _plain(dict.fromkeys("abcd", 0.0))
    names = {"a": ("title", 1.0), "b": ("title", 1.0), "c": ("heading", 1.0), "d": ("title", 0.7)}
    add_names(scores, names, {"a": "1", "b": "2", "c": "3", "d": "4"})
    assert scores.total == {
        "a": NAMED["title"] / (1 + log(2)),  # the other one that is called exactly so
        "b": NAMED["title"] / (1 + log(2)),
        "c": NAMED["heading"],
        "d": NAMED["title"] * (0.7 / (1 + log(3))),
    }


def test_the_best_turn_beside_it_lifts_a_turn() -> None:
    scores = _plain({"good": 2.0, "fair": 0.0, "turn": -1.0})
    add_neighbours(scores, [("good", "turn"), ("fair", "turn"), ("good", "absent"), ("absent", "fair")])
    assert scores.total == {"good": 2.0, "fair": 0.0, "turn": -1.0 + NEIGHBOUR * relevance(2.0)}


def test_boosts_multiply_the_odds() -> None:
    assert boost_change(1.3 * 1.2) == pytest.approx(boost_change(1.3) + boost_change(1.2))
    assert boost_change(1.0) == 0 and boost_change(0) < -5


def test_a_candidate_stands_out_by_its_odds_its_cosine_or_its_words() -> None:
    nothing = Candidates()
    assert stands_out(_plain({"a": MIN_LOG_ODDS}), nothing)
    assert not stands_out(_plain({"a": MIN_LOG_ODDS - 0.01}), nothing) and not stands_out(_plain({}), nothing)
    assert stands_out(_plain({}), Candidates(cosines={"a": MIN_COSINE}))
    assert stands_out(_plain({}), Candidates(surprises={"a": MIN_SURPRISE}))
    assert not stands_out(_plain({}), Candidates(surprises={"a": MIN_SURPRISE - 1}))


def test_another_wording_adds_hits_below_and_lifts_those_that_it_finds_better() -> None:
    variant = Candidates(
        keyword=(OTHER, PAGE), matched_shares={"page": 1.0, "other": 1.0}, surprises={"page": 30.0, "other": 30.0}
    )
    odds = judge(variant).total
    low, high = -5.0, odds["page"] + 4
    lifted = add_variant(_plain({"page": low}), variant, 1.0)
    assert lifted.total == pytest.approx({"page": odds["page"] - 0.5, "other": odds["other"] - 0.5})
    kept = add_variant(_plain({"page": high}), variant, 1.0)
    assert kept.total["page"] == high
    halved = add_variant(_plain({"page": low}), variant, 0.5)
    assert halved.total["page"] == pytest.approx(odds["page"] - 0.5 + log(0.5))
    capped = add_variant(_plain({"page": 0.1}), variant, 1.0)
    assert capped.total["other"] == pytest.approx(min(odds["other"], 0.1) - 0.5)


def test_a_keyword_hit_with_more_of_the_query_ranks_first_by_the_weight_of_coverage() -> None:
    found = KeywordResult(
        (ScoredRecord("half", 5.0, "chunk"), ScoredRecord("whole", 4.0, "chunk")),
        TermStatistics(100, {"redi": 5, "cach": 5}),
        {"half": frozenset({"redi"}), "whole": frozenset({"redi", "cach"})},
    )
    parsed = parse("redis cache")
    as_found = keyword_candidates(found, parsed, KeywordWeights(pairs=0.5, coverage=0.0))
    by_coverage = keyword_candidates(found, parsed, KeywordWeights(pairs=0.5, coverage=1.0))
    assert [hit.id for hit in as_found.hits] == ["half", "whole"]
    assert [(hit.id, hit.score) for hit in by_coverage.hits] == [("whole", 4.0), ("half", pytest.approx(2.5))]


def test_among_equals_the_newer_is_first() -> None:
    scores = _plain({"a": 1.0, "b": 1.0, "c": 2.0})
    scores.times = {"a": 10, "b": 20, "c": 5}
    assert scores.ordered() == ["c", "b", "a"]
    assert scores.ordered(["a", "b"]) == ["b", "a"]


def test_ids_decide_among_more_equals_than_are_always_read() -> None:
    many = [f"{n:02}" for n in range(60)]
    scores = _plain(dict.fromkeys(many, 1.0))
    scores.times = {id_: int(id_) for id_ in many[:50]}
    assert scores.ordered() == many


@pytest.mark.parametrize("weights", [WITH_VECTORS, BY_WORDS])
def test_more_cosine_and_better_words_never_lower_a_judgement(weights: dict[str, tuple[float, ...]]) -> None:
    rising = ("cosine", "keyword", "unread_keyword", "matched_share", "surprise", "look_up")
    for own in weights.values():
        assert all(own[TERMS.index(name)] >= 0 for name in rising)
