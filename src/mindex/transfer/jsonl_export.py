"""Everything told as JSONL: a header, then one record a line, in order of agent and number. Nothing is lost.

The same data gives the same bytes. A history too long for one line goes on in the lines below it (`more`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from mindex.store.export_rows import ExportRow, ExportSnapshot
from mindex.transfer.jsonl_rows import history_json, row_json

FORMAT = 1
# What a reader accepts; a writer stays far below it.
LONGEST_LINE = 16 * 1024 * 1024
_LONGEST_HISTORY = 4 * 1024 * 1024


def written(dump: ExportSnapshot, schema: int) -> Iterator[bytes]:
    header = {"mindex": FORMAT, "schema": schema, "records": dump.total, "last_numbers": dict(dump.last_numbers)}
    yield _compact(header).encode() + b"\n"
    for row in dump.rows:
        yield record_lines(row).encode()


def record_lines(row: ExportRow) -> str:
    head = _compact(row_json(row))
    first, *more = _portions([_compact(entry) for entry in history_json(row.record, row.history)])
    lines = [f'{head[:-1]},"history":[{first}]}}' if first else head]
    lines += (f'{{"id":{_compact(row.record.id)},"more":[{portion}]}}' for portion in more)
    return "\n".join(lines) + "\n"


def _portions(entries: list[str]) -> list[str]:
    """Changes joined until a line is long enough; at least one portion, empty when there are none."""
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
