"""`mindex serve` as agents start it: a process of its own."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from mcp import Client, StdioServerParameters
from mindex.mcp.dialects import DIALECTS
from mindex.memory import Memory
from tests.conftest import HANDBOOK
from tests.mcp.conftest import KEYWORD, structured, text

pytestmark = [pytest.mark.anyio, pytest.mark.server]

MINDEX = [sys.executable, "-c", "from mindex.cli.main import main; main()"]
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("serve") / "memory.db"
    with Memory(path, options=KEYWORD) as memory:
        memory.index(HANDBOOK)
    return path


@pytest.fixture
def environment() -> dict[str, str]:
    return {**os.environ, "MINDEX_EMBEDDING_PROVIDER": "none"}


async def test_the_client_of_the_sdk_connects_over_stdio(db: Path, environment: dict[str, str]) -> None:
    command = [*MINDEX, "--db", str(db), "serve"]
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=environment)
    async with Client(parameters) as client:
        result = await client.call_tool("search", {"query": "值班补贴", "limit": 1})
        assert structured(result)["results"][0]["path"] == "shanghai/on-call.zh.md"
        assert "补贴" in text(result)
        assert client.instructions is not None
        assert "Indexed: handbook." in client.instructions


async def test_memory_exchange_works_over_stdio(tmp_path: Path, environment: dict[str, str]) -> None:
    flags = ["--source-path", str(HANDBOOK), "--database-path", str(tmp_path / "m.db"), "--exclude", "*.zh.md"]
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
def started(db: Path, environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*MINDEX, "--db", str(db), "serve"], stdin=pipe, stdout=pipe, stderr=pipe, env=environment
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


def test_no_model_and_no_numpy_are_loaded_before_the_handshake(db: Path, environment: dict[str, str]) -> None:
    script = (
        "import sys; from mindex.mcp.run_server import _make_server;"
        "from mindex.mcp.server_options import ServerOptions;"
        f"_make_server(ServerOptions(db={str(db)!r}), 'native');"
        "print([name for name in ('numpy', 'onnxruntime', 'tokenizers', 'markdown_it', 'yaml') if name in sys.modules])"
    )
    environment["MINDEX_EMBEDDING_PROVIDER"] = "local"
    output = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, check=True, text=True)
    assert output.stdout == "[]\n"


def test_the_port_is_printed_on_stderr_and_a_public_host_is_warned_about(db: Path, environment: dict[str, str]) -> None:
    command = [*MINDEX, "--db", str(db), "serve", "--http", "0.0.0.0:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stderr
        assert process.stderr.readline().startswith("warning: 0.0.0.0 can be reached from other machines")
        message = re.fullmatch(r"serving http://0\.0\.0\.0:(\d+)/mcp\n", process.stderr.readline())
        assert message
        assert httpx2.get(f"http://127.0.0.1:{message[1]}/health", timeout=60).status_code == 200
        process.terminate()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["--tools", "nope"],
            2,
            f"error: unknown tools 'nope'; use one of {', '.join(DIALECTS)}",
        ),
        (["--http", "here"], 2, "error: 'here' is not an address; write --http 8080 or --http 127.0.0.1:8080"),
        (["--root", "/nope"], 1, "error: there is no folder /nope; check the path"),
        (["--source-path", "/nope"], 1, "error: there is no folder /nope; check the path"),
        (["--nope"], 2, "error: No such option '--nope'; see `mindex serve --help`"),
        (["--db", "a", "--database-path", "b"], 2, "error: --db and --database-path are the same; give one of them"),
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
