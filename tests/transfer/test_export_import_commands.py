"""`mindex export` and `mindex import` on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mindex.embedding.queue import EmbeddingQueue
from tests.running import is_one_error, run, run_here


@pytest.fixture(autouse=True)
def no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("MINDEX_DB", str(tmp_path / "memory.db"))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def export_file(tmp_path: Path) -> Path:
    run_here("add", "The cache expires after one hour")
    run_here("add", "Anna prefers tea", "--agent", "eve")
    return tmp_path / "all.jsonl"


def test_export_and_import_print_what_they_did(export_file: Path) -> None:
    ran = run_here("export", export_file)
    assert (ran.code, ran.out) == (0, f"2 records → {export_file}\n")
    assert run_here("import", export_file).out == (
        "2 read, 0 added, 2 already there\n"
        "table   read  stored  merged  dropped\n"
        "memory     2       0       2        0\n"
    )
    ran = run_here("--db", "other.db", "--json", "import", export_file)
    table = {"table": "memory", "read": 2, "stored": 2, "merged": 0, "dropped": 0}
    assert (ran.code, ran.json) == (0, {"read": 2, "added": 2, "duplicates": 0, "skipped": [], "tables": [table]})
    shown = run_here("--json", "export", export_file).json
    assert shown == {"target": str(export_file), "format": "jsonl", "records": 2, "files": 1}


def test_a_dash_writes_only_the_export_to_standard_output(export_file: Path) -> None:
    run_here("export", export_file)
    ran = run("export", "-")
    assert ran.code == 0 and ran.err == "2 records → -\n"
    assert ran.out == export_file.read_text(encoding="utf-8")
    here = run_here("export", "-", "--json")
    assert here.out == ran.out and json.loads(here.err)["records"] == 2


def test_one_agent_is_exported_alone_and_imported_as_another(export_file: Path) -> None:
    run_here("export", export_file, "--agent", "eve")
    assert run_here("import", export_file, "--db", "b.db", "--agent", "bob").out.startswith("1 read, 1 added")
    assert run_here("list", "--db", "b.db", "--agent", "bob", "--json").json["total"] == 1
    assert run_here("import", export_file, "--db", "c.db", "--map", "eve=ann").code == 0
    assert run_here("list", "--db", "c.db", "--agent", "ann", "--json").json["total"] == 1
    is_one_error(run_here("import", export_file, "--map", "eve"), "is not a mapping of agents", code=2)


def test_a_markdown_folder_is_exported_and_imported(export_file: Path, tmp_path: Path) -> None:
    ran = run_here("export", "out", "--format", "markdown", "--json")
    assert ran.json["records"] == 2 and ran.json["files"] == 3
    assert "history" in ran.json["notes"][0]
    assert run_here("import", "out", "--db", "b.db").out.startswith("2 read, 2 added")


def test_a_dry_run_changes_nothing(export_file: Path) -> None:
    run_here("export", export_file)
    ran = run_here("import", export_file, "--db", "b.db", "--dry-run")
    assert ran.out.startswith("2 read, 2 would be added")
    assert run_here("import", export_file, "--db", "b.db", "--dry-run", "--json").json["dry_run"] is True
    assert not Path("b.db").exists()


def test_skipped_rows_are_named_and_strict_fails(export_file: Path) -> None:
    run_here("export", export_file)
    with export_file.open("a") as file:
        file.write("broken\n" * 30)
    ran = run_here("import", export_file, "--db", "b.db", "--json")
    assert ran.code == 0 and (ran.json["read"], ran.json["added"]) == (32, 2)
    assert ran.json["skipped"][0]["where"] == "line 4" and len(ran.json["skipped"]) == 30
    strict = run_here("import", export_file, "--db", "c.db", "--strict")
    assert strict.code == 1
    assert "skipped line 4: it is not JSON" in strict.out and "… and 10 more" in strict.out
    assert run_here("list", "--db", "c.db", "--agent", "*", "--json").json["total"] == 2


def test_new_numbers_are_printed(export_file: Path) -> None:
    run_here("export", export_file)
    run_here("add", "Takes number one", "--db", "b.db")
    ran = run_here("import", export_file, "--db", "b.db", "--json")
    assert ran.json["renumbered"] == [{"kind": "memory", "old": 1, "new": 3}]  # above both numbers of the export
    run_here("add", "Takes number one", "--db", "c.db")
    assert "new numbers, memory: 1 → 3\n" in run_here("import", export_file, "--db", "c.db").out


def test_errors_are_one_line(export_file: Path, tmp_path: Path) -> None:
    is_one_error(run_here("import", "missing.jsonl"), "there is no file missing.jsonl")
    is_one_error(run_here("import", tmp_path), "unknown format of the folder", code=2)
    is_one_error(run_here("import", export_file, "--from", "fax"), "fax", code=2)
    is_one_error(run_here("export", tmp_path), "is a folder, and jsonl is one file", code=2)
    is_one_error(run_here("export", f"{tmp_path}/new/"), "--format markdown", code=2)
    assert not (tmp_path / "new").exists()
    is_one_error(run_here("export", "-", "--format", "markdown"), "markdown is written to a folder", code=2)
    is_one_error(run_here("export", "no/such/folder/x.jsonl"), "cannot write")


def test_imported_records_are_embedded_unless_no_embed_is_given(
    export_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_here("export", export_file)
    embedded: list[bool] = []
    monkeypatch.setattr(EmbeddingQueue, "backfill", lambda *_, **__: embedded.append(True))
    run_here("import", export_file, "--db", "b.db", "--no-embed")
    run_here("import", export_file, "--db", "c.db", "--dry-run")
    assert embedded == []
    run_here("import", export_file, "--db", "c.db")
    assert embedded == [True]
    run_here("import", export_file, "--db", "c.db")
    assert embedded == [True]
