"""At the start of a session: open decisions, preferences and the last session, as far as they concern the project."""

from collections.abc import Iterable, Sequence

from mindex.datatypes import Filters, Kind, Record
from mindex.datatypes.records import PROJECT_TAG
from mindex.hooks.hook_input import HookInput, project_of
from mindex.memory import Memory
from mindex.present.hooks import RecalledLine, last_session_line, start_line

_MAX_DECISIONS, _MAX_PREFERENCES = 4, 4
_PAGE = 50
_COMMON_AGENT = "main"  # the agent of the default settings, in which projects meet


def what_matters(memory: Memory, given: HookInput) -> tuple[RecalledLine, ...]:
    """Return the lines for the start of a session, the most important first; none when there is nothing."""
    project = project_of(given.cwd)
    decisions = _first(_of_project(_memories(memory, "decision", project), project, memory), _MAX_DECISIONS)
    tasks = _first(_of_project(_memories(memory, "task", project), project, memory), 2)
    preferences = _first(_not_elsewhere(_memories(memory, "preference", project), project), _MAX_PREFERENCES)
    lines = [start_line(record) for record in (*decisions, *tasks)]
    if (session := _last_session(memory, given, project)) is not None:
        lines.insert(min(2, len(lines)), session)
    return (*lines[:4], *(start_line(record) for record in preferences), *lines[4:])


def _memories(memory: Memory, type_: str, project: str) -> tuple[Record, ...]:
    """Return the latest memories of a type, those with the project's tag first: others may have many later ones."""
    latest = memory.list(memory.filters(kinds=("memory",), types=(type_,)), limit=_PAGE)
    if not project or latest.total <= _PAGE:
        return latest.records
    of_project = memory.list(_tagged(memory, "memory", project, types=(type_,)), limit=_PAGE).records
    return tuple({one.id: one for one in (*of_project, *latest.records)}.values())


def _tagged(memory: Memory, kind: Kind, project: str, types: Sequence[str] = ()) -> Filters:
    return memory.filters(kinds=(kind,), types=types, tags=(f"{PROJECT_TAG}{project}",))


def _of_project(records: Iterable[Record], project: str, memory: Memory) -> list[Record]:
    """Return the records that belong to a project: by their tag, by its name in them, or by its own agent."""
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
    """Return what the latest other session of the project was about, however many of other projects followed it."""
    if not project:
        return None
    of_project = _tagged(memory, "turn", project)
    own = memory.list(_turns_of(memory, given.session), limit=1).total
    # This session may have turns already: it goes on after its conversation was compacted.
    pages = (memory.list(of_project, limit=_PAGE, offset=offset).records for offset in range(0, own + 1, _PAGE))
    last = next((turn for page in pages for turn in page if _session(turn) not in ("", given.session)), None)
    if last is None:
        return None
    session = _turns_of(memory, _session(last))
    turns = memory.list(session, limit=1).total
    (first,) = memory.list(session, limit=1, offset=turns - 1).records or (last,)
    return last_session_line(first, last, turns)


def _turns_of(memory: Memory, session: str) -> Filters:
    return memory.filters(kinds=("turn",), session=session)


def _session(turn: Record) -> str:
    return str(turn.fields.get("session_id") or "")
