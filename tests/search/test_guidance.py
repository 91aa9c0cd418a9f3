"""What a search tells its caller to do next, in the words of each interface."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from mindex.clock import now_ms
from mindex.datatypes import Collection
from mindex.datatypes.guidance import Guidance
from mindex.entries.new_memory import NewMemory
from mindex.errors import UsageError
from mindex.memory import Memory
from tests.conftest import write
from tests.running import wait_until

KEYWORD = {"embedding.provider": "none"}


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory(tmp_path / "memory.db", options=KEYWORD) as opened:
        yield opened


def add_expired(memory: Memory, *texts: str) -> None:
    end = now_ms() + 1_000  # a busy machine takes its time to add them
    for text in texts:
        memory.add(text, expires=end)
    wait_until(lambda: now_ms() > end, what="their end")


# ── expired ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_search_with_only_an_expired_match_names_the_option_that_shows_it(memory: Memory) -> None:
    add_expired(memory, "The lift is broken today.")
    answer = memory.search("lift")
    assert (answer.hits, answer.notes) == ((), ("1 expired; include_expired=True shows it",))
    assert memory.search("lift", include_expired=True).hits


def test_expired_matches_are_counted_beside_hits_that_are_not_sure(memory: Memory) -> None:
    add_expired(memory, "The lift of the tower is broken today.", "The lift of the tower is repaired.")
    memory.add("Lunch is at noon, and the tower is open.")
    answer = memory.search("the lift of the tower")
    assert "2 expired; include_expired=True shows them" in answer.notes


def test_expired_entries_are_not_mentioned_if_something_else_is_found(memory: Memory) -> None:
    add_expired(memory, "The lift is broken today.")
    memory.add("The lift was repaired on Monday.")
    assert not any("expired" in note for note in memory.search("lift repaired").notes)


def test_an_expired_entry_of_another_scope_is_not_counted(memory: Memory) -> None:
    memory.add("Soup.")
    add_expired(memory, "The lift is broken today.")
    assert not any("expired" in note for note in memory.search("lift", kinds=["turn"]).notes)
    assert not any("expired" in note for note in memory.search("lift", agent="another").notes)


def test_without_an_option_for_it_the_note_says_that_no_search_shows_it(tmp_path: Path) -> None:
    words = Guidance(fill="fill it", add="add one", wait="wait", vectors="later")
    with Memory(tmp_path / "memory.db", options=KEYWORD, guidance=words) as memory:
        add_expired(memory, "The lift is broken today.")
        assert memory.search("lift").notes == ("1 expired; no search shows it",)


# ── nothing there yet ─────────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_memory_says_how_it_is_filled(memory: Memory) -> None:
    assert memory.search("redis").notes == ("the memory is empty; `Memory.index` or `Memory.add` fills it",)


def test_a_first_index_that_runs_is_named_with_what_to_do(memory: Memory, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"a.md": "# Redis\n\nRedis it is.\n"})
    # As `index` leaves it before the first file is stored, and while it goes on.
    memory.store.files.put_collection(Collection("docs", str(root)))
    note = "docs: the first indexing is not complete; wait for `Memory.index` to return, or call it again if it was"
    assert memory.search("redis").notes == (f"{note} interrupted",)
    memory.add("Lunch is at noon.")
    assert memory.search("redis").notes[-1] == f"{note} interrupted"
    memory.index(root)
    assert memory.search("redis").hits
    assert not any("index" in note for note in memory.search("zebra").notes)


def test_an_agent_without_memories_gets_a_note_how_to_add_one(memory: Memory) -> None:
    memory.add("Redis it is.", agent="another")
    (note,) = memory.search("redis", kinds=["memory"]).notes
    assert note == "agent main has no memories yet; `Memory.add` adds one"


# ── counting ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_count_is_not_capped_by_the_candidates(memory: Memory) -> None:
    memory.add_many(NewMemory(f"Lighthouse {n} on a rock.") for n in range(230))
    memory.add("A rock band.")
    assert memory.search("lighthouse", limit=5, floor=0).total == 200
    assert memory.count("lighthouse") == 230
    assert memory.count("rock lighthouse") == 231  # any of the words
    assert memory.count('"lighthouse 7"') == 1
    assert memory.count("rock NOT lighthouse") == 1
    assert memory.count("lighthouse AND zebra") == 230  # nothing has both: as a search, it falls back to any
    assert memory.count("lighthouse", agent="another") == 0
    assert memory.count("zebra") == memory.count("(((") == 0


# ── weights of one query ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vector_weight": 1.1}, "vector_weight 1.1 is out of range; use 0 to 1"),
        ({"keyword_weight": -0.1}, "keyword_weight -0.1 is out of range"),
        ({"keyword_weight": float("nan")}, "keyword_weight nan is out of range"),
        ({"vector_weight": 0, "keyword_weight": 0}, "vector_weight and keyword_weight are both 0"),
        ({"vector_weight": 0.5, "mode": "keyword"}, "vector_weight: a keyword search has only one score"),
        ({"keyword_weight": 0.5, "fusion": "signals"}, "keyword_weight: the fusion signals has only one score"),
    ],
)
def test_invalid_weights_are_refused(memory: Memory, options: dict[str, object], message: str) -> None:
    memory.add("Redis it is.")
    with pytest.raises(UsageError, match=message):
        memory.search("redis", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("fusion", ["blend", "rrf", "minmax", "weighted"])
def test_a_query_weighs_words_against_meaning_in_every_fusion(handbook_memory: Memory, fusion: str) -> None:
    def shares(**weights: float) -> float:
        """Of the best hit's score, what the vectors made."""
        hit = handbook_memory.search("how is cached data invalidated", fusion=fusion, floor=0, **weights).hits[0]
        parts = {stage.name: stage.change for stage in hit.trace.stages}
        return parts.get("vector", 0.0) / (parts.get("vector", 0.0) + parts.get("keyword", 0.0))

    assert shares(vector_weight=1, keyword_weight=0) == 1
    assert shares(vector_weight=0, keyword_weight=1) == 0
    assert shares(vector_weight=0.2, keyword_weight=0.8) < shares() < shares(vector_weight=0.9, keyword_weight=0.1)
