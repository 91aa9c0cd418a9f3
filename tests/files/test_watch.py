"""The real watcher on real files; every wait is for a condition, with a deadline."""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mindex.datatypes import IndexReport
from mindex.errors import StoreBusyError
from mindex.files import watch as watch_module
from mindex.files.service import IndexService
from mindex.memory import Memory
from tests.conftest import write
from tests.running import wait_until

pytestmark = pytest.mark.slow  # they wait for events of the file system


@pytest.fixture(autouse=True)
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """The watcher of the product, in less of a hurry to rest."""
    monkeypatch.setattr(watch_module, "DEBOUNCE_MS", 60)
    monkeypatch.setattr(watch_module, "_TICK_MS", 100)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", {"a.md": "alpha", "deep/b.md": "beta"})


class WatchedMemory:
    """A memory that is being watched in a thread."""

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.reports: list[IndexReport] = []
        self.failure: BaseException | None = None

    @property
    def texts(self) -> dict[str, str]:
        return {record.path: record.text for record in self.memory.list(limit=50).records}

    def sees(self, **files: str) -> None:
        """Wait until the memory holds these files, by their names without the suffix, and nothing else."""
        expected = {f"{name.replace('__', '/')}.md": text for name, text in files.items()}
        try:
            wait_until(lambda: self.texts == expected or self.failure is not None)
        finally:
            assert self.failure is None, self.failure
        assert self.texts == expected


@contextmanager
def watching(memory: Memory, *, poll: bool = False) -> Iterator[WatchedMemory]:
    watched = WatchedMemory(memory)
    stop = threading.Event()

    def run() -> None:
        try:
            memory.watch(stop, refreshed=watched.reports.append, poll=poll)
        except BaseException as error:
            watched.failure = error

    thread = threading.Thread(target=run)
    thread.start()
    try:
        # Two looks: the first at once, the second when events flow. From then on nothing is missed.
        wait_until(lambda: len(watched.reports) >= 2 or not thread.is_alive() or not memory.store.files.collections())
        yield watched
    finally:
        stop.set()
        thread.join(60)
    assert not thread.is_alive()
    assert watched.failure is None, watched.failure


@pytest.fixture(params=[False, True], ids=["events", "polling"])
def watched(request: pytest.FixtureRequest, keyword_memory: Memory, root: Path) -> Iterator[WatchedMemory]:
    keyword_memory.index(root)
    with watching(keyword_memory, poll=request.param) as one:
        yield one


def test_new_changed_and_deleted_files(watched: WatchedMemory, root: Path) -> None:
    watched.sees(a="alpha", deep__b="beta")
    write(root, {"c.md": "gamma"})
    watched.sees(a="alpha", deep__b="beta", c="gamma")
    write(root, {"a.md": "alpha again"})
    watched.sees(a="alpha again", deep__b="beta", c="gamma")
    (root / "c.md").unlink()
    watched.sees(a="alpha again", deep__b="beta")


def test_two_versions_of_one_size_in_one_second(watched: WatchedMemory, root: Path) -> None:
    second = 1_790_000_000 * 10**9
    for moment, text in enumerate(("first", "again", "third")):
        write(root, {"a.md": text})
        os.utime(root / "a.md", ns=(second + moment, second + moment))
        watched.sees(a=text, deep__b="beta")


def test_an_atomic_save_is_a_change(watched: WatchedMemory, root: Path) -> None:
    write(root, {".a.md.tmp": "alpha saved by an editor"})
    os.replace(root / ".a.md.tmp", root / "a.md")  # noqa: PTH105 - as editors do
    watched.sees(a="alpha saved by an editor", deep__b="beta")


def test_a_renamed_file_keeps_its_id(watched: WatchedMemory, root: Path) -> None:
    before = {record.path: record.id for record in watched.memory.list().records}
    (root / "a.md").rename(root / "renamed.md")
    watched.sees(renamed="alpha", deep__b="beta")
    assert {record.id for record in watched.memory.list().records} == set(before.values())


def test_folders_come_move_and_go(watched: WatchedMemory, root: Path) -> None:
    write(root, {"new/place/c.md": "gamma"})
    watched.sees(a="alpha", deep__b="beta", new__place__c="gamma")
    (root / "new").rename(root / "old")
    watched.sees(a="alpha", deep__b="beta", old__place__c="gamma")
    shutil.rmtree(root / "old")
    watched.sees(a="alpha", deep__b="beta")


def test_a_whole_root_deleted_and_made_again(watched: WatchedMemory, root: Path) -> None:
    shutil.rmtree(root)
    wait_until(lambda: watched.memory.status().collections[0].missing)
    assert watched.texts == {"a.md": "alpha", "deep/b.md": "beta"}  # it may be a drive that comes back
    write(root, {"a.md": "alpha is back"})
    watched.sees(a="alpha is back")
    write(root, {"c.md": "gamma"})
    watched.sees(a="alpha is back", c="gamma")


def test_a_branch_switch_of_two_hundred_files(watched: WatchedMemory, root: Path) -> None:
    for name in range(200):
        write(root, {f"src/{name % 10}/{name}.md": f"page {name}"})
    wait_until(lambda: watched.memory.list().total == 202)
    for name in range(0, 200, 2):
        (root / f"src/{name % 10}/{name}.md").unlink()
    for name in range(1, 200, 2):
        write(root, {f"src/{name % 10}/{name}.md": f"another page {name}"})
    wait_until(lambda: watched.memory.list().total == 102 and watched.memory.search("another").total == 100)
    assert all(check.ok for check in watched.memory.doctor())


def test_an_ignore_file_takes_effect_when_it_is_written(watched: WatchedMemory, root: Path) -> None:
    write(root, {".mindexignore": "deep/\n"})
    watched.sees(a="alpha")


def test_files_of_other_kinds_cause_no_work(keyword_memory: Memory, root: Path) -> None:
    keyword_memory.index(root)
    with watching(keyword_memory) as watched:
        before = len(watched.reports)
        write(root, {"image.png": "no text", "notes.log": "no markdown"})
        write(root, {"c.md": "gamma"})
        watched.sees(a="alpha", deep__b="beta", c="gamma")
        assert len(watched.reports) <= before + 2


def test_a_collection_added_later_is_watched_too(keyword_memory: Memory, root: Path, tmp_path: Path) -> None:
    with watching(keyword_memory) as watched:
        keyword_memory.index(root)
        write(root, {"c.md": "gamma"})
        watched.sees(a="alpha", deep__b="beta", c="gamma")
        more = write(tmp_path / "more", {"d.md": "delta"})
        keyword_memory.index(more)
        wait_until(lambda: len(watched.reports[-1].collections) == 2)
        write(more, {"e.md": "epsilon"})
        watched.sees(a="alpha", deep__b="beta", c="gamma", d="delta", e="epsilon")


def test_what_changes_before_the_first_event_is_not_missed(
    keyword_memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the first scan and the first event nothing is watched."""
    keyword_memory.index(root)
    begin = watch_module.watch_files

    def late(*arguments: object, **options: object) -> object:
        write(root, {"c.md": "gamma"})
        return begin(*arguments, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(watch_module, "watch_files", late)
    with watching(keyword_memory) as watched:
        watched.sees(a="alpha", deep__b="beta", c="gamma")


def failing_once(real: Callable[..., IndexReport], error: Exception) -> tuple[Callable[..., IndexReport], list[int]]:
    calls = [0]

    def index(*arguments: object, **options: object) -> IndexReport:
        calls[0] += 1
        if calls[0] == 3:
            raise error
        return real(*arguments, **options)

    return index, calls


def test_a_refresh_that_fails_is_repeated(
    keyword_memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keyword_memory.index(root)
    index, calls = failing_once(IndexService.index, StoreBusyError("memory.db was locked for 30 s", "try again"))
    monkeypatch.setattr(IndexService, "index", index)
    with watching(keyword_memory) as watched:
        write(root, {"c.md": "gamma"})
        watched.sees(a="alpha", deep__b="beta", c="gamma")
    assert calls[0] > 3
    assert "not indexed yet: memory.db was locked" in caplog.text


def test_files_are_polled_when_there_are_no_events(
    keyword_memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keyword_memory.index(root)

    def no_events(*arguments: object, **options: object) -> object:
        raise OSError("inotify watch limit reached")

    monkeypatch.setattr(watch_module, "watch_files", no_events)
    with watching(keyword_memory) as watched:
        write(root, {"c.md": "gamma"})
        watched.sees(a="alpha", deep__b="beta", c="gamma")
    assert "polling instead" in caplog.text


def test_everything_is_scanned_now_and_then(
    keyword_memory: Memory, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events get lost; the next look finds what they would have said."""
    keyword_memory.index(root)
    monkeypatch.setattr(watch_module, "_affects_index", lambda *_: False)
    looks: list[int] = []
    stop = threading.Event()

    def refresh(collections: object) -> None:
        looks.append(1)
        if len(looks) >= 4:
            stop.set()

    thread = threading.Thread(
        target=lambda: watch_module.watch(keyword_memory.store.files.collections, refresh, stop, reconcile=0.1)
    )
    thread.start()
    try:
        wait_until(stop.is_set)
    finally:
        stop.set()
        thread.join()
