"""Measure truth over time: contradictions and updates, times in questions, and half a year of notes and turns.

The sentences are in `data`, which `data/ABOUT.md` explains. Rules are chosen on the half `dev` and reported on the
other one.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import NamedTuple

_DATA = Path(__file__).parent / "data"


class Pair(NamedTuple):
    """Two texts, and whether the newer one is an update, a conflict or about something different."""

    label: str
    language: str
    category: str
    older: str
    newer: str
    source: str = ""  # the project whose public changelog has the facts

    @property
    def half(self) -> str:
        return half(self.older, self.newer)


class TimeQuestion(NamedTuple):
    """A question, the day on which it is asked, and the first and last day that it names; `-` for none."""

    today: str
    language: str
    question: str
    first: str
    last: str
    source: str = ""  # as above

    @property
    def half(self) -> str:
        return half(self.question)


class Entry(NamedTuple):
    """An entry of the half-year."""

    day: str
    kind: str
    text: str


class CurrentValue(NamedTuple):
    """A question about something that changed in the half-year."""

    language: str
    question: str
    newer: str
    older: str
    value: str


def half(*texts: str) -> str:
    """`dev` or `held out`, by the texts alone."""
    return "dev" if hashlib.sha256("\t".join(texts).encode()).digest()[0] % 2 else "held out"


def pairs() -> list[Pair]:
    """All pairs, those with facts from public changelogs last."""
    return [Pair(*row) for row in _rows("statement_pairs") + _rows("public_pairs")]


def time_questions() -> list[TimeQuestion]:
    """All questions, those about public changelogs last."""
    return [TimeQuestion(*row) for row in _rows("time_questions") + _rows("public_time_questions")]


def half_year_entries() -> list[Entry]:
    return [Entry(*row) for row in _rows("half_year_entries")]


def half_year_questions() -> list[CurrentValue]:
    return [CurrentValue(*row) for row in _rows("half_year_questions")]


def _rows(name: str) -> list[list[str]]:
    return [line.split("\t") for line in (_DATA / f"{name}.tsv").read_text(encoding="utf-8").splitlines()]
