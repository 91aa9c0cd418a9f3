from __future__ import annotations

from pathlib import Path

import pytest

from mindex.errors import UsageError
from mindex.store.base import Store
from mindex_eval.assessment import EvaluationOptions
from mindex_eval.foreign_topics import foreign_topics
from mindex_eval.language_detection import language_of
from tests.mindex_eval.conftest import beir_set, titled_set

SPANISH = {
    "e1": ("Pan", "El pan se hornea a doscientos grados durante una hora."),
    "e2": ("Té", "El té verde es amargo."),
}
SPANISH_QUESTIONS = {"p1": ("¿Cuánto tiempo se hornea el pan?", {"e1": 1})}


@pytest.mark.parametrize(
    ("language", "texts"),
    [
        ("en", ["When should the roses be cut back?", "What keeps slugs off the lettuce?"]),
        ("es", ["¿Cuántos puntos dejaron escapar en defensa los Panthers?", "¿Qué es la fuerza?"]),
        ("zh", ["黑豹队的防守丢了多少分？", "NFL 的球队"]),
        ("ja", ["日本の首都はどこですか？", "東京です"]),
        ("de", ["Wie lange wird das Brot gebacken?", "Wer hat die Brücke gebaut und wann?"]),
        ("fr", ["Quelle est la hauteur de la tour ?", "Qui a peint les nymphéas dans le jardin ?"]),
        ("ru", ["Когда цветут розы?"]),
        ("und", ["42", "xyzzy"]),
    ],
)
def test_a_language_is_known_by_its_script_or_its_small_words(language: str, texts: list[str]) -> None:
    assert language_of(texts) == language


def test_foreign_questions_are_refused_and_own_ones_answered(garden: Path, stars: Path, cache: Store) -> None:
    found = foreign_topics([garden, stars], EvaluationOptions(), cache)
    assert [(pair.questions, pair.texts) for pair in found.pairs] == [("stars", "garden"), ("garden", "stars")]
    assert found.floor == 0.5
    for pair in found.pairs:
        assert (pair.own, pair.foreign) in {(7, 4), (4, 7)}
        assert pair.auroc > 0.9
        assert pair.silenced <= 0.5  # by words alone
        assert pair.refused >= 0.5


def test_the_floor_of_the_settings_decides_what_is_silent(garden: Path, stars: Path, cache: Store) -> None:
    nothing = foreign_topics([garden, stars], EvaluationOptions(settings={"search.floor": "1.0"}), cache)
    assert all(pair.refused == pair.silenced == 1.0 for pair in nothing.pairs)
    everything = foreign_topics([garden, stars], EvaluationOptions(settings={"search.floor": "0.0"}), cache)
    assert all(pair.silenced == 0.0 for pair in everything.pairs)
    assert [pair.auroc for pair in nothing.pairs] == [pair.auroc for pair in everything.pairs]


def test_other_floors_are_reported_without_another_search(garden: Path, stars: Path, cache: Store) -> None:
    found = foreign_topics([garden, stars], EvaluationOptions(), cache)
    assert [one.silenced for one in found.floors] == sorted(one.silenced for one in found.floors)
    assert [one.refused for one in found.floors] == sorted(one.refused for one in found.floors)
    for one in found.floors[::4]:
        really = foreign_topics([garden, stars], EvaluationOptions(settings={"search.floor": str(one.floor)}), cache)
        assert one.silenced == pytest.approx(sum(pair.silenced for pair in really.pairs) / 2)
        assert one.refused == pytest.approx(sum(pair.refused for pair in really.pairs) / 2)
        assert one.lowest_refused == pytest.approx(min(pair.refused for pair in really.pairs))


def test_only_sets_in_one_language_are_paired(tmp_path: Path, garden: Path, stars: Path, cache: Store) -> None:
    spanish = titled_set(tmp_path / "pan", SPANISH, SPANISH_QUESTIONS)
    found = foreign_topics([garden, spanish, stars], EvaluationOptions(), cache)
    assert found.languages == {"garden": "en", "pan": "es", "stars": "en"}
    assert len(found.pairs) == 2
    assert found.notes == ("pan is the only set in its language (es)",)
    with pytest.raises(UsageError, match="no two of these sets are in one language"):
        foreign_topics([garden, spanish], EvaluationOptions(), cache)


def test_a_foreign_question_is_put_to_one_group_like_any_other(tmp_path: Path, stars: Path, cache: Store) -> None:
    corpus = [
        {
            "_id": f"{group}{n}",
            "text": f"The {word} is ripe in May.",
            "group": group,
            "speaker": "Ada",
            "date": "2024-01-02",
        }
        for group, word in (("a", "kumquat"), ("b", "quince"))
        for n in range(2)
    ]
    asked = [
        {"_id": f"q{group}", "text": f"When is the {word} ripe?", "group": group}
        for group, word in (("a", "kumquat"), ("b", "quince"))
    ]
    talks = beir_set(tmp_path / "talks", corpus, asked, [("qa", "a0", 1), ("qb", "b0", 1)])
    found = foreign_topics([talks, stars], EvaluationOptions(), cache)
    pair = next(pair for pair in found.pairs if pair.texts == "talks")
    assert (pair.own, pair.foreign, pair.silenced) == (2, 4, 0.0)


def test_a_sample_bounds_the_questions_of_each_pair(garden: Path, stars: Path, cache: Store) -> None:
    found = foreign_topics([garden, stars], EvaluationOptions(sample=3), cache)
    assert {(pair.own, pair.foreign) for pair in found.pairs} == {(3, 3)}


@pytest.mark.model
def test_with_the_real_model_topics_are_distinguished(garden: Path, stars: Path, model_cache: Store) -> None:
    found = foreign_topics([garden, stars], EvaluationOptions(), model_cache)
    assert found.model == "mindex-minilm"
    assert all(pair.auroc > 0.95 and pair.silenced <= 0.25 and pair.refused >= 0.75 for pair in found.pairs)
