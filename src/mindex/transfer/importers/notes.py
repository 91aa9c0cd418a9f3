"""Notes kept for agents (CLAUDE.md, AGENTS.md, MEMORY.md, GEMINI.md …): each section is a memory to look up."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mindex.ingest.decode import BinaryFile, decode
from mindex.ingest.markdown import chunk_markdown
from mindex.model import Record
from mindex.remember.summary import summarize
from mindex.transfer.base import Row, Unread, foreign_id

_NAMES = frozenset(("claude.md", "claude.local.md", "agents.md", "memory.md", "gemini.md", "copilot-instructions.md"))
_MAX_BYTES = 2 * 1024 * 1024


class Notes:
    name = "notes"

    def recognises(self, path: Path) -> bool:
        return bool(_files(path))

    def read(self, path: Path) -> Iterator[Row | Unread]:
        for file in _files(path) or ([path] if path.is_file() else []):
            name = file.relative_to(path).as_posix() if path.is_dir() else file.name
            try:
                if file.stat().st_size > _MAX_BYTES:
                    yield Unread(name, f"it is larger than {_MAX_BYTES:,} bytes")
                    continue
                text = decode(file.read_bytes())
            except (OSError, BinaryFile) as error:
                yield Unread(name, str(error))
                continue
            yield from self._sections(name, text, int(file.stat().st_mtime * 1000))

    def _sections(self, name: str, text: str, at: int) -> Iterator[Row]:
        for chunk in chunk_markdown(text).chunks:
            yield Row(
                Record(
                    id=foreign_id(self.name, name, " > ".join(chunk.breadcrumb), chunk.text),
                    kind="memory",
                    text=chunk.text,
                    title=" > ".join(chunk.breadcrumb),
                    agent="main",
                    created_at=at,
                    updated_at=at,
                    type="reference",
                    summary=summarize(chunk.text),
                    context=name,
                    source=f"{self.name}:{name}:{foreign_id(self.name, chunk.text)}",
                    importance=6,
                    confidence=1.0,
                )
            )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path] if path.name.lower() in _NAMES else []
    return sorted(file for file in path.rglob("*.md") if file.name.lower() in _NAMES) if path.is_dir() else []


importer = Notes()
