"""The text of `mindex install` and `mindex setup`."""

from shlex import quote

from mindex.datatypes.clients import AgentList, ClientStatus, InstallReport, InstallResult, SetupReport
from mindex.present.answer_view import AnswerView, view_answer
from mindex.present.reports import index_text
from mindex.present.text import aligned, note_lines, report_text
from mindex.present.to_json import Json, to_json
from mindex.present.transfer import import_text

SETUP_HITS = 3  # of the question that `mindex setup` asks

_DONE = {
    "installed": "added to {}",
    "updated": "changed in {}",
    "unchanged": "is in {} already",
    "removed": "removed from {}",
    "restored": "undone; {} is as it was before",
    "absent": "is not in {}, nothing to undo",
    "shown": "belongs into {}",
}
_PLANNED = {
    "installed": "would be added to {}",
    "updated": "would be changed in {}",
    "removed": "would be removed from {}",
}
_PLANNED["restored"] = "would be undone; {} would be as it was before"


def install_text(report: InstallReport) -> str:
    """A line per agent; below it what to do next, the difference, or the snippet to paste."""
    if all(result.outcome == "shown" for result in report.results) and len(report.results) == 1:
        return report.results[0].snippet
    blocks = ["\n".join(_result_lines(result, report.dry_run)) for result in report.results]
    if report.dry_run:
        blocks.append("dry run, nothing was written")
    return "\n".join([*blocks, *note_lines(report.notes)])


def _result_lines(result: InstallResult, dry_run: bool) -> list[str]:
    if result.outcome == "refused":
        advice = ["paste this into it:" if result.path else "paste this:", result.snippet] if result.snippet else []
        where = f" ({result.path})" if result.path and result.path not in result.reason else ""
        return [f"{result.agent}: nothing was changed: {result.reason}{where}", *advice]
    sentence = {**_DONE, **(_PLANNED if dry_run else {})}[result.outcome].format(result.path or "a project's files")
    lines = [f"{result.agent}: {sentence}{f', {result.reason}' if result.reason else ''}"]
    if result.backup:
        lines.append(f"  backup: {result.backup}")
    if result.next_step:
        lines.append(f"  next: {result.next_step}")
    return [*lines, *filter(None, [result.diff, result.snippet])]


def agents_text(listed: AgentList) -> str:
    """A table: whether each agent is here, whether mindex is in its file and starts, and which file that is."""
    rows = [["client", "found", "mindex", "file"]]
    for one in listed.agents:
        scope = " (project)" if one.scope == "project" else ""
        rows.append([one.agent + scope, "yes" if one.found else "no", _state(one), one.path])
    reasons = [f"{one.agent}: {one.reason}" for one in listed.agents if one.reason]
    return "\n".join([*aligned(rows), *reasons])


def _state(one: ClientStatus) -> str:
    if one.state != "installed":
        return "file is broken" if one.state == "broken" else "no"
    return {True: "yes, starts", False: "yes, does not start", None: "yes"}[one.starts]


def setup_text(report: SetupReport) -> str:
    """What was there, what was done, the answer to the question, and how to undo all of it, in paragraphs."""
    answer = ""
    if report.answer is not None:
        shown = _answer_view(report)
        answer = f"$ mindex search {quote(shown.query)} --compact --limit {SETUP_HITS}\n{shown.text()}"
    parts = (
        "\n".join(_ready_lines(report)),
        "" if report.install is None else install_text(report.install),
        "" if report.index is None else index_text(report.index),
        *(f"{path}: {import_text(imported)}" for path, imported in report.imports.items()),
        answer,
        report_text("to undo this:", (f"  {command}" for command in report.undo)) if report.undo else "",
        report_text(notes=report.notes),
    )
    return "\n\n".join(filter(None, parts))


def setup_json(report: SetupReport) -> dict[str, Json]:
    return {
        "install": None if report.install is None else to_json(report.install),
        "index": None if report.index is None else to_json(report.index),
        "imports": {path: to_json(imported) for path, imported in report.imports.items()},
        "answer": None if report.answer is None else _answer_view(report).json(),
        "undo": list(report.undo),
        "notes": list(report.notes),
        "already": {"agents": list(report.ready_agents), "collections": dict(report.ready_folders)},
    }


def _ready_lines(report: SetupReport) -> list[str]:
    """What was there before, in a line for agents and one for folders."""
    folders = [f"{name} ({root})" for name, root in report.ready_folders.items()]
    return [
        *([f"mindex is in {', '.join(report.ready_agents)} already"] if report.ready_agents else []),
        *([f"indexed already: {', '.join(folders)}"] if folders else []),
    ]


def _answer_view(report: SetupReport) -> AnswerView:
    assert report.answer is not None
    return view_answer(report.answer, "compact", several_collections=report.several_collections)
