"""Completions of paths and collections, for the arguments of resources and prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mcp_types as types
from anyio.to_thread import run_sync

from mindex.mcp.memory_host import MemoryHost

if TYPE_CHECKING:
    from mindex.mcp.server import MindexServer

# The protocol's own limit.
_MAX_COMPLETIONS = 100


def add_completions(server: MindexServer, host: MemoryHost) -> None:
    """Register the completions at the server."""

    @server.completion()  # type: ignore[no-untyped-call, untyped-decorator]
    async def complete(
        reference: types.PromptReference | types.ResourceTemplateReference,
        argument: types.CompletionArgument,
        context: types.CompletionContext | None,  # noqa: ARG001 - no completion depends on another argument
    ) -> types.Completion | None:
        if isinstance(reference, types.ResourceTemplateReference) and argument.name == "path":
            return await run_sync(_paths, host, argument.value)
        if isinstance(reference, types.PromptReference) and argument.name == "collection":
            return await run_sync(_collections, host, argument.value)
        return None


def _paths(host: MemoryHost, typed: str) -> types.Completion:
    """Return paths that begin as typed: bare, or below their collection's name if that was typed."""
    found = host.memory.collections.documents(typed, limit=_MAX_COMPLETIONS + 1)
    paths = [one.path if one.path.startswith(typed) else f"{one.collection}/{one.path}" for one in found]
    more = len(paths) > _MAX_COMPLETIONS
    return types.Completion(values=list(dict.fromkeys(paths[:_MAX_COMPLETIONS])), has_more=more)


def _collections(host: MemoryHost, typed: str) -> types.Completion:
    names = [one.name for one in host.memory.collections.list() if one.name.startswith(typed)]
    return types.Completion(values=names[:_MAX_COMPLETIONS], total=len(names), has_more=len(names) > _MAX_COMPLETIONS)
