"""Stamps: texts whose order is that of all changes of all machines (a hybrid logical clock).

A stamp is a time in milliseconds, a counter, and the id of the machine. The next stamp of a machine is above every
stamp that it has seen, even if its clock is behind: a change is later than all changes that its author knew. A stamp
that is more than a day ahead of the local clock is therefore never taken in: everything after it would be as far ahead.
"""

import re

from mindex.clock import DAY_MS, LAST_MS

_STAMP = re.compile(r"([0-9]{15})\.([0-9]{9})\.([a-z0-9]{12})")  # `\d` also takes digits of other scripts
_MAX_DRIFT = DAY_MS
# Of stamps that are written; mindex 0.1.0 reads none above it.
_MAX_COUNTER = 10**8


def is_stamp(text: str) -> bool:
    match = _STAMP.fullmatch(text)
    return match is not None and int(match[1]) <= LAST_MS


def stamp_limit(now: int) -> str:
    """Return the text below which all stamps are that a machine may continue from at this time."""
    return f"{now + _MAX_DRIFT + 1:015d}"


def machine_of(stamp: str) -> str:
    return stamp[-12:]


def time_of(stamp: str) -> int:
    """The time of a stamp, in milliseconds."""
    return int(stamp[:15])


def is_clock_reading(stamp: str) -> bool:
    """Whether the time of a stamp is the one of its machine's clock, not of a stamp that the machine had seen."""
    return int(stamp[16:25]) == 0


def next_stamp(latest: str, at: int, machine: str) -> str:
    """Return a stamp for a change made at a time, above the latest one that the machine has seen ('' for none)."""
    last_at, counter = (int(latest[:15]), int(latest[16:25])) if latest else (-1, 0)
    at = min(max(at, 0), LAST_MS)
    if at > last_at:
        return f"{at:015d}.{0:09d}.{machine}"
    if counter >= _MAX_COUNTER:
        last_at, counter = last_at + 1, 0
    return f"{last_at:015d}.{counter + 1:09d}.{machine}"
