"""How many requests a token may make."""

from __future__ import annotations

import pytest

from mindex.http_access.middleware import RateLimit


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_minutes_worth_of_requests_may_come_at_once_and_then_one_by_one() -> None:
    clock = Clock()
    limit = RateLimit(60, clock)
    assert [limit.wait("anna") for _ in range(60)] == [0.0] * 60
    assert limit.wait("anna") == pytest.approx(1.0)
    clock.now += 0.5
    assert limit.wait("anna") == pytest.approx(0.5)  # waiting requests cost nothing
    clock.now += 0.5
    assert limit.wait("anna") == 0.0
    assert limit.wait("anna") > 0
    clock.now += 3_600
    assert [limit.wait("anna") for _ in range(61)][-2:] == [0.0, pytest.approx(1.0)]


def test_one_token_takes_nothing_from_another_and_zero_means_unlimited() -> None:
    limit = RateLimit(1, Clock())
    assert limit.wait("anna") == limit.wait("ben") == 0.0
    assert limit.wait("anna") > 0
    free = RateLimit(0, Clock())
    assert [free.wait("anna") for _ in range(1_000)] == [0.0] * 1_000
