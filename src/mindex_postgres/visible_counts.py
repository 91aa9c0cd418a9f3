"""Counts of the records that a login sees where row-level security is on: the table of counts knows words of all.

Every statement reads the login's own rows, so the time grows with their number.
"""

from collections.abc import Callable, Sequence

from mindex_postgres.transaction import Transaction

_WORDS = "SELECT count(*), coalesce(sum(length), 0)::bigint{tokens} FROM terms"
_HOLDS = ", count(*) FILTER (WHERE terms[width_bucket(%s::bigint, terms)] = %s)"
_VECTORS = "SELECT count(*) FROM vectors WHERE space = %s AND kind_group = %s"
_PREFIX = """
SELECT token, count(*) FROM words, unnest(tokens) token WHERE token >= %s AND token < %s
AND length(token) BETWEEN %s AND %s GROUP BY token ORDER BY token LIMIT %s
"""
_LONGEST, _MOST = 2**30, 2**60


def read_counts(transaction: Transaction, names: Sequence[str], number: Callable[[str], int]) -> dict[str, int]:
    """The counts of these names (see the table `counts`) among the records that this login sees.

    `number` returns the number of a token in `terms`.
    """
    counts = dict.fromkeys(names, 0)
    words = [name for name in names if not name.startswith(" vectors ")]
    if words:
        tokens = [name for name in words if name.strip()]
        numbers = [number(token) for token in tokens for _ in range(2)]
        row = transaction.row(_WORDS.format(tokens=_HOLDS * len(tokens)), *numbers)
        assert row is not None
        counted = {"": row[0], " ": row[1]} | dict(zip(tokens, row[2:], strict=True))
        counts |= {name: counted[name] for name in words}
    for name in counts.keys() - set(words):
        space, group = name.split()[1:]
        counts[name] = int(transaction.value(_VECTORS, int(space), int(group)))
    return counts


def with_prefix(transaction: Transaction, prefix: str) -> list[str]:
    """The tokens of these records that start with a prefix."""
    return list(read_terms(transaction, prefix, 0, _LONGEST, _MOST))


def read_terms(transaction: Transaction, prefix: str, shortest: int, longest: int, limit: int) -> dict[str, int]:
    """See `RetrievalStore.terms`."""
    return dict(transaction.rows(_PREFIX, prefix, prefix + "\U0010ffff", shortest, longest, limit))
