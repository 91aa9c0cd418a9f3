"""Filters as OData, and keyword queries in the service's query language. Only here such texts are written.

Values are quoted; a keyword query holds our own tokens, which are letters, digits and `_` in lower case, so that
nothing a user wrote is parsed by the service.
"""

from collections.abc import Callable, Iterable, Sequence

from mindex.analyzer import COLUMNS, fold, is_lone
from mindex.datatypes import AllOf, AnyOf, Filters, KeywordNode, Phrase, Prefix, Term, Without
from mindex.store.engine_parts import is_glob

CHUNKS = "doctype eq 'chunk'"
# Chunks and the documents that carry their further vectors.
VECTORS = "(doctype eq 'chunk' or doctype eq 'part')"
_DELIMITERS = "|,;~\t\x1f"

WORD_FIELDS = tuple(f"words_{name}" for name in COLUMNS)


# ── conditions ────────────────────────────────────────────────────────────────────────────────────────────────


def quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def both(*conditions: str) -> str:
    return " and ".join(one for one in conditions if one)


def any_of(field: str, values: Iterable[str]) -> str:
    """Whether a field has one of these values; there must be one."""
    wanted = list(dict.fromkeys(values))
    delimiter = next((one for one in _DELIMITERS if not any(one in value for value in wanted)), "")
    if len(wanted) == 1 or not delimiter or "" in wanted:
        return "(" + " or ".join(f"{field} eq {quoted(value)}" for value in wanted) + ")"
    return f"search.in({field}, {quoted(delimiter.join(wanted))}, {quoted(delimiter)})"


def has(field: str, value: str) -> str:
    """Whether a collection of texts holds a value."""
    return f"{field}/any(one: one eq {quoted(value)})"


def has_any(field: str, values: Iterable[str]) -> str:
    """Whether a collection of texts holds one of these values; there must be one."""
    return "(" + " or ".join(has(field, value) for value in dict.fromkeys(values)) + ")"


def starts_with(field: str, prefix: str) -> str:
    """Whether a text begins so: texts are ordered by their characters."""
    return f"({field} ge {quoted(prefix)} and {field} lt {quoted(prefix[:-1] + chr(ord(prefix[-1]) + 1))})"


# ── scopes ────────────────────────────────────────────────────────────────────────────────────────────────────


def scope(filters: Filters, glob: Callable[[str], Sequence[str]], what: str = CHUNKS) -> str | None:
    """The condition for what filters admit, or None when that can be nothing; `glob` finds the documents of a glob.

    Chunks have no agent, no end, no importance, and belong to no session.
    """
    if filters.kinds and "chunk" not in filters.kinds:
        return None
    if filters.entities or filters.session or filters.min_importance is not None or filters.min_confidence is not None:
        return None
    clauses = [what]
    choices = (
        ("collection", filters.collections),
        ("collection", filters.files_of),
        ("type", filters.types),
    )
    for field, values in choices:
        clauses += [any_of(field, values)] if values else []
    if filters.path and is_glob(filters.path):
        documents = glob(filters.path)
        if not documents:
            return None
        clauses.append(any_of("document", documents))
    elif filters.path:
        folder = filters.path.strip("/")
        clauses.append(f"(path eq {quoted(folder)} or {starts_with('path', f'{folder}/')})")
    if filters.tags:
        clauses.append(has_any("folded_tags", map(fold, filters.tags)))
    clauses += [has("folded_tags", fold(tag)) for tag in filters.all_tags]
    clauses += [f"created_at ge {filters.after}"] if filters.after is not None else []
    clauses += [f"created_at lt {filters.before}"] if filters.before is not None else []
    clauses += [_matches(filters.matching)] if filters.matching is not None else []
    clauses += [f"not {_matches(filters.without)}"] if filters.without is not None else []
    return both(*clauses)


def _matches(node: KeywordNode) -> str:
    return f"search.ismatch({quoted(query_text(node))}, {quoted(','.join(WORD_FIELDS))}, 'full', 'any')"


# ── keyword queries ───────────────────────────────────────────────────────────────────────────────────────────


def query_text(node: KeywordNode) -> str:
    """A keyword query in full Lucene syntax; a token without a column is looked for in all of `WORD_FIELDS`."""
    match node:
        case AllOf(nodes):
            return "(" + " AND ".join(map(query_text, nodes)) + ")"
        case AnyOf(nodes):
            return "(" + " OR ".join(map(query_text, nodes)) + ")"
        case Without(keep, drop):
            return f"({query_text(keep)} AND NOT {query_text(drop)})"
        case Term(token, column):
            return _in_column(token, column)
        case Prefix(token, column):
            return _in_column(f"{token}*", column)
        case Phrase(tokens, column):
            return _in_column(f'"{" ".join(tokens)}"', column)


def _in_column(term: str, column: str | None) -> str:
    return f"words_{column}:{term}" if column else term


def holding(token: str) -> KeywordNode:
    """What matches the records that hold a token; a lone character of an unspaced script begins pairs."""
    return Prefix(token) if is_lone(token) else Term(token)


def plain_tokens(node: KeywordNode) -> frozenset[str]:
    """The tokens of a query that is nothing but words, any of which will do; else none."""
    nodes = node.nodes if isinstance(node, AnyOf) else (node,)
    tokens = [one.token for one in nodes if isinstance(one, Term) and one.column is None]
    return frozenset(tokens) if len(tokens) == len(nodes) else frozenset()
