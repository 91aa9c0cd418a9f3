"""Stamps: texts whose order is that of all changes of all machines (a hybrid logical clock).

A stamp is a time in milliseconds, a counter, and the id of the machine. The next stamp of a machine is above every
stamp that it has seen, even if its clock is behind: a change is later than all changes that its author knew. A stamp
that is more than a day ahead of the local clock is therefore never taken in: everything after it would be as far ahead.

Most stamps continue from a stamp that their machine had seen. Only those with the counter 0 have the time of its clock:
a machine that repeats a wrong time of another one is not blamed for it.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mindex.clock import DAY_MS, LAST_MS, to_iso
from mindex.errors import MindexError

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


_MIN_REPORTED = DAY_MS // 2
_ACTIVE = 30 * DAY_MS  # a machine without changes for longer does not show that this machine's clock is right


@dataclass(slots=True)
class Clocks:
    """The latest time that the clock of each machine gave, and what follows for the clock of this one."""

    now: int
    latest: dict[str, int] = field(default_factory=dict)  # machine → time

    def add(self, stamps: Iterable[str]) -> None:
        for stamp in stamps:
            if is_clock_reading(stamp):
                machine = machine_of(stamp)
                self.latest[machine] = max(time_of(stamp), self.latest.get(machine, 0))

    def ahead(self) -> dict[str, int]:
        """By how many milliseconds clocks are ahead of this machine's, by machine."""
        return {name: at - self.now for name, at in sorted(self.latest.items()) if at - self.now > _MIN_REPORTED}

    def notes(self, known: Mapping[str, int]) -> list[str]:
        """Notes on the machines whose clocks are ahead. `known` are the latest times of all other machines."""
        ahead = self.ahead()
        active = {name for name, at in {**known, **self.latest}.items() if at > self.now - _ACTIVE}
        if ahead and active <= ahead.keys() and len(ahead) > 1:
            behind = _duration(min(ahead.values()))
            return [
                f"the clock of this machine is behind the clocks of all {len(ahead)} other machines, by {behind} or "
                "more: set it"
            ]
        only = ", or the clock of this machine is behind: check both" if active <= ahead.keys() else ""
        return [
            f"the clock of {name} is {_duration(time)} ahead{only}; where two machines change the same, the changes of "
            f"{name} win"
            for name, time in ahead.items()
        ]


def check_clock(stamps: Iterable[str], now: int) -> None:
    """Raise MindexError if no change of several machines is as old as this machine's clock."""
    machines: set[str] = set()
    for stamp in filter(is_clock_reading, stamps):
        if stamp < stamp_limit(now):
            return
        machines.add(machine_of(stamp))
    if len(machines) > 1:
        raise MindexError(
            f"the clock of this machine is behind: it shows {to_iso(now)}, and all changes of {len(machines)} machines "
            "are later",
            "set the clock, then sync again",
        )


def _duration(milliseconds: int) -> str:
    hours = milliseconds / 3_600_000
    return f"{hours:.0f} hours" if hours < 72 else f"{hours / 24:,.0f} days"
