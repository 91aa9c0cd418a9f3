"""Files that are truncated, foreign, hostile or changing: what can be read is imported, the rest is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mindex.errors import NotFoundError, UsageError
from mindex.memory import Memory
from mindex.transfer import import_rows
from mindex.transfer.importers import source_files
from tests.running import within


@pytest.fixture
def exported(memory: Memory, tmp_path: Path) -> Path:
    """Ten memories in a file."""
    for number in range(10):
        memory.add(f"Sentence number {number}")
    memory.transfer.export(tmp_path / "ten.jsonl")
    return tmp_path / "ten.jsonl"


def spoil(file: Path, line: int, spoilt: bytes) -> None:
    """Put something else in the place of a line, counted from 1."""
    lines = file.read_bytes().split(b"\n")
    lines[line - 1] = spoilt
    file.write_bytes(b"\n".join(lines))


NESTED = b"[" * 100_000 + b"]" * 100_000


@pytest.mark.parametrize(
    ("spoilt", "reason"),
    [
        (b'{"id": "abcd", "kind"', "not JSON"),
        (b"plain words", "not JSON"),
        (b"[1, 2]", "not a JSON object"),
        (b"{}", "needs an id, a kind and a text"),
        (b'{"id": "abcd", "kind": "memory", "text": "\xff\xfe"}', "not UTF-8"),
        (b'{"id": "abcd", "kind": "memory", "text": "\\ud800"}', "unknown type"),
        (b'{"id": "abcd", "kind": "memory", "type": "fact", "text": "\\ud800"}', "surrogate"),
        (b'{"id": "abcd", "kind": "memory", "type": "fact", "text": "x", "number": ' + b"9" * 5000 + b"}", "not JSON"),
        (b'{"id": "abcd", "kind": "memory", "text": "x", "history": [1]}', "not a list of objects"),
        (b'{"id": "abcd", "kind": "memory", "text": "x", "history": [{"change": "one"}]}', "not a time|whole number"),
        (NESTED, "nested too deeply"),
        (b'{"id": "abcd", "kind": "memory", "type": "fact", "text": "x", "fields": {"x": ' + NESTED + b"}}", "nested"),
        (b'{"id": "abcd", "kind": "memory", "text": "x", "fields": {"x": ' + b"[]," * 2_000_001 + b"[]}}", "too many"),
        (b"\x00" * 50, "not JSON"),
    ],
    ids=lambda value: repr(value[:60]) if isinstance(value, bytes) else value,
)
def test_a_broken_line_is_skipped_by_name_and_the_rest_is_imported(
    exported: Path, other: Memory, spoilt: bytes, reason: str
) -> None:
    spoil(exported, 6, spoilt)
    report = within(60, lambda: other.transfer.import_(exported))
    assert (report.read, report.added) == (10, 9)
    ((where, why),) = [(one.where, one.reason) for one in report.skipped]
    assert where == "line 6"
    assert any(part in why for part in reason.split("|")), why


def test_a_line_that_is_too_long_is_not_read_into_memory(
    exported: Path, other: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_files, "LONGEST_LINE", 2 * 2**20)
    spoil(exported, 6, b'{"id": "abcd", "text": "' + b"x" * (5 * 2**20))
    report = other.transfer.import_(exported)
    assert (report.read, report.added) == (10, 9)
    assert [(one.where, one.reason) for one in report.skipped] == [("line 6", "it is longer than 2 MiB")]


@pytest.mark.parametrize("at", ["in the middle of a line", "between lines"])
def test_a_truncated_file_is_reported(exported: Path, other: Memory, at: str) -> None:
    data = exported.read_bytes()
    end = data.rindex(b"\n", 0, len(data) * 2 // 3) + 1
    exported.write_bytes(data[: end + 40 if "middle" in at else end])
    report = other.transfer.import_(exported)
    assert 0 < report.added < 10
    assert report.read == report.added + ("middle" in at)
    assert report.skipped[-1].where == "end of file"
    assert "10 records were announced" in report.skipped[-1].reason


def test_a_history_line_without_its_record_is_skipped_by_name(exported: Path, other: Memory) -> None:
    with exported.open("ab") as file:
        file.write(b'{"id": "zzzz", "more": []}\n')
    report = other.transfer.import_(exported)
    assert (report.read, report.added) == (10, 10)
    assert [one.where for one in report.skipped] == ["line 12"]


@pytest.mark.parametrize(
    "change",
    [
        lambda text: "\ufeff" + text,
        lambda text: text.replace("\n", "\n\n"),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.rstrip("\n"),
    ],
)
def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(
    exported: Path, other: Memory, change: Callable[[str], str]
) -> None:
    exported.write_bytes(change(exported.read_text(encoding="utf-8")).encode())
    report = other.transfer.import_(exported)
    assert (report.added, report.skipped) == (10, ())


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-16-be"])
def test_a_file_in_another_encoding_is_not_an_export(exported: Path, other: Memory, encoding: str) -> None:
    exported.write_bytes(exported.read_text(encoding="utf-8").encode(encoding))
    with pytest.raises(UsageError, match="not a mindex export"):
        other.transfer.import_(exported, source="jsonl")
    with pytest.raises(UsageError, match="unknown format of the file"):
        other.transfer.import_(exported)


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"{}", b'{"mindex": "one"}', b"{" * 100_000, b"x" * 100_000, b"null", b"\xff\xd8\xff"],
    ids=lambda value: repr(value[:20]),
)
def test_a_file_that_is_not_an_export_is_an_error_and_nothing_is_imported(
    memory: Memory, tmp_path: Path, content: bytes
) -> None:
    file = tmp_path / "file"
    file.write_bytes(content)
    with pytest.raises(UsageError):
        memory.transfer.import_(file)
    with pytest.raises(UsageError, match="not a mindex export"):
        memory.transfer.import_(file, source="jsonl")
    with pytest.raises(UsageError, match="not a mindex export"):
        memory.transfer.import_(file, source="markdown")


def test_a_folder_that_is_not_an_export_is_an_error(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "plan.md").write_text("# A plan\n\nid: abcd\n")
    with pytest.raises(UsageError, match="unknown format of the folder"):
        memory.transfer.import_(tmp_path / "notes")
    with pytest.raises(UsageError, match="not a mindex export"):
        memory.transfer.import_(tmp_path / "notes", source="markdown")
    with pytest.raises(UsageError, match="not a mindex export"):
        memory.transfer.import_(tmp_path / "notes", source="jsonl")


def test_a_missing_file_is_not_found(memory: Memory, tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="there is no file"):
        memory.transfer.import_(tmp_path / "missing.jsonl")


def test_a_file_that_changes_during_the_import_is_reported(
    exported: Path, other: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(import_rows, "_BATCH", 3)
    restore = other.store.entries.restore_rows

    def appending(*arguments: object) -> object:
        with exported.open("ab") as file:
            file.write(b"\n")
        return restore(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(other.store.entries, "restore_rows", appending)
    report = other.transfer.import_(exported)
    assert report.added == 10
    assert [one.where for one in report.skipped] == ["ten.jsonl"]
    assert "changed while it was read" in report.skipped[0].reason
    monkeypatch.undo()
    assert other.transfer.import_(exported).skipped == ()


@pytest.mark.parametrize("announced", [-1, 10**30, "many", None, True])
def test_a_wrong_count_in_the_header_does_no_harm(exported: Path, other: Memory, announced: object) -> None:
    header = {"mindex": 1, "records": announced, "last_numbers": {"main": announced}}
    spoil(exported, 1, json.dumps(header).encode())
    assert other.transfer.import_(exported).added == 10
    added = other.store.retrieval.record(other.add("One more").id)
    assert added is not None and added.number == 11
