"""The records that a keyword search may see, and how many they are where that is cheap to say."""

import sqlite3

from mindex.datatypes import Filters
from mindex.store.sql.dialect import Condition
from mindex.store.sqlite.filter_sql import condition, sees_everything
from mindex.store.sqlite.queries import marks, read_value
from mindex.values import dataclass, replace

# In a scope of at most this size, words are counted in the scope: how rare a word is among them, not among all. Each
# word is looked up twice for that, so it has to be small.
_SMALL_SCOPE = 2_000


@dataclass(frozen=True, slots=True)
class Scope:
    """The records that filters admit. `condition` is None if that is all of them; `size` is counted if small."""

    condition: Condition | None = None
    size: int | None = None


def scope_of(connection: sqlite3.Connection, filters: Filters, now: int) -> Scope:
    if sees_everything(connection, filters, now):
        return Scope()
    scope = condition(filters, now)
    return Scope(scope, _size_if_small(connection, filters, scope))


def _size_if_small(connection: sqlite3.Connection, filters: Filters, scope: Condition) -> int | None:
    """How many records are in scope, if few: of a scope that indexes know, an agent, kind, collection or session.

    To count the records with any other property would mean to read all of them.
    """
    whose = Filters(agent=filters.agent, kinds=filters.kinds, collections=filters.collections, session=filters.session)
    if replace(filters, include_expired=whose.include_expired, files_of=()) != whose:
        return None
    if filters.kinds and filters.agent != "*" and _has_more(connection, filters, _SMALL_SCOPE):
        return None
    count = f"SELECT count(*) FROM (SELECT 1 FROM records r WHERE {scope.sql} LIMIT ?)"
    size = int(read_value(connection, count, *scope.parameters, _SMALL_SCOPE + 1))
    return size if size <= _SMALL_SCOPE else None


def _has_more(connection: sqlite3.Connection, filters: Filters, count: int) -> bool:
    """Whether an agent has more records of these kinds, retired and expired ones among them: an index alone knows."""
    beyond = f"SELECT 1 FROM records WHERE agent IN ('', ?) AND kind IN {marks(filters.kinds)} LIMIT 1 OFFSET ?"
    return read_value(connection, beyond, filters.agent, *filters.kinds, count) is not None
