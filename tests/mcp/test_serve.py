"""`mindex serve` as clients start it: in a separate process."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp.client.stdio import stdio_client

from mcp import Client, StdioServerParameters
from mindex.errors import ForeignDatabaseError
from mindex.mcp.dialect import tool_names, tools_named
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory
from tests.conftest import HANDBOOK
from tests.databases import Databases
from tests.mcp.conftest import KEYWORD, text
from tests.running import run_here

pytestmark = [pytest.mark.anyio, pytest.mark.server]

MINDEX = [sys.executable, "-c", "from mindex.cli.main import main; main()"]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> str:
    database = databases.new(tmp_path_factory.mktemp("serve") / "memory.db")
    with Memory(database, options=KEYWORD) as memory:
        memory.index(HANDBOOK)
    return database


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "MINDEX_EMBEDDING_PROVIDER": "none"}


async def test_the_client_of_the_sdk_connects_over_stdio(db: str, environment: dict[str, str]) -> None:
    command = [*MINDEX, "--db", db, "serve"]
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=environment)
    async with Client(parameters) as client:
        result = await client.call_tool("search", {"query": "补贴", "limit": 1, "view": "full"})
        assert "shanghai/on-call.zh.md" in text(result)
        assert "补贴" in text(result)
        assert client.instructions is not None
        assert "Indexed: handbook." in client.instructions


async def test_memory_exchange_works_over_stdio(database: str, environment: dict[str, str]) -> None:
    flags = ["--source-path", str(HANDBOOK), "--database-path", database, "--exclude", "*.zh.md"]
    command = [*MINDEX, "serve", "--tools", "memory-exchange", *flags, "--build-index"]
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=environment)
    async with Client(parameters) as client:
        message = "indexing"
        while "indexing" in message:
            message = text(await client.call_tool("get_index_status", {}))
        assert "- **Indexed files:** 13\n" in message
        found = text(await client.call_tool("search_memory_exchange", {"query": "PolicyController"}))
        assert f"Source: {HANDBOOK / 'domains' / 'security' / 'access.md'}\n" in found


@pytest.fixture
def started(db: str, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*MINDEX, "--db", db, "serve"], stdin=pipe, stdout=pipe, stderr=pipe, env=environment
    ) as process:
        yield process
        process.kill()


@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_server_and_stdout_has_only_the_protocol(
    started: subprocess.Popen[bytes], number: int, code: int
) -> None:
    assert started.stdin
    assert started.stdout
    started.stdin.write(json.dumps(INITIALIZE).encode() + b"\n")
    started.stdin.flush()
    assert json.loads(started.stdout.readline())["result"]["serverInfo"]["name"] == "mindex"
    started.send_signal(number)
    assert started.wait(60) == code
    assert started.stdout.read() == b""


def test_no_model_and_no_numpy_are_loaded_before_the_handshake(db: str, environment: dict[str, str]) -> None:
    script = (
        "import sys; from mindex.mcp.run_server import _Start;"
        "from mindex.mcp.server_options import ServerOptions;"
        f"_Start(ServerOptions(db={db!r}), 'native').server();"
        "print([name for name in ('numpy', 'onnxruntime', 'tokenizers', 'markdown_it', 'yaml') if name in sys.modules])"
    )
    environment["MINDEX_EMBEDDING_PROVIDER"] = "local"
    output = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True, text=True)
    assert output.stdout == "[]\n"


@pytest.mark.sqlite_only  # the token lies beside the database file
@pytest.mark.skipif(os.name == "nt", reason="modes of files are another matter there")
def test_the_first_start_over_http_writes_the_owners_token_for_its_owner_only(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    db = tmp_path / "memory.db"
    command = [*MINDEX, "--db", str(db), "serve", "--http", "0.0.0.0:0"]
    shown = []
    for _ in range(2):
        with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
            assert process.stderr
            lines: list[str] = []
            while not (lines and lines[-1].startswith("serving ")):
                lines.append(process.stderr.readline())
            process.terminate()
        assert any(line.startswith("warning: 0.0.0.0 can be reached from other machines") for line in lines)
        assert any(f"which is in {tmp_path / 'owner-token'}" in line for line in lines)
        assert stat.S_IMODE((tmp_path / "owner-token").stat().st_mode) == 0o600
        shown.append(run_here("--db", db, "token", "show").out.strip())
        assert not any(shown[-1] in line for line in lines)
    assert shown[0] == shown[1] == (tmp_path / "owner-token").read_text().strip()
    assert shown[0].startswith("mdx_")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ["--http", "0.0.0.0:0", "--no-token"],
            "error: --no-token would open this memory to every client that can reach 0.0.0.0;"
            " leave it out, or serve this machine only: --http PORT",
        ),
        (["--no-token"], "error: --no-token needs --http; add --http PORT"),
    ],
)
def test_a_server_without_tokens_is_for_this_machine_only(
    db: str, environment: dict[str, str], options: list[str], message: str
) -> None:
    command = [*MINDEX, "--db", str(db), "serve", *options]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
    )
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, message)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["--tools", "nope"],
            2,
            f"error: unknown tools 'nope'; use one of {', '.join(tool_names())}",
        ),
        (["--http", "here"], 2, "error: 'here' is not an address; write --http 8080 or --http 127.0.0.1:8080"),
        (["--root", "/nope"], 1, "error: there is no folder /nope; check the path"),
        (["--source-path", "/nope"], 1, "error: there is no folder /nope; check the path"),
        (
            ["--provider", "azure"],
            2,
            "error: --provider is a flag of MemoryExchange; use it with --tools memory-exchange",
        ),
        (
            ["--tools", "memory-exchange", "--provider", "moon"],
            2,
            "error: there is no provider 'moon'; use local or azure; mindex has more: embedding.provider",
        ),
        (["--zzz"], 2, "error: No such option '--zzz'; see `mindex serve --help`"),
        (
            ["--db", "a", "--database-path", "b"],
            2,
            "error: --db cannot be combined with --database-path; pass one of them",
        ),
    ],
)
def test_usage_errors_are_one_line(
    arguments: list[str], code: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    from mindex.cli.main import main

    with pytest.raises(SystemExit) as left:
        main(["serve", *arguments])
    assert left.value.code == code
    assert capsys.readouterr().err == f"{message}\n"


# ── in the place of another program ───────────────────────────────────────────────────────────────────────────


async def test_the_flags_of_memory_exchange_are_taken_or_explained(
    tmp_path: Path, database: str, environment: dict[str, str]
) -> None:
    flags = ["--source-path", str(HANDBOOK), "--database-path", database, "--index-name", "wiki"]
    flags += ["--azure-openai-key", "k"]
    command = [*MINDEX, "serve", "--tools", "memory-exchange", *flags]
    with (tmp_path / "log").open("w") as log:
        process = StdioServerParameters(command=command[0], args=command[1:], env=environment)
        async with Client(stdio_client(process, errlog=log)) as client:
            assert "- **Index name:** wiki\n" in text(await client.call_tool("get_index_status", {}))
    said = (tmp_path / "log").read_text()
    assert "note: --azure-openai-key is not used without --provider azure; it sets embedding.api_key\n" in said


async def test_memory_exchange_is_configured_by_its_own_variables(database: str, environment: dict[str, str]) -> None:
    environment |= {
        "MEMORYEXCHANGE_SOURCEPATH": str(HANDBOOK),
        "MEMORYEXCHANGE_DATABASEPATH": database,
        "MEMORYEXCHANGE_INDEXNAME": "wiki",
        "MEMORYEXCHANGE_PROVIDER": "Local",  # our own variable, which turns the model off, wins
    }
    command = [*MINDEX, "serve", "--tools", "memory-exchange", "--build-index"]
    async with Client(StdioServerParameters(command=command[0], args=command[1:], env=environment)) as client:
        found = text(await client.call_tool("search_memory_exchange", {"query": "PolicyController"}))
        assert f"Source: {HANDBOOK / 'domains' / 'security' / 'access.md'}\n" in found
        status = text(await client.call_tool("get_index_status", {}))
        assert f"- **Source path:** {HANDBOOK}\n" in status
        assert "- **Index name:** wiki\n" in status
    with Memory(database, options=KEYWORD) as memory:
        assert [collection.root for collection in memory.collections.list()] == [str(HANDBOOK)]


@pytest.mark.sqlite_only  # the file of another program
async def test_mudpuppy_keeps_its_home(tmp_path: Path, environment: dict[str, str]) -> None:
    home = tmp_path / "mudpuppy"
    (home / "data").mkdir(parents=True)
    theirs = home / "data" / "memory.db"
    with contextlib.closing(sqlite3.connect(theirs)) as connection:
        connection.execute("CREATE TABLE memory_entries (id INTEGER PRIMARY KEY, content TEXT)")
        connection.commit()
    before = theirs.read_bytes()
    command = [*MINDEX, "serve", "--tools", "mudpuppy"]
    process = StdioServerParameters(
        command=command[0], args=command[1:], env={**environment, "MUDPUPPY_HOME": str(home)}
    )
    async with Client(process) as client:
        await client.call_tool("memory_add", {"content": "The harbour opens at six."})
    assert theirs.read_bytes() == before
    assert (home / "data" / "memory.mindex.db").is_file()
    assert list((home / "workspace" / "memory").glob("*.md"))  # its daily log


@pytest.mark.sqlite_only  # a file that does not exist
def test_a_database_that_was_named_and_is_new_is_said_to_be_empty(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for said in (True, False):
        host = MemoryHost(ServerOptions(db=str(tmp_path / "mistyped.db"), settings=KEYWORD))
        host.memory.status()
        host.close()
        assert ("mistyped.db is new: this memory is empty" in capsys.readouterr().err) is said


@pytest.mark.sqlite_only  # the file of another program
@pytest.mark.extension("mindex_compat")
@pytest.mark.parametrize("tools", ["memorizer", "memory-mcp"])
def test_the_database_of_another_program_is_left_alone_and_the_way_to_import_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tools: str
) -> None:
    theirs = tmp_path / "memory.db"
    with contextlib.closing(sqlite3.connect(theirs)) as connection:
        connection.execute("CREATE TABLE facts (id INTEGER PRIMARY KEY, fact TEXT)")
        connection.commit()
    monkeypatch.setenv("MEMORY_DB_PATH", str(theirs))
    host = MemoryHost(ServerOptions(settings=KEYWORD, foreign=tools_named(tools).variables))
    own = tmp_path / "memory.mindex.db"
    assert host.memory.settings.database == str(own)
    bring = f"`mindex --db {own} import {theirs}`"
    assert f"bring its entries over: {bring}" in capsys.readouterr().err
    for scope in ({}, {"kinds": ["memory"]}):
        (note,) = host.memory.search("harbour", **scope).notes
        assert bring in note
    host.memory.add("The harbour opens at six.")
    assert not any(bring in note for note in host.memory.search("harbour").notes)
    host.close()


@pytest.mark.sqlite_only  # the file of another program
@pytest.mark.extension("mindex_compat")
def test_a_database_of_another_program_named_as_db_is_an_error(tmp_path: Path) -> None:
    with contextlib.closing(sqlite3.connect(tmp_path / "theirs.db")) as connection:
        connection.execute("CREATE TABLE facts (id INTEGER PRIMARY KEY, fact TEXT)")
        connection.commit()
    host = MemoryHost(
        ServerOptions(str(tmp_path / "theirs.db"), settings=KEYWORD, foreign=tools_named("memorizer").variables)
    )
    with pytest.raises(ForeignDatabaseError):
        _ = host.memory
    host.close()
