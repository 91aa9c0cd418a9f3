"""The clocks of the machines, as the stamps of their changes show them.

Most stamps continue from a stamp that their machine had seen. Only those with the counter 0 have the time of its clock:
a machine that repeats a wrong time of another one is not blamed for it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from mindex.clock import DAY_MS, to_iso
from mindex.errors import MindexError
from mindex.sync.stamps import is_clock_reading, machine_of, stamp_limit, time_of

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
