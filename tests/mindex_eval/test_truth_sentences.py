"""The sentences that `mindex eval --truth` measures: most are read as they were labelled, in four languages."""

from __future__ import annotations

from datetime import datetime

import pytest

from mindex.entries.conflict_rules import find_difference
from mindex.times import names_time
from mindex.times.in_text import find_window
from mindex_eval.truth import Pair, TimeQuestion, pairs, time_questions


@pytest.fixture(autouse=True)
def _european(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")


def window(text: str, today: str) -> str:
    found = find_window(text, int(datetime.fromisoformat(f"{today}T12:00").timestamp() * 1000))
    return "-" if found is None else str(found)


def expected(question: TimeQuestion) -> str:
    if question.first == question.last:
        return question.first
    return f"{question.first} to {question.last}"


@pytest.mark.parametrize("language", ["en", "de", "fr", "es"])
def test_nine_in_ten_questions_have_the_right_window(language: str) -> None:
    asked = [one for one in time_questions() if one.language == language]
    right = [one for one in asked if window(one.question, one.today) == expected(one)]
    assert len(right) >= 0.9 * len(asked)


def test_every_question_that_names_a_time_is_read() -> None:
    assert not [one.question for one in time_questions() if one.first != "-" and not names_time(one.question)]


@pytest.mark.parametrize("language", ["en", "de", "fr", "es"])
def test_most_contradictions_are_noticed_and_most_updates_supersede(language: str) -> None:
    rows = [pair for pair in pairs() if pair.language == language]
    contradictions = [pair for pair in rows if pair.label != "different"]
    updates = [pair for pair in rows if pair.label == "update"]
    assert sum(_differ(pair) for pair in contradictions) >= 0.85 * len(contradictions)
    assert sum(_supersedes(pair) for pair in updates) >= 0.6 * len(updates)


def test_texts_that_may_both_hold_are_hardly_ever_in_conflict_and_never_hidden() -> None:
    near_misses = [pair for pair in pairs() if pair.label == "different"]
    near_misses += [pair._replace(older=pair.newer, newer=pair.older) for pair in near_misses]
    assert len(near_misses) >= 400
    assert sum(_differ(pair) for pair in near_misses) <= 0.03 * len(near_misses)
    assert not [pair for pair in near_misses if _supersedes(pair)]


def _differ(pair: Pair) -> bool:
    return find_difference(pair.older, pair.newer) is not None


def _supersedes(pair: Pair) -> bool:
    difference = find_difference(pair.older, pair.newer)
    return difference is not None and difference.is_update
