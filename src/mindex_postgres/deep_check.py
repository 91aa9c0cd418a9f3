"""Checks that read all of a PostgreSQL store: every record with its changes and words, and what names another row.

Whether its pages are sound is for the server to know: it has its own checksums, and an error of it fails the check.
"""

from collections import defaultdict

from mindex.datatypes import Check, Progress, Report
from mindex.errors import StoreError
from mindex.store.engine_parts import first_names, is_as_last_changed, read_changes
from mindex_postgres import record_rows, words
from mindex_postgres.connection import Transaction

_BATCH = 500
_RESTORE = "restore a backup of the server"
_PAGE = "SELECT seq, id FROM records WHERE seq > %s ORDER BY seq LIMIT %s"
_WORDS_OF = "SELECT record, title, text, summary, tags, identifiers FROM words WHERE record = ANY(%s)"
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
