"""Values of other programs: times, lists and numbers in many notations."""

from __future__ import annotations

from typing import Any

import pytest

from mindex.transfer.importers import foreign_values as foreign
from tests.transfer.foreign_rows import NOON


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        (NOON, NOON),
        (NOON + 0.75, NOON),
        (NOON // 1000, NOON),
        (NOON / 1000 + 0.123, NOON + 123),
        (str(NOON), NOON),
        ("2026-03-01 12:00:00", NOON),
        ("2026-03-01T12:00:00Z", NOON),
        ("2026-03-01T13:00:00.1239999+01:00", NOON + 123),
        (" 2026-03-01T12:00:00.001Z ", NOON + 1),
        (b"2026-03-01 12:00:00", NOON),
        ("2026-03-01", NOON - 43_200_000),
        ("20260301", NOON - 43_200_000),
    ],
)
def test_a_time_is_the_same_in_every_notation(written: Any, meant: int) -> None:
    assert foreign.time_ms(written) == meant


@pytest.mark.parametrize("written", [None, "", "soon", True, 1e300, float("nan"), 2**62, "2026-02-30", [], b"\xff"])
def test_a_value_that_is_not_a_time_gives_the_default(written: Any) -> None:
    assert foreign.time_ms(written, 7) == 7
    assert foreign.expiry_ms(written) is None


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('["a", "b", "a", " "]', ("a", "b")),
        ('["a, b"]', ("a, b")),
        ("a, b ,", ("a", "b")),
        ("[]", ()),
        ("null", ()),
        (None, ()),
        ("", ()),
        (["a", None, 1], ("a", "1")),
        ('["a", "b', ("a", "b")),
        ('[{"x": 1}]', ('{"x": 1}',)),
        ('"a"', ("a",)),
        (5, ("5",)),
    ],
)
def test_a_list_is_the_same_in_every_notation(written: Any, meant: tuple[str, ...]) -> None:
    assert foreign.texts(written) == (meant if isinstance(meant, tuple) else (meant,))


def test_numbers_are_limited_to_our_ranges() -> None:
    weights = (0, 0.4, 7.4, 11, "8", None, "high", float("nan"), float("inf"))
    assert [foreign.importance(value) for value in weights] == [1, 1, 7, 10, 8, 5, 5, 5, 5]
    assert [foreign.confidence(value) for value in (0.5, -1, 2, None, "x", float("nan"))] == [
        0.5,
        0.0,
        1.0,
        1.0,
        1.0,
        1.0,
    ]
    assert [foreign.integer(value) for value in (3, 3.0, "3")] == [3, 3, 3]
    assert [foreign.integer(value) for value in (3.5, "x", True, None, "9" * 30)] == [None] * 5


def test_empty_values_are_not_among_the_extra_fields() -> None:
    assert foreign.extra_fields(a="", b=None, c=0, d=(), e={}, f=("x",), g=1) == {"c": 0, "f": ["x"], "g": 1}
