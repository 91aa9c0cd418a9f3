"""mudpuppy's database: memories with integer ids, which they keep as their numbers where those are free.

A row with the source `file-index` is a whole file of its workspace: a reference memory. Every edit of the file left the
older row in place; those are imported as superseded by the newest. Better still: index the workspace itself. Access
counts and the access log are kept, and vectors are made again.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from mindex.transfer.importer_parts import Access, OtherRows, ReadRow, accesses, foreign_id, memory_row
from mindex.transfer.importer_parts import foreign_values as foreign
from mindex_compat.foreign_sqlite import ForeignDatabase, ForeignRow
from mindex_compat.importers.sqlite_source import INDEX, VECTORS, DatabaseImporter, key_of

_COLUMNS = (
    "id content entry_type source context confidence importance tags created_at updated_at expires_at"
    " access_count last_accessed_at"
).split()
_FILE = "file-index"

# The tags of an indexed file, which name its path → when its newest row was made, and the id of that row.
_NewestRows = Mapping[tuple[str, ...], tuple[int, str]]


class Mudpuppy(DatabaseImporter):
    name = "mudpuppy"
    needs = {"memory_entries": ("content",)}
    tables = ("memory_entries",)
    parts = ("memory_access_log",)
    left_out = {
        "memory_entries.content_hash": "made again from the content",
        "memory_access_log.id": "not kept; the accesses stay as long as access_log.days and access_log.rows say",
        "memory_fts": INDEX,
        "vec_entries": VECTORS,
    }

    def last_numbers(self, path: Path) -> Mapping[str, int]:
        with ForeignDatabase(path) as database:
            return {"": database.last("memory_entries", "id")}

    def rows(self, database: ForeignDatabase) -> Iterator[ReadRow]:
        newest = self._newest_rows(database)
        log, timeless = _access_log(database)
        for row in database.rows("memory_entries", *_COLUMNS):
            yield self._entry(row, newest, log.pop(key_of(row), []), database.modified)
        yield OtherRows("memory_access_log", timeless, "it has no time")
        yield OtherRows("memory_access_log", sum(map(len, log.values())), "its memory is missing")

    def _newest_rows(self, database: ForeignDatabase) -> _NewestRows:
        found: dict[tuple[str, ...], tuple[int, str]] = {}
        for row in database.rows("memory_entries", "id", "content", "source", "tags", "created_at"):
            path = foreign.texts(row["tags"])
            if row["source"] == _FILE and path and foreign.text(row["content"]).strip():
                at = foreign.time_ms(row["created_at"], database.modified)
                if path not in found or at >= found[path][0]:
                    found[path] = (at, self._id(row))
        return found

    def _id(self, row: ForeignRow) -> str:
        return foreign_id(self.name, key_of(row), row["created_at"], foreign.text(row["content"]))

    def _entry(self, row: ForeignRow, newest: _NewestRows, log: Sequence[Access], modified: int) -> ReadRow:
        key, id_, source = key_of(row), self._id(row), foreign.text(row["source"]) or "manual"
        at, tags = foreign.time_ms(row["created_at"], modified), foreign.texts(row["tags"])
        newest_at, newest_id = newest.get(tags, (at, id_)) if row["source"] == _FILE else (at, id_)
        superseded = (newest_at, newest_id) != (at, id_)
        return memory_row(
            f"memory_entries {key}",
            id_,
            foreign.text(row["content"]),
            at,
            tags=tags,
            updated_at=foreign.time_ms(row["updated_at"], at),
            number=foreign.integer(key),
            type="reference" if source == _FILE else foreign.memory_type(row["entry_type"]),
            context=foreign.text(row["context"]),
            source=source,
            importance=foreign.importance(row["importance"]),
            confidence=foreign.confidence(row["confidence"]),
            expires_at=foreign.expiry_ms(row["expires_at"]),
            retired_at=max(newest_at, at) if superseded else None,
            superseded_by=newest_id if superseded else "",
            fields=foreign.extra_fields(
                foreign_ids={self.name: key}, entry_type=foreign.unknown_type(row["entry_type"])
            ),
            accesses=accesses(
                foreign.integer(row["access_count"]), foreign.expiry_ms(row["last_accessed_at"]), tuple(log)
            ),
            parts={"memory_access_log": len(log)},
        )


def _access_log(database: ForeignDatabase) -> tuple[dict[str, list[Access]], int]:
    """Return the accesses of each entry, in order, and how many rows have no time."""
    found: defaultdict[str, list[Access]] = defaultdict(list)
    timeless = 0
    columns = ("memory_id", "accessed_at", "access_type", "relevance_score", "query_text")
    for row in database.rows("memory_access_log", *columns):
        id_, at = foreign.text(row["memory_id"]), foreign.time_ms(row["accessed_at"])
        timeless += not at
        if at:
            action, query = foreign.text(row["access_type"]) or "get", foreign.text(row["query_text"])
            found[id_].append(Access(id_, at, action, query, foreign.number(row["relevance_score"])))
    return dict(found), timeless


importer = Mudpuppy()
