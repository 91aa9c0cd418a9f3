"""What filters admit, and how texts are matched: the law that every engine follows.

Tags and entities are compared folded (`analyzer.fold`): case, width and Latin accents do not count. Agents, kinds,
types, collections, sessions and paths are compared as they are. Names in unique fields are compared by Unicode case
folding (`rules.entry_rules`).
"""

import re
from collections.abc import Sequence

from mindex.analyzer import fold
from mindex.datatypes import Filters, Record
from mindex.store.rules.bm25 import matches
from mindex.text_match import literal_ranges

_WILD = "*?["
NO_MATCH = "(?!.?)"  # a regular expression that matches nothing


def admits(filters: Filters, record: Record, now: int) -> bool:
    """Whether a record is in scope. Of a record as it was at `as_of`, its state then is given."""
    moment = now if filters.as_of is None else filters.as_of
    tags, entities = set(map(fold, record.tags)), set(map(fold, record.entities))
    return all(
        (
            record.retired_at is None,
            filters.agent == "*" or record.agent in ("", filters.agent),
            not filters.collections or record.collection in filters.collections,
            not filters.files_of or not record.document or record.collection in filters.files_of,
            not filters.path or (bool(record.document) and path_matches(filters.path, record.path)),
            not filters.kinds or record.kind in filters.kinds,
            not filters.types or record.type in filters.types,
            not filters.tags or not tags.isdisjoint(map(fold, filters.tags)),
            tags.issuperset(map(fold, filters.all_tags)),
            not filters.entities or not entities.isdisjoint(map(fold, filters.entities)),
            not filters.session or (record.kind == "turn" and record.fields.get("session_id") == filters.session),
            _at_least(record.importance, filters.min_importance),
            _at_least(record.confidence, filters.min_confidence),
            filters.after is None or record.created_at >= filters.after,
            filters.before is None or record.created_at < filters.before,
            filters.include_expired or record.expires_at is None or record.expires_at > moment,
            filters.matching is None or matches(filters.matching, record),
            filters.without is None or not matches(filters.without, record),
        )
    )


def _at_least(value: float | None, least: float | None) -> bool:
    return least is None or (value is not None and value >= least)


def holds_literally(literals: Sequence[str], text: str, title: str, *, inside_words: bool = False) -> bool:
    """Whether a record's text or title holds every literal text: at word boundaries, as `literal_ranges` says.

    With `inside_words` one of them is enough, and it may be part of a word.
    """
    held = count_held(literals, text, title, inside_words=inside_words)
    return held > 0 if inside_words else held == len(literals)


def count_held(literals: Sequence[str], text: str, title: str, *, inside_words: bool = False) -> int:
    """How many of the literal texts a record's text or title holds."""
    return sum(
        any(next(literal_ranges(held, literal, inside_words=inside_words), None) for held in (text, title))
        for literal in literals
    )


def path_matches(pattern: str, path: str) -> bool:
    """Whether a document's path is the one named, lies below the folder named, or matches the glob."""
    if is_glob(pattern):
        return path == pattern or glob_matches(pattern, path)
    folder = pattern.strip("/")
    return path == folder or path.startswith(f"{folder}/")


def is_glob(pattern: str) -> bool:
    return any(wild in pattern for wild in _WILD)


def glob_matches(pattern: str, text: str) -> bool:
    """`*` matches any characters, `/` included, `?` one, `[a-c]` and `[^a-c]` one of a set; case counts."""
    return re.fullmatch(glob_expression(pattern), text, re.DOTALL) is not None


def glob_expression(pattern: str) -> str:
    """A glob as a regular expression for a whole text, in the syntax that `re` and PostgreSQL share."""
    expression, at = "", 0
    while at < len(pattern):
        char = pattern[at]
        at += 1
        if char == "[":
            negated = pattern[at : at + 1] == "^"
            at += negated
            end = pattern.find("]", at + 1)  # a `]` that comes first is a member of the set
            if end < 0:
                return NO_MATCH  # a set without an end matches nothing
            members = _set_expression(pattern[at:end])
            empty = "." if negated else NO_MATCH
            expression += f"[{'^' if negated else ''}{members}]" if members else empty
            at = end + 1
        else:
            expression += {"*": ".*", "?": "."}.get(char) or re.escape(char)
    return expression


def _set_expression(members: str) -> str:
    """The members of a set for `re`: a `-` between two characters is a range, an empty range has no member."""
    expression, at = "", 0
    while at < len(members):
        if members[at + 1 : at + 2] == "-" and at + 2 < len(members):
            first, last = members[at], members[at + 2]
            expression += f"{re.escape(first)}-{re.escape(last)}" if first <= last else ""
            at += 3
        else:
            expression += re.escape(members[at])
            at += 1
    return expression
