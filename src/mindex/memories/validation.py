"""Validation of entries: type, text, JSON values, and the ranges of importance, confidence and expiry.

Each function returns its value or raises UsageError.
"""

from math import isfinite

from mindex.errors import UsageError
from mindex.model import TYPES

MAX_BYTES = 1024 * 1024
_DEEPEST = 50
_END_OF_9999 = 253_402_300_799_000  # the last moment that `datetime` knows


def validate_type(type_: str) -> str:
    if type_ not in TYPES:
        raise UsageError(f"unknown type '{type_}'", f"use one of {', '.join(TYPES)}")
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
        raise UsageError("there is nothing to remember: the text is empty", "say what is to be remembered")
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise UsageError(
            f"the text has {size:,} bytes, a memory may have {MAX_BYTES:,}",
            "keep it as a file in an indexed folder, or tell it in parts",
        )
    return text


def validate_json(value: object, depth: int = 0) -> object:
    if depth > _DEEPEST:
        raise UsageError(f"a value is nested more than {_DEEPEST} deep", "store it flatter, or as a text")
    if isinstance(value, list | tuple | dict):
        for part in value.values() if isinstance(value, dict) else value:
            validate_json(part, depth + 1)
    elif value is not None and not isinstance(value, str | int) and not (isinstance(value, float) and isfinite(value)):
        raise UsageError(f"{value!r} cannot be stored", "use texts, numbers, true, false, lists and objects")
    return value
