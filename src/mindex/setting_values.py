"""Parsers of setting values: each takes what a file or a variable holds and returns the value, or raises ValueError."""

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from math import inf
from typing import TypeVar

_YES, _NO = ("1", "true", "yes", "on"), ("0", "false", "no", "off")

T = TypeVar("T", int, float)
Value = str | int | float | bool | tuple[str, ...] | Mapping[str, str]


def flatten(table: Mapping[str, object], known: Collection[str], prefix: str = "") -> Iterator[tuple[str, object]]:
    """The keys of a TOML file, with their dots, and their values; a table that is the value of a known key stays."""
    for name, value in table.items():
        key = f"{prefix}{name}"
        if isinstance(value, dict) and key not in known:
            yield from flatten(value, known, f"{key}.")
        else:
            yield key, value


def parse_text(value: object) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is expected")
    return value


def parse_database(value: object) -> str:
    """A path or URL. One with a password is refused here, before any command can print it."""
    text = parse_text(value)
    if "://" in text:
        from mindex.database_url import refuse_password  # most databases are files

        refuse_password(text)
    return text


def parse_flag(value: object) -> bool:
    word = str(value).lower()
    if word not in (*_YES, *_NO):
        raise ValueError("true or false is expected")
    return word in _YES


def one_of(*choices: str) -> Callable[[object], str]:
    def parse(value: object) -> str:
        if value not in choices:
            raise ValueError(f"one of {', '.join(choices)} is expected, not '{value}'")
        return str(value)

    return parse


def _converted(kind: type[T], expected: str, least: float, most: float, limits: str, value: object) -> T:
    """The value as a number of this kind: one of the file, or its text."""
    if isinstance(value, bool) or not isinstance(value, int | kind | str):
        raise ValueError(f"{expected} is expected")
    try:
        number = kind(value)
    except ValueError:
        raise ValueError(f"{expected} is expected, not '{value}'") from None
    if not least <= number <= most:
        raise ValueError(f"{limits} is expected")
    return number


def parse_whole(least: int) -> Callable[[object], int]:
    return partial(_converted, int, "a whole number", least, inf, f"at least {least}")


def parse_number(least: float, most: float = inf) -> Callable[[object], float]:
    return partial(_converted, float, "a number", least, most, f"a number from {least:g} to {most:g}")


def parse_texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return tuple(value)
    raise ValueError("a list of texts is expected")


def parse_pairs(value: object) -> Mapping[str, str]:
    """A table, or `src/Caching=caching,src/Auth=security` from the environment."""
    if isinstance(value, str):
        pairs = dict(part.split("=", 1) for part in value.split(",") if "=" in part)
        return {key.strip(): domain.strip() for key, domain in pairs.items()}
    if isinstance(value, dict) and all(isinstance(part, str) for part in value.values()):
        return {str(key): domain for key, domain in value.items()}
    raise ValueError("a table of texts is expected")
