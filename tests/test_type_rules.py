"""Types by rule: of chunks by their headings and lines, of memories by how they begin; both are filters."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.datatypes import TYPES
from mindex.files import indexer
from mindex.memory import Memory
from mindex.type_rules import MEMORY_TYPES, chunk_type, memory_type
from tests.conftest import write

TABLE = "| option | default |\n|---|---|\n| a | 1 |\n| b | 2 |\n| c | 3 |\n"


@pytest.mark.parametrize(
    ("headings", "text", "expected"),
    [
        (["Deploying", "Decision"], "Blue-green.", "decision"),
        (["Cabin", "Decision: no dogs upstairs"], "We agreed on it in May.", "decision"),
        (["Cabin", "Problem: the pump hums"], "No water comes.", "problem"),
        (["ADR 7: Use PostgreSQL", "Context"], "We need a queue.", "decision"),
        (["Storage"], "Status: accepted\n\nWe store rows.", "decision"),
        (["Handbook", "How to rotate the keys"], "Open the vault.", "how-to"),
        (["Parcels", "2. Installation"], "pip install parcels", "how-to"),
        (["Adding a provider"], "1. Write a module.\n2. Add its row.", "how-to"),
        (["Run the tests"], "```sh\nmake test\n```", "how-to"),
        (["Adding machines"], "They were built in 1890.", ""),
        (["Troubleshooting", "The printer"], "It is out of paper.", "problem"),
        (["Known issues"], "None.", "problem"),
        (["Cabin", "Decision: a new pump"], "Known issue: crash", "problem"),
        (["Decision"], "## Decision\n\n- **Known issue:** it hums", "problem"),
        (["Decision"], "We live with a known issue.", "decision"),
        (["Printer"], "**Problem:** no ink\n\n**Solution:** buy some", "problem"),
        (["Command reference", "add"], "`add FILE` adds a file.", "reference"),
        (["Options"], "1. Open `settings`.\n2. Press `Save`.", ""),
        (["Install the server", "Next steps"], "- Read on.", ""),
        (["Options"], "--all", "reference"),
        (["Numbers"], TABLE, "reference"),
        (["Numbers"], TABLE + "\nA long story.\nIt goes on.\nAnd on.\nAnd on.\nAnd on.", ""),
        (["Changelog", "1.2.0"], "- faster", "event"),
        (["[1.4.2] - 2026-03-01"], "- slower", "event"),
        (["Plans"], "- [ ] call Anna\n- [x] pay Bob\n", "task"),
        (["How the cache works"], "It keeps pages.", ""),
        (["Problems of philosophy"], "What can be known?", ""),
        (["An unusual reference case of law"], "It was heard twice.", ""),
        ([], "Nothing in particular.", ""),
    ],
)
def test_a_chunk_gets_its_type_from_its_headings_and_lines(headings: list[str], text: str, expected: str) -> None:
    assert chunk_type(headings, text) == expected
    assert not expected or expected in TYPES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("We decided to store parcels in hall 9.", "decision"),
        ("On Monday the team agreed to use Redis.", "decision"),
        ("Decision: no deploys on Friday", "decision"),
        ("To rebuild the search index, run make index.", "how-to"),
        ("How to reset the router: hold the button.", "how-to"),
        ("The export fails with a timeout on large ledgers.", "problem"),
        ("Bug: the invoice shows the wrong year", "problem"),
        ("The harbour office opens at eight.", "fact"),
        ("Anna decides what is bought.", "fact"),
        ("To her, tea is better than coffee.", "fact"),
        ("She never fails.", "fact"),
    ],
)
def test_a_memory_gets_its_type_from_its_beginning(text: str, expected: str) -> None:
    assert memory_type(text) == expected
    assert expected in (*MEMORY_TYPES, "fact")


def test_a_memory_gets_its_type_by_rule_unless_one_is_given(keyword_memory: Memory) -> None:
    by_rule = keyword_memory.add("We decided to store parcels in hall 9.")
    given = keyword_memory.add("We decided to paint hall 9 yellow.", type="event")
    assert keyword_memory.entries.find(by_rule.id).type == "decision"
    assert keyword_memory.entries.find(given.id).type == "event"


def test_search_and_list_are_filtered_by_the_type_of_chunks_and_memories(
    keyword_memory: Memory, tmp_path: Path
) -> None:
    text = "# Ledger\n\n## How to close the ledger\n\nSum it up.\n\n## Story\n\nThe ledger is old.\n"
    keyword_memory.index(write(tmp_path / "docs", {"a.md": text}))
    told = keyword_memory.add("To open the ledger again, use the red key.").id
    found = keyword_memory.search("ledger", types=["how-to"]).hits
    assert {hit.record.title or hit.record.id for hit in found} == {"Ledger > How to close the ledger", ""} - {""} | {
        told
    }
    page = keyword_memory.list(keyword_memory.filters(types=["how-to"], kinds=["chunk"]))
    assert [record.title for record in page.records] == ["Ledger > How to close the ledger"]


def test_chunks_get_their_types_at_the_next_index_and_stay_the_same_chunks(
    keyword_memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write(tmp_path / "docs", {"a.md": "# Ledger\n\n## Decision\n\nWe close it at night.\n"})
    with monkeypatch.context() as before_there_were_types:
        before_there_were_types.setattr(indexer, "chunk_type", lambda *_: "")
        before_there_were_types.setattr(indexer, "TYPE_RULES_VERSION", 0)
        keyword_memory.index(folder)
    (before,) = keyword_memory.list().records
    (report,) = keyword_memory.index(folder).collections
    (after,) = keyword_memory.list().records
    assert (before.type, after.type, after.id) == ("", "decision", before.id)
    assert (report.changed, report.chunks_kept, report.chunks_added) == (1, 1, 0)
