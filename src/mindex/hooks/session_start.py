"""At the start of a session: open decisions, preferences and the last session, as far as they concern the project."""

from collections.abc import Iterable

from mindex.hooks.hook_input import HookInput, project_of
from mindex.memories.capture import PROJECT_TAG
from mindex.memory import Memory
from mindex.model import Record
from mindex.present.hooks import RecalledLine, last_session_line, start_line

_MOST_DECISIONS, _MOST_PREFERENCES, _MOST_SESSIONS = 4, 4, 10
_COMMON_AGENT = "main"  # the agent of the default settings, in which projects meet


def what_matters(memory: Memory, given: HookInput) -> tuple[RecalledLine, ...]:
    """Return the lines for the start of a session, the most important first; none when there is nothing."""
    project = project_of(given.cwd)
    decisions = _first(_of_project(_memories(memory, "decision"), project, memory), _MOST_DECISIONS)
    tasks = _first(_of_project(_memories(memory, "task"), project, memory), 2)
    preferences = _first(_not_elsewhere(_memories(memory, "preference"), project), _MOST_PREFERENCES)
    lines = [start_line(record) for record in (*decisions, *tasks)]
    if (session := _last_session(memory, given, project)) is not None:
        lines.insert(min(2, len(lines)), session)
    return (*lines[:4], *(start_line(record) for record in preferences), *lines[4:])


def _memories(memory: Memory, type_: str) -> tuple[Record, ...]:
    return memory.list(memory.filters(kinds=("memory",), types=(type_,)), limit=50).records


def _of_project(records: Iterable[Record], project: str, memory: Memory) -> list[Record]:
    """Return the records that belong to a project: by their tag, by its name in them, or by an agent of its own."""
    own_agent = memory.settings.text("agent") != _COMMON_AGENT
    return [
        record
        for record in _not_elsewhere(records, project)
        if own_agent or (project and (_project(record) == project or project.casefold() in record.text.casefold()))
    ]


def _not_elsewhere(records: Iterable[Record], project: str) -> list[Record]:
    return [record for record in records if _project(record) in ("", project)]


def _project(record: Record) -> str:
    tags = (tag for tag in record.tags if tag.startswith(PROJECT_TAG))
    return next(tags, "").removeprefix(PROJECT_TAG)


def _first(records: list[Record], most: int) -> list[Record]:
    """Return the most important ones, of equal ones the latest."""
    return sorted(records, key=lambda one: (-(one.importance or 0), -one.updated_at))[:most]


def _last_session(memory: Memory, given: HookInput, project: str) -> RecalledLine | None:
    if not project:
        return None
    for session in memory.conversations.list(limit=_MOST_SESSIONS).sessions:
        if session.id == given.session:
            continue
        turns = memory.list(memory.filters(kinds=("turn",), session=session.id), limit=50).records
        if turns and _project(turns[0]) == project:
            return last_session_line(turns[-1], turns[0], session.turns)
    return None
