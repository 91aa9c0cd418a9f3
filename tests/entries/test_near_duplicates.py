from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.datatypes import RecordVectors
from mindex.datatypes.records import CONFLICT_LINK
from mindex.entries.conflict_rules import contradict
from mindex.entries.near_duplicates import (
    NEAR_LINK,
    NEAR_OVERLAP,
    keywords,
    link_close_memories,
    overlap,
    probe_words,
)
from mindex.entries.new_memory import NewMemory
from mindex.memory import Memory
from tests.contract.records import MODEL
from tests.entries.near import is_near


def test_keywords_are_stems_without_stop_words_and_short_words() -> None:
    assert keywords("The user prefers to go by bike") == {"user", "prefer", "bike"}


def test_numbers_names_and_pairs_of_characters_are_keywords_however_short() -> None:
    assert keywords("7 on C++") == {"7", "cplusplu"}
    assert keywords("喝茶") == {"喝茶"}


def test_a_version_counts_once_and_a_hyphened_word_as_its_words() -> None:
    assert keywords("v2.1.4 of user_id") == {"v2_1_4", "user_id"}
    assert keywords("dark-mode") == keywords("dark mode") == {"dark", "mode"}
    assert keywords("PolicyController") == keywords("policy controller")


def test_the_keywords_of_a_text_of_stop_words_are_these() -> None:
    assert keywords("to be or not to be") == {"to", "be", "or", "not"}


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("User prefers dark mode", "The user prefers dark mode in the editor"),
        ("User prefers dark mode", "the User's preferring dark-mode!"),
        ("Anna isn't coming to the party", "Anna is not coming to the party"),
        ("User has two children in school", "User has 2 children in school"),
        ("Call Anna Lindqvist at 3 pm", "Call Anna Lindqvist at 3pm"),
        ("Backups run nightly on the server", "Backups run nightly on the server since 2024"),
        ("用户喜欢深色模式", "用户喜欢深色模式吗"),
        ("👍", "👍"),
    ],
)
def test_texts_that_say_nearly_the_same_are_near(a: str, b: str) -> None:
    assert is_near(a, b)


def test_a_long_text_is_not_a_duplicate_of_a_short_one_inside_it() -> None:
    short = "User prefers dark mode"
    assert not is_near(short, f"{short}, works in Oslo, drinks tea, owns two cats and rides a bike to the office daily")


def test_long_texts_that_share_generic_words_are_not_near() -> None:
    a = "The team decided to use the new service for the billing project because the old system was slow under load"
    b = "The new search service was slow for the team, so the project moved to another system after a week of tests"
    assert not is_near(a, b)


TEXTS = st.text() | st.lists(
    st.sampled_from(
        "user likes dark mode not never 3 v2.1 port 5432 before after user_id enable 不 深色模式 isn't \ud800".split()
    )
).map(" ".join)
WORDS = st.frozensets(st.sampled_from("abcdefghijklmnopqrstuvwxyz"))


@given(TEXTS, TEXTS)
def test_being_near_is_mutual_and_every_text_is_near_itself(a: str, b: str) -> None:
    assert is_near(a, b) == is_near(b, a)
    assert contradict(a, b) == contradict(b, a)
    assert is_near(a, a)


@given(WORDS, WORDS)
def test_overlap_is_symmetric_and_from_nothing_to_all(a: frozenset[str], b: frozenset[str]) -> None:
    assert 0 <= overlap(a, b) == overlap(b, a) <= 1
    assert (overlap(a, b) == 1) == (a == b)
    assert (overlap(a, b) == 0) == (a != b and not a & b)


@given(
    st.data(),
    st.frozensets(st.integers(0, 60).map(str), min_size=1),
    st.dictionaries(st.integers(0, 60).map(str), st.integers(0, 9)),
)
def test_every_set_that_overlaps_enough_has_a_probe_word(
    data: st.DataObject, words: frozenset[str], frequency: dict[str, int]
) -> None:
    kept = data.draw(st.frozensets(st.sampled_from(sorted(words))))
    other = kept | data.draw(st.frozensets(st.integers(50, 90).map(str), max_size=20))
    probes = probe_words(words, frequency)
    assert set(probes) <= words
    assert overlap(words, other) < NEAR_OVERLAP or not other.isdisjoint(probes)


@given(st.integers(1, 500))
def test_one_probe_word_fewer_would_miss_a_near_text(size: int) -> None:
    words = frozenset(f"w{i:03}" for i in range(size))
    probes = probe_words(words, {})
    assert overlap(words, words - set(probes[:-1])) >= NEAR_OVERLAP > overlap(words, words - set(probes))


def test_probe_words_are_the_rarest_and_ties_go_by_name() -> None:
    words = frozenset({"user", "prefer", "dark", "mode", "zsh"})
    assert probe_words(words, {"user": 900, "prefer": 50, "dark": 3, "mode": 3}) == ("zsh", "dark", "mode")
    assert probe_words(frozenset(), {}) == ()


@pytest.mark.parametrize("part", ["word ", "1,", "n't ", "不", "a-", "w1 ", "'", "é"])
def test_five_megabytes_of_anything_are_read_at_once(part: str) -> None:
    text = part * (5_000_000 // len(part))
    start = time.process_time()
    is_near(text, text + "x")
    assert time.process_time() - start < 10  # a third of a second; with the square of the length many minutes


def test_many_memories_get_the_links_that_each_would_get_alone(tmp_path: Path) -> None:
    colours = "red blue green grey pink white black brown".split()
    texts = [
        f"The {colour} lamp {words}" for colour in colours for words in ("is new", "was bought", "is on", "is off")
    ]
    random = np.random.default_rng(5)
    centres = random.standard_normal((len(colours), MODEL.dimensions)).repeat(4, axis=0)
    vectors = np.asarray(centres + 0.2 * random.standard_normal(centres.shape), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    found = []
    for at_once in (len(texts), 1):
        with Memory(tmp_path / f"{at_once}.db", options={"embedding.provider": "none"}) as memory:
            ids = [one.id for one in memory.add_many(map(NewMemory, texts))]
            records = {record.id: record for record in memory.store.retrieval.records(ids)}
            embedded = [RecordVectors(id_, [vector]) for id_, vector in zip(ids, vectors, strict=True)]
            memory.store.vectors.put(MODEL, embedded)
            pairs = [(records[one.record], one) for one in embedded]
            for start in range(0, len(pairs), at_once):
                link_close_memories(memory.store, MODEL, pairs[start : start + at_once])
            entries = memory.store.entries
            found.append(
                {
                    (kind, *sorted((records[one].text, records[other].text)))
                    for kind in (NEAR_LINK, CONFLICT_LINK)
                    for one, other in entries.linked_pairs(kind, "*")
                }
            )
    assert found[0] == found[1]
    assert {kind for kind, *_ in found[0]} == {NEAR_LINK, CONFLICT_LINK}
