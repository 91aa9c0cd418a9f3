"""Checks of a SQLite file, and the repair of its vectors."""

import sqlite3

from mindex.analyzer import COLUMNS, analyze_record
from mindex.model import Check
from mindex.store.sqlite import record_rows
from mindex.store.sqlite.queries import read_column, read_value

_SAMPLE = 200
_BEYOND_REPAIR = "restore a backup, or move the file away and index again"

_COUNT_WITHOUT_WORDS = """
SELECT count(*) FROM records WHERE retired_at IS NULL AND key NOT IN (SELECT id FROM records_fts_docsize)
"""
_COUNT_STRAY_WORDS = """
SELECT count(*) FROM records_fts_docsize WHERE id NOT IN (SELECT key FROM records WHERE retired_at IS NULL)
"""
_STRAY_VECTORS = "record NOT IN (SELECT key FROM records WHERE retired_at IS NULL)"
_BROKEN_VECTORS = """
length(data) = 0 OR length(data) % (4 * (SELECT dimensions FROM models m WHERE m.key = model)) != 0
"""


def checks(connection: sqlite3.Connection) -> tuple[Check, ...]:
    """Every check; one that cannot even be made because the file is damaged says so instead of raising."""
    named = {"file": _integrity, "keyword index": _words, "vectors": _vectors, "words of a sample": _tokens}
    found = []
    for name, check in named.items():
        try:
            found.append(check(connection))
        except sqlite3.DatabaseError as error:
            found.append(Check(name, False, str(error), _BEYOND_REPAIR))
    return tuple(found)


def _integrity(connection: sqlite3.Connection) -> Check:
    result = read_value(connection, "PRAGMA quick_check(1)")
    message = "the file is sound" if result == "ok" else " ".join(str(result).split())
    return Check("file", result == "ok", message, _BEYOND_REPAIR)


def _words(connection: sqlite3.Connection) -> Check:
    """Every live record is in the keyword index, and nothing else is."""
    lacking = read_value(connection, _COUNT_WITHOUT_WORDS)
    stray = read_value(connection, _COUNT_STRAY_WORDS)
    bad = f"{lacking} records lack words, {stray} entries lack a record" if lacking or stray else ""
    return Check("keyword index", not bad, bad or "every record is in the keyword index", "run `mindex optimize`")


def _vectors(connection: sqlite3.Connection) -> Check:
    stray = read_value(connection, f"SELECT count(*) FROM vectors WHERE {_STRAY_VECTORS}")
    broken = read_value(connection, f"SELECT count(*) FROM vectors WHERE {_BROKEN_VECTORS}")
    bad = f"{stray} vectors lack a record, {broken} are malformed" if stray or broken else ""
    fix = "run `mindex optimize`, then `mindex backfill`"
    return Check("vectors", not bad, bad or "every vector belongs to a record", fix)


def drop_unusable_vectors(connection: sqlite3.Connection) -> None:
    """Vectors without a record or of a wrong length; their records are pending then, and embedded again."""
    query = f"DELETE FROM vectors WHERE {_STRAY_VECTORS} OR {_BROKEN_VECTORS} RETURNING record"
    record_rows.note_changes(connection, read_column(connection, query))


def _tokens(connection: sqlite3.Connection) -> Check:
    """A sample of records is analysed again and compared with what the index holds."""
    sample = "SELECT id FROM records WHERE retired_at IS NULL ORDER BY random() LIMIT ?"
    ids = read_column(connection, sample, _SAMPLE)
    different = 0
    for record in record_rows.read_records(connection, ids):
        row = connection.execute(
            f"SELECT {', '.join(COLUMNS)} FROM records_fts WHERE rowid = (SELECT key FROM records WHERE id = ?)",
            (record.id,),
        ).fetchone()
        different += row != analyze_record(record)
    message = f"{len(ids)} records analysed again, {different} differ"
    return Check("words of a sample", not different, message, "run `mindex optimize`")
