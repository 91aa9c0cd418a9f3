"""Files of other programs: the graph of the reference memory server, a Claude Code transcript, notes."""

from __future__ import annotations

from pathlib import Path

from tests.transfer.foreign_rows import lines, message


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
