"""A session of MemoryExchange, made from the examples of its document, against `serve --tools memory-exchange`.

The server is started with MemoryExchange's own flags, the real model and a folder that is not indexed yet.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from mcp import Client
from tests.conftest import write
from tests.mcp.conftest import structured, text
from tests.mcp.sessions import Matching, started

pytestmark = [pytest.mark.anyio, pytest.mark.server, pytest.mark.model]

FILES = {
    "architecture.md": """# Architecture

## Overview

Parcels enter at the hub, are sorted by district, and leave with the first van that has room. Three services share
one database, and none of them calls another one directly.

## Caching

Answers of the routing service are cached for ninety seconds. How caching works: the key is the district, and every
change of a tour removes the entries of its district.

```csharp
cache.Set(district, tours, TimeSpan.FromSeconds(90));
```

## Deployment

Releases go out on Tuesday mornings, one district after the other, and are rolled back by the same job when the error
rate doubles within ten minutes.
""",
    "domains/caching/redis.md": """# Redis

## Redis TTL configuration

Entries expire after their time to live; when the memory is full, the least recently used ones are evicted first, and
`maxmemory-policy` is set to allkeys-lru on all three nodes.
""",
    "domains/caching/keys.instructions.md": """# Key conventions

Name cache entries by district and version, in lower case, with a colon between the two parts; never put a customer's
name into a cache entry.
""",
    "domains/security/access.md": """# Access

## Policies

`PolicyController` decides who may open a locker. It reads the policies of the tenant and refuses everything that no
policy allows.
""",
    "personal/diary.md": "# Diary\n\nThe caching of personal thoughts about PolicyController is nobody's business.\n",
    "MemoryExchangeManagement.md": "# Management\n\n```yaml\ncoverage:\n  caching: ['src/Caching/']\n```\n",
}
LOCAL_TIME = Matching(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", FILES)


@pytest.fixture
def flags(docs: Path, database: str) -> list[str]:
    return ["--source-path", str(docs), "--database-path", database, "--build-index", "--provider", "local"]


def blocks(message: str) -> list[dict[str, str]]:
    """The results in an answer's text, each with its fields."""
    head, *found = re.split(r"--- Result \d+ ---\n", message)
    assert head == f"Found {len(found)} relevant memory exchange entries:\n\n"
    results = []
    for block in found:
        fields, content = block.split("\n\n", 1)
        content = re.sub(r"(?m)^  ", "", content)  # indented, so that a text cannot look like another result
        results.append({**dict(line.split(": ", 1) for line in fields.splitlines()), "content": content.rstrip("\n")})
    return results


async def search(client: Client, **arguments: object) -> tuple[list[dict[str, str]], list[dict[str, Any]]]:
    """The results as text and as JSON."""
    result = await client.call_tool("search_memory_exchange", arguments)
    assert not result.is_error
    return blocks(text(result)), structured(result)["results"]


async def test_a_folder_is_indexed_searched_and_read_in_one_session(docs: Path, flags: list[str]) -> None:
    async with started("memory-exchange", *flags, env={}) as client:
        # The first question, which needs no second try: the server indexes the folder before it answers.
        shown, _ = await search(client, query="how does caching work")
        # A code block stays with the paragraph that explains it.
        page = FILES["architecture.md"]
        assert {
            "Source": f"{docs}/architecture.md",
            "Section": "Architecture > Caching",
            "Domain": "root",
            "content": page[page.index("## Caching") : page.index("\n\n## Deployment")],
        } in shown[:2]

        # A name is found exactly, and what was never to be indexed is not there.
        shown, _ = await search(client, query="PolicyController")
        assert (shown[0]["Source"], shown[0]["Section"]) == (f"{docs}/domains/security/access.md", "Access > Policies")
        assert (shown[0]["Domain"], shown[0].get("Tags")) == ("security", None)  # inline code is not a tag
        assert not any("personal" in one["Source"] for one in shown)

        # By meaning alone: the question and the text have no word in common.
        shown, _ = await search(client, query="what happens to old data if there is no room left in it", topK=3)
        assert f"{docs}/domains/caching/redis.md" in [one["Source"] for one in shown]

        page = await client.call_tool("get_memory_file", {"filePath": "domains/caching/redis.md"})
        assert text(page) == FILES["domains/caching/redis.md"].rstrip()
        status = structured(await client.call_tool("get_index_status", {}))
        assert status == {
            "source_path": str(docs),
            "provider": "Local",
            "index_name": "memory-exchange",
            "indexed_chunks": 7,
            "indexed_files": 5,
            "last_indexed": LOCAL_TIME,
        }


async def test_each_section_is_a_chunk_with_its_breadcrumb(flags: list[str]) -> None:
    async with started("memory-exchange", *flags, env={}) as client:
        shown, _ = await search(client, query="architecture overview caching deployment", topK=10)
        sections = {one["Section"] for one in shown if one["Source"].endswith("architecture.md")}
        assert sections == {f"Architecture > {name}" for name in ("Overview", "Caching", "Deployment")}


async def test_the_file_being_edited_lifts_its_domain_and_instructions_count_more(flags: list[str]) -> None:
    async with started("memory-exchange", *flags, env={}) as client:
        query = "how are cache entries named and when do they expire"
        _, plain = await search(client, query=query, topK=10)
        _, boosted = await search(client, query=query, topK=10, currentFilePath="src/Caching/RedisClient.cs")
        before = {one["path"]: one["score"] for one in plain if one["path"] != "architecture.md"}
        after = {one["path"]: one["score"] for one in boosted if one["path"] != "architecture.md"}
        ratios = {path: round(after[path] / before[path], 2) for path in before}
        assert ratios["domains/caching/redis.md"] == ratios["domains/caching/keys.instructions.md"] == 1.3
        assert ratios["domains/security/access.md"] == 1.0
        assert boosted[0]["path"] == "domains/caching/keys.instructions.md"  # 1.3 × 1.2


@pytest.mark.parametrize(("top_k", "count"), [({}, 5), ({"topK": 2}, 2), ({"topK": 99}, 7)])
async def test_five_results_are_shown_unless_another_number_is_given(
    flags: list[str], top_k: dict[str, int], count: int
) -> None:
    async with started("memory-exchange", *flags, env={}) as client:
        shown, _ = await search(client, query="cache district policy tour release architecture management", **top_k)
        assert len(shown) == count


async def test_only_a_changed_file_is_indexed_again_with_the_next_start(docs: Path, flags: list[str]) -> None:
    async with started("memory-exchange", *flags, env={}) as client:
        await search(client, query="caching")
    (docs / "domains/security/access.md").write_text("# Access\n\nThe TurnstileController replaced it in spring.\n")
    async with started("memory-exchange", *flags, env={}) as client:
        while "indexing" in (message := text(await client.call_tool("get_index_status", {}))):
            pass
        assert "- **Indexed files:** 5\n" in message
        shown, _ = await search(client, query="TurnstileController", topK=1)
        assert shown[0]["Source"] == f"{docs}/domains/security/access.md"
        gone = text(await client.call_tool("search_memory_exchange", {"query": "PolicyController", "topK": 1}))
        assert "PolicyController` decides" not in gone
