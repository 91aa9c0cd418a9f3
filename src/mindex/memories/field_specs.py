"""The fields of a contact, a project and a skill: one table, which commands, tools and importers are made of."""

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
class FieldSpec:
    """One field of a kind. `check` returns a value as it is stored, or raises ValueError."""

    name: str
    check: Check
    required: bool = False
    default: object = None
    searchable: bool = False  # part of the record's text
    contacts: bool = False  # ids of contacts
    time: bool = False
    description: str = ""

    @property
    def shape(self) -> Shape:
        """How a user writes it: as a text, as several, or as JSON."""
        return _SHAPES.get(self.check, "text")

    @property
    def help(self) -> str:
        """One line for a user who fills it in."""
        text = f"One of {', '.join(self.check.choices)}." if isinstance(self.check, _OneOf) else self.description
        return text if self.default is None else f"{text} Default {str(self.default).lower()}.".strip()


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

FIELDS: Mapping[Kind, tuple[FieldSpec, ...]] = {
    "contact": (
        FieldSpec("name", _text, required=True, searchable=True, description="What they are called."),
        FieldSpec("email", _email, searchable=True, description="Their e-mail address; no two contacts share one."),
        FieldSpec("company", _text, searchable=True, description="Where they work."),
        FieldSpec("role", _text, searchable=True, description="What they do there."),
        FieldSpec("type", _one_of("work", "personal", "ignored"), default="work"),
        FieldSpec("notes", _text, searchable=True, description="Whatever else is known."),
    ),
    "project": (
        FieldSpec(
            "name",
            _text,
            required=True,
            searchable=True,
            description="What it is called; no two projects share a name.",
        ),
        FieldSpec("status", _one_of("active", "paused", "completed"), default="active", searchable=True),
        FieldSpec("type", _one_of("work", "personal"), default="work"),
        FieldSpec("description", _text, searchable=True, description="What it is about."),
        FieldSpec("primary_contact_id", _text, contacts=True, description="Id of the contact to ask."),
        FieldSpec("participants", _texts, contacts=True, description="Id of a contact who takes part."),
        FieldSpec("company", _text, searchable=True, description="For whom it is."),
        FieldSpec("priority", _one_of("high", "medium", "low")),
    ),
    "skill": (
        FieldSpec(
            "name", _text, required=True, searchable=True, description="What it is called; no two skills share a name."
        ),
        FieldSpec("description", _text, searchable=True, description="What it is for."),
        FieldSpec("trigger_type", _one_of(*TRIGGERS), required=True),
        FieldSpec(
            "trigger_config",
            _object,
            description='When: {"schedule": "0 9 * * 1-5", "timezone": "Europe/Berlin"}, {"interval_minutes": 30},'
            ' {"at": "2027-01-31T09:00"} or {"in_minutes": 20}.',
        ),
        FieldSpec("instructions", _text, required=True, searchable=True, description="What the agent is to do."),
        FieldSpec("required_tools", _texts, searchable=True, description="A tool it needs."),
        FieldSpec("execution_plan", _objects, description="Its steps, as a list of objects."),
        FieldSpec("max_steps", _whole(1), default=10, description="How many steps it may take."),
        FieldSpec("enabled", _flag, default=True, description="Whether it is ever due."),
        FieldSpec("notify_on_completion", _flag, default=True, description="Whether to say when it is done."),
        FieldSpec("notify_interval_minutes", _whole(0), default=0, description="How long not to say it again."),
        FieldSpec(
            "last_run_at", _text, time=True, description="When it ran last; what makes it wait for its next time."
        ),
        FieldSpec("last_run_status", _text, description="How that went."),
        FieldSpec("last_run_summary", _text, searchable=True, description="What came of it."),
        FieldSpec("last_notified_at", _text, time=True, description="When that was last said."),
    ),
}

# Kind → the field in which no two live records of one agent have the same value.
UNIQUE: Mapping[Kind, str] = {"contact": "email", "project": "name", "skill": "name", "note": "path"}


def validate_fields(kind: Kind, values: Mapping[str, object], *, partial: bool = False) -> dict[str, object]:
    """Return the values as they are stored, with the defaults; with `partial`, only the values that were given.

    Raises UsageError for an unknown or invalid field, and for a required one that is missing or empty.
    """
    specs = {spec.name: spec for spec in FIELDS[kind]}
    unknown = sorted(set(values) - set(specs))
    if unknown:
        raise UsageError(f"a {kind} has no '{unknown[0]}'", f"use {', '.join(specs)}")
    valid: dict[str, object] = {}
    for name, spec in specs.items():
        value = values.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            if spec.required and not partial:
                raise UsageError(f"the {name} of a {kind} is missing", f"give {name}")
            if name in values and spec.required:
                raise UsageError(f"the {name} of a {kind} cannot be empty", f"give another {name}")
            valid[name] = None if name in values else spec.default
        else:
            try:
                valid[name] = spec.check(value)
            except ValueError as error:
                raise UsageError(f"{name} of a {kind} is wrong", str(error)) from None
    return {name: value for name, value in valid.items() if not partial or name in values}


def searchable_text(kind: Kind, values: Mapping[str, object]) -> str:
    """Return the text of a record, a line for each searchable field that has a value."""
    lines = []
    for spec in FIELDS[kind]:
        value = values.get(spec.name)
        if spec.searchable and value not in (None, "", []):
            lines.append(f"{spec.name}: {', '.join(value) if isinstance(value, list) else value}")
    return "\n".join(lines)


def record_values(kind: Kind, values: Mapping[str, object]) -> dict[str, object]:
    """Return the properties of a record that are made of its fields: the fields, text, title, type and summary."""
    fields = {name: value for name, value in values.items() if value is not None}
    details = ", ".join(str(fields[name]) for name in _SUMMARY_FIELDS[kind] if fields.get(name))
    words = f"{fields['name']}{f' ({details})' if details else ''}".split()
    return {
        "fields": fields,
        "text": searchable_text(kind, fields),
        "title": str(fields["name"]),
        "type": str(fields.get("type") or ""),
        "summary": " ".join(words[:20]),
    }


_SUMMARY_FIELDS: Mapping[Kind, tuple[str, ...]] = {
    "contact": ("role", "company"),
    "project": ("status", "company"),
    "skill": ("description",),
}
