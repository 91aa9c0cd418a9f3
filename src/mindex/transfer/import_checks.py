"""What every row crosses on its way in, whoever read it: it must make sense, changes hands, and leaves its secrets."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from math import isfinite
from typing import Any, cast

from mindex.errors import SecretError
from mindex.ids import short_hash
from mindex.memories import validation
from mindex.memories.field_specs import FIELDS
from mindex.memories.field_specs import checked as checked_fields
from mindex.memories.json_values import redact_value as within
from mindex.memories.skill_schedule import validate_trigger
from mindex.model import KINDS, Record
from mindex.redaction.redactor import Mode, redact
from mindex.store.export_rows import ExportRow
from mindex.transfer.importer import profile_id
from mindex.transfer.jsonl_rows import Malformed

_ID = re.compile(r"[a-z0-9]{4,64}")
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999  # the years 1 to 9999
_DEEPEST = 64
_MOST_BYTES = 8 * 1024 * 1024
_WORDS = ("text", "title", "summary", "context", "source")
_LISTS = ("tags", "entities")

Revise = Callable[[Record], Record]


# ── sense ─────────────────────────────────────────────────────────────────────────────────────────────────────


def check(row: ExportRow) -> None:
    """Raise Malformed or UsageError for what no store of ours would hold."""
    record = row.record
    if not _ID.fullmatch(record.id):
        raise Malformed(f"'{record.id:.40}' is no id of ours: letters and digits, at least four")
    if record.kind not in KINDS or record.kind == "chunk":
        raise Malformed(f"'{record.kind:.40}' is no kind of what is told")
    if record.agent == "*" or (record.agent and not record.agent.strip()):
        raise Malformed("it belongs to nobody in particular")
    _check_kind(record)
    for state in _states(row):
        _check_state(state)
    for moment in (*(change.at for change in row.history), *(link.created_at for link in row.links)):
        _check_time(moment)
    if not all(isfinite(link.weight) for link in row.links):
        raise Malformed("a link has a weight that is no number")
    _check_texts(row)


def _check_kind(record: Record) -> None:
    if record.kind == "memory":
        validation.validate_text(record.text)
    elif record.kind == "profile" and not isinstance(record.fields.get("data"), Mapping):
        raise Malformed("a profile without data is none")
    elif record.kind in FIELDS and record.retired_at is None:
        checked_fields(record.kind, record.fields)
        if record.kind == "skill":
            validate_trigger(str(record.fields.get("trigger_type")), record.fields.get("trigger_config"))


def _check_state(state: Record) -> None:
    if state.kind == "memory":
        validation.validate_type(state.type)
    if state.importance is not None:
        validation.validate_importance(state.importance)
    if state.confidence is not None:
        validation.validate_confidence(state.confidence)
    for moment in (state.created_at, state.updated_at, state.expires_at or 0, state.retired_at or 0):
        _check_time(moment)


def _check_time(moment: object) -> None:
    if not isinstance(moment, int) or not _FIRST <= moment <= _LAST:
        raise Malformed("it has a time that no calendar holds")


def _check_texts(row: ExportRow) -> None:
    size = 0
    try:
        for text in chain(_texts(row), _names(row)):
            size += len(text.encode())
    except UnicodeEncodeError:
        raise Malformed("it holds half a character (a lone surrogate)") from None
    if size > _MOST_BYTES * (1 + len(row.history)):
        raise Malformed(f"it is longer than {_MOST_BYTES // 2**20} MiB")


# ── another agent ─────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Owner:
    """Whose a row becomes. An id that another agent's record has in this store becomes one of its own.

    `taken` are the ids of others; it is the same for all rows that name each other, so that they still do.
    """

    agent: str
    taken: frozenset[str]

    def id_of(self, id_: str) -> str:
        return short_hash(id_, self.agent) if id_ in self.taken else id_

    def takes(self, row: ExportRow) -> ExportRow:
        record = row.record
        id_ = profile_id(self.agent) if record.kind == "profile" else self.id_of(record.id)
        if (id_, self.agent) == (record.id, record.agent) and not self.taken:
            return row
        named = f"Profile of {record.agent}"

        def owned(state: Record) -> Record:
            changes: dict[str, Any] = {"id": id_, "agent": self.agent, "superseded_by": self.id_of(state.superseded_by)}
            if state.kind == "profile" and state.title == named:
                changes |= {"title": f"Profile of {self.agent}", "summary": f"Profile of {self.agent}"}
            return replace(state, **changes)

        links = tuple(replace(link, target=self.id_of(link.target)) for link in row.links)
        return replace(_revised(row, owned), links=links)


def references(row: ExportRow) -> Iterator[str]:
    """Every id that a row names: its own, and those of others."""
    yield row.record.id
    for state in _states(row):
        if state.superseded_by:
            yield state.superseded_by
    for link in row.links:
        yield link.target


# ── secrets ───────────────────────────────────────────────────────────────────────────────────────────────────


def suspects(rows: Sequence[ExportRow], mode: Mode) -> list[ExportRow]:
    """Those of the rows that may hold a secret.

    Most hold none, and one look at many texts costs little more than a look at one. A line break is to every pattern
    what the end of a text is, so none is missed; what is found only because two stand together is looked at again.
    """
    if not rows or _is_clean("\n".join(chain.from_iterable(map(_texts, rows))), mode):
        return []
    if len(rows) == 1:
        return list(rows)
    half = len(rows) // 2
    return [*suspects(rows[:half], mode), *suspects(rows[half:], mode)]


def _is_clean(text: str, mode: Mode) -> bool:
    try:
        return redact(text, mode).text == text
    except SecretError:
        return False


def cleaned(row: ExportRow, mode: Mode) -> tuple[ExportRow, tuple[str, ...]]:
    """The row without its secrets, and which kinds of them it had; in strict mode a secret raises SecretError."""
    found: dict[str, None] = {}

    def redacted(text: str) -> str:
        crossed = redact(text, mode)
        found.update(dict.fromkeys(crossed.redacted))
        return crossed.text

    def told(state: Record) -> Record:
        changes: dict[str, Any] = {name: redacted(getattr(state, name)) for name in _WORDS}
        changes |= {name: tuple(filter(None, map(redacted, getattr(state, name)))) for name in _LISTS}
        return replace(state, **changes, fields=cast("dict[str, object]", within(dict(state.fields), redacted)))

    crossed = _revised(row, told)
    history = tuple(replace(one, by=redacted(one.by), reason=redacted(one.reason)) for one in crossed.history)
    same_words = (crossed.record.title, crossed.record.text) == (row.record.title, row.record.text)
    crossed = replace(crossed, history=history, vectors=row.vectors if same_words else ())
    if crossed.record.kind == "memory":
        validation.validate_text(crossed.record.text)
    return crossed, tuple(found)


# ── all states of a row ───────────────────────────────────────────────────────────────────────────────────────


def _states(row: ExportRow) -> list[Record]:
    """The record as it is and was, each state once."""
    states = [row.record]
    for change in reversed(row.history):
        states += (state for state in (change.after, change.before) if state is not None and state is not states[-1])
    return states


def _revised(row: ExportRow, revise: Revise) -> ExportRow:
    """The row with every state revised, each once."""
    done: dict[int, Record] = {}

    def revised(state: Record) -> Record:
        if id(state) not in done:
            done[id(state)] = revise(state)
        return done[id(state)]

    record = revised(row.record)
    history = tuple(
        replace(
            change,
            record=record.id,
            before=None if change.before is None else revised(change.before),
            after=revised(change.after),
        )
        for change in row.history
    )
    return replace(row, record=record, history=history)


def _texts(row: ExportRow) -> Iterator[str]:
    """Every text of a row; what does not change from one state to the next is not looked at again."""
    seen: set[int] = set()
    for state in _states(row):
        for name in _WORDS:
            text = getattr(state, name)
            if text and id(text) not in seen:
                seen.add(id(text))
                yield text
        for name in _LISTS:
            yield from getattr(state, name)
        if state.fields and id(state.fields) not in seen:
            seen.add(id(state.fields))
            yield from _texts_within(state.fields)
    for change in row.history:
        yield from filter(None, (change.by, change.reason))


def _texts_within(value: object, name: str = "", depth: int = 0) -> Iterator[str]:
    """Texts with their names in front, as they cross the boundary."""
    if depth > _DEEPEST:
        raise Malformed("its fields are nested too deeply")
    if isinstance(value, str):
        yield f"{name}: {value}" if name else value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts_within(inner, str(key), depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts_within(inner, name, depth + 1)
    elif isinstance(value, float) and not isfinite(value):
        raise Malformed("its fields hold a number that is none")


def _names(row: ExportRow) -> Iterator[str]:
    """The texts that nobody searches for."""
    for state in _states(row):
        yield from (state.agent, state.type, state.superseded_by)
    yield from (change.action for change in row.history)
    for link in row.links:
        yield from (link.target, link.kind)
    yield from (one.model for one in row.vectors)
