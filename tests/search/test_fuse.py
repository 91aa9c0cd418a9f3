from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.errors import UsageError
from mindex.search.boost import Boosts, boosts_for
from mindex.search.fuse import FUSIONS, Candidates, blend, fuse, minmax, rrf, standardised, weighted
from mindex.store.base import RankingSignals, ScoredRecord


def scored(**scores: float) -> tuple[ScoredRecord, ...]:
    return tuple(ScoredRecord(id_, score) for id_, score in sorted(scores.items(), key=lambda item: -item[1]))


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


@pytest.mark.parametrize("fusion", [minmax, weighted])
def test_a_single_hit_is_not_a_bad_one(fusion: object) -> None:
    assert fusion(Candidates(scored(a=0.3), (), has_vector=False))["a"].total == 1.0  # type: ignore[operator]


def test_blend_trusts_keywords_less_when_the_best_hit_matches_little_of_the_query() -> None:
    keyword = scored(a=5.0)
    sure = blend(Candidates(keyword, matched_share=1.0, model_fluency=1.0, cosine_zscores={"b": 3.0}))["a"].keyword
    unsure = blend(Candidates(keyword, matched_share=0.2, model_fluency=1.0, cosine_zscores={"b": 3.0}))["a"].keyword
    assert (sure, unsure) == (pytest.approx(0.5), pytest.approx(0.1))


def test_blend_trusts_vectors_little_where_the_model_does_not_read_the_language() -> None:
    fluent = blend(Candidates(cosine_zscores={"b": 6.0}, model_fluency=1.0))["b"].vector
    foreign = blend(Candidates(cosine_zscores={"b": 6.0}, model_fluency=0.0))["b"].vector
    assert (fluent, foreign) == (pytest.approx(0.5), pytest.approx(0.125))


def test_a_list_that_was_not_retrieved_leaves_all_the_weight_to_the_other() -> None:
    assert blend(Candidates(scored(a=5.0), has_vector=False))["a"].total == pytest.approx(1.0)
    assert blend(Candidates(cosine_zscores={"a": 6.0}, has_keyword=False))["a"].total == pytest.approx(1.0)


def test_a_background_of_few_records_is_shrunk_towards_the_models_own() -> None:
    alone = standardised(0.5, mean=0.5, std=0.0, size=1, background=(0.05, 0.11))
    crowd = standardised(0.5, mean=0.1, std=0.1, size=10_000, background=(0.05, 0.11))
    assert alone > 3
    assert crowd == pytest.approx(4.0, rel=0.01)
    assert standardised(-0.5, 0.1, 0.1, 100, (0.05, 0.11)) == 0.0


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
    fused = fuse(name, Candidates(scored(**keyword), scored(**vector), z), 0.5)
    assert set(fused) == {*keyword, *vector}
    assert all(part.total >= 0 for part in fused.values())


@pytest.mark.parametrize(
    ("domain", "instruction", "factor"),
    [("caching", False, 1.3), ("billing", True, 1.2), ("Caching", True, 1.56), ("billing", False, 1.0)],
)
def test_boosts_are_independent_and_stack(domain: str, instruction: bool, factor: float) -> None:
    product = 1.0
    for _, each in boosts_for(RankingSignals("x", "chunk", domain, instruction), "caching", Boosts(), 0):
        product *= each
    assert product == pytest.approx(factor)
