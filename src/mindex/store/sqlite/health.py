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
from mindex.store.sql.checks import OPTIMIZE, SAMPLE, sample_check, vectors_check, words_check
from mindex.store.sqlite import record_rows
from mindex.store.sqlite.damaged_file import row_name, scan_table
from mindex.store.sqlite.file_guard import log_is_older, logs_set_aside
from mindex.store.sqlite.filter_sql import match_expression
from mindex.store.sqlite.postings import LAST_CHANGE, SEQ, has_postings
from mindex.store.sqlite.sql_connection import SqlConnection
from mindex.temporary_files import left_behind

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


def checks(connection: SqlConnection) -> tuple[Check, ...]:
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


def log_checks(path: Path, connection: SqlConnection) -> tuple[Check, ...]:
    """What is wrong with the write-ahead log, as far as it is known; empty if all is well."""
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


def history_checks(connection: SqlConnection) -> tuple[Check, ...]:
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


def _integrity(connection: SqlConnection) -> Check:
    result = connection.value("PRAGMA quick_check(1)")
    message = "the file is sound" if result == "ok" else " ".join(str(result).split())
    return Check("file", result == "ok", message, REPAIR)


def _words(connection: SqlConnection) -> Check:
    """Every live record is in the keyword index, and nothing else is."""
    lacking = connection.value(_COUNT_WITHOUT_WORDS)
    stray = connection.value(_COUNT_STRAY_WORDS)
    return words_check(lacking, stray)


def _vectors(connection: SqlConnection) -> Check:
    stray = connection.value(f"SELECT count(*) FROM vectors WHERE {_STRAY_VECTORS}")
    broken = connection.value(f"SELECT count(*) FROM vectors WHERE {_BROKEN_VECTORS}")
    return vectors_check(stray, broken)


def _postings(connection: SqlConnection) -> Check:
    """Some words are looked up in the posting lists, and by FTS5."""
    from mindex.store.sqlite import posting_index  # numpy, which the other checks do without

    lists = posting_index.load(connection, connection.value(SEQ))
    lists.catch_up(connection, connection.value(LAST_CHANGE))
    texts = connection.column("SELECT text FROM records_fts ORDER BY random() LIMIT ?", SAMPLE // 10)
    words = sorted({choice(words) for text in texts if (words := text.split())})
    different = 0
    for word in words:
        query = "SELECT rowid FROM records_fts WHERE records_fts MATCH ? ORDER BY rowid"
        found = lists.keys[lists.holders(connection, word)].tolist()
        different += sorted(found) != connection.column(query, match_expression(Term(word)))
    message = f"{len(words)} words looked up, {different} are in other records than the keyword index says"
    return Check("posting lists", not different, message, OPTIMIZE)


def drop_unusable_vectors(connection: SqlConnection) -> None:
    """Vectors without a record or of a wrong length; their records are pending then, and embedded again."""
    query = f"DELETE FROM vectors WHERE {_STRAY_VECTORS} OR {_BROKEN_VECTORS} RETURNING record"
    record_rows.note_changes(connection, connection.column(query))


def _tokens(connection: SqlConnection) -> Check:
    """A sample of records is analysed again and compared with what the index holds."""
    sample = "SELECT id FROM records WHERE retired_at IS NULL ORDER BY random() LIMIT ?"
    ids = connection.column(sample, SAMPLE)
    different = 0
    for record in record_rows.read_records(connection, ids):
        row = connection.execute(
            f"SELECT {', '.join(COLUMNS)} FROM records_fts WHERE rowid = (SELECT key FROM records WHERE id = ?)",
            (record.id,),
        ).fetchone()
        different += row != analyze_record(record)
    return sample_check(len(ids), different)
