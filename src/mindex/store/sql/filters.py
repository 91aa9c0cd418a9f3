"""Filters as SQL that engines share: the records a search may see, decided before any top k is taken."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mindex.datatypes import AnyOf, Filters, KeywordNode, Term
from mindex.store.results import ScoredRecord
from mindex.store.rules.filters import is_glob
from mindex.store.sql.dialect import Condition, Dialect, join, prefix_range
from mindex.values import dataclass, replace

if TYPE_CHECKING:
    from mindex.store.sql.engine import Statements


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


# ── scopes of keyword searches ────────────────────────────────────────────────────────────────────────────────

# A scope of at most this number of records is counted separately: how rare a word is among them, not among all. Each
# word is looked up twice for that, so it has to be small.
SMALL_SCOPE = 2_000


@dataclass(frozen=True, slots=True)
class KeywordScope:
    """The records that filters admit. `condition` is None if that is all of them; `size` is counted if small."""

    condition: Condition | None = None
    size: int | None = None


def is_countable(filters: Filters) -> bool:
    """Whether indexes know which records are in scope: by agent, kind, collection or session.

    To count the records with any other property would mean to read all of them.
    """
    whose = Filters(agent=filters.agent, kinds=filters.kinds, collections=filters.collections, session=filters.session)
    return bool(replace(filters, include_expired=whose.include_expired, files_of=()) == whose)


def size_if_small(statements: Statements, scope: Condition) -> int | None:
    """How many records are in scope, if few."""
    count = f"SELECT count(*) FROM (SELECT 1 FROM records r WHERE {scope.sql} LIMIT ?) few"
    size = int(statements.value(count, *scope.parameters, SMALL_SCOPE + 1))
    return size if size <= SMALL_SCOPE else None


def plain_terms(node: KeywordNode) -> tuple[Term, ...]:
    """The words of a query that is nothing but words, any of which will do; else none."""
    nodes = node.nodes if isinstance(node, AnyOf) else (node,)
    terms = tuple(one for one in nodes if isinstance(one, Term) and one.column is None)
    return terms if len(terms) == len(nodes) else ()


def best_first(hits: Iterable[ScoredRecord]) -> tuple[ScoredRecord, ...]:
    return tuple(sorted(hits, key=lambda hit: (-hit.score, hit.id)))
