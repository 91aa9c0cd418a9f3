"""Which pairs of texts are in conflict, and which only look like it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.entries.conflict_rules import contradict, find_conflict
from mindex.entries.sentences import parse_sentences

PAIRS = [
    line.split("\t") for line in (Path(__file__).parent / "conflict_pairs.tsv").read_text(encoding="utf-8").splitlines()
]


@pytest.mark.parametrize(
    ("older", "newer", "why"),
    [
        ("Standup is at 9:30", "Standup is at 10:00", "different times: 9:30 and 10:00"),
        ("The lease ends on 31 March", "The lease ends on April 30", "different dates: 31 March and April 30"),
        ("Logs are kept for 14 days", "Logs are kept for 3 months", "different durations: 14 days and 3 months"),
        ("The rent is 900 euros", "The rent is €950 now", "different amounts: 900 euros and €950"),
        ("Lunch is not free", "Lunch is free", "only the older is negated"),
        ("Lunch is free", "Lunch isn't free any more", "only the newer is negated"),
        ("Telemetry is enabled", "Telemetry is disabled", "opposites: enabled and disabled"),
        ("The heating is on at night", "The heating is off at night", "opposites: on and off"),
        ("The project uses pnpm", "The project uses npm", "different values: pnpm and npm"),
        ("Ada lives in Oslo", "Ada lives in Turku", "different values: Oslo and Turku"),
        ("Ben is the treasurer", "Ines is the treasurer", "different values: Ben and Ines"),
        (
            "Ada prefers tea over coffee",
            "Ada prefers coffee over tea",
            "the other order: tea over coffee and coffee over tea",
        ),
    ],
)
def test_a_conflict_says_what_differs(older: str, newer: str, why: str) -> None:
    assert find_conflict(older, newer) == why


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Standup is at 9:45 every weekday in the blue room", "Standup is at 10:15"),
        ("Use pnpm, not npm or yarn, in every repository", "Use npm in every repository"),
        ("The shop closes at 18:00 and the alarm is armed", "The shop closes at 19:00"),
        ("Ada prefers dark mode in every editor and terminal", "Ada prefers light mode"),
        ("Standup is at 9:30. It takes ten minutes.", "We moved the standup to 10:00 because of the Lisbon office"),
    ],
)
def test_details_reasons_and_second_clauses_do_not_hide_a_conflict(older: str, newer: str) -> None:
    assert find_conflict(older, newer)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Standup is at 10:15", "On Fridays standup is at 9:45"),
        ("The shop closes at 18:00", "The shop closes at 20:00 in December"),
        ("The meeting is at 10 pm", "The meeting is at 22:00"),
        ("Logs are kept for two weeks", "Logs are kept for 14 days"),
        ("The deadline is 5 March", "The deadline is 2026-03-05"),
        ("It costs 5 euros", "It costs 7 euros"),
        ("Not every build needs a tag", "Every build needs a tag"),
        ("", ""),
        ("9:30", "10:00"),
    ],
)
def test_compatible_memories_do_not_conflict(older: str, newer: str) -> None:
    assert not find_conflict(older, newer)
    assert not find_conflict(newer, older)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Ada lives in New York City", "Ada lives in Oslo"),
        ("The default currency is Oslo", "The default currency is Ho Chi Minh"),
        ("The default theme is deep sea blue", "The default theme is nord"),
    ],
)
def test_a_value_of_three_words_can_be_in_conflict(older: str, newer: str) -> None:
    assert find_conflict(older, newer)
    assert find_conflict(newer, older)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("Ada lives in Ho Chi Minh City", "Ada lives in Oslo"),
        ("The default theme is deep sea blue contrast", "The default theme is nord"),
    ],
)
def test_a_phrase_of_four_words_is_not_compared_as_a_value(older: str, newer: str) -> None:
    assert not find_conflict(older, newer)
    assert not find_conflict(newer, older)


@pytest.mark.parametrize(
    ("one", "other"),
    [("12 months", "1 year"), ("12 months", "365 days"), ("30 days", "1 month"), ("52 weeks", "one year")],
)
def test_one_duration_in_two_units_is_not_a_conflict(one: str, other: str) -> None:
    assert not find_conflict(f"Logs are kept for {one}", f"Logs are kept for {other}")
    assert find_conflict(f"Logs are kept for {one}", "Logs are kept for 14 days")


def test_no_near_miss_is_called_a_conflict() -> None:
    near_misses = [(older, newer) for kind, _, older, newer in PAIRS if kind == "different"]
    assert [pair for pair in near_misses if find_conflict(*pair) or find_conflict(*reversed(pair))] == []


@pytest.mark.parametrize("date", ["3 March", "3 de marzo", "March 3"])
def test_the_word_after_a_date_is_part_of_the_sentence(date: str) -> None:
    (sentence,) = parse_sentences(f"The review is on {date} online")
    assert [word.stem for word in sentence.words] == ["review", "is", "on", "onlin"]
    assert [value.parts for value in sentence.values] == [(("day", 3.0), ("month", 3.0))]


def test_most_conflicts_are_found() -> None:
    conflicts = [pair for pair in PAIRS if pair[0] == "conflict"]
    found = [pair for pair in conflicts if find_conflict(pair[2], pair[3])]
    assert len(conflicts) >= 150 and len(PAIRS) - len(conflicts) >= 150
    assert len(found) >= 0.85 * len(conflicts)
    assert len({(pair[2], pair[3]) for pair in PAIRS}) == len(PAIRS)


def test_buying_and_selling_is_a_conflict_for_every_rule() -> None:
    pair = "We buy servers in March", "We sell servers in March"
    assert find_conflict(*pair) == "opposites: buy and sell"
    assert contradict(*pair)


def test_texts_in_conflict_are_never_duplicates() -> None:
    found = [(older, newer) for _, _, older, newer in PAIRS if find_conflict(older, newer)]
    assert found
    assert [pair for pair in found if not contradict(*pair) or not contradict(*reversed(pair))] == []
