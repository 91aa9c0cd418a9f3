"""The table of fields: validation, and the text that is made of them."""

from __future__ import annotations

import pytest

from mindex.clock import from_iso, now_ms
from mindex.entries.field_specs import (
    FIELD_ENTRY_KINDS,
    FIELDS,
    UNIQUE,
    record_values,
    searchable_text,
    validate_fields,
)
from mindex.errors import UsageError

CONTACT = {"name": "Anna Lindqvist", "email": "Anna@Acme.example", "company": "Acme", "role": "CTO"}
SKILL = {"name": "Brief", "trigger_type": "manual", "instructions": "Sum up the day"}


def test_defaults_fill_what_is_not_given() -> None:
    assert validate_fields("contact", {"name": "Bo"})["type"] == "work"
    assert validate_fields("project", {"name": "Atlas"})["status"] == "active"
    skill = validate_fields("skill", SKILL)
    assert (skill["max_steps"], skill["enabled"], skill["notify_interval_minutes"]) == (10, True, 0)


def test_a_partial_validation_returns_only_the_given_fields() -> None:
    assert validate_fields("contact", {"role": "CEO"}, partial=True) == {"role": "CEO"}
    assert validate_fields("contact", {"role": ""}, partial=True) == {"role": None}


@pytest.mark.parametrize(
    ("kind", "values", "complaint"),
    [
        ("contact", {}, "a contact needs the field name"),
        ("contact", {"name": " "}, "needs the field name"),
        ("contact", {"name": "A", "fax": "1"}, "a contact has no 'fax'"),
        ("contact", {"name": "A", "email": "nobody"}, "invalid email of a contact"),
        ("contact", {"name": "A", "email": "a b@c"}, "invalid email of a contact"),
        ("contact", {"name": "A", "type": "enemy"}, "work, personal, ignored"),
        ("project", {"name": "A", "status": "dead"}, "active, paused, completed"),
        ("project", {"name": "A", "priority": "urgent"}, "high, medium, low"),
        ("project", {"name": "A", "participants": 5}, "a list of texts"),
        ("skill", {"name": "A", "trigger_type": "cron"}, "a skill needs the field instructions"),
        ("skill", {**SKILL, "trigger_type": "sometimes"}, "cron, interval, at, event, manual"),
        ("skill", {**SKILL, "max_steps": 0}, "at least 1"),
        ("skill", {**SKILL, "max_steps": True}, "whole number"),
        ("skill", {**SKILL, "max_steps": "many"}, "whole number"),
        ("skill", {**SKILL, "enabled": "perhaps"}, "true or false"),
        ("skill", {**SKILL, "trigger_config": "[]"}, "an object"),
        ("skill", {**SKILL, "execution_plan": {}}, "a list of objects"),
        ("skill", {**SKILL, "execution_plan": ["step"]}, "an object"),
        ("skill", {**SKILL, "last_run_at": "banana"}, "invalid last_run_at of a skill; 'banana' is not a time"),
        ("skill", {**SKILL, "last_run_at": 1772366400000}, "a text is expected"),
        ("skill", {**SKILL, "last_notified_at": "2026-02-31"}, "'2026-02-31' is not a time"),
    ],
)
def test_an_invalid_field_is_an_error_that_names_valid_values(
    kind: str, values: dict[str, object], complaint: str
) -> None:
    with pytest.raises(UsageError) as error:
        validate_fields(kind, values)  # type: ignore[arg-type]
    assert complaint in str(error.value)


def test_every_field_that_is_named_for_a_moment_is_validated_as_one() -> None:
    assert {spec.name for kind in FIELD_ENTRY_KINDS for spec in FIELDS[kind] if spec.name.endswith("_at")} == {
        spec.name for kind in FIELD_ENTRY_KINDS for spec in FIELDS[kind] if spec.time
    }


@pytest.mark.parametrize(
    ("given", "stored"),
    [
        ("2026-03-02T08:00:00Z", "2026-03-02T08:00:00Z"),
        ("2026-03-02T09:00:00.250+01:00", "2026-03-02T08:00:00.250Z"),
        ("2026-03-02 08:00", "2026-03-02T08:00:00Z"),
    ],
)
def test_a_moment_is_stored_in_utc(given: str, stored: str) -> None:
    assert validate_fields("skill", {"last_run_at": given}, partial=True) == {"last_run_at": stored}


def test_a_moment_may_be_given_in_words() -> None:
    stored = validate_fields("skill", {"last_run_at": "2h"}, partial=True)["last_run_at"]
    assert abs(from_iso(str(stored)) - now_ms() + 2 * 3_600_000) < 60_000


def test_a_required_field_cannot_be_removed() -> None:
    with pytest.raises(UsageError, match="cannot be empty"):
        validate_fields("contact", {"name": ""}, partial=True)


def test_the_text_has_the_searchable_fields() -> None:
    fields = validate_fields("contact", CONTACT)
    assert searchable_text("contact", fields) == (
        "name: Anna Lindqvist\nemail: anna@acme.example\ncompany: Acme\nrole: CTO"
    )
    made = record_values("contact", fields)
    assert (made["title"], made["type"]) == ("Anna Lindqvist", "work")
    assert made["summary"] == "Anna Lindqvist (CTO, Acme)"


@pytest.mark.parametrize("kind", FIELD_ENTRY_KINDS)
def test_every_kind_has_a_unique_field_and_help_for_each(kind: str) -> None:
    fields = FIELDS[kind]  # type: ignore[index]
    assert UNIQUE[kind] in {field.name for field in fields}  # type: ignore[index]
    assert all(field.help.endswith(".") for field in fields)
    assert {field.shape for field in fields} <= {"text", "texts", "json"}
