"""The prompts of the server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import Field

from mindex.errors import MindexError
from mindex.mcp.memory_host import MemoryHost
from mindex.present.answer_view import view_answer
from mindex.present.fence import inline
from mindex.present.text import note_lines
from mindex.present.to_json import wording

if TYPE_CHECKING:
    from mindex.mcp.server import MindexServer

_PROMPT_BUDGET = 4_000


def add_prompts(server: MindexServer, host: MemoryHost) -> None:
    """Register the prompt `recall` at the server."""

    @server.prompt(description="What the memory holds about a topic, ready to use")
    def recall(
        topic: Annotated[str, Field(description="What to recall")],
        collection: Annotated[str, Field(description="Only this indexed folder")] = "",
    ) -> str:
        try:
            found = host.memory.search(topic, collections=[collection] if collection else [], logged=False)
        except MindexError as error:
            raise MCPError(types.INVALID_PARAMS, server.in_tool_words(host.error_text(error))) from error
        with wording(server.in_tool_words):
            shown = view_answer(found, budget=_PROMPT_BUDGET)
            text = shown.text()
        host.memory.log_shown(found, shown.ids)
        notes = "".join(f"\n{line}" for line in note_lines(host.notes()))
        return (
            f"What the memory holds about: {inline(topic)}\n\n{text}{notes}\n\n"
            "Answer from these passages and name their paths; say where they do not answer, and read more with `get`."
        )
