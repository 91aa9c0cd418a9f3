"""One process of `torture.py`, which works until it is killed or there is a stop file.

Arguments: the folder of the run, the role, its number, and the how manieth process of it this is.
"""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from client import Server, mindex_command
from measure import child_environment
from mindex import clock
from mindex.backup import Backups
from mindex.config import load_settings
from mindex.errors import MindexError, NotFoundError
from mindex.memory import Memory
from torture_log import Line, Log, Written

_HOUR, _DAY = 3_600, 86_400
_JUMPS = (0, 0, _HOUR, -_HOUR, 30 * _DAY, -30 * _DAY, 5 * 365 * _DAY, -10 * 365 * _DAY)  # seconds
_SPARE_BYTES = 150_000  # what a process whose file system is small finds free
_QUESTIONS = ("crates in the harbour", "who counts the barrels", '"the northern pier" crane', "ropes -barrels", "fact")
_NOUNS = ("crates", "barrels", "ropes", "anchors", "lanterns", "sails", "nets", "planks")
_PLACES = ("harbour", "northern pier", "lighthouse", "old dock", "market", "shipyard")


class Worker:
    """What all roles share: the plan, the log, and chance."""

    def __init__(self, folder: Path, role: str, number: int, attempt: int) -> None:
        self.folder, self.role, self.number = folder, role, number
        self.plan: dict[str, Any] = json.loads((folder / "plan.json").read_text())
        self.db = folder / "memory.db"
        self.log = Log(folder / "logs" / f"{role}-{number}.jsonl")
        self.chance = random.Random(f"{self.plan['seed']} {role} {number} {attempt}")

    @property
    def stopped(self) -> bool:
        return (self.folder / "stop").exists()

    def memory(self, *, embeds: bool = False) -> Memory:
        return Memory(self.db, options={} if embeds else {"embedding.provider": "none"})

    def pause(self, most: float) -> None:
        time.sleep(self.chance.uniform(0, most))

    def repeat(self, step: Callable[[], object], pause: float) -> None:
        """Do a step until the end. An error of mindex is a refusal, any other one a failure."""
        while not self.stopped:
            try:
                step()
                self.log.write(line="did", what=self.role)
            except MindexError as error:
                self.log.write(line="refused", kind=error.kind, message=str(error))
            except Exception:
                self.log.write(line="failed", error=traceback.format_exc(limit=-6))
            self.pause(pause)

    def writers(self) -> list[Path]:
        return sorted((self.folder / "logs").glob("writer-*.jsonl"))


# ── writers ───────────────────────────────────────────────────────────────────────────────────────────────────


class Writer:
    """Adds, changes, forgets, restores and purges, one after the other, and writes down what was acknowledged.

    What was intended when the process was killed is done again by the next one: it must not be there twice.
    """

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        options = worker.plan["writers"][worker.number]
        self._limited, self._embeds, self._by_server = (options[name] for name in ("limited", "embeds", "by_server"))
        if options["jumps"]:
            clock.time = _JumpingTime(worker.chance)  # type: ignore[attr-defined]  # the one place that reads the time
        if self._limited:
            self._make_room()
        self._memory = worker.memory(embeds=self._embeds)
        self._server: Server | None = None
        self._path = worker.folder / "logs" / f"writer-{worker.number}.jsonl"

    def run(self) -> None:
        written = Written.of(self._path)
        todo = written.pending
        while written.acknowledged < self._worker.plan["writes"] and not (self._worker.stopped and todo is None):
            again = todo is not None
            todo = todo or self._choose(written)
            if not again:
                self._worker.log.write(**todo)
            try:
                id_ = self._do(todo, again)
            except MindexError as error:
                self._worker.log.write(line="refused", kind=error.kind, message=str(error))
                self._worker.pause(0.5)
                if self._limited:
                    self._make_room()
                continue
            except Exception:
                self._worker.log.write(line="failed", error=traceback.format_exc(limit=-6))
                self._worker.pause(0.5)
                continue
            self._worker.log.write(durable=True, **{**todo, "line": "done", "id": id_})
            written, todo = (
                Written.of(self._path) if written.acknowledged % 50 == 0 else _after(written, todo, id_),
                None,
            )
            self._worker.pause(self._worker.plan["pause"])

    def _choose(self, written: Written) -> Line:
        chance, number = self._worker.chance, written.acknowledged
        what = chance.choices(("add", "update", "forget", "restore", "purge"), (80, 10, 4, 3, 3))[0]
        old = written.forgotten if what == "restore" else written.texts
        text = (
            f"Fact {number} of clerk {self._worker.number}: {chance.randrange(1_000)} {chance.choice(_NOUNS)}"
            f" wait in the {chance.choice(_PLACES)}"
        )
        if what == "add" or not old:
            return {"line": "intends", "what": "add", "text": text}
        return {"line": "intends", "what": what, "id": chance.choice(list(old)), "text": text}

    def _do(self, todo: Line, again: bool) -> str:
        """Do it and return the id. If it is done again, the result of the first time is not an error."""
        what, id_ = todo["what"], str(todo.get("id", ""))
        if what == "add":
            return self._add(todo["text"])
        if what == "update":
            self._memory.update(id_, text=todo["text"])
        elif what == "forget":
            if not (again and self._is_retired(id_)):
                self._memory.forget(id_)
        elif what == "restore":
            if not again or self._is_retired(id_):
                self._memory.restore(id_)
        else:
            try:
                self._memory.purge(id_)
            except NotFoundError:
                if not again:
                    raise
        return id_

    def _add(self, text: str) -> str:
        if not self._by_server:
            return self._memory.add(text).id
        if self._server is None:
            command = mindex_command("--db", self._worker.db, "serve")
            self._server = Server(command, self._worker.folder)
            self._server.initialize()
        return str(self._server.call("remember", text=text)["id"])

    def _is_retired(self, id_: str) -> bool:
        return self._memory.entries.history(id_)[-1].action == "forget"

    def _make_room(self) -> None:
        """Let the files of the database grow a little further in this process, as if someone had freed some space."""
        import resource  # not on Windows

        files = [self._worker.db, self._worker.db.with_name("memory.db-wal")]
        largest = max((file.stat().st_size for file in files if file.exists()), default=0)
        resource.setrlimit(resource.RLIMIT_FSIZE, (largest + _SPARE_BYTES, resource.RLIM_INFINITY))


def _after(written: Written, todo: Line, id_: str) -> Written:
    written._apply({**todo, "id": id_})
    return written


class _JumpingTime:
    """A clock that is put forward and back."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._jump = 0

    def time_ns(self) -> int:
        if self._chance.random() < 0.1:
            self._jump = self._chance.choice(_JUMPS)
        return time.time_ns() + self._jump * 10**9


# ── all others ────────────────────────────────────────────────────────────────────────────────────────────────


def read(worker: Worker) -> None:
    """Search, list, count and get. What was acknowledged before must be there during every write."""
    memory = worker.memory(embeds=worker.number == 0)

    def step() -> None:
        ask = worker.chance.randrange(5)
        if ask == 0:
            memory.search(worker.chance.choice(_QUESTIONS))
        elif ask == 1:
            memory.list(limit=worker.chance.randint(1, 50), offset=worker.chance.randrange(100))
        elif ask == 2:
            memory.count(worker.chance.choice(_QUESTIONS))
        elif ask == 3:
            memory.status()
        else:
            _get_one(worker, memory)

    while not worker.stopped:
        try:
            step()
            worker.log.write(line="answered")
        except Exception:  # no reader may see any error
            worker.log.write(line="reader_error", error=traceback.format_exc(limit=-6))
        worker.pause(0.3)


def _get_one(worker: Worker, memory: Memory) -> None:
    path = worker.chance.choice(worker.writers() or [worker.folder / "none"])
    written = Written.of(path)
    untouched = [id_ for id_ in written.texts if id_ not in written.touched]
    if not untouched:
        return
    id_ = worker.chance.choice(untouched)
    try:
        found = [record.text for record in memory.get(id_).records]
    except NotFoundError:
        found = []
    if found != [written.texts[id_]] and id_ not in Written.of(path).touched:
        raise LookupError(f"{id_} was acknowledged as {written.texts[id_]!r} and is {found}")


def index(worker: Worker) -> None:
    """Change files of a folder and index it."""
    notes = worker.folder / "notes"
    memory = worker.memory()

    def step() -> None:
        for _ in range(worker.chance.randint(1, 5)):
            file = notes / f"note{worker.chance.randrange(60)}.md"
            if worker.chance.random() < 0.2:
                file.unlink(missing_ok=True)
            else:
                words = " ".join(worker.chance.choices(_NOUNS, k=40))
                _replace(file, f"# Note\n\nThe {words}.\n\n## More\n\n{words} {worker.chance.random()}\n")
        memory.index(notes)

    worker.repeat(step, 3)


def _replace(file: Path, text: str) -> None:
    part = file.with_suffix(".part")
    part.write_text(text)
    part.replace(file)


def hook(worker: Worker) -> None:
    """Run the hooks of an agent; the turn that the last one stores is written down."""
    path = worker.folder / "logs" / f"hook-{worker.number}.jsonl"
    errors = worker.folder / "hooks.log"

    def run(event: str, **given: str) -> bool:
        before = errors.stat().st_size if errors.exists() else 0
        subprocess.run(
            mindex_command("--db", worker.db, "hook", event, "--client", "codex"),
            input=json.dumps({"session_id": f"session-{worker.number}", **given}).encode(),
            env=child_environment(worker.folder), capture_output=True, check=True,
        )  # fmt: skip
        after = errors.stat().st_size if errors.exists() else 0
        return after == before

    def step() -> None:
        turn = Written.of(path).acknowledged
        question = f"What of turn {turn} of session {worker.number}?"
        fine = run("session-start") & run("prompt", prompt=question)
        if run("stop", prompt=question, last_assistant_message=f"It is turn {turn} of many."):
            worker.log.write(durable=True, line="done", what="add", id=str(turn), text=question)
        elif fine:
            worker.log.write(line="refused", kind="hook", message=errors.read_text().splitlines()[-1])

    worker.repeat(step, 3)


def backup(worker: Worker) -> None:
    """Copy the database while it is written, and compare the copy with what was acknowledged before."""

    def step() -> None:
        before = {path: Written.of(path) for path in worker.writers()}
        target = worker.folder / f"backup-{worker.number}.db"
        Backups(load_settings({"db": str(worker.db)})).make(target)
        stored = texts_in(target)
        for path, written in before.items():
            changed = Written.of(path).touched
            for id_, text in written.texts.items():
                if id_ not in changed and stored.get(id_) != text:
                    raise LookupError(f"the backup lacks {id_}, which was acknowledged before it")
        with closing(sqlite3.connect(target)) as copy:
            if (found := copy.execute("PRAGMA integrity_check").fetchone()[0]) != "ok":
                raise LookupError(f"the backup is damaged: {found}")

    worker.repeat(step, 10)


def texts_in(db: Path) -> dict[str, str]:
    """The texts of all entries of a database, by id, read without mindex."""
    with closing(sqlite3.connect(db)) as connection:
        return dict(connection.execute("SELECT id, text FROM records WHERE kind != 'chunk'"))


def maintain(worker: Worker) -> None:
    """Optimize, purge what expired, check."""
    memory = worker.memory()

    def step() -> None:
        job = worker.chance.randrange(3)
        if job == 0:
            memory.maintenance.optimize()
        elif job == 1:
            memory.maintenance.purge_expired()
        else:
            memory.doctor()

    worker.repeat(step, 5)


def embed(worker: Worker) -> None:
    """Embed the pending records, then all records again."""
    memory = worker.memory(embeds=True)

    def step() -> None:
        if worker.chance.random() < 0.25:
            memory.models.reembed(force=True)
        else:
            memory.maintenance.backfill(limit=100)

    worker.repeat(step, 5)


ROLES: dict[str, Callable[[Worker], None]] = {
    "writer": lambda worker: Writer(worker).run(),
    "reader": read,
    "indexer": index,
    "hook": hook,
    "backup": backup,
    "maintenance": maintain,
    "embedding": embed,
}

if __name__ == "__main__":
    ROLES[sys.argv[2]](Worker(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])))
