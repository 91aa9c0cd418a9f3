"""Writes of every kind while the PostgreSQL server is killed: answers are true, and a quick restart is not an error."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from itertools import count

import pytest

from mindex.datatypes import Collection, Filters
from mindex.errors import MindexError
from mindex.memory import Memory
from mindex.store import transactions
from mindex.store.transactions import in_transaction
from mindex_postgres.store import postgres_store
from tests.contract.records import memory_of, update
from tests.postgres_server import PostgresServer
from tests.running import wait_until

pytestmark = [pytest.mark.server, pytest.mark.slow]

OPTIONS = {"embedding.provider": "none"}
UNKNOWN = "whether it was is unknown"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A separate server: it is killed."""
    with PostgresServer() as server:
        yield server


def restart(server: PostgresServer, *, down: float = 0.0) -> None:
    server.kill()
    time.sleep(down)
    wait_until(lambda: not server.answers(), what="the server is gone")
    server.start_again()


# ── writers ───────────────────────────────────────────────────────────────────────────────────────────────────


@dataclass
class Writer:
    """Writes under one key after the other in a thread until it is stopped, and notes what was answered."""

    name: str
    write: Callable[[str], object]
    stored_keys: Callable[[], Iterable[str]]  # a key for each time that it is stored
    acknowledged: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    is_stopped: bool = False

    def start(self) -> None:
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        for number in count(1):
            if self.is_stopped:
                return
            key = f"{self.name}x{number}"
            try:
                self.write(key)
            except MindexError as error:
                self.failed[key] = str(error)
            else:
                self.acknowledged.append(key)

    def finish(self) -> None:
        self.is_stopped = True
        self.thread.join(120)
        assert not self.thread.is_alive(), f"{self.name} hangs"

    def check(self) -> None:
        """What was acknowledged is stored once, what was answered with an error is not stored."""
        stored = Counter(self.stored_keys())
        assert {key: stored[key] for key in self.acknowledged} == dict.fromkeys(self.acknowledged, 1)
        failed = {key: error for key, error in self.failed.items() if UNKNOWN not in error}
        assert {key: error for key, error in failed.items() if stored[key]} == {}


def writers(memory: Memory, number: int) -> list[Writer]:
    """One for each way to write, all on the connections of one memory."""
    store = memory.store
    revised = memory.add(f"number {number} is revised again and again").id
    collection = f"files{number}"
    store.files.put_collection(Collection(collection, f"/{collection}"))

    def add_together(key: str) -> None:
        parts = [memory_of(f"{key}{part}".lower()) for part in "ab"]

        def write(_: int) -> None:
            for one in parts:
                store.entries.add([one], by="me")
            store.entries.revise(parts[0].id, lambda record: replace(record, title=key), by="me", action="update")

        in_transaction(store.entries, write)

    def added_together() -> Iterator[str]:
        records = store.retrieval.list(Filters(agent="a"), limit=10_000).records
        by_key = Counter(record.id[:-1] for record in records if record.id.startswith(f"block{number}x"))
        assert set(by_key.values()) <= {2}  # whole or not at all
        assert {record.title for record in records if record.id.startswith(f"block{number}x")} <= {*by_key, ""}
        return iter(by_key)

    def texts() -> list[str]:
        return [
            record.text.split()[2]
            for record in store.retrieval.list(Filters(agent=f"ann{number}"), limit=10_000).records
            if "entry" in record.text
        ]

    return [
        Writer(f"add{number}", lambda key: memory.add(f"The entry {key} says {key}"), texts),
        Writer(
            f"revise{number}",
            lambda key: memory.update(revised, text=f"{key} is what it says", reason=key),
            lambda: [change.reason for change in memory.history(revised)],
        ),
        Writer(f"block{number}", add_together, added_together),
        Writer(
            f"index{number}",
            lambda key: store.files.apply([update(f"{key}.md", f"file {key}", collection=collection)]),
            lambda: [path.removesuffix(".md") for path in store.files.documents(collection)],
        ),
        Writer(f"token{number}", lambda key: memory.tokens.add(key), lambda: [one.name for one in memory.tokens.all()]),
        Writer(
            f"profile{number}",
            lambda key: memory.profile.set({key: True}, reason=key),
            lambda: [change.reason for change in memory.profile.history()],
        ),
    ]


@contextmanager
def writing(url: str, *, processes: int) -> Iterator[list[Writer]]:
    """Writers of every kind on several memories, which represent processes: each has its own connections."""
    with ExitStack() as stack:
        memories = [
            stack.enter_context(Memory(url, agent=f"ann{number}", options=OPTIONS)) for number in range(processes)
        ]
        running = [one for number, memory in enumerate(memories) for one in writers(memory, number)]
        for one in running:
            one.start()
        try:
            yield running
        finally:
            for one in running:
                one.finish()


def wait_for_progress(running: Sequence[Writer]) -> None:
    before = [len(one.acknowledged) + len(one.failed) for one in running]
    wait_until(
        lambda: all(
            len(one.acknowledged) + len(one.failed) > count + 1 for one, count in zip(running, before, strict=True)
        ),
        within=150,
        what="every writer has an answer",
    )


# ── the laws ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_write_of_any_kind_fails_or_is_stored_twice_while_the_server_is_killed_and_restarted(
    server: PostgresServer,
) -> None:
    with server.schema() as url, writing(url, processes=2) as running:
        for _ in range(3):
            wait_for_progress(running)
            restart(server)
        wait_for_progress(running)
        for one in running:
            one.finish()
        for one in running:
            assert one.failed == {}
            one.check()


def test_a_write_that_is_answered_with_an_error_is_not_stored(
    server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server is away for longer than a write waits."""
    defaults = {**(postgres_store.__kwdefaults__ or {}), "wait": 2.0}
    monkeypatch.setattr(postgres_store, "__kwdefaults__", defaults)
    monkeypatch.setattr(transactions, "_RETRY_SECONDS", 2.0)
    with server.schema() as url, writing(url, processes=2) as running:
        for _ in range(2):
            wait_for_progress(running)
            restart(server, down=12)
        wait_for_progress(running)
        for one in running:
            one.finish()
        assert all(one.failed for one in running)
        for one in running:
            one.check()
