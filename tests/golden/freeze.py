"""Stop the clock and fix the random ids of mindex. The only golden test module that depends on its implementation.

It relies on three facts: `mindex.cli.main.main` is the entry point, the current time comes from `time.time_ns`, and
the random bytes of a new id come from `secrets`, that is from `random.SystemRandom.randbytes`. If one of them changes,
change it here.

As a program it starts the command line with both fixed: `python freeze.py CLOCK ARGUMENT...`.
"""

from __future__ import annotations

import hashlib
import random
import sys
import time
from pathlib import Path


class Frozen:
    """A clock that shows what stands in a file, in milliseconds, and random bytes that follow from the time shown.

    The file lets a test move the clock of a server in another process. The bytes depend on the time and on how many
    were drawn since the clock was moved, so that one more or one fewer id does not change the ids of later steps.
    """

    def __init__(self, clock: Path) -> None:
        self._clock = clock
        self._moves = 0
        self._drawn = 0

    def time_ns(self) -> int:
        return _read(self._clock)[0] * 1_000_000

    def randbytes(self, count: int) -> bytes:
        now, moves = _read(self._clock)
        self._drawn = self._drawn + 1 if moves == self._moves else 1
        self._moves = moves
        return hashlib.sha256(f"{now} {self._drawn}".encode()).digest()[:count]

    def patches(self) -> list[tuple[object, str, object]]:
        """What to replace: object, attribute, replacement."""
        return [
            (time, "time_ns", self.time_ns),
            (random.SystemRandom, "randbytes", lambda _, count: self.randbytes(count)),
        ]


def move(clock: Path, milliseconds: int) -> None:
    """Set the clock. A reader sees the old time or the new one, never half of a number."""
    moves = _read(clock)[1] + 1 if clock.exists() else 1
    new = clock.with_suffix(".new")
    new.write_text(f"{milliseconds} {moves}")
    new.replace(clock)


def _read(clock: Path) -> tuple[int, int]:
    """The time in milliseconds, and how often it was set."""
    now, moves = clock.read_text().split()
    return int(now), int(moves)


def command_line(arguments: list[str]) -> None:
    """Run a command in this process; raises SystemExit."""
    from mindex.cli.main import main

    main(arguments)


if __name__ == "__main__":
    for place, name, replacement in Frozen(Path(sys.argv[1])).patches():
        setattr(place, name, replacement)
    command_line(sys.argv[2:])
