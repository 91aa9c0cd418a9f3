"""Eight processes write while others read, index, watch, back up, purge and embed; all are killed at random.

    python bench/torture.py --minutes 10

Some writers have a clock that jumps, one has a file system that fills up (RLIMIT_FSIZE, which needs no rights). Each
writes down what was acknowledged, on the disk, before it goes on. Afterwards every acknowledged write must be there
exactly once, `doctor --deep` content, and no reader may have seen an error. The exit code is 0 if all of that is so.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

from client import mindex_command
from measure import child_environment
from mindex.memory import Memory
from torture_log import Line, Written, read_log

_WORKER = Path(__file__).with_name("torture_worker.py")
# Role and how many. All but the first reader are killed at random.
_OTHERS = {"reader": 2, "indexer": 1, "hook": 1, "backup": 1, "maintenance": 1, "embedding": 1, "watcher": 1}
_SPARED = ("reader", 0)
_KILL_SECONDS = 0.3, 2.0  # from one kill to the next
_PROGRESSED = 0.8  # the share of kills for processes that have written something down since they were started
_PATIENCE = 3  # writers that are not done in the time get this many times as long; at least two minutes
_END_SECONDS = 120.0  # for a process to finish what it is doing


@dataclass
class Report:
    """What a run did and what it found."""

    minutes: float
    writers: int
    acknowledged: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    did: Counter[str] = field(default_factory=Counter)
    unfinished: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    returned: list[str] = field(default_factory=list)  # purged, and there all the same
    reader_errors: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    doctor: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not (
            self.unfinished or self.lost or self.doubled or self.returned
            or self.reader_errors or self.failures or self.doctor
        )  # fmt: skip

    def text(self) -> str:
        """The report as a table of markdown, with the first of every kind of fault below it."""
        rows = [
            ("processes that write", str(self.writers)),
            ("writes acknowledged", f"{self.acknowledged:,}"),
            ("processes killed with SIGKILL", f"{self.kills.total():,} ({_listed(self.kills)})"),
            ("writes refused, then repeated", f"{self.refusals.total():,} ({_listed(self.refusals)})"),
            ("answers to readers", f"{self.did['answered']:,}"),
            ("other work in that time", _listed(Counter({k: n for k, n in self.did.items() if k != "answered"}))),
            ("writers that did not finish", str(self.unfinished)),
            ("acknowledged writes lost", str(len(self.lost))),
            ("acknowledged writes doubled", str(len(self.doubled))),
            ("purged entries that are there", str(len(self.returned))),
            ("errors that a reader saw", str(len(self.reader_errors))),
            ("unexpected errors elsewhere", str(len(self.failures))),
            ("`doctor --deep`", "clean" if not self.doctor else "; ".join(self.doctor)),
        ]
        table = ["| what | result |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]
        found = [self.lost, self.doubled, self.returned, self.reader_errors, self.failures]
        faults = [fault for kind in found for fault in kind[:3]]
        return "\n".join([*table, "", *faults, "passed" if self.ok else "FAILED"])


def _listed(counts: Counter[str]) -> str:
    return ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())) or "none"


class Torture:
    """One run in a folder."""

    def __init__(self, folder: Path, *, minutes: float, writers: int, writes: int, seed: int) -> None:
        self.folder = folder
        self.report = Report(minutes, writers)
        self._seconds = minutes * 60
        self._chance = random.Random(seed)
        self._running: dict[tuple[str, int], subprocess.Popen[bytes]] = {}
        self._attempts: Counter[tuple[str, int]] = Counter()
        self._sizes: dict[tuple[str, int], int] = {}  # of the logs when the processes were started
        (folder / "logs").mkdir(parents=True)
        (folder / "notes").mkdir()
        # Every kind of writer, in turn: two embed, two have a jumping clock, one writes through a server, one has
        # little space.
        kinds = ["embeds", "jumps", "by_server", "limited", "", "jumps", "embeds", ""]
        plan = {
            "seed": seed,
            "writes": writes,
            "pause": 1.2 * self._seconds / writes,
            "writers": [
                {kind: kinds[number % len(kinds)] == kind for kind in ("embeds", "jumps", "by_server", "limited")}
                for number in range(writers)
            ],
        }
        (folder / "plan.json").write_text(json.dumps(plan))
        with Memory(folder / "memory.db", options={"embedding.provider": "none"}) as memory:
            memory.index(folder / "notes")

    def run(self) -> Report:
        try:
            self._work()
            self._end()
        finally:
            for process in self._running.values():
                process.kill()
                process.wait()
        self._read_logs()
        check(self.folder, self.report)
        return self.report

    # ── the processes ─────────────────────────────────────────────────────────────────────────────────────────

    def _work(self) -> None:
        """Keep every process running, and kill one after the other, until the time is over and the writers are done."""
        roles = [("writer", number) for number in range(self.report.writers)]
        roles += [(role, number) for role, count in _OTHERS.items() for number in range(count)]
        started = time.monotonic()
        latest = started + max(self._seconds * _PATIENCE, self._seconds + 120)
        next_kill = started + self._chance.uniform(*_KILL_SECONDS)
        done: set[tuple[str, int]] = set()
        while (now := time.monotonic()) < started + self._seconds or (len(done) < self.report.writers and now < latest):
            for name in roles:
                process = self._running.get(name)
                if process is None or process.poll() is not None:
                    if process is not None and process.returncode == 0 and name[0] == "writer":
                        done.add(name)
                    if process is not None and process.returncode not in (0, -signal.SIGKILL):
                        self.report.failures.append(f"{name[0]} {name[1]} ended with {process.returncode}")
                    if name not in done:
                        self._start(name)
            if now >= next_kill and now < started + self._seconds:
                self._kill_one(done)
                next_kill = time.monotonic() + self._chance.uniform(*_KILL_SECONDS)
            time.sleep(0.05)
        self.report.unfinished = self.report.writers - len(done)

    def _start(self, name: tuple[str, int]) -> None:
        role, number = name
        self._attempts[name] += 1
        self._sizes[name] = self._log_size(name)
        command = [sys.executable, str(_WORKER), str(self.folder), role, str(number), str(self._attempts[name])]
        if role == "watcher":
            command = mindex_command("--db", self.folder / "memory.db", "watch")
        errors = (self.folder / "logs" / f"{role}-{number}.stderr").open("ab")
        with errors:
            self._running[name] = subprocess.Popen(
                command,
                env=child_environment(self.folder)
                | ({"MINDEX_EMBEDDING_PROVIDER": "none"} if role == "watcher" else {}),
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )

    def _kill_one(self, done: set[tuple[str, int]]) -> None:
        """Kill a process, mostly one that has got somewhere: on a busy machine few others ever would."""
        names = [name for name in self._running if name != _SPARED and name not in done]
        if self._chance.random() < _PROGRESSED:
            names = [name for name in names if self._log_size(name) > self._sizes[name]] or names
        name = self._chance.choice(names)
        process = self._running[name]
        if process.poll() is None:
            process.kill()
            process.wait()
            self.report.kills[name[0]] += 1

    def _log_size(self, name: tuple[str, int]) -> int:
        path = self.folder / "logs" / f"{name[0]}-{name[1]}.jsonl"
        return path.stat().st_size if path.exists() else 0

    def _end(self) -> None:
        (self.folder / "stop").touch()
        for (role, number), process in self._running.items():
            if role == "watcher":
                process.terminate()
            try:
                process.wait(_END_SECONDS)
            except subprocess.TimeoutExpired:
                self.report.failures.append(f"{role} {number} did not end")
                process.kill()
                process.wait()

    # ── afterwards ────────────────────────────────────────────────────────────────────────────────────────────

    def _read_logs(self) -> None:
        for path in sorted((self.folder / "logs").glob("*.jsonl")):
            for line in read_log(path):
                self._count(path.stem, line)
        for path in sorted((self.folder / "logs").glob("*.stderr")):
            if "Traceback" in (said := path.read_text(errors="replace")):
                self.report.failures.append(f"{path.stem}: {said[-2_000:]}")

    def _count(self, name: str, line: Line) -> None:
        if line["line"] == "refused":
            self.report.refusals["no space" if "free space" in line["message"] else line["kind"]] += 1
        elif line["line"] == "failed":
            self.report.failures.append(f"{name}: {line['error']}")
        elif line["line"] == "reader_error":
            self.report.reader_errors.append(f"{name}: {line['error']}")
        elif line["line"] == "answered":
            self.report.did["answered"] += 1
        elif line["line"] == "did":
            self.report.did[line["what"]] += 1


def check(folder: Path, report: Report) -> None:
    """Compare the store with the logs, without mindex; then have mindex check itself and index once more."""
    with closing(sqlite3.connect(folder / "memory.db")) as connection:
        rows = connection.execute("SELECT id, text, retired_at FROM records WHERE kind != 'chunk'")
        stored = {id_: (text, retired) for id_, text, retired in rows}
        texts = Counter(text for text, _ in stored.values())
        turns = [text for (text,) in connection.execute("SELECT text FROM records WHERE kind = 'turn'")]
    for path in sorted((folder / "logs").glob("writer-*.jsonl")):
        written = Written.of(path)
        report.acknowledged += written.acknowledged
        unsure = str((written.pending or {}).get("id", ""))
        for state, is_retired in ((written.texts, False), (written.forgotten, True)):
            for id_, text in state.items():
                found, retired = stored.get(id_, ("", None))
                if (found, retired is not None) != (text, is_retired) and id_ != unsure:
                    report.lost.append(f"{path.stem}: {id_} {text!r} is {found!r}, retired {retired}")
                if texts[text] > 1:
                    report.doubled.append(f"{path.stem}: {text!r} is there {texts[text]} times")
        report.returned += [f"{path.stem}: {id_}" for id_ in written.purged if id_ in stored]
    for path in sorted((folder / "logs").glob("hook-*.jsonl")):
        for question in Written.of(path).texts.values():
            report.acknowledged += 1
            if (count := sum(question in turn for turn in turns)) != 1:
                kind = report.lost if not count else report.doubled
                kind.append(f"{path.stem}: the turn {question!r} is there {count} times")
    with Memory(folder / "memory.db", options={"embedding.provider": "none"}) as memory:
        memory.index(folder / "notes")
        files = {path.name for path in (folder / "notes").glob("*.md")}
        indexed = set(memory.store.files.documents("notes"))
        if files != indexed:
            report.lost.append(f"files and documents differ: {files ^ indexed}")
        # A change of model that was killed is not done, and goes on with the next `reembed`: nothing is wrong with it.
        failed = [check for check in memory.doctor(deep=True) if not check.ok and check.name != "change of model"]
        report.doctor = [f"{check.name}: {check.message}" for check in failed]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--writers", type=int, default=8)
    parser.add_argument("--writes", type=int, default=1_000, help="of each writer")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--work", type=Path, help="keep the databases and logs in this new folder")
    given = parser.parse_args(arguments)
    if os.name == "nt":
        parser.error("it kills processes by signals, which Windows has not")
    folder = given.work or Path(tempfile.mkdtemp(prefix="mindex-torture-"))
    try:
        report = Torture(
            folder / "run", minutes=given.minutes, writers=given.writers, writes=given.writes, seed=given.seed
        ).run()
    finally:
        if given.work is None:
            shutil.rmtree(folder, ignore_errors=True)
    print(report.text())
    return 0 if report.ok else 1


if __name__ == "__main__":
    sys.exit(main())
