"""The windows that questions name, in four languages, read at a fixed moment."""

from __future__ import annotations

from datetime import datetime

import pytest

from mindex.clock import DAY_MS
from mindex.times.in_text import find_window, find_windows
from mindex.times.typed import parse_time

NOW = int(datetime(2026, 6, 17, 12).timestamp() * 1000)  # a Wednesday


def window(text: str, today: str = "2026-06-17") -> str:
    found = find_window(text, int(datetime.fromisoformat(f"{today}T12:00").timestamp() * 1000))
    return "-" if found is None else str(found)


@pytest.fixture(autouse=True)
def _european(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "en_GB.UTF-8")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("what happened on 03/05", "2026-05-03"),
        ("zwischen dem 3. und 10. Mai", "2026-05-03 to 2026-05-10"),
        ("du 3 au 10 mai", "2026-05-03 to 2026-05-10"),
        ("del 3 al 10 de mayo", "2026-05-03 to 2026-05-10"),
        ("am Montag, den 3. Mai 2021", "2021-05-03"),
        ("from November to February", "2025-11-01 to 2026-02-28"),
        ("from 10 May 2026 to 3 May 2025", "2025-05-03 to 2026-05-10"),
        ("what changed over the past month", "2026-05-17 to 2026-06-17"),
        ("since last Friday", "2026-06-12 to 2026-06-17"),
        ("what did we decide before March?", "before 2026-03-01"),
        ("what did I eat after 3 May", "2026-05-04 to 2026-06-17"),
        ("was passierte am Wochenende", "2026-06-13 to 2026-06-14"),
        ("la semaine prochaine", "2026-06-22 to 2026-06-28"),
    ],
)
def test_ranges_and_open_windows(text: str, shown: str) -> None:
    assert window(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        'the song "last week"',
        "title:march",
        "what did April say",
        "24/7 support",
        "version 1.2.3 on port 2024",
        "SQL Server 2019 setup",
        "every Monday we meet",
        "le lundi on se réunit",
        "los lunes hay pizza",
        "the order of airlines before today",
        "how many days ago did I call",
        "99999999 years ago",
    ],
)
def test_words_that_only_look_like_a_time_name_none(text: str) -> None:
    assert window(text) == "-"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("was ist hier passiert", "-"),
        ("Wo liegt hier der Schlüssel?", "-"),
        ("Hier steht, was wir gestern besprochen haben", "2026-06-16"),
        ("qu'ai-je fait hier", "2026-06-16"),
        ("Où est la clé que Martin a prise hier ?", "2026-06-16"),
        ("hier", "2026-06-16"),
        ("hier soir", "2026-06-16"),
    ],
)
def test_a_word_of_two_languages_is_a_time_in_one_of_them(text: str, shown: str) -> None:
    assert window(text) == shown


def test_an_american_writes_the_month_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_ALL", "en_US.UTF-8")
    assert window("what happened on 03/05") == "2026-03-05"


def test_a_text_may_name_several_windows() -> None:
    found = find_windows("On 3 May we met, and on 10 May we signed. Last week was quiet.", NOW, 2)
    assert [str(one) for one in found] == ["2026-05-03", "2026-05-10"]


@pytest.mark.parametrize("placeholder", ["0001-01-01", "9999-05-01", "since 9998-12-31", "9999 years ago"])
def test_a_date_at_the_end_of_the_calendar_names_no_time(placeholder: str) -> None:
    found = find_windows(f"The default is {placeholder}. Changed yesterday.", NOW, 2)
    assert [str(one) for one in found] == ["2026-06-16"]
    assert found[0].starts_at is not None and found[0].ends_at == found[0].starts_at + DAY_MS


@pytest.mark.parametrize(
    ("text", "day"),
    [("letzte Woche", "2026-06-08"), ("avant-hier", "2026-06-15"), ("viernes pasado", "2026-06-12"),
     ("last summer", "2025-06-01")],
)  # fmt: skip
def test_a_window_as_a_whole_text_is_a_time(text: str, day: str) -> None:
    assert datetime.fromtimestamp(parse_time(text, now=NOW) / 1000) == datetime.fromisoformat(day)
