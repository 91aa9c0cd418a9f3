"""Filters as SQL: the part of the records a search may see, decided before any top k is taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mindex.datatypes import Filters
from mindex.store.rules.filters import is_glob
from mindex.store.sql.dialect import Condition, Dialect, join, prefix_range


def live_records(dialect: Dialect, filters: Filters, now: int, of_engine: Iterable[Condition]) -> Condition:
    """All that the filters demand of a live record `r`.

    `of_engine` are the demands on collections, tags, entities and words, which each engine stores in its own way.
    """
    live = Condition("r.retired_at IS NULL")
    demands = join(" AND ", [live, *_of_record(dialect, filters), *of_engine, *_of_bounds(filters, now)])
    return Condition(dialect.spell(demands.sql), demands.parameters)


def _of_record(dialect: Dialect, filters: Filters) -> Iterator[Condition]:
    if filters.agent != "*":
        yield Condition("r.agent IN ('', ?)", (filters.agent,))
    if filters.path:
        path = path_condition(dialect, filters.path)
        yield Condition(f"r.document IN (SELECT d.$key FROM documents d WHERE {path.sql})", path.parameters)
    if filters.kinds:
        yield dialect.among("r.kind", filters.kinds)
    if filters.types:
        yield dialect.among("r.type", filters.types)
    if filters.session:
        yield Condition("r.kind = 'turn' AND $session(r) = ?", (filters.session,))


def _of_bounds(filters: Filters, now: int) -> Iterator[Condition]:
    bounds = (
        ("r.importance >= ?", filters.min_importance),
        ("r.confidence >= ?", filters.min_confidence),
        ("r.created_at >= ?", filters.after),
        ("r.created_at < ?", filters.before),
        ("$unchanged", filters.as_of),
    )
    yield from (Condition(clause, (bound,)) for clause, bound in bounds if bound is not None)
    if not filters.include_expired:
        moment = now if filters.as_of is None else filters.as_of
        yield Condition("(r.expires_at IS NULL OR r.expires_at > ?)", (moment,))


def path_condition(dialect: Dialect, path: str) -> Condition:
    """A glob where it has wildcards (`*` crosses folders), else that file or everything below that folder."""
    if is_glob(path):
        return Condition("(d.path = ? OR d.path $glob)", (path, dialect.glob(path)))
    folder = path.strip("/")
    return Condition("(d.path = ? OR (d.path >= ? AND d.path < ?))", (folder, *prefix_range(f"{folder}/")))
