from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.entries.importance import estimate_importance

TYPES = (
    "fact", "preference", "decision", "event", "insight", "task", "relationship", "entity", "self", "background",
    "pattern", "project", "contact", "reference",
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "type_", "least"),
    [
        ("User is allergic to peanuts", "fact", 8),
        ("用户对花生过敏", "fact", 8),
        ("Die Nutzerin ist allergisch gegen Nüsse", "fact", 8),
        ("El usuario es alérgico al maní", "fact", 8),
        ("L'utilisateur est allergique aux noix", "fact", 8),
        ("Never deploy to production on a Friday", "decision", 9),
        ("The password policy must be approved by legal", "fact", 8),
        ("Tax return is due by 31 July", "task", 8),
        ("We chose SQLite over Postgres", "decision", 7),
        ("User prefers dark mode", "preference", 6),
    ],
)
def test_vital_and_weighty_memories_are_important(text: str, type_: str, least: int) -> None:
    assert estimate_importance(text, type_) >= least


@pytest.mark.parametrize(
    ("text", "type_", "most"),
    [
        ("had coffee", "event", 3),
        ("btw the cat might be asleep, whatever", "event", 1),
        ("maybe try tabs some day", "preference", 5),
        ("this is not critical", "fact", 5),
        ("这不重要", "fact", 5),
        ("https://example.com/docs", "reference", 3),
        ("import numpy for the product page", "fact", 5),
        ("lorem ipsum " * 400, "reference", 2),
    ],
)
def test_small_talk_and_guesses_are_unimportant(text: str, type_: str, most: int) -> None:
    assert estimate_importance(text, type_) <= most


def test_names_and_dates_raise_importance() -> None:
    plain = estimate_importance("the review was moved", "event")
    assert estimate_importance("the review was moved to 2026-03-14", "event") > plain
    assert estimate_importance("the review was moved by Anna", "event") > plain


def test_decisions_are_more_important_than_facts_and_facts_than_events() -> None:
    text = "the cache lives in memory"
    assert (
        estimate_importance(text, "decision")
        > estimate_importance(text, "preference")
        > estimate_importance(text, "fact")
        > estimate_importance(text, "event")
    )


@pytest.mark.parametrize("type_", TYPES)
def test_every_type_has_a_base_importance(type_: str) -> None:
    assert 3 <= estimate_importance("the cache lives in memory", type_) <= 7


def test_an_unknown_type_counts_as_a_fact() -> None:
    assert estimate_importance("the cache lives in memory", "rumour") == estimate_importance(
        "the cache lives in memory", "fact"
    )


TEXTS = st.text() | st.lists(
    st.sampled_from(
        "not must never critical maybe trivial btw Anna by Friday 2026-03-14 so very 重要 不 é \ud800".split()
    )
).map(" ".join)


@given(TEXTS, st.sampled_from(TYPES))
def test_importance_is_from_one_to_ten_and_always_the_same(text: str, type_: str) -> None:
    assert 1 <= estimate_importance(text, type_) == estimate_importance(text, type_) <= 10


@given(TEXTS, st.sampled_from(TYPES), st.sampled_from(["critical", "must", "security", "never"]))
def test_a_weighty_word_never_lowers_importance(text: str, type_: str, word: str) -> None:
    assert estimate_importance(f"{text} {word}", type_) >= estimate_importance(text, type_)
    assert estimate_importance(f"{word} {text}", type_) >= estimate_importance(text, type_)


def test_the_length_of_a_text_with_a_weighty_word_does_not_matter() -> None:
    text = "a b " * 1_000
    assert len(text) == 4_000
    assert estimate_importance(text + "critical", "fact") > estimate_importance(text, "fact")
    assert estimate_importance(text + "not critical", "fact") >= estimate_importance(text, "fact")


@given(TEXTS, st.sampled_from(TYPES), st.sampled_from(["maybe", "probably", "trivial"]))
def test_a_hedge_never_raises_the_importance_of_a_text_of_some_length(text: str, type_: str, hedge: str) -> None:
    text = "the cache lives in memory " + text
    assert estimate_importance(f"{text}. {hedge}", type_) <= estimate_importance(text, type_)


@pytest.mark.parametrize("part", ["by a ", "not so ", "1.1.", "must ", "重要", "a-", "Ab "])
def test_five_megabytes_of_anything_are_read_at_once(part: str) -> None:
    text = part * (5_000_000 // len(part))
    start = time.process_time()
    estimate_importance(text, "fact")
    assert time.process_time() - start < 10  # a third of a second; with the square of the length many minutes


@pytest.mark.parametrize("date", ["september 3", "may 3", "märz 3"])
def test_a_month_with_a_day_is_a_date(date: str) -> None:
    assert estimate_importance(f"the lease of the hall ends {date}", "fact") == 1 + estimate_importance(
        "the lease of the hall ends then", "fact"
    )
