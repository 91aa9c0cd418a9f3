"""The workspace: a folder of notes that is indexed and watched, and whose daily log lines are not indexed."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from mindex.datatypes import TYPES, IndexReport
from mindex.errors import CollectionError, UsageError
from mindex.files import watch as watch_module
from mindex.files.daily_log_lines import without_log_lines
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory
from tests.conftest import write
from tests.running import finish, run_here, start, wait_until

DAY = "memory/2026-03-01.md"
OURS = "- **14:30:05** [fact] (manual) Port 5432 is the database"
LONG = " ".join(["words that fill a chunk so that the next paragraph begins another"] * 20)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path / "workspace"


def opened(tmp_path: Path, workspace: Path, **options: object) -> Memory:
    settings = {"embedding.provider": "none", "workspace.path": str(workspace)}
    return Memory(tmp_path / "memory.db", options={**settings, **options})


@pytest.fixture
def memory(tmp_path: Path, workspace: Path) -> Iterator[Memory]:
    with opened(tmp_path, workspace) as memory:
        yield memory


def index(memory: Memory) -> IndexReport:
    collection = memory.collections.workspace()
    assert collection is not None
    return memory.index(collection.root)


def log_in(workspace: Path) -> Path:
    (log,) = (workspace / "memory").iterdir()
    return log


def append(file: Path, text: str) -> None:
    with file.open("a", encoding="utf-8") as opened:
        opened.write(text)


# ── which lines are ours ──────────────────────────────────────────────────────────────────────────────────────


def test_log_lines_become_empty_and_every_other_line_keeps_its_number() -> None:
    text = f"# Daily Log - 2026-03-01\n\n{OURS}\nMine\n{OURS}\n"
    assert without_log_lines(DAY, text) == "# Daily Log - 2026-03-01\n\n\nMine\n\n"
    assert without_log_lines(DAY, text.replace("\n", "\r\n")).count("\r\n") == text.count("\n")
    assert without_log_lines(DAY, OURS) == ""


@pytest.mark.parametrize("type_", TYPES)
def test_a_line_of_every_type_of_memory_is_recognised(type_: str) -> None:
    assert without_log_lines(DAY, f"- **00:00:59** [{type_}] (chat (Ada)) x") == ""


@pytest.mark.parametrize(
    "line",
    [
        "- **14:30** [fact] (manual) the minute is enough for me",
        "- **14:30:05** [standup] (team) my own label",
        "- **14:30:05** [fact] no source",
        "- **25:61:00** [fact] (manual) no time of day",
        "- 14:30:05 [fact] (manual) nothing bold",
        "* **14:30:05** [fact] (manual) another bullet",
        "  - **14:30:05** [fact] (manual) below a point of mine",
        "> - **14:30:05** [fact] (manual) quoted",
        "- **14:30:05** [fact] (manual)",
    ],
)
def test_a_line_that_only_looks_alike_is_the_users(line: str) -> None:
    assert without_log_lines(DAY, line) == line


@pytest.mark.parametrize("path", ["/w/memory/2026-03-01.md", "C:\\w\\memory\\2026-03-01.md", "memory/2026-03-01.md"])
def test_a_daily_log_is_recognised_by_its_name(path: str) -> None:
    assert without_log_lines(path, OURS) == ""


@pytest.mark.parametrize(
    "path", ["/w/2026-03-01.md", "/w/memory/notes.md", "/w/memory/2026-03-01.txt", "/w/mymemory/2026-03-01.md"]
)
def test_other_files_are_read_as_they_are(path: str) -> None:
    assert without_log_lines(path, OURS) == OURS


def test_a_note_between_log_lines_is_a_separate_chunk(keyword_memory: Memory, tmp_path: Path) -> None:
    ours = "\n".join([OURS] * 50)
    text = (
        f"# Daily Log - 2026-03-01\n\n{ours}\n\nOne thought,\non two lines.\n\n{ours}\n## Evening\n{ours}\nAnother.\n"
    )
    keyword_memory.index(write(tmp_path / "notes", {DAY: text, "memory/plain.md": text}))
    lines = text.splitlines()
    chunks = [record for record in keyword_memory.list(limit=50).records if record.path == DAY]
    assert {chunk.text: chunk.title for chunk in chunks} == {
        "One thought,\non two lines.": "Daily Log - 2026-03-01",
        "Another.": "Daily Log - 2026-03-01 > Evening",
    }
    for chunk in chunks:
        assert lines[chunk.first_line - 1 : chunk.last_line] == chunk.text.split("\n")
    assert keyword_memory.search("Port 5432", path="memory/plain.md").hits  # a file like any other


def test_a_heading_that_a_person_wrote_into_a_daily_log_is_found(keyword_memory: Memory, tmp_path: Path) -> None:
    text = f"# Daily Log - 2026-03-01\n\n{OURS}\n\n## Call the harbour\n\n{OURS}\n\n#### Buy rope\n{OURS}\n"
    keyword_memory.index(write(tmp_path / "notes", {DAY: text}))
    assert {record.text: record.title for record in keyword_memory.list().records} == {
        "## Call the harbour": "Daily Log - 2026-03-01",
        "#### Buy rope": "Daily Log - 2026-03-01",
    }


# ── no feedback ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_memory_is_found_once(memory: Memory, workspace: Path) -> None:
    texts = ("The cache lives in Redis", "The cache expires after an hour", "The cache is warmed at night")
    memory.add(texts[0])
    memory.add(texts[1])
    append(log_in(workspace), "\nI wonder whether the cache needs a second server at all.\n\n")
    memory.add(texts[2])
    index(memory)
    hits = memory.search("cache", limit=20).hits
    assert sorted(hit.record.text for hit in hits if hit.record.kind == "memory") == sorted(texts)
    (mine,) = (hit.record for hit in hits if hit.record.kind == "chunk")
    assert mine.text == "I wonder whether the cache needs a second server at all."
    lines = log_in(workspace).read_text().splitlines()
    assert lines[mine.first_line - 1 : mine.last_line] == [mine.text]
    assert (mine.first_line, len(lines)) == (6, 8)


def test_a_log_of_log_lines_only_has_no_chunks(memory: Memory) -> None:
    memory.add("The cache lives in Redis")
    report = index(memory)
    assert (report.collections[0].new, report.collections[0].chunks_added) == (1, 0)
    memory.add("The queue lives in Redis")
    assert index(memory).collections[0].chunks_added == 0
    assert memory.list(memory.filters(kinds=["chunk"])).total == 0


def test_a_process_without_a_workspace_does_not_index_the_lines_either(tmp_path: Path, memory: Memory) -> None:
    memory.add("The cache lives in Redis")
    index(memory)
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as other:
        other.index(force=True)
        assert [hit.record.kind for hit in other.search("cache").hits] == ["memory"]


def test_a_forgotten_memory_does_not_come_back_through_its_line(memory: Memory) -> None:
    memory.forget(memory.add("The cache lives in Redis").id)
    index(memory)
    assert memory.search("cache").hits == ()


def test_the_log_itself_can_be_read_whole(memory: Memory, workspace: Path) -> None:
    memory.add("The cache lives in Redis")
    index(memory)
    (record,) = memory.get(f"memory/{log_in(workspace).name}").records
    assert "(manual) The cache lives in Redis" in record.text


# ── only what changed ─────────────────────────────────────────────────────────────────────────────────────────


def test_appended_lines_leave_the_chunks_before_them_alone(memory: Memory, workspace: Path) -> None:
    write(
        workspace,
        {"memory/2026-03-01.md": f"# Day\n\n## Morning\n\n{LONG}\n\n## Noon\n\n{LONG}\n\n## Night\n\nShort.\n"},
    )
    first = index(memory).collections[0]
    append(workspace / DAY, "\nOne more thought.\n")
    second = index(memory).collections[0]
    assert (second.chunks_added, second.chunks_removed, second.chunks_kept) == (1, 1, first.chunks_added - 1)
    append(workspace / DAY, f"{OURS}\n{OURS}\n")
    third = index(memory).collections[0]
    assert (third.chunks_added, third.chunks_removed, third.chunks_kept) == (0, 0, first.chunks_added)


@pytest.mark.model
def test_only_the_chunks_that_changed_are_embedded_again(tmp_path: Path, workspace: Path) -> None:
    write(workspace, {"memory/2026-03-01.md": f"# Day\n\n## Morning\n\n{LONG}\n\n## Night\n\nShort.\n"})
    with opened(tmp_path, workspace, **{"embedding.provider": "local"}) as memory:
        first = index(memory)
        assert first.embedded == first.collections[0].chunks_added > 1
        append(workspace / DAY, "\nOne more thought.\n")
        assert index(memory).embedded == 1
        append(workspace / DAY, f"{OURS}\n")
        assert index(memory).embedded == 0


def test_an_edited_file_leaves_no_stale_copy(memory: Memory, workspace: Path) -> None:
    write(workspace, {"plan.md": "We ship on Monday."})
    index(memory)
    write(workspace, {"plan.md": "We ship on Friday."})
    index(memory)
    assert memory.search("Monday").hits == ()
    assert [hit.record.text for hit in memory.search("ship").hits] == ["We ship on Friday."]


def test_chunks_get_new_line_numbers_when_a_log_line_is_purged(memory: Memory, workspace: Path) -> None:
    gone = memory.add("The cache lives in Redis")
    memory.add("The queue lives in RabbitMQ")
    append(log_in(workspace), "\nMy own thought.\n")
    index(memory)
    memory.purge(gone.id)
    report = index(memory).collections[0]
    (mine,) = (hit.record for hit in memory.search("thought").hits)
    assert (report.chunks_added, report.chunks_kept, mine.first_line) == (0, 1, 5)
    assert log_in(workspace).read_text().splitlines()[4] == "My own thought."


# ── the folder ────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_folder_is_made_and_called_workspace(memory: Memory, tmp_path: Path) -> None:
    with opened(tmp_path, tmp_path / "deep" / "notes") as other:
        collection = other.collections.workspace()
    assert collection is not None
    assert (collection.name, collection.root) == ("workspace", str(tmp_path / "deep" / "notes"))
    assert Path(collection.root).is_dir()


def test_no_workspace_is_made_when_none_is_configured(tmp_path: Path, workspace: Path, keyword_memory: Memory) -> None:
    assert keyword_memory.collections.workspace() is None
    with opened(tmp_path, workspace, **{"workspace.auto_index": False}) as memory:
        assert memory.collections.workspace() is None
    assert not workspace.exists()


def test_a_folder_that_is_indexed_already_keeps_its_name(memory: Memory, workspace: Path) -> None:
    memory.index(write(workspace, {"a.md": "alpha"}), name="notes")
    assert memory.collections.workspace() == memory.store.files.collections()[0]
    assert len(memory.store.files.collections()) == 1


def test_a_workspace_inside_an_indexed_folder_is_indexed_with_it(
    memory: Memory, tmp_path: Path, workspace: Path
) -> None:
    write(tmp_path / "outer" / "workspace", {"a.md": "alpha", DAY: f"{OURS}\n\nMine.\n"})
    memory.index(tmp_path / "outer")
    with opened(tmp_path, tmp_path / "outer" / "workspace") as other:
        collection = other.collections.workspace()
        assert collection is not None
        assert collection.name == "outer"
    assert sorted(record.text for record in memory.list().records) == ["Mine.", "alpha"]


def test_a_workspace_around_an_indexed_folder_is_refused(memory: Memory, workspace: Path) -> None:
    memory.index(write(workspace / "docs", {"a.md": "alpha"}))
    with pytest.raises(CollectionError, match="contains the collection 'docs'"):
        memory.collections.workspace()


def test_a_file_cannot_be_the_workspace(memory: Memory, workspace: Path) -> None:
    workspace.write_text("not a folder")
    with pytest.raises(UsageError, match="cannot be the workspace"):
        memory.collections.workspace()


# ── watched ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_watch_workspace_picks_up_what_a_user_appends(tmp_path: Path, workspace: Path) -> None:
    db = tmp_path / "memory.db"
    env = {"MINDEX_EMBEDDING_PROVIDER": "none"}
    write(workspace, {DAY: f"# Daily Log - 2026-03-01\n\n{OURS}\n"})
    process = start("--db", db, "watch", "--workspace", workspace, env=env)
    try:
        wait_until(lambda: db.exists(), what="a database")
        with Memory(db, options={"embedding.provider": "none"}) as memory:
            wait_until(lambda: [one.name for one in memory.store.files.collections()] == ["workspace"])
            append(workspace / DAY, "\nThe zebra crossed the road.\n")
            wait_until(lambda: memory.search("zebra").total == 1)
            (hit,) = memory.search("zebra").hits
            assert (hit.record.text, hit.record.first_line) == ("The zebra crossed the road.", 5)
            append(workspace / DAY, "- **15:00:00** [fact] (manual) The zebra is a memory\n\nA giraffe followed.\n")
            wait_until(lambda: memory.search("giraffe").total == 1)
            shown = {record.text: record.first_line for record in memory.list().records}
            assert shown == {"The zebra crossed the road.": 5, "A giraffe followed.": 8}
    finally:
        process.send_signal(signal.SIGTERM)
        ran = finish(process)
    assert ran.code == 0, ran
    assert f"watching {workspace}" in ran.err


@pytest.mark.slow
def test_watch_makes_the_workspace_of_the_settings(tmp_path: Path, workspace: Path) -> None:
    env = {"MINDEX_EMBEDDING_PROVIDER": "none", "MINDEX_WORKSPACE_PATH": str(workspace)}
    process = start("--db", tmp_path / "memory.db", "watch", env=env)
    try:
        wait_until(workspace.is_dir)
        wait_until((tmp_path / "memory.db").exists)
        with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as memory:
            wait_until(lambda: bool(memory.store.files.collections()))
            write(workspace, {"a.md": "alpha"})
            wait_until(lambda: memory.search("alpha").total == 1)
    finally:
        process.send_signal(signal.SIGTERM)
        ran = finish(process)
    assert ran.code == 0, ran


def test_an_impossible_workspace_is_one_error(tmp_path: Path) -> None:
    write(tmp_path, {"file": ""})
    ran = run_here("--db", tmp_path / "memory.db", "watch", "--workspace", tmp_path / "file")
    assert ran.code == 2
    assert "cannot be the workspace" in ran.err


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "DEBOUNCE_MS", 60)
    monkeypatch.setattr(watch_module, "_TICK_MS", 100)


@pytest.fixture
def host(tmp_path: Path, workspace: Path, eager: None) -> Iterator[MemoryHost]:
    settings = {"embedding.provider": "none", "workspace.path": str(workspace)}
    host = MemoryHost(ServerOptions(db=str(tmp_path / "memory.db"), settings=settings))
    yield host
    host.close()


def test_a_server_watches_the_workspace_and_no_other_folder(host: MemoryHost, tmp_path: Path, workspace: Path) -> None:
    docs = write(tmp_path / "docs", {"a.md": "alpha"})
    host.memory.index(docs)
    host.start()
    wait_until(lambda: len(host.memory.store.files.collections()) == 2)
    write(docs, {"b.md": "beta"})
    write(workspace, {"c.md": "gamma"})
    wait_until(lambda: host.memory.search("gamma").total == 1)
    assert host.memory.search("beta").total == 0
    host.memory.add("The cache lives in Redis")
    write(workspace, {"d.md": "delta"})
    wait_until(lambda: host.memory.search("delta").total == 1)
    assert [hit.record.kind for hit in host.memory.search("cache").hits] == ["memory"]


def test_a_server_without_a_workspace_watches_nothing(tmp_path: Path) -> None:
    host = MemoryHost(ServerOptions(db=str(tmp_path / "memory.db"), settings={"embedding.provider": "none"}))
    host.start()
    wait_until(lambda: not any(thread.name == "mindex-files" for thread in threading.enumerate()))
    assert host.memory.store.files.collections() == ()
    host.close()


def test_a_server_reports_why_a_workspace_is_not_watched(
    host: MemoryHost, workspace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace.write_text("not a folder")
    host.start()
    wait_until(lambda: not any(thread.name == "mindex-files" for thread in threading.enumerate()))
    assert "cannot be the workspace" in capsys.readouterr().err
