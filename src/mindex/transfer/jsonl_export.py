"""The JSONL export: a header, then one record a line, in order of agent and number. Nothing of an entry is lost.

The same data gives the same bytes. A history too long for one line continues in the lines below it (`more`). The
collections that were imported follow, each with its documents, and each of these with its chunks, in lines below it.
"""

import json
from collections.abc import Iterator, Sequence

from mindex.store.export_rows import EXPORT_SCHEMA, ExportRow, ExportSnapshot
from mindex.transfer.imported_collections import ImportedCollection
from mindex.transfer.jsonl_rows import encode_chunk, encode_collection, encode_document, encode_history, encode_row

FORMAT = 1
# The longest line that an import reads; exported lines stay far below it.
LONGEST_LINE = 16 * 1024 * 1024
_LONGEST_HISTORY = 4 * 1024 * 1024


def export_lines(snapshot: ExportSnapshot, imported: Sequence[ImportedCollection] = ()) -> Iterator[bytes]:
    """Yield the header, then the lines of each record, then those of imported collections."""
    last_numbers = dict(snapshot.last_numbers)
    header = {"mindex": FORMAT, "schema": EXPORT_SCHEMA, "records": snapshot.total, "last_numbers": last_numbers}
    if chunks := sum(one.chunks for one in imported):
        header["chunks"] = chunks
    yield _compact(header).encode() + b"\n"
    for row in snapshot.rows:
        yield record_lines(row).encode()
    for one in imported:
        yield _compact(encode_collection(one.collection)).encode() + b"\n"
        for document, records in one.documents():
            lines = [encode_document(document), *map(encode_chunk, records)]
            yield "".join(_compact(line) + "\n" for line in lines).encode()


def record_lines(row: ExportRow) -> str:
    """Return a record's line, and those in which its history continues."""
    record = _compact(encode_row(row))
    first, *more = _portions([_compact(entry) for entry in encode_history(row.record, row.history)])
    lines = [f'{record[:-1]},"history":[{first}]}}' if first else record]
    lines += (f'{{"id":{_compact(row.record.id)},"more":[{portion}]}}' for portion in more)
    return "\n".join(lines) + "\n"


def _portions(entries: list[str]) -> list[str]:
    """Join changes until a line is long enough. At least one portion, empty when there are no changes."""
    portions: list[list[str]] = [[]]
    size = 0
    for entry in entries:
        if portions[-1] and size + len(entry) > _LONGEST_HISTORY:
            portions.append([])
            size = 0
        portions[-1].append(entry)
        size += len(entry)
    return [",".join(portion) for portion in portions]


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
