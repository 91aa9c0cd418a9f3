"""What every format has in common: it is recognised, every row is accounted for, and a second import adds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.datatypes import Filters, Record
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.transfer.importer_base import detect_importer, importer_names, load_importer
from tests.conftest import write
from tests.mindex_compat.importers import foreign_programs
from tests.running import run_here

every_format = pytest.mark.parametrize("name", foreign_programs.MAKERS)


def everything(memory: Memory) -> list[Record]:
    return list(memory.store.retrieval.list(Filters(agent="*", include_expired=True), limit=500).records)


@every_format
def test_every_row_is_added_a_duplicate_or_skipped_by_name(name: str, tmp_path: Path, keyword_memory: Memory) -> None:
    path, rows = foreign_programs.make(name, tmp_path / "from")
    report = keyword_memory.transfer.import_(path)
    skipped = [one for one in report.skipped if one.row]
    assert report.read == rows
    assert report.added + report.duplicates + len(skipped) == rows
    assert report.added > 0
    assert all(one.where and one.reason for one in report.skipped)


@every_format
def test_a_second_import_adds_nothing(name: str, tmp_path: Path, keyword_memory: Memory) -> None:
    path, _ = foreign_programs.make(name, tmp_path / "from")
    first = keyword_memory.transfer.import_(path)
    before = everything(keyword_memory)
    second = keyword_memory.transfer.import_(path)
    assert (second.added, second.duplicates) == (0, first.added + first.duplicates)
    assert second.skipped == first.skipped
    assert everything(keyword_memory) == before


@every_format
def test_a_dry_run_reports_the_same_and_stores_nothing(name: str, tmp_path: Path, keyword_memory: Memory) -> None:
    path, _ = foreign_programs.make(name, tmp_path / "from")
    rehearsed = keyword_memory.transfer.import_(path, dry_run=True)
    assert everything(keyword_memory) == []
    done = keyword_memory.transfer.import_(path)
    assert (rehearsed.read, rehearsed.added, rehearsed.duplicates, rehearsed.skipped) == (
        done.read,
        done.added,
        done.duplicates,
        done.skipped,
    )


@every_format
def test_it_is_recognised_by_one_importer_only(name: str, tmp_path: Path) -> None:
    path, _ = foreign_programs.make(name, tmp_path / "from")
    wanted = name.removesuffix(" export")
    assert [one for one in importer_names() if load_importer(one).recognises(path)] == [wanted]
    assert detect_importer(path).name == wanted


@every_format
def test_a_row_without_an_agent_belongs_to_the_importing_agent(name: str, tmp_path: Path) -> None:
    path, _ = foreign_programs.make(name, tmp_path / "from")
    with Memory(tmp_path / "eve.db", agent="eve", options={"embedding.provider": "none"}) as memory:
        memory.transfer.import_(path)
        found = everything(memory)
        if name == "memory-exchange":  # chunks belong to every agent
            assert {(record.kind, record.agent) for record in found} == {("chunk", "")}
            return
        states = [
            state for one in found for change in memory.history(one.id) for state in (change.before, change.after)
        ]
    agents = {"main", "work"} if name == "memorizer" else {"eve"}
    assert {record.agent for record in found} == agents
    assert {state.agent for state in states if state} == agents


@every_format
def test_a_record_says_where_it_comes_from(name: str, tmp_path: Path, keyword_memory: Memory) -> None:
    """By the id that it had, where the program gave it one, else by its source."""
    path, _ = foreign_programs.make(name, tmp_path / "from")
    keyword_memory.transfer.import_(path)
    program = name.removesuffix(" export")
    for record in everything(keyword_memory):
        ids = record.fields.get("foreign_ids")
        assert record.source.startswith(f"{program}:") or (isinstance(ids, dict) and program in ids), record


@every_format
def test_imported_records_survive_an_export_and_another_import(
    name: str, tmp_path: Path, keyword_memory: Memory
) -> None:
    path, _ = foreign_programs.make(name, tmp_path / "from")
    keyword_memory.transfer.import_(path)
    keyword_memory.transfer.export(tmp_path / "a.jsonl")
    with Memory(tmp_path / "again.db", options={"embedding.provider": "none"}) as again:
        assert again.transfer.import_(tmp_path / "a.jsonl").skipped == ()
        again.transfer.export(tmp_path / "b.jsonl")
    assert (tmp_path / "a.jsonl").read_bytes() == (tmp_path / "b.jsonl").read_bytes()


@pytest.mark.parametrize("name", foreign_programs.DATABASES)
def test_a_foreign_database_is_not_changed(name: str, tmp_path: Path, keyword_memory: Memory) -> None:
    path, _ = foreign_programs.make(name, tmp_path / "from")
    before = (path.read_bytes(), sorted(path.parent.iterdir()))
    keyword_memory.transfer.import_(path)
    assert (path.read_bytes(), sorted(path.parent.iterdir())) == before


@pytest.mark.parametrize("name", foreign_programs.DATABASES)
def test_the_number_of_rows_is_known_beforehand(name: str, tmp_path: Path) -> None:
    path, rows = foreign_programs.make(name, tmp_path / "from")
    assert load_importer(name).count(path) == rows  # type: ignore[attr-defined]


def test_all_formats_are_imported_into_one_memory(tmp_path: Path, keyword_memory: Memory) -> None:
    added = {}
    for name in foreign_programs.MAKERS:
        path, _ = foreign_programs.make(name, tmp_path / name)
        added[name] = keyword_memory.transfer.import_(path).added
    assert added.pop("memory-search export") == 0  # its database was there before
    assert all(added.values())


def test_unknown_files_are_recognised_by_no_importer(tmp_path: Path, keyword_memory: Memory) -> None:
    schema = (
        "CREATE TABLE memories (content TEXT, tags TEXT); CREATE TABLE chunks (content TEXT); CREATE TABLE files (x);"
    )
    other = foreign_programs.fill(tmp_path / "other.db", schema, {"memories": [{"content": "of another program"}]})
    foreign_programs.fill(tmp_path / "facts.db", "CREATE TABLE facts (fact TEXT)", {})
    write(
        tmp_path, {"a.jsonl": '{"type": "event"}\n', "b.json": "{}", "c.md": "# Words", "d.db": "words", "e.jsonl": ""}
    )
    write(tmp_path / "folder", {"README.md": "# Words", "log.jsonl": "[1]\n"})
    (tmp_path / "empty").mkdir()
    keyword_memory.add("something of ours")
    strangers = [*(one for one in tmp_path.iterdir() if one.name != "home"), other]
    assert len(strangers) > 8
    for path in strangers:
        assert [one for one in importer_names() if load_importer(one).recognises(path)] == [], path
        with pytest.raises(UsageError, match="unknown format of the"):
            detect_importer(path)


def test_the_command_prints_counts_and_names_skipped_rows(tmp_path: Path) -> None:
    path, _ = foreign_programs.make("mudpuppy", tmp_path / "from")
    database = tmp_path / "ours.db"
    ran = run_here("--db", database, "--json", "import", path, "--no-embed", "--strict")
    assert ran.code == 1  # one row is empty
    assert (ran.json["read"], ran.json["added"], ran.json["duplicates"]) == (8, 6, 1)
    assert [one["where"] for one in ran.json["skipped"]] == ["memory_entries 13"]
    ran = run_here("--db", database, "--json", "import", path, "--no-embed", "--from", "mudpuppy")
    assert (ran.code, ran.json["added"]) == (0, 0)
