"""Which part of a text is shown when not all of it fits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from mindex.present.passage import best_passage
from mindex.search.query import parse
from mindex.text_match import matched_ranges

FILLER = "Some words that say nothing. "


def passage(text: str, query: str, size: int) -> str:
    start, end = best_passage(text, matched_ranges(text, parse(query).terms), size)
    return text[start:end]


def test_a_text_that_fits_is_shown_whole() -> None:
    assert passage("Redis it is.", "redis", 12) == "Redis it is."


def test_without_a_match_the_beginning_is_shown() -> None:
    assert passage("One two three four", "zebra", 10) == "One two"


def test_a_match_near_the_beginning_leaves_the_beginning() -> None:
    assert passage("The redis cache. " + FILLER * 20, "redis", 200).startswith("The redis")


def test_lines_are_shown_whole() -> None:
    text = "\n".join([*(["some other line"] * 40), "the redis line", *(["one more line"] * 40)])
    lines = passage(text, "redis", 100).split("\n")
    assert "the redis line" in lines
    assert set(lines) == {"some other line", "the redis line", "one more line"}


def test_a_long_line_starts_with_a_sentence() -> None:
    shown = passage(FILLER * 20 + "The redis cache expires. " + FILLER * 20, "redis", 150)
    assert "The redis cache expires." in shown
    assert shown.startswith("Some words") and shown.endswith((".", "nothing", "say", "that", "words", "Some"))


def test_a_text_without_spaces_is_cut_between_sentences() -> None:
    text = "这里没有什么可看的。" * 30 + "值班工程师每周一交接。" + "这里没有什么可看的。" * 30
    shown = passage(text, "值班工程师", 60)
    assert "值班工程师每周一交接" in shown and shown.startswith("这里")


def test_of_equal_matches_the_closest_together_are_shown() -> None:
    text = "redis. " + FILLER * 3 + "The redis eviction. " + FILLER * 20
    start, end = best_passage(text, matched_ranges(text, parse("redis eviction").terms), 130)
    assert start > 20 and "The redis eviction." in text[start:end]


def test_a_passage_does_not_start_with_empty_lines() -> None:
    text = "first line\n" * 20 + "\n\n\n\nthe redis line\n\n" + "one more line\n" * 20
    assert not passage(text, "redis", 60).startswith("\n")


def test_where_different_words_meet_says_more_than_one_word_again() -> None:
    text = "redis redis redis. " + FILLER * 20 + "The redis eviction policy. " + FILLER * 20
    assert "eviction policy" in passage(text, "redis eviction policy", 120)


def test_forms_of_one_word_are_one_word() -> None:
    text = "Caching, caches, cached. " + FILLER * 20 + "The cache lives in redis. " + FILLER * 20
    assert "redis" in passage(text, "redis caching", 120)


@given(
    st.text(alphabet="ab .\n東京", max_size=300),
    st.lists(st.tuples(st.integers(0, 300), st.integers(1, 9)), max_size=8),
    st.integers(-1, 320),
)
def test_a_passage_is_never_longer_than_allowed(text: str, places: list[tuple[int, int]], size: int) -> None:
    matches = sorted((start, start + length) for start, length in places if start + length <= len(text))
    start, end = best_passage(text, matches, size)
    assert 0 <= start <= end <= len(text)
    assert end - start <= max(0, size)
