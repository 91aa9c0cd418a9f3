from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from mindex.present.fence import quoted
from mindex.present.token_count import count_tokens
from tests.cli.conftest import Mindex
from tests.conftest import write
from tests.running import is_one_error


def test_a_record_by_id_and_by_the_start_of_it(mindex: Mindex, shared: Path) -> None:
    hit = mindex("search", "redis", "--json").json["results"][0]
    for reference in (hit["id"], hit["id"][:8]):
        (record,) = mindex("get", reference, "--json").json["records"]
        assert (record["id"], record["text"], record["path"]) == (hit["id"], hit["text"], hit["path"])


def test_get_takes_the_place_of_a_hit(mindex: Mindex, shared: Path) -> None:
    hits = mindex("search", "redis", "--digest", "--json").json["results"]
    assert any(hit["at"].startswith("…") for hit in hits)
    for hit in hits:
        found = mindex("get", hit["at"], "--json").json["records"]
        places = [f"{record['path']}:{record['first_line']}-{record['last_line']}" for record in found]
        (whole,) = mindex("get", hit["id"], "--json").json["records"]
        place = f"{whole['path']}:{whole['first_line']}-{whole['last_line']}"
        assert place in places and place.endswith(hit["at"].removeprefix("…"))
        assert hit["at"].startswith("…") or places == [hit["at"]]


def test_files_lines_globs_and_lists(mindex: Mindex, shared: Path) -> None:
    whole = mindex("get", "domains/caching/redis.md", "--json").json
    assert set(whole) == {"records", "missing"}
    assert whole["missing"] == []
    lines = (shared / "domains/caching/redis.md").read_text(encoding="utf-8").splitlines()
    assert mindex("get", "redis.md:9-13", "--json").json["records"][0]["text"] == "\n".join(lines[8:13])
    assert len(mindex("get", "*.instructions.md", "--json").json["records"]) == 2
    assert len(mindex("get", "on-call.md,glossary.md", "README.md", "--json").json["records"]) >= 2
    assert lines[8] in mindex("get", "redis.md:9-13").out


def test_records_are_printed_in_every_format(mindex: Mindex, shared: Path) -> None:
    place = "domains/caching/redis.md:9-13"
    (record,) = mindex("get", place, "--json").json["records"]
    assert mindex("get", place, "--format", "json").json == mindex("get", place, "--json").json
    assert mindex("get", place, "--format", "files").out == "domains/caching/redis.md\n"
    markdown = mindex("get", place, "--format", "md").out
    assert markdown.startswith("## ") and place in markdown and quoted(record["text"]) in markdown
    (row,) = csv.DictReader(io.StringIO(mindex("get", place, "--format", "csv").out))
    assert (row["path"], row["first_line"], row["text"]) == ("domains/caching/redis.md", "9", record["text"])
    assert "cannot be combined with" in mindex("--json", "get", place, "--format", "csv").json["error"]["message"]


def test_records_are_cut_to_a_budget(mindex: Mindex, shared: Path) -> None:
    cut = mindex("get", "*.md", "--budget", 300)
    assert 0 < count_tokens(cut.out.rstrip()) <= 300 < count_tokens(mindex("get", "*.md").out)
    assert "budget of 300 tokens" in cut.out
    assert count_tokens(mindex("get", "*.md", "--budget", 300, "--json").out.rstrip()) <= 300
    assert mindex("get", "*.md", "--budget", 1).code == 2


def test_what_is_missing_is_named_and_the_rest_is_shown(mindex: Mindex, shared: Path) -> None:
    ran = mindex("get", "on-call.md:1-2", "nowhere.md", "zzzzzzzz")
    assert ran.code == 1
    assert "on-call.md" in ran.out
    assert ran.err == "error: nothing found for nowhere.md, zzzzzzzz; search for it first\n"
    ran = mindex("get", "on-call.md:1-2", "nowhere.md", "--json")
    assert (ran.code, ran.err) == (1, "")
    assert (len(ran.json["records"]), ran.json["missing"]) == (1, ["nowhere.md"])


@pytest.mark.parametrize(
    "reference",
    ["../secret.md", "/etc/passwd", "redis.md:9999999", "redis.md:0-0x", "[", "*nothing*", "\udcff", "x" * 10_000],
)
def test_a_strange_reference_is_missing_and_not_a_crash(mindex: Mindex, shared: Path, reference: str) -> None:
    ran = mindex("get", "--", reference)
    assert ran.code == 1
    assert ran.err.startswith("error: nothing found for ")
    assert "unexpected" not in ran.err


def test_lines_that_end_before_they_begin_are_a_usage_error(mindex: Mindex, shared: Path) -> None:
    is_one_error(mindex("get", "redis.md:40-10"), "'redis.md:40-10' ends before it begins", "redis.md:10-40", code=2)


def test_lines_beyond_the_end_print_the_number_of_lines(mindex: Mindex, shared: Path) -> None:
    has = len((shared / "on-call.md").read_text(encoding="utf-8").splitlines())
    ran = mindex("get", "on-call.md:900-901")
    assert (ran.code, ran.out) == (1, "")
    assert ran.err == f"error: nothing found for on-call.md:900-901; on-call.md has {has} lines\n"
    message = mindex("get", "on-call.md:900-901", "--json").json
    assert (message["missing"], message["notes"]) == (["on-call.md:900-901"], [f"on-call.md has {has} lines"])


def test_a_missing_reference_is_printed_once(mindex: Mindex, shared: Path) -> None:
    ran = mindex("get", "on-call.md:1-2", "nowhere.md")
    assert (ran.out + ran.err).count("nowhere.md") == 1
    assert mindex("get", "nowhere.md").out == ""


def test_a_small_budget_still_shows_text(mindex: Mindex, shared: Path) -> None:
    (record,) = mindex("get", "on-call.md", "--budget", 100, "--format", "json").json["records"]
    assert len(record["text"]) > 150
    text = mindex("get", "on-call.md", "--budget", 60).out
    assert " […truncated]\n\nnote: cut to 60 tokens\n" in text


def test_a_csv_that_was_cut_has_a_note_on_stderr(mindex: Mindex, shared: Path) -> None:
    ran = mindex("get", "on-call.md", "--budget", 200, "--format", "csv")
    (row,) = csv.DictReader(io.StringIO(ran.out))
    assert row["truncated"] == "true" and row["text"].startswith("# ")
    assert ran.err.startswith("note: budget of 200 tokens: ")


@pytest.mark.parametrize("reference", ["", " ", ",", " , "])
def test_an_empty_reference_is_a_usage_error(mindex: Mindex, shared: Path, reference: str) -> None:
    is_one_error(mindex("get", reference), "missing argument", code=2)


def test_files_whose_names_look_like_something_else(mindex: Mindex, tmp_path: Path) -> None:
    names = ["a,b.md", "draft [1].md", "what?.md", "10:30-12.md", "'quoted'.md", 'say "hi".md', "new\nline.md"]
    root = write(tmp_path / "docs", {name: f"the file {number}" for number, name in enumerate(names)})
    write(root, {"b.md": "another"})
    mindex("index", root)
    for number, name in enumerate(names):
        ran = mindex("get", name, "--json")
        assert [record["text"] for record in ran.json["records"]] == [f"the file {number}"], name
        assert mindex("search", "file", "--path", name, "--json").json["total"] == 1, name
    assert [r["path"] for r in mindex("get", "a,b.md,b.md", "--json").json["records"]] == ["b.md"]


def test_an_ambiguous_id_names_the_candidates(mindex: Mindex, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {f"{n}.md": f"text {n}" for n in range(400)})
    mindex("index", root)
    ids = []
    while len(page := mindex("list", "--limit", 50, "--offset", len(ids), "--json").json["records"]):
        ids += [record["id"] for record in page]
    starts = [id_[:3] for id_ in ids]
    twice = next((start for start in starts if starts.count(start) > 1), None)
    if twice is not None:  # 400 ids of 32,768 starts: all but certain
        is_one_error(mindex("get", twice), twice, "pass more of the id")


# ── list ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_list_as_json(mindex: Mindex, shared: Path) -> None:
    page = mindex("list", "--json").json
    assert set(page) == {"records", "total", "has_more"}
    assert len(page["records"]) == 20
    assert page["total"] > 20
    assert page["has_more"] is True
    assert set(page["records"][0]) >= {"id", "kind", "title", "path", "first_line", "last_line", "text"}


def test_the_list_pages_through_everything_once(mindex: Mindex, shared: Path) -> None:
    total = mindex("list", "--json").json["total"]
    seen: list[str] = []
    while len(seen) < total:
        page = mindex("list", "--limit", 30, "--offset", len(seen), "--json").json
        seen += [record["id"] for record in page["records"]]
        assert page["has_more"] is (len(seen) < total)
    assert len(set(seen)) == total


def test_the_list_takes_the_filters_of_search(mindex: Mindex, shared: Path) -> None:
    def paths(*filters: str) -> set[str]:
        return {record["path"] for record in mindex("list", *filters, "--limit", 50, "--json").json["records"]}

    assert paths("--path", "on-call.md") == {"on-call.md"}
    assert all(path.startswith("domains/caching/") for path in paths("--tag", "caching"))
    assert paths("--all-tags", "caching") == paths("--tag", "caching")
    assert paths("--all-tags", "caching", "--all-tags", "no-such-tag") == set()
    assert paths("--kind", "memory") == paths("--type", "fact") == paths("--min-importance", "1") == set()
    assert (
        paths("--min-confidence", "0.5") == paths("--before", "1d") == paths("--agent", "x", "--kind", "turn") == set()
    )
    assert paths("--after", "9y") == paths("--collection", "handbook") == paths("--include-expired") == paths()


def test_the_list_as_text(mindex: Mindex, shared: Path) -> None:
    ran = mindex("list", "--limit", 1)
    assert ran.out.startswith("1 of ")
    assert len([line for line in ran.out.splitlines() if "collection handbook" in line]) == 1


@pytest.mark.parametrize("view", ["compact", "digest"])
def test_a_short_view_of_the_list_is_one_line_a_record(mindex: Mindex, shared: Path, view: str) -> None:
    lines = mindex("list", "--limit", 3, "--view", view).out.splitlines()
    listed = mindex("list", "--limit", 3, "--view", view, "--json").json["records"]
    assert len(lines) == 1 + 3
    assert [line.split()[0] for line in lines[1:]] == [one["id"] for one in listed]
    assert all("text" not in one and "relevance" not in one for one in listed)
    assert ("tokens" in listed[0]) == (view == "compact")


@pytest.mark.parametrize("wrong", [["--limit", "0"], ["--limit", "-1"], ["--offset", "-1"], ["--kind", "x"]])
def test_a_wrong_list_is_a_usage_error(mindex: Mindex, shared: Path, wrong: list[str]) -> None:
    is_one_error(mindex("list", *wrong), code=2)


def test_limits_that_are_too_large_are_cut(mindex: Mindex, shared: Path) -> None:
    ran = mindex("list", "--limit", 10**30, "--json")
    assert len(ran.json["records"]) == 50
    assert ran.err == "note: limit cut to 50, the maximum\n"
    assert mindex("list", "--offset", 10**30, "--json").json["records"] == []


def test_a_page_of_the_list_beyond_its_end_prints_the_total(mindex: Mindex, shared: Path) -> None:
    total = mindex("list", "--json").json["total"]
    assert mindex("list", "--offset", 4000).err == f"note: no results after 4000: there are {total}\n"
    assert mindex("list", "--offset", 1).err == ""
