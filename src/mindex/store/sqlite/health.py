"""Checks of a SQLite file, and the repair of its vectors."""

import sqlite3

from mindex.analyzer import COLUMNS, analyze_record
from mindex.model import Check
from mindex.store.sqlite import record_rows

_SAMPLE = 200


_BEYOND_REPAIR = "restore a backup, or move the file away and index again"


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
    (result,) = connection.execute("PRAGMA quick_check(1)").fetchone()
    message = "the file is sound" if result == "ok" else " ".join(str(result).split())
    return Check("file", result == "ok", message, _BEYOND_REPAIR)


def _words(connection: sqlite3.Connection) -> Check:
    """Every live record is in the keyword index, and nothing else is."""
    (lacking,) = connection.execute(
        "SELECT count(*) FROM records WHERE retired_at IS NULL AND key NOT IN (SELECT id FROM records_fts_docsize)"
    ).fetchone()
    (stray,) = connection.execute(
        "SELECT count(*) FROM records_fts_docsize WHERE id NOT IN (SELECT key FROM records WHERE retired_at IS NULL)"
    ).fetchone()
    ok = not lacking and not stray
    message = (
        "every record is in the keyword index" if ok else f"{lacking} records lack words, {stray} entries lack a record"
    )
    return Check("keyword index", ok, message, "run `mindex optimize`")


def _vectors(connection: sqlite3.Connection) -> Check:
    (stray,) = connection.execute(
        "SELECT count(*) FROM vectors WHERE record NOT IN (SELECT key FROM records WHERE retired_at IS NULL)"
    ).fetchone()
    (broken,) = connection.execute(
        "SELECT count(*) FROM vectors v JOIN models m ON m.key = v.model"
        " WHERE length(v.data) = 0 OR length(v.data) % (4 * m.dimensions) != 0"
    ).fetchone()
    ok = not stray and not broken
    message = "every vector belongs to a record" if ok else f"{stray} vectors lack a record, {broken} are malformed"
    return Check("vectors", ok, message, "run `mindex optimize`, then `mindex backfill`")


def drop_unusable_vectors(connection: sqlite3.Connection) -> None:
    """Vectors without a record or of a wrong length; their records are pending then, and embedded again."""
    rows = connection.execute(
        "DELETE FROM vectors WHERE record NOT IN (SELECT key FROM records WHERE retired_at IS NULL)"
        " OR length(data) = 0 OR length(data) % (4 * (SELECT dimensions FROM models m WHERE m.key = model)) != 0"
        " RETURNING record"
    ).fetchall()
    record_rows.note_changes(connection, [record for (record,) in rows])


def _tokens(connection: sqlite3.Connection) -> Check:
    """A sample of records is analysed again and compared with what the index holds."""
    ids = [id_ for (id_,) in connection.execute(
        "SELECT id FROM records WHERE retired_at IS NULL ORDER BY random() LIMIT ?", (_SAMPLE,)
    )]  # fmt: skip
    different = 0
    for record in record_rows.read_records(connection, ids):
        row = connection.execute(
            f"SELECT {', '.join(COLUMNS)} FROM records_fts WHERE rowid = (SELECT key FROM records WHERE id = ?)",
            (record.id,),
        ).fetchone()
        columns = analyze_record(record)
        different += row != (columns.title, columns.text, columns.summary, columns.tags, columns.identifiers)
    message = f"{len(ids)} records analysed again, {different} differ"
    return Check("words of a sample", not different, message, "run `mindex optimize`")
