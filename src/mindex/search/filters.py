"""The filters of a search or a list, from what a caller names: kinds, types, tags, times, an agent."""

from collections.abc import Sequence
from typing import Unpack

from mindex.datatypes import KINDS, TYPES, Filters
from mindex.errors import UsageError
from mindex.search.option_types import Scope
from mindex.store.base import Store


def make_filters(store: Store, default_agent: str, **scope: Unpack[Scope]) -> Filters:
    """Raises UsageError for an unknown kind, type or collection: it would find nothing, silently."""
    kinds, types, collections = scope.get("kinds", ()), scope.get("types", ()), scope.get("collections", ())
    _require_known("kind", kinds, KINDS)
    _require_known("type", types, TYPES)
    if collections:
        _require_known("collection", collections, [collection.name for collection in store.files.collections()])
    return Filters(
        kinds=tuple(kinds),
        types=tuple(types),
        agent=scope.get("agent") or default_agent,
        collections=tuple(collections),
        path=scope.get("path", ""),
        tags=tuple(scope.get("tags", ())),
        all_tags=tuple(scope.get("all_tags", ())),
        min_importance=scope.get("min_importance"),
        min_confidence=scope.get("min_confidence"),
        after=moment(scope.get("after")),
        before=moment(scope.get("before")),
        include_expired=scope.get("include_expired", False),
        entities=tuple(scope.get("entities", ())),
        session=scope.get("session", ""),
        as_of=moment(scope.get("as_of")),
    )


def moment(text: str | None) -> int | None:
    """The moment that a text names; None for an empty one. Raises UsageError."""
    if not text:
        return None
    from mindex.times.typed import parse_time  # most searches name no time (tests/test_costs.py)

    return parse_time(text)


def _require_known(what: str, given: Sequence[str], known: Sequence[str]) -> None:
    for value in given:
        if value not in known:
            raise UsageError(f"unknown {what} '{value}'", f"use one of {', '.join(known) or '(there is none yet)'}")
