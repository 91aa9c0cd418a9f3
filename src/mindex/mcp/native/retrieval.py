"""The native tools `search` and `get`."""

from typing import Annotated, Any

from mcp.server.apps import client_supports_apps
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from mindex.datatypes import Mode
from mindex.errors import NotFoundError
from mindex.mcp.search_app import SEARCH_APP
from mindex.mcp.tools import READS, Omitted, Texts, Toolset, tool, tool_result
from mindex.present.answer_view import View
from mindex.present.records_view import view_records
from mindex.present.to_json import to_json
from mindex.search_view import search_view

DEFAULT_BUDGET = 4_000
# Clients cut longer results in the middle of a sentence.
MAX_BUDGET = 25_000

_SEARCH = (
    'Search indexed documents and memories. Plain words are best; "phrase", AND, OR, NOT, prefix*, title:word are'
    " strict. Notes say when nothing is relevant."
)
_GET = (
    "Read records or files in full: ids from search (a unique start is enough), ID±2 (with the two before and after it"
    " in its file or conversation), #5 (an entry's number), path, path:10-40, glob; also links:ID, backlinks:ID,"
    " profile[.path], history:ID, timeline[:FROM..TO], due (skills), conflicts, tags, types, sessions."
)
_VIEWS = (
    "passages (default): what answers; full: whole texts; compact: a line each; digest: ids; dual: index + passages"
)

# The arguments of `search` that are options of `Memory.search`; the plural is the option's name.
_SEARCH_OPTIONS = (
    "offset mode current_file kind type collection path tags all_tags entities min_importance min_confidence"
    " after before as_of include_expired"
).split()
_PLURALS = {"kind": "kinds", "type": "types", "collection": "collections"}

Budget = Annotated[int, Field(description="Most tokens, 50-25000, default 4000")]
SearchBudget = Annotated[
    int | Omitted, Field(description="Most tokens, 50-25000; default 140 per result, other views 4000")
]


class SearchTools(Toolset):
    @tool(_SEARCH, READS, app=SEARCH_APP)
    def search(
        self,
        context: Context[Any, Any],
        query: str,
        limit: Annotated[int | Omitted, Field(description="1-50, default 5")] = None,
        offset: int = 0,
        view: Annotated[View, Field(description=_VIEWS)] = "passages",
        budget: SearchBudget = None,
        mode: Annotated[Mode, Field(description="Default hybrid")] = "hybrid",
        current_file: Annotated[str, Field(description="File being edited: lifts its domain")] = "",
        kind: Annotated[Texts, Field(description="chunk (of a file), memory, turn, profile, …")] = (),
        type: Annotated[Texts, Field(description="fact, decision, how-to, problem, reference, …")] = (),
        collection: Texts = (),
        path: Annotated[str, Field(description="Glob or folder")] = "",
        tags: Annotated[Texts, Field(description="Any of these")] = (),
        all_tags: Texts = (),
        entities: Annotated[Texts, Field(description="Names")] = (),
        min_importance: Annotated[int, Field(ge=1, le=10, description="1-10")] = 0,
        min_confidence: Annotated[float, Field(ge=0, le=1, description="0-1")] = 0,
        after: Annotated[str, Field(description="2h, yesterday, 2026-03")] = "",
        before: str = "",
        as_of: Annotated[str, Field(description="Memories as they stood then")] = "",
        include_expired: bool = False,
        explain: bool = False,
        weak: Annotated[bool | Omitted, Field(description="false: leave out weak hits")] = None,
    ) -> CallToolResult:
        arguments = locals()
        options: Any = {_PLURALS.get(name, name): arguments[name] for name in _SEARCH_OPTIONS if arguments[name]}
        if budget is None and view != "passages":
            budget = DEFAULT_BUDGET
        budget, notes = self._budget_and_notes(budget)
        options["weak"] = weak
        found, shown = search_view(
            self._memory, query, view, limit=limit, budget=budget, explain=explain, notes=notes, **options
        )
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
