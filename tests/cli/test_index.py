from __future__ import annotations

from pathlib import Path

import pytest

from mindex.memory import Memory
from tests.cli.conftest import Mindex
from tests.conftest import write
from tests.databases import Databases
from tests.running import is_one_error

REPORT = {"collections", "skipped", "embedded", "pending", "seconds"}
FILES = {"seen", "new", "changed", "moved", "deleted", "unchanged", "skipped"}


def test_the_report_as_json(mindex: Mindex, handbook: Path) -> None:
    report = mindex("index", handbook, "--json").json
    assert set(report) == REPORT
    (collection,) = report["collections"]
    assert set(collection) == {"name", "root", "files", "chunks"}
    assert (collection["name"], collection["root"]) == ("handbook", str(handbook))
    assert set(collection["files"]) == FILES
    assert set(collection["chunks"]) == {"added", "kept", "removed"}
    assert collection["files"]["new"] == collection["files"]["seen"] == 14
    assert collection["chunks"]["added"] > 50
    assert (report["embedded"], report["pending"]) == (0, 0)


def test_the_report_as_text(mindex: Mindex, handbook: Path) -> None:
    (handbook / "binary.md").write_bytes(b"\0\1\2")
    ran = mindex("index", handbook)
    assert ran.code == 0
    assert "14 new" in ran.out
    assert "1 skipped" in ran.out
    assert "skipped binary.md: binary file" in ran.out
    assert ran.err == ""


def test_one_file_and_one_chunk_are_singular(mindex: Mindex, tmp_path: Path) -> None:
    ran = mindex("index", write(tmp_path / "docs", {"a.md": "one"}))
    assert ": 1 file, 1 new; " in ran.out
    assert ", 1 document, 1 chunk, " in mindex("status").out
    assert mindex("index", "--remove", "docs").out == "removed docs: 1 chunk\n"


def test_skipped_files_are_named_in_json(mindex: Mindex, handbook: Path) -> None:
    (handbook / "binary.md").write_bytes(b"\0\1\2")
    report = mindex("index", handbook, "--json").json
    assert [set(skip) for skip in report["skipped"]] == [{"path", "reason"}]
    assert report["skipped"][0]["path"] == "binary.md"


def test_several_folders_and_then_all_of_them_without_naming_any(mindex: Mindex, tmp_path: Path) -> None:
    one, two = (write(tmp_path / name, {"a.md": name}) for name in ("one", "two"))
    assert len(mindex("index", one, two, "--json").json["collections"]) == 2
    write(two, {"b.md": "more"})
    again = mindex("index", "--json").json
    assert {c["name"]: c["files"]["new"] for c in again["collections"]} == {"one": 0, "two": 1}


def test_a_name_is_the_name_of_the_collection(mindex: Mindex, handbook: Path) -> None:
    assert mindex("index", handbook, "--name", "team", "--json").json["collections"][0]["name"] == "team"
    assert mindex("search", "redis", "--collection", "team").code == 0
    is_one_error(mindex("index", handbook, handbook.parent, "--name", "x"), "one folder", code=2)


def test_the_context_of_a_folder_is_kept_until_another_is_given(mindex: Mindex, handbook: Path) -> None:
    def contexts() -> list[str | None]:
        return [one.get("context") for one in mindex("status", "--json").json["collections"]]

    mindex("index", handbook)
    assert contexts() == [None]
    mindex("index", handbook, "--context", "How the team works,\n day by day")
    mindex("index", handbook)
    assert contexts() == ["How the team works, day by day"]
    assert mindex("status").out.endswith(", context: How the team works, day by day\n")
    mindex("index", handbook, "--context", "")
    assert contexts() == [None]
    is_one_error(mindex("index", handbook, handbook.parent, "--context", "x"), "one folder", code=2)


def test_excluded_files_stay_out(mindex: Mindex, handbook: Path) -> None:
    report = mindex("index", handbook, "--exclude", "domains/", "--exclude", "*.instructions.md", "--json").json
    seen = report["collections"][0]["files"]["seen"]
    assert 0 < seen < 14
    assert mindex("index", handbook, "--json").json["collections"][0]["files"]["seen"] == seen  # it is remembered
    paths = {record["path"] for record in mindex("list", "--limit", 50, "--json").json["records"]}
    assert not any(path.startswith("domains/") or path.endswith(".instructions.md") for path in paths)


def test_exclude_without_a_folder_is_refused(mindex: Mindex, indexed: Path) -> None:
    is_one_error(mindex("index", "--exclude", "x/"), "--exclude", code=2)


def test_force_reads_every_file_again(mindex: Mindex, indexed: Path) -> None:
    assert mindex("index", indexed, "--json").json["collections"][0]["files"]["unchanged"] == 14
    assert mindex("index", indexed, "--force", "--json").json["collections"][0]["files"]["changed"] == 14


def test_a_dry_run_prints_the_changes_and_makes_none(mindex: Mindex, handbook: Path) -> None:
    report = mindex("index", handbook, "--dry-run", "--json").json
    assert report["collections"][0]["files"]["new"] == 14
    assert mindex("status", "--json").json["collections"] == []


def test_a_dry_run_counts_what_the_run_then_does(mindex: Mindex, indexed: Path) -> None:
    (indexed / "README.md").write_text("# Another text\n\nOf another kind.", encoding="utf-8")
    (indexed / "new.md").write_text("# New", encoding="utf-8")
    (indexed / "binary.md").write_bytes(b"\0\1\2")
    (indexed / "on-call.md").unlink()
    planned = mindex("index", "--dry-run", "--json").json
    text = mindex("index", "--dry-run").out
    done = mindex("index", "--json").json
    assert (planned.pop("dry_run"), "dry_run" in done) == (True, False)
    assert [planned[part] for part in ("collections", "skipped")] == [done[part] for part in ("collections", "skipped")]
    files, chunks = planned["collections"][0]["files"], planned["collections"][0]["chunks"]
    assert (files["new"], files["changed"], files["deleted"], files["skipped"]) == (1, 1, 1, 1)
    assert chunks["added"] >= 2 and chunks["removed"] > 2
    assert f"chunks +{chunks['added']} −{chunks['removed']}, " in text
    assert "\ndry run, nothing was stored\n" in text and "embed" not in text


@pytest.mark.model
def test_a_dry_run_says_how_many_chunks_would_be_embedded(
    mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "local")
    root = write(tmp_path / "docs", {f"{n}.md": f"Station {n} has {n} doors." for n in range(3)})
    assert "dry run, nothing was stored; 3 records to embed\n" in mindex("index", root, "--dry-run").out
    assert mindex("index", root, "--json").json["embedded"] == 3


def test_removing_a_folder_forgets_its_chunks_and_keeps_its_files(mindex: Mindex, indexed: Path) -> None:
    ran = mindex("index", "--remove", "handbook", "--json")
    assert ran.json["removed"] == "handbook"
    assert ran.json["chunks"] > 50
    assert mindex("status", "--json").json["records"] == {}
    assert (indexed / "README.md").exists()
    is_one_error(mindex("index", "--remove", "handbook"), "no collection 'handbook'")


@pytest.mark.parametrize(
    "more", [["--dry-run"], ["--force"], ["--no-embed"], ["--name", "x"], ["--context", "x"], ["."]]
)
def test_remove_takes_no_other_option(mindex: Mindex, indexed: Path, more: list[str]) -> None:
    is_one_error(mindex("index", "--remove", "handbook", *more), "--remove", code=2)
    assert mindex("status", "--json").json["records"]["chunk"] > 50


@pytest.mark.model
def test_no_embed_leaves_the_vectors_to_backfill(
    mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "local")
    root = write(tmp_path / "docs", {f"{n}.md": f"Station {n} has {n} doors." for n in range(3)})
    report = mindex("index", root, "--no-embed", "--json").json
    assert (report["embedded"], report["pending"]) == (0, 3)
    assert mindex("doctor").code == 1
    first = mindex("backfill", "--json")
    assert first.json == {"embedded": 3, "remaining": 0}
    assert mindex("backfill").out == "0 embedded, 0 remaining\n"
    assert mindex("doctor").code == 0


def test_the_batch_of_a_backfill_is_kept_in_range(mindex: Mindex, with_model: Memory) -> None:
    is_one_error(mindex("backfill", "--batch", 0), "batch of 0", code=2)
    ran = mindex("backfill", "--batch", 10**6)
    assert (ran.code, ran.err) == (0, "note: batch cut to 200\n")


def test_backfill_without_a_model_names_the_setting(mindex: Mindex, indexed: Path) -> None:
    is_one_error(mindex("backfill"), "no embedder", "embedding.provider")


def test_optimize_prints_the_sizes(mindex: Mindex, indexed: Path) -> None:
    mindex("index", "--remove", "handbook")
    sizes = mindex("optimize", "--json").json
    assert set(sizes) == {"size_before", "size_after"}
    assert sizes["size_after"] < sizes["size_before"]
    assert "bytes before" in mindex("optimize").out


# ── folders that are none ─────────────────────────────────────────────────────────────────────────────────────


def test_a_missing_folder_and_a_file_for_a_folder(mindex: Mindex, handbook: Path) -> None:
    is_one_error(mindex("index", handbook / "nowhere"), "no folder", "nowhere")
    is_one_error(mindex("index", handbook / "README.md"), "is a file", str(handbook), code=2)
    is_one_error(mindex("index", "x" * 5000), code=2)
    is_one_error(mindex("index"), "nothing is indexed yet", code=2)


def test_one_wrong_folder_among_several_indexes_none(mindex: Mindex, handbook: Path) -> None:
    assert mindex("index", handbook, handbook / "nowhere").code == 1
    assert mindex("status", "--json").json["collections"] == []


def test_a_folder_inside_an_indexed_one_is_refused_by_name(mindex: Mindex, indexed: Path) -> None:
    is_one_error(mindex("index", indexed / "domains"), "'handbook'", "mindex index")
    ran = mindex("index", indexed / "domains", "--json")
    assert (ran.code, ran.json["error"]["kind"]) == (1, "collection")


def test_a_dot_is_the_current_folder(mindex: Mindex, handbook: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(handbook)
    assert mindex("index", ".", "--json").json["collections"][0]["root"] == str(handbook)


def test_the_database_may_be_named_before_and_after_the_command(
    mindex: Mindex, handbook: Path, tmp_path: Path, databases: Databases
) -> None:
    one, two, three = (databases.new(tmp_path / f"{name}.db") for name in ("one", "two", "three"))
    assert mindex("--db", one, "index", handbook).code == 0
    assert mindex("index", handbook, f"--db={two}").code == 0
    assert mindex("index", "--db", three, handbook).code == 0
    assert {len(mindex("status", "--db", name, "--json").json["collections"]) for name in (one, two, three)} == {1}
    assert mindex("status", "--json").json["collections"] == []


def test_many_files_that_are_skipped_for_one_reason_are_counted(mindex: Mindex, tmp_path: Path) -> None:
    root = write(tmp_path / "linked", {"a.md": "harbour"})
    for number in range(9):
        (root / f"link{number}.md").symlink_to(root / "a.md")
    out = mindex("index", root).out
    assert out.count(".md: symbolic link, not followed") == 5
    assert "skipped 4 more: symbolic link, not followed" in out
    assert len(mindex("index", root, "--json").json["skipped"]) == 9
