"""Every tool of every dialect, through a real client over stdio: what is listed, and what each call answers."""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, PromptReference, ResourceTemplateReference, TextContent
from pydantic import BaseModel

from mcp import Client, StdioServerParameters
from tests.golden import freeze
from tests.golden.compare import Golden
from tests.golden.record import indented, readable
from tests.golden.scripts import sessions
from tests.golden.workspace import Workspace

pytestmark = [pytest.mark.anyio, pytest.mark.slow]  # each session starts servers, and takes seconds

SESSIONS = sessions()


# Its answers contain hits that are nearly equal: PostgreSQL swaps them (see tests/golden/test_cli.py).
NEARLY_TIED = ("native-read", "openai")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=pytest.mark.sqlite_only) if one in NEARLY_TIED else one for one in SESSIONS]
)
async def test_answers(name: str, workspace: Workspace, golden: Golden, monkeypatch: pytest.MonkeyPatch) -> None:
    # A memory's rank depends on how often it was returned, which a server writes down in the background.
    monkeypatch.setenv("MINDEX_BOOST_MEMORY", "0")
    if "://" in workspace.database:  # exports go beside a database that is a file
        monkeypatch.setenv("MINDEX_EXPORT_PATH", str(workspace.root / "memory-export"))
    workspace.reset()
    text = await Session(workspace).transcript(SESSIONS[name])
    golden.check(f"mcp/{name}", _without_accesses(workspace.normalised(text)))


def _without_accesses(text: str) -> str:
    """How often a record was returned before depends on when the server wrote that down."""
    text = re.sub(r"(never accessed|accessed (once|[\d,]+ times), last [\dTZ:-]+)", "accessed …", text)
    return re.sub(r'("access_count": )\d+(,\s+"last_accessed": "[^"]+")?', r"\1…", text)


class Session:
    """A script against a server, which the script may restart. Every tool must be called once at least."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._called: set[str] = set()

    async def transcript(self, lines: list[str]) -> str:
        parts: list[str] = []
        for command, calls in _servers(lines):
            async with Client(self._server(command)) as client:
                parts.append(f"$ mindex {command}\n")
                if len(parts) == 1:
                    parts.append(await _offered(client))
                    tools = {tool.name for tool in (await client.list_tools()).tools}
                parts += [await self._answered(client, line) for line in calls]
        assert tools <= self._called, f"no call of {', '.join(sorted(tools - self._called))}"
        return "\n".join(parts)

    def _server(self, command: str) -> StdioServerParameters:
        program = [str(Path(freeze.__file__)), str(self._workspace.clock), *shlex.split(command)]
        return StdioServerParameters(command=sys.executable, args=program, env=dict(os.environ))

    async def _answered(self, client: Client, line: str) -> str:
        self._workspace.next_step()
        name, _, rest = line.partition(" ")
        try:
            if name == ":show":
                answer = self._workspace.show(rest)
            elif name.startswith(":"):
                answer = _shown(await getattr(self, f"_{name[1:]}")(client, *shlex.split(rest)))
            else:
                self._called.add(name)
                answer = _result(await client.call_tool(name, json.loads(rest or "{}")))
        except MCPError as error:
            answer = f"── protocol error {error.error.code}\n{error.error.message}\n"
        return f"> {line}\n{answer}"

    async def _read(self, client: Client, uri: str) -> BaseModel:
        return await client.read_resource(uri)

    async def _prompt(self, client: Client, name: str, arguments: str) -> BaseModel:
        return await client.get_prompt(name, json.loads(arguments))

    async def _complete_prompt(self, client: Client, name: str, argument: str, value: str) -> BaseModel:
        reference = PromptReference(type="ref/prompt", name=name)
        return await client.complete(reference, {"name": argument, "value": value})

    async def _complete_resource(self, client: Client, uri: str, argument: str, value: str) -> BaseModel:
        reference = ResourceTemplateReference(type="ref/resource", uri=uri)
        return await client.complete(reference, {"name": argument, "value": value})


def _servers(lines: list[str]) -> Iterator[tuple[str, list[str]]]:
    """Each command that starts a server, with the calls up to the next one."""
    starts = [number for number, line in enumerate(lines) if line.startswith(("$ ", ":restart "))]
    for start, end in pairwise([*starts, len(lines)]):
        yield lines[start].partition(" ")[2], lines[start + 1 : end]


async def _offered(client: Client) -> str:
    """Everything a client can ask for before it calls anything."""
    assert client.server_info is not None
    about = {"name": client.server_info.name, "title": client.server_info.title, "instructions": client.instructions}
    listed = {
        "tools/list": await client.list_tools(),
        "resources/list": await client.list_resources(),
        "resources/templates/list": await client.list_resource_templates(),
        "prompts/list": await client.list_prompts(),
    }
    shown = [f"> initialize\n{indented(about)}\n{_shown(client.server_capabilities)}"]
    shown += [f"> {name}\n{_shown(result)}" for name, result in listed.items()]
    return "\n".join(shown)


def _result(result: CallToolResult) -> str:
    """The texts, the structured content unless the text is just that, and whatever else the result holds."""
    dumped = _dumped(result)
    parts = []
    for block in result.content:
        assert isinstance(block, TextContent)
        parts.append(f"── text\n{readable(block.text + chr(10))}")
    dumped.pop("content")
    structured = dumped.pop("structuredContent", None)
    if structured is not None:
        same = any(_is_json_of(block.text, structured) for block in result.content if isinstance(block, TextContent))
        parts.append("── structured: as the text\n" if same else f"── structured\n{indented(structured)}\n")
    is_error = dumped.pop("isError")
    assert not dumped, f"not recorded: {dumped}"
    return "".join(["── error\n"] * is_error + parts)


def _is_json_of(text: str, value: object) -> bool:
    """Whether a text is this value, names in the same order."""
    try:
        return json.dumps(json.loads(text)) == json.dumps(value)
    except ValueError:
        return False


def _dumped(value: BaseModel) -> dict[str, Any]:
    """As it went over the wire, without what the SDK says of itself in every answer."""
    dumped = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {name: part for name, part in dumped.items() if name not in ("_meta", "resultType")}


def _shown(value: BaseModel) -> str:
    return indented(_dumped(value)) + "\n"
