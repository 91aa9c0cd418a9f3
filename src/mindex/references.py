"""What `get` also takes: `profile.user.name`, `history:ID`, `timeline:FROM..TO`, `due`, and `ID±2` for an exchange.

Each is answered by records, so that it looks the same to whoever asked, whatever it was.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace

from mindex.clock import parse_time, to_iso
from mindex.errors import NotFoundError, UsageError
from mindex.knowing import Knowing
from mindex.memories import json_paths
from mindex.model import Record
from mindex.present.entries import changed_lines, timeline_text
from mindex.present.text import amount

_AROUND = re.compile(r"(?P<id>[a-z0-9]{3,64})(?:±|\+-|~)(?P<count>\d{1,2})", re.IGNORECASE)
_PROFILE = re.compile(r"profile(?:(?:\.(?=[^.])|(?=\[))(?P<path>.+))?")
_MOST_EVENTS = 200


def special(memory: Knowing, reference: str, as_of: str | None = None) -> Sequence[Record] | None:
    """The records it stands for, which may be none; None when it is an ordinary reference.

    A file of that name is the file. Raises NotFoundError for what is not there.
    """
    if reference == "due":
        return [replace(one.skill, fields={**one.skill.fields, "since": to_iso(one.since)}) for one in memory.due()]
    if reference.startswith("history:"):
        return _history(memory, reference.removeprefix("history:"))
    if reference.startswith("timeline:"):
        return [_timeline(memory, reference)]
    if around := _AROUND.fullmatch(reference):
        return _around(memory, around["id"], int(around["count"]))
    if (asked := _PROFILE.fullmatch(reference)) and not memory.store.files.find_documents(reference):
        return _profile(memory, asked["path"] or "", as_of)
    return None


def _around(memory: Knowing, id_: str, count: int) -> tuple[Record, ...]:
    found = memory.around(id_, count, count)
    if not found:
        raise NotFoundError(f"'{id_}' is not part of a conversation", "only exchanges have neighbours")
    return found


def _history(memory: Knowing, id_: str) -> list[Record]:
    """A record for each change, under the number that `undo` takes; newest first, so that a budget cuts the oldest."""
    return [
        Record(
            id=str(change.change),
            kind="history",
            title=f"change {change.change} of {change.record}",
            text="\n".join(changed_lines(change)),
            created_at=change.at,
            fields={"action": change.action, "by": change.by, **({"reason": change.reason} if change.reason else {})},
        )
        for change in reversed(memory.history(id_))
    ]


def _timeline(memory: Knowing, reference: str) -> Record:
    after, dots, before = reference.removeprefix("timeline:").partition("..")
    if not after or not dots:
        raise UsageError(f"'{reference}' names no time", "write it like timeline:2026-03-01..2026-04, or timeline:7d..")
    events = memory.timeline(after, before or None, limit=_MOST_EVENTS)
    count = f"the first {_MOST_EVENTS} events" if len(events) == _MOST_EVENTS else amount(len(events), "event")
    return Record(id=reference, kind="timeline", title=count, text=timeline_text(events))


def _profile(memory: Knowing, path: str, as_of: str | None) -> list[Record]:
    """The profile as JSON, or what stands at a path of it."""
    record = memory.profile_record()
    if as_of is not None:
        moment = parse_time(as_of)
        states = [change.after for change in memory.profile_history() if change.at <= moment]
        record = states[-1] if states and states[-1].retired_at is None else None
    if record is None:
        raise NotFoundError("there is no profile yet", "`mindex profile set` begins one")
    value = record.fields.get("data", {})
    value = json_paths.read(value, path) if path else value
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)
    shown = replace(record, summary="", text=text)
    return [replace(shown, id=f"profile.{path}", title=path) if path else shown]
