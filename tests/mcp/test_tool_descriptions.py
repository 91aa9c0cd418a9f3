"""A model that reads only the descriptions can solve twenty tasks: they name every argument that a task needs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from mcp import Client
from tests.conftest import write
from tests.mcp.conftest import Served, text

pytestmark = pytest.mark.anyio


class Task(NamedTuple):
    task: str
    tool: str
    arguments: Mapping[str, Any]  # `OLD` and `NEW` are the ids of two memories
    example: str = ""  # that a description shows


TASKS = (
    Task("Find the page with the words 'cache key'.", "search", {"query": '"cache key"'}, '"phrase"'),
    Task("Search below docs only.", "search", {"query": "cache", "path": "docs/**/*.md"}, "docs/**/*.md"),
    Task("What did we decide since yesterday?", "search", {"query": "standup", "after": "yesterday"}, "yesterday"),
    Task("How do I clear the cache?", "search", {"query": "cache", "type": "how-to"}, "how-to"),
    Task("List ten candidates, a line each.", "search", {"query": "cache", "view": "compact", "limit": 10}, "one line"),
    Task("Answer in at most 200 tokens.", "search", {"query": "cache", "budget": 200}),
    Task("When was the standup a week ago?", "search", {"query": "standup", "as_of": "last week"}, "last week"),
    Task("What do I prefer? No files.", "search", {"query": "standup", "kind": "memory"}, "memory"),
    Task("Show the next five results.", "search", {"query": "cache", "offset": 5}),
    Task("Read lines 1 to 2 of a file.", "get", {"refs": ["docs/a.md:1-2"]}, "path:10-40"),
    Task("Which files link to this one?", "get", {"refs": ["backlinks:docs/a.md"]}),
    Task("How did this memory change?", "get", {"refs": ["history:OLD"]}, "history:ID"),
    Task(
        "The gate code is valid for a month.", "remember", {"text": "The gate code is on the wall.", "expires": "30d"}
    ),
    Task("The standup moved again.", "remember", {"text": "Standup is at 11:00", "supersedes": "NEW"}),
    Task(
        "The user is called Ada.",
        "remember",
        {"kind": "profile", "fields": {"path": "user.name", "value": "Ada"}},
        "path, value",
    ),
    Task(
        "Save Anna's address.",
        "remember",
        {"kind": "contact", "fields": {"name": "Anna", "email": "anna@example.org"}},
        "name, email",
    ),
    Task("The newer standup is right.", "update", {"id": "NEW", "supersedes": "OLD"}),
    Task("Take the last change of this memory back.", "update", {"id": "CHANGED", "undo": True}, "true"),
    Task("That memory is wrong.", "forget", {"id": "OLD"}),
    Task("Update the index of docs.", "index", {"path": "docs"}),
)


def test_there_are_twenty_tasks_and_ten_have_an_example() -> None:
    assert len(TASKS) == 20
    assert sum(bool(task.example) for task in TASKS) >= 10


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task)
async def test_descriptions_name_every_argument_of_a_task(own: Served, task: Task) -> None:
    async with Client(own.server) as client:
        tool = next(tool for tool in (await client.list_tools()).tools if tool.name == task.tool)
    described = {name: schema.get("description", "") for name, schema in tool.input_schema["properties"].items()}
    for argument in task.arguments:
        assert described[argument] or re.search(rf"\b{argument}\b", tool.description or ""), argument
    shown = " ".join([tool.description or "", *(described[argument] for argument in task.arguments)])
    assert task.example in shown
    for field in task.arguments.get("fields", {}):
        assert field in described["fields"]


@pytest.mark.parametrize("task", TASKS, ids=lambda task: task.task)
async def test_the_call_of_a_task_succeeds(own: Served, task: Task) -> None:
    memory = own.host.memory
    memory.index(write(own.root / "docs", {"a.md": "# Cache\n\nThe cache key.\n"}))
    ids = {"OLD": memory.add("Standup is at 9:30").id, "NEW": memory.add("Standup is at 10:00").id}
    ids["CHANGED"] = memory.add("The door is blue.").id
    memory.update(ids["CHANGED"], text="The door is green.")

    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(each) for each in value]
        return re.sub("OLD|NEW|CHANGED", lambda name: ids[name[0]], value) if isinstance(value, str) else value

    async with Client(own.server) as client:
        result = await client.call_tool(task.tool, {name: filled(value) for name, value in task.arguments.items()})
    assert not result.is_error, text(result)
