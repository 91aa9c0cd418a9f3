"""Databases and files of other programs, by their own schemas, with typical and broken rows.

Each `make` function writes one and returns how many rows an importer has to account for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from mindex.datatypes import Record
from mindex.memory import Memory
from mindex.store.export_rows import ExportRow
from mindex.transfer.importer_base import load_importer
from tests.mindex_compat.importers.foreign_programs import (
    memorizer,
    memory_exchange,
    memory_mcp,
    memory_search,
    mudpuppy,
    text_files,
)
from tests.transfer.foreign_rows import DAY, NOON, fill, insert, lines, message

__all__ = [
    "DATABASES",
    "DAY",
    "MAKERS",
    "NOON",
    "SCHEMAS",
    "fill",
    "imported_records",
    "insert",
    "lines",
    "make",
    "message",
]

MAKERS: Mapping[str, tuple[str, Callable[[Path], int]]] = {
    "memory-exchange": ("memory_exchange.db", memory_exchange.make),
    "memory-mcp": ("memory.db", memory_mcp.make),
    "mudpuppy": ("memory.db", mudpuppy.make),
    "memory-search": ("index.db", memory_search.make),
    "memory-search export": ("memory-export.json", memory_search.make_export),
    "memorizer": ("memory.db", memorizer.make),
    "reference-memory": ("memory.jsonl", text_files.make_reference_memory),
    "claude-code": ("0a1b.jsonl", text_files.make_claude_code),
    "notes": ("CLAUDE.md", text_files.make_notes),
}
DATABASES = tuple(name for name, (file, _) in MAKERS.items() if file.endswith(".db"))
SCHEMAS = {
    "memory-exchange": memory_exchange.SCHEMA,
    "memory-mcp": memory_mcp.SCHEMA,
    "mudpuppy": mudpuppy.SCHEMA,
    "memory-search": memory_search.SCHEMA,
    "memorizer": memorizer.SCHEMA,
}


def make(name: str, folder: Path) -> tuple[Path, int]:
    """Write one of them into a folder. Returns its path and how many rows it has."""
    folder.mkdir(parents=True, exist_ok=True)
    file, maker = MAKERS[name]
    return folder / file, maker(folder / file)


def imported_records(name: str, tmp_path: Path, memory: Memory) -> dict[str, Record]:
    """Import one of them. Returns the records, forgotten ones included, by their place: `facts 12`, `chunks[0]`."""
    path, _ = make(name, tmp_path / "from")
    memory.transfer.import_(path)
    read = load_importer(name.removesuffix(" export")).read(path)
    rows = [one for one in read if isinstance(one, ExportRow)]
    found = {row.where: memory.store.retrieval.record(row.record.id) for row in rows}
    return {where: record for where, record in found.items() if record is not None}
