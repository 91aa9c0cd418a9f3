"""The native tools that read and index, and the fixed order of all seven. Few, and lean."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import anyio.from_thread
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from mindex.errors import NotFoundError
from mindex.mcp.dialects import Dialect
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.strict_tool import READS, REFRESHES, REVISES, StrictTool, Texts, answer
from mindex.mcp.write_tools import FORGET, REMEMBER, UPDATE, WritingTools
from mindex.memory import Memory
from mindex.model import IndexReport, Mode, Progress
from mindex.present.answer_view import View, view_answer
from mindex.present.index_report import index_text
from mindex.present.records_view import view_records
from mindex.present.status import status_text
from mindex.present.to_json import to_json
from mindex.search.pipeline import MAX_LIMIT

DEFAULT_BUDGET = 4_000
# Clients cut what is longer than about this, in the middle of a sentence.
MOST_BUDGET = 25_000
_MOST_SKIPPED = 20
_MOST_COLLECTIONS = 10
_PROGRESS_SECONDS = 0.1

_SEARCH = (
    'Search indexed documents and memories. Plain words are best; "phrase", AND, OR, NOT, prefix*, title:word are'
    " strict. Notes say when nothing is relevant."
)
_GET = (
    "Read records or files in full: ids from search (a unique start is enough), path, path:10-40, glob; also"
    " profile[.path], history:ID, timeline:FROM..TO, due (skills), ID±2 (an exchange with its neighbours)."
)
_INDEX = "Index a folder of markdown, or bring collections up to date."
_STATUS = "What is indexed, how much, with which model."

Budget = Annotated[int, Field(description="Most tokens to return, 50-25000, default 4000")]


class NativeTools:
    """The tools of one server; each method is one."""

    def __init__(self, service: MemoryHost) -> None:
        self._service = service

    def search(
        self,
        query: str,
        limit: Annotated[int, Field(description="1-50, default 5")] = 5,
        offset: Annotated[int, Field(description="Skip so many, default 0")] = 0,
        view: Annotated[
            View,
            Field(
                description="full: texts (default); compact: a line each; digest: id and place; dual: index, then texts"
            ),
        ] = "full",
        budget: Budget = DEFAULT_BUDGET,
        mode: Annotated[Mode, Field(description="Default hybrid")] = "hybrid",
        current_file: Annotated[str, Field(description="File being edited: lifts its domain")] = "",
        kind: Annotated[Texts, Field(description="chunk (of a file), memory, turn, profile, …")] = (),
        type: Annotated[Texts, Field(description="Of memories: fact, decision, …")] = (),
        collection: Texts = (),
        path: Annotated[str, Field(description="Glob or folder")] = "",
        tags: Annotated[Texts, Field(description="Any of these")] = (),
        all_tags: Texts = (),
        entities: Annotated[Texts, Field(description="Names, any of these")] = (),
        min_importance: Annotated[int, Field(ge=1, le=10, description="1-10")] = 0,
        min_confidence: Annotated[float, Field(ge=0, le=1, description="0-1")] = 0,
        after: Annotated[str, Field(description="7d, 2w, 2026-03, 2026-03-01")] = "",
        before: str = "",
        as_of: Annotated[str, Field(description="Memories as they stood then")] = "",
        include_expired: bool = False,
        explain: Annotated[bool, Field(description="Why each ranks where it does")] = False,
    ) -> CallToolResult:
        dual = view == "dual"
        found = self._service.memory.search(
            query,
            limit=MAX_LIMIT if dual and limit >= 1 else limit,
            offset=offset,
            mode=mode,
            current_file=current_file,
            kinds=kind,
            types=type,
            collections=collection,
            path=path,
            tags=tags,
            all_tags=all_tags,
            entities=entities,
            min_importance=min_importance or None,
            min_confidence=min_confidence or None,
            after=after or None,
            before=before or None,
            as_of=as_of or None,
            include_expired=include_expired,
        )
        budget, notes = self._amount(budget)
        found = replace(found, notes=(*found.notes, *notes))
        shown = view_answer(found, view, budget=budget, explain=explain, details=limit if dual else None)
        return answer(shown.text(), shown.json())

    def get(self, refs: Texts, budget: Budget = DEFAULT_BUDGET, as_of: str = "") -> CallToolResult:
        found = self._service.memory.get(*refs, as_of=as_of or None)
        if not found.records and found.missing:
            why = "; ".join(found.why)[:200] or "search for it first"
            raise NotFoundError(f"nothing found for {', '.join(found.missing)[:200]}", why)
        budget, notes = self._amount(budget)
        shown = view_records(found, budget=budget, notes=notes)
        return answer(shown.text(), shown.json())

    def index(
        self,
        ctx: Context[Any, Any],
        path: Annotated[
            str, Field(description="A collection's name or a folder below the server's root; default: all collections")
        ] = "",
        force: Annotated[bool, Field(description="Read unchanged files too")] = False,
    ) -> CallToolResult:
        folders = [self._service.folder(path)] if path else []
        exclude = self._service.options.exclude
        report = self._service.memory.index(*folders, exclude=exclude, force=force, report=_reporter(ctx))
        anyio.from_thread.run(ctx.notify_resources_changed)
        shown = _bounded(report)
        return answer(index_text(shown), to_json(shown), self._service.notes())

    def status(self) -> CallToolResult:
        memory = self._service.memory
        status = memory.status()
        notes = list(self._service.notes())
        if memory.models.embedder is not None and not memory.models.embedder.loaded:
            notes.append("the embedding model is not loaded yet; until then answers are by keyword")
        return answer(status_text(status), to_json(status), notes)

    def _amount(self, budget: int) -> tuple[int, tuple[str, ...]]:
        """The budget in range, and what the answer has to say beside its content."""
        cut = (f"budget cut to {MOST_BUDGET}",) if budget > MOST_BUDGET else ()
        return min(budget, MOST_BUDGET), (*cut, *self._service.notes())


def _bounded(report: IndexReport) -> IndexReport:
    """Thousands of skipped files are a number, not a list."""
    more = len(report.skipped) - _MOST_SKIPPED
    if more <= 0:
        return report
    note = f"{more} more files were skipped; `mindex index` names them"
    return replace(report, skipped=report.skipped[:_MOST_SKIPPED], notes=(*report.notes, note))


def _reporter(ctx: Context[Any, Any]) -> Callable[[Progress], None]:
    """Progress as notifications: ever larger, a few a second, and where a cancelled call stops."""
    stage, before, last, due = "", 0, 0, 0.0

    def report(progress: Progress) -> None:
        nonlocal stage, before, last, due
        anyio.from_thread.check_cancelled()
        if progress.stage != stage:
            stage, before = progress.stage, last
        last = before + progress.total
        if time.monotonic() < due and progress.done < progress.total:
            return
        due = time.monotonic() + _PROGRESS_SECONDS
        message = f"{progress.stage} {progress.done} of {progress.total} {progress.detail}".rstrip()
        anyio.from_thread.run(ctx.report_progress, before + progress.done, last, message)

    return report


def instructions(memory: Memory | None) -> str:
    """When to use this server: all that some clients show a model before it asks for more."""
    told = (
        "mindex is this machine's memory: indexed documents (handbooks, notes, architecture, decisions, conventions)"
        " and what agents were told. Search it before answering or deciding anything that the user's project, team or"
        " past work may have settled already, and before searching files by hand. `search` finds passages and memories;"
        " `get` reads them whole. `remember` facts, preferences, decisions and corrections worth keeping beyond this"
        " conversation, never secrets; `update` what has changed, `forget` what is wrong. `index` takes in a"
        " folder; `status` tells what is there."
    )
    # Names only: counting files would hold up the handshake of a large memory.
    collections = memory.collections.list() if memory is not None else ()
    if not collections:
        return told
    names = ", ".join(
        one.name + (f" ({one.context})" if one.context else "") for one in collections[:_MOST_COLLECTIONS]
    )
    more = f" and {len(collections) - _MOST_COLLECTIONS} more" if len(collections) > _MOST_COLLECTIONS else ""
    return f"{told} Indexed: {names}{more}."


def tools(service: MemoryHost) -> list[StrictTool]:
    native, writing = NativeTools(service), WritingTools(service)
    return [
        StrictTool.of(native.search, _SEARCH, READS),
        StrictTool.of(native.get, _GET, READS),
        StrictTool.of(writing.remember, REMEMBER, REFRESHES),
        StrictTool.of(writing.update, UPDATE, REVISES),
        StrictTool.of(writing.forget, FORGET, REFRESHES),
        StrictTool.of(native.index, _INDEX, REFRESHES),
        StrictTool.of(native.status, _STATUS, READS),
    ]


DIALECT = Dialect(tools=tools, instructions=instructions)
