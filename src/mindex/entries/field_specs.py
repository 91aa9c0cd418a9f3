"""The fields of a contact, a project and a skill: one table, which commands, tools and importers are made of."""

import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

from mindex.clock import from_iso, to_iso
from mindex.datatypes import Kind
from mindex.entries.project_sources import parse_sources
from mindex.errors import UsageError
from mindex.times.typed import parse_time

FieldEntryKind = Literal["contact", "project", "skill"]
FIELD_ENTRY_KINDS: tuple[FieldEntryKind, ...] = ("contact", "project", "skill")

Parse = Callable[[object], object]
Shape = Literal["text", "texts", "json"]

_MONTH_AND_DAY = re.compile(r"\d\d-\d\d")


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """One field of a kind."""

    name: str
    parse: Parse
    description: str = ""
    choices: tuple[str, ...] = ()
    required: bool = False
    default: object = None
    searchable: bool = False  # part of the record's text
    contacts: bool = False  # ids of contacts

    def check(self, value: object, *, imported: bool = False) -> object:
        """The value as it is stored. Raises ValueError for one that is not valid.

        A time that is `imported` is one of the calendar: `2h` would be counted from the import.
        """
        if self.choices and value not in self.choices:
            raise ValueError(f"one of {', '.join(self.choices)} is expected")
        return _stored_moment(value) if imported and self.time else self.parse(value)

    @property
    def time(self) -> bool:
        """Whether it is a moment."""
        return self.parse is _moment

    @property
    def shape(self) -> Shape:
        """How a user writes it: as a text, as several, or as JSON."""
        return _SHAPES.get(self.parse, "text")

    @property
    def help(self) -> str:
        """One line for a user who fills it in."""
        text = f"One of {', '.join(self.choices)}." if self.choices else self.description
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


def _whole(value: object, least: int = 0) -> int:
    try:
        number = int(str(value))
    except ValueError:
        raise ValueError("a whole number is expected") from None
    if number < least:
        raise ValueError(f"a whole number of at least {least} is expected")
    return number


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


def _birthday(value: object) -> str:
    """A date, or month and day where the year is not known."""
    text = _text(value)
    without_year = _MONTH_AND_DAY.fullmatch(text) is not None
    try:
        day = date.fromisoformat(f"2000-{text}" if without_year else text)
    except ValueError:
        raise ValueError("a date such as 1990-05-17 is expected, or 05-17 without the year") from None
    return text if without_year else day.isoformat()


def _moment(value: object) -> str:
    """A time as it is stored: ISO 8601 in UTC. One without a zone is UTC, as in the schedule of a skill."""
    try:
        return _stored_moment(value)
    except ValueError:
        try:
            return _exact_iso(parse_time(_text(value)))
        except UsageError as error:
            raise ValueError(str(error)) from None


def _stored_moment(value: object) -> str:
    text = _text(value)
    try:
        return _exact_iso(from_iso(text))
    except (ValueError, OverflowError):
        raise ValueError(f"'{text:.40}' is not a time") from None


def _exact_iso(at: int) -> str:
    return to_iso(at, "milliseconds" if at % 1000 else "seconds")


_SHAPES: Mapping[Parse, Shape] = {_texts: "texts", _object: "json", _objects: "json", parse_sources: "json"}

FIELDS: Mapping[Kind, tuple[FieldSpec, ...]] = {
    "contact": (
        FieldSpec("name", _text, "Name.", required=True, searchable=True),
        FieldSpec("email", _email, "E-mail address; unique.", searchable=True),
        FieldSpec("company", _text, "Employer.", searchable=True),
        FieldSpec("role", _text, "Job title.", searchable=True),
        FieldSpec("type", _text, choices=("work", "personal", "ignored"), default="work"),
        FieldSpec("notes", _text, "Free text.", searchable=True),
        FieldSpec("phone", _text, "Telephone number.", searchable=True),
        FieldSpec("address", _text, "Postal address.", searchable=True),
        FieldSpec("birthday", _birthday, "Date of birth, 1990-05-17, or 05-17 without the year.", searchable=True),
        FieldSpec("links", _texts, "URL.", searchable=True),
    ),
    "project": (
        FieldSpec("name", _text, "Name; unique.", required=True, searchable=True),
        FieldSpec("status", _text, choices=("active", "paused", "completed"), default="active", searchable=True),
        FieldSpec("type", _text, choices=("work", "personal"), default="work"),
        FieldSpec("description", _text, "Description.", searchable=True),
        FieldSpec("primary_contact_id", _text, "Id of the main contact.", contacts=True),
        FieldSpec("participants", _texts, "Id of a participating contact.", contacts=True),
        FieldSpec("company", _text, "Client company.", searchable=True),
        FieldSpec("priority", _text, choices=("high", "medium", "low")),
        FieldSpec(
            "sources",
            parse_sources,
            "Folders, repositories and URLs; `project link` adds one.",
            searchable=True,
        ),
    ),
    "skill": (
        FieldSpec("name", _text, "Name; unique.", required=True, searchable=True),
        FieldSpec("description", _text, "Purpose.", searchable=True),
        FieldSpec("trigger_type", _text, choices=("cron", "interval", "at", "event", "manual"), required=True),
        FieldSpec(
            "trigger_config",
            _object,
            'When: {"schedule": "0 9 * * 1-5", "timezone": "Europe/Berlin"}, {"interval_minutes": 30},'
            ' {"at": "2027-01-31T09:00"} or {"in_minutes": 20}.',
        ),
        FieldSpec("instructions", _text, "Instructions for the client that runs it.", required=True, searchable=True),
        FieldSpec("required_tools", _texts, "Name of a required tool.", searchable=True),
        FieldSpec("execution_plan", _objects, "Steps, as a list of objects."),
        FieldSpec("max_steps", functools.partial(_whole, least=1), "Maximum number of steps.", default=10),
        FieldSpec("enabled", _flag, "Whether the skill can become due.", default=True),
        FieldSpec("notify_on_completion", _flag, "Whether to notify the user when it is done.", default=True),
        FieldSpec("notify_interval_minutes", _whole, "Minimum minutes between notifications.", default=0),
        FieldSpec("last_run_at", _moment, "Time of the last run; the next due time follows from it."),
        FieldSpec("last_run_status", _text, "Status of the last run."),
        FieldSpec("last_run_summary", _text, "Result of the last run.", searchable=True),
        FieldSpec("last_notified_at", _moment, "Time of the last notification."),
    ),
}

# Kind → the field in which no two live records of one agent have the same value.
UNIQUE: Mapping[Kind, str] = {"contact": "email", "project": "name", "skill": "name", "note": "path"}


def validate_fields(
    kind: Kind, values: Mapping[str, object], *, partial: bool = False, imported: bool = False
) -> dict[str, object]:
    """Return the values as they are stored, with the defaults; with `partial`, only the values that were given.

    `imported` as in `FieldSpec.check`.
    Raises UsageError for an unknown or invalid field, and for a required one that is missing or empty.
    """
    specs = {spec.name: spec for spec in FIELDS[kind]}
    if unknown := sorted(set(values) - set(specs)):
        raise UsageError(f"a {kind} has no '{unknown[0]}'", f"use {', '.join(specs)}")
    valid: dict[str, object] = {}
    for name, spec in specs.items():
        value = values.get(name)
        if value is None or (isinstance(value, str) and not value.strip()):
            if spec.required and not partial:
                raise UsageError(f"a {kind} needs the field {name}", f"pass {name}")
            if name in values and spec.required:
                raise UsageError(f"the {name} of a {kind} cannot be empty", f"pass another {name}")
            valid[name] = None if name in values else spec.default
        else:
            try:
                valid[name] = spec.check(value, imported=imported)
            except ValueError as error:
                raise UsageError(f"invalid {name} of a {kind}", str(error)) from None
    return {name: value for name, value in valid.items() if not partial or name in values}


def searchable_text(kind: Kind, values: Mapping[str, object]) -> str:
    """Return the text of a record, a line for each searchable field that has a value."""
    searchable = {spec.name: values.get(spec.name) for spec in FIELDS[kind] if spec.searchable}
    return "\n".join(
        f"{name}: {', '.join(map(_words, value)) if isinstance(value, list) else value}"
        for name, value in searchable.items()
        if value not in (None, "", [])
    )


def _words(part: object) -> str:
    """Return a part of a list as it is searched: of a project's source, where it is."""
    return str(part["location"]) if isinstance(part, dict) else str(part)


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
