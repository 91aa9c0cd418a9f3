"""Backfill: one bad text does not block the others, and near-duplicates are linked."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mindex.datatypes import Model, Progress
from mindex.datatypes.spaces import EmbedderSpec
from mindex.embedding.backfill import Backfill
from mindex.entries.near_duplicates import NEAR_LINK
from mindex.errors import EmbeddingError, UsageError
from mindex.memory import Memory
from tests.conftest import write
from tests.running import run


class Lamp:
    """A model that knows whether a text is about light, and rejects the texts that it is given to reject."""

    model = Model("test", "lamp", 2)
    loaded = True

    def __init__(self, *refused: str) -> None:
        self.refused = refused
        self.calls: list[int] = []
        self.texts: list[str] = []

    def load(self) -> None: ...

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        self.calls.append(len(texts))
        self.texts += texts
        if any(word in text for text in texts for word in self.refused):
            raise EmbeddingError("the lamp does not take this", "say it in other words")
        lit = [any(word in text for word in ("lamp", "bulb", "bright")) for text in texts]
        return np.array([[1.0, 0.0] if light else [0.0, 1.0] for light in lit], np.float32)

    def embed_query(self, text: str) -> np.ndarray:
        return self.embed([text])[0]

    def fluency(self, texts: Sequence[str]) -> list[float]:
        return [1.0 for _ in texts]


@pytest.fixture
def memory(keyword_memory: Memory, tmp_path: Path) -> Memory:
    pages = {f"{number:02}.md": f"Page number {number}." for number in range(40)}
    keyword_memory.index(write(tmp_path / "docs", pages))
    return keyword_memory


SEVERAL = ("number 7.", "number 8.", "number 39.")
IN_A_ROW = tuple(f"number {n}." for n in range(2, 9))


@pytest.mark.parametrize("refused", [("number 0.",), SEVERAL, ("number 13.",), IN_A_ROW])
def test_a_text_that_a_model_rejects_does_not_block_the_others(memory: Memory, refused: tuple[str, ...]) -> None:
    done = Backfill(memory.store, Lamp(*refused), batch=16).run()
    assert (done.embedded, done.remaining, done.rejected) == (40 - len(refused), len(refused), len(refused))
    assert done.note.startswith(f"{len(refused)} records have no vector (")
    assert done.note.endswith("the lamp does not take this; say it in other words)")


def test_a_run_ends_soon_when_the_model_rejects_everything(memory: Memory) -> None:
    lamp = Lamp("")
    done = Backfill(memory.store, lamp, batch=16).run()
    assert (done.embedded, done.remaining, done.rejected) == (0, 40, 0)
    assert done.note == "no vectors: the lamp does not take this; say it in other words"
    assert lamp.calls == [16, 1, 1, 1, 1]  # a batch, three of it, and any word at all


def test_a_backfill_that_embeds_nothing_raises_the_reason(memory: Memory) -> None:
    memory.models.use(Lamp("number"))
    with pytest.raises(EmbeddingError, match="the lamp does not take this"):
        memory.maintenance.backfill()


def test_the_newest_files_are_embedded_first_and_of_one_day_the_smallest(
    keyword_memory: Memory, tmp_path: Path
) -> None:
    filler = "Much more of it. " * 5
    pages = {"a.md": f"Old {filler}", "b.md": f"Large {filler}", "c.md": "Small.", "d.md": "Newest."}
    folder = write(tmp_path / "docs", pages)
    day = 24 * 60 * 60
    for name, second in (("a.md", 2 * day), ("b.md", 7 * day + 9), ("c.md", 7 * day), ("d.md", 8 * day)):
        os.utime(folder / name, (second, second))
    keyword_memory.index(folder)
    lamp = Lamp()
    Backfill(keyword_memory.store, lamp, batch=1).run()
    words = ["Newest", "Small", "Large", "Old"]
    assert [next(word for word in words if word in text) for text in lamp.texts] == words


def test_a_limit_bounds_how_many_are_embedded(memory: Memory) -> None:
    lamp = Lamp()
    done = Backfill(memory.store, lamp, batch=16, limit=20).run()
    assert (done.embedded, done.remaining, lamp.calls) == (20, 20, [16, 4])


def test_near_duplicates_that_only_vectors_show_are_linked(memory: Memory) -> None:
    memory.models.use(Lamp())
    ids = [
        memory.add(text, embed=False).id
        for text in ("Turn the lamp off at night", "Bulbs glow bright until morning", "Bread rises slowly")
    ]
    assert memory.store.entries.linked(ids[0], NEAR_LINK) == ()
    embedded, remaining = memory.maintenance.backfill(batch=50)
    assert (embedded, remaining) == (43, 0)
    assert [memory.store.entries.linked(id_, NEAR_LINK) for id_ in ids] == [(ids[1],), (ids[0],), ()]


def test_progress_is_reported_and_a_stop_loses_nothing(memory: Memory) -> None:
    seen: list[Progress] = []

    def stop_half_way(progress: Progress) -> None:
        seen.append(progress)
        if progress.done == 32:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Backfill(memory.store, Lamp(), batch=16, report=stop_half_way).run()
    assert seen == [Progress("embed", 16, 40), Progress("embed", 32, 40)]
    assert Backfill(memory.store, Lamp()).run().embedded == 8


@pytest.mark.parametrize(("batch", "fault"), [(0, "a batch of 0 is too small"), (-3, "a batch of -3 is too small")])
def test_a_batch_of_nothing_is_refused(memory: Memory, batch: int, fault: str) -> None:
    memory.models.use(Lamp())
    with pytest.raises(UsageError, match=fault):
        memory.maintenance.backfill(batch=batch)


def test_imported_vectors_are_searched_when_they_are_of_the_same_space(memory: Memory, tmp_path: Path) -> None:
    memory.add("The lamp is bright")
    Backfill(memory.store, Lamp(), embedder_spec=EmbedderSpec("test", "lamp")).run()
    memory.transfer.export(tmp_path / "told.jsonl", vectors=True)
    with Memory(tmp_path / "other.db", options={"embedding.provider": "none"}) as other:
        other.transfer.import_(tmp_path / "told.jsonl")
        assert other.store.vectors.active_space() == ""
        assert Backfill(other.store, Lamp(), embedder_spec=EmbedderSpec("test", "lamp")).run().embedded == 0
        assert other.store.vectors.active_space() == Lamp.model.fingerprint


def test_vectors_of_another_space_are_not_imported(memory: Memory, tmp_path: Path) -> None:
    memory.add("The lamp is bright")
    Backfill(memory.store, Lamp()).run()
    memory.transfer.export(tmp_path / "told.jsonl", vectors=True)

    class Candle(Lamp):
        model = Model("test", "candle", 2)

    with Memory(tmp_path / "other.db", options={"embedding.provider": "none"}) as other:
        other.add("Candles burn")
        Backfill(other.store, Candle()).run()
        other.transfer.import_(tmp_path / "told.jsonl")
        assert [space.model.name for space in other.store.vectors.spaces()] == ["candle"]
        assert other.store.vectors.pending(Candle.model) == 1


@pytest.mark.model
def test_the_command_cuts_a_batch_that_is_too_large_and_prints_how_much_is_left(tmp_path: Path) -> None:
    db = tmp_path / "memory.db"
    assert run("--db", db, "index", write(tmp_path / "few", {"a.md": "Parcels wait."}), "--no-embed").code == 0
    ran = run("--db", db, "backfill", "--batch", 500, "--json")
    assert (ran.json, "batch cut to 200" in ran.err) == ({"embedded": 1, "remaining": 0}, True)
