"""The MCP server: the tools of one dialect over one memory, with instructions, resources, a prompt and completions."""

import asyncio
from time import perf_counter
from typing import Any

from anyio.to_thread import run_sync
from mcp.server import CacheHint, MCPServer, ServerRequestContext
from mcp.server.context import CallNext, HandlerResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.tools import Tool
from mcp.server.stdio import stdio_server
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
from mindex.command_words import in_tool_words
from mindex.errors import MindexError
from mindex.foreign_text import json_without_controls, without_controls
from mindex.http_access.current_principal import current_principal
from mindex.http_access.metrics import Metrics
from mindex.mcp.completions import add_completions
from mindex.mcp.dialect import Dialect, complete_instructions
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.prompts import add_prompts
from mindex.mcp.resources import add_resources, list_documents, make_search_app
from mindex.mcp.tools import make_tools
from mindex.mcp.unreadable_messages import AnsweredMessages

# Tools, templates and prompts never change while a server runs.
_AN_HOUR = CacheHint(ttl_ms=3_600_000, scope="public")
# The reply to the handshake is sent before anything else takes the processor.
_START_DELAY_SECONDS = 0.05


class MindexServer(MCPServer[Any]):
    """The SDK's server, with a list of resources that is read again for each request."""

    def __init__(self, host: MemoryHost, dialect: Dialect) -> None:
        toolsets = [toolset(host) for toolset in dialect.toolsets]
        tools: list[Tool] = [tool for one in toolsets for tool in make_tools(one, dialect, host.error_text)]
        super().__init__(
            "mindex",
            title="mindex",
            version=__version__,
            instructions=complete_instructions(dialect, host),
            tools=tools,
            cache_hints={"tools/list": _AN_HOUR, "prompts/list": _AN_HOUR, "resources/templates/list": _AN_HOUR},
            middleware=[self._start_after_reply, _shown],
            extensions=[make_search_app()] if any(tool.meta for tool in tools) else [],
            log_level="WARNING",
        )
        self.host = host
        self.metrics: Metrics | None = None  # of a server over HTTP
        self.make_routes = dialect.routes  # as above
        self._instructions = dialect.instructions
        self._unknown_tool = dialect.unknown_tool
        self._names = {tool.name for tool in tools}
        self._commands = dialect.commands
        add_resources(self, host)
        add_prompts(self, host)
        add_completions(self, host)

    async def run_stdio_async(self) -> None:
        """As the SDK does it, but every request is answered, also one that cannot be read."""
        async with stdio_server() as (messages, replies):
            server = self._lowlevel_server
            await server.run(AnsweredMessages(messages, replies), replies, server.create_initialization_options())

    async def call_tool(
        self, name: str, arguments: dict[str, Any], context: Context[Any, Any] | None = None
    ) -> CallToolResult | InputRequiredResult:
        if self._unknown_tool is not None and name not in self._names:
            return self._unknown_tool(name)
        if self.metrics is None or name not in self._names:
            return await super().call_tool(name, arguments, context)
        outcome, started = "error", perf_counter()
        try:
            result = await super().call_tool(name, arguments, context)
            if not (isinstance(result, CallToolResult) and result.is_error):
                outcome = "ok"
            return result
        finally:
            self.metrics.count_call(name, outcome, perf_counter() - started)

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
            return await run_sync(list_documents, self.host)
        except MindexError as error:
            raise MCPError(INTERNAL_ERROR, self.in_tool_words(self.host.error_text(error))) from error

    def in_tool_words(self, message: str) -> str:
        """Return a message with the tools of the dialect in place of commands."""
        return in_tool_words(message, self._commands)

    async def _start_after_reply(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Start the background work after the reply to the first message of any kind.

        Instructions name the collections, so a principal that sees a part of them gets the dialect's own.
        """
        try:
            result = await call_next(ctx)
            principal = current_principal()
            if (
                principal is not None
                and principal.collections
                and isinstance(result, dict)
                and "instructions" in result
            ):
                return {**result, "instructions": self._instructions}
            return result
        finally:
            asyncio.get_running_loop().call_later(_START_DELAY_SECONDS, self.host.start)


async def _shown(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Send no control character of a stored text: a client may print a result to a terminal."""
    try:
        result = await call_next(ctx)
    except MCPError as error:
        shown = without_controls(error.message)
        if shown == error.message:
            raise
        raise MCPError(error.code, shown, error.data) from error
    shown_result: HandlerResult = _value_without_controls(result)
    return shown_result


def _value_without_controls(value: Any) -> Any:
    if isinstance(value, str):
        return without_controls(value)
    if isinstance(value, list):
        return [_value_without_controls(one) for one in value]
    if not isinstance(value, dict):
        return value
    shown = {without_controls(name): _value_without_controls(one) for name, one in value.items()}
    if shown.get("type") == "text" and isinstance(value.get("text"), str):  # which may be JSON
        shown["text"] = json_without_controls(value["text"])
    return shown
