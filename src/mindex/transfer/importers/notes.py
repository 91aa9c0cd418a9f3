"""Notes kept for agents (CLAUDE.md, AGENTS.md, MEMORY.md, GEMINI.md …): each section is a memory to look up.

A folder is searched for them at any depth; one `memory` folder with a MEMORY.md is taken whole. Asked for by name
(`--from notes`), any markdown file is read, and any folder of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mindex.errors import UsageError
from mindex.ingest.chunker import chunk_markdown
from mindex.ingest.text_decoding import BinaryFile, decode
from mindex.transfer.importer import ExportRow, SkippedRow, foreign_id
from mindex.transfer.importers.folder_files import files_below
from mindex.transfer.importers.sqlite_source import EMPTY, memory

_NAMES = frozenset(("claude.md", "claude.local.md", "agents.md", "memory.md", "gemini.md", "copilot-instructions.md"))
_MAX_BYTES = 2 * 1024 * 1024
_IMPORTANCE = 6  # somebody took the trouble to write it down for every session


class Notes:
    name = "notes"

    def recognises(self, path: Path) -> bool:
        return next(_known(path), None) is not None

    def read(self, path: Path) -> Iterator[ExportRow | SkippedRow]:
        found = False
        for file in list(_known(path)) or list(_any(path)):
            found = True
            name = file.relative_to(path).as_posix() if path.is_dir() else file.name
            try:
                stat = file.stat()
                if stat.st_size > _MAX_BYTES:
                    yield SkippedRow(name, f"it is larger than {_MAX_BYTES:,} bytes", row=False)
                    continue
                text = decode(file.read_bytes())
            except OSError as error:
                yield SkippedRow(name, error.strerror or "it cannot be read", row=False)
            except BinaryFile as error:
                yield SkippedRow(name, str(error), row=False)
            else:
                yield from self._sections(name, text, int(stat.st_mtime * 1000))
        if not found:
            raise UsageError(f"{path} holds no notes", "they are markdown files, such as CLAUDE.md")

    def _sections(self, name: str, text: str, at: int) -> Iterator[ExportRow | SkippedRow]:
        parsed = chunk_markdown(text)
        if not parsed.chunks:
            yield SkippedRow(name, EMPTY, row=False)
        for chunk in parsed.chunks:
            title = " > ".join(chunk.breadcrumb)
            # The same section in CLAUDE.md and in AGENTS.md is one memory.
            id_ = foreign_id(self.name, title, chunk.text)
            record = memory(
                id_,
                chunk.text,
                at,
                title=title,
                tags=parsed.front_matter.tags,
                type="reference",
                context=name,
                source=f"{self.name}:{name}:{id_}",
                importance=_IMPORTANCE,
            )
            yield ExportRow(record, where=f"{name}:{chunk.first_line}-{chunk.last_line}")


def _known(path: Path) -> Iterator[Path]:
    if path.is_dir():
        for file in files_below(path, _is_markdown):
            if file.name.lower() in _NAMES or (file.parent.name == "memory" and (file.parent / "MEMORY.md").is_file()):
                yield file
    elif path.is_file() and path.name.lower() in _NAMES:
        yield path


def _any(path: Path) -> Iterator[Path]:
    if path.is_dir():
        yield from files_below(path, _is_markdown)
    elif path.is_file():
        yield path


def _is_markdown(name: str) -> bool:
    return name.lower().endswith((".md", ".markdown"))


importer = Notes()
