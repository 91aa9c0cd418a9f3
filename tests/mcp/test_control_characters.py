"""A control character of a stored text reaches no client: neither in a result of any kind, nor in an error."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from mcp.shared.exceptions import MCPError

from mcp import Client
from mindex.mcp.dialect import dialect_named, tool_names
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server import MindexServer
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory
from tests.conftest import write
from tests.mcp.conftest import KEYWORD
from tests.mcp.test_team_walls import arguments_of

pytestmark = pytest.mark.anyio

EVIL = "harbour \x1b]0;owned\x07 \x1b[2J\x9b1m \x7f \x08 \x0c red"
CONTROLS = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0))} - {"\n", "\t"}


def fill(memory: Memory) -> list[str]:
    kept = memory.add(EVIL, tags=["evil\x1btag"], source=f"mail {EVIL}")
    memory.update(kept.id, importance=9, reason=EVIL)
    memory.conversations.add(f"who runs the {EVIL}?", EVIL, session_id="s\x1b1")
    memory.profile.set({"user.name": EVIL})
    contact = memory.contacts.add(name=f"Contact {EVIL}", notes=EVIL)
    memory.projects.add(name=f"Project {EVIL}", description=EVIL, primary_contact_id=contact.id)
    memory.skills.add(name=f"Skill {EVIL}", instructions=EVIL, trigger_type="manual", trigger_config={})
    return [kept.id]


@pytest.fixture(params=sorted(tool_names()))
def server(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MindexServer]:
    write(tmp_path, {"docs/a.md": f"# Title {EVIL}\n\nText {EVIL}", "docs/esc\x1bape.md": f"# Harbour\n\n{EVIL}"})
    dialect = dialect_named(request.param)
    settings = {**dialect.settings_for(None), **KEYWORD}
    host = MemoryHost(ServerOptions(db=str(tmp_path / "memory.db"), root=tmp_path, settings=settings))
    host.whole_memory.index(tmp_path / "docs")
    fill(host.whole_memory)
    host.whole_memory.notes.create("main", "/memories/evil.md", EVIL)
    yield MindexServer(host, dialect)
    host.close()


def clean(wire: str) -> bool:
    """Whether no string of a message has a control character, nor one of those that are JSON themselves."""

    def strings(value: object) -> Iterator[str]:
        if isinstance(value, str):
            yield value
            if value.startswith(("{", "[")):
                with suppress(ValueError):
                    yield from strings(json.loads(value))
        elif isinstance(value, dict):
            for name, one in value.items():
                yield from strings(name)
                yield from strings(one)
        elif isinstance(value, list):
            for one in value:
                yield from strings(one)

    return not any(CONTROLS & set(one) for one in strings(json.loads(wire)))


async def test_no_result_of_any_tool_has_a_control_character(server: MindexServer) -> None:
    seen = ""
    async with Client(server) as client:
        for tool in (await client.list_tools()).tools:
            schema = tool.input_schema
            for text in ("harbour", EVIL, "docs/a.md", "/memories/evil.md"):
                whole = arguments_of(schema, text, 1, 0)
                required = {name: whole[name] for name in schema.get("required", ())}
                view = {"command": "view", "path": "/memories/evil.md"} if tool.name == "memory" else {}
                for arguments in (required, whole, *([view] if view else [])):
                    try:
                        shown = (await client.call_tool(tool.name, arguments)).model_dump_json()
                    except MCPError as error:
                        shown = json.dumps(str(error))
                    assert clean(shown), (tool.name, arguments, shown)
                    seen += shown
    assert "owned" in seen  # else nothing was shown at all
    assert "␛" in seen


@pytest.mark.parametrize("server", ["native"], indirect=True)
async def test_no_resource_prompt_or_completion_has_one(server: MindexServer) -> None:
    async with Client(server) as client:
        shown = [
            (await client.list_resources()).model_dump_json(),
            (await client.read_resource("doc://docs/a.md")).model_dump_json(),
            (await client.get_prompt("recall", {"topic": "harbour \x1b"})).model_dump_json(),
        ]
        for name in ("doc://nothing\x1b", "memory://\x1b"):
            with pytest.raises(MCPError) as refused:
                await client.read_resource(name)
            shown.append(json.dumps(str(refused.value)))
        with pytest.raises(MCPError) as refused:
            await client.get_prompt("recall", {"topic": "harbour", "collection": "\x1b[2J"})
        shown.append(json.dumps(str(refused.value)))
    assert [one for one in shown if not clean(one)] == []
    assert "owned" in shown[1]


@pytest.mark.parametrize("server", ["native"], indirect=True)
async def test_what_is_stored_keeps_its_characters(server: MindexServer) -> None:
    memory = server.host.whole_memory
    (record,) = memory.list(memory.filters(kinds=("memory",))).records
    async with Client(server) as client:
        await client.call_tool("get", {"ids": [record.id]})
    assert server.host.whole_memory.get(record.id).records[0].text == record.text
    assert "\x1b]0;owned\x07" in record.text
