"""What a server offers beside its tools: files and records as resources, the prompt `recall`, and completions."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import mcp_types as types
from anyio.to_thread import run_sync
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.shared.exceptions import MCPError
from pydantic import Field

from mindex.errors import MindexError
from mindex.mcp.memory_host import MemoryHost
from mindex.present.answer_view import view_answer
from mindex.present.fence import inline
from mindex.present.records_view import view_records
from mindex.present.text import note_lines

if TYPE_CHECKING:
    from mindex.mcp.server import MindexServer

# `+`: the slashes of the path stay as they are.
DOC = "doc://{+path}"
MEMORY = "memory://{id}"
MOST_LISTED = 100
# The protocol's own limit.
_MOST_COMPLETIONS = 100
_ID = re.compile(r"[a-zA-Z0-9]{3,64}")
_PROMPT_BUDGET = 4_000


def list_documents(host: MemoryHost) -> list[types.Resource]:
    """Return the first indexed files; the templates reach the rest."""
    return [
        types.Resource(
            uri=f"doc://{quote(document.collection)}/{quote(document.path)}",
            name=document.path,
            title=document.title or None,
            mime_type="text/plain" if document.path.lower().endswith(".txt") else "text/markdown",
            size=document.size,
        )
        for document in host.memory.collections.documents(limit=MOST_LISTED)
    ]


def add_resources_prompt_completions(server: MindexServer, host: MemoryHost) -> None:
    """Register the handlers at the server."""

    @server.resource(DOC, name="document", description="An indexed file, as it is now", mime_type="text/markdown")
    def document(path: str) -> str:
        try:
            return host.memory.lookup.read_file(path).text
        except MindexError as error:
            raise ResourceNotFoundError(server.in_tool_words(host.error_text(error))) from error

    @server.resource(MEMORY, name="record", description="One record, by the id that search gives")
    def record(id: str) -> str:
        found = host.memory.get(f"memory://{id}") if _ID.fullmatch(id) else None
        if found is None or not found.records:
            raise ResourceNotFoundError(f"no record '{id}'; search for it first")
        return view_records(found).text()

    @server.prompt(description="What the memory holds about a topic, ready to use")
    def recall(
        topic: Annotated[str, Field(description="What to recall")],
        collection: Annotated[str, Field(description="Only this indexed folder")] = "",
    ) -> str:
        try:
            found = host.memory.search(topic, collections=[collection] if collection else [], logged=False)
        except MindexError as error:
            raise MCPError(types.INVALID_PARAMS, server.in_tool_words(host.error_text(error))) from error
        found = replace(found, notes=tuple(map(server.in_tool_words, found.notes)))
        shown = view_answer(found, budget=_PROMPT_BUDGET)
        host.memory.log_shown(found, shown.ids)
        notes = "".join(f"\n{line}" for line in note_lines(host.notes()))
        return (
            f"What the memory holds about: {inline(topic)}\n\n{shown.text()}{notes}\n\n"
            "Answer from these passages and name their paths; say where they do not answer, and read more with `get`."
        )

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
    found = host.memory.collections.documents(typed, limit=_MOST_COMPLETIONS + 1)
    paths = [one.path if one.path.startswith(typed) else f"{one.collection}/{one.path}" for one in found]
    more = len(paths) > _MOST_COMPLETIONS
    return types.Completion(values=list(dict.fromkeys(paths[:_MOST_COMPLETIONS])), has_more=more)


def _collections(host: MemoryHost, typed: str) -> types.Completion:
    names = [one.name for one in host.memory.collections.list() if one.name.startswith(typed)]
    return types.Completion(values=names[:_MOST_COMPLETIONS], total=len(names), has_more=len(names) > _MOST_COMPLETIONS)
