"""The handshake is answered before the SDK is imported, as the SDK answers it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from mindex.mcp.dialect import tool_names, tools_named
from mindex.memory import Memory
from tests.mcp.conftest import KEYWORD
from tests.mcp.handshakes import INITIALIZED, LISTS, STATELESS, Message, initialize, prepared, replies, request

pytestmark = pytest.mark.server

SEARCH = {"name": "search", "arguments": {"query": "umbrella"}}
GET = {"name": "get", "arguments": {"refs": "history:1"}}
CONVERSATIONS: dict[str, list[Message]] = {
    "2025-11-25": [initialize("2025-11-25"), INITIALIZED, *(request(one, one) for one in LISTS)],
    "2025-06-18, with empty parameters": [
        initialize("2025-06-18", "a"),
        INITIALIZED,
        request("tools/list", 2, {}),
        request("ping", 3),
    ],
    "a version that there is not": [initialize("1999-01-01"), INITIALIZED, request("tools/list", 2)],
    "stateless": [request(one, index, STATELESS) for index, one in enumerate(("server/discover", *LISTS))],
    "a tool after the handshake": [
        initialize(id_=7),
        INITIALIZED,
        request("tools/list", 8),
        request("tools/call", 9, GET),
        request("tools/list", 10),
    ],
    "a tool, stateless": [
        request("server/discover", 1, STATELESS),
        request("tools/call", 2, {**STATELESS, **GET}),
    ],
    "tools before the handshake": [request("tools/list", 1), initialize(id_=2)],
    "tools before the client is ready": [initialize(), request("tools/list", 2), INITIALIZED],
    "two handshakes": [initialize(id_=1), INITIALIZED, initialize(id_=2), request("tools/list", 3)],
    "a handshake without a client": [request("initialize", 1, {"protocolVersion": "2025-06-18", "capabilities": {}})],
    "a request of the stateless era without its client": [
        request("tools/list", 1, {"_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}})
    ],
    "a page that there is not": [initialize(), INITIALIZED, request("tools/list", 2, {"cursor": "x"})],
    "an unknown method": [initialize(), INITIALIZED, request("tools/burn", 2), request("ping", 3)],
}


@pytest.fixture(scope="module")
def db(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("instant")
    (folder / 'no "tes\u2028').mkdir()
    with Memory(folder / "memory.db", options=KEYWORD) as memory:
        memory.add("The umbrella hangs behind the door.")
        memory.collections.add(folder / 'no "tes\u2028')
    return folder / "memory.db"


@pytest.mark.parametrize("messages", CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_a_client_reads_the_same_bytes_as_from_the_sdk(messages: list[Message], db: Path) -> None:
    arguments = ["--db", str(db), "serve"]

    instant, of_sdk = replies(arguments, messages), replies([*arguments, "--no-instant"], messages)

    assert instant == of_sdk
    assert len(instant) == sum("id" in message for message in messages)


@pytest.mark.parametrize("tools", tool_names())
def test_what_is_prepared_is_what_the_sdk_returns(tools: str) -> None:
    written = resources.files(tools_named(tools).handshakes).joinpath("handshakes", f"{tools}.json")
    assert written.read_bytes() == prepared(tools), "run scripts/prepare_handshakes"


def test_the_instructions_name_what_is_indexed(db: Path) -> None:
    (reply,) = replies(["--db", str(db), "serve"], [initialize()])

    assert 'Indexed: no "tes' in json.loads(reply)["result"]["instructions"]


def test_the_handshake_is_answered_without_the_sdk(db: Path) -> None:
    imported = _imported_modules(db, [initialize()])

    assert "mindex.mcp.instant_start" in imported
    assert not {"mcp", "mcp_types", "pydantic", "anyio", "starlette"} & imported


def _imported_modules(db: Path, messages: list[Message]) -> set[str]:
    """The modules that a server has imported when it has answered, as its interpreter lists them."""
    code = (
        "import os, sys; from mindex.mcp import run_server;"
        "run_server._Start.begin = lambda self: (sys.stderr.write('\\n'.join(sys.modules)), os._exit(0));"
        "from mindex.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "--db", str(db), "serve"],
        input="".join(json.dumps(message) + "\n" for message in messages).encode(),
        capture_output=True,
        env={**os.environ, "MINDEX_EMBEDDING_PROVIDER": "none"},
        check=True,
    )
    assert done.stdout
    return set(done.stderr.decode().split())


def test_messages_that_come_at_once_are_all_answered(db: Path) -> None:
    messages = [
        initialize(),
        INITIALIZED,
        request("tools/list", 2),
        request("tools/call", 3, SEARCH),
        request("ping", 4),
    ]
    found = [json.loads(line) for line in replies(["--db", str(db), "serve"], messages, at_once=True)]
    assert sorted(one["id"] for one in found) == [1, 2, 3, 4]
    assert "umbrella" in json.dumps(next(one for one in found if one["id"] == 3))


def test_a_client_that_leaves_after_the_handshake_ends_the_server_at_once(db: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "mindex", "--db", str(db), "serve"],
        input=json.dumps(initialize()).encode() + b"\n",
        capture_output=True,
        env={**os.environ, "MINDEX_EMBEDDING_PROVIDER": "none"},
        timeout=60,
        check=True,
    )

    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""
