"""Changes as JSON and as text: a new one, the history of an entry, the versions of the profile, the timeline."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, zip_longest

from mindex.clock import to_iso
from mindex.datatypes import Change, Conflict, Record, TimelineEvent
from mindex.datatypes.record_properties import MADE_OF_FIELDS, RecordProperty, in_order
from mindex.present.budget import check_budget
from mindex.present.fence import INDENT, continued, inline
from mindex.present.record_view import field_text, stored_fields, view_record
from mindex.present.text import note_lines
from mindex.present.to_json import Json, compact_json, to_json, worded
from mindex.present.token_count import count_tokens
from mindex.values import dataclass

_REDACTED = re.compile(r"\[redacted:([^\]]+)\]")
# Kinds whose text is made of their fields: a change of those properties is shown as a change of the fields.
_KINDS_WITH_FIELDS = ("profile", "contact", "project", "skill")
# What an action did to an entry; another action is named as it is.
_DONE = {
    "update": "changed", "supersede": "superseded", "forget": "forgotten", "restore": "restored", "undo": "undone",
    "import": "imported",
}  # fmt: skip
_NOTHING = object()  # in the place of a value that is not there


# ── differences of two JSON values ───────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Difference:
    """A path, and the value there before and after, as JSON text; None if there is no value."""

    path: str
    before: str | None
    after: str | None

    def __str__(self) -> str:
        """`user.name: "Anna" → "Bea"`, `+ user.age: 40` or `- user.nick: "An"`."""
        if self.before is None:
            return f"+ {self.path}: {self.after}"
        return (
            f"{self.path}: {self.before} → {self.after}" if self.after is not None else f"- {self.path}: {self.before}"
        )


def differences(before: object, after: object, path: str = "") -> list[Difference]:
    """Return the smallest set of paths whose values differ, in order."""
    return list(_each_difference(before, after, path))


def _each_difference(before: object, after: object, path: str) -> Iterator[Difference]:
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for name in dict.fromkeys((*before, *after)):
            inner = f"{path}.{name}" if path else str(name)
            yield from _each_difference(before.get(name, _NOTHING), after.get(name, _NOTHING), inner)
    elif isinstance(before, list) and isinstance(after, list):
        for i, (old, new) in enumerate(zip_longest(before, after, fillvalue=_NOTHING)):
            yield from _each_difference(old, new, f"{path}[{i}]")
    elif _json(before) != _json(after):
        yield Difference(path, _json(before), _json(after))


def _json(value: object) -> str | None:
    return None if value is _NOTHING else json.dumps(value, ensure_ascii=False, default=str)


# ── a change that was just made ───────────────────────────────────────────────────────────────────────────────


def change_json(change: Change, **more: Json) -> dict[str, Json]:
    notes: dict[str, Json] = {"notes": list(map(worded, change.notes))} if change.notes else {}
    told = change.conflicts or (change.action == "update" and change.after.kind == "memory")
    conflicts = to_json({"conflicts": change.conflicts}) if told else {}
    return {"id": change.record, **more, "change": change.change, **conflicts, **notes}


def undo_json(change: Change, undone: int) -> dict[str, Json]:
    """The change that an undo made, with the text that is in force now."""
    now: dict[str, Json] = {"forgotten": True} if change.after.retired_at is not None else {"text": change.after.text}
    return {**change_json(change, undid=undone), **now}


def undo_text(change: Change, undone: int) -> str:
    now = "it is forgotten" if change.after.retired_at is not None else change.after.text
    lines = [f"{change.record} is as before change {undone} (change {change.change})", f"now: {continued(now)}"]
    return "\n".join([*lines, *note_lines(change.notes)])


def change_text(change: Change, what: str) -> str:
    lines = [f"{change.record} {what} (change {change.change})", *conflict_lines(change.conflicts)]
    return "\n".join([*lines, *note_lines(change.notes)])


def conflict_lines(conflicts: Sequence[Conflict]) -> list[str]:
    return [f"conflict: {one.id} {inline(f'{one.summary} ({one.why})')}" for one in conflicts]


def fields_changed_json(change: Change) -> dict[str, Json]:
    """The change of a profile, contact, project or skill, with the kinds of secrets that were redacted in it."""
    return {**change_json(change), **redacted_json(_content(change.before), _content(change.after))}


def fields_changed_text(change: Change, what: str) -> str:
    return "\n".join([change_text(change, what), *redacted_lines(_content(change.before), _content(change.after))])


def redacted_json(before: object, after: object) -> dict[str, Json]:
    """The kinds of secrets that were redacted in the new content; nothing if there were none."""
    known, new = (_REDACTED.findall(json.dumps(value, default=str)) for value in (before, after))
    kinds: list[Json] = [kind for kind in dict.fromkeys(new) if new.count(kind) > known.count(kind)]
    return {"redacted": kinds} if kinds else {}


def redacted_lines(before: object, after: object) -> list[str]:
    return [f"{name}: {field_text(kinds)}" for name, kinds in redacted_json(before, after).items()]


# ── the history of an entry ───────────────────────────────────────────────────────────────────────────────────


def history_json(changes: Sequence[Change]) -> dict[str, Json]:
    return {"changes": [_change_json(change) for change in changes]}


def _change_json(change: Change) -> dict[str, Json]:
    before: dict[str, Json] = {"before": _state_json(change.before)} if change.before else {}
    return {"change": change.change, **to_json(change), **before, "after": _state_json(change.after)}


def _state_json(record: Record) -> dict[str, Json]:
    """An entry as it was before or after a change."""
    shown = to_json(view_record(record))
    del shown["tokens"]
    if record.fields and record.kind != "turn":  # the fields of a turn are its text
        shown["fields"] = stored_fields(record)
    if record.retired_at is not None and not record.superseded_by:
        shown["forgotten_at"] = to_iso(record.retired_at)
    return shown


def history_text(changes: Sequence[Change]) -> str:
    return "\n".join(_with_lines_below(_change_line(change), changed_lines(change)) for change in changes)


def batch_text(changes: Sequence[Change]) -> str:
    """Changes of several entries, each with its entry."""
    return "\n".join(
        _with_lines_below(f"{change.after.kind} {change.record}: {_change_line(change)}", changed_lines(change))
        for change in changes
    )


def _with_lines_below(line: str, below: Sequence[str]) -> str:
    """A line of ours, and indented ones: those of a text go further in than the first one of each."""
    return "\n".join([line, *(f"{INDENT}{continued(one, 2 * INDENT)}" for one in below)])


def _change_line(change: Change) -> str:
    reason = f": {change.reason}" if change.reason else ""
    return inline(f"{change.change} {to_iso(change.at)} {change.action} by {change.by}{reason}")


def changed_lines(change: Change) -> list[str]:
    """The values before and after a change, a line each; for the first change, the text."""
    before, after = change.before, change.after
    if before is None:
        return [after.text]
    left_out = {"fields", *MADE_OF_FIELDS} if before.kind in _KINDS_WITH_FIELDS else {"fields"}
    shown = (one for one in in_order("history") if one.name not in left_out)
    changed = (one for one in shown if getattr(before, one.name) != getattr(after, one.name))
    return [
        *map(str, _differences(change)),
        *(f"{one.name}: {_value_text(one, before)} → {_value_text(one, after)}" for one in changed),
    ]


def _content(record: Record | None) -> object:
    """The fields of an entry; for a profile, the JSON document it holds."""
    if record is None:
        return {}
    return record.fields.get("data", {}) if record.kind == "profile" else record.fields


def _value_text(one: RecordProperty, record: Record) -> str:
    value = getattr(record, one.name)
    if one.value == "time" and value is not None:
        return to_iso(value)
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "nothing"
    return "nothing" if value in (None, "") else str(value)


# ── the profile and its versions ──────────────────────────────────────────────────────────────────────────────


def profile_text(value: Json) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)


def versions_json(changes: Sequence[Change]) -> dict[str, Json]:
    return {"versions": [_version_json(change) for change in changes]}


def _version_json(change: Change) -> dict[str, Json]:
    diff: list[Json] = [_difference_json(one) for one in _differences(change)]
    return {"version": change.change, **to_json(change), "diff": diff}


def _difference_json(one: Difference) -> dict[str, Json]:
    sides = (("before", one.before), ("after", one.after))
    return {"path": one.path, **{side: json.loads(value) for side, value in sides if value is not None}}


def _differences(change: Change) -> list[Difference]:
    return differences(_content(change.before), _content(change.after))


def versions_text(changes: Sequence[Change]) -> str:
    blocks = [_with_lines_below(_change_line(change), [*map(str, _differences(change))]) for change in changes]
    return "\n".join(blocks) or "no profile yet"


# ── the timeline ──────────────────────────────────────────────────────────────────────────────────────────────


def timeline_text(events: Sequence[TimelineEvent]) -> str:
    """The events by day, each day below a line that counts them: learnt, said, changed, superseded …"""
    blocks = []
    for day, those in groupby(events, key=lambda event: to_iso(event.at)[:10]):
        on_day = list(those)
        counts = Counter(_done(event) for event in on_day)
        heading = f"{day}: {', '.join(f'{count} {done}' for done, count in counts.items())}"
        blocks.append("\n".join([heading, *(INDENT + inline(_event_line(event)) for event in on_day)]))
    return "\n\n".join(blocks) or "nothing in that time"


def within_tokens(events: Sequence[TimelineEvent], budget: int | None) -> tuple[Sequence[TimelineEvent], int]:
    """The first events whose text and JSON fit into a budget, and the number of the others. Raises UsageError."""
    check_budget(budget)
    if budget is None:
        return events, 0
    least, most = 0, len(events)
    while least < most:
        middle = (least + most + 1) // 2
        shown = events[:middle]
        fits = max(count_tokens(timeline_text(shown)), count_tokens(compact_json({"events": shown}))) <= budget
        least, most = (middle, most) if fits else (least, middle - 1)
    return events[:least], len(events) - least


def _done(event: TimelineEvent) -> str:
    if event.action == "add":
        return {"memory": "learnt", "turn": "said"}.get(event.kind, "added")
    return _DONE.get(event.action, event.action)


def _event_line(event: TimelineEvent) -> str:
    reason = f" ({event.reason})" if event.reason else ""
    return f"{to_iso(event.at)[11:]} {event.action} {event.kind} {event.id} {event.summary}{reason}"
