"""Replays a session of another program against the dialect that replaces it, over a real MCP client."""

from __future__ import annotations

import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters
from tests.mcp.conftest import structured, text
from tests.mcp.test_serve import MINDEX


class Matching:
    """Equal to every text that a pattern describes: for ids and times, which differ from run to run."""

    def __init__(self, pattern: str) -> None:
        self._pattern = re.compile(pattern)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, str) and self._pattern.fullmatch(other) is not None

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Matching({self._pattern.pattern!r})"


class Number:
    """Equal to every number in a range."""

    def __init__(self, least: float, most: float) -> None:
        self._least, self._most = least, most

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int | float) and self._least <= other <= self._most

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Number({self._least}, {self._most})"


ID = Matching("[a-z2-7]{12}")
ISO = Matching(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
ROW_TIME = Matching(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d")
ANY_TEXT = Matching(r"(?s).+")
MS = Number(1_700_000_000_000, 4_000_000_000_000)


def started(tools: str, *flags: str, env: Mapping[str, str]) -> Client:
    """A client of `mindex serve --tools NAME` in a separate process."""
    command = [*MINDEX, "serve", "--tools", tools, *flags]
    return Client(StdioServerParameters(command=command[0], args=command[1:], env={**os.environ, **env}))


class Session:
    """One client of one server. `call` compares what it answers with what the program's document shows."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def call(
        self, tool: str, arguments: Mapping[str, object], expected: object = None, *, is_error: bool = False
    ) -> dict[str, Any]:
        result = await self._client.call_tool(tool, dict(arguments))
        assert result.is_error is is_error, text(result)
        answered: dict[str, Any] = json.loads(text(result))
        assert structured(result) == answered
        if expected is not None:
            assert answered == expected
            assert list(answered) == list(expected)  # type: ignore[call-overload]
        return {**answered, "characters": len(text(result))}


@asynccontextmanager
async def session(tools: str, database: str, **settings: str) -> AsyncIterator[Session]:
    """A session with `mindex serve --tools NAME` in a separate process."""
    command = [*MINDEX, "--db", database, "serve", "--tools", tools]
    environment = {**os.environ, **settings}
    async with Client(StdioServerParameters(command=command[0], args=command[1:], env=environment)) as client:
        yield Session(client)
