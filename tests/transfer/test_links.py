"""Links in an imported folder: those out of it are not followed, and none of them is opened to see what it is."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindex.datatypes.transfer import ImportReport
from mindex.errors import UsageError
from mindex.memory import Memory

TEXT = "# Accounts\n\nThe treasurer keeps the ledger under the third stair.\n"
KINDS = (
    "notes",
    "claude-code",
    "markdown",
    pytest.param("memorizer", marks=pytest.mark.extension("mindex_compat")),
    pytest.param("memory-search", marks=pytest.mark.extension("mindex_compat")),
)


def files_of(kind: str, folder: Path) -> dict[str, bytes]:
    """The files of a folder that can be imported."""
    if kind == "notes":
        return dict.fromkeys(("p.md", "CLAUDE.md", "memory/MEMORY.md", "memory/t.md"), TEXT.encode())
    if kind == "claude-code":
        line = {"type": "user", "sessionId": "s", "uuid": "u", "message": {"content": TEXT}}
        return dict.fromkeys(("s.jsonl", "deep/t.jsonl"), json.dumps(line).encode() + b"\n")
    if kind == "memorizer":
        return {"facts/all-facts.json": json.dumps([{"id": 1, "fact": TEXT, "agent_id": "main"}]).encode()}
    if kind == "memory-search":
        from tests.mindex_compat.importers.foreign_programs import make  # `scripts/core` deletes it

        database, _ = make(kind, folder / "made")
        return dict.fromkeys(("index.db", "indexes/other.db"), database.read_bytes())
    with Memory(folder / "made.db", options={"embedding.provider": "none"}) as memory:
        memory.add(TEXT)
        memory.transfer.export(folder / "made", format="markdown")
    return {file.relative_to(folder / "made").as_posix(): file.read_bytes() for file in folder.rglob("*.md")}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def outside(kind: str, tmp_path: Path) -> Path:
    """A folder that must not be read."""
    for name, data in files_of(kind, tmp_path / "making").items():
        (tmp_path / "outside" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "outside" / name).write_bytes(data)
    return tmp_path / "outside"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The folder that is imported."""
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "loop.md").symlink_to("loop.md")
    return tmp_path / "folder"


def link_files(folder: Path, real: Path) -> None:
    """Make a link to each file, at the place that it has in the real folder."""
    for file in [file for file in real.rglob("*") if file.is_file()]:
        place = folder / file.relative_to(real)
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(file)


def texts(memory: Memory) -> list[str]:
    with memory.store.entries.export_snapshot() as snapshot:
        return [*(row.record.text for row in snapshot.rows), *(one.name for one in memory.store.files.collections())]


def imported(memory: Memory, folder: Path, source: str) -> ImportReport | None:
    """Import a folder. None if nothing of it can be imported."""
    try:
        return memory.transfer.import_(folder, source=source)
    except UsageError:
        return None


def test_links_to_files_outside_are_not_followed(kind: str, outside: Path, folder: Path, memory: Memory) -> None:
    link_files(folder, outside)
    for source in (kind, ""):
        report = imported(memory, folder, source)
        assert report is None or {one.reason for one in report.skipped} == {
            "it is a link out of the folder, and is not followed"
        }
    assert texts(memory) == []


def test_links_to_folders_outside_are_not_followed(kind: str, outside: Path, folder: Path, memory: Memory) -> None:
    (folder.parent / "hop").symlink_to(outside)
    (folder / "more").symlink_to(outside)
    for entry in outside.iterdir():
        (folder / entry.name).symlink_to(folder.parent / "hop" / entry.name)
    for source in (kind, ""):
        imported(memory, folder, source)
    assert texts(memory) == []


def test_what_is_beside_a_link_is_imported(kind: str, outside: Path, folder: Path, memory: Memory) -> None:
    for name in ("CLAUDE.md", "zzz.md", "zzz.jsonl"):
        (folder / name).symlink_to(folder.parent / "elsewhere")
    (folder.parent / "elsewhere").write_text("# Other\n\nThe key hangs behind the clock.\n")
    for file in [file for file in outside.rglob("*") if file.is_file()]:
        place = folder / file.relative_to(outside)
        place.parent.mkdir(exist_ok=True)
        place.unlink(missing_ok=True)
        place.write_bytes(file.read_bytes())
    assert memory.transfer.import_(folder, source=kind).added > 0
    assert not any("behind the clock" in text for text in texts(memory))


def test_a_link_to_a_file_inside_is_followed(kind: str, outside: Path, folder: Path, memory: Memory) -> None:
    outside.rename(folder / "real")
    link_files(folder, folder / "real")
    report = memory.transfer.import_(folder, source=kind)
    assert report.added > 0 and not [one for one in report.skipped if "link" in one.reason]


def test_a_link_that_the_user_names_is_followed(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "CLAUDE.md").write_text(TEXT)
    (tmp_path / "folder").symlink_to(tmp_path / "real")
    (tmp_path / "AGENTS.md").symlink_to(tmp_path / "real" / "CLAUDE.md")
    assert memory.transfer.import_(tmp_path / "folder").added == 1
    assert memory.transfer.import_(tmp_path / "AGENTS.md").duplicates == 1
