"""Size, health and repair of a PostgreSQL store."""

from mindex.model import Check
from mindex.store.base import CollectionCount, StoreStatus
from mindex.store.postgres import caches, record_rows, words
from mindex.store.postgres.connection import Transaction
from mindex.store.postgres.engine import PostgresEngine, rebuild_words
from mindex.store.postgres.vector_store import PostgresVectorStore

_COUNT_KINDS = "SELECT kind, count(*) FROM records WHERE retired_at IS NULL GROUP BY kind"
_COUNT_COLLECTIONS = """
SELECT c.name, (SELECT count(*) FROM documents d WHERE d.collection = c.name),
    (SELECT count(*) FROM records r WHERE r.owner = c.name AND r.kind = 'chunk')
FROM collections c
"""
_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'
"""
_SAMPLE = 200
_COUNT_WITHOUT_WORDS = """
SELECT count(*) FROM records r WHERE r.retired_at IS NULL
AND NOT EXISTS (SELECT 1 FROM words w WHERE w.owner = r.owner AND w.record = r.id)
"""
_COUNT_STRAY_WORDS = """
SELECT count(*) FROM words w WHERE NOT EXISTS
(SELECT 1 FROM records r WHERE r.owner = w.owner AND r.id = w.record AND r.retired_at IS NULL)
"""
_STRAY_VECTORS = """
NOT EXISTS (SELECT 1 FROM records r WHERE r.owner = v.owner AND r.id = v.record AND r.retired_at IS NULL)
"""
_BROKEN_VECTORS = "vector_dims(v.embedding) != (SELECT s.dimensions FROM spaces s WHERE s.key = v.space)"
_COUNTS_OF_VECTORS = """
SELECT name, sum(change)::bigint FROM counts WHERE starts_with(name, ' vectors ') GROUP BY name HAVING sum(change) != 0
"""
_WORDS_OF = "SELECT record, title, text, summary, tags, identifiers FROM words WHERE record = ANY(%s)"


class PostgresMaintenance:
    """Implements `mindex.store.base.Maintenance`."""

    def __init__(self, engine: PostgresEngine, vectors: PostgresVectorStore) -> None:
        self._engine = engine
        self._database = engine.database
        self._vectors = vectors

    def status(self) -> StoreStatus:
        with self._database.read() as transaction:
            kinds = dict(transaction.rows(_COUNT_KINDS))
            counted = transaction.rows(_COUNT_COLLECTIONS)
            cached = caches.count_values(transaction)
            size = transaction.value(_SIZE, self._database.address.schema)
        return StoreStatus(
            location=self._database.place,
            schema=self._engine.schema,
            records=kinds,
            collections={name: CollectionCount(documents, chunks) for name, documents, chunks in counted},
            size_bytes=size,
            caches=cached,
        )

    def check(self) -> tuple[Check, ...]:
        with self._database.read() as transaction:
            return _checks(transaction)

    def optimize(self) -> None:
        """Rebuild what is derived where it is wrong, merge counts, index large spaces, and let the server clean up."""

        def repair(transaction: Transaction) -> None:
            if not all(check.ok for check in _checks(transaction)):
                rebuild_words(transaction)
                transaction.execute(f"DELETE FROM vectors v WHERE {_STRAY_VECTORS} OR {_BROKEN_VECTORS}")
                _recount_vectors(transaction)
            words.merge_counts(transaction)

        self._engine.write(repair)
        self._vectors.pack()
        self._engine.vacuum(("records", "words", "vectors", "counts", "cache", "access_log", "accesses"))


def _checks(transaction: Transaction) -> tuple[Check, ...]:
    return _words(transaction), _vectors_of_records(transaction), _tokens(transaction)


def _words(transaction: Transaction) -> Check:
    """Every live record is in the keyword index, nothing else is, and they are counted."""
    lacking = transaction.value(_COUNT_WITHOUT_WORDS)
    stray = transaction.value(_COUNT_STRAY_WORDS)
    counted = words.read_counts(transaction, [words.RECORDS])[words.RECORDS]
    miscounted = counted != transaction.value("SELECT count(*) FROM words")
    bad = f"{lacking} records lack words, {stray} entries lack a record" if lacking or stray else ""
    bad = bad or ("the counts of words are wrong" if miscounted else "")
    return Check("keyword index", not bad, bad or "every record is in the keyword index", "run `mindex optimize`")


def _vectors_of_records(transaction: Transaction) -> Check:
    stray = transaction.value(f"SELECT count(*) FROM vectors v WHERE {_STRAY_VECTORS}")
    broken = transaction.value(f"SELECT count(*) FROM vectors v WHERE {_BROKEN_VECTORS}")
    bad = f"{stray} vectors lack a record, {broken} are malformed" if stray or broken else ""
    if not bad and _pieces(transaction) != dict(transaction.rows(_COUNTS_OF_VECTORS)):
        bad = "the counts of vectors are wrong"
    fix = "run `mindex optimize`, then `mindex backfill`"
    return Check("vectors", not bad, bad or "every vector belongs to a record", fix)


def _pieces(transaction: Transaction) -> dict[str, int]:
    rows = transaction.rows("SELECT space, kind_group, count(*) FROM vectors GROUP BY space, kind_group")
    return {record_rows.vector_count(space, group): count for space, group, count in rows}


def _recount_vectors(transaction: Transaction) -> None:
    transaction.write_counts()
    transaction.execute("DELETE FROM counts WHERE starts_with(name, ' vectors ')")
    transaction.count(_pieces(transaction))
    transaction.write_counts()


def _tokens(transaction: Transaction) -> Check:
    """A sample of records is analysed again and compared with what the index holds."""
    ids = transaction.column("SELECT id FROM records WHERE retired_at IS NULL ORDER BY random() LIMIT %s", _SAMPLE)
    stored = {id_: columns for id_, *columns in transaction.rows(_WORDS_OF, ids)}
    records = record_rows.read_records(transaction, ids)
    different = sum(stored.get(record.id) != words.indexed_columns(record) for record in records)
    message = f"{len(ids)} records analysed again, {different} differ"
    return Check("words of a sample", not different, message, "run `mindex optimize`")
