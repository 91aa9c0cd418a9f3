"""What keyword searches of the engines share: the records that a search may see, and queries of plain words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from mindex.datatypes import AnyOf, Filters, KeywordNode, Term
from mindex.store.results import ScoredRecord
from mindex.store.sql.dialect import Condition
from mindex.values import dataclass, replace

if TYPE_CHECKING:
    from mindex.store.sql.engine import Statements

# A scope of at most this number of records is counted separately: how rare a word is among them, not among all. Each
# word is looked up twice for that, so it has to be small.
SMALL_SCOPE = 2_000


@dataclass(frozen=True, slots=True)
class Scope:
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
