"""Filters as SQL: the part of the records a search may see, decided before any top k is taken."""

import sqlite3
from collections.abc import Iterator

from mindex.analyzer import fold
from mindex.datatypes import AllOf, AnyOf, Filters, KeywordNode, Phrase, Prefix, Term, Without
from mindex.store.rules.filters import is_glob
from mindex.store.sql.dialect import Condition
from mindex.store.sqlite.queries import marks, read_value

Parameter = str | int | float

_MATCHING = "SELECT rowid FROM records_fts WHERE records_fts MATCH ?"
_DOCUMENTS_OF = "SELECT d.key FROM documents d JOIN collections c ON c.key = d.collection WHERE c.name IN {marks}"
# Two probes of an index; `agent NOT IN ('', ?)` would walk all of it.
_FOREIGN = """
SELECT 1 FROM records WHERE agent > '' AND agent < ?1 UNION ALL SELECT 1 FROM records WHERE agent > ?1 LIMIT 1
"""
# Whether files or an agent have records of another kind, in the same way.
_OTHERS = """
SELECT 1 FROM records WHERE agent IN ('', ?1) AND kind < ?2
UNION ALL SELECT 1 FROM records WHERE agent IN ('', ?1) AND kind > ?2 LIMIT 1
"""


Demand = tuple[str, tuple[Parameter, ...]]


def condition(filters: Filters, now: int) -> Condition:
    """All that the filters demand of a live record."""
    demands = [*_of_place(filters), *_of_content(filters), *_of_bounds(filters, now)]
    clauses = ["r.retired_at IS NULL", *(clause for clause, _ in demands)]
    return Condition(" AND ".join(clauses), tuple(value for _, values in demands for value in values))


def _of_place(filters: Filters) -> Iterator[Demand]:
    if filters.agent != "*":
        yield "r.agent IN ('', ?)", (filters.agent,)
    if filters.collections:
        yield f"r.document IN ({_DOCUMENTS_OF.format(marks=marks(filters.collections))})", filters.collections
    if filters.files_of:
        documents = _DOCUMENTS_OF.format(marks=marks(filters.files_of))
        yield f"(r.document IS NULL OR r.document IN ({documents}))", filters.files_of
    if filters.path:
        clause, values = path_clause(filters.path)
        yield f"r.document IN (SELECT d.key FROM documents d WHERE {clause})", values


def _of_content(filters: Filters) -> Iterator[Demand]:
    if filters.kinds:
        yield f"r.kind IN {marks(filters.kinds)}", filters.kinds
    if filters.types:
        yield f"r.type IN {marks(filters.types)}", filters.types
    if filters.tags:
        tags = tuple(map(fold, filters.tags))
        yield f"r.key IN (SELECT record FROM tags WHERE tag IN {marks(tags)})", tags
    for tag in filters.all_tags:
        yield "r.key IN (SELECT record FROM tags WHERE tag = ?)", (fold(tag),)
    if filters.entities:
        names = tuple(map(fold, filters.entities))
        yield f"r.key IN (SELECT record FROM entities WHERE entity IN {marks(names)})", names
    if filters.session:
        yield "r.kind = 'turn' AND json_extract(r.fields, '$.session_id') = ?", (filters.session,)
    if filters.matching is not None:
        yield f"r.key IN ({_MATCHING})", (match_expression(filters.matching),)
    if filters.without is not None:
        yield f"r.key NOT IN ({_MATCHING})", (match_expression(filters.without),)


def _of_bounds(filters: Filters, now: int) -> Iterator[Demand]:
    bounds = (
        ("r.importance >= ?", filters.min_importance),
        ("r.confidence >= ?", filters.min_confidence),
        ("r.created_at >= ?", filters.after),
        ("r.created_at < ?", filters.before),
        ("r.id NOT IN (SELECT record FROM history WHERE at > ?)", filters.as_of),
    )
    yield from ((clause, (bound,)) for clause, bound in bounds if bound is not None)
    if not filters.include_expired:
        moment = now if filters.as_of is None else filters.as_of
        yield "(r.expires_at IS NULL OR r.expires_at > ?)", (moment,)


def path_clause(path: str) -> tuple[str, tuple[Parameter, ...]]:
    """A glob where it has wildcards (`*` crosses folders), else that file or everything below that folder."""
    if is_glob(path):
        return "(d.path = ? OR d.path GLOB ?)", (path, path)
    folder = path.strip("/")
    return "(d.path = ? OR substr(d.path, 1, ?) = ?)", (folder, len(folder) + 1, f"{folder}/")


def sees_everything(connection: sqlite3.Connection, filters: Filters, now: int) -> bool:
    """Whether the filters leave nothing out of the indexes, so that they need not be applied row by row.

    Retired records are not in the indexes; the rest is decided by some look-ups in indexes.
    """
    if filters != Filters(agent=filters.agent, kinds=filters.kinds, include_expired=filters.include_expired):
        return False
    if filters.agent != "*" and read_value(connection, _FOREIGN, filters.agent):
        return False
    if filters.kinds and (
        filters.agent == "*" or len(filters.kinds) > 1 or read_value(connection, _OTHERS, filters.agent, *filters.kinds)
    ):
        return False
    expired = "SELECT 1 FROM records WHERE expires_at <= ? LIMIT 1"
    return filters.include_expired or not read_value(connection, expired, now)


def match_expression(node: KeywordNode) -> str:
    """A keyword query in FTS5's syntax. Tokens are letters, digits and `_`, quoted: nothing of the user's is parsed."""
    match node:
        case Term(token, column):
            return _in_column(f'"{token}"', column)
        case Prefix(token, column):
            return _in_column(f'"{token}"*', column)
        case Phrase(tokens, column):
            return _in_column(f'"{" ".join(tokens)}"', column)
        case AllOf(nodes):
            return f"({' AND '.join(map(match_expression, nodes))})"
        case AnyOf(nodes):
            return f"({' OR '.join(map(match_expression, nodes))})"
        case Without(keep, drop):
            return f"({match_expression(keep)} NOT {match_expression(drop)})"


def _in_column(expression: str, column: str | None) -> str:
    return f"{{{column}}} : {expression}" if column else expression
