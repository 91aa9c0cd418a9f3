"""The MCP server: the tools of one dialect over one memory, with instructions, resources, a prompt and completions."""

import asyncio
from typing import Any

from anyio.to_thread import run_sync
from mcp.server import CacheHint, MCPServer, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    CallToolResult,
    GetPromptResult,
    InputRequiredResult,
    Resource,
)

from mindex import __version__
from mindex.errors import MindexError
from mindex.mcp.dialects import Dialect
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.resources_prompts_completions import add_resources_prompt_completions, list_documents
from mindex.mcp.tool_words import in_tool_words
from mindex.mcp.tools import make_tools

# Tools, templates and prompts never change while a server runs.
_AN_HOUR = CacheHint(ttl_ms=3_600_000, scope="public")
# The reply to the handshake is sent before anything else takes the processor.
_START_DELAY_SECONDS = 0.05
_MOST_COLLECTIONS = 10
# Opening the memory takes 15 ms, unless another process holds the database.
_OPEN_SECONDS = 0.25


class MindexServer(MCPServer[Any]):
    """The SDK's server, with a list of resources that is read anew for each request."""

    def __init__(self, host: MemoryHost, dialect: Dialect) -> None:
        toolsets = [toolset(host) for toolset in dialect.toolsets]
        tools: list[Tool] = [tool for one in toolsets for tool in make_tools(one, dialect.on_error, dialect.commands)]
        super().__init__(
            "mindex",
            title="mindex",
            version=__version__,
            instructions=_instructions(host, dialect),
            tools=tools,
            cache_hints={"tools/list": _AN_HOUR, "prompts/list": _AN_HOUR, "resources/templates/list": _AN_HOUR},
            middleware=[self._start_after_reply],
            log_level="WARNING",
        )
        self._host = host
        self._unknown_tool = dialect.unknown_tool
        self._names = {tool.name for tool in tools}
        self._commands = dialect.commands
        add_resources_prompt_completions(self, host)

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        if self._unknown_tool is not None and name not in self._names:
            return self._unknown_tool(name)
        return await super().call_tool(name, arguments, context)

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, context: Context[Any, Any] | None = None
    ) -> GetPromptResult | InputRequiredResult:
        """As the SDK does it; what is wrong with the arguments is an error that says so, and is not logged."""
        try:
            return await super().get_prompt(name, arguments, context)
        except ValueError as error:
            prompts = await self.list_prompts()
            known = (f"{one.name}({', '.join(argument.name for argument in one.arguments or ())})" for one in prompts)
            raise MCPError(INVALID_PARAMS, f"{error}; there is {', '.join(known)}") from error

    async def list_resources(self) -> list[Resource]:
        try:
            return await run_sync(list_documents, self._host)
        except MindexError as error:
            raise MCPError(INTERNAL_ERROR, self.in_tool_words(str(error))) from error

    def in_tool_words(self, message: str) -> str:
        """Return a message with the tools of the dialect in place of commands."""
        return in_tool_words(message, self._commands)

    async def _start_after_reply(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Start the background work after the reply to the first message, whatever it is."""
        try:
            return await call_next(ctx)
        finally:
            asyncio.get_running_loop().call_later(_START_DELAY_SECONDS, self._host.start)


def _instructions(host: MemoryHost, dialect: Dialect) -> str:
    """What clients show their model before it uses a tool.

    These are the dialect's instructions, and the names and contexts of the collections if it lists them. A memory that
    does not open at once is left out: the first request returns the reason.
    """
    memory = host.peek(_OPEN_SECONDS)
    if memory is None or not dialect.lists_collections:
        return dialect.instructions
    try:
        collections = memory.collections.list()  # no counts: they would delay the handshake of a large memory
    except MindexError:
        return dialect.instructions
    names = [one.name + (f" ({one.context})" if one.context else "") for one in collections[:_MOST_COLLECTIONS]]
    more = f" and {len(collections) - len(names)} more" if len(collections) > len(names) else ""
    return f"{dialect.instructions} Indexed: {', '.join(names)}{more}." if names else dialect.instructions
