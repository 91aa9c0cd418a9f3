"""`search` and `fetch` as ChatGPT's connectors call them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult

from mcp import Client
from mindex.mcp.dialect import dialect_named
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server import MindexServer
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory
from tests.conftest import write
from tests.mcp.conftest import KEYWORD, structured, text

pytestmark = pytest.mark.anyio


@pytest.fixture
def memory(tmp_path: Path, database: str) -> Iterator[Memory]:
    host = MemoryHost(ServerOptions(db=database, root=tmp_path, settings=KEYWORD))
    docs = write(
        tmp_path / "docs", {"guides/set up.md": "# Setup\n\nRun the installer.\n\n## Proxy\n\nSet the proxy.\n"}
    )
    host.memory.index(docs)
    host.memory.add("The installer needs Python 3.11.", type="decision", tags=["setup"])
    yield host.memory
    host.close()


@pytest.fixture
async def client(memory: Memory, tmp_path: Path, database: str) -> AsyncIterator[Client]:
    host = MemoryHost(ServerOptions(db=database, root=tmp_path, settings=KEYWORD))
    async with Client(MindexServer(host, dialect_named("openai"))) as connected:
        yield connected
    host.close()


def shown(result: CallToolResult) -> dict[str, Any]:
    assert json.loads(text(result)) == structured(result)
    assert not result.is_error
    return structured(result)


async def test_two_tools_of_one_argument_each(client: Client) -> None:
    tools = (await client.list_tools()).tools
    assert [(tool.name, [*tool.input_schema["properties"]]) for tool in tools] == [
        ("search", ["query"]),
        ("fetch", ["id"]),
    ]
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in tools)


async def test_search_returns_references_that_fetch_reads(client: Client, memory: Memory) -> None:
    results = shown(await client.call_tool("search", {"query": "installer"}))["results"]
    assert len(results) == 2
    for result in results:
        assert result.keys() == {"id", "title", "url"}
    message = next(result for result in results if result["url"].startswith("memory://"))
    filed = next(result for result in results if result["url"].startswith("doc://"))
    assert message == {
        "id": message["id"], "title": "The installer needs Python 3.11.", "url": f"memory://{message['id']}"
    }  # fmt: skip
    assert filed["url"] == "doc://docs/guides/set%20up.md"

    fetched = shown(await client.call_tool("fetch", {"id": message["id"]}))
    assert fetched.keys() == {"id", "title", "text", "url", "metadata"}
    assert {name: fetched[name] for name in message} == message
    assert fetched["text"] == "The installer needs Python 3.11."
    assert (fetched["metadata"]["type"], fetched["metadata"]["tags"]) == ("decision", ["setup"])

    passage = shown(await client.call_tool("fetch", {"id": filed["id"]}))
    assert passage["text"] == "# Setup\n\nRun the installer."
    assert (passage["metadata"]["path"], passage["metadata"]["first_line"]) == ("guides/set up.md", 1)
    assert passage["url"] == filed["url"]


async def test_a_url_is_an_id_too_and_a_files_is_the_whole_file(client: Client, memory: Memory) -> None:
    whole = shown(await client.call_tool("fetch", {"id": "doc://docs/guides/set%20up.md"}))
    assert whole["text"] == "# Setup\n\nRun the installer.\n\n## Proxy\n\nSet the proxy."
    assert whole["url"] == "doc://docs/guides/set%20up.md"
    again = shown(await client.call_tool("fetch", {"id": whole["id"]}))
    assert again["text"] == whole["text"]
    (record,) = memory.list(memory.filters(kinds=["memory"])).records
    assert shown(await client.call_tool("fetch", {"id": f"memory://{record.id}"}))["id"] == record.id


async def test_nothing_relevant_is_an_empty_list(client: Client) -> None:
    assert shown(await client.call_tool("search", {"query": "zzzzz"})) == {"results": []}


@pytest.mark.parametrize(
    "id_", ["", " ", "nope", "abc,def", "doc://docs/none.md", "doc://", "doc://docs/../../etc/passwd", "/etc/passwd",
            "memory://zzzzzzzzzzzz", "x" * 5_000, "\0"]
)  # fmt: skip
async def test_an_unknown_id_is_a_tool_error(client: Client, id_: str) -> None:
    result = await client.call_tool("fetch", {"id": id_})
    assert result.is_error
    assert len(text(result)) < 6_000
    assert "failed; the server's log" not in text(result)


async def test_a_forgotten_memory_cannot_be_fetched(client: Client, memory: Memory) -> None:
    (record,) = memory.list(memory.filters(kinds=["memory"])).records
    memory.forget(record.id)
    assert (await client.call_tool("fetch", {"id": record.id})).is_error
    assert (await client.call_tool("search", {"query": " "})).is_error
