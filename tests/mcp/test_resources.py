from __future__ import annotations

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, PromptReference, ResourceTemplateReference, TextResourceContents

from mcp import Client
from mindex.mcp.resources import DOC, MAX_LISTED
from tests.conftest import write
from tests.mcp.conftest import Served, structured

pytestmark = pytest.mark.anyio


async def read(client: Client, uri: str) -> str:
    (contents,) = (await client.read_resource(uri)).contents
    assert isinstance(contents, TextResourceContents)
    return contents.text


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_listed_documents_can_be_read(client: Client, handbook_server: Served) -> None:
    listed = (await client.list_resources()).resources
    assert len(listed) == 14
    for resource in listed:
        path = handbook_server.root / resource.uri.removeprefix("doc://")
        assert (await read(client, resource.uri)).split() == path.read_text(encoding="utf-8").split()


@pytest.mark.parametrize(
    "uri",
    [
        "doc://domains/caching/redis.md",
        "doc://handbook/domains/caching/redis.md",
        "doc://domains%2Fcaching%2Fredis.md",
        "doc://domains/caching/redis%2Emd",
    ],
)
async def test_paths_have_slashes_and_may_be_encoded(client: Client, uri: str) -> None:
    assert "allkeys-lfu" in await read(client, uri)


async def test_names_with_blanks_and_punctuation_can_be_read(own: Served) -> None:
    write(own.root / "my docs", {"a b#c?d%41.md": "# Odd\n\nText.", "über/日本.md": "# Far\n\nText."})
    own.host.memory.index(own.root / "my docs")
    async with Client(own.server) as client:
        for resource in (await client.list_resources()).resources:
            assert "Text." in await read(client, resource.uri)


@pytest.mark.parametrize(
    "uri",
    [
        "doc://../memory.db",
        "doc://handbook/../../memory.db",
        "doc://%2e%2e/memory.db",
        "doc://handbook/%2e%2e%2fmemory.db",
        "doc://..\\memory.db",
        "doc:///etc/passwd",
        "doc://C:/Windows/win.ini",
        "doc://nope.md",
        "doc://a%00.md",
        "doc://",
        "memory://nope",
        "memory://architecture.md",
        "memory://x",
        "note://x",
    ],
)
async def test_files_that_are_not_indexed_are_not_found(client: Client, uri: str) -> None:
    with pytest.raises(MCPError) as refused:
        await client.read_resource(uri)
    assert refused.value.error.code == INVALID_PARAMS


async def test_a_sibling_folder_and_a_link_out_are_not_read(own: Served) -> None:
    write(own.root, {"docs/page.md": "# Page\n\nText.", "docs-secret/key.md": "# Key\n\nhidden"})
    own.host.memory.index(own.root / "docs")
    page = own.root / "docs" / "page.md"
    page.unlink()
    page.symlink_to(own.root / "docs-secret" / "key.md")
    async with Client(own.server) as client:
        for uri in ("doc://docs-secret/key.md", "doc://docs/../docs-secret/key.md", "doc://docs/page.md"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)


async def test_the_list_is_bounded_and_templates_reach_the_rest(own: Served) -> None:
    write(own.root / "docs", {f"{number:03}.md": f"# {number}\n\nText." for number in range(MAX_LISTED + 20)})
    own.host.memory.index(own.root / "docs")
    async with Client(own.server) as client:
        assert len((await client.list_resources()).resources) == MAX_LISTED
        assert "# 119" in await read(client, "doc://119.md")
        templates = (await client.list_resource_templates()).resource_templates
    assert [template.uri_template for template in templates] == ["doc://{+path}", "memory://{id}"]


# ── records ───────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_record_is_read_by_its_id(client: Client) -> None:
    found = structured(await client.call_tool("search", {"query": "allkeys-lfu", "limit": 1}))["results"][0]
    message = await read(client, f"memory://{found['id']}")
    assert message.startswith(found["id"])
    assert "allkeys-lfu" in message


# ── the prompt ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_recall_contains_the_passages(client: Client) -> None:
    (message,) = (await client.get_prompt("recall", {"topic": "allkeys-lfu"})).messages
    assert message.content.type == "text"
    assert message.content.text.startswith("What the memory holds about: allkeys-lfu\n")
    assert "domains/caching/redis.md" in message.content.text
    assert message.content.text.endswith("and read more with `get`.")


async def test_recall_can_be_limited_to_a_collection(client: Client) -> None:
    with pytest.raises(MCPError, match="unknown collection 'nope'; use one of handbook"):
        await client.get_prompt("recall", {"topic": "redis", "collection": "nope"})
    assert (await client.get_prompt("recall", {"topic": "redis", "collection": "handbook"})).messages


# ── completions ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("domains/ca", ["domains/caching/caching.instructions.md", "domains/caching/redis.md"]),
        ("handbook/domains/api", ["handbook/domains/api/error-codes.md"]),
        ("nope", []),
    ],
)
async def test_paths_are_completed(client: Client, typed: str, offered: list[str]) -> None:
    reference = ResourceTemplateReference(uri=DOC)
    answer = await client.complete(reference, {"name": "path", "value": typed})
    assert answer.completion.values == offered


async def test_collections_are_completed(client: Client) -> None:
    reference = PromptReference(name="recall")
    assert (await client.complete(reference, {"name": "collection", "value": "ha"})).completion.values == ["handbook"]
    assert (await client.complete(reference, {"name": "topic", "value": "ha"})).completion.values == []
