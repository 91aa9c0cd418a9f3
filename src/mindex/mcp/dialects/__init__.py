"""Which tools a server offers: our own, or the names and shapes of another memory server, one module each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mindex.errors import UsageError

if TYPE_CHECKING:
    from mcp_types import CallToolResult

    from mindex.mcp.memory_host import MemoryHost
    from mindex.mcp.strict_tool import StrictTool
    from mindex.memory import Memory

NATIVE = "native"
# `--tools NAME` → the module whose `DIALECT` says the rest. Another dialect is one file and one line here.
DIALECTS = {
    NATIVE: "mindex.mcp.native_tools",
    "memory-exchange": "mindex.mcp.dialects.memory_exchange",
    "memory-mcp": "mindex.mcp.dialects.memory_mcp",
    "mudpuppy": "mindex.mcp.dialects.mudpuppy",
    "memorizer": "mindex.mcp.dialects.memorizer",
    "anthropic": "mindex.mcp.dialects.anthropic",
    "openai": "mindex.mcp.dialects.openai",
}


def _no_settings(source: Path | None) -> Mapping[str, object]:  # noqa: ARG001 - as every dialect's
    return {}


@dataclass(frozen=True, slots=True)
class Dialect:
    """What sets one set of tools apart from another."""

    tools: Callable[[MemoryHost], list[StrictTool]]
    instructions: Callable[[Memory | None], str]
    exclude: tuple[str, ...] = ()  # what its seed never indexes
    settings: Callable[[Path | None], Mapping[str, object]] = _no_settings  # its seed's own, some from its source
    unknown_tool: Callable[[str], CallToolResult] | None = None  # how its seed answers a name that it does not have


def dialect_named(name: str) -> Dialect:
    if name not in DIALECTS:
        raise UsageError(f"unknown tools '{name}'", f"use one of {', '.join(DIALECTS)}")
    dialect: Dialect = import_module(DIALECTS[name]).DIALECT
    return dialect
