"""The two laws of every target: a hostile text is answered or refused in plain words, and costs linear time."""

from __future__ import annotations

import time

from hypothesis import HealthCheck, Phase, given, seed, settings

from tests.fuzz_targets import Broken, Target
from tests.hostile import hostile_texts, repeated

# Cost in CPU time of a text four times as long. Linear is 4; the rest is for noise, and for what is measured in lumps.
_FACTOR, _CONSTANT = 6.0, 0.15
_ATTEMPTS = 4
SIZE = 5_000


class CostGrows(AssertionError):
    """A target takes more than linear time."""


def check_target(target: Target, number: int, examples: int) -> int:
    """Send a number of hostile texts, chosen by a seed. Returns how many were sent; raises Broken with the smallest."""
    sent = 0

    @seed(number)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.generate, Phase.shrink),
        print_blob=False,
    )
    @given(hostile_texts)
    def send(text: str) -> None:
        nonlocal sent
        sent += 1
        try:
            target.send(text)
        except Broken as error:
            raise Broken(f"{target.name} with {_shown(text)}: {error}") from error
        except Exception as error:
            raise Broken(f"{target.name} with {_shown(text)}: {type(error).__name__}: {error}") from error

    send()
    return sent


def _shown(text: str) -> str:
    return ascii(text) if len(text) <= 300 else f"{text[:200]!a}… ({len(text):,} characters)"


def check_cost(target: Target, unit: str, size: int = SIZE) -> None:
    """Raise CostGrows if four times the text costs more than six times the time, again and again."""
    for _ in range(_ATTEMPTS):
        small, large = _cpu_seconds(target, repeated(unit, size)), _cpu_seconds(target, repeated(unit, 4 * size))
        if large <= _FACTOR * small + _CONSTANT:
            return
    raise CostGrows(f"{target.name} with {unit!r}: {size:,} characters {small:.3f} s, {4 * size:,} {large:.3f} s")


def _cpu_seconds(target: Target, text: str) -> float:
    started = time.process_time()
    target.send(text)
    return time.process_time() - started
