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
Shape = Literal["text", "texts", "json"]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a kind. `told` fields are words people search for; the others are facts about the record."""

    name: str
    check: Check
    required: bool = False
    default: object = None
    told: bool = False
    about: str = ""

    @property
    def shape(self) -> Shape:
        """How it is written down: as a text, as several, or as JSON."""
        return _SHAPES.get(self.check, "text")

    @property
    def help(self) -> str:
        """One line for whoever fills it in."""
        said = f"One of {', '.join(self.check.choices)}." if isinstance(self.check, _OneOf) else self.about
        return said if self.default is None else f"{said} Default {str(self.default).lower()}.".strip()


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


@dataclass(frozen=True, slots=True)
class _OneOf:
    choices: tuple[str, ...]

    def __call__(self, value: object) -> str:
        if value not in self.choices:
            raise ValueError(f"one of {', '.join(self.choices)} is expected")
        return str(value)


def _one_of(*choices: str) -> Check:
    return _OneOf(choices)


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


_SHAPES: Mapping[Check, Shape] = {_texts: "texts", _object: "json", _objects: "json"}

TRIGGERS = ("cron", "interval", "at", "event", "manual")

FIELDS: Mapping[Kind, tuple[Field, ...]] = {
    "contact": (
        Field("name", _text, required=True, told=True, about="What they are called."),
        Field("email", _email, told=True, about="Their e-mail address; no two contacts share one."),
        Field("company", _text, told=True, about="Where they work."),
        Field("role", _text, told=True, about="What they do there."),
        Field("type", _one_of("work", "personal", "ignored"), default="work"),
        Field("notes", _text, told=True, about="Whatever else is known."),
    ),
    "project": (
        Field("name", _text, required=True, told=True, about="What it is called; no two projects share a name."),
        Field("status", _one_of("active", "paused", "completed"), default="active", told=True),
        Field("type", _one_of("work", "personal"), default="work"),
        Field("description", _text, told=True, about="What it is about."),
        Field("primary_contact_id", _text, about="Id of the contact to ask."),
        Field("participants", _texts, about="Id of a contact who takes part."),
        Field("company", _text, told=True, about="For whom it is."),
        Field("priority", _one_of("high", "medium", "low")),
    ),
    "skill": (
        Field("name", _text, required=True, told=True, about="What it is called; no two skills share a name."),
        Field("description", _text, told=True, about="What it is for."),
        Field("trigger_type", _one_of(*TRIGGERS), required=True),
        Field(
            "trigger_config",
            _object,
            about='When: {"schedule": "0 9 * * 1-5", "timezone": "Europe/Berlin"}, {"interval_minutes": 30},'
            ' {"at": "2027-01-31T09:00"} or {"in_minutes": 20}.',
        ),
        Field("instructions", _text, required=True, told=True, about="What the agent is to do."),
        Field("required_tools", _texts, told=True, about="A tool it needs."),
        Field("execution_plan", _objects, about="Its steps, as a list of objects."),
        Field("max_steps", _whole(1), default=10, about="How many steps it may take."),
        Field("enabled", _flag, default=True, about="Whether it is ever due."),
        Field("notify_on_completion", _flag, default=True, about="Whether to say when it is done."),
        Field("notify_interval_minutes", _whole(0), default=0, about="How long not to say it again."),
        Field("last_run_at", _text, about="When it ran last; what makes it wait for its next time."),
        Field("last_run_status", _text, about="How that went."),
        Field("last_run_summary", _text, told=True, about="What came of it."),
        Field("last_notified_at", _text, about="When that was last said."),
    ),
}

# No two live records of one agent share these.
UNIQUE: Mapping[Kind, str] = {"contact": "email", "project": "name", "skill": "name", "note": "path"}


def checked(kind: Kind, values: Mapping[str, object], *, partial: bool = False) -> dict[str, object]:
    """The values as the kind's table wants them; all required ones and defaults, unless it is only a change."""
    known = {field.name: field for field in FIELDS[kind]}
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise UsageError(f"a {kind} has no '{unknown[0]}'", f"use {', '.join(known)}")
    found: dict[str, object] = {}
    for field in known.values():
        value = values.get(field.name)
        if value is None or (isinstance(value, str) and not value.strip()):
            if field.required and not partial:
                raise UsageError(f"the {field.name} of a {kind} is missing", f"give {field.name}")
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


def described(kind: Kind, values: Mapping[str, object]) -> dict[str, object]:
    """All of a record that is made of its fields: they are said once, and words, title and summary follow."""
    fields = {name: value for name, value in values.items() if value is not None}
    about = ", ".join(str(fields[name]) for name in _SUMMED_UP[kind] if fields.get(name))
    words = f"{fields['name']}{f' ({about})' if about else ''}".split()
    return {
        "fields": fields,
        "text": words_of(kind, fields),
        "title": str(fields["name"]),
        "type": str(fields.get("type") or ""),
        "summary": " ".join(words[:20]),
    }


_SUMMED_UP: Mapping[Kind, tuple[str, ...]] = {
    "contact": ("role", "company"),
    "project": ("status", "company"),
    "skill": ("description",),
}
