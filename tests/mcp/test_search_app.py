"""The MCP App of `search`: found through the tool, read as a resource, and unnoticed by clients that show no apps."""

from __future__ import annotations

import re

import pytest
from mcp.client.extension import advertise
from mcp.server.apps import APP_MIME_TYPE, EXTENSION_ID
from mcp_types import TextResourceContents

from mcp import Client
from mindex.mcp.dialect import tool_names
from mindex.mcp.resources import SEARCH_APP
from tests.mcp.conftest import Served, structured, text

pytestmark = pytest.mark.anyio

QUERY = {"query": "how is data cached", "limit": 2}
SHOWS_APPS = [advertise(EXTENSION_ID, {"mimeTypes": [APP_MIME_TYPE]})]


async def test_the_tool_names_an_app_that_can_be_read_and_loads_nothing(handbook_server: Served) -> None:
    async with Client(handbook_server.server, extensions=SHOWS_APPS) as client:
        named = {tool.name: tool.meta for tool in (await client.list_tools()).tools}
        assert named.pop("search") == {"ui": {"resourceUri": SEARCH_APP}}
        assert set(named.values()) == {None}
        (app,) = (await client.read_resource(SEARCH_APP)).contents
    assert isinstance(app, TextResourceContents)
    assert app.mime_type == APP_MIME_TYPE
    assert app.text.startswith("<!doctype html>")
    assert ".hit-row" in app.text
    assert not re.search(r"\bsrc=|\bhref=|@import|https?://(?!www\.w3\.org/2000/svg)|innerHTML", app.text)
    assert len(app.text) < 40_000


async def test_a_host_that_shows_apps_gets_the_reasons_beside_the_result(handbook_server: Served) -> None:
    async with Client(handbook_server.server, extensions=SHOWS_APPS) as client:
        result = await client.call_tool("search", QUERY)
    rows = structured(result)["results"]
    assert result.meta is not None
    reasons = result.meta["mindex/explain"]
    assert {row["id"] for row in rows} <= set(reasons)
    assert sum(stage["change"] for stage in reasons[rows[0]["id"]]["stages"]) == pytest.approx(
        rows[0]["score"], abs=1e-3
    )


async def test_a_host_that_shows_none_notices_nothing(handbook_server: Served) -> None:
    async with Client(handbook_server.server) as client:
        plain = await client.call_tool("search", QUERY)
        listed = {str(one.uri) for one in (await client.list_resources()).resources}
    async with Client(handbook_server.server, extensions=SHOWS_APPS) as client:
        shown = await client.call_tool("search", QUERY)
    assert "mindex/explain" not in (plain.meta or {})
    assert (text(plain), structured(plain)) == (text(shown), structured(shown))
    assert SEARCH_APP not in listed


@pytest.mark.parametrize("tools", [name for name in tool_names() if name not in ("native", "memory-search")])
async def test_other_dialects_have_no_app(serving: object, tools: str) -> None:
    async with Client(serving(tools).server) as client:  # type: ignore[operator]
        assert {tool.meta for tool in (await client.list_tools()).tools} == {None}
