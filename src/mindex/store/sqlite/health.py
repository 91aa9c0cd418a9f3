"""Checks of a SQLite file, and the repair of its vectors."""

import shlex
import sqlite3
from pathlib import Path
from random import choice

from mindex.analyzer import COLUMNS, analyze_record
from mindex.datatypes import Check, Term
from mindex.optional_packages import missing_packages
from mindex.private_files import is_public
from mindex.store.damage_notes import REPAIR, first_names
from mindex.store.sqlite import record_rows
from mindex.store.sqlite.file_guard import log_is_older, logs_set_aside
from mindex.store.sqlite.filter_sql import match_expression
from mindex.store.sqlite.postings import LAST_CHANGE, SEQ, has_postings
from mindex.store.sqlite.queries import read_column, read_value
from mindex.store.sqlite.table_scan import row_name, scan_table
from mindex.temporary_files import left_behind

_SAMPLE = 200

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
    if has_postings(connection) and not missing_packages():  # they are arrays of numpy
        named["posting lists"] = _postings
    found = []
    for name, check in named.items():
        try:
            found.append(check(connection))
        except sqlite3.DatabaseError as error:
            found.append(Check(name, False, str(error), REPAIR))
    return tuple(found)


def access_check(path: Path) -> Check:
    """Whether other users of this machine are kept out of the file and of those that SQLite has beside it."""
    beside = [path.with_name(f"{path.name}{suffix}") for suffix in ("", "-wal", "-shm")]
    public = [str(file.absolute()) for file in beside if is_public(file)]
    message = f"every user of this machine may open {path.absolute()}" if public else "other users cannot open the file"
    return Check("access", not public, message, f"chmod 600 {' '.join(map(shlex.quote, public))}")


def log_checks(path: Path, connection: sqlite3.Connection) -> tuple[Check, ...]:
    """Describe what is wrong with the write-ahead log, as far as that is visible; empty if nothing is wrong."""
    found = []
    if log_is_older(path, connection):
        message = f"the write-ahead log beside {path.absolute()} is older than the file: it belongs to another copy"
        advice = "put a backup in its place with `mindex restore-backup FILE`"
        found.append(Check("write-ahead log", False, message, advice))
    for file in logs_set_aside(path.absolute()):
        message = f"{file} holds what was last stored in a file that was moved away or replaced"
        advice = "remove it if nothing is missed, or rename it to FILE-wal beside that file"
        found.append(Check("write-ahead log", False, message, advice))
    return tuple(found)


def history_checks(connection: sqlite3.Connection) -> tuple[Check, ...]:
    """Changes that are not as they were stored, which no search reads; nothing where all are."""
    try:
        damaged = tuple(row_name("history", row) for row in scan_table(connection, "history") if not row.sound)
    except sqlite3.DatabaseError as error:
        return (Check("changes", False, str(error), REPAIR),)
    if not damaged:
        return ()
    return (Check("changes", False, f"{len(damaged)} are damaged: {first_names(damaged)}", REPAIR),)


def leftover_checks(path: Path) -> tuple[Check, ...]:
    """Temporary files beside the database whose processes were killed; empty if there are none."""
    advice = "remove it, or run `mindex optimize`, which removes those of mindex 0.1.0 only when they are a day old"
    return tuple(
        Check("temporary file", False, f"{file} was left behind by a killed process and may contain entries", advice)
        for file in left_behind(path.absolute().parent)
    )


def _integrity(connection: sqlite3.Connection) -> Check:
    result = read_value(connection, "PRAGMA quick_check(1)")
    message = "the file is sound" if result == "ok" else " ".join(str(result).split())
    return Check("file", result == "ok", message, REPAIR)


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


def _postings(connection: sqlite3.Connection) -> Check:
    """Some words are looked up in the posting lists, and by FTS5."""
    from mindex.store.sqlite import posting_index  # numpy, which the other checks do without

    lists = posting_index.load(connection, read_value(connection, SEQ))
    lists.catch_up(connection, read_value(connection, LAST_CHANGE))
    texts = read_column(connection, "SELECT text FROM records_fts ORDER BY random() LIMIT ?", _SAMPLE // 10)
    words = sorted({choice(words) for text in texts if (words := text.split())})
    different = 0
    for word in words:
        query = "SELECT rowid FROM records_fts WHERE records_fts MATCH ? ORDER BY rowid"
        found = lists.keys[lists.holders(connection, word)].tolist()
        different += sorted(found) != read_column(connection, query, match_expression(Term(word)))
    message = f"{len(words)} words looked up, {different} are in other records than the keyword index says"
    return Check("posting lists", not different, message, "run `mindex optimize`")


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
