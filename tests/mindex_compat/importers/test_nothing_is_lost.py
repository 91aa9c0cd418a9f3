"""A database of each program with every column filled: after an import, every value is found or named in the report."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from mindex.clock import from_iso
from mindex.datatypes import Usage
from mindex.datatypes.transfer import ImportReport, TableReport
from mindex.memory import Memory
from mindex.present.transfer import import_text
from tests.mindex_compat.importers.foreign_programs import mudpuppy
from tests.mindex_compat.importers.foreign_programs.full import FULL, MUDPUPPY, make_full
from tests.transfer.foreign_rows import DAY, NOON, Rows, fill

every_program = pytest.mark.parametrize("program", FULL)

# Flags, and integers that are the same in every database: each has a separate test below.
_TESTED_ALONE = {
    "chunks.is_instruction", "memories.is_deleted", "memories.access_count", "skills.enabled",
    "skills.notify_on_completion", "chunks.file_id", "files.id", "collections.id", "file_collections.file_id",
    "file_collections.collection_id", "memory_entities.memory_id", "memory_entities.entity_id", "provenance.operation",
}  # fmt: skip


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    options = {"embedding.provider": "none", "access_log.days": 100_000.0}
    with Memory(tmp_path / "ours.db", options=options) as memory:
        yield memory


def imported(program: str, tmp_path: Path, memory: Memory) -> tuple[ImportReport, Mapping[str, Rows]]:
    rows = make_full(program, tmp_path / f"{program}.db")
    return memory.transfer.import_(tmp_path / f"{program}.db"), rows


def leaves(value: Any) -> Iterator[Any]:
    """Every scalar of a value of JSON, and the moments in milliseconds that its texts name."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from leaves(part)
            yield name
    elif isinstance(value, list):
        for part in value:
            yield from leaves(part)
    else:
        yield value
        if isinstance(value, str):
            with suppress(ValueError, OverflowError):
                yield from_iso(value)


def stored_values(memory: Memory, tmp_path: Path) -> set[Any]:
    """Every value of a lossless export, and of the access log."""
    target = tmp_path / "export.jsonl"
    memory.transfer.export(target)
    lines = [json.loads(line) for line in target.read_text(encoding="utf-8").splitlines()]
    memory.store.settle()
    with closing(sqlite3.connect(memory.status().db)) as connection:
        log = connection.execute("SELECT at, action, query, score FROM access_log").fetchall()
    return {leaf for line in lines for leaf in leaves(line)} | {value for row in log for value in row}


def lost_values(rows: Mapping[str, Rows], report: ImportReport, stored: set[Any]) -> list[str]:
    """`table.column = value` for each value of the source that is neither stored nor named in the report."""
    tables = {one.table: one for one in report.tables}
    texts = "\n".join(str(value) for value in stored)

    def is_kept(value: Any) -> bool:
        if isinstance(value, bytes):
            return False
        parts = list(leaves(_decoded(value)))
        own = [part for part in parts if isinstance(part, int) and not isinstance(part, bool)]
        if own and isinstance(value, str) and any(part in stored for part in own):
            return True  # a time, in another notation
        return all(
            part in stored or str(part) in stored or (isinstance(part, str) and len(part) > 2 and part in texts)
            for part in parts
            if part is not None
        )

    return [
        f"{table}.{column} = {value!r}"
        for table, its_rows in rows.items()
        for row in its_rows
        for column, value in row.items()
        if value is not None and f"{table}.{column}" not in _TESTED_ALONE
        if not (_names(tables.get(table), column) or is_kept(value))
    ]


def _decoded(value: Any) -> Any:
    if isinstance(value, str) and value[:1] in "[{":
        return json.loads(value)
    return value


def _names(report: TableReport | None, column: str) -> bool:
    """Whether the report says that the column, or every row of the table, is left out, and why."""
    if report is None:
        return False
    return (report.dropped == report.read > 0 and bool(report.why)) or any(
        reason.startswith(f"{column}: ") for reason in report.why
    )


@every_program
def test_every_value_is_stored_or_named_in_the_report(program: str, tmp_path: Path, memory: Memory) -> None:
    report, rows = imported(program, tmp_path, memory)
    assert lost_values(rows, report, stored_values(memory, tmp_path)) == []


@every_program
def test_a_value_that_is_not_stored_counts_as_lost(program: str, tmp_path: Path, memory: Memory) -> None:
    """The test above must be able to fail."""
    report, rows = imported(program, tmp_path, memory)
    table = next(iter(rows))
    stranger = {table: [{"some_column": "a value that no record has", "a_number": 987_654_321, "at": "2001-02-03"}]}
    assert len(lost_values(stranger, report, stored_values(memory, tmp_path))) == 3


@every_program
def test_the_report_accounts_for_every_row_of_every_table(program: str, tmp_path: Path, memory: Memory) -> None:
    report, rows = imported(program, tmp_path, memory)
    tables = {one.table: one for one in report.tables}
    vectors = FULL[program][2]
    assert set(tables) == {*rows, *vectors}
    for name, its_rows in rows.items():
        one = tables[name]
        assert one.read == len(its_rows), name
        assert one.read == one.stored + one.merged + one.dropped, name
        assert not one.dropped or one.why, name
    assert all(tables[name].why for name in vectors)
    assert report.read == report.added == sum(one.stored for one in report.tables if one.table in _records_of(program))


def _records_of(program: str) -> tuple[str, ...]:
    from mindex.transfer.importer_base import load_importer  # the importer itself says which

    return load_importer(program).tables  # type: ignore[attr-defined,no-any-return]


@every_program
def test_a_second_import_merges_every_row_that_the_first_one_stored(
    program: str, tmp_path: Path, memory: Memory
) -> None:
    first, _ = imported(program, tmp_path, memory)
    before = stored_values(memory, tmp_path)
    second = memory.transfer.import_(tmp_path / f"{program}.db")
    assert second.added == 0
    assert [(one.table, one.read, one.merged, one.dropped) for one in second.tables] == [
        (one.table, one.read, one.stored, one.dropped) for one in first.tables
    ]
    assert stored_values(memory, tmp_path) == before


@every_program
def test_a_dry_run_has_the_same_table(program: str, tmp_path: Path, memory: Memory) -> None:
    make_full(program, tmp_path / f"{program}.db")
    rehearsed = memory.transfer.import_(tmp_path / f"{program}.db", dry_run=True)
    assert memory.status().records == {}
    assert memory.collections.list() == ()
    assert rehearsed.tables == memory.transfer.import_(tmp_path / f"{program}.db").tables


@every_program
def test_an_export_and_another_import_keep_all_of_it(program: str, tmp_path: Path, memory: Memory) -> None:
    imported(program, tmp_path, memory)
    memory.transfer.export(tmp_path / "a.jsonl")
    with Memory(tmp_path / "again.db", options={"embedding.provider": "none"}) as again:
        report = again.transfer.import_(tmp_path / "a.jsonl")
        assert report.skipped == () and report.added == report.read > 0
        again.transfer.export(tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


# ── what the comparison of values cannot tell ─────────────────────────────────────────────────────────────────


def test_accesses_count_as_they_did_in_the_other_program(tmp_path: Path, memory: Memory) -> None:
    imported("mudpuppy", tmp_path, memory)
    answer = memory.get("mudpuppy:3003")
    (found,) = answer.records
    assert answer.usage == {found.id: Usage(44, NOON + 2 * DAY + 14)}
    assert (found.source, found.number) == ("chat", 3003)


def test_a_memory_of_memory_mcp_keeps_its_use_and_what_changed_it(tmp_path: Path, memory: Memory) -> None:
    imported("memory-mcp", tmp_path, memory)
    found = memory.get("mem_a")
    (ada,) = found.records
    assert found.usage[ada.id].count == 112
    assert (ada.source, ada.importance, ada.fields["exact_importance"]) == ("chat", 7, 7.25)
    made, changed = memory.history(ada.id)
    assert (made.after.text, made.after.tags, made.after.entities) == (
        "Bob leads the parser team.",
        ("old team",),
        ("Bob",),
    )
    assert made.after.fields["exact_importance"] == 4.75
    assert made.after.fields["provenance"] == {
        "id": "prov_1", "source": "chat", "user_id": "eve", "timestamp": "2026-03-01T12:00:00.051Z",
    }  # fmt: skip
    last = changed.after.fields["provenance"]
    assert isinstance(last, dict)
    assert (last["source"], last["user_id"], last["changes"]["note"]) == ("editor", "mallory", "as he asked")
    deleted = memory.store.retrieval.find_by_foreign_id("mem_b")[0]
    *_, forgotten = memory.history(deleted)
    provenance = forgotten.after.fields["provenance"]
    assert isinstance(provenance, dict)
    assert (forgotten.action, forgotten.reason, provenance["source"]) == ("forget", "it moved to Mondays", "ui")
    assert forgotten.after.fields["exact_importance"] == 0.0


def test_skills_of_memorizer_stay_off(tmp_path: Path, memory: Memory) -> None:
    imported("memorizer", tmp_path, memory)
    skill = memory.skills.get("brief")
    assert (skill.fields["enabled"], skill.fields["notify_on_completion"]) == (False, False)
    changed = memory.skills.update("brief", enabled=True)
    assert changed.after.fields["foreign_ids"] == {"memorizer": "2002"}


@pytest.mark.parametrize(
    ("program", "reference", "text"),
    [
        ("memory-exchange", "00f1c2d3e4a5b6c7", "Keys live"),
        ("memory-exchange", "memory-exchange:11f1c2d3e4a5b6c8", "oldest goes"),
        ("memory-mcp", "mem_a", "Ada leads"),
        ("mudpuppy", "3003", "dark mode"),
        ("mudpuppy", "#3003", "dark mode"),
        ("mudpuppy", "mudpuppy:3003", "dark mode"),
        ("memory-search", "a1b2c3", "We chose"),
        ("memory-search", "memory://journal/log.md", "We chose"),
        ("memory-search", "memory-search:2002", "We chose"),
        ("memory-search", "memory-search:editor", "helix"),
        ("memorizer", "conv_1", "Tea or coffee"),
        ("memorizer", "memorizer:3003", "ACME"),
    ],
)
def test_get_finds_a_record_by_the_id_that_the_other_program_gave_it(
    program: str, reference: str, text: str, tmp_path: Path, memory: Memory
) -> None:
    imported(program, tmp_path, memory)
    found = memory.get(reference)
    assert found.missing == ()
    assert text in found.records[0].text


def test_get_finds_a_merged_row_by_the_ids_of_both(tmp_path: Path, memory: Memory) -> None:
    imported("mudpuppy", tmp_path, memory)
    rows = [dict(MUDPUPPY["memory_entries"][0], id=4004, content_hash="another", tags=None)]
    other = fill(tmp_path / "other.db", mudpuppy.SCHEMA, {"memory_entries": rows})
    for _ in range(2):
        report = memory.transfer.import_(other)
        (kept,) = memory.get("mudpuppy:3003").records
        assert [(one.where, one.into) for one in report.merged] == [("memory_entries 4004", kept.id)]
    assert memory.get("mudpuppy:4004").records == (kept,)
    assert kept.fields["foreign_ids"] == {"mudpuppy": ["3003", "4004"]}
    assert len(memory.history(kept.id)) == 1


def test_the_values_of_a_merged_row_that_the_record_has_not_are_named(tmp_path: Path, memory: Memory) -> None:
    imported("mudpuppy", tmp_path, memory)
    changed = {"importance": 3, "tags": '["ui", "night"]', "entry_type": "whim", "created_at": NOON, "access_count": 0}
    row = dict(MUDPUPPY["memory_entries"][0], id=4004, content_hash="another", **changed, last_accessed_at=None)
    other = fill(tmp_path / "other.db", mudpuppy.SCHEMA, {"memory_entries": [row]})
    assert memory.transfer.import_(other, dry_run=True).merged[0].not_kept == {}
    report = memory.transfer.import_(other)
    (merged,) = report.merged
    assert merged.not_kept == {
        "type": "fact", "importance": 3, "tags": ["night"], "created_at": "2026-03-01T12:00:00Z", "entry_type": "whim",
    }  # fmt: skip
    line = f"merged memory_entries 4004 into {merged.into}, which has the same text; not kept: type fact, importance 3"
    assert f"{line}, tags night, created_at 2026-03-01T12:00:00Z, entry_type whim\n" in import_text(report)


def test_counts_that_no_engine_can_hold_do_not_stop_an_import(tmp_path: Path, memory: Memory) -> None:
    rows = [dict(MUDPUPPY["memory_entries"][0], access_count="9" * 19, last_accessed_at=-5)]
    source = fill(tmp_path / "other.db", mudpuppy.SCHEMA, {"memory_entries": rows})
    assert memory.transfer.import_(source).added == 1
    assert next(iter(memory.get("mudpuppy:3003").usage.values())).count == 2**31


def test_vectors_are_counted_without_the_extension_that_reads_them(tmp_path: Path, memory: Memory) -> None:
    path = tmp_path / "mudpuppy.db"
    make_full("mudpuppy", path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE vec_entries_rowids (rowid INTEGER PRIMARY KEY, id, chunk_id, chunk_offset)")
        connection.execute("INSERT INTO vec_entries_rowids VALUES (3003, NULL, 1, 0), (3004, NULL, 1, 1)")
        connection.commit()
    tables = {one.table: one for one in memory.transfer.import_(path).tables}
    vectors = tables["vec_entries"]
    assert (vectors.read, vectors.dropped) == (2, 2)
    assert "vec_entries_rowids" not in tables


def test_files_and_collections_without_pieces_are_named(tmp_path: Path, memory: Memory) -> None:
    path = tmp_path / "memory-search.db"
    make_full("memory-search", path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(
            "INSERT INTO files (id, path, mtime, content_hash, indexed_at) VALUES (7, '/home/eve/empty.md', 1, '', 1)"
        )
        connection.execute("INSERT INTO collections (id, name, created_at) VALUES (7, 'later', 1)")
        connection.commit()
    tables = {one.table: one for one in memory.transfer.import_(path).tables}
    assert tables["files"].why == ("no piece of it is there: /home/eve/empty.md (1)",)
    assert tables["collections"].why == ("no file with pieces is in it: later (1)",)
