"""What each kind of record may hold beside its words: one table of fields, checked in one place."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from mindex.errors import UsageError
from mindex.model import Kind

ThingKind = Literal["contact", "project", "skill"]
THING_KINDS: tuple[ThingKind, ...] = ("contact", "project", "skill")

Check = Callable[[object], object]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind. `told` fields are words people search for; the others are facts about the record."""

    name: str
    check: Check
    required: bool = False
    default: object = None
    told: bool = False


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is expected")
    return value.strip()


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [part.strip() for part in value.split(",") if part.strip()]
    if isinstance(value, list | tuple) and all(isinstance(part, str) for part in value):
        return [str(part) for part in value]
    raise ValueError("a list of texts is expected")


def _flag(value: object) -> bool:
    words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
    if str(value).lower() not in words:
        raise ValueError("true or false is expected")
    return words[str(value).lower()]


def _whole(least: int) -> Check:
    def check(value: object) -> int:
        try:
            number = int(str(value))
        except ValueError:
            raise ValueError("a whole number is expected") from None
        if number < least or isinstance(value, bool):
            raise ValueError(f"a whole number of at least {least} is expected")
        return number

    return check


def _one_of(*choices: str) -> Check:
    def check(value: object) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)} is expected")
        return str(value)

    return check


def _object(value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        raise ValueError("an object is expected")
    return {str(key): part for key, part in value.items()}


def _objects(value: object) -> list[object]:
    if not isinstance(value, list):
        raise ValueError("a list of objects is expected")
    return [_object(part) for part in value]


def _email(value: object) -> str:
    text = _text(value)
    name, at, host = text.rpartition("@")
    if not (name and at and host) or " " in text:
        raise ValueError("an e-mail address is expected")
    return text.lower()


TRIGGERS = ("cron", "interval", "at", "event", "manual")

FIELDS: Mapping[Kind, tuple[Field, ...]] = {
    "contact": (
        Field("name", _text, required=True, told=True),
        Field("email", _email, told=True),
        Field("company", _text, told=True),
        Field("role", _text, told=True),
        Field("type", _one_of("work", "personal", "ignored"), default="work"),
        Field("notes", _text, told=True),
    ),
    "project": (
        Field("name", _text, required=True, told=True),
        Field("status", _one_of("active", "paused", "completed"), default="active", told=True),
        Field("type", _one_of("work", "personal"), default="work"),
        Field("description", _text, told=True),
        Field("primary_contact_id", _text),
        Field("participants", _texts),
        Field("company", _text, told=True),
        Field("priority", _one_of("high", "medium", "low")),
    ),
    "skill": (
        Field("name", _text, required=True, told=True),
        Field("description", _text, told=True),
        Field("trigger_type", _one_of(*TRIGGERS), required=True),
        Field("trigger_config", _object),
        Field("instructions", _text, required=True, told=True),
        Field("required_tools", _texts, told=True),
        Field("execution_plan", _objects),
        Field("max_steps", _whole(1), default=10),
        Field("enabled", _flag, default=True),
        Field("notify_on_completion", _flag, default=True),
        Field("notify_interval_minutes", _whole(0), default=0),
        Field("last_run_at", _text),
        Field("last_run_status", _text),
        Field("last_run_summary", _text, told=True),
        Field("last_notified_at", _text),
    ),
}

# No two live records of one agent share these.
UNIQUE: Mapping[Kind, str] = {"contact": "email", "project": "name", "skill": "name"}


def checked(kind: Kind, values: Mapping[str, object], *, partial: bool = False) -> dict[str, object]:
    """The values as the kind's table wants them; all required ones and defaults, unless it is only a change."""
    known = {field.name: field for field in FIELDS[kind]}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise UsageError(f"a {kind} has no '{unknown[0]}'", f"use {', '.join(known)}")
    found: dict[str, object] = {}
    for field in known.values():
        value = values.get(field.name)
        if value is None or value == "":
            if field.required and not partial:
                raise UsageError(f"a {kind} needs a {field.name}", f"give {field.name}")
            if field.name in values and field.required:
                raise UsageError(f"the {field.name} of a {kind} cannot be empty", f"give another {field.name}")
            found[field.name] = None if field.name in values else field.default
        else:
            try:
                found[field.name] = field.check(value)
            except ValueError as error:
                raise UsageError(f"{field.name} of a {kind} is wrong", str(error)) from None
    return {name: value for name, value in found.items() if not partial or name in values}


def words_of(kind: Kind, values: Mapping[str, object]) -> str:
    """The record as text, a line for each field that people search for."""
    lines = []
    for field in FIELDS[kind]:
        value = values.get(field.name)
        if field.told and value not in (None, "", []):
            lines.append(f"{field.name}: {', '.join(value) if isinstance(value, list) else value}")
    return "\n".join(lines)
