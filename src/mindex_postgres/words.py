"""The keyword index of a PostgreSQL store: the tokens of every live record, and how many records hold each."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from hashlib import blake2b

from mindex.analyzer import ANALYZER_VERSION, COLUMN_WEIGHTS, COLUMNS, analyze_record
from mindex.datatypes import Record
from mindex_postgres import visible_counts
from mindex_postgres.transaction import Transaction

# Names in `counts`; no token is empty or has a space in it.
RECORDS, LENGTH = "", " "
_INDEX = f"""
INSERT INTO words (seq, owner, record, length, tokens, {", ".join(COLUMNS)})
SELECT seq, owner, id, {", ".join(["%s"] * (2 + len(COLUMNS)))} FROM records WHERE owner = %s AND id = %s
"""
_INDEX_TERMS = """
INSERT INTO terms (seq, owner, record, length, terms, frequencies)
SELECT seq, owner, id, %s, %s::bigint[], %s::real[] FROM records WHERE owner = %s AND id = %s
"""
_REMOVE = "DELETE FROM words WHERE record = ANY(%s) AND owner = ANY(%s) RETURNING tokens, length"
_REMOVE_TERMS = "DELETE FROM terms WHERE record = ANY(%s) AND owner = ANY(%s)"
_TERMS = """
SELECT name, sum(change)::bigint FROM counts
WHERE name >= %s AND name < %s AND left(name, 1) NOT IN ('', ' ') AND length(name) BETWEEN %s AND %s
GROUP BY name HAVING sum(change) > 0 ORDER BY name LIMIT %s
"""
_MERGE = """
WITH gone AS (
    DELETE FROM counts WHERE name IN (SELECT name FROM counts GROUP BY name HAVING count(*) > 1) RETURNING name, change
)
INSERT INTO counts SELECT name, sum(change) FROM gone GROUP BY name HAVING sum(change) != 0
"""


def indexed_columns(record: Record) -> list[str]:
    """The columns of a record as they are stored: each token between two separate spaces."""
    return [f" {column.replace(' ', '  ')} " if column else "" for column in analyze_record(record)]


def term_number(token: str) -> int:
    """The number of a token in the table `terms`: 64 bits of its hash, so no two tokens of a language share one."""
    return int.from_bytes(blake2b(token.encode(), digest_size=8).digest(), "big", signed=True)


def index(transaction: Transaction, owner: str, record: Record) -> None:
    """Make a record findable by its words; its row is there, and it is not in the index yet."""
    columns = indexed_columns(record)
    frequencies: defaultdict[str, float] = defaultdict(float)
    for name, column in zip(COLUMNS, columns, strict=True):
        for token in column.split():
            frequencies[token] += COLUMN_WEIGHTS[name]
    length = sum(column.count(" ") // 2 for column in columns)
    terms = dict(sorted((term_number(token), frequency) for token, frequency in frequencies.items()))
    transaction.defer(_INDEX, length, list(frequencies), *columns, owner, record.id)
    transaction.defer(_INDEX_TERMS, length, list(terms), list(terms.values()), owner, record.id)
    transaction.count({RECORDS: 1, LENGTH: length, **dict.fromkeys(frequencies, 1)})


def remove(transaction: Transaction, owners: Iterable[str], ids: Sequence[str]) -> None:
    """Take records out of the index; those that are not in it are left out."""
    among = list(ids), list(set(owners))
    transaction.defer(_REMOVE_TERMS, *among)
    for tokens, length in transaction.rows(_REMOVE, *among):
        transaction.count({RECORDS: -1, LENGTH: -length, **dict.fromkeys(tokens, -1)})


def index_again(transaction: Transaction, owner: str, record: Record) -> None:
    """Bring the index up to date with a record that changed; a retired one leaves it."""
    remove(transaction, [owner], [record.id])
    if record.retired_at is None:
        index(transaction, owner, record)


def merge_counts(transaction: Transaction) -> None:
    """Make one row of all changes of a count; another process that does so already is not waited for."""
    if transaction.try_lock("counts"):
        transaction.run("SELECT merge_counts()" if transaction.restricted else _MERGE)


def read_counts(transaction: Transaction, names: Sequence[str]) -> dict[str, int]:
    """The counts of these names; 0 if there is none."""
    transaction.write_counts()
    if transaction.restricted:
        return visible_counts.read_counts(transaction, names, term_number)
    query = "SELECT name, sum(change)::bigint FROM counts WHERE name = ANY(%s) GROUP BY name"
    return dict.fromkeys(names, 0) | dict(transaction.rows(query, list(names)))


def with_prefix(transaction: Transaction, prefix: str) -> list[str]:
    """The tokens that start with a prefix."""
    if transaction.restricted:
        return visible_counts.with_prefix(transaction, prefix)
    query = "SELECT DISTINCT name FROM counts WHERE name >= %s AND name < %s"
    return transaction.column(query, prefix, prefix + "\U0010ffff")


def read_terms(transaction: Transaction, prefix: str, shortest: int, longest: int, limit: int) -> dict[str, int]:
    """See `RetrievalStore.terms`. Other counts than those of tokens have names that begin with a space, or none."""
    transaction.write_counts()
    if transaction.restricted:
        return visible_counts.read_terms(transaction, prefix, shortest, longest, limit)
    return dict(transaction.rows(_TERMS, prefix, prefix + "\U0010ffff", shortest, longest, limit))


def analyzer_version(transaction: Transaction) -> int:
    return int(transaction.value("SELECT value FROM meta WHERE key = 'analyzer'"))


def note_analyzer(transaction: Transaction) -> None:
    transaction.run("UPDATE meta SET value = %s WHERE key = 'analyzer'", str(ANALYZER_VERSION))
