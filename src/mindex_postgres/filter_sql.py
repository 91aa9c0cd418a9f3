"""Filters and keyword queries as SQL: the part of the records a search may see, decided before any top k is taken."""

from collections.abc import Iterator, Sequence

from mindex.analyzer import COLUMNS, fold, is_lone
from mindex.datatypes import AllOf, AnyOf, Filters, KeywordNode, Phrase, Prefix, Term, Without
from mindex.store.engine_parts import Condition, join, live_records, plain_terms
from mindex_postgres import words
from mindex_postgres.dialect import DIALECT
from mindex_postgres.transaction import Transaction

_FOREIGN = "EXISTS (SELECT 1 FROM records WHERE agent > '' AND agent != %s)"
_EXPIRED = "EXISTS (SELECT 1 FROM records WHERE expires_at <= %s)"
_MATCHING = "EXISTS (SELECT 1 FROM terms w WHERE w.owner = r.owner AND w.record = r.id AND {match})"

_IN_COLUMNS = "EXISTS (SELECT 1 FROM words t WHERE t.owner = w.owner AND t.record = w.record AND ({there}))"


def condition(transaction: Transaction, filters: Filters, now: int) -> Condition:
    """All that the filters demand of a live record."""
    demands = [*_of_collections(filters), *_of_names(filters), *_of_words(transaction, filters)]
    return live_records(DIALECT, filters, now, demands)


def _of_collections(filters: Filters) -> Iterator[Condition]:
    if filters.collections:
        yield Condition("r.document IS NOT NULL AND r.owner = ANY(%s)", (list(filters.collections),))
    if filters.files_of:
        yield Condition("(r.document IS NULL OR r.owner = ANY(%s))", (list(filters.files_of),))


def _of_names(filters: Filters) -> Iterator[Condition]:
    if filters.tags:
        yield Condition("r.folded_tags && %s::text[]", (list(map(fold, filters.tags)),))
    if filters.all_tags:
        yield Condition("r.folded_tags @> %s::text[]", (list(map(fold, filters.all_tags)),))
    if filters.entities:
        yield Condition("r.folded_entities && %s::text[]", (list(map(fold, filters.entities)),))


def _of_words(transaction: Transaction, filters: Filters) -> Iterator[Condition]:
    for node, wanted in ((filters.matching, ""), (filters.without, "NOT ")):
        if node is not None:
            match = match_condition(transaction, node)
            yield Condition(wanted + _MATCHING.format(match=match.sql), match.parameters)


def sees_everything(transaction: Transaction, filters: Filters, now: int) -> bool:
    """Whether the filters leave no live record out, so that they need not be applied row by row."""
    if not is_unrestricted(filters):
        return False
    hides = [Condition(_FOREIGN, (filters.agent,))] if filters.agent != "*" else []
    hides += [Condition(_EXPIRED, (now,))] if not filters.include_expired else []
    if not hides:
        return True
    either = join(" OR ", hides)
    return not transaction.value(f"SELECT {either.sql}", *either.parameters)


def is_unrestricted(filters: Filters) -> bool:
    """Whether the filters demand no more than an agent, and that nothing has expired."""
    return filters == Filters(agent=filters.agent, include_expired=filters.include_expired)


# ── keyword queries ───────────────────────────────────────────────────────────────────────────────────────────


def match_condition(transaction: Transaction, node: KeywordNode) -> Condition:
    """Which rows of `terms w` a keyword query matches. Tokens are parameters: nothing of the user's is parsed."""
    match node:
        case AllOf(nodes):
            return _grouped(" AND ", [match_condition(transaction, one) for one in nodes])
        case AnyOf(nodes):
            if terms := plain_terms(node):
                return holds_any([term.token for term in terms])
            return _grouped(" OR ", [match_condition(transaction, one) for one in nodes])
        case Without(keep, drop):
            kept, dropped = match_condition(transaction, keep), match_condition(transaction, drop)
            return Condition(f"({kept.sql} AND NOT {dropped.sql})", kept.parameters + dropped.parameters)
        case Prefix(token, column):
            held = holds_any(words.with_prefix(transaction, token))
        case Phrase(tokens, column):
            held = Condition("w.terms @> %s::bigint[]", (list(map(words.term_number, tokens)),))
        case Term(token, column):
            held = holds_any([token])
            if column is None:
                return held
    if isinstance(node, Prefix) and column is None:
        return held
    text = needle(node)
    columns = [column] if column else list(COLUMNS)
    there = join(" OR ", [Condition(f"strpos(t.{one}, %s) > 0", (text,)) for one in columns])
    return _grouped(" AND ", [held, Condition(_IN_COLUMNS.format(there=there.sql), there.parameters)])


def holds_any(tokens: Sequence[str]) -> Condition:
    """Which rows of `terms w` hold at least one of these tokens."""
    return Condition("w.terms && %s::bigint[]", (list(map(words.term_number, tokens)),))


def needle(leaf: Term | Prefix | Phrase) -> str:
    """The text that a column holds where it holds this leaf of a query."""
    match leaf:
        case Term(token):
            return f" {token} "
        case Prefix(token):
            return f" {token}"
        case Phrase(tokens):
            return f" {'  '.join(tokens)} "


def token_condition(transaction: Transaction, token: str) -> Condition:
    """Which rows hold a token; a single character of a script without spaces counts where it begins a pair."""
    return match_condition(transaction, Prefix(token) if is_lone(token) else Term(token))


def _grouped(operator: str, conditions: list[Condition]) -> Condition:
    joined = join(operator, conditions)
    return Condition(f"({joined.sql})", joined.parameters)
