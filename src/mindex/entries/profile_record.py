"""The record of a profile: its id, and the text that is made of its data."""

from dataclasses import replace
from typing import Any

from mindex.datatypes import Record
from mindex.entries.json_paths import leaves
from mindex.entries.validation import validate_amount
from mindex.ids import short_hash


def profile_id(agent: str) -> str:
    """Return the id of the one profile that an agent has."""
    return short_hash("profile", agent)


def with_data(record: Record, data: Any) -> Record:
    """Return a profile with other data and the text made of it. Raises UsageError when it is too large."""
    validate_amount("profile", data, before=record.fields.get("data"))
    return with_unchecked_data(record, data)


def with_unchecked_data(record: Record, data: Any) -> Record:
    """Return a profile with other data and the text made of it, of any size."""
    text = "\n".join(f"{path}: {value}" for path, value in leaves(data))
    name = f"Profile of {record.agent}"
    return replace(record, fields={"data": data}, text=text, title=name, summary=name)
