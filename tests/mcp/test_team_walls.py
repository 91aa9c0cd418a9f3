"""Two tokens at one server: neither finds or changes the other's records, by any tool of any dialect."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError

from mcp import Client
from mindex.datatypes import Filters
from mindex.mcp.dialect import tool_names
from mindex.memory import Memory
from tests.conftest import write
from tests.mcp.team import Team, team_server

pytestmark = [pytest.mark.anyio, pytest.mark.server]

SECRET = "quokka"  # is in all entries of Ben, and in nothing that is sent to the server
ANNAS = "numbat"  # is in the entries of Anna
READ_ONLY = "this access token is read-only; nothing was changed; ask the server's owner for a token that may write"


def fill(memory: Memory, agent: str, word: str) -> None:
    """Give an agent a record of every kind, some history, a retired one and a session."""
    kept = memory.add(f"The harbour master of {word} is strict about tides", agent=agent, tags=[f"tag{word}"])
    memory.update(kept.id, importance=9, reason=f"because of {word}")
    gone = memory.add(f"A forgotten {word} at the harbour", agent=agent)
    memory.forget(gone.id, f"no more {word}")
    memory.conversations.add(f"who runs the {word} harbour?", f"the {word} office", session_id="s1", agent=agent)
    memory.profile.set({"user.name": f"{agent} {word}"}, agent=agent)
    contact = memory.contacts.add(agent=agent, name=f"Contact {word}", notes="harbour")
    project = memory.projects.add(
        agent=agent, name=f"Project {word}", description="harbour", primary_contact_id=contact.id
    )
    memory.projects.link(project.id, f"/srv/{word}")
    memory.skills.add(
        agent=agent,
        name=f"Skill {word}",
        instructions="harbour",
        trigger_type="interval",
        trigger_config={"interval_minutes": 60},
    )
    memory.notes.create(agent, f"/memories/{word}.md", f"harbour notes {word}")


@dataclass(frozen=True)
class Shared:
    team: Team
    tools: str
    anna: str
    ben_ids: tuple[str, ...]
    ben_numbers: tuple[int, ...]
    changes: tuple[int, ...]


@pytest.fixture(scope="module", params=sorted(tool_names()))
def shared(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shared]:
    root: Path = tmp_path_factory.mktemp("team")
    write(root, {"docs/a.md": "# Harbour\n\nThe harbour has two piers.", "payroll/b.md": f"# Harbour pay\n\n{SECRET}"})

    def prepare(memory: Memory) -> None:
        memory.index(root / "docs")
        memory.index(root / "payroll")
        fill(memory, "ben", SECRET)
        fill(memory, "anna", ANNAS)

    with team_server(root, request.param, prepare=prepare) as team:
        anna = team.token("anna", agent="anna", collections=["docs"])
        records = [
            record
            for id_ in team.memory.store.retrieval.resolve("", 999, retired=True)
            if (record := team.memory.store.retrieval.record(id_)) and SECRET in f"{record}"
        ]
        changes = tuple(change.change for record in records for change in team.memory.store.entries.history(record.id))
        numbers = tuple(record.number for record in records if record.number)
        yield Shared(team, request.param, anna, tuple(record.id for record in records), numbers, changes)


def state(shared: Shared) -> list[str]:
    """All of Ben's records and their history."""
    store = shared.team.memory.store
    records = [repr(store.retrieval.record(id_)) for id_ in shared.ben_ids]
    return [*records, *(repr(store.entries.history(id_)) for id_ in shared.ben_ids)]


def arguments_of(schema: dict[str, Any], text: str, number: int, choice: int) -> dict[str, Any]:
    """Values for all arguments of a tool: this text or number, or one of the choices that the schema offers."""

    def value(part: dict[str, Any]) -> Any:
        part = next((one for one in part.get("anyOf", ()) if one.get("type") != "null"), part)
        if "$ref" in part:
            part = schema["$defs"][part["$ref"].rpartition("/")[2]]
        if "enum" in part:
            return part["enum"][choice % len(part["enum"])]
        if "const" in part:
            return part["const"]
        match part.get("type"):
            case "integer" | "number":
                return number
            case "boolean":
                return bool(choice % 2)
            case "array":
                return [value(part.get("items", {}))]
            case "object":
                return {"name": text, "path": text} if choice % 2 else {}
            case _:
                return text

    return {name: value(part) for name, part in schema.get("properties", {}).items()}


async def shown_by(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    """All that a call returns, be it an error."""
    try:
        return (await client.call_tool(tool, arguments)).model_dump_json()
    except MCPError as error:
        return str(error)


@pytest.mark.slow
async def test_no_tool_shows_or_changes_what_another_token_stored(shared: Shared) -> None:
    """Every tool, with ids, numbers, names and addresses of Ben's records in every argument."""
    ids, before = shared.ben_ids, state(shared)
    names = ["harbour", "ben", "*", "payroll/b.md", "2020-01-01"]
    special = [f"history:{ids[0]}", f"{ids[1]}±2", "timeline:2020-01-01..", "due", "profile", "sessions", "conflicts"]
    special += [*ids, f"memory://{ids[0]}", "doc://payroll/b.md", ids[0][:4], f"#{shared.ben_numbers[0]}"]
    async with shared.team.client(shared.anna) as client:
        tools = (await client.list_tools()).tools
        calls = 0
        for place, tool in enumerate(tools):
            schema = tool.input_schema
            required = set(schema.get("required", ()))
            takes_references = tool.name in ("get", "fetch", "search")  # more than an id or a name
            own = [ids[(place + step) % len(ids)] for step in range(2)]
            for at, text in enumerate([*names, *own, *(special if takes_references else ())]):
                number = (shared.ben_numbers + shared.changes)[at % len(shared.ben_numbers + shared.changes)]
                whole = arguments_of(schema, text, number, at)
                # All arguments at once, and the required ones with one more.
                optional = [name for name in schema.get("properties", ()) if name not in required]
                more = {optional[at % len(optional)]} if optional else set()
                for arguments in (whole, {name: whole[name] for name in required | more}):
                    shown = await shown_by(client, tool.name, arguments)
                    assert SECRET not in shown, (tool.name, arguments)
                    calls += 1
    assert calls >= 14 * len(tools)
    assert state(shared) == before


async def test_the_tokens_own_records_are_found(shared: Shared) -> None:
    """Else the test above would hold for a server that answers nothing."""
    tool, arguments, expected = {
        "native": ("search", {"query": "harbour master"}, ANNAS),
        "memory-search": ("search", {"query": "harbour master"}, ANNAS),
        "openai": ("search", {"query": "harbour piers"}, "docs/a.md"),
        "memory-exchange": ("search_memory_exchange", {"query": "harbour piers"}, "two piers"),
        "memory-mcp": ("memory_recall", {"query": "harbour master"}, ANNAS),
        "mudpuppy": ("memory_search", {"query": "harbour master"}, ANNAS),
        "memorizer": ("retrieve_memories", {"query": "harbour master"}, ANNAS),
        "anthropic": ("memory", {"command": "view", "path": "/memories"}, ANNAS),
    }[shared.tools]
    async with shared.team.client(shared.anna) as client:
        assert expected in await shown_by(client, tool, arguments)


async def test_resources_prompts_completions_and_instructions_respect_the_token(shared: Shared) -> None:
    async with shared.team.client(shared.anna) as client:
        listed = (await client.list_resources()).resources
        assert [str(one.uri) for one in listed] == ["doc://docs/a.md"]
        assert "piers" in (await client.read_resource("doc://docs/a.md")).model_dump_json()
        for uri in ("doc://payroll/b.md", "doc://b.md", *(f"memory://{id_}" for id_ in shared.ben_ids)):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            assert SECRET not in str(refused.value)
        prompt = (await client.get_prompt("recall", {"topic": "harbour"})).model_dump_json()
        assert SECRET not in prompt
        assert ANNAS in prompt
        with pytest.raises(MCPError, match="unknown collection 'payroll'"):
            await client.get_prompt("recall", {"topic": "harbour", "collection": "payroll"})
        for reference, argument in (
            ({"type": "ref/resource", "uri": "doc://{+path}"}, {"name": "path", "value": ""}),
            ({"type": "ref/prompt", "name": "recall"}, {"name": "collection", "value": ""}),
        ):
            completed = await client.complete(_reference(reference), argument)
            assert "payroll" not in completed.model_dump_json()
            assert completed.completion.values
        assert "payroll" not in (client.instructions or "")


def _reference(values: dict[str, str]) -> Any:
    from mcp_types import PromptReference, ResourceTemplateReference  # which one depends on the type

    kind = PromptReference if values["type"] == "ref/prompt" else ResourceTemplateReference
    return kind.model_validate(values)


async def test_every_writing_tool_refuses_a_read_only_token_in_one_sentence(shared: Shared) -> None:
    team = shared.team
    reader = team.token("reader", agent="anna", rights="read")
    before = team.memory.store.retrieval.list(Filters(agent="*", include_expired=True), limit=999)
    files = sorted(path for path in team.host.options.root.rglob("*") if path.suffix != ".db-wal")
    async with team.client(reader) as client:
        writing = [
            tool
            for tool in (await client.list_tools()).tools
            if not (tool.annotations and tool.annotations.read_only_hint)
        ]
        for tool in writing:
            calls = [arguments_of(tool.input_schema, "harbour", 1, 0)]
            if tool.name == "memory":  # the one tool that also reads
                calls = [
                    {"command": "create", "path": "/memories/new.md", "file_text": "x"},
                    {"command": "str_replace", "path": f"/memories/{ANNAS}.md", "old_str": "harbour", "new_str": "x"},
                    {"command": "insert", "path": f"/memories/{ANNAS}.md", "insert_line": 0, "insert_text": "x"},
                    {"command": "delete", "path": f"/memories/{ANNAS}.md"},
                    {"command": "rename", "old_path": f"/memories/{ANNAS}.md", "new_path": "/memories/x.md"},
                ]
            for arguments in calls:
                assert READ_ONLY in await shown_by(client, tool.name, _accepted(tool, arguments)), tool.name
        if any(tool.name == "memory" for tool in writing):
            assert ANNAS in await shown_by(client, "memory", {"command": "view", "path": f"/memories/{ANNAS}.md"})
    after = team.memory.store.retrieval.list(Filters(agent="*", include_expired=True), limit=999)
    assert [*map(repr, before.records)] == [*map(repr, after.records)]
    assert sorted(path for path in team.host.options.root.rglob("*") if path.suffix != ".db-wal") == files


def _accepted(tool: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """Only required arguments, which are valid: a wrong one would be refused for another reason."""
    required = set(tool.input_schema.get("required", ()))
    if tool.name == "memory":
        return arguments
    values = {name: value for name, value in arguments.items() if name in required}
    if "trigger_config" in values:
        values |= {"trigger_type": "manual", "trigger_config": {}}
    return json.loads(json.dumps(values))  # type: ignore[no-any-return]


@pytest.mark.parametrize("shared", ["native", "anthropic"], indirect=True)
async def test_two_clients_at_once_each_see_their_own(shared: Shared) -> None:
    """The principal of one request never serves another that runs at the same time."""
    team = shared.team
    ben = team.token("ben-at-once", agent="ben")
    tool, arguments = {
        "native": ("search", {"query": "harbour master strict tides"}),
        "anthropic": ("memory", {"command": "view", "path": "/memories"}),
    }[shared.tools]

    async def ask(client: Client, mine: str, theirs: str) -> None:
        for _ in range(20):
            shown = await shown_by(client, tool, arguments)
            assert mine in shown
            assert theirs not in shown

    async with team.client(shared.anna) as one, team.client(ben) as other, anyio.create_task_group() as group:
        for _ in range(3):
            group.start_soon(ask, one, ANNAS, SECRET)
            group.start_soon(ask, other, SECRET, ANNAS)
