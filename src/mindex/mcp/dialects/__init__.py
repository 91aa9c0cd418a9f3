"""Which tools a server offers: the native ones, or those of another memory program, one dialect each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mindex.command_words import Commands
from mindex.errors import UsageError
from mindex.model.guidance import Guidance

# This module must not import the SDK: `mindex serve --help` reads DIALECTS.
if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from mindex.mcp.memory_host import MemoryHost
    from mindex.mcp.tools import OnError

NATIVE, MEMORY_EXCHANGE = "native", "memory-exchange"
# `--tools NAME` → the module with its `DIALECT`. Another dialect is one file and one line here.
DIALECTS = {
    NATIVE: "mindex.mcp.native",
    MEMORY_EXCHANGE: "mindex.mcp.dialects.memory_exchange",
    "memory-mcp": "mindex.mcp.dialects.memory_mcp",
    "mudpuppy": "mindex.mcp.dialects.mudpuppy",
    "memorizer": "mindex.mcp.dialects.memorizer",
    "anthropic": "mindex.mcp.dialects.anthropic",
    "openai": "mindex.mcp.dialects.openai",
}
# For dialects whose own score decides the order: importance and recency must not be added to it.
NO_IMPORTANCE_BOOST: Mapping[str, object] = {"boost.memory": 0.0}
# For dialects that search files and can neither index nor add.
READS_FILES = Guidance(
    fill="ask the user to run `mindex index FOLDER`",
    add="ask the user to run `mindex add TEXT`",
    wait="search again in a moment",
    vectors="they are being made, search again in a moment",
)


@dataclass(frozen=True, slots=True)
class Dialect:
    """One set of tools, and what else differs for its clients."""

    toolsets: tuple[Callable[[MemoryHost], object], ...]  # their methods marked with `@tool` are the tools, in order
    instructions: str
    lists_collections: bool = False  # in its instructions
    exclude: tuple[str, ...] = ()  # never indexed
    backfill_delay: float = 0.0  # see `ServerOptions`
    settings: Mapping[str, object] = field(default_factory=dict)
    settings_of_source: Callable[[Path], Mapping[str, object]] = lambda _: {}  # from files in the source folder
    on_error: OnError | None = None  # the result of an error; None: an error of MCP
    unknown_tool: Callable[[str], CallToolResult] | None = None  # the result for a tool that it does not have
    commands: Commands = ()  # the commands that its tools serve, and the words for these in errors and notes
    guidance: Guidance = READS_FILES  # what its notes tell the caller to do

    def settings_for(self, source: Path | None) -> dict[str, object]:
        """Return the settings of a server for this source folder."""
        return {**self.settings, **(self.settings_of_source(source) if source is not None else {})}


def unknown_tools(name: str) -> UsageError:
    return UsageError(f"unknown tools '{name}'", f"use one of {', '.join(DIALECTS)}")


def dialect_named(name: str) -> Dialect:
    if name not in DIALECTS:
        raise unknown_tools(name)
    dialect: Dialect = import_module(DIALECTS[name]).DIALECT
    return dialect
