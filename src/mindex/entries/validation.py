"""Validation of entries: type, text, lengths, JSON values, and the ranges of importance, confidence and expiry.

Each function returns its value or raises UsageError. The limits are those of `mindex.limits`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from math import isfinite

from mindex.datatypes import TYPES, Record
from mindex.entries.options import MEMORY_OPTIONS
from mindex.errors import UsageError
from mindex.limits import (
    MAX_FIELD,
    MAX_NAME,
    MAX_TAG,
    MAX_TAGS,
    MAX_TEXT_BYTES,
    MAX_VALUES,
    MAX_VALUES_BYTES,
)

# The most characters of a property that is a text.
_PROPERTIES: Mapping[str, int] = {
    "title": MAX_FIELD,
    **{one.name: one.longest for one in MEMORY_OPTIONS if one.longest},
}
# Fields that are names; of a turn, two are its text.
_NAMES = ("name", "session_id", "speaker")
_TEXTS = ("user_message", "agent_response")
_DEEPEST = 50
_LESS = "keep the rest as memories or notes"
_END_OF_9999 = 253_402_300_799_000  # the last moment that `datetime` knows


def validate_type(type_: str) -> str:
    if type_ not in TYPES:
        raise UsageError(f"unknown type '{type_:.40}'", f"use one of {', '.join(TYPES)}")
    return type_


def validate_importance(importance: int) -> int:
    if not 1 <= importance <= 10:
        raise UsageError(f"importance {importance} is out of range", "use 1 (trivial) to 10 (vital)")
    return importance


def validate_confidence(confidence: float) -> float:
    if not 0 <= confidence <= 1:  # NaN is not between them either
        raise UsageError(f"confidence {confidence:g} is out of range", "use 0 (a guess) to 1 (certain)")
    return confidence


def validate_expiry(moment: int, now: int) -> int:
    if moment <= now:
        raise UsageError("the expiry is in the past", "give a later time, for example 30d or 2027-01-31")
    if moment > _END_OF_9999:
        raise UsageError("the expiry is after the year 9999", "leave it out: a memory without one does not expire")
    return moment


def validate_limit(limit: int, most: int) -> int:
    if limit < 1:
        raise UsageError(f"limit {limit} is too small", f"use 1 to {most}")
    return min(limit, most)


def validate_text(text: str) -> str:
    if not text.strip():
        raise UsageError("the text is empty", "pass the text to remember")
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_TEXT_BYTES:
        raise UsageError(
            f"the text has {size:,} bytes, a memory may have {MAX_TEXT_BYTES:,}",
            "store it as a file in an indexed folder, or add it in parts",
        )
    return text


def validate_length(what: str, text: str, most: int) -> str:
    if len(text) > most:
        raise UsageError(f"the {what} has {len(text):,} characters, at most {most:,} are allowed", "shorten it")
    return text


def validate_tags(tags: Sequence[str]) -> Sequence[str]:
    _validate_many("tag", tags, MAX_TAG)
    return tags


def validate_properties(given: Mapping[str, object]) -> Mapping[str, object]:
    """Check the lengths of a memory's properties, as they were given, but for its text."""
    for name, value in given.items():
        if name in _PROPERTIES and isinstance(value, str):
            validate_length(name, value, _PROPERTIES[name])
        elif name in ("tags", "entities") and isinstance(value, list | tuple):
            _validate_many("tag" if name == "tags" else "name", value, MAX_TAG if name == "tags" else MAX_NAME)
        elif name == "fields" and isinstance(value, Mapping):
            validate_fields_json(value)
    return given


def validate_fields_json(fields: Mapping[str, object]) -> Mapping[str, object]:
    """Check the fields of an entry: what they hold can be stored as JSON, and nothing is too long or too much."""
    for name, value in fields.items():
        if name in _NAMES and isinstance(value, str):
            validate_length(name, value, MAX_NAME)
    validate_json({name: value for name, value in fields.items() if name not in _TEXTS})
    return fields


def validate_record(record: Record) -> Record:
    """Check the lengths of all that an entry holds, as one comes from elsewhere."""
    validate_length("agent", record.agent, MAX_NAME)
    names = (*_PROPERTIES, "tags", "entities")
    validate_properties({name: getattr(record, name) for name in names if hasattr(record, name)})
    if record.kind == "profile":
        validate_json(record.fields)
    else:
        validate_fields_json({name: value for name, value in record.fields.items() if name != "foreign_ids"})
    return record


def validate_amount(what: str, data: object, before: object = None) -> None:
    """Refuse more values, or more bytes of them as JSON, than a record may have, unless it had as much before."""
    count, size = sum(1 for _ in _values(data)), json_size(data)
    if count > MAX_VALUES and count > sum(1 for _ in _values(before)):
        raise UsageError(f"the {what} would have {count:,} values, at most {MAX_VALUES:,} are allowed", _LESS)
    if size > MAX_VALUES_BYTES and size > json_size(before):
        raise UsageError(f"the {what} would have {size:,} bytes, at most {MAX_VALUES_BYTES:,} are allowed", _LESS)


def json_size(data: object) -> int:
    """Return the bytes that a value takes as JSON."""
    return len(json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def _values(data: object) -> Iterator[object]:
    """Yield every value that holds no others."""
    waiting = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict | list) and value:
            waiting += value.values() if isinstance(value, dict) else value
        else:
            yield value


def _validate_many(what: str, texts: Sequence[object], most: int) -> None:
    if len(texts) > MAX_TAGS:
        raise UsageError(f"{len(texts):,} {what}s are too many", f"give at most {MAX_TAGS}")
    for text in texts:
        validate_length(what, str(text), most)


def validate_json(value: object) -> object:
    """Check that a value can be stored as JSON, and that it is neither too long, nor too deep, nor too much.

    What is waiting to be checked holds at least one value each, so that too many are refused before they are looked at.
    """
    waiting, checked = [(value, 0)], 0
    while waiting:
        part, depth = waiting.pop()
        if depth > _DEEPEST:
            raise UsageError(f"a value is nested more than {_DEEPEST} deep", "store it flatter, or as a text")
        if isinstance(part, list | tuple | dict) and part:
            if checked + len(waiting) + len(part) > MAX_VALUES:
                raise UsageError(f"more than {MAX_VALUES:,} values are too many for one record", _LESS)
            for name in part if isinstance(part, dict) else ():
                validate_length("name of a value", str(name), MAX_NAME)
            waiting += [(inner, depth + 1) for inner in (part.values() if isinstance(part, dict) else part)]
        else:
            _validate_value(part)
            checked += 1
    if (size := json_size(value)) > MAX_VALUES_BYTES:
        raise UsageError(f"{size:,} bytes of values are too many, one record has at most {MAX_VALUES_BYTES:,}", _LESS)
    return value


def _validate_value(value: object) -> None:
    if isinstance(value, str):
        validate_length("value", value, MAX_FIELD)
    elif value is not None and not isinstance(value, int | list | tuple | dict) and not _is_number(value):
        raise UsageError(f"{value!r} cannot be stored", "use texts, numbers, true, false, lists and objects")


def _is_number(value: object) -> bool:
    return isinstance(value, float) and isfinite(value)
