"""A `.mindex.toml` may be a stranger's: it holds for its own folder, only narrows, and is ignored where it is wrong."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.config import SETTINGS, load_settings
from mindex.memory import Memory
from mindex.project_file import PROJECT_FILE, PROJECT_KEYS, find_project_file
from tests.conftest import write


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    flags: dict[str, object] = {"embedding.provider": "none", "index.exclude": "private/", "db": str(tmp_path / "m.db")}
    return Memory(settings=load_settings(flags))


def paths(memory: Memory) -> set[str]:
    return {f"{record.collection}/{record.path}" for record in memory.list(limit=50).records}


@pytest.mark.parametrize("exclude", ["[]", '["*"]', '["!private/", "!private/**"]'])
def test_a_strangers_file_does_not_reach_another_collection(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exclude: str
) -> None:
    mine = write(tmp_path / "mine", {"a.md": "one", "private/diary.md": "two"})
    stranger = write(tmp_path / "stranger", {"readme.md": "three", PROJECT_FILE: f"index.exclude = {exclude}"})
    memory.index(mine)
    monkeypatch.chdir(stranger)
    here = Memory(
        settings=load_settings(
            {"embedding.provider": "none", "index.exclude": "private/", "db": memory.settings.database}
        )
    )
    here.index()
    assert paths(here) == {"mine/a.md"}


def test_a_project_narrows_what_is_read_of_it_from_every_folder(memory: Memory, tmp_path: Path) -> None:
    files = {"a.md": "one", "drafts/b.md": "two", "private/c.md": "three", "long.md": "x " * 600, "docs/d.md": "four"}
    toml = 'index.exclude = ["drafts/", "!private/", "/docs/d.md"]\nindex.max_bytes = 1000'
    root = write(tmp_path / "project", {**files, PROJECT_FILE: toml})
    report = memory.index(root)
    assert paths(memory) == {"project/a.md"}
    assert [file.path for file in report.skipped] == ["long.md"]


def test_patterns_are_relative_to_the_folder_of_the_file(memory: Memory, tmp_path: Path) -> None:
    files = {"docs/a.md": "one", "docs/x/b.md": "two", PROJECT_FILE: 'index.exclude = ["/docs/x", "/a.md"]'}
    root = write(tmp_path / "project", files)
    memory.index(root / "docs")
    assert paths(memory) == {"docs/a.md"}


def test_a_project_cannot_raise_the_limit_of_a_files_size(memory: Memory, tmp_path: Path) -> None:
    toml = f"index.max_bytes = {10**9}"
    root = write(tmp_path / "project", {"a.md": "one", "b.md": "x " * 1_100_000, PROJECT_FILE: toml})
    assert memory.index(root).collections[0].skipped == 1


@pytest.mark.parametrize("key", sorted({setting.key for setting in SETTINGS} - {*PROJECT_KEYS}))
def test_no_other_setting_of_a_project_has_an_effect(tmp_path: Path, key: str) -> None:
    before = {one.setting.key: one.value for one in load_settings(environment={}, folder=tmp_path)}
    for value in ("0.9", "1", '"weighted"', "true", '["x"]'):
        write(tmp_path, {PROJECT_FILE: f"{key} = {value}"})
        settings = load_settings(environment={}, folder=tmp_path)
        assert {one.setting.key: one.value for one in settings} == before
        assert [note.partition(" ")[0] for note in settings.notes] == [key]


def _link(path: Path) -> None:
    (path.parent / "elsewhere.toml").write_text('index.exclude = ["*"]')
    path.symlink_to("elsewhere.toml")


HOSTILE: dict[str, Callable[[Path], object]] = {
    "no toml": lambda path: path.write_text("no toml at all"),
    "not UTF-8": lambda path: path.write_bytes(b"\xff\xfe\x00"),
    "an unknown key": lambda path: path.write_text("unknown = 1"),
    "a key that writes a line of its own": lambda path: path.write_text('"a\\nnote: all is well" = 1'),
    "a wrong type": lambda path: path.write_text("index.exclude = 3"),
    "a wrong number": lambda path: path.write_text("index.max_bytes = -1"),
    "a million brackets": lambda path: path.write_text("a = " + "[" * 60_000),
    "a deep table": lambda path: path.write_text("[" + ".".join("a" * 20_000) + "]\nb = 1"),
    "a thousand keys": lambda path: path.write_text("\n".join(f"k{n} = 1" for n in range(1_000))),
    "huge": lambda path: path.write_text("#" * 10_000_000),
    "a link": _link,
    "a pipe": lambda path: os.mkfifo(path),
    "a folder": lambda path: path.mkdir(),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_file_that_is_wrong_or_hostile_is_named_and_ignored(memory: Memory, tmp_path: Path, kind: str) -> None:
    root = write(tmp_path / "project", {"a.md": "one"})
    HOSTILE[kind](root / PROJECT_FILE)
    report = memory.index(root)
    assert paths(memory) == {"project/a.md"}
    notes = load_settings(environment={}, folder=root).notes
    assert notes == report.notes
    assert 1 <= len(notes) <= 6
    assert all(str(root / PROJECT_FILE) in note and "ignored" in note for note in notes)
    assert all("\n" not in note and len(note) < 600 for note in notes)
    (check,) = (one for one in memory.doctor() if one.name == "project file of project")
    assert not check.ok


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_the_file_of_another_user_is_ignored(tmp_path: Path) -> None:
    write(tmp_path, {PROJECT_FILE: 'index.exclude = ["*"]'})
    os.chown(tmp_path / PROJECT_FILE, 12345, 12345)
    found = find_project_file(tmp_path / "deep" / "er")
    assert found is not None
    assert (found.exclude, "another user" in found.notes[0]) == ((), True)


@given(
    st.text(max_size=200)
    | st.sampled_from(["index.exclude = ", "[index]\n", "index = "]).flatmap(
        lambda start: st.text(max_size=60).map(lambda rest: start + rest)
    )
)
def test_no_content_of_the_file_raises(tmp_path_factory: pytest.TempPathFactory, toml: str) -> None:
    folder = tmp_path_factory.mktemp("project")
    (folder / PROJECT_FILE).write_bytes(toml.encode("utf-8", "surrogatepass"))
    assert all("\n" not in note for note in load_settings(environment={}, folder=folder).notes)


def test_a_missing_working_folder_is_not_an_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    (tmp_path / "here").rmdir()
    assert load_settings(environment={}).text("agent") == "main"
