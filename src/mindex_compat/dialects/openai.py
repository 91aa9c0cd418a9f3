"""The two tools that ChatGPT's connectors and deep research call: `search` and `fetch`.

The id of a hit is the record's; `fetch` returns that record, or a whole file by its `doc://` address or path.
"""

from typing import Annotated
from urllib.parse import quote, unquote

from mcp_types import CallToolResult
from pydantic import Field

from mindex.datatypes import Record
from mindex.errors import NotFoundError
from mindex.mcp.dialect import Dialect
from mindex.mcp.dialect_parts import summary_of, to_json, view_record
from mindex.mcp.tools import READS, JsonObject, Toolset, compact_json_result, tool

_LIMIT = 10
_DOC, _RECORD = "doc://", "memory://"


class OpenAITools(Toolset):
    @tool("Search indexed documents and memories. Plain words are best; fetch reads a result.", READS)
    def search(self, query: str) -> CallToolResult:
        found = self._memory.search(query, limit=_LIMIT)
        return compact_json_result({"results": [_reference(hit.record) for hit in found.hits]})

    @tool("Read one search result in full by its id, or a whole file by the url of a result.", READS)
    def fetch(self, id: Annotated[str, Field(description="The id or url of a search result")]) -> CallToolResult:
        record = self._record(id.strip())
        row = to_json(view_record(record))
        metadata: JsonObject = {name: value for name, value in row.items() if name not in ("id", "title", "text")}
        reference = _reference(record)
        url = reference.pop("url")
        return compact_json_result({**reference, "text": record.text, "url": url, "metadata": metadata})

    def _record(self, reference: str) -> Record:
        if reference.startswith(_DOC):
            return self._memory.lookup.read_file(unquote(reference.removeprefix(_DOC)))
        found = self._memory.get(reference.removeprefix(_RECORD))
        if len(found.records) != 1:
            what = "nothing" if not found.records else "more than one thing"
            raise NotFoundError(f"there is {what} with the id '{reference[:200]}'", "give the id of a search result")
        return found.records[0]


def _reference(record: Record) -> JsonObject:
    address = f"{_DOC}{quote(record.collection)}/{quote(record.path)}" if record.path else f"{_RECORD}{record.id}"
    return {"id": record.id, "title": record.title or summary_of(record) or record.id, "url": address}


_INSTRUCTIONS = (
    "This machine's memory: indexed documents and the entries of agents. `search` it before you answer anything"
    " that the user's project, team or past work may have settled; `fetch` what it finds."
)

DIALECT = Dialect((OpenAITools,), _INSTRUCTIONS)
