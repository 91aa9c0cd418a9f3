"""Timing that can be believed on a busy machine: subject and baseline take turns, and medians are compared."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the table. `ratio` is what was measured over the baseline, unless `target` says otherwise."""

    name: str
    measured: str
    baseline: str
    ratio: str
    target: str
    ok: bool | None  # None: could not be measured here, the note says why
    note: str = ""
    numbers: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Took:
    """Seconds by the clock on the wall, and of all cores together (0 where the system does not tell)."""

    wall: float
    cpu: float = 0.0


class Timings:
    """What one side took, run by run."""

    def __init__(self, runs: Sequence[Took]) -> None:
        self.runs = tuple(runs)

    @property
    def wall(self) -> float:
        return statistics.median(run.wall for run in self.runs)

    @property
    def cpu(self) -> float:
        return statistics.median(run.cpu for run in self.runs)

    @property
    def spread(self) -> str:
        """The middle half of the runs, in the unit that `told` would choose."""
        ordered = sorted(run.wall for run in self.runs)
        quarter = len(ordered) // 4
        return f"{told(ordered[quarter])}–{told(ordered[-1 - quarter])}"

    def over(self, other: Timings) -> float:
        return self.wall / other.wall

    def cpu_over(self, other: Timings) -> float:
        return self.cpu / other.cpu if other.cpu else 0.0


def told(seconds: float) -> str:
    """`1.23 s`, `45.6 ms`: three digits that matter."""
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.3g} ms" if seconds < 0.1 else f"{seconds:.3f} s"


def timed(work: Callable[[], object]) -> Took:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return Took(time.perf_counter() - wall, time.process_time() - cpu)


def alternate(turns: int, *sides: Callable[[int], Took]) -> list[Timings]:
    """Run every side once per turn, each turn in the opposite order: a busy machine then slows all sides."""
    taken: list[list[Took]] = [[] for _ in sides]
    for turn in range(turns):
        places = range(len(sides)) if turn % 2 == 0 else reversed(range(len(sides)))
        for place in places:
            taken[place].append(sides[place](turn))
    return [Timings(runs) for runs in taken]


# ── children ──────────────────────────────────────────────────────────────────────────────────────────────────


def child_environment(work: Path) -> dict[str, str]:
    """As for a user who has just installed mindex: no settings, bytecode allowed, model copy in the work folder."""
    left_out = ("MINDEX_", "PYTHONDONTWRITEBYTECODE", "PYTHONPATH", "PYTHONUNBUFFERED", "COVERAGE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return kept | {
        "MINDEX_CACHE_DIR": str(work / "cache"),
        "XDG_CONFIG_HOME": str(work / "config"),
        "XDG_DATA_HOME": str(work / "data"),
    }


def run_child(
    command: Sequence[str], work: Path, settings: Mapping[str, str] | None = None, stdin: bytes = b""
) -> Took:
    """One process from its start to its end; `settings` are for its environment."""
    before, started = _children_cpu(), time.perf_counter()
    child_output(command, work, settings, stdin)
    return Took(time.perf_counter() - started, _children_cpu() - before)


def child_output(
    command: Sequence[str], work: Path, settings: Mapping[str, str] | None = None, stdin: bytes = b""
) -> bytes:
    """What a process prints; its stderr is shown if it fails."""
    environment = child_environment(work) | dict(settings or {})
    done = subprocess.run(command, input=stdin, env=environment, cwd=work, capture_output=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr.decode(errors='replace')}")
    return done.stdout


def _children_cpu() -> float:
    """To the microsecond; `os.times` counts in steps of 10 ms, a fifth of what a bare Python takes."""
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def load() -> str:
    if not hasattr(os, "getloadavg"):
        return "load unknown"
    return f"load {' '.join(f'{value:.1f}' for value in os.getloadavg())} on {os.cpu_count()} cores"
