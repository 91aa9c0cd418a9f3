"""The results of tools: a text, and the same content as JSON."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from mcp_types import CallToolResult, TextContent

from mindex.present.to_json import Json, compact_json

JsonObject = dict[str, Json]


def tool_result(
    text: str, structured: Mapping[str, Json] | None = None, notes: Sequence[str] = (), *, is_error: bool = False
) -> CallToolResult:
    """A result. The notes go into both the text and the JSON, because clients show their model only one of them."""
    shown: dict[str, Any] | None = None if structured is None else dict(structured)
    if notes:
        text = "\n".join([text, *(f"note: {note}" for note in notes)])
        if shown is not None:
            shown["notes"] = [*shown.get("notes", ()), *notes]
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=shown, is_error=is_error)


def json_result(structured: Mapping[str, Json], *, is_error: bool = False) -> CallToolResult:
    """A result whose text is the JSON, indented by two, as several dialects write it."""
    return tool_result(indented_json(structured), structured, is_error=is_error)


def compact_json_result(structured: Mapping[str, Json]) -> CallToolResult:
    """A result whose text is the JSON without blanks."""
    return tool_result(compact_json(structured), structured)


def indented_json(structured: Mapping[str, Json]) -> str:
    return json.dumps(structured, ensure_ascii=False, indent=2)
