"""Notes for agents (CLAUDE.md, AGENTS.md, MEMORY.md, GEMINI.md …): each section is a reference memory.

A folder is searched for them at any depth; of a `memory` folder with a MEMORY.md, every file is read. With
`--from notes`, any markdown file is read, and any folder of them.
"""

from collections.abc import Iterator
from pathlib import Path

from mindex.errors import UsageError
from mindex.files.chunker import chunk_markdown
from mindex.files.text_decoding import BinaryFile, decode
from mindex.regular_files import read_regular
from mindex.transfer.importer_base import EMPTY, Importer, ReadRow, SkippedRow, foreign_id, memory_row
from mindex.transfer.importers.source_files import read_files, wanted_files

_NAMES = frozenset(("claude.md", "claude.local.md", "agents.md", "memory.md", "gemini.md", "copilot-instructions.md"))
_MAX_BYTES = 2 * 1024 * 1024
_IMPORTANCE = 6  # it was written down for every session


class Notes(Importer):
    name = "notes"

    def recognises(self, path: Path) -> bool:
        return next(_known_notes(path), None) is not None

    def read(self, path: Path) -> Iterator[ReadRow]:
        files = list(_known_notes(path)) or list(_markdown_files(path))
        if not files:
            raise UsageError(f"{path} holds no notes", "they are markdown files, such as CLAUDE.md")
        yield from read_files(path, files, self._sections)

    def _sections(self, file: Path, name: str) -> Iterator[ReadRow]:
        stat = file.stat()
        if stat.st_size > _MAX_BYTES:
            yield SkippedRow(name, f"it is larger than {_MAX_BYTES:,} bytes", row=False)
            return
        try:
            parsed = chunk_markdown(decode(read_regular(file)))
        except BinaryFile as error:
            yield SkippedRow(name, str(error), row=False)
            return
        if not parsed.chunks:
            yield SkippedRow(name, EMPTY, row=False)
        for chunk in parsed.chunks:
            title = " > ".join(chunk.breadcrumb)
            # The same section in CLAUDE.md and in AGENTS.md is one memory.
            id_ = foreign_id(self.name, title, chunk.text)
            yield memory_row(
                f"{name}:{chunk.first_line}-{chunk.last_line}",
                id_,
                chunk.text,
                int(stat.st_mtime * 1000),
                title=title,
                tags=parsed.front_matter.tags,
                type="reference",
                context=name,
                source=f"{self.name}:{name}:{id_}",
                importance=_IMPORTANCE,
            )


def _known_notes(path: Path) -> Iterator[Path]:
    def is_known(file: Path) -> bool:
        in_memory_folder = file.parent.name == "memory" and (file.parent / "MEMORY.md").is_file()
        return file.name.lower() in _NAMES or (path.is_dir() and _is_markdown(file) and in_memory_folder)

    return wanted_files(path, is_known)


def _markdown_files(path: Path) -> Iterator[Path]:
    return wanted_files(path, lambda file: file == path or _is_markdown(file))


def _is_markdown(file: Path) -> bool:
    return file.name.lower().endswith((".md", ".markdown"))


importer = Notes()
