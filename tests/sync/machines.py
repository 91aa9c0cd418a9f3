"""Machines that share a folder: each has its own memory, its own copy of the folder, and its own clock."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from mindex.datatypes import Record
from mindex.datatypes.transfer import SyncReport
from mindex.memory import Memory
from mindex.store.base import Store
from mindex.store.open import open_store
from mindex.store.rules.changes import UNDO_OF

OPTIONS = {"embedding.provider": "none"}
START = 1_767_225_600_000  # 2026-01-01
DAY = 86_400_000


class Clock:
    """The time of the test. Each machine is a number of milliseconds ahead of it."""

    def __init__(self) -> None:
        self.now = START
        self.ahead = 0

    def time_ns(self) -> int:
        self.now += 1  # no two calls at one time
        return (self.now + self.ahead) * 1_000_000


@contextmanager
def controlled_clock(seed: int) -> Iterator[Clock]:
    """Time and ids that are the same each time; `seed` chooses the ids."""
    clock = Clock()
    ids = Random(seed)
    with (
        patch("mindex.clock.time", SimpleNamespace(time_ns=clock.time_ns)),
        patch("secrets.token_bytes", ids.randbytes),
    ):
        yield clock


@dataclass(slots=True)
class Machine:
    name: str
    memory: Memory
    folder: Path
    clock: Clock
    ahead: int = 0

    @property
    def store(self) -> Store:
        return self.memory.store

    @contextmanager
    def at_work(self) -> Iterator[Memory]:
        """Use its memory by its own clock."""
        self.clock.ahead = self.ahead
        try:
            yield self.memory
        finally:
            self.clock.ahead = 0

    def sync(self, **options: Any) -> SyncReport:
        with self.at_work() as memory:
            return memory.sync.run(self.folder, embed=False, **options)


@contextmanager
def machines(
    folder: Path, *names: str, url: str = "", ahead: tuple[int, ...] = (), seed: int = 1
) -> Iterator[list[Machine]]:
    """Machines with empty memories: SQLite files, or databases of the engine whose URL is given."""
    made: list[Machine] = []
    with controlled_clock(seed) as clock:
        try:
            for place, name in enumerate(names):
                own = folder / name
                (own / "folder").mkdir(parents=True)
                store = open_store(f"{url}{own}" if url else own / "memory.db")
                memory = Memory(store=store, agent="main", options=OPTIONS)
                made.append(Machine(name, memory, own / "folder", clock, (*ahead, 0, 0, 0)[place]))
            yield made
        finally:
            for one in made:
                one.memory.close()


def deliver(source: Machine, target: Machine, *, share: float = 1.0, only_its_own: bool = False) -> None:
    """Bring files to a machine, as a cloud drive would: the first `share` of each, of one machine or of all."""
    own = own_folder(target)
    for path in sorted(source.folder.glob("*/*.jsonl")):
        if path.parent.name == own or (only_its_own and path.parent.name != own_folder(source)):
            continue
        place = target.folder / path.parent.name / path.name
        place.parent.mkdir(exist_ok=True)
        data = path.read_bytes()
        part = data[: int(len(data) * share)]
        if not place.exists() or place.stat().st_size < len(part):  # an older version never replaces a newer one
            place.write_bytes(part)
    for path in sorted(target.folder.glob("*/*.jsonl")) if share == 1.0 else ():
        origin = source.folder / path.parent.name / path.name
        if path.parent.name == own_folder(source) and not origin.exists():
            path.unlink()  # written again under another number


def own_folder(machine: Machine) -> str:
    facts = machine.store.sync.facts()
    return facts["machines"].rpartition('"')[0].rpartition('"')[2] if "machines" in facts else ""


def sync_all(made: list[Machine], rounds: int = 6) -> int:
    """Deliver everything to all machines until nothing changes. Returns the number of rounds."""
    for number in range(1, rounds + 1):
        reports = []
        for one in made:
            for other in made:
                if other is not one:
                    deliver(other, one)
            reports.append(one.sync())
        if not any(report.sent or report.received for report in reports):
            return number
    raise AssertionError("they still have something to tell each other")


def exported(machine: Machine) -> list[Any]:
    """Everything that an export has, without what is local to a machine.

    These are numbers, links, accesses, extractions, and the time when a text was last added again, which no change has.
    """
    with machine.store.entries.export_snapshot() as snapshot:
        rows = [
            (
                _state(replace(row.record, updated_at=0)),
                [
                    (
                        change.at,
                        change.by,
                        change.action,
                        UNDO_OF if change.reason.startswith(UNDO_OF.strip()) else change.reason,  # its number is local
                        change.batch,
                        _state(change.before),
                        _state(change.after),
                    )
                    for change in row.history
                ],
            )
            for row in snapshot.rows
        ]
    return sorted(rows, key=lambda row: str(row[0]["id"]))


def _state(record: Record | None) -> Any:
    if record is None:
        return None
    in_order = json.dumps(record.fields)  # their names also have an order in an export
    return {**asdict(replace(record, number=None)), "in order": in_order}
