"""Files that mindex writes are private; files open to all users are made private when the memory is opened."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindex.hook_pause import pause
from mindex.hooks.run import log_error
from mindex.memory import Memory
from mindex.private_files import close_to_others
from mindex.user_folders import default_database
from tests.conftest import write

pytestmark = pytest.mark.skipif(os.name != "posix", reason="modes of files are POSIX's")
KEYWORD: dict[str, object] = {"embedding.provider": "none"}


@pytest.fixture(autouse=True)
def open_handed() -> Iterator[None]:
    """The usual umask: every user may read a new file."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    """The modes of a folder and of all that is in it."""
    return {str(path): stat.S_IMODE(path.lstat().st_mode) for path in (folder, *folder.rglob("*"))}


def test_a_database_open_to_all_users_is_made_private_once_and_reported(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    db = tmp_path / "memory.db"
    with Memory(db, options=KEYWORD) as memory:
        memory.add("Backups run at noon")
        for file in tmp_path.glob("memory.db*"):
            file.chmod(0o644)
        backup = tmp_path / "memory.db.v3.1700000000000.bak"
        backup.write_bytes(b"")
        tmp_path.chmod(0o755)
        with Memory(db, options=KEYWORD) as again:
            again.add("Deploys run at night")
    assert {mode for path, mode in modes(tmp_path).items() if path != str(tmp_path)} == {0o600}
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755  # not a folder of ours
    (said,) = (one.getMessage() for one in caplog.records if "every user of this machine" in one.getMessage())
    assert str(db) in said
    assert str(backup) in said
    caplog.clear()
    Memory(db, options=KEYWORD).close()
    assert caplog.records == []


def test_a_database_that_is_shared_with_a_group_stays_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    db = tmp_path / "memory.db"
    Memory(db, options=KEYWORD).close()
    db.chmod(0o660)
    with Memory(db, options=KEYWORD) as memory:
        memory.add("Backups run at noon")
        assert {stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob("memory.db*")} == {0o660}
    assert caplog.records == []


def test_the_default_folder_from_before_is_closed(caplog: pytest.LogCaptureFixture) -> None:
    folder = default_database().parent
    folder.mkdir(parents=True)
    Memory(options=KEYWORD).close()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [str(folder) in one.getMessage() for one in caplog.records] == [True]


def test_a_database_of_another_program_and_one_that_is_read_only_are_left_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    link, other = tmp_path / "link", write(tmp_path, {"other": "text"}) / "other"
    link.symlink_to(other)
    other.chmod(0o644)
    assert close_to_others([link, tmp_path / "nothing"]) == []
    assert stat.S_IMODE(other.stat().st_mode) == 0o644
    if os.geteuid() == 0:
        os.chown(other, 12345, 12345)
        assert close_to_others([other]) == []
    assert caplog.records == []


def test_what_is_made_beside_the_database_is_private(tmp_path: Path) -> None:
    log_error(tmp_path / "a" / "hooks", "recall", ValueError("x"))
    pause(tmp_path / "b" / "hooks", None)
    workspace = tmp_path / "c" / "notes"
    with Memory(tmp_path / "d" / "memory.db", options={**KEYWORD, "workspace.path": str(workspace)}) as memory:
        memory.collections.workspace()
        memory.add("Backups run at noon")
        memory.transfer.export(tmp_path / "d" / "all.jsonl")
        memory.transfer.export(tmp_path / "f" / "all", format="markdown")
    readable = {path: oct(mode) for path, mode in modes(tmp_path).items() if mode & 0o077 and path != str(tmp_path)}
    readable.pop(str(tmp_path / "b" / "hooks" / "hooks-paused"))  # says until when, in a folder that is closed
    assert readable == {}


@pytest.mark.parametrize(
    ("shared", "file", "folder"), [(0o700, 0o600, 0o700), (0o750, 0o640, 0o750), (0o755, 0o640, 0o750)]
)
def test_a_folder_for_sync_is_as_open_as_its_group_and_never_for_all_users(
    tmp_path: Path, shared: int, file: int, folder: int
) -> None:
    place = tmp_path / "shared"
    place.mkdir()
    place.chmod(shared)
    with Memory(tmp_path / "memory.db", options=KEYWORD) as memory:
        memory.add("Backups run at noon")
        memory.sync.run(place)
    made = {stat.S_IMODE(path.stat().st_mode) for path in place.rglob("*.jsonl")}
    assert made == {file}
    assert {stat.S_IMODE(path.parent.stat().st_mode) for path in place.rglob("*.jsonl")} == {folder}
