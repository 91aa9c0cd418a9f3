"""The user's own rules for secrets: the TOML file that `secrets.rules` names, in the form of the tables in `data`.

A pattern runs over every text that is stored, so one that takes too long on a hostile text is refused. The check costs
about 20 ms per rule and is made once per content of the file; a marker in the cache folder records it.
"""

import re
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from time import process_time
from typing import Any, NoReturn

from mindex.errors import ConfigError
from mindex.ids import short_hash
from mindex.user_folders import cache_folder, user_config
from mindex.values import dataclass

MAX_SECONDS, CHARACTERS = 0.05, 10_000
_MIN_CHARACTERS, _GROWTH = 16, 1.1
_KIND = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,38}[a-z0-9])?")
_LITERAL = re.compile(r"[A-Za-z0-9]+|[^\w\s]")
_CHECK_VERSION = "1"
_KEYS: Mapping[str, type] = {"kind": str, "pattern": str, "starts": list, "any_case": bool}


@dataclass(frozen=True, slots=True)
class UserRule:
    """A rule of the user. `starts` are texts of which a text has one, or the pattern is not tried."""

    kind: str
    pattern: re.Pattern[str]
    starts: tuple[str, ...] = ()

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """Yield the places of the secrets: the group `v`, or the whole match."""
        group = "v" if "v" in self.pattern.groupindex else 0
        lowered = text.lower() if self.pattern.flags & re.IGNORECASE else text
        if not self.starts or any(start in lowered for start in self.starts):
            for match in self.pattern.finditer(text):
                if match.start(group) < match.end(group):
                    yield match.span(group)


@dataclass(frozen=True, slots=True)
class UserRules:
    """The rules of a file; `version` names its content."""

    rules: tuple[UserRule, ...]
    version: str


@cache
def load_user_rules(file: str) -> UserRules:
    """Return the rules of a file; a relative path starts at the user file's folder. Raises ConfigError."""
    path = user_config().parent / Path(file).expanduser()
    try:
        content = path.read_bytes()
        table = tomllib.loads(content.decode("utf-8-sig"))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot read the secret rules {path}: {error}", "fix the file, or run `mindex config unset secrets.rules`"
        ) from error
    rows = table.get("rule")
    if set(table) != {"rule"} or not isinstance(rows, list):
        raise ConfigError(f"{path} is not a table of secret rules", "write each rule below a line `[[rule]]`")
    rules = tuple(_rule(row, f"rule {number} of {path}") for number, row in enumerate(rows, start=1))
    version = short_hash(content.hex())
    marker = cache_folder() / f"secret-rules-{short_hash(version, sys.version, _CHECK_VERSION)}.checked"
    if not marker.exists():
        for number, rule in enumerate(rules, start=1):
            _check_speed(rule, f"rule {number} of {path}")
        with suppress(OSError):  # then the next process checks them again
            marker.parent.mkdir(parents=True, exist_ok=True)
            marker.touch()
    return UserRules(rules, version)


def _rule(row: Any, where: str) -> UserRule:
    if not isinstance(row, dict) or (unknown := row.keys() - _KEYS.keys()):
        _refuse(where, f"unknown key '{min(unknown)}'" if isinstance(row, dict) else "it is not a table")
    for key, kind in _KEYS.items():
        if key in row and not isinstance(row[key], kind):
            _refuse(where, f"'{key}' is not a {'list' if kind is list else 'text' if kind is str else 'flag'}")
    kind, source, any_case = row.get("kind", ""), row.get("pattern", ""), row.get("any_case", False)
    starts = row.get("starts", [])
    if not _KIND.fullmatch(kind):
        _refuse(where, "'kind' needs a name of lower-case letters, digits and hyphens")
    if not all(isinstance(start, str) and start for start in starts):
        _refuse(where, "'starts' has a value that is not a text")
    try:
        pattern = re.compile(source, re.IGNORECASE if any_case else 0)
    except (re.error, OverflowError, RecursionError) as error:
        _refuse(where, f"'pattern' is not a regular expression: {error}")
    if pattern.match(""):
        _refuse(where, "'pattern' matches an empty text")
    if pattern.search(f"[redacted:{kind}]"):
        _refuse(where, f"'pattern' matches [redacted:{kind}], which replaces a secret")
    is_folded = pattern.flags & re.IGNORECASE  # by `any_case` or `(?i)`
    return UserRule(kind, pattern, tuple(start.lower() if is_folded else start for start in starts))


def _refuse(where: str, reason: str) -> NoReturn:
    raise ConfigError(f"cannot use {where}: {reason}", "change the rule; docs/secrets.md has an example")


def _check_speed(rule: UserRule, where: str) -> None:
    """Raise ConfigError if the pattern takes longer than MAX_SECONDS for CHARACTERS characters of a hostile text.

    A text grows by a tenth at a time, so that an exponential pattern is stopped at the first size that takes too long:
    such a step multiplies its time by four at most.
    """
    for text in _hostile_texts(rule):
        size = float(_MIN_CHARACTERS)
        while size < CHARACTERS * _GROWTH:
            length = min(int(size), CHARACTERS)
            if _seconds(rule, text, length) > MAX_SECONDS and _seconds(rule, text, length) > MAX_SECONDS:
                _refuse(
                    where,
                    f"its pattern takes more than {MAX_SECONDS * 1000:.0f} ms for a text of {length:,} characters",
                )
            size *= _GROWTH


def _seconds(rule: UserRule, text: str, length: int) -> float:
    """The time for the text repeated to a length, with an end that no repeat has."""
    hostile = (text * (length // len(text) + 1))[:length] + "\N{REPLACEMENT CHARACTER}"
    started = process_time()
    for _ in rule.pattern.finditer(hostile):
        pass
    return process_time() - started


def _hostile_texts(rule: UserRule) -> Iterable[str]:
    """Texts whose repetition may be slow: letters of each sort, pieces of the pattern itself and of its starts."""
    literals = _LITERAL.findall(rule.pattern.pattern)
    begun = ("".join(literals[:end]) for end in range(2, len(literals) + 1))
    pieces = ("a", "A", "0", " ", "_", "\n", "aA0", "a ", "a0-", "=", "é")
    return dict.fromkeys(piece for piece in (*pieces, *rule.starts, *literals, *begun) if piece)
