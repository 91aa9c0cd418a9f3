"""Size, health and repair of a PostgreSQL store."""

from __future__ import annotations

from collections import defaultdict

from mindex.datatypes import Check, Progress, Report
from mindex.errors import StoreError
from mindex.store.base import StoreStatus
from mindex.store.engine_parts import (
    SAMPLE,
    first_names,
    is_as_last_changed,
    read_changes,
    read_status,
    sample_check,
    vectors_check,
    words_check,
)
from mindex_postgres import record_rows, words
from mindex_postgres.engine import PostgresEngine, rebuild_words
from mindex_postgres.transaction import Transaction
from mindex_postgres.vector_rows import IS_OWNER, lacking_indexes

_WORDS_OF = "SELECT record, title, text, summary, tags, identifiers FROM words WHERE record = ANY(%s)"
_SIZE = """
SELECT coalesce(sum(pg_total_relation_size(c.oid)), 0)::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = %s AND c.relkind = 'r'
"""
_COUNT_WITHOUT_WORDS = """
SELECT count(*) FROM records r WHERE r.retired_at IS NULL AND NOT EXISTS (
    SELECT 1 FROM words w JOIN terms t ON t.owner = w.owner AND t.record = w.record
    WHERE w.owner = r.owner AND w.record = r.id
)
"""
_COUNT_STRAY_WORDS = """
SELECT count(*) FROM (SELECT owner, record FROM words UNION SELECT owner, record FROM terms) w WHERE NOT EXISTS
(SELECT 1 FROM records r WHERE r.owner = w.owner AND r.id = w.record AND r.retired_at IS NULL)
"""
_STRAY_VECTORS = """
NOT EXISTS (SELECT 1 FROM records r WHERE r.owner = v.owner AND r.id = v.record AND r.retired_at IS NULL)
"""
_BROKEN_VECTORS = "vector_dims(v.embedding) != (SELECT s.dimensions FROM spaces s WHERE s.key = v.space)"
_COUNTS_OF_VECTORS = """
SELECT name, sum(change)::bigint FROM counts WHERE starts_with(name, ' vectors ') GROUP BY name HAVING sum(change) != 0
"""


class PostgresMaintenance:
    """Implements `mindex.store.base.Maintenance`."""

    def __init__(self, engine: PostgresEngine) -> None:
        self._engine = engine
        self._database = engine.database
        self._vectors = engine.vector_rows

    def status(self) -> StoreStatus:
        place, schema = self._database.place, self._engine.schema
        with self._database.read() as transaction:
            if transaction.restricted:
                grants = self._database.own_grants(transaction)
                return read_status(transaction, location=place, schema=schema, size=None, granted=grants)
            size = int(transaction.value(_SIZE, self._database.address.schema))
            return read_status(transaction, location=place, schema=schema, size=size)

    def check(self) -> tuple[Check, ...]:
        with self._database.read(long=True) as transaction:
            checks = *_checks(transaction), _vector_indexes(transaction)
        return checks if self._database.replica is None else (*checks, self._database.replica.check())

    def check_deep(self, report: Report | None = None) -> tuple[Check, ...]:
        with self._database.read(long=True) as transaction:
            return deep_checks(transaction, report)

    def damaged(self) -> tuple[str, ...]:
        """None: a row that the server cannot return is an error of the call."""
        return ()

    def optimize(self) -> None:
        """Rebuild what is derived where it is wrong, merge counts, index large spaces, and let the server clean up."""

        def repair(transaction: Transaction) -> None:
            if not all(check.ok for check in _checks(transaction)):
                if not transaction.value(IS_OWNER):
                    raise StoreError(
                        f"only the owner of {self._database.place} can rebuild its indexes",
                        "have a login of the owner's role run `mindex optimize`",
                    )
                rebuild_words(transaction)
                transaction.run(f"DELETE FROM vectors v WHERE {_STRAY_VECTORS} OR {_BROKEN_VECTORS}")
                _recount_vectors(transaction)
            words.merge_counts(transaction)

        self._engine.write(repair, long=True)
        self._vectors.wait_for_indexes()
        self._vectors.build_indexes()
        self._engine.vacuum(("records", "words", "terms", "vectors", "counts", "cache", "access_log", "accesses"))


def _checks(transaction: Transaction) -> tuple[Check, ...]:
    return _words(transaction), _vectors_of_records(transaction), _tokens(transaction)


def _words(transaction: Transaction) -> Check:
    """Every live record is in the keyword index, nothing else is, and they are counted."""
    lacking = transaction.value(_COUNT_WITHOUT_WORDS)
    stray = transaction.value(_COUNT_STRAY_WORDS)
    counted = words.read_counts(transaction, [words.RECORDS])[words.RECORDS]
    miscounted = counted != transaction.value("SELECT count(*) FROM words")
    return words_check(lacking, stray, "the counts of words are wrong" if miscounted else "")


def _vectors_of_records(transaction: Transaction) -> Check:
    stray = transaction.value(f"SELECT count(*) FROM vectors v WHERE {_STRAY_VECTORS}")
    broken = transaction.value(f"SELECT count(*) FROM vectors v WHERE {_BROKEN_VECTORS}")
    is_counted = stray or broken or transaction.restricted
    miscounted = not is_counted and _pieces(transaction) != dict(transaction.rows(_COUNTS_OF_VECTORS))
    return vectors_check(stray, broken, "the counts of vectors are wrong" if miscounted else "")


def _vector_indexes(transaction: Transaction) -> Check:
    """Every large group of vectors has its index: without one, a search is right, and slow."""
    lacking = len(lacking_indexes(transaction))
    bad = f"{lacking} large groups of vectors have no index, so searches compare all of them" if lacking else ""
    fix = "run `mindex optimize` with a login that owns the tables"
    return Check("vector index", not bad, bad or "every large group of vectors has its index", fix)


def _pieces(transaction: Transaction) -> dict[str, int]:
    rows = transaction.rows("SELECT space, kind_group, count(*) FROM vectors GROUP BY space, kind_group")
    return {record_rows.vector_count(space, group): count for space, group, count in rows}


def _recount_vectors(transaction: Transaction) -> None:
    transaction.write_counts()
    transaction.run("DELETE FROM counts WHERE starts_with(name, ' vectors ')")
    transaction.count(_pieces(transaction))
    transaction.write_counts()


def _tokens(transaction: Transaction) -> Check:
    """A sample of records is analysed again and compared with what the index holds."""
    ids = transaction.column("SELECT id FROM records WHERE retired_at IS NULL ORDER BY random() LIMIT %s", SAMPLE)
    stored = {id_: columns for id_, *columns in transaction.rows(_WORDS_OF, ids)}
    records = record_rows.read_records(transaction, ids)
    different = sum(stored.get(record.id) != words.indexed_columns(record) for record in records)
    return sample_check(len(ids), different)


# ── checks that read everything ───────────────────────────────────────────────────────────────────────────────

# Whether its pages are sound is for the server to know: it has its own checksums, and an error of it fails the check.
_BATCH = 500
_RESTORE = "restore a backup of the server"
_PAGE = "SELECT seq, id FROM records WHERE seq > %s ORDER BY seq LIMIT %s"
# Columns without a foreign key that name a record.
_NAMING_RECORDS = (
    ("history", "record"), ("links", "source"), ("links", "target"), ("accesses", "record"), ("extractions", "record"),
)  # fmt: skip
_COUNT_STRAYS = "SELECT count(*) FROM {table} t WHERE NOT EXISTS (SELECT 1 FROM records r WHERE r.id = t.{column})"
_CHUNKS_WITHOUT_FILE = """
SELECT count(*) FROM records r WHERE r.kind = 'chunk' AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.id = r.document)
"""


def deep_checks(transaction: Transaction, report: Report | None) -> tuple[Check, ...]:
    """Every check, in one snapshot. A row that the server cannot return ends them, with its error as the result."""
    try:
        return (*_records(transaction, report), _references(transaction), _pages(transaction))
    except (StoreError, ValueError, TypeError, KeyError) as error:
        return (Check("all rows", False, str(error), _RESTORE),)


def _records(transaction: Transaction, report: Report | None) -> tuple[Check, ...]:
    total = transaction.value("SELECT count(*) FROM records")
    last = done = different = 0
    unlike: list[str] = []
    while page := transaction.rows(_PAGE, last, _BATCH):
        ids = [id_ for _, id_ in page]
        records = record_rows.read_records(transaction, ids, retired=True)
        changes = defaultdict(list)
        for change in read_changes(transaction, "record = ANY(%s)", ids):
            changes[change.record].append(change)
        stored = {id_: columns for id_, *columns in transaction.rows(_WORDS_OF, ids)}
        for record in records:
            if record.kind != "chunk" and not is_as_last_changed(record, changes[record.id]):
                unlike.append(record.id)
            if record.retired_at is None:
                different += stored.get(record.id) != words.indexed_columns(record)
        last = page[-1][0]
        done += len(page)
        if report is not None:
            report(Progress("check", done, max(done, total)))
    bad = f"{len(unlike)} entries differ from their last change: {first_names(tuple(unlike))}" if unlike else ""
    analysed = f"{done:,} analysed again, {different} differ"
    return (
        Check("all rows", True, f"{done:,} records and their changes can be read"),
        Check("history", not bad, bad or "every entry is as its last change left it", _RESTORE),
        Check("words of all records", not different, analysed, "run `mindex optimize`"),
    )


def _references(transaction: Transaction) -> Check:
    """Check that everything that a row names exists; a login that sees a part cannot know."""
    if transaction.restricted:
        return Check("references", True, "not checked: this login sees a part of the records")
    strays = [
        f"{count} of {table}.{column}"
        for table, column in _NAMING_RECORDS
        if (count := transaction.value(_COUNT_STRAYS.format(table=table, column=column)))
    ]
    if count := transaction.value(_CHUNKS_WITHOUT_FILE):
        strays.append(f"{count} chunks without their file")
    message = f"lead nowhere: {', '.join(strays)}" if strays else "every reference leads somewhere"
    return Check("references", not strays, message, _RESTORE)


def _pages(transaction: Transaction) -> Check:
    checked = transaction.value("SELECT current_setting('data_checksums')") == "on"
    message = (
        "the server checks its pages" if checked else "the server does not check its pages (data_checksums is off)"
    )
    return Check("pages", True, message)
