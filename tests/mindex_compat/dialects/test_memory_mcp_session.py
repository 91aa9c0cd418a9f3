"""A session with Memory MCP, made of the examples of its document: its queries, its filters, its dual response."""

from __future__ import annotations

from asyncio import sleep
from typing import Any

import pytest

from tests.mcp.sessions import ID, ISO, Session, session

pytestmark = [pytest.mark.anyio, pytest.mark.server]

# What the queries of the document look for.
CONTENTS: dict[str, tuple[str, dict[str, object]]] = {
    "style": ("Python coding style preferences: type hints, short functions.", {"type": "self", "importance": 8}),
    "typescript": ("The widgets of the shop are written in TypeScript.", {"importance": 5}),
    "javascript": ("JavaScript runs in the browser only.", {"importance": 4}),
    "api": ("The API answers within 50 ms.", {"type": "fact", "importance": 6}),
    "team": ("The platform team: five engineers.", {"type": "entity", "importance": 5}),
    "structure": ("Team structure: Mara leads, Jonas reviews.", {"type": "relationship", "importance": 5}),
    "fastapi": ("The billing projects rest on FastAPI.", {"type": "relationship", "entities": ["FastAPI", "Python"]}),
    "react": ("Frontend projects need React 19.", {"type": "fact", "entities": ["React"]}),
    "program": ("The training program starts in May.", {"importance": 3}),
    "programming": ("Pair programming happens on Tuesdays.", {"importance": 3}),
    "programmer": ("Each programmer has a mentor.", {"importance": 3}),
}
QUERIES: tuple[tuple[dict[str, object], list[str]], ...] = (
    ({"query": "{content}: typescript"}, ["typescript"]),
    ({"query": "{summary}: typescript"}, ["typescript"]),
    ({"query": '"style preferences"'}, ["style"]),
    ({"query": '"preferences style"', "type": "fact"}, []),
    ({"query": "python OR javascript"}, ["style", "javascript", "fastapi"]),
    ({"query": "projects NOT react"}, ["fastapi"]),
    ({"query": "program*"}, ["program", "programmer", "programming"]),
    ({"query": "API", "type": "fact"}, ["api"]),
    ({"query": "team", "type": "entity"}, ["team"]),
    ({"query": "team", "type": "relationship"}, ["structure"]),
    ({"query": "coding", "type": "self"}, ["style"]),
    ({"query": "Python coding style preferences"}, ["style"]),
    ({"query": "projects", "entities": ["FastAPI", "React"]}, ["fastapi", "react"]),
    ({"query": "projects", "entities": ["react"]}, ["react"]),
    ({"query": "team structure", "type": "relationship"}, ["structure"]),
    ({"query": "team", "minImportance": 6}, []),
    ({"query": "answers", "minImportance": 6}, ["api"]),
    ({"query": "(python OR javascript) AND NOT (browser OR billing)"}, ["style"]),
    ({"query": "stuff"}, []),
)


async def fill(session: Session) -> dict[str, dict[str, Any]]:
    """Store everything; each answer is the standard memory of the document."""
    kept = {}
    for name, (content, given) in CONTENTS.items():
        answered = await session.call("memory_store", {"content": content, **given})
        expected = {
            "id": ID,
            "type": given.get("type", answered["type"]),
            "summary": content,
            "content": content,
            "importance": given.get("importance", answered["importance"]),
            "created_at": ISO,
            "last_accessed": answered["created_at"],
        }
        entities = {"entities": given.get("entities", answered.get("entities"))}
        answered.pop("characters")
        assert answered == expected | (entities if "entities" in answered else {})
        assert answered["type"] in ("fact", "entity", "relationship", "self")
        kept[name] = answered
    return kept


def without_access(memory: dict[str, Any]) -> dict[str, Any]:
    return {**memory, "last_accessed": ISO}


async def test_every_query_of_the_document_answers_in_its_form(database: str) -> None:
    async with session("memory-mcp", database) as replay:
        kept = await fill(replay)
        for arguments, names in QUERIES:
            answered = await replay.call("memory_recall", arguments)
            found = {entry["id"] for entry in answered["index"]}
            assert found == {kept[name]["id"] for name in names}, arguments
            by_id = {memory["id"]: memory for memory in kept.values()}
            order = [entry["id"] for entry in answered["index"]]
            expected: dict[str, object] = {
                "index": [{"id": id_, "summary": by_id[id_]["summary"]} for id_ in order],
                "details": [without_access(by_id[id_]) for id_ in order],
                "total_count": len(names),
                "has_more": False,
                "tokens_used": -(-answered["characters"] // 4),
                "query": arguments["query"],
            }
            if "notes" in answered:  # ours: why there is nothing, or less than all words
                expected["notes"] = answered["notes"]
            answered.pop("characters")
            assert answered == expected
            assert list(answered) == list(expected)


async def test_the_example_of_the_budget(database: str) -> None:
    """Twenty entries and three details in a thousand tokens, of thirty matches; then the next page."""
    async with session("memory-mcp", database) as replay:
        for number in range(30):
            content = f"Python service number {number} answers the warehouse. " + "It has a report of its own. " * 11
            await replay.call("memory_store", {"content": content, "importance": 5})
        answered = await replay.call("memory_recall", {"query": "Python", "max_tokens": 1000})
        assert (len(answered["index"]), len(answered["details"])) == (20, 3)
        assert [row["id"] for row in answered["details"]] == [row["id"] for row in answered["index"][:3]]
        assert (answered["total_count"], answered["has_more"], answered["query"]) == (30, True, "Python")
        assert answered["tokens_used"] == -(-answered["characters"] // 4) <= 1000
        rest = await replay.call("memory_recall", {"query": "Python", "limit": 20, "offset": 20})
        assert (len(rest["index"]), rest["total_count"], rest["has_more"]) == (10, 30, False)
        assert not {row["id"] for row in rest["index"]} & {row["id"] for row in answered["index"]}


async def test_a_memory_is_updated_expires_and_is_forgotten(database: str) -> None:
    async with session("memory-mcp", database) as replay:
        first = await replay.call("memory_store", {"content": "Dark mode preference: always.", "type": "self"})
        changed = await replay.call("memory_store", {"id": first["id"], "content": "Dark mode preference: at night."})
        assert (changed["id"], changed["type"], changed["content"]) == (
            first["id"], "self", "Dark mode preference: at night.",
        )  # fmt: skip
        await replay.call("memory_store", {"content": "The lift is broken.", "ttl_days": 0.000_000_1})
        await sleep(0.1)  # it lives for 9 ms
        hidden = await replay.call("memory_recall", {"query": "lift"})
        assert (hidden["index"], hidden["notes"][-1]) == ([], "1 expired; includeExpired shows it")
        shown = await replay.call("memory_recall", {"query": "lift", "includeExpired": True})
        assert shown["total_count"] == 1
        gone = await replay.call("memory_forget", {"id": first["id"], "reason": "changed her mind"})
        assert (gone["success"], gone["memory_id"]) == (True, first["id"])
        assert (await replay.call("memory_recall", {"query": "dark"}))["total_count"] == 0
