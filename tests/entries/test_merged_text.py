"""A merged text must not lose a number, a date, a name or a word that makes a difference."""

from __future__ import annotations

import pytest

from mindex.entries.merged_text import covers, kept_word_share, missing_facts


@pytest.mark.parametrize(
    ("merged", "original", "covered"),
    [
        ("Anna drinks green tea every morning", "Anna drinks green tea", True),
        ("Anna drinks green tea", "Anna drinks green tea every morning", False),
        ("The server has 32 cores", "The server has 16 cores", False),
        ("Deploys go to Frankfurt on Tuesday", "Deploys go to Dublin on Tuesday", False),
        ("We do not deploy on Friday", "We deploy on Friday", False),
        ("The limit is 1,000 rows a day", "the limit is 1000 rows", True),
        ("The user likes the dark theme", "user likes dark themes", True),
        ("My brother eats no peanuts, milk, eggs, wheat", "My sister eats no peanuts, milk, eggs, wheat", False),
        ("My brother is allergic to peanuts", "Her brother is allergic to peanuts", False),
        ("Deploy the frontend before the backend", "Deploy the backend before the frontend", False),
        ("Anna reports to Ben since spring", "Ben reports to Anna", False),
        ("Rename user_id to account_id", "Rename account_id to user_id", False),
        ("Scale the shop from 3 to 5 replicas", "Scale the shop from 5 to 3 replicas", False),
    ],
)
def test_a_text_covers_another_only_with_its_numbers_names_and_words(merged: str, original: str, covered: bool) -> None:
    assert covers(merged, original) is covered


def test_missing_numbers_dates_and_names_are_listed_and_kept_words_are_counted() -> None:
    assert missing_facts("Anna pays 30 euros on Monday to Dr. Weber", "Anna pays") == ("30", "monday", "Weber")
    assert kept_word_share("red green blue", "blue and red") == pytest.approx(2 / 3)
    assert kept_word_share("", "anything") == 1
