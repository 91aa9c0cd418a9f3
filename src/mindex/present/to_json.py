"""JSON from values, by one rule: `to_json` turns a dataclass into a JSON object.

The fields become keys, in their order. A field without a default is always written; a field that has one is left out
while it holds it. Times (milliseconds in a field of `TIMES`, or one whose name ends in `_at`) are written as ISO 8601,
tuples as lists, dataclasses inside dataclasses by the same rule. `RULES` lists the classes that deviate, and how.
Messages (the fields of `MESSAGES`) are written in the words of the interface that shows them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import MISSING, field, fields
from functools import cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from mindex.clock import to_iso
from mindex.errors import MindexError
from mindex.present.record_view import summary_of
from mindex.values import dataclass, replace

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

TIMES = ("at", "since", "oldest", "newest")
MESSAGES = ("notes", "note", "tier_reason")
# Short names that `explain` had in 0.1.0: they stay in JSON beside the full ones until 1.0.
SHORT_NAMES = {"coverage": "matched_share", "z": "cosine_zscore", "g": "model_fluency"}
WHOLE = 0  # digits of a number that becomes an integer
_EXACT, _TIME = -1, -2  # in the place of digits: not rounded; written as ISO 8601


@dataclass(frozen=True, slots=True)
class Rule:
    """How the JSON of a class deviates. Names are those of fields and properties, and of `groups` and `views`."""

    shown: tuple[str, ...] = ()  # these names, in this order, instead of all fields
    rename: Mapping[str, str] = field(default_factory=dict)  # name → key
    always: tuple[str, ...] = ()  # written also with their default
    digits: Mapping[str, int] = field(default_factory=dict)  # to which numbers are rounded
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # fields that form a separate object
    flat: tuple[str, ...] = ()  # objects whose keys become keys of this one
    views: Mapping[str, Callable[[Any], object]] = field(default_factory=dict)  # of the whole value; None: left out


def _digits(count: int, *names: str) -> dict[str, int]:
    return dict.fromkeys(names, count)


# By name: importing the classes would make every search pay for reports that it does not print.
# fmt: off
RULES: Mapping[str, Rule] = {
    # ── answers and records ──
    "AnswerView": Rule(
        shown=("query", "corrected_query", "tier", "fusion", "total", "has_more", "tokens", "rows", "total_capped",
               "notes"),
        rename={"rows": "results"},
    ),
    "DualView": Rule(
        shown=("index", "rows", "total", "has_more", "tokens", "query", "corrected_query", "tier", "notes"),
        rename={"rows": "details", "total": "total_count", "tokens": "tokens_used"}, always=("index",),
    ),
    "BriefView": Rule(  # without what is constant, or what the caller knows
        shown=("corrected_query", "tier", "total", "has_more", "tokens", "rows", "total_capped", "notes"),
        rename={"rows": "results"},
        views={"tier": lambda shown: None if shown.tier == "hybrid" else shown.tier,
               "rows": lambda shown: [replace(row, tokens=None) for row in shown.rows]},
    ),
    "RecordView": Rule(
        views={"highlights": lambda row: row.telling_highlights, "runs": lambda _: None, "older_value": lambda _: None},
    ),
    "RecordsView": Rule(shown=("rows", "missing", "notes"), rename={"rows": "records"}, always=("missing",)),
    "PageView": Rule(shown=("rows", "total", "has_more"), rename={"rows": "records"}),
    "Hit": Rule(  # as `explain` shows it; the stages sum to the score
        shown=("trace", "relevance", "stages"), flat=("trace",), digits={"relevance": 4},
        views={"stages": lambda hit: hit.trace.stages},
    ),
    "Trace": Rule(
        shown=("keyword_rank", "keyword_score", "vector_rank", "cosine", "matched_share", "cosine_zscore",
               "model_fluency", "rerank", *SHORT_NAMES),
        digits=_digits(4, "keyword_score", "cosine", "matched_share", "cosine_zscore", "model_fluency", "rerank",
                       *SHORT_NAMES),
        views={short: attrgetter(name) for short, name in SHORT_NAMES.items()},
    ),
    "Stage": Rule(digits={"change": 6}),
    # ── entries ──
    "SyncReport": Rule(always=("sent", "received", "updated", "conflicts", "ignored")),
    "AddResult": Rule(
        shown=("id", "created", "duplicate", "similar", "superseded", "conflicts", "redacted", "notes"),
        always=("similar", "conflicts", "redacted"),
    ),
    "Change": Rule(  # what the history of an entry and the versions of the profile have in common
        shown=("at", "by", "action", "reason"), views={"reason": lambda change: change.reason or None},
    ),
    "Token": Rule(  # without its hash, which no reader can use
        shown=("name", "agent", "rights", "collections", "created_at", "expires_at"),
        always=("agent", "rights", "collections", "created_at", "expires_at"),
        views={"agent": lambda token: None if token.rights == "metrics" else token.agent},
    ),
    "PurgeResult": Rule(
        shown=("purged", "notes"), groups={"purged": ("records", "vectors", "history", "log_lines")},
        always=("records", "vectors", "history"),
    ),
    "MemoryStatistics": Rule(digits=_digits(2, "average_importance", "average_confidence"), always=("conflicts",)),
    "ExtractionReport": Rule(
        shown=("processed", "facts", "remaining", "unanswered", "notes"), always=("processed", "facts", "remaining"),
    ),
    "Consolidation": Rule(
        shown=("proposals", "examined", "looked_at", "applied", "retired", "younger", "notes"),
        views={"looked_at": lambda report: report.examined}, digits=_digits(WHOLE, "looked_at"),  # in 0.1.0; until 1.0
    ),
    "Proposal": Rule(
        shown=("kind", "why", "by", "originals", "result", "kept", "keeps", "applied"), always=("by",),
        views={"keeps": lambda proposal: proposal.kept or None,  # its name in 0.1.0, until 1.0
               "originals": lambda proposal: [
            {"id": one.id, "agent": one.agent, "summary": summary_of(one)} for one in proposal.originals
        ]},
    ),
    # ── files, models, status ──
    "CollectionReport": Rule(
        shown=("name", "root", "files", "chunks"),
        groups={"files": ("seen", "new", "changed", "moved", "deleted", "unchanged", "skipped"),
                "chunks": ("chunks_added", "chunks_kept", "chunks_removed")},
        rename={"chunks_added": "added", "chunks_kept": "kept", "chunks_removed": "removed"},
    ),
    "EmbeddingStatus": Rule(
        always=("pending",), views={"dimensions": lambda status: status.dimensions if status.model else None},
    ),
    "Check": Rule(views={"fix": lambda check: check.fix if check.fix and not check.ok else None}),
    "ReembedReport": Rule(rename={"source": "from", "target": "to"}),
    "ListedModel": Rule(
        rename={"speed": "milliseconds"}, always=("installed", "configured"), digits={"speed": 1},
        views={"install": lambda model: model.install if model.install and not model.installed else None,
               "active": lambda model: model.active if model.role == "embedding" else None},
    ),
    # ── export and import ──
    "Collection": Rule(shown=("name", "root")),
    "ExportReport": Rule(always=("files",)),
    "ImportReport": Rule(always=("skipped",)),
    "SkippedRow": Rule(shown=("where", "reason")),
}
# fmt: on
_OF_EXTENSIONS: dict[str, Rule] = {}
_NO_RULE = Rule()


def add_rules(rules: Mapping[str, Rule]) -> None:
    """Add the rules of classes that are not the core's."""
    _OF_EXTENSIONS.update(rules)


_wording: ContextVar[Callable[[str], str]] = ContextVar("mindex_wording", default=str)


@contextmanager
def wording(words: Callable[[str], str]) -> Iterator[None]:
    """Show messages in these words within the block: a server names tools in the place of commands."""
    token = _wording.set(words)
    try:
        yield
    finally:
        _wording.reset(token)


def worded(message: str) -> str:
    """Return a message as the interface says it that shows it."""
    return _wording.get()(message)


def to_json(value: DataclassInstance | Mapping[str, object]) -> dict[str, Json]:
    """Return the JSON object of a dataclass, or of a mapping whose values may be dataclasses."""
    if isinstance(value, Mapping):
        return {str(key): _converted(content) for key, content in value.items()}
    return _object(value)


def compact_json(value: DataclassInstance | Mapping[str, object]) -> str:
    """Return the JSON text of a value on one line, without blanks between its parts."""
    return json.dumps(to_json(value), ensure_ascii=False, separators=(",", ":"))


class _Step(NamedTuple):
    """How one key is made."""

    name: str
    key: str  # empty: the keys of the content
    default: object  # the key is left out while the content equals it
    digits: int
    view: Callable[[Any], object] | None


def _object(value: Any, group: str = "") -> dict[str, Json]:
    made: dict[str, Json] = {}
    for name, key, default, digits, view in _steps(type(value), group):  # type: ignore[arg-type]  # classes are hashable
        content = getattr(value, name) if view is None else view(value)
        if content is default or content == default:
            continue
        converted = _converted(content, digits)
        if name in MESSAGES:
            converted = _worded(converted)
        if key:
            made[key] = converted
        elif isinstance(converted, dict):
            made |= converted
    return made


def _worded(message: Json) -> Json:
    if isinstance(message, list):
        return [_worded(one) for one in message]
    return worded(message) if isinstance(message, str) else message


@cache
def _steps(kind: Any, group: str) -> tuple[_Step, ...]:
    """How the keys of a class are made, or those of one group of its fields."""
    rule = RULES.get(kind.__name__) or _OF_EXTENSIONS.get(kind.__name__, _NO_RULE)
    defaults = {
        one.name: one.default if one.default_factory is MISSING else one.default_factory()
        for one in fields(kind)
        if one.name not in rule.always
    }

    def step(name: str) -> _Step:
        view = partial(_object, group=name) if name in rule.groups else rule.views.get(name)
        default = None if view and name not in rule.always else defaults.get(name, MISSING)
        digits = _TIME if name in TIMES or name.endswith("_at") else _EXACT
        key = "" if name in rule.flat else rule.rename.get(name, name)
        return _Step(name, key, default, rule.digits.get(name, digits), view)

    return tuple(map(step, rule.groups[group] if group else rule.shown or kind.__match_args__))


def _converted(value: Any, digits: int = _EXACT) -> Json:
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, (int, float)):
        if digits == _EXACT:
            return value
        return to_iso(int(value)) if digits == _TIME else round(value, digits or None)
    if isinstance(value, (tuple, list)):
        return [_converted(part, digits) for part in value]
    if isinstance(value, Mapping):
        return {str(key): _converted(part, digits) for key, part in value.items()}
    return _object(value)


def error_json(error: MindexError, kind: str = "") -> dict[str, Json]:
    """`{"error": {"kind", "message", "hint"}}`, without a hint if there is none. `kind` replaces the error's own."""
    shown: dict[str, Json] = {"kind": kind or error.kind, "message": _encodable(error.message)}
    if error.hint:
        shown["hint"] = _encodable(error.hint)
    return {"error": shown}


def _encodable(text: str) -> str:
    """The text as UTF-8 carries it: half a character, which an error may repeat, is written as JSON escapes it."""
    return text.encode("utf-8", "backslashreplace").decode()
