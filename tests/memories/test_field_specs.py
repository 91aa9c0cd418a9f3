"""The table of fields: validation, and the text that is made of them."""

from __future__ import annotations

import pytest

from mindex.errors import UsageError
from mindex.memories.field_specs import FIELDS, THING_KINDS, UNIQUE, record_values, searchable_text, validate_fields

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
        ("contact", {}, "the name of a contact is missing"),
        ("contact", {"name": " "}, "is missing"),
        ("contact", {"name": "A", "fax": "1"}, "a contact has no 'fax'"),
        ("contact", {"name": "A", "email": "nobody"}, "email of a contact is wrong"),
        ("contact", {"name": "A", "email": "a b@c"}, "email of a contact is wrong"),
        ("contact", {"name": "A", "type": "enemy"}, "work, personal, ignored"),
        ("project", {"name": "A", "status": "dead"}, "active, paused, completed"),
        ("project", {"name": "A", "priority": "urgent"}, "high, medium, low"),
        ("project", {"name": "A", "participants": 5}, "a list of texts"),
        ("skill", {"name": "A", "trigger_type": "cron"}, "the instructions of a skill is missing"),
        ("skill", {**SKILL, "trigger_type": "sometimes"}, "cron, interval, at, event, manual"),
        ("skill", {**SKILL, "max_steps": 0}, "at least 1"),
        ("skill", {**SKILL, "max_steps": True}, "whole number"),
        ("skill", {**SKILL, "max_steps": "many"}, "whole number"),
        ("skill", {**SKILL, "enabled": "perhaps"}, "true or false"),
        ("skill", {**SKILL, "trigger_config": "[]"}, "an object"),
        ("skill", {**SKILL, "execution_plan": {}}, "a list of objects"),
        ("skill", {**SKILL, "execution_plan": ["step"]}, "an object"),
    ],
)
def test_an_invalid_field_is_an_error_that_names_valid_values(
    kind: str, values: dict[str, object], complaint: str
) -> None:
    with pytest.raises(UsageError) as error:
        validate_fields(kind, values)  # type: ignore[arg-type]
    assert complaint in str(error.value)


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


@pytest.mark.parametrize("kind", THING_KINDS)
def test_every_kind_has_a_unique_field_and_help_for_each(kind: str) -> None:
    fields = FIELDS[kind]  # type: ignore[index]
    assert UNIQUE[kind] in {field.name for field in fields}  # type: ignore[index]
    assert all(field.help.endswith(".") for field in fields)
    assert {field.shape for field in fields} <= {"text", "texts", "json"}
