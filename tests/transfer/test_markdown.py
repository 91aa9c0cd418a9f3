"""An export as a markdown folder, and its import."""

from __future__ import annotations

import json
import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindex.datatypes import Record
from mindex.errors import ConflictError, UsageError
from mindex.memory import Memory
from mindex.transfer import export, markdown_export
from mindex.transfer.importer_base import ExportRow, SkippedRow
from mindex.transfer.importers.markdown import importer
from tests.transfer.conftest import fill


def live(memory: Memory, agent: str = "*") -> dict[str, Record]:
    with memory.store.entries.export_snapshot(agent) as dump:
        return {row.record.id: row.record for row in dump.rows if row.record.retired_at is None}


def files(folder: Path) -> list[str]:
    return sorted(file.relative_to(folder).as_posix() for file in folder.rglob("*") if file.is_file())


# ── there and back ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_live_records_of_a_folder_are_imported(memory: Memory, other: Memory, tmp_path: Path) -> None:
    fill(memory)
    report = memory.transfer.export(tmp_path / "out", format="markdown")
    assert (report.left_out, report.records) == (1, len(live(memory)))
    assert any("history" in note for note in report.notes)
    brought = other.transfer.import_(tmp_path / "out")
    assert (brought.added, brought.skipped, brought.renumbered) == (report.records, (), ())
    assert live(other) == live(memory)
    again = other.transfer.import_(tmp_path / "out")
    assert (again.added, again.duplicates) == (0, report.records)


RECORDS = st.builds(
    Record,
    id=st.just("abcd"),
    kind=st.sampled_from(["memory", "note", "turn"]),
    text=st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('`\n\r#-·"[]')),
    title=st.text(st.characters(exclude_categories=["Cs"])),
    summary=st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" \n\r#")),
    context=st.text(st.characters(exclude_categories=["Cs"])),
    source=st.text(st.characters(exclude_categories=["Cs"])),
    tags=st.lists(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from(" ·,:\n"))).map(tuple),
    agent=st.text(st.characters(exclude_categories=["Cs"])),
    type=st.sampled_from(["fact", "self"]),
    number=st.integers(1, 10**6),
    created_at=st.integers(0, 10**13),
    updated_at=st.integers(0, 10**13),
    expires_at=st.none() | st.integers(0, 10**13),
    importance=st.none() | st.integers(1, 10),
    confidence=st.none() | st.floats(0, 1),
    fields=st.just({})
    | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers() | st.booleans()),
)


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(RECORDS, min_size=1, max_size=3))
@pytest.mark.slow
def test_any_record_survives_its_section(records: list[Record]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for place, record in enumerate(records):
            file = Path(folder, f"{place}.md")
            text = markdown_export.head(record) + markdown_export.section(record) + markdown_export.section(record)
            file.write_bytes(text.encode())
        found = list(importer.read(Path(folder)))
    assert [row.record for row in found if isinstance(row, ExportRow)] == [one for one in records for _ in range(2)]


def test_a_text_may_hold_headings_fences_and_front_matter(memory: Memory, other: Memory, tmp_path: Path) -> None:
    text = "---\nid: zzzz\n---\n\n## Heading\n\n```text\nfence\n```\n`````\n\nid: yyyy · number: 3"
    id_ = memory.add(text).id
    memory.transfer.export(tmp_path / "out", format="markdown")
    assert other.transfer.import_(tmp_path / "out").added == 1
    found = other.store.retrieval.record(id_)
    assert found is not None and found.text == text


# ── how it looks ──────────────────────────────────────────────────────────────────────────────────────────────


def test_each_area_has_its_file(memory: Memory, tmp_path: Path) -> None:
    fill(memory)
    memory.transfer.export(tmp_path / "out", format="markdown", agent="main")
    month = memory.profile.history()[0].at
    assert month
    found = files(tmp_path / "out")
    (conversations,) = [name for name in found if name.startswith("conversations/")]
    assert found == sorted(
        [
            "README.md",
            "contacts.md",
            conversations,
            "memories/fact.md",
            "memories/preference.md",
            "profile.md",
            "projects.md",
            "skills.md",
        ]
    )


def test_several_agents_have_a_folder_each(memory: Memory, tmp_path: Path) -> None:
    for agent in ("main", "a/b", "a b", "..", "Main"):
        memory.add("The same for all", agent=agent)
    memory.transfer.export(tmp_path / "out", format="markdown")
    folders = {Path(name).parts[0] for name in files(tmp_path / "out")} - {"README.md"}
    assert len({name.casefold() for name in folders}) == 5
    assert all(name.strip(".") for name in folders)


def test_a_section_is_readable(memory: Memory, tmp_path: Path) -> None:
    memory.add("The cache expires after one hour", tags=["cache"], importance=7)
    memory.transfer.export(tmp_path / "out", format="markdown")
    text = (tmp_path / "out" / "memories" / "fact.md").read_text(encoding="utf-8")
    head, facts, *rest = text.split("\n\n")[1:4]
    assert head == "# Memories: fact"
    assert facts == "## The cache expires after one hour"
    assert ' · importance: 7 · confidence: 1.0 · tags: ["cache"]' in rest[0]
    assert text.endswith("```text\nThe cache expires after one hour\n```\n")


def test_the_overview_says_what_the_export_has_not(memory: Memory, handbook: Path, tmp_path: Path) -> None:
    memory.index(handbook)
    memory.forget(memory.add("Forgotten").id)
    memory.add("Kept")
    memory.transfer.export(tmp_path / "out", format="markdown")
    text = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "history of changes is not here" in text and "(1 records)" in text
    assert f"- handbook: `{handbook.resolve()}`" in text
    assert "- 1 in [memories/fact.md](memories/fact.md)" in text


# ── where it is written ───────────────────────────────────────────────────────────────────────────────────────


def test_a_new_export_replaces_the_old_one(memory: Memory, tmp_path: Path) -> None:
    fact = memory.add("A fact")
    memory.add("An insight", type="insight")
    memory.transfer.export(tmp_path / "out", format="markdown")
    (tmp_path / "out" / "mine.md").write_text("my own")
    memory.forget(fact.id)
    memory.transfer.export(tmp_path / "out", format="markdown")
    assert files(tmp_path / "out") == ["README.md", "memories/insight.md", "mine.md"]
    assert [file for file in tmp_path.iterdir() if file.name.endswith(".part")] == []


def test_a_file_that_is_not_an_export_is_not_replaced(memory: Memory, tmp_path: Path) -> None:
    memory.add("A fact")
    out = tmp_path / "out"
    (out / "memories").mkdir(parents=True)
    (out / "memories" / "fact.md").write_text("my own")
    with pytest.raises(ConflictError, match="not a mindex export"):
        memory.transfer.export(out, format="markdown")
    assert files(out) == ["memories/fact.md"]
    (tmp_path / "file").write_text("x")
    with pytest.raises(UsageError, match="is a file"):
        memory.transfer.export(tmp_path / "file", format="markdown")


def test_files_are_appended_to_when_the_buffer_is_full(
    memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_BUFFERED_CHARACTERS", 300)
    for _ in range(2):
        for month in range(1, 7):
            memory.conversations.add("Ping", "Pong", at=f"2026-0{month}-15T12:00:00Z")
    memory.transfer.export(tmp_path / "out", format="markdown")
    assert len(files(tmp_path / "out")) == 7
    assert sum(isinstance(found, ExportRow) for found in importer.read(tmp_path / "out")) == 12


@pytest.mark.skipif(os.name == "nt", reason="rights of POSIX")
def test_only_the_owner_can_read_the_folder(memory: Memory, tmp_path: Path) -> None:
    memory.add("A fact")
    memory.transfer.export(tmp_path / "out", format="markdown")
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o700


def test_markdown_has_no_stream_and_no_vectors(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="written to a folder"):
        memory.transfer.export(tmp_path / "out", format="markdown", vectors=True)
    with pytest.raises(UsageError, match="unknown format"):
        memory.transfer.export(tmp_path / "out", format="pdf")  # type: ignore[arg-type]


# ── edited files ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def written(memory: Memory, tmp_path: Path) -> Path:
    memory.add("First fact", tags=["a"], source="somebody said")
    memory.add("Second fact")
    memory.transfer.export(tmp_path / "out", format="markdown")
    return tmp_path / "out" / "memories" / "fact.md"


def read(file: Path) -> tuple[list[str], list[str]]:
    """The texts that are found, and the reasons why others are not."""
    found = list(importer.read(file))
    rows = [one.record.text for one in found if isinstance(one, ExportRow)]
    return rows, [f"{one.where} {one.reason}" for one in found if isinstance(one, SkippedRow)]


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("id: ", "ID ", "without its line of facts"),
        ("```text", "```", "without its text"),
        ("number: 1", "number: one", "'number' is not a number"),
        ("tags: [", "tags: [[", "'tags' cannot be read"),
        (" · tags", " tags", "cannot be read at column"),
        ("created: 2", "created: x2", "not a time"),
        ("number: 1", "number:  ", "'number' is empty"),
    ],
)
def test_an_incomplete_section_is_skipped_by_name(written: Path, old: str, new: str, reason: str) -> None:
    text = written.read_text(encoding="utf-8")
    written.write_text(text.replace(old, new, 1), encoding="utf-8")
    rows, unread = read(written)
    assert rows == ["Second fact"]
    assert len(unread) == 1 and unread[0].startswith("fact.md:10 ") and reason in unread[0], unread


def test_a_fence_that_is_not_closed_is_reported(written: Path) -> None:
    written.write_text(written.read_text(encoding="utf-8")[:-4], encoding="utf-8")
    rows, unread = read(written)
    assert rows == ["First fact"] and "ends in the middle" in unread[0]


def test_a_section_without_facts_is_skipped_by_name(written: Path) -> None:
    with written.open("a", encoding="utf-8") as file:
        file.write("\n## My own thought\n## Another\n\nWithout a line of facts.\n")
    rows, unread = read(written)
    assert len(rows) == 2 and len(unread) == 2


def test_a_section_that_is_not_utf8_is_skipped_by_name(written: Path) -> None:
    written.write_bytes(written.read_bytes().replace(b"First fact\n```", b"First \xff fact\n```"))
    rows, unread = read(written)
    assert rows == ["Second fact"] and "not UTF-8" in unread[0]


def test_windows_line_ends_are_read(written: Path) -> None:
    written.write_bytes(written.read_bytes().replace(b"\n", b"\r\n"))
    assert read(written) == (["First fact", "Second fact"], [])


def test_fields_are_json(memory: Memory, tmp_path: Path) -> None:
    memory.contacts.add(name="Grace", email="grace@example.com")
    memory.transfer.export(tmp_path / "out", format="markdown")
    file = tmp_path / "out" / "contacts.md"
    text = file.read_text(encoding="utf-8")
    shown = text[text.index("```json\n") + 8 : text.rindex("\n```")]
    assert json.loads(shown)["email"] == "grace@example.com"
    file.write_text(text.replace('"email":', '"email"'), encoding="utf-8")
    assert read(file) == ([], ["contacts.md:9 its fields are not JSON"])


def test_other_files_in_the_folder_are_skipped_by_name(written: Path, other: Memory) -> None:
    (written.parent / "plan.md").write_text("# A plan\n")
    report = other.transfer.import_(written.parent.parent)
    assert (report.read, report.added) == (2, 2)
    assert [(one.where, one.row) for one in report.skipped] == [("memories/plan.md", False)]
