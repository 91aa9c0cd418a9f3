"""Small sets made for the tests, and a cache that no other test has written to."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pytest

from mindex.datatypes import Answer, Hit, Record
from mindex.store.base import Store
from mindex_eval.cached_models import open_cache
from mindex_eval.run_questions import QuestionResult

GARDEN = {
    "g1": ("Watering", "Tomatoes in pots need water every morning in July, and twice on hot days."),
    "g2": ("Pruning", "Cut roses back to three buds at the end of winter, above a bud that looks outwards."),
    "g3": ("Compost", "Kitchen peelings and dry leaves in equal parts keep the heap from smelling."),
    "g4": ("Slugs", "A ring of copper tape round the bed keeps slugs away from lettuce."),
    "g5": ("Seedlings", "Sow basil indoors in April and move it outside after the last frost."),
    "g6": ("Soil", "Heavy clay becomes crumbly when sand and old manure are dug in each autumn."),
    "g7": ("Bees", "Lavender and borage bring bees to the beans, which set more pods."),
    "g8": ("Apples", "Store apples in a cool cellar, none of them touching another."),
    "g9": ("Lawn", "Mow the lawn high in a dry summer; short grass burns."),
    "g10": ("Mulch", "Straw between the strawberries keeps the fruit clean and the ground damp."),
}
GARDEN_QUESTIONS = {
    "q1": ("How often do tomatoes in pots need water?", {"g1": 1}),
    "q2": ("When should roses be cut back?", {"g2": 1}),
    "q3": ("What keeps slugs off the lettuce?", {"g4": 1}),
    "q4": ("How are apples stored over winter?", {"g8": 1}),
    "q5": ("Which plants bring bees in summer?", {"g7": 2, "g9": 1}),
    "q6": ("What is done against heavy clay?", {"g6": 1}),
    # No word of it is in its answer.
    "q7": ("Where does fruit last for months without rotting?", {"g8": 1}),
}
STARS = {
    "s1": ("Telescopes", "A mirror of twenty centimetres shows the rings of Saturn and the moons of Jupiter."),
    "s2": ("Eclipses", "The moon covers the sun for seven minutes at most during a total eclipse."),
    "s3": ("Comets", "A comet's tail always points away from the sun, pushed by the solar wind."),
    "s4": ("Galaxies", "Andromeda approaches the Milky Way at a hundred kilometres per second."),
    "s5": ("Meteors", "The Perseids reach their peak on the twelfth of August, after midnight."),
    "s6": ("Satellites", "The space station crosses the sky in six minutes and never blinks."),
}
STARS_QUESTIONS = {
    "a1": ("Which mirror shows the rings of Saturn?", {"s1": 1}),
    "a2": ("How long does the moon cover the sun in a total eclipse?", {"s2": 1}),
    "a3": ("Where does a comet's tail point?", {"s3": 1}),
    "a4": ("When do the Perseids reach their peak?", {"s5": 1}),
}


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keyword only, and nothing kept from any other test."""
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def cache(no_model: None) -> Iterator[Store]:
    store = open_cache()
    yield store
    store.close()


@pytest.fixture
def with_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The real models, their ready copies shared, what they said in this test kept apart."""
    for room in ("cached_models", "populate"):
        monkeypatch.setattr(f"mindex_eval.{room}.evaluation_folder", lambda: tmp_path / "eval")


@pytest.fixture
def model_cache(with_model: None) -> Iterator[Store]:
    store = open_cache()
    yield store
    store.close()


@pytest.fixture
def garden(tmp_path: Path) -> Path:
    return titled_set(tmp_path / "garden", GARDEN, GARDEN_QUESTIONS)


@pytest.fixture
def stars(tmp_path: Path) -> Path:
    return titled_set(tmp_path / "stars", STARS, STARS_QUESTIONS)


def titled_set(
    folder: Path,
    texts: Mapping[str, tuple[str, str]],
    questions: Mapping[str, tuple[str, Mapping[str, int]]],
) -> Path:
    corpus = [{"_id": id_, "title": title, "text": text} for id_, (title, text) in texts.items()]
    asked = [{"_id": id_, "text": text} for id_, (text, _) in questions.items()]
    judged = [(id_, document, gain) for id_, (_, gains) in questions.items() for document, gain in gains.items()]
    return beir_set(folder, corpus, asked, judged)


def beir_set(
    folder: Path,
    corpus: Sequence[Mapping[str, object]] | None,
    queries: Sequence[Mapping[str, object]],
    judgements: Sequence[tuple[str, str, int]],
) -> Path:
    """A set in BEIR layout; without a corpus the caller writes `files/`."""
    (folder / "qrels").mkdir(parents=True)
    if corpus is not None:
        (folder / "corpus.jsonl").write_text(lines_of(corpus), encoding="utf-8")
    (folder / "queries.jsonl").write_text(lines_of(queries), encoding="utf-8")
    judged = "".join(f"{question}\t{document}\t{gain}\n" for question, document, gain in judgements)
    (folder / "qrels" / "test.tsv").write_text(f"query-id\tcorpus-id\tscore\n{judged}", encoding="utf-8")
    return folder


def lines_of(objects: Sequence[Mapping[str, object]]) -> str:
    return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in objects)


def page_of(*weak: bool, text: str = "tea") -> QuestionResult:
    """A page of memories `m1`, `m2` … of which some are weak."""
    records = [Record(id=f"m{number}", kind="memory", text=text) for number in range(1, len(weak) + 1)]
    hits = tuple(Hit(record, 1.0, 0.5, weak=one) for record, one in zip(records, weak, strict=True))
    answer = Answer("tea", "keyword", "blend", len(hits), False, hits)
    return QuestionResult(tuple(hit.record.id for hit in hits), tuple((hit.record.id, hit) for hit in hits), answer)
