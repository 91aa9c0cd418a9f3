"""Notes for agents: each section becomes a memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.store.export_rows import ExportRow
from mindex.transfer.importer_base import detect_importer, load_importer
from tests.conftest import write

FENCED = """# Deploy

Run this:

```sh
# not a heading
make deploy
## neither is this
```

## Afterwards

- [ ] tell *everyone*
"""


def records(name: str, path: Path) -> list[ExportRow]:
    return [one for one in load_importer(name).read(path) if isinstance(one, ExportRow)]


def test_each_section_is_a_memory_with_its_text_unchanged(tmp_path: Path) -> None:
    write(tmp_path, {"CLAUDE.md": FENCED})
    deploy, afterwards = (row.record for row in records("notes", tmp_path / "CLAUDE.md"))
    assert f"{deploy.text}\n\n{afterwards.text}\n" == FENCED
    assert (deploy.title, afterwards.title) == ("Deploy", "Deploy > Afterwards")
    assert (deploy.type, deploy.context, deploy.kind) == ("reference", "CLAUDE.md", "memory")
    assert deploy.created_at == int((tmp_path / "CLAUDE.md").stat().st_mtime * 1000)


def test_notes_are_found_at_any_depth_and_nothing_else(tmp_path: Path, keyword_memory: Memory) -> None:
    words = "# Rules\n\nThese are the rules of {}.\n"
    names = ("CLAUDE.md", "app/AGENTS.md", "app/.claude/CLAUDE.local.md", "x/memory/MEMORY.md", "x/memory/topic.md")
    others = ("README.md", "node_modules/p/CLAUDE.md", ".git/AGENTS.md", "app/notes.txt")
    root = write(tmp_path / "root", {name: words.format(name) for name in (*names, *others)})
    assert detect_importer(root).name == "notes"
    report = keyword_memory.transfer.import_(root)
    assert report.added == len(names)
    assert {row.record.context for row in records("notes", root)} == set(names)


def test_the_same_section_in_two_files_is_one_memory(tmp_path: Path, keyword_memory: Memory) -> None:
    write(tmp_path / "n", {"CLAUDE.md": "# Rules\n\nUse tabs.\n", "AGENTS.md": "# Rules\n\nUse tabs.\n"})
    report = keyword_memory.transfer.import_(tmp_path / "n")
    assert (report.added, report.duplicates) == (1, 1)


def test_a_section_that_was_forgotten_stays_forgotten(tmp_path: Path, keyword_memory: Memory) -> None:
    write(tmp_path / "n", {"CLAUDE.md": "# Rules\n\nUse tabs.\n"})
    keyword_memory.transfer.import_(tmp_path / "n")
    (hit,) = keyword_memory.search("tabs").hits
    keyword_memory.forget(hit.record.id)
    assert keyword_memory.transfer.import_(tmp_path / "n" / "CLAUDE.md").added == 0


def test_any_markdown_folder_is_read_when_the_format_is_given(tmp_path: Path, keyword_memory: Memory) -> None:
    root = write(tmp_path / "vault", {"a.md": "# A\n\nOne thing.\n", "b/c.md": "Another thing.\n", "d.txt": "no"})
    assert keyword_memory.transfer.import_(root, source="notes").added == 2
    assert keyword_memory.transfer.import_(root / "d.txt", source="notes").added == 1
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="holds no notes"):
        keyword_memory.transfer.import_(tmp_path / "empty", source="notes")


def test_notes_that_cannot_be_read_are_skipped_by_name(tmp_path: Path, keyword_memory: Memory) -> None:
    root = write(tmp_path / "n", {"CLAUDE.md": "\n", "a/AGENTS.md": "x" * (2 * 1024 * 1024 + 1), "b/MEMORY.md": "Yes."})
    (root / "GEMINI.md").write_bytes(b"a\0b")
    report = keyword_memory.transfer.import_(root)
    assert (report.read, report.added) == (1, 1)
    assert {one.where: one.reason for one in report.skipped} == {
        "CLAUDE.md": "it is empty",
        "GEMINI.md": "binary file (it holds NUL bytes)",
        "a/AGENTS.md": "it is larger than 2,097,152 bytes",
    }
