from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mindex.clock import now_ms
from mindex.datatypes import Model, VectorArray
from mindex.errors import StoreError
from mindex.providers.generate.base import Prompt
from mindex.store.base import Store
from mindex.store.open import open_store
from mindex_eval.cached_models import CachedEmbedder, CachedGenerator, CachedReranker, open_cache
from mindex_eval.measured_memory import MeasuredMemory
from mindex_eval.populate import populated_set
from mindex_eval.question_sets import read_set
from tests.running import wait_until


class Counting:
    """Answers like a model and counts what it was given to read."""

    def __init__(self, model: Model | None = None) -> None:
        self.model = model or Model("test", "letters", 3)
        self.read: list[str] = []
        self.loads = 0

    name = "test/letters"
    weight = 0.4
    loaded = True
    doubt = None

    def load(self) -> None:
        self.loads += 1

    def embed(self, texts: Sequence[str]) -> VectorArray:
        self.read += texts
        return np.array([[len(text), text.count("a"), 1] for text in texts], dtype=np.float32)

    def embed_query(self, text: str) -> VectorArray:
        self.read.append(text)
        return np.array([len(text), 0, 0], dtype=np.float32)

    def fluency(self, texts: Sequence[str]) -> list[float]:
        return [0.5 for _ in texts]

    def score(self, query: str, texts: Sequence[str], *, seconds: float | None = None) -> list[float]:
        assert query
        assert seconds is None
        self.read += texts
        return [len(text) / 7 for text in texts]

    def generate(self, prompt: Prompt, *, seconds: float | None = None) -> str:
        assert seconds is None
        self.read.append(prompt.user)
        return f"an answer to {prompt.user}"


def test_no_text_is_embedded_twice_and_the_order_is_kept(cache: Store) -> None:
    model = Counting()
    embedder = CachedEmbedder(model, cache)
    first = embedder.embed(["aa", "b", "aa"])
    again = embedder.embed(["b", "ccc", "aa"])
    assert model.read == ["aa", "b", "ccc"]
    assert first.tolist() == [[2, 2, 1], [1, 0, 1], [2, 2, 1]]
    assert again.tolist() == [[1, 0, 1], [3, 0, 1], [2, 2, 1]]
    assert again.dtype == np.float32
    assert embedder.embed([]).shape == (0, 3)


def test_vectors_are_there_for_the_next_process(no_model: None) -> None:
    model = Counting()
    for _ in range(2):
        store = open_cache()
        assert CachedEmbedder(model, store).embed(["aa"]).tolist() == [[2, 2, 1]]
        store.close()
    assert model.read == ["aa"]


def test_another_model_reads_for_itself(cache: Store) -> None:
    CachedEmbedder(Counting(), cache).embed(["aa"])
    other = Counting(replace(Model("test", "letters", 3), name="other"))
    CachedEmbedder(other, cache).embed(["aa"])
    assert other.read == ["aa"]


def test_a_model_that_learns_its_dimensions_late_is_the_same_model(cache: Store) -> None:
    CachedEmbedder(Counting(Model("test", "letters", 0)), cache).embed(["aa"])
    later = Counting(Model("test", "letters", 3))
    CachedEmbedder(later, cache).embed(["aa"])
    assert (later.read, later.loads) == ([], 1)


def test_a_question_is_not_a_text(cache: Store) -> None:
    model = Counting()
    embedder = CachedEmbedder(model, cache)
    embedder.embed(["aa"])
    assert embedder.embed_query("aa").tolist() == [2, 0, 0]
    cache.settle()
    assert embedder.embed_query("aa").tolist() == [2, 0, 0]
    assert model.read == ["aa", "aa"]


def test_a_question_asked_afresh_is_embedded_each_time(cache: Store) -> None:
    model = Counting()
    embedder = CachedEmbedder(model, cache)
    embedder.fresh = True
    for _ in range(3):
        embedder.embed_query("why")
        cache.settle()
    assert model.read == ["why"] * 3
    embedder.fresh = False
    embedder.embed_query("why")
    assert model.read == ["why"] * 3


def test_no_pair_is_scored_twice(cache: Store) -> None:
    model = Counting()
    reranker = CachedReranker(model, cache)
    assert reranker.score("q", ["one", "three"]) == [3 / 7, 5 / 7]
    assert reranker.score("q", ["three", "seventeen"]) == [5 / 7, 9 / 7]
    assert model.read == ["one", "three", "seventeen"]
    assert reranker.calls == 3
    reranker.score("another", ["one"])
    assert reranker.calls == 4


def test_the_same_prompt_is_answered_once(cache: Store) -> None:
    model = Counting()
    generator = CachedGenerator(model, cache)
    for _ in range(2):
        assert generator.generate(Prompt("say it", "ä prompt")) == "an answer to ä prompt"
        cache.settle()
    generator.generate(Prompt("say it otherwise", "ä prompt"))
    assert (model.read, generator.calls) == (["ä prompt"] * 2, 2)


def test_a_cache_folder_that_cannot_be_used_is_an_error_that_says_what_to_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "file"))
    with pytest.raises(StoreError) as raised:
        open_cache()
    assert "MINDEX_CACHE_DIR" in raised.value.hint


def test_a_bounded_cache_lets_the_oldest_go_and_one_of_no_rows_keeps_nothing(tmp_path: Path) -> None:
    bounded, none = open_store(tmp_path / "a.db", cache_rows=10), open_store(tmp_path / "b.db", cache_rows=0)
    bounded.caches.put_many("kind", {f"old{number}": b"x" for number in range(8)}, now=True)
    stored = now_ms()
    wait_until(lambda: now_ms() > stored, what="the clock's next tick")
    bounded.caches.put_many("kind", {f"new{number}": b"x" for number in range(5)}, now=True)
    assert len(bounded.caches.get_many("kind", [f"new{number}" for number in range(5)])) == 5
    assert bounded.maintenance.status().caches == {"kind": 9}
    none.caches.put_many("kind", {"key": b"x"}, now=True)
    none.caches.put("kind", "other", b"x")
    none.settle()
    assert none.maintenance.status().caches == {}
    bounded.close()
    none.close()


# ── the memory that is measured ───────────────────────────────────────────────────────────────────────────────


def test_asking_leaves_no_trace(tmp_path: Path, garden: Path, cache: Store) -> None:
    """Neither a cached question nor an access count may change the answer to the next question."""
    found = read_set(garden)
    with populated_set(found, {}, cache) as populated, MeasuredMemory(populated.database, {}, cache) as measured:
        memory = measured.memory
        told = memory.add("Kumquats grow in pots.").id
        for _ in range(3):
            assert memory.search("kumquats").hits[0].record.id == told
        memory.store.settle()
        assert memory.store.retrieval.ranking_signals([told])[told].access_count == 0
        assert memory.status().caches == {}
