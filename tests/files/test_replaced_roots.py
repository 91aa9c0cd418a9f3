"""An indexed folder that became a link is left alone: nothing behind it was ever named to be indexed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from mindex.datatypes import IndexReport, SkippedFile
from mindex.errors import CollectionError, ForbiddenPathError
from mindex.files.file_scan import LINK, ScannedFile, read_bytes
from mindex.memory import Memory
from tests.conftest import write

Replace = Callable[[Path], None]


def _replace_root(root: Path) -> None:
    root.rename(root.with_name("before"))
    root.symlink_to(root.parent.parent / "secret")


def _replace_parent(root: Path) -> None:
    root.parent.rename(root.parent.with_name("before"))
    write(root.parent.parent / "secret" / root.name, {"a.md": "The vault code is 4711"})
    root.parent.symlink_to(root.parent.parent / "secret")


replaced = pytest.mark.parametrize("replace", [_replace_root, _replace_parent])


@pytest.fixture
def root(keyword_memory: Memory, tmp_path: Path) -> Path:
    write(tmp_path / "secret", {"a.md": "The vault code is 4711", "b.md": "another secret"})
    folder = write(tmp_path / "projects" / "docs", {"a.md": "Backups run at noon"})
    keyword_memory.index(folder)
    return folder


def texts(memory: Memory) -> list[str]:
    return [record.text for record in memory.list(limit=50).records]


@replaced
def test_it_is_reported_and_its_index_stays(keyword_memory: Memory, root: Path, replace: Replace) -> None:
    replace(root)
    report = keyword_memory.index()
    assert (report.collections, texts(keyword_memory)) == ((), ["Backups run at noon"])
    assert "'docs'" in report.notes[0]
    assert "now leads to" in report.notes[0]
    with pytest.raises(CollectionError, match=r"'docs' was not indexed.*now leads to"):
        keyword_memory.index(root)
    assert [one.name for one in keyword_memory.collections.list()] == ["docs"]
    (status,) = keyword_memory.status().collections
    assert status.missing
    (check,) = (one for one in keyword_memory.doctor() if one.name == "collection docs")
    assert not check.ok


@replaced
@pytest.mark.parametrize("named", ["projects/docs", "./projects/../projects/docs", "projects/docs/deep"])
def test_a_relative_path_does_not_follow_it_either(
    keyword_memory: Memory,
    root: Path,
    replace: Replace,
    named: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replace(root)
    write(root / "deep", {"c.md": "The vault code is 4711"})
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CollectionError, match=r"'docs' was not indexed.*now leads to"):
        keyword_memory.index(named)
    assert texts(keyword_memory) == ["Backups run at noon"]


def test_the_folder_behind_it_is_indexed_by_its_own_name(
    keyword_memory: Memory, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _replace_root(root)
    monkeypatch.chdir(tmp_path)
    assert keyword_memory.index("secret").collections[0].new == 2


def test_a_workspace_that_became_a_link_is_left_alone(tmp_path: Path) -> None:
    write(tmp_path / "secret", {"a.md": "The vault code is 4711"})
    folder = write(tmp_path / "notes", {"a.md": "Backups run at noon"})
    options = {"embedding.provider": "none", "workspace.path": str(folder), "workspace.auto_index": True}
    with Memory(tmp_path / "memory.db", options=options) as memory:
        memory.index(folder)
        folder.rename(folder.with_name("before"))
        folder.symlink_to(tmp_path / "secret")
        with pytest.raises(CollectionError, match=r"'notes' was not indexed.*now leads to"):
            memory.collections.workspace()
        assert [one.name for one in memory.collections.list()] == ["notes"]


@replaced
def test_nothing_behind_it_is_read(keyword_memory: Memory, root: Path, replace: Replace) -> None:
    replace(root)
    for reference in ("a.md", "docs/a.md:1-2", f"doc://{root}/a.md", str(root / "a.md")):
        found = keyword_memory.get(reference)
        assert (found.records, "now leads to" in "".join(found.why)) == ((), True)
    with pytest.raises(ForbiddenPathError):
        keyword_memory.lookup.read_file("a.md")


@pytest.mark.parametrize("poll", [False, True])
def test_a_watcher_leaves_it_alone(keyword_memory: Memory, root: Path, tmp_path: Path, poll: bool) -> None:
    other = write(tmp_path / "other", {"x.md": "first"})
    keyword_memory.index(other)
    _replace_root(root)
    stop, reports = threading.Event(), list[IndexReport]()

    def refreshed(report: IndexReport) -> None:
        reports.append(report)
        if len(reports) == 1:
            write(other, {"x.md": "second version"})
        if "second version" in texts(keyword_memory):
            stop.set()

    end = threading.Timer(60, stop.set)
    end.start()
    keyword_memory.watch(stop, refreshed=refreshed, poll=poll)
    end.cancel()
    assert sorted(texts(keyword_memory)) == ["Backups run at noon", "second version"]
    assert {one.name for report in reports for one in report.collections} == {"other"}


def test_a_folder_that_comes_back_is_indexed_again(keyword_memory: Memory, root: Path) -> None:
    _replace_root(root)
    keyword_memory.index()
    root.unlink()
    root.with_name("before").rename(root)
    write(root, {"b.md": "Deploys run at night"})
    assert keyword_memory.index().collections[0].new == 1


def test_a_folder_below_that_becomes_a_link_after_the_scan_is_not_followed(tmp_path: Path) -> None:
    write(tmp_path / "secret", {"a.md": "The vault code is 4711"})
    root = write(tmp_path / "docs", {"deep/a.md": "harmless"})
    file = ScannedFile("deep/a.md", os.path.realpath(root / "deep" / "a.md"), 8, 0)
    assert read_bytes(file, max_bytes=100) == b"harmless"
    (root / "deep").rename(root / "before")
    (root / "deep").symlink_to(tmp_path / "secret")
    assert read_bytes(file, max_bytes=100) == SkippedFile("deep/a.md", LINK)


def test_the_same_where_the_system_does_not_say_what_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.readlink

    def readlink(path: str, *, dir_fd: int | None = None) -> str:
        if path.startswith("/proc/"):
            raise FileNotFoundError(path)
        return real(path, dir_fd=dir_fd)

    monkeypatch.setattr("mindex.files.file_scan.os.readlink", readlink)
    test_a_folder_below_that_becomes_a_link_after_the_scan_is_not_followed(tmp_path)
