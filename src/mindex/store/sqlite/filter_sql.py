"""Filters in the SQL of SQLite: what each engine stores in its own way, and keyword queries in FTS5's syntax."""

from collections.abc import Iterator

from mindex.analyzer import fold
from mindex.datatypes import AllOf, AnyOf, Filters, KeywordNode, Phrase, Prefix, Term, Without
from mindex.store.sql.dialect import Condition
from mindex.store.sql.filters import SMALL_SCOPE, KeywordScope, is_countable, live_records, size_if_small
from mindex.store.sqlite.sql_connection import DIALECT, SqlConnection, marks

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


def condition(filters: Filters, now: int) -> Condition:
    """All that the filters demand of a live record."""
    return live_records(DIALECT, filters, now, [*_of_collections(filters), *_of_names(filters), *_of_words(filters)])


def _of_collections(filters: Filters) -> Iterator[Condition]:
    if filters.collections:
        documents = _DOCUMENTS_OF.format(marks=marks(filters.collections))
        yield Condition(f"r.document IN ({documents})", filters.collections)
    if filters.files_of:
        documents = _DOCUMENTS_OF.format(marks=marks(filters.files_of))
        yield Condition(f"(r.document IS NULL OR r.document IN ({documents}))", filters.files_of)


def _of_names(filters: Filters) -> Iterator[Condition]:
    if filters.tags:
        tags = tuple(map(fold, filters.tags))
        yield Condition(f"r.key IN (SELECT record FROM tags WHERE tag IN {marks(tags)})", tags)
    for tag in filters.all_tags:
        yield Condition("r.key IN (SELECT record FROM tags WHERE tag = ?)", (fold(tag),))
    if filters.entities:
        names = tuple(map(fold, filters.entities))
        yield Condition(f"r.key IN (SELECT record FROM entities WHERE entity IN {marks(names)})", names)


def _of_words(filters: Filters) -> Iterator[Condition]:
    if filters.matching is not None:
        yield Condition(f"r.key IN ({_MATCHING})", (match_expression(filters.matching),))
    if filters.without is not None:
        yield Condition(f"r.key NOT IN ({_MATCHING})", (match_expression(filters.without),))


def sees_everything(connection: SqlConnection, filters: Filters, now: int) -> bool:
    """Whether the filters leave nothing out of the indexes, so that they need not be applied row by row.

    Retired records are not in the indexes; the rest is decided by some look-ups in indexes.
    """
    if filters != Filters(agent=filters.agent, kinds=filters.kinds, include_expired=filters.include_expired):
        return False
    if filters.agent != "*" and connection.value(_FOREIGN, filters.agent):
        return False
    if filters.kinds and (
        filters.agent == "*" or len(filters.kinds) > 1 or connection.value(_OTHERS, filters.agent, *filters.kinds)
    ):
        return False
    expired = "SELECT 1 FROM records WHERE expires_at <= ? LIMIT 1"
    return filters.include_expired or not connection.value(expired, now)


def scope_of(connection: SqlConnection, filters: Filters, now: int) -> KeywordScope:
    """The records that a keyword search may see, and how many they are if that is cheap to say."""
    if sees_everything(connection, filters, now):
        return KeywordScope()
    scope = condition(filters, now)
    if not is_countable(filters) or (filters.kinds and filters.agent != "*" and _has_many(connection, filters)):
        return KeywordScope(scope)
    return KeywordScope(scope, size_if_small(connection, scope))


def _has_many(connection: SqlConnection, filters: Filters) -> bool:
    """Whether an agent has many records of these kinds, retired and expired ones among them: an index alone knows."""
    beyond = f"SELECT 1 FROM records WHERE agent IN ('', ?) AND kind IN {marks(filters.kinds)} LIMIT 1 OFFSET ?"
    return connection.value(beyond, filters.agent, *filters.kinds, SMALL_SCOPE) is not None


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
