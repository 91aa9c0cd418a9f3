"""The checks of a query: amounts in range, known names, weights that have something to weigh."""

from mindex.datatypes import MODES, Query
from mindex.errors import UsageError
from mindex.search.fuse import fusion_named
from mindex.search.query import MAX_LIMIT, MAX_QUERY
from mindex.values import replace


def checked(query: Query) -> tuple[Query, tuple[str, ...]]:
    """The query with its limit and text cut to what is possible, and notes on that. Raises UsageError."""
    if query.mode not in MODES:
        raise UsageError(f"unknown mode '{query.mode}'", f"use one of {', '.join(MODES)}")
    if not query.text.strip():
        raise UsageError("the query is empty", "pass the words to search for")
    if query.limit < 1:
        raise UsageError(f"limit {query.limit} is too small", f"use 1 to {MAX_LIMIT}")
    if query.offset < 0:
        raise UsageError(f"offset {query.offset} is too small", "use 0 or more")
    fusion_named(query.fusion)
    _check_weights(query)
    notes = []
    if query.limit > MAX_LIMIT:
        notes.append(f"limit cut to {MAX_LIMIT}, the maximum")
    if len(query.text) > MAX_QUERY:
        notes.append(f"query cut to {MAX_QUERY} characters")
    return replace(query, limit=min(query.limit, MAX_LIMIT), text=query.text[:MAX_QUERY]), tuple(notes)


def _check_weights(query: Query) -> None:
    given = {"vector_weight": query.vector_weight, "keyword_weight": query.keyword_weight}
    named = {name: weight for name, weight in given.items() if weight is not None}
    if not named:
        return
    names = " and ".join(named)
    for name, weight in named.items():
        if not 0 <= weight <= 1:  # NaN is neither
            raise UsageError(f"{name} {weight:g} is out of range", "use 0 to 1")
    if not any(weight != 0 for weight in given.values()):
        raise UsageError("vector_weight and keyword_weight are both 0", "set one of them above 0")
    if query.mode != "hybrid":
        raise UsageError(f"{names}: a {query.mode} search has only one score", "use it with mode hybrid")
    if fusion_named(query.fusion).one_list:
        raise UsageError(f"{names}: the fusion {query.fusion} has only one score", "use another fusion")
