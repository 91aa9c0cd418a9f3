"""Stamps: texts whose order is that of all changes of all machines (a hybrid logical clock).

A stamp is a time in milliseconds, a counter, and the id of the machine. The next stamp of a machine is above every
stamp that it has seen, whatever its clock says: a change is later than all changes that its author knew.
"""

import re

from mindex.clock import LAST_MS

_STAMP = re.compile(r"(\d{15})\.(\d{9})\.([a-z0-9]{12})")
# Of stamps that are read. What is above is left for machines that go on from the highest one.
_HIGHEST_COUNTER = 10**8


def is_stamp(text: str) -> bool:
    """Whether a text is a stamp that a machine may go on from."""
    match = _STAMP.fullmatch(text)
    return match is not None and int(match[1]) <= LAST_MS and int(match[2]) <= _HIGHEST_COUNTER


def machine_of(stamp: str) -> str:
    return stamp[-12:]


def time_of(stamp: str) -> int:
    """The time of a stamp, in milliseconds."""
    return int(stamp[:15])


def next_stamp(latest: str, at: int, machine: str) -> str:
    """Return a stamp for a change made at a time, above the latest one that the machine has seen ('' for none)."""
    last_at, counter = (int(latest[:15]), int(latest[16:25])) if latest else (-1, 0)
    at = min(max(at, 0), LAST_MS)
    if at > last_at:
        return f"{at:015d}.{0:09d}.{machine}"
    return f"{last_at:015d}.{counter + 1:09d}.{machine}"
