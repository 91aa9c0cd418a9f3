"""The cache of words: each is worked out once while it is in use, and the cache stays within its size."""

from __future__ import annotations

from mindex.word_cache import WordCache


class _Counted:
    """A function that notes what it was called with."""

    def __init__(self) -> None:
        self.words: list[str] = []

    def __call__(self, word: str) -> str:
        self.words.append(word)
        return word.upper()


def test_a_word_is_worked_out_once() -> None:
    function = _Counted()
    cache = WordCache(function)

    assert [cache["one"], cache["two"], cache["one"]] == ["ONE", "TWO", "ONE"]
    assert function.words == ["one", "two"]


def test_words_in_use_stay_when_others_fill_the_cache() -> None:
    function = _Counted()
    cache = WordCache(function, most=20)

    for number in range(1_000):
        assert cache["used"] == "USED"
        assert cache[f"n{number}"] == f"N{number}"

    assert function.words.count("used") == 1
    assert len(cache) + len(cache._older) <= 20


def test_what_is_longer_than_any_word_is_not_kept() -> None:
    function = _Counted()
    cache = WordCache(function)

    assert cache["x" * 1_000] == "X" * 1_000
    assert cache["x" * 1_000] == "X" * 1_000
    assert len(cache) == 0 and len(function.words) == 2
