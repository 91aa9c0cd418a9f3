"""Integer ids that are made of records' ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis.strategies import text

from mindex_compat.record_numbers import id_start, record_number


@given(text("0123456789abcdefghijklmnopqrstuvwxyz", min_size=10, max_size=12))
def test_an_integer_id_finds_its_record_again(id_: str) -> None:
    number = record_number(id_)
    assert 2**52 <= number < 2**53
    assert id_start(number) == id_[:10]


@pytest.mark.parametrize("number", [0, 42, 2**52 - 1, 2**52 + 36**10, 2**60])
def test_other_numbers_have_no_record(number: int) -> None:
    assert id_start(number) == ""
