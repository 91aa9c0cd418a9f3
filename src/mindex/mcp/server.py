"""The MCP server: one dialect's tools over one service, with files, records, a prompt and completions beside them."""

from __future__ import annotations

import asyncio
from typing import Any

from anyio.to_thread import run_sync
from mcp.server import CacheHint, MCPServer, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, CallToolResult, InputRequiredResult, Resource

from mindex import __version__
from mindex.errors import MindexError
from mindex.mcp.dialects import Dialect
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.resources import add_completions, add_prompt, add_resources, list_documents

# Tools, templates and prompts never change while a server runs.
_AN_HOUR = CacheHint(ttl_ms=3_600_000, scope="public")
# The answer to the handshake is on its way before anything else takes the processor.
_HEAD_START = 0.05
# Opening takes 15 ms, unless someone else holds the database.
_PATIENCE = 0.25


class MindexServer(MCPServer[Any]):
    """The SDK's server, with a list of resources that is read when it is asked for."""

    def __init__(self, service: MemoryHost, dialect: Dialect) -> None:
        tools: list[Tool] = [*dialect.tools(service)]
        super().__init__(
            "mindex",
            title="mindex",
            version=__version__,
            instructions=_instructions(service, dialect),
            tools=tools,
            cache_hints={"tools/list": _AN_HOUR, "prompts/list": _AN_HOUR, "resources/templates/list": _AN_HOUR},
            middleware=[self._start_after_answer],
            log_level="WARNING",
        )
        self._service = service
        self._unknown_tool = dialect.unknown_tool
        self._names = {tool.name for tool in tools}
        add_resources(self, service)
        add_prompt(self, service)
        add_completions(self, service)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        if self._unknown_tool is not None and name not in self._names:
            return self._unknown_tool(name)
        return await super().call_tool(name, arguments, context)

    async def list_resources(self) -> list[Resource]:
        try:
            return await run_sync(list_documents, self._service)
        except MindexError as error:
            raise MCPError(INTERNAL_ERROR, str(error)) from error

    async def _start_after_answer(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Work behind the server's back begins with the first message, whatever it is, and after its answer."""
        try:
            return await call_next(ctx)
        finally:
            asyncio.get_running_loop().call_later(_HEAD_START, self._service.start)


def _instructions(service: MemoryHost, dialect: Dialect) -> str:
    """With what is indexed, unless that cannot be read at once: then the first request says why."""
    try:
        return dialect.instructions(service.peek(_PATIENCE))
    except MindexError:
        return dialect.instructions(None)
