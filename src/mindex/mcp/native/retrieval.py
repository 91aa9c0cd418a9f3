"""The native tools `search` and `get`."""

from typing import Annotated, Any

from mcp.server.apps import client_supports_apps
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from mindex.datatypes import Mode
from mindex.errors import NotFoundError
from mindex.mcp.resources import SEARCH_APP
from mindex.mcp.tools import READS, Omitted, Texts, Toolset, described, tool, tool_result
from mindex.present.answer_view import View
from mindex.present.records_view import view_records
from mindex.present.to_json import to_json
from mindex.search.options import SEARCH_OPTIONS
from mindex.search_view import search_view

DEFAULT_BUDGET = 4_000
# Clients cut longer results in the middle of a sentence.
MAX_BUDGET = 25_000

_SEARCH = (
    'Search indexed documents and memories. query: plain words work best; "phrase", AND, OR, NOT, prefix*, title:word'
    " are strict. Notes say if nothing is relevant."
)
_GET = (
    "Read records or files in full. refs: ids from search, ID±2 (with two neighbours on each side in its file or"
    " conversation), #5 (an entry's number), path, path:10-40, glob; also links:ID, backlinks:ID, profile[.path],"
    " history:ID, timeline[:FROM..TO], due (skills), conflicts, tags, types, sessions."
)
_ABOUT = described(SEARCH_OPTIONS)

Budget = Annotated[int, Field(description="Maximum tokens, 50-25000, default 4000")]


class SearchTools(Toolset):
    @tool(_SEARCH, READS, app=SEARCH_APP)
    def search(
        self,
        context: Context[Any, Any],
        query: str,
        # written by scripts/reference: search options
        limit: Annotated[int | Omitted, _ABOUT["limit"]] = None,
        offset: Annotated[int, _ABOUT["offset"]] = 0,
        view: Annotated[View, _ABOUT["view"]] = "passages",
        budget: Annotated[int | Omitted, _ABOUT["budget"]] = None,
        mode: Annotated[Mode, _ABOUT["mode"]] = "hybrid",
        current_file: Annotated[str, _ABOUT["current_file"]] = "",
        kind: Annotated[Texts, _ABOUT["kind"]] = (),
        type: Annotated[Texts, _ABOUT["type"]] = (),
        collection: Texts = (),
        path: Annotated[str, _ABOUT["path"]] = "",
        tags: Annotated[Texts, _ABOUT["tags"]] = (),
        all_tags: Annotated[Texts, _ABOUT["all_tags"]] = (),
        entities: Annotated[Texts, _ABOUT["entities"]] = (),
        min_importance: Annotated[int, _ABOUT["min_importance"]] = 0,
        min_confidence: Annotated[float, _ABOUT["min_confidence"]] = 0,
        after: Annotated[str, _ABOUT["after"]] = "",
        before: Annotated[str, _ABOUT["before"]] = "",
        as_of: Annotated[str, _ABOUT["as_of"]] = "",
        now: Annotated[str, _ABOUT["now"]] = "",
        include_expired: bool = False,
        explain: bool = False,
        weak: Annotated[bool | Omitted, _ABOUT["weak"]] = None,
        # end: search options
    ) -> CallToolResult:
        arguments = locals()
        options: Any = {
            one.name: value
            for one in SEARCH_OPTIONS
            # An empty filter is none; the limit 0 is an error.
            if (value := arguments.get(one.argument)) not in (None, one.default) and (value or not one.scope)
        }
        if budget is None and view != "passages":
            budget = DEFAULT_BUDGET
        budget, notes = self._budget_and_notes(budget)
        found, shown = search_view(self._memory, query, **{**options, "budget": budget, "notes": notes})
        result = tool_result(shown.text(), shown.json())
        if not client_supports_apps(context):
            return result
        # For the app alone: a host shows its model nothing of `_meta`.
        reasons = {hit.record.id: to_json(hit) for hit in found.hits}
        return result.model_copy(update={"meta": {"mindex/explain": reasons}})

    @tool(_GET, READS)
    def get(self, refs: Texts, budget: Budget = DEFAULT_BUDGET, as_of: str = "") -> CallToolResult:
        found = self._memory.get(*refs, as_of=as_of or None)
        if not found.records and found.missing:
            why = "; ".join(found.why)[:200] or "search for it first"
            raise NotFoundError(f"nothing found for {', '.join(found.missing)[:200]}", why)
        most, notes = self._budget_and_notes(budget)
        shown = view_records(found, budget=most, notes=notes)
        return tool_result(shown.text(), shown.json())

    def _budget_and_notes(self, budget: int | None) -> tuple[int | None, tuple[str, ...]]:
        """Return the budget, at most MAX_BUDGET, and the notes of the result."""
        if budget is None or budget <= MAX_BUDGET:
            return budget, self.host.notes()
        return MAX_BUDGET, (f"budget cut to {MAX_BUDGET}", *self.host.notes())
