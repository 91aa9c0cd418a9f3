"""The memory tool as Claude calls it, and what must not get through it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mcp import Client
from mindex.entries import note_files
from mindex.entries.note_files import ROOT, checked_path
from mindex.errors import ConflictError, MindexError
from mindex.mcp.dialect import dialect_named
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server import MindexServer
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory
from tests.mcp.conftest import KEYWORD, structured, text

pytestmark = pytest.mark.anyio

LISTING = "Here're the files and directories up to 2 levels deep in {}, excluding hidden items and node_modules:\n"


@pytest.fixture
def host(tmp_path: Path, database: str) -> Iterator[MemoryHost]:
    opened = MemoryHost(ServerOptions(db=database, root=tmp_path, settings=KEYWORD))
    yield opened
    opened.close()


@pytest.fixture
def memory(host: MemoryHost) -> Memory:
    return host.memory


class Claude:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def __call__(self, command: str, path: str | None = None, **arguments: object) -> str:
        given = {"command": command, **({"path": path} if path is not None else {}), **arguments}
        result = await self.client.call_tool("memory", given)
        assert not result.is_error, text(result)
        assert structured(result)["text"] in text(result)
        return text(result)

    async def error(self, command: str, path: str | None = None, **arguments: object) -> str:
        given = {"command": command, **({"path": path} if path is not None else {}), **arguments}
        result = await self.client.call_tool("memory", given)
        assert result.is_error, text(result)
        return text(result)


@pytest.fixture
async def claude(host: MemoryHost) -> AsyncIterator[Claude]:
    async with Client(MindexServer(host, dialect_named("anthropic"))) as client:
        yield Claude(client)


async def test_one_tool_with_the_arguments_of_the_public_one(claude: Claude) -> None:
    (tool,) = (await claude.client.list_tools()).tools
    assert tool.name == "memory"
    assert set(tool.input_schema["properties"]) == {
        "command", "path", "view_range", "file_text", "old_str", "new_str", "insert_line", "insert_text", "old_path",
        "new_path",
    }  # fmt: skip
    assert tool.input_schema["required"] == ["command"]


# ── the six commands ──────────────────────────────────────────────────────────────────────────────────────────


async def test_an_empty_memory_can_be_viewed(claude: Claude) -> None:
    assert await claude("view", ROOT) == LISTING.format(ROOT) + "0B\t/memories"
    assert await claude("view", "/memories/") == LISTING.format(ROOT) + "0B\t/memories"


async def test_files_are_created_viewed_and_listed(claude: Claude) -> None:
    path = "/memories/prefs.md"
    assert (
        await claude("create", path, file_text="Tone: brief.\nTax: none.\n") == f"File created successfully at: {path}"
    )
    assert await claude("view", path) == (
        f"Here's the content of {path} with line numbers:\n     1\tTone: brief.\n     2\tTax: none."
    )
    assert (await claude("view", path, view_range=[2, -1])).endswith("numbers:\n     2\tTax: none.")
    assert (await claude("view", path, view_range=[1, 1])).endswith("numbers:\n     1\tTone: brief.")
    await claude("create", "/memories/people/ana/notes/deep.md", file_text="x" * 1536)
    await claude("create", "/memories/.hidden", file_text="x")
    await claude("create", "/memories/empty.md", file_text="")
    assert await claude("view", ROOT) == LISTING.format(ROOT) + (
        "1.5K\t/memories\n0B\t/memories/empty.md\n1.5K\t/memories/people\n1.5K\t/memories/people/ana\n24B\t/memories/prefs.md"
    )
    assert await claude("view", "/memories/people/ana/") == LISTING.format("/memories/people/ana") + (
        "1.5K\t/memories/people/ana\n1.5K\t/memories/people/ana/notes\n1.5K\t/memories/people/ana/notes/deep.md"
    )
    assert await claude("view", "/memories/empty.md") == (
        "Here's the content of /memories/empty.md with line numbers:\n"
    )


async def test_a_text_that_occurs_once_is_replaced(claude: Claude) -> None:
    path = "/memories/a.md"
    await claude("create", path, file_text="one\ntwo\nthree\nfour\nfive\nsix\n")
    assert await claude("str_replace", path, old_str="four", new_str="4\n4½") == (
        "The memory file has been edited.\n     2\ttwo\n     3\tthree\n     4\t4\n     5\t4½\n     6\tfive\n     7\tsix"
    )
    await claude("str_replace", path, old_str="six\n")
    assert (await claude("view", path)).endswith("     6\tfive")
    assert await claude.error("str_replace", path, old_str="nine", new_str="9") == (
        f"No replacement was performed, old_str `nine` did not appear verbatim in {path}."
    )
    await claude("str_replace", path, old_str="five", new_str="aaa\naa")
    assert await claude.error("str_replace", path, old_str="aa", new_str="b") == (
        "No replacement was performed. Multiple occurrences of old_str `aa` in lines: 6, 6, 7."
        " Please ensure it is unique"
    )
    assert "old_str is empty" in await claude.error("str_replace", path, old_str="", new_str="b")


async def test_lines_are_inserted_after_a_line(claude: Claude) -> None:
    path = "/memories/a.md"
    await claude("create", path, file_text="")
    assert await claude("insert", path, insert_line=0, insert_text="two\n") == f"The file {path} has been edited."
    await claude("insert", path, insert_line=0, insert_text="one")
    await claude("insert", path, insert_line=2, insert_text="three")
    assert (await claude("view", path)).endswith(":\n     1\tone\n     2\ttwo\n     3\tthree")
    assert await claude.error("insert", path, insert_line=9, insert_text="x") == (
        "Error: Invalid `insert_line` parameter: 9. It should be within the range of lines of the file: [0, 3]"
    )


async def test_a_directory_is_deleted_with_all_below_it(claude: Claude) -> None:
    for name in ("a/1.md", "a/b/2.md", "ab.md"):
        await claude("create", f"/memories/{name}", file_text=name)
    assert await claude("delete", "/memories/a") == "Successfully deleted /memories/a"
    assert (await claude("view", ROOT)).endswith("5B\t/memories\n5B\t/memories/ab.md")
    assert await claude("create", "/memories/a/1.md", file_text="again")
    assert "itself" in await claude.error("delete", ROOT)


async def test_files_and_directories_are_renamed_and_nothing_overwritten(claude: Claude) -> None:
    for name in ("a/1.md", "a/b/2.md", "c.md"):
        await claude("create", f"/memories/{name}", file_text=name)
    move = {"old_path": "/memories/a", "new_path": "/memories/z/y"}
    assert await claude("rename", **move) == "Successfully renamed /memories/a to /memories/z/y"
    assert (await claude("view", "/memories/z/y/b/2.md")).endswith("a/b/2.md")
    for taken in ("/memories/c.md", "/memories/z", "/memories/z/y/1.md"):
        message = await claude.error("rename", old_path="/memories/c.md", new_path=taken)
        assert message.startswith(f"Error: The destination {taken} already exists")
    assert "lies in" in await claude.error("rename", old_path="/memories/z", new_path="/memories/z/inside")
    assert "is a file" in await claude.error("rename", old_path="/memories/z", new_path="/memories/c.md/z")
    assert "itself" in await claude.error("rename", old_path=ROOT, new_path="/memories/all")


@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        ("view", {"path": "/memories/no"}, "The path /memories/no does not exist. Please provide a valid path."),
        (
            "str_replace",
            {"path": "/memories/no", "old_str": "a"},
            "Error: The path /memories/no does not exist. Please provide a valid path.",
        ),
        (
            "insert",
            {"path": "/memories/d", "insert_line": 0, "insert_text": "a"},
            "Error: The path /memories/d does not",
        ),
        ("delete", {"path": "/memories/no"}, "Error: The path /memories/no does not exist"),
        ("rename", {"old_path": "/memories/no", "new_path": "/memories/x"}, "Error: The path /memories/no does not"),
        ("create", {"path": "/memories/d/f", "file_text": "x"}, "Error: File /memories/d/f already exists"),
        ("create", {"path": "/memories/D/F", "file_text": "x"}, "Error: File /memories/D/F already exists"),
        ("create", {"path": "/memories/d", "file_text": "x"}, "Error: File /memories/d already exists"),
        ("create", {"path": "/memories/d/f/g", "file_text": "x"}, "Error: /memories/d/f is a file, not a directory"),
        ("create", {"path": ROOT, "file_text": "x"}, "Error: File /memories already exists"),
        ("create", {"path": "/memories/x"}, "Error: create needs file_text"),
        ("rename", {"path": "/memories/d/f", "new_path": "/memories/x"}, "Error: rename needs old_path"),
        ("view", {"path": "/memories/d/f", "view_range": [3, 2]}, "Invalid `view_range` parameter: [3, 2]."),
        ("view", {"path": "/memories/d/f", "view_range": [1]}, "Invalid `view_range` parameter: [1]."),
        ("create", {"path": "/memories/x", "file_text": "x" * 1_048_577}, "Error: The file would have 1,048,577 bytes"),
        ("undo", {"path": "/memories/d/f"}, "command: input should be"),
        ("view", {"path": "/memories", "depth": 3}, "unknown argument 'depth'"),
    ],
)
async def test_errors_have_the_texts_that_claude_expects(
    claude: Claude, command: str, arguments: dict[str, object], message: str
) -> None:
    await claude("create", "/memories/d/f", file_text="one\ntwo\n")
    assert (await claude.error(command, **arguments)).startswith(message)  # type: ignore[arg-type]
    assert (await claude("view", "/memories/d/f")).endswith("     1\tone\n     2\ttwo")


# ── no way out ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd", "memories/a", "a.md", "", "/", "/memoriesx/a", "/memories/../etc/passwd", "/memories/..",
        "/memories/a/../../b", "/memories/%2e%2e/etc", "/memories/%2E%2e%2fetc", "/memories/%252e%252e/etc",
        "/memories/..\\etc", "\\memories\\a", "C:\\memories", "/memories/a\0.md", "/memories/a\nb", "/memories/\ud800",
        "/memories/" + "a" * 500, "/memories/a\u200b.md", "file:///memories/a",
    ],
)  # fmt: skip
async def test_paths_outside_of_the_root_are_refused(claude: Claude, memory: Memory, path: str) -> None:
    if "\ud800" not in path:  # no client can send that
        await claude.error("view", path)
        await claude.error("create", path, file_text="x")
        await claude.error("rename", old_path="/memories/a.md", new_path=path)
    with pytest.raises(MindexError):
        checked_path(path)
    assert memory.list().total == 0


@given(st.text(alphabet="./\\%2ef\0abc", max_size=30))
@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_every_accepted_path_is_below_the_root_and_normalized(tail: str) -> None:
    try:
        path = checked_path(f"{ROOT}/{tail}")
    except MindexError:
        return
    assert path == ROOT or path.startswith(f"{ROOT}/")
    assert ".." not in path.split("/")
    assert checked_path(path) == path


async def test_two_spellings_of_a_path_are_one_file(claude: Claude) -> None:
    await claude("create", "/memories//a/./b.md", file_text="x")
    assert (await claude("view", "/memories/a/b.md")).endswith("     1\tx")


# ── records like any other ────────────────────────────────────────────────────────────────────────────────────


async def test_a_file_is_a_record_that_is_found_and_undone(claude: Claude, memory: Memory) -> None:
    path = "/memories/deploy.md"
    await claude("create", path, file_text="Deploys are on Tuesday.\n")
    (hit,) = memory.search("tuesday deploys", kinds=["note"]).hits
    record = hit.record
    assert (record.kind, record.title, record.text) == ("note", path, "Deploys are on Tuesday.\n")
    assert record.fields == {"path": path}
    await claude("str_replace", path, old_str="Tuesday", new_str="Friday")
    await claude("rename", old_path=path, new_path="/memories/ops.md")
    await claude("delete", "/memories/ops.md")
    assert [change.action for change in memory.history(record.id)] == ["add", "update", "update", "forget"]
    assert memory.search("friday", kinds=["note"]).hits == ()
    for seen in ("/memories/ops.md", path):
        memory.undo(str(memory.history(record.id)[{"/memories/ops.md": 3, path: 2}[seen]].change))
        assert (await claude("view", seen)).endswith("     1\tDeploys are on Friday.")
    memory.undo(str(memory.history(record.id)[1].change))
    assert (await claude("view", path)).endswith("     1\tDeploys are on Tuesday.")


async def test_secrets_are_not_stored(claude: Claude, memory: Memory) -> None:
    message = await claude("create", "/memories/a.md", file_text="one\npassword: hunter2hunter2!\nthree\n")
    assert "note: secrets were left out: " in message
    shown = await claude("view", "/memories/a.md")
    assert "hunter2" not in shown
    assert shown.endswith("     3\tthree")
    message = await claude("insert", "/memories/a.md", insert_line=0, insert_text="password: hunter3hunter3!")
    assert "secrets were left out" in message
    assert not memory.maintenance.scan()


async def test_a_deleted_file_is_not_restored_over_a_new_one(claude: Claude, memory: Memory) -> None:
    await claude("create", "/memories/a.md", file_text="old")
    (old,) = memory.list().records
    await claude("delete", "/memories/a.md")
    await claude("create", "/memories/a.md", file_text="new")
    for bring_back in (memory.restore, memory.undo):
        with pytest.raises(ConflictError, match="same path already"):
            bring_back(old.id)
    assert (await claude("view", "/memories/a.md")).endswith("\tnew")
    await claude("rename", old_path="/memories/a.md", new_path="/memories/b.md")
    memory.restore(old.id)
    assert (await claude("view", "/memories/a.md")).endswith("\told")


def test_each_agent_has_its_own_files(memory: Memory) -> None:
    files = memory.notes
    for agent in ("main", "work"):
        files.create(agent, "/memories/a.md", f"of {agent}")
    assert files.file("work", "/memories/a.md").text == "of work"
    files.delete("work", "/memories/a.md")
    assert [*files.files("main")] == ["/memories/a.md"]
    assert not files.files("work")


def test_the_number_of_files_is_limited(memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(note_files, "MAX_FILES", 2)
    files = memory.notes
    for name in "ab":
        files.create("main", f"/memories/{name}", name)
    with pytest.raises(MindexError, match="2 files already"):
        files.create("main", "/memories/c", "c")


def test_a_text_that_cannot_be_stored_is_refused(memory: Memory) -> None:
    with pytest.raises(MindexError, match="cannot be stored"):
        memory.notes.create("main", "/memories/a", "\ud800")
