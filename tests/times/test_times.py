"""The words of a query that ask for the past."""

from __future__ import annotations

import pytest

from mindex.times import past_word


@pytest.mark.parametrize(
    ("query", "word"),
    [
        ("what was the previous gateway port", "previous"),
        ("which editor did we use before", "before"),
        ("which queue did we use to have", "use to"),
        ("where I used to live", "used to"),
        ("the old office", "old"),
        ("which port is used", ""),
        ("which library do we use to parse dates", ""),
        ("how old is Anna", ""),
        ('who said "the old office"', ""),
    ],
)
def test_the_past_is_asked_for_by_words_outside_quotes(query: str, word: str) -> None:
    assert past_word(query) == word
