"""The two tools that ChatGPT's connectors and deep research ask for: `search` and `fetch`.

The id of a hit is the record's; `fetch` brings that record, and a whole file by its `doc://` address or path.
"""

from __future__ import annotations

import json
from typing import Annotated
from urllib.parse import quote, unquote

from mcp_types import CallToolResult, TextContent
from pydantic import Field

from mindex.errors import NotFoundError
from mindex.mcp.dialects import Dialect
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.strict_tool import READS, StrictTool
from mindex.memory import Memory
from mindex.model import Record
from mindex.present.record_view import summary_of, view_record
from mindex.present.to_json import Json, to_json

_LIMIT = 10
_DOC, _RECORD = "doc://", "memory://"
_SEARCH = "Search indexed documents and memories. Plain words are best; fetch reads a result."
_FETCH = "Read one search result in full by its id, or a whole file by the url of a result."


class OpenAITools:
    """Each method is one tool."""

    def __init__(self, service: MemoryHost) -> None:
        self._service = service

    def search(self, query: str) -> CallToolResult:
        found = self._service.memory.search(query, limit=_LIMIT)
        return _answer({"results": [_reference(hit.record) for hit in found.hits]})

    def fetch(
        self,
        id: Annotated[str, Field(description="The id or url of a search result")],
    ) -> CallToolResult:
        record = self._record(id.strip())
        row = to_json(view_record(record))
        metadata: dict[str, Json] = {name: value for name, value in row.items() if name not in ("id", "title", "text")}
        reference = _reference(record)
        return _answer(
            {
                "id": reference["id"],
                "title": reference["title"],
                "text": record.text,
                "url": reference["url"],
                "metadata": metadata,
            }
        )

    def _record(self, reference: str) -> Record:
        memory = self._service.memory
        if reference.startswith(_DOC):
            return memory.lookup.read_file(unquote(reference.removeprefix(_DOC)))
        found = memory.get(reference.removeprefix(_RECORD))
        if len(found.records) != 1:
            what = "nothing" if not found.records else "more than one thing"
            raise NotFoundError(f"there is {what} with the id '{reference[:200]}'", "give the id of a search result")
        return found.records[0]


def _reference(record: Record) -> dict[str, Json]:
    address = f"{_DOC}{quote(record.collection)}/{quote(record.path)}" if record.path else f"{_RECORD}{record.id}"
    return {"id": record.id, "title": record.title or summary_of(record) or record.id, "url": address}


def _answer(shown: dict[str, Json]) -> CallToolResult:
    text = json.dumps(shown, ensure_ascii=False, separators=(",", ":"))
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=shown)


def _instructions(memory: Memory | None) -> str:  # noqa: ARG001 - the same whatever is in it
    return (
        "This machine's memory: indexed documents and what agents were told. `search` it before you answer anything"
        " that the user's project, team or past work may have settled; `fetch` what it finds."
    )


def _tools(service: MemoryHost) -> list[StrictTool]:
    offered = OpenAITools(service)
    return [StrictTool.of(offered.search, _SEARCH, READS), StrictTool.of(offered.fetch, _FETCH, READS)]


DIALECT = Dialect(tools=_tools, instructions=_instructions)
