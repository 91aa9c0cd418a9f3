"""Files of other programs: the graph of the reference memory server, a Claude Code transcript, notes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.mindex_compat.importers.foreign_programs.build import lines


def make_reference_memory(path: Path) -> int:
    lines(
        path,
        {"type": "entity", "name": "Ada", "entityType": "person", "observations": ["Speaks Greek", "Ada likes tea"]},
        {"type": "entity", "name": "ACME", "entityType": "company", "observations": []},
        {"type": "relation", "from": "Ada", "to": "ACME", "relationType": "works_at"},
        '{"type": "entity", "name": "Ad',
        {"type": "relation", "from": "Ada", "to": "", "relationType": "knows"},
    )
    return 2 + 1 + 1 + 1 + 1


def message(type_: str, content: Any, number: int = 1, **more: Any) -> dict[str, Any]:
    """A line of a Claude Code transcript."""
    return {
        "type": type_, "sessionId": "session-1", "uuid": f"uuid-{number}", "cwd": "/src/app", "isSidechain": False,
        "timestamp": "2026-03-01T12:00:00.123Z", "message": {"role": type_, "content": content}, **more,
    }  # fmt: skip


def make_claude_code(path: Path) -> int:
    lines(
        path,
        {"type": "summary", "summary": "About the parser", "leafUuid": "uuid-9"},
        message("user", "Why is the parser slow?", 1),
        message("assistant", [{"type": "text", "text": "It copies."}], 2),
        "{broken",
        message("user", [{"type": "text", "text": "Fix it."}], 3),
        message("assistant", [{"type": "text", "text": "Done."}], 4),
    )
    return 2 + 1


def make_notes(path: Path) -> int:
    path.write_text("# Rules\n\nUse tabs.\n\n## Tests\n\nRun them all, every time.\n", encoding="utf-8")
    return 2
