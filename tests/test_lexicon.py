"""The lexicon: four languages in one table, folded, read once."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import mindex
from mindex.entries.importance import estimate_importance
from mindex.entries.sentences import parse_sentences
from mindex.lexicon import dates, load
from mindex.lexicon import meaning as known


@pytest.mark.parametrize("table", ["weekdays", "months"])
def test_every_language_has_all_weekdays_and_months(table: str) -> None:
    counts = {"weekdays": 7, "months": 12}
    assert {language: len(names.split("|")) for language, names in load("dates")[table].items()} == dict.fromkeys(
        ("en", "de", "fr", "es"), counts[table]
    )


@pytest.mark.parametrize(
    ("word", "number"), [("wednesday", 2), ("mittwoch", 2), ("mercredi", 2), ("miercoles", 2), ("sabado", 5)]
)
def test_a_weekday_is_the_same_day_in_each_language(word: str, number: int) -> None:
    assert dates.WEEKDAYS[word] == number
    (value,) = parse_sentences(f"Yoga {word}")[0].values
    assert value.parts == (("weekday", float(number)),)


def test_opposites_exclude_each_other_both_ways() -> None:
    assert all(one in known.OPPOSITES[other] for one, others in known.OPPOSITES.items() for other in others)
    assert known.OPPOSITES[known.stem("buy")] == {known.stem("rent"), known.stem("sell")}
    assert known.stem("never") in known.DIFFERENT and known.stem("never") not in known.OPPOSITES


def test_every_row_that_rules_ask_for_is_in_the_table() -> None:
    code = "".join(file.read_text("utf-8") for file in (Path(mindex.__file__).parent / "entries").glob("*.py"))
    asked = re.findall(r'known\.(?:stems|folded|named_pattern)\("(\w+)"\)|known\.reworded\(.+, "(\w+)"\)', code)
    assert len(asked) > 20
    assert not {row or table for row, table in asked} - load("meaning").keys()


def test_a_date_raises_the_importance_in_german_as_in_english() -> None:
    assert estimate_importance("Renew the passport by Wednesday", "fact") == estimate_importance(
        "Ausweis verlängern bis Mittwoch", "fact"
    )
