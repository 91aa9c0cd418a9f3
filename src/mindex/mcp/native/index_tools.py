"""The native tools `index` and `status`."""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any

import anyio.from_thread
from mcp.server.mcpserver import Context
from mcp_types import CallToolResult
from pydantic import Field

from mindex.datatypes import IndexReport, Progress
from mindex.foreign_text import without_controls
from mindex.mcp.tools import READS, REFRESHES, Toolset, tool, tool_result
from mindex.present.reports import index_text, status_text
from mindex.present.to_json import to_json

_PATH = "A collection's name or a folder below the server's root; default: all collections"
_MAX_SKIPPED = 20
_PROGRESS_SECONDS = 0.1


class IndexTools(Toolset):
    @tool("Index a folder of markdown, or update collections.", REFRESHES)
    def index(
        self,
        ctx: Context[Any, Any],
        path: Annotated[str, Field(description=_PATH)] = "",
        force: Annotated[bool, Field(description="Also read unchanged files")] = False,
    ) -> CallToolResult:
        folders = [self.host.folder(path)] if path else []
        exclude = self.host.options.exclude
        report = self._memory.index(*folders, exclude=exclude, force=force, report=_progress_reporter(ctx))
        anyio.from_thread.run(ctx.notify_resources_changed)
        shown = _with_few_skipped(report)
        return tool_result(index_text(shown), to_json(shown), self.host.notes())

    @tool("Show what is indexed, how much, and with which model.", READS)
    def status(self) -> CallToolResult:
        notes = list(self.host.notes())  # before the counts: an index that is done by then has all of them
        status, embedder = self._memory.status(), self._memory.models.embedder
        if embedder is not None and not embedder.loaded:
            notes.append("the embedding model is not loaded yet; the first search loads it")
        return tool_result(status_text(status), to_json(status), notes)


def _with_few_skipped(report: IndexReport) -> IndexReport:
    """Return the report with the first skipped files, and a note that counts the others."""
    more = len(report.skipped) - _MAX_SKIPPED
    if more <= 0:
        return report
    note = f"{more} more files were skipped; to see them all, ask the user to run `mindex index`"
    return replace(report, skipped=report.skipped[:_MAX_SKIPPED], notes=(*report.notes, note))


def _progress_reporter(ctx: Context[Any, Any]) -> Callable[[Progress], None]:
    """Return a function that sends progress, ever larger, a few times a second, and that stops a cancelled call."""
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
        anyio.from_thread.run(ctx.report_progress, before + progress.done, last, without_controls(message))

    return report
