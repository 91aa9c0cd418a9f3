from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.errors import UsageError
from mindex.search.boost import Boosts, boosts_for
from mindex.search.candidates import Candidates, SignalWeights, z_score
from mindex.search.fuse import FUSIONS, ListWeights, blend, fuse, minmax, rrf, signals, weighted
from mindex.store.base import RankingSignals, ScoredRecord


def scored(kind: str = "chunk", /, **scores: float) -> tuple[ScoredRecord, ...]:
    return tuple(ScoredRecord(id_, score, kind) for id_, score in sorted(scores.items(), key=lambda item: -item[1]))


def test_reciprocal_rank_fusion_gives_the_seeds_table() -> None:
    keyword = scored(ttl=3.0, connection=2.0, invalidation=1.0)
    vector = scored(invalidation=0.9, ttl=0.8, eviction=0.7)
    fused = {id_: part.total for id_, part in rrf(Candidates(keyword, vector)).items()}
    expected = {"ttl": 0.03252, "invalidation": 0.03226, "connection": 0.01613, "eviction": 0.01587}
    assert fused == pytest.approx(expected, abs=1e-5)  # the seed adds rounded numbers


def test_a_record_in_both_lists_outranks_one_in_one_list() -> None:
    keyword = (*(ScoredRecord(f"k{n}", 100 - n) for n in range(50)), ScoredRecord("both", 1))
    vector = (*(ScoredRecord(f"v{n}", 1 - n / 100) for n in range(50)), ScoredRecord("both", 0.1))
    fused = rrf(Candidates(keyword, vector))
    assert max(fused, key=lambda id_: fused[id_].total) == "both"


def test_minmax_is_sixty_to_forty() -> None:
    fused = minmax(Candidates(scored(a=4.0, b=2.0), scored(b=0.9, a=0.5)))
    assert fused["a"].total == pytest.approx(0.4)
    assert fused["b"].total == pytest.approx(0.6)


def test_weighted_is_seventy_to_thirty_over_the_distance_between_unit_vectors() -> None:
    fused = weighted(Candidates(scored(a=4.0, b=2.0), scored(a=1.0, b=0.5)))
    assert fused["a"].total == pytest.approx(0.7 + 0.3)
    assert fused["b"].total == pytest.approx(0.7 * (1 - 1 / 2))


def test_weights_of_a_query_are_added_as_they_are() -> None:
    both = Candidates(scored(a=4.0, b=2.0), scored(a=1.0, b=0.5))
    fused = fuse("weighted", both, 0.7, ListWeights(vector=0.5, keyword=1.0))
    assert fused["a"].total == pytest.approx(0.5 * 1 + 1.0 * 1)
    assert fused["b"].total == pytest.approx(0.5 * (1 - 1 / 2))
    assert fuse("weighted", both, 0.7, ListWeights(0.7, 0.3)) == pytest.approx(weighted(both))


@pytest.mark.parametrize("fusion", ["minmax", "weighted", "rrf"])
def test_weights_of_a_query_do_nothing_to_a_list_that_is_alone(fusion: str) -> None:
    alone = Candidates(scored(a=4.0, b=2.0), has_vector=False)
    ratio = {id_: part.total for id_, part in fuse(fusion, alone, 0.5 if fusion != "rrf" else 60).items()}
    weighed = fuse(fusion, alone, 0.5 if fusion != "rrf" else 60, ListWeights(0.9, 0.1))
    assert weighed["a"].total >= weighed["b"].total
    if fusion != "rrf":
        assert {id_: part.total for id_, part in weighed.items()} == ratio


def test_equal_weights_leave_reciprocal_rank_fusion_as_it_is() -> None:
    both = Candidates(scored(a=4.0, b=2.0), scored(b=0.9, c=0.8))
    assert fuse("rrf", both, 60, ListWeights(0.4, 0.4)) == rrf(both)
    assert fuse("rrf", both, 60, ListWeights(1.0, 0.0))["a"].total == 0


def test_importance_recency_and_frequency_share_what_the_text_leaves_them() -> None:
    known = {"a": RankingSignals("a", "memory", importance=10, created_at=0, access_count=99)}
    given = Candidates(scored(a=2.0), has_vector=False, signals=known, now=0)
    assert signals(given, 0.4)["a"].total == pytest.approx(1.0)
    only_frequency = replace(
        given, signal_weights=SignalWeights(0, 0, 1), signals={"a": replace(known["a"], access_count=9)}
    )
    assert signals(only_frequency, 0.4)["a"].signals == pytest.approx(0.6 * 0.5)
    nothing = replace(given, signal_weights=SignalWeights(0, 0, 0))
    assert signals(nothing, 0.4)["a"].total == pytest.approx(0.4)


@pytest.mark.parametrize("fusion", [minmax, weighted])
def test_a_single_hit_is_not_a_bad_one(fusion: object) -> None:
    assert fusion(Candidates(scored(a=0.3), (), has_vector=False))["a"].total == 1.0  # type: ignore[operator]


def test_blend_trusts_keywords_less_when_the_best_hit_matches_little_of_the_query() -> None:
    keyword = scored("chunk", a=5.0)
    sure, unsure = (blend(Candidates(keyword, matched_shares={"a": share}))["a"].keyword for share in (1.0, 0.2))
    assert (sure, unsure) == (pytest.approx(0.6), pytest.approx(0.6 * 0.2**1.5))


def test_blend_trusts_vectors_little_where_the_model_does_not_read_the_language() -> None:
    vector = scored("chunk", b=0.7)
    fluent, foreign = (
        blend(Candidates((), vector, {"b": 6.0}, fluency={"b": fluency}))["b"].vector for fluency in (1.0, 0.0)
    )
    assert (fluent, foreign) == (pytest.approx(0.4), pytest.approx(0.1))


def test_a_list_that_was_not_retrieved_leaves_all_the_weight_to_the_other() -> None:
    keyword, vector = scored("chunk", a=5.0), scored("chunk", a=0.7)
    assert blend(Candidates(keyword, matched_shares={"a": 1.0}, has_vector=False))["a"].total == pytest.approx(1.0)
    assert blend(Candidates((), vector, {"a": 6.0}, has_keyword=False))["a"].total == pytest.approx(1.0)


def test_a_cosine_is_counted_in_deviations_above_unrelated_texts() -> None:
    assert z_score(0.49, (0.05, 0.11)) == pytest.approx(4.0)
    assert 0 < z_score(-0.5, (0.05, 0.11)) < z_score(-0.4, (0.05, 0.11)) < 0.01


def test_an_unknown_fusion_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="blend, rrf, minmax, weighted, signals"):
        fuse("magic", Candidates(), 0.5)


@pytest.mark.parametrize("name", FUSIONS)
@given(
    st.dictionaries(st.sampled_from("abcdef"), st.floats(0.01, 30)),
    st.dictionaries(st.sampled_from("abcdef"), st.floats(-1, 1)),
)
def test_every_fusion_scores_the_union_and_never_below_zero(
    name: str, keyword: dict[str, float], vector: dict[str, float]
) -> None:
    z = {id_: max(0.0, cosine * 5) for id_, cosine in vector.items()}
    fused = fuse(name, Candidates(scored("chunk", **keyword), scored("chunk", **vector), z), 0.5)
    assert set(fused) == {*keyword, *vector}
    assert all(part.total >= 0 for part in fused.values())


@pytest.mark.parametrize(
    ("domain", "instruction", "factor"),
    [("caching", False, 1.3), ("billing", True, 1.2), ("Caching", True, 1.56), ("billing", False, 1.0)],
)
def test_boosts_are_independent_and_stack(domain: str, instruction: bool, factor: float) -> None:
    product = 1.0
    for _, each in boosts_for(
        RankingSignals("x", "chunk", domain, instruction),
        "caching",
        Boosts(domain=1.3, instruction=1.2, memory=0.05, decay=0.0),
        0,
    ):
        product *= each
    assert product == pytest.approx(factor)
