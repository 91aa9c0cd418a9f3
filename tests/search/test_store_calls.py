"""How often a search, a new memory and an index run call their store: a round trip each where it is a server."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindex.datatypes import Answer
from mindex.memory import Memory
from mindex.store.base import GROUPS, Store
from mindex.store.open import open_store
from tests.conftest import write
from tests.providers.servers import ModelServer

MAX_CALLS = 6
MAX_FRAMES = 4
ASKS_NO_DATABASE = "maintenance.damaged"  # what calls before it have found
PAGES = {f"{n}.md": f"# Ship {n}\n\nParcels of ship {n} wait in hall {n} of the harbour.\n" for n in range(30)}


def frames_since(method: str) -> int:
    """How many frames are between a method of `Memory` and the caller of the caller; 0 outside of it."""
    names = [one.frame.f_code.co_qualname for one in inspect.stack(0)[2:]]
    return names.index(f"Memory.{method}") if f"Memory.{method}" in names else 0


class CountingGroup:
    """A group of a store that notes its calls."""

    def __init__(self, name: str, group: object, calls: list[str], frames: dict[str, int]) -> None:
        self._name, self._group, self._calls, self._frames = name, group, calls, frames

    def __getattr__(self, name: str) -> object:
        method = getattr(self._group, name)

        def counted(*arguments: object, **options: object) -> object:
            if (call := f"{self._name}.{name}") != ASKS_NO_DATABASE:
                self._calls.append(call)
                self._frames[call] = max(frames_since(Memory.search.__name__), self._frames.get(call, 0))
            return method(*arguments, **options)

        return counted


class CountingStore:
    """A store that notes every call of its groups."""

    def __init__(self, inner: Store) -> None:
        self.calls: list[str] = []
        self.frames: dict[str, int] = {}  # the most between `Memory.search` and each call
        self._inner = inner
        for group in GROUPS:
            setattr(self, group, CountingGroup(group, getattr(inner, group), self.calls, self.frames))

    def __getattr__(self, name: str) -> object:
        return getattr(self._inner, name)


@pytest.fixture
def store(tmp_path: Path) -> CountingStore:
    return CountingStore(open_store(tmp_path / "memory.db"))


@pytest.fixture
def memory(tmp_path: Path, store: CountingStore, server: ModelServer, alone: Path) -> Iterator[Memory]:
    options = {"embedding.provider": "ollama", "embedding.url": server.url, "embedding.model": "m"}
    with Memory(store=store, options=options) as memory:  # type: ignore[arg-type]
        memory.index(write(tmp_path / "docs", PAGES))
        memory.add("The harbour master weighs the parcels of ship 7")
        for text in ("Where are the parcels of ship 9?", "They wait in hall 9.", "Thanks."):
            memory.conversations.add(text, "Noted.", session_id="harbour")
        memory.search("a first search selects the embedder")
        yield memory


def shows_memories(answer: Answer) -> bool:
    return any(hit.record.kind == "memory" for hit in answer.hits)


@pytest.mark.parametrize("passages", [False, True])
@pytest.mark.parametrize("limit", [5, 20])
@pytest.mark.parametrize("query", ["parcels of ship 7", "where do the parcels wait?", "thanks, noted"])
def test_a_hybrid_search_calls_the_store_at_most_six_times_and_once_for_conflicts_of_memories(
    memory: Memory, store: CountingStore, query: str, limit: int, passages: bool
) -> None:
    for _ in range(2):  # a new query is embedded, a known one comes from the cache
        store.calls.clear()
        answer = memory.search(query, limit=limit, floor=0, passages=passages)
        assert (answer.tier, bool(answer.hits)) == ("hybrid", True)
        assert len(store.calls) <= MAX_CALLS + shows_memories(answer), store.calls


@pytest.mark.parametrize("query", ["parcels of ship 7", '"hall 9" AND parcels', "harbour NOT hall"])
def test_a_search_is_at_most_four_frames_from_the_store(memory: Memory, store: CountingStore, query: str) -> None:
    store.frames.clear()
    for options in (
        {},
        {"mode": "keyword"},
        {"mode": "vector"},
        {"fusion": "signals"},
        {"limit": 40, "passages": True},
    ):
        assert memory.search(query, **options).hits  # type: ignore[arg-type]
    assert {"retrieval.keyword", "retrieval.nearest", "caches.get"} <= store.frames.keys()
    assert max(store.frames.values()) <= MAX_FRAMES, store.frames


def test_a_keyword_search_calls_the_store_at_most_three_times_and_once_for_conflicts_of_memories(
    memory: Memory, store: CountingStore
) -> None:
    for kinds, least in ((["chunk"], False), (["memory"], True)):
        store.calls.clear()
        answer = memory.search("parcels of ship 7", mode="keyword", kinds=kinds)
        assert answer.hits and shows_memories(answer) == least
        assert len(store.calls) <= 3 + least, store.calls


def test_a_search_that_finds_nothing_calls_the_store_once_more_to_know_what_expired(
    memory: Memory, store: CountingStore
) -> None:
    memory.search("zither", floor=0.99)  # the first one also looks whether every folder is indexed
    store.calls.clear()
    assert memory.search("xylophone", floor=0.99).total == 0
    assert len(store.calls) <= MAX_CALLS + 1, store.calls


# ── writing ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("in_background", [False, True])
@pytest.mark.parametrize(
    ("text", "conflicts"),
    [
        ("Gulls nest on the roof of the lighthouse", 0),
        ("The harbour master does not weigh the parcels of ship 7", 1),
    ],
)
def test_remember_calls_the_store_at_most_eight_times_with_its_background_work(
    memory: Memory, store: CountingStore, text: str, conflicts: int, in_background: bool
) -> None:
    memory.embedding_queue.in_background = in_background
    store.calls.clear()
    added = memory.add(text)
    memory.embedding_queue.join(30)
    assert (added.created, len(added.conflicts)) == (True, conflicts)
    assert "vectors.put" in store.calls
    assert len(store.calls) <= 8, store.calls
    assert store.calls.count("retrieval.records_with_tokens") == 1


@pytest.mark.parametrize("in_background", [False, True])
def test_index_of_one_changed_file_calls_the_store_at_most_eleven_times(
    memory: Memory, store: CountingStore, tmp_path: Path, in_background: bool
) -> None:
    memory.embedding_queue.in_background = in_background
    write(tmp_path / "docs", {"7.md": "# Ship 7\n\nParcels of ship 7 wait in the customs office.\n"})
    store.calls.clear()
    report = memory.index(tmp_path / "docs")
    assert (report.collections[0].changed, report.embedded, report.pending) == (1, 1, 0)
    assert len(store.calls) <= 11, store.calls


def test_index_of_unchanged_files_calls_the_store_at_most_eight_times(
    memory: Memory, store: CountingStore, tmp_path: Path
) -> None:
    store.calls.clear()
    assert memory.index(tmp_path / "docs").collections[0].unchanged == len(PAGES)
    assert len(store.calls) <= 8, store.calls
