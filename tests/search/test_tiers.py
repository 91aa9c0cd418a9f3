"""Three tiers, and every answer says which one it came from and why."""

import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mindex.datatypes import Mode, Model, Record, VectorArray
from mindex.embedding.queue import EmbeddingQueue
from mindex.errors import EmbeddingError
from mindex.memory import Memory
from mindex.search.substring_tier import literal_texts, nothing_relevant_note
from tests.conftest import write
from tests.running import within
from tests.search.asking import moment


class Stub:
    """A model that reads a text as the counts of a few letters, and fails or waits on demand."""

    model = Model("test", "letters", 8)
    loaded = True

    def __init__(self) -> None:
        self.failure: Exception | None = None
        self.released = threading.Event()
        self.released.set()

    def load(self) -> None:
        if self.failure:
            raise self.failure

    def embed(self, texts: Sequence[str]) -> VectorArray:
        rows = np.array([[1 + text.lower().count(letter) for letter in "aeiourst"] for text in texts], np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    def embed_query(self, text: str) -> VectorArray:
        self.released.wait(60)
        if self.failure:
            raise self.failure
        vector: VectorArray = self.embed([text])[0]
        return vector

    def fluency(self, texts: Sequence[str]) -> list[float]:
        return [1.0 for _ in texts]


@pytest.fixture
def stub() -> Stub:
    return Stub()


@pytest.fixture
def memory(tmp_path: Path, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> Memory:
    monkeypatch.setattr("mindex.providers.factory.create_embedder", lambda _: stub)
    made = Memory(tmp_path / "memory.db", query_wait=30)
    made.add("The catalogue lists every lighthouse")
    made.add("Trains leave at noon")
    return made


@pytest.fixture
def impatient(memory: Memory, tmp_path: Path) -> Memory:
    """The same memory, for which nothing is soon enough."""
    return Memory(tmp_path / "memory.db", options={"embedding.timeout": 0.2}, query_wait=0.1)


def test_with_a_model_it_is_hybrid(memory: Memory) -> None:
    answer = memory.search("lighthouse")
    assert (answer.tier, answer.notes) == ("hybrid", ())


def test_what_a_query_excludes_is_not_among_the_nearest_of_its_loose_words_either(memory: Memory) -> None:
    answer = memory.search('"trains leave" zeppelin NOT lighthouse', floor=0)
    assert (answer.tier, [hit.record.text for hit in answer.hits]) == ("hybrid", ["Trains leave at noon"])
    assert answer.hits[0].trace.cosine is not None


def test_without_one_it_is_keyword_and_says_so(keyword_memory: Memory) -> None:
    keyword_memory.add("The catalogue lists every lighthouse")
    answer = keyword_memory.search("lighthouse")
    assert (answer.tier, answer.notes) == ("keyword", ("no embedder is configured; answered by keyword",))
    assert len(answer.hits) == 1


@pytest.mark.parametrize("failure", [EmbeddingError("the server is down", "start it"), RuntimeError("out of memory")])
def test_a_model_that_fails_leaves_the_words_and_says_why(memory: Memory, stub: Stub, failure: Exception) -> None:
    stub.failure = failure
    answer = memory.search("lighthouse")
    assert answer.tier == "keyword"
    assert len(answer.hits) == 1
    (note,) = answer.notes
    assert note.startswith("no vectors: ")
    assert ("the server is down" if isinstance(failure, EmbeddingError) else "out of memory") in note


def test_a_model_that_is_too_slow_is_not_waited_for(impatient: Memory, stub: Stub) -> None:
    stub.released.clear()
    try:
        answer = within(40, lambda: impatient.search("lighthouse"))
        again = within(40, lambda: impatient.search("trains"))
    finally:
        stub.released.set()
    assert answer.tier == again.tier == "keyword"
    assert answer.notes == ("the embedding model took longer than 0.2 s; answered by keyword",)
    assert [hit.record.text for hit in again.hits] == ["Trains leave at noon"]


def test_a_model_that_is_still_loading_is_not_waited_for_in_a_server(impatient: Memory, stub: Stub) -> None:
    stub.loaded = False
    stub.released.clear()
    try:
        answer = within(40, lambda: impatient.search("lighthouse"))
    finally:
        stub.released.set()
    assert answer.tier == "keyword"
    assert answer.notes == ("the embedding model is still loading; answered by keyword",)


def test_the_start_of_an_identifiers_part_is_found_by_the_last_tier(keyword_memory: Memory) -> None:
    keyword_memory.add("Call LighthouseCatalogue.findAll before sunset")
    answer = keyword_memory.search("LighthouseCat")
    assert answer.tier == "substring"
    assert len(answer.hits) == 1
    assert answer.notes == (
        "no embedder is configured; answered by keyword",
        "nothing is near enough by words or meaning; only letters match: "
        "'LighthouseCat' in LighthouseCatalogue.findAll",
    )


@pytest.mark.parametrize("query", ["ghthou", "cat", "catalog", "when am I away"])
def test_letters_inside_plain_words_are_not_an_answer(keyword_memory: Memory, query: str) -> None:
    keyword_memory.add("The catalogue lists the location of every lighthouse; the server sent a GOAWAY frame")
    assert keyword_memory.search(query).hits == ()


def test_two_letters_are_too_few(keyword_memory: Memory) -> None:
    keyword_memory.add("A catFactory makes them")
    assert keyword_memory.search("ca").hits == ()
    assert keyword_memory.search("catFac").tier == "substring"


@pytest.mark.parametrize("query", ["what does findA return?", '"lists every" findA', "findA"])
def test_identifiers_and_quoted_texts_are_served_also_within_a_question(keyword_memory: Memory, query: str) -> None:
    keyword_memory.add("xfindA lists everything")
    told = keyword_memory.add("catalogue.findAll lists every lighthouse").id
    answer = keyword_memory.search(query, floor=1)
    assert (answer.tier, [hit.record.id for hit in answer.hits]) == ("substring", [told])


def test_a_hyphened_word_of_a_query_is_not_an_answer_to_it(keyword_memory: Memory) -> None:
    keyword_memory.add("A long-lasting vaccine protects high-risk patients")
    query = "which long-lasting makeup brand do you suggest to me for the wedding of my sister"
    answer = keyword_memory.search(query)
    assert answer.tier != "substring"
    assert all(hit.weak for hit in answer.hits)


def test_letters_never_claim_the_relevance_of_an_answer(keyword_memory: Memory) -> None:
    keyword_memory.add("Call LighthouseCatalogue.findAll before sunset")
    (hit,) = keyword_memory.search("LighthouseCat").hits
    assert hit.relevance < keyword_memory.settings.number("search.floor")
    assert sum(stage.change for stage in hit.trace.stages) == hit.score == hit.relevance


@pytest.mark.parametrize(
    ("query", "literals"),
    [
        ("getUs", ["getUs"]),
        ("location", ["location"]),
        ("where is the location of user_id, please?", ["user_id"]),
        ('who said "hello  world" and "!"', ["hello world"]),
        ("when am I away", []),
        ("the", []),
        ("no", []),
        ("东京", ["东京"]),
        ("京", []),
    ],
)
def test_what_of_a_query_is_meant_literally(query: str, literals: list[str]) -> None:
    assert literal_texts(query) == literals


def test_the_nearest_record_is_named_by_its_first_words() -> None:
    memory = Record(
        id="abcdefghij01", kind="memory", text="User prefers dark mode in every editor. " + "And more. " * 50
    )
    assert nothing_relevant_note(memory, 0.123) == (
        "nothing relevant; the nearest is 'User prefers dark mode in every editor. And more. And more.…'"
        " (abcdefghij01, relevance 0.12)"
    )
    chunk = Record(id="abcdefghij02", kind="chunk", text="# Redis\n\nKeys expire.", path="docs/redis.md", first_line=3)
    assert nothing_relevant_note(chunk, 0.2) == (
        "nothing relevant; the nearest is 'Keys expire.' (docs/redis.md:3, relevance 0.20)"
    )
    assert nothing_relevant_note(None, 0.0) == "nothing relevant"


def test_the_last_tier_answers_when_the_model_failed_too(memory: Memory, stub: Stub) -> None:
    memory.add("The class LighthouseCatalogue lists them")
    stub.failure = EmbeddingError("the server is down", "start it")
    answer = memory.search("LighthouseCat")
    assert answer.tier == "substring"
    assert answer.notes[0].startswith("no vectors: the server is down")


@pytest.mark.parametrize("query", ["q%w", "e_x", "a\\b"])
def test_wildcards_are_letters_like_any_other(keyword_memory: Memory, query: str) -> None:
    keyword_memory.add("aq%wb ce_xd pa\\bq")
    keyword_memory.add("aqqwb ceqxd pabq")
    answer = keyword_memory.search(query, inside_words=True)
    assert answer.tier == "substring"
    assert [hit.record.text for hit in answer.hits] == ["aq%wb ce_xd pa\\bq"]


def test_the_most_confident_then_the_last_accessed_come_first(keyword_memory: Memory) -> None:
    memory = keyword_memory
    sure = memory.add("my_lighthouses one", confidence=0.9).id
    first = memory.add("my_lighthouses two", confidence=0.5).id
    second = memory.add("my_lighthouses three", confidence=0.5).id
    memory.store.settle()

    def order() -> list[str]:
        found = memory.store.retrieval.substring(["lighthou"], memory.filters(), 10)
        return list(found)

    assert order()[0] == sure
    memory.get(second)
    memory.store.settle()
    assert order() == [sure, second, first]
    moment()
    memory.get(first)
    memory.store.settle()
    assert order() == [sure, first, second]
    answer = memory.search("lighthou")
    assert (answer.tier, [hit.record.id for hit in answer.hits]) == ("substring", [sure, first, second])


def test_files_are_in_every_tier(keyword_memory: Memory, tmp_path: Path) -> None:
    keyword_memory.index(write(tmp_path / "docs", {"a.md": "# my_lighthouses\n\nThe catalogue lists them."}))
    told = keyword_memory.add("the lighthouses_x", confidence=0.1).id
    answer = keyword_memory.search("lighthou")
    assert answer.tier == "substring"
    assert [hit.record.id == told for hit in answer.hits] == [True, False]


@pytest.mark.parametrize(
    ("fusion", "mode", "seconds"),
    [("weighted", "hybrid", [30.0]), ("blend", "vector", [30.0]), ("blend", "hybrid", [0.3]), ("blend", "keyword", [])],
)
def test_a_search_waits_for_the_vectors_of_new_entries_longest_where_vectors_decide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fusion: str, mode: Mode, seconds: list[float]
) -> None:
    waited: list[float | None] = []
    monkeypatch.setattr(EmbeddingQueue, "join", lambda _, seconds=None: waited.append(seconds))
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none", "search.fusion": fusion}) as memory:
        memory.search("harbour", mode=mode)
        assert waited == seconds
