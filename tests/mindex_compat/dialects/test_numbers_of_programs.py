"""Three databases of other programs in one store: a number of one program never reaches another program's record."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from mcp import Client
from mindex.datatypes.transfer import ImportReport
from mindex.memory import Memory
from tests.mcp.conftest import KEYWORD, Served, text
from tests.mindex_compat.importers.foreign_programs import NOON, SCHEMAS, fill

pytestmark = pytest.mark.anyio

Call: TypeAlias = Callable[..., Awaitable[dict[str, Any]]]
PROGRAMS = ("memory-mcp", "mudpuppy", "memorizer")


def fact(id_: int, content: str) -> dict[str, Any]:
    return {"id": id_, "agent_id": "main", "fact": content, "category": "pattern", "created_at": "2026-03-01 12:00:00"}


def named(id_: int, name: str, **more: Any) -> dict[str, Any]:
    at = "2026-03-01 12:00:00"
    return {"id": id_, "agent_id": "main", "name": name, "created_at": at, "updated_at": at, **more}


def databases(folder: Path) -> dict[str, Path]:
    """Fifty memories with text ids, and two programs that both know an entry 42 and an entry 3."""
    v3 = [
        {"id": f"mem_{n}", "content": f"V3 remembers thing {n}", "type": "fact", "importance": 5.0, "created_at": NOON,
         "last_accessed": NOON, "metadata": "{}", "is_deleted": 0, "access_count": 0}
        for n in range(1, 51)
    ]  # fmt: skip
    mudpuppy = [
        {"id": n, "content": f"Mudpuppy's entry {n}", "content_hash": str(n), "created_at": NOON, "updated_at": NOON}
        for n in (3, 42)
    ]
    memorizer = {
        "facts": [fact(3, "Memorizer's fact 3"), fact(42, "Memorizer's fact 42")],
        "contacts": [named(3, "Ana", email="ana@example.org"), named(42, "Ben", email="ben@example.org")],
        "projects": [named(3, "Atlas", primary_contact_id=42, participants="[3, 42]")],
        "skills": [named(3, "Report", trigger_type="manual", instructions="Write it", enabled=1)],
    }
    rows = dict(zip(PROGRAMS, ({"memories": v3}, {"memory_entries": mudpuppy}, memorizer), strict=True))
    return {name: fill(folder / f"{name}.db", SCHEMAS[name], rows[name]) for name in PROGRAMS}


@pytest.fixture
def reports(database: str, tmp_path: Path) -> dict[str, ImportReport]:
    found = databases(tmp_path)
    with Memory(database, options=KEYWORD) as memory:
        return {name: memory.transfer.import_(path) for name, path in found.items()}


@pytest.fixture
async def calls(reports: dict[str, ImportReport], serving: Callable[..., Served]) -> AsyncIterator[dict[str, Call]]:
    """One client for each program, over the store into which all three were imported."""
    assert reports.keys() == set(PROGRAMS)
    async with AsyncExitStack() as stack:
        clients = {name: await stack.enter_async_context(Client(serving(name).server)) for name in PROGRAMS}

        def call_of(client: Client) -> Call:
            async def call(tool: str, **arguments: object) -> dict[str, Any]:
                answered: dict[str, Any] = json.loads(text(await client.call_tool(tool, arguments)))
                return answered

            return call

        yield {name: call_of(client) for name, client in clients.items()}


@pytest.fixture
def memory(serving: Callable[..., Served]) -> Memory:
    return serving("native").host.memory


async def test_every_number_survives_the_import(reports: dict[str, ImportReport], calls: dict[str, Call]) -> None:
    assert [report.renumbered for report in reports.values()] == [(), (), ()]
    mudpuppy, memorizer = calls["mudpuppy"], calls["memorizer"]
    assert [(await mudpuppy("memory_get", id=n))["entry"]["content"] for n in (3, 42)] == [
        "Mudpuppy's entry 3",
        "Mudpuppy's entry 42",
    ]
    facts = (await memorizer("list_facts", limit=100))["data"]["facts"]
    theirs = {one["id"]: one["fact"] for one in facts if one["fact"].startswith("Memorizer")}
    assert theirs == {3: "Memorizer's fact 3", 42: "Memorizer's fact 42"}
    assert len({one["id"] for one in facts}) == len(facts)
    contacts = (await memorizer("list_contacts"))["data"]["contacts"]
    assert {one["id"]: one["name"] for one in contacts} == {3: "Ana", 42: "Ben"}
    (project,) = (await memorizer("list_projects", contact_id=3))["data"]["projects"]
    assert (project["id"], project["primary_contact_id"], project["participants"]) == (3, 42, [3, 42])
    assert (await memorizer("get_skill", skill_id=3))["data"]["skill"]["name"] == "Report"


async def test_a_number_never_given_in_a_program_is_not_found_there(calls: dict[str, Call], memory: Memory) -> None:
    """V3 has the native numbers 1 to 50: neither of the two others has been shown any of them."""
    before = [memory.get(f"#{n}").records[0] for n in (1, 7)]
    assert [one.text for one in before] == ["V3 remembers thing 1", "V3 remembers thing 7"]
    mudpuppy, memorizer = calls["mudpuppy"], calls["memorizer"]
    for n in (1, 7):
        assert await mudpuppy("memory_get", id=n) == {"error": f"Memory entry not found: {n}"}
        assert await mudpuppy("memory_delete", id=n) == {"success": False, "deleted": False}
        assert await memorizer("update_fact", fact_id=n, fact="Overwritten") == {
            "success": False, "error": f"Fact not found: {n}",
        }  # fmt: skip
        assert (await memorizer("delete_fact", fact_id=n))["success"] is False
    assert [memory.get(f"#{n}").records[0] for n in (1, 7)] == before


async def test_a_number_of_one_program_changes_no_record_of_another(calls: dict[str, Call], memory: Memory) -> None:
    memorizer, mudpuppy = calls["memorizer"], calls["mudpuppy"]
    updated = (await memorizer("update_fact", fact_id=3, fact="Memorizer's new fact"))["data"]
    assert updated["old_fact"] == "Memorizer's fact 3"
    assert (await memorizer("delete_fact", fact_id=42))["data"]["deleted_fact"] == "Memorizer's fact 42"
    assert (await memorizer("delete_fact", fact_id=42))["error"] == "Fact not found: 42"
    assert (await mudpuppy("memory_get", id=3))["entry"]["content"] == "Mudpuppy's entry 3"
    assert await mudpuppy("memory_delete", id=42) == {"success": True, "deleted": True}
    assert [memory.get(f"#{n}").records[0].text for n in (3, 42)] == ["V3 remembers thing 3", "V3 remembers thing 42"]
    assert (await memorizer("delete_skill", skill_id=3))["data"]["deleted_skill"] == "Report"
    assert [one["id"] for one in (await memorizer("list_contacts"))["data"]["contacts"]] == [3, 42]


async def test_a_record_of_another_program_gets_a_number_once_it_is_shown(calls: dict[str, Call]) -> None:
    mudpuppy, memorizer = calls["mudpuppy"], calls["memorizer"]
    found = (await mudpuppy("memory_search", query="thing 42", mode="keyword", limit=50))["results"]
    shown = {one["content"]: one["id"] for one in found}
    number = shown["V3 remembers thing 42"]
    assert number not in (3, 42) and len(set(shown.values())) == len(shown)
    assert (await mudpuppy("memory_get", id=number))["entry"]["content"] == "V3 remembers thing 42"
    assert (await mudpuppy("memory_get", id=42))["entry"]["content"] == "Mudpuppy's entry 42"
    assert (await memorizer("delete_fact", fact_id=number))["success"] is False  # it was shown by mudpuppy only
    again = (await mudpuppy("memory_search", query="thing 42", mode="keyword", limit=50))["results"]
    assert {one["content"]: one["id"] for one in again} == shown


async def test_a_written_record_has_its_number_in_the_program_that_wrote_it(calls: dict[str, Call]) -> None:
    mudpuppy, memorizer = calls["mudpuppy"], calls["memorizer"]
    added = (await mudpuppy("memory_add", content="The kettle is blue."))["id"]
    assert (await memorizer("delete_fact", fact_id=added))["success"] is False
    stored = (await memorizer("store_fact", fact="The pan is red.", category="pattern"))["data"]["fact_id"]
    assert stored != added
    assert await mudpuppy("memory_get", id=stored) == {"error": f"Memory entry not found: {stored}"}
    assert (await mudpuppy("memory_get", id=added))["entry"]["content"] == "The kettle is blue."


async def test_a_bare_number_is_a_native_one(calls: dict[str, Call], memory: Memory) -> None:
    assert calls
    for reference in ("42", "#42"):
        assert [one.text for one in memory.get(reference).records] == ["V3 remembers thing 42"]
    assert [one.text for one in memory.get("mudpuppy:42").records] == ["Mudpuppy's entry 42"]


async def test_a_program_with_text_ids_takes_no_number(serving: Callable[..., Served], memory: Memory) -> None:
    memory.add("The lighthouse is white")
    async with Client(serving("memory-mcp").server) as client:
        result = await client.call_tool("memory_forget", {"id": "#1"})
        assert result.is_error and "there is no memory '#1'" in text(result)
    assert memory.get("#1").records
