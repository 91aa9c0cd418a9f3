from __future__ import annotations

import csv
import io
import json
import os
from math import log
from pathlib import Path

import pytest

from mindex.clock import now_ms
from mindex.datatypes import Record
from mindex.memory import Memory
from mindex.present.fence import body, quoted
from mindex.present.token_count import count_tokens
from tests.cli.conftest import Mindex, store_entry
from tests.conftest import write
from tests.running import is_one_error, wait_until

HIT = {"id", "kind", "title", "score", "relevance", "tokens", "text", "path", "collection", "first_line", "last_line"}
DAY = 24 * 60 * 60


# ── what is answered ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_result_names_its_place_and_its_ranks(mindex: Mindex, shared: Path) -> None:
    ran = mindex("search", "Redis eviction")
    assert ran.code == 0
    assert ran.out.startswith("5 of ")
    assert "domains/caching/redis.md:" in ran.out
    assert "answered by keyword" in ran.out
    assert ran.err == ""


def test_text_is_plain_when_it_is_not_for_a_terminal(mindex: Mindex, shared: Path) -> None:
    assert "\x1b" not in mindex("search", "Redis", "--explain").out


def test_the_full_view_as_json(mindex: Mindex, shared: Path) -> None:
    answer = mindex("search", "Redis eviction", "--limit", 2, "--json").json
    assert set(answer) == {"query", "tier", "fusion", "total", "has_more", "tokens", "results", "notes"}
    assert (answer["query"], answer["tier"], answer["fusion"]) == ("Redis eviction", "keyword", "judged")
    assert answer["total"] > len(answer["results"]) == 2
    assert answer["has_more"] is True
    for hit in answer["results"]:
        assert set(hit) >= HIT | {"domain"}
        assert None not in hit.values()
    assert answer["results"][0]["collection"] == "handbook"


def test_the_compact_and_digest_views_as_json(mindex: Mindex, shared: Path) -> None:
    compact = mindex("search", "Redis", "--compact", "--json").json
    assert set(compact["results"][0]) == {"id", "at", "title", "relevance", "summary"}
    digest = mindex("search", "Redis", "--digest", "--json").json
    assert set(digest["results"][0]) == {"id", "at"}
    assert mindex("search", "Redis", "--view", "compact", "--json").json == compact
    assert mindex("search", "Redis", "--view", "digest", "--json").json == digest


def test_the_dual_view_as_json(mindex: Mindex, shared: Path) -> None:
    dual = mindex("search", "Redis", "--view", "dual", "--limit", 2, "--json").json
    assert set(dual) - {"notes", "tier"} == {"index", "details", "total_count", "has_more", "tokens_used", "query"}
    assert len(dual["index"]) == dual["total_count"]
    assert len(dual["details"]) == 2
    assert dual["has_more"] is True
    assert all(set(entry) == {"id", "summary"} and len(entry["summary"].split()) <= 20 for entry in dual["index"])
    assert set(dual["details"][0]) == {"id", "at", "title", "score", "relevance", "text"}


@pytest.mark.parametrize("view", ["full", "compact", "digest", "dual"])
def test_text_and_json_carry_the_same_hits(mindex: Mindex, shared: Path, view: str) -> None:
    answer = mindex("search", "Redis", "--view", view, "--json").json
    text = mindex("search", "Redis", "--view", view).out
    for hit in (*answer.get("results", ()), *answer.get("details", ())):
        assert hit["id"] in text
        assert body(hit.get("text", "")) in text


def test_lines_and_file_names_say_which_collection_when_there_are_several(mindex: Mindex, tmp_path: Path) -> None:
    one, two = (write(tmp_path / name, {"guide.md": f"# Harbour\n\nThe harbour {name}."}) for name in ("one", "two"))
    mindex("index", one)
    assert mindex("search", "harbour", "--format", "files").out == "guide.md\n"
    assert " guide.md:1-3 · " in mindex("search", "harbour", "--compact").out
    mindex("index", two)
    assert sorted(mindex("search", "harbour", "--format", "files").out.split()) == ["one/guide.md", "two/guide.md"]
    lines = mindex("search", "harbour", "--compact").out
    assert " one/guide.md:1-3 · " in lines and " two/guide.md:1-3 · " in lines
    assert " two/guide.md:1-3\n" in mindex("search", "harbour", "--digest").out
    weak = mindex("search", "harbour tractor engine brake", "--json").json["results"]
    assert {(row["path"], row["collection"], row["weak"]) for row in weak} == {
        ("guide.md", "one", True), ("guide.md", "two", True)
    }  # fmt: skip
    assert "guide.md (two) · Harbour · weak" in mindex("search", "harbour tractor engine brake").out
    assert mindex("get", "two/guide.md", "--format", "files").out == "two/guide.md\n"
    assert "The harbour two." in mindex("get", "two/guide.md:1-3").out


def test_a_shortened_place_is_accepted_by_get(mindex: Mindex, tmp_path: Path) -> None:
    path = "a-folder/" * 15 + "guide.md"
    mindex("index", write(tmp_path / "docs", {path: "# Harbour\n\nThe harbour."}))
    (row,) = mindex("search", "harbour", "--digest", "--json").json["results"]
    assert row["at"].startswith("…/a-folder/") and row["at"].endswith("/guide.md:1-3")
    assert "The harbour." in mindex("get", row["at"]).out


# ── options ───────────────────────────────────────────────────────────────────────────────────────────────────


def ids(mindex: Mindex, *arguments: object) -> list[str]:
    return [hit["id"] for hit in mindex("search", *arguments, "--json").json["results"]]


def test_pages_share_no_hit_and_together_have_all(mindex: Mindex, shared: Path) -> None:
    everything = ids(mindex, "Redis", "--limit", 50)
    pages = [ids(mindex, "Redis", "--limit", 5, "--offset", start) for start in range(0, 20, 5)]
    assert len(everything) > 6
    assert sorted(id_ for page in pages for id_ in page) == sorted(everything)
    assert set(pages[0]) < set(ids(mindex, "Redis", "--limit", 10)) == {*pages[0], *pages[1]}


def test_a_page_beyond_the_end_prints_the_total(mindex: Mindex, shared: Path) -> None:
    answer = mindex("search", "Redis", "--offset", 4000, "--json").json
    assert answer["results"] == []
    assert answer["notes"][-1] == f"no results after 4000: there are {answer['total']}"


def test_words_that_are_not_quoted_are_one_query(mindex: Mindex, shared: Path) -> None:
    one, other = (mindex("search", *words, "--json").json for words in (["Redis eviction"], ["Redis", "eviction"]))
    assert one == other
    is_one_error(mindex("search"), "QUERY", code=2)


@pytest.mark.parametrize(("option", "value"), [("--limit", 0), ("--limit", -1), ("--offset", -1), ("--budget", 0)])
def test_limits_below_the_minimum_are_usage_errors(mindex: Mindex, shared: Path, option: str, value: int) -> None:
    is_one_error(mindex("search", "Redis", option, value), str(value), code=2)


@pytest.mark.parametrize("limit", [51, 10**9, 10**30])
def test_a_limit_that_is_too_large_is_cut_with_a_note(mindex: Mindex, shared: Path, limit: int) -> None:
    answer = mindex("search", "the", "--limit", limit, "--json").json
    assert "limit cut to 50, the maximum" in answer["notes"]
    assert len(answer["results"]) <= 50


@pytest.mark.parametrize("view", ["full", "compact", "digest", "dual"])
@pytest.mark.parametrize("budget", [60, 150])
def test_a_budget_is_never_exceeded(mindex: Mindex, shared: Path, view: str, budget: int) -> None:
    arguments = ("search", "Redis", "--view", view, "--limit", 20, "--budget", budget)
    for ran in (mindex(*arguments), mindex(*arguments, "--json")):
        assert ran.code == 0
        assert count_tokens(ran.out.rstrip("\n")) <= budget
    assert count_tokens(mindex("search", "Redis", "--view", view, "--limit", 20).out) > budget


def test_explain_prints_what_each_stage_added(mindex: Mindex, shared: Path) -> None:
    assert "explain" not in mindex("search", "Redis", "--json").json["results"][0]
    hit = mindex("search", "Redis", "--explain", "--json").json["results"][0]
    assert hit["explain"]["keyword_rank"] >= 1
    assert sum(stage["change"] for stage in hit["explain"]["stages"]) == pytest.approx(hit["score"], abs=1e-3)
    assert "why: " in mindex("search", "Redis", "--explain").out


@pytest.mark.parametrize("where", [["--digest"], ["--compact"], ["--format", "csv"], ["--format", "files"]])
def test_explain_with_a_short_view_is_refused(mindex: Mindex, shared: Path, where: list[str]) -> None:
    is_one_error(mindex("search", "Redis", "--explain", *where), "--explain", code=2)


def test_current_file_lifts_its_own_domain(mindex: Mindex, shared: Path) -> None:
    def score(domain: str, *more: str) -> float:
        hits = mindex("search", "station key", "--limit", 50, "--explain", "--json", *more).json["results"]
        return max(hit["score"] for hit in hits if hit["domain"] == domain)

    lift = score("caching", "--current-file", "domains/caching/x.md") - score("caching")
    assert lift == pytest.approx(4 * log(1.3), abs=1e-3)  # a factor of e adds 4 to the log-odds
    assert score("caching", "--current-file", "domains/api/x.md") == score("caching")


def test_modes_choose_keyword_and_vector_candidates(mindex: Mindex, with_model: Memory) -> None:
    tiers = {mode: mindex("search", "cached data", "--mode", mode, "--json").json["tier"] for mode in
             ("hybrid", "keyword", "vector")}  # fmt: skip
    assert tiers == {"hybrid": "hybrid", "keyword": "keyword", "vector": "vector"}


def test_fusions_score_in_their_own_way(mindex: Mindex, with_model: Memory) -> None:
    scores = {}
    for fusion in ("blend", "rrf", "minmax", "weighted"):
        answer = mindex("search", "cached data", "--fusion", fusion, "--json").json
        assert answer["fusion"] == fusion
        scores[fusion] = tuple(hit["score"] for hit in answer["results"])
    assert len(set(scores.values())) == 4


def test_explain_has_keyword_and_vector_ranks_with_a_model(mindex: Mindex, with_model: Memory) -> None:
    explain = mindex("search", "how is data cached", "--explain", "--json").json["results"][0]["explain"]
    assert set(explain) >= {"vector_rank", "cosine", "relevance", "stages"}
    names = {"matched_share": "coverage", "cosine_zscore": "z", "model_fluency": "g"}
    assert [explain[name] for name in names] == [explain[short] for short in names.values()]


def test_a_query_without_a_relevant_hit_finds_nothing(mindex: Mindex, with_model: Memory) -> None:
    ran = mindex("search", "sourdough bread starter", "--json")
    assert ran.code == 0
    assert ran.json["results"] == []
    assert any(note.startswith("nothing relevant") for note in ran.json["notes"])


def test_an_empty_memory_names_the_commands_that_fill_it(mindex: Mindex) -> None:
    note = "the memory is empty; `mindex index FOLDER` or `mindex add` fills it"
    assert mindex("search", "redis", "--json").json["notes"] == [note]


def test_a_filter_that_nothing_matches_is_named(mindex: Mindex, with_model: Memory) -> None:
    for filters, named in (
        (["--path", "nosuch/*"], "path nosuch/*"),
        (["--type", "decision"], "type decision"),
        (["--kind", "turn", "--tag", "a", "--tag", "b"], "kind turn, tag a or b"),
        (["--all-tags", "a", "--all-tags", "b"], "tag a and b"),
    ):
        notes = mindex("search", "redis", *filters, "--json").json["notes"]
        assert notes == [f"nothing in scope matches the filter: {named}"]
    assert mindex("search", "redis", "--after", "2999", "--json").json["notes"] == [
        "nothing in scope matches the filter"
    ]


def test_an_agent_without_entries_is_not_named_as_a_filter(mindex: Mindex) -> None:
    mindex("add", "Redis it is.", "--agent", "bob")
    notes = mindex("search", "redis", "--json").json["notes"]
    filled = "`mindex index FOLDER` or `mindex add` fills it"
    assert notes == [f"agent main has no entries, and no folder is indexed; {filled}"]
    notes = mindex("search", "redis", "--kind", "memory", "--json").json["notes"]
    assert notes == ["agent main has no memories yet; `mindex add` adds one"]


def test_a_first_index_that_is_not_complete_names_the_command_that_completes_it(
    mindex: Mindex, tmp_path: Path, database: str
) -> None:
    root = write(tmp_path / "docs", {"a.md": "# Redis\n\nRedis it is.\n"})
    with Memory(database) as memory:
        memory.collections.add(root)  # as `index` leaves it before the first file is stored
    (note,) = mindex("search", "redis", "--json").json["notes"]
    then = "search again when `mindex index` has ended; run it if it was interrupted"
    assert note == f"docs: the first indexing is not complete; {then}"
    mindex("index")
    assert mindex("search", "redis", "--json").json["total"] == 1


def test_an_expired_match_names_the_option_that_shows_it(mindex: Mindex) -> None:
    id_ = mindex("add", "The lift is broken today.", "--json").json["id"]
    with Memory() as memory:
        memory.update(id_, expires=now_ms() + 50)
        wait_until(lambda: now_ms() > (memory.entries.find(id_).expires_at or 0), what="its end")
    assert "note: 1 expired; --include-expired shows it" in mindex("search", "lift").out
    assert mindex("search", "lift", "--include-expired", "--json").json["total"] == 1


@pytest.mark.model
def test_files_without_vectors_name_the_command_that_makes_them(
    mindex: Mindex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "local")
    mindex("index", write(tmp_path / "docs", {"a.md": "Redis it is."}), "--no-embed")
    answer = mindex("search", "redis", "--json").json
    assert len(answer["results"]) == 1
    assert answer["notes"] == [
        "no record in scope has a vector yet; answered by keyword; `mindex backfill` makes the vectors"
    ]


# ── filters ───────────────────────────────────────────────────────────────────────────────────────────────────


def found(mindex: Mindex, *arguments: object) -> set[str]:
    ran = mindex("search", *arguments, "--limit", 50, "--json")
    assert ran.code == 0, ran
    return {hit.get("path") or hit["id"] for hit in ran.json["results"]}


def test_collection_and_path_filter_by_place(mindex: Mindex, indexed: Path, tmp_path: Path) -> None:
    mindex("index", write(tmp_path / "more", {"notes.md": "# Redis\n\nRedis elsewhere"}))
    assert found(mindex, "redis", "--collection", "more") == {"notes.md"}
    assert "notes.md" in found(mindex, "redis", "--collection", "more", "--collection", "handbook")
    assert found(mindex, "redis", "--path", "domains/caching/redis.md") == {"domains/caching/redis.md"}
    assert all(path.startswith("domains/caching/") for path in found(mindex, "redis", "--path", "domains/caching"))
    assert found(mindex, "redis", "--path", "*dis.md") == {"domains/caching/redis.md"}
    is_one_error(mindex("search", "redis", "--collection", "nope"), "nope", "handbook, more", code=2)


def test_tags_filter_by_any_of_them(mindex: Mindex, shared: Path) -> None:
    caching, api = found(mindex, "the", "--tag", "caching"), found(mindex, "the", "--tag", "api")
    assert caching
    assert api
    assert found(mindex, "the", "--tag", "CACHING", "--tag", "api") == caching | api
    assert found(mindex, "the", "--tag", "no-such-tag") == set()


def test_all_tags_filters_by_each_of_them(mindex: Mindex, tmp_path: Path) -> None:
    both, one = ("---\ntags: [harbour, tide]\n---\nships"), ("---\ntags: [tide]\n---\nships")
    mindex("index", write(tmp_path / "docs", {"both.md": both, "one.md": one}))
    assert found(mindex, "ships", "--tag", "harbour", "--tag", "tide") == {"both.md", "one.md"}
    assert found(mindex, "ships", "--all-tags", "Harbour", "--all-tags", "tide") == {"both.md"}
    assert found(mindex, "ships", "--all-tags", "tide") == {"both.md", "one.md"}
    assert found(mindex, "ships", "--tag", "tide", "--all-tags", "no-such-tag") == set()


def test_times_filter_by_when_a_file_was_written(mindex: Mindex, tmp_path: Path) -> None:
    root = write(tmp_path / "docs", {"old.md": "harbour", "new.md": "harbour"})
    os.utime(root / "old.md", (now_ms() / 1000 - 30 * DAY,) * 2)
    mindex("index", root)
    assert found(mindex, "harbour", "--after", "7d") == {"new.md"}
    assert found(mindex, "harbour", "--before", "1w") == {"old.md"}
    assert found(mindex, "harbour", "--after", "2 months ago", "--before", "last 7 days") == {"old.md"}
    is_one_error(mindex("search", "harbour", "--after", "yesterdayish"), "yesterdayish", code=2)


@pytest.fixture
def message(mindex: Mindex, indexed: Path, database: str) -> str:
    now = now_ms()
    common = {"kind": "memory", "created_at": now, "updated_at": now}
    for record in (
        Record(id="mine", agent="main", type="fact", importance=8, confidence=0.9, text="redis mine", **common),  # type: ignore[arg-type]
        Record(id="vague", agent="main", type="insight", importance=2, confidence=0.3, text="redis vague", **common),  # type: ignore[arg-type]
        Record(id="theirs", agent="bob", type="fact", text="redis theirs", **common),  # type: ignore[arg-type]
        Record(id="expired", agent="main", expires_at=now - 1000, text="redis expired", **common),  # type: ignore[arg-type]
    ):
        store_entry(database, record)
    return database


def test_the_filters_of_entries(mindex: Mindex, message: str) -> None:
    assert found(mindex, "redis", "--kind", "memory") == {"mine", "vague"}
    assert {"mine", "domains/caching/redis.md"} <= found(mindex, "redis", "--kind", "memory", "--kind", "chunk")
    assert found(mindex, "redis", "--type", "insight") == {"vague"}
    assert found(mindex, "redis", "--min-importance", 5) == {"mine"}
    assert found(mindex, "redis", "--min-confidence", 0.5) == {"mine"}
    assert found(mindex, "redis", "--kind", "memory", "--include-expired") == {"mine", "vague", "expired"}


def test_entries_of_another_agent_are_found_only_with_its_name(mindex: Mindex, message: str) -> None:
    assert found(mindex, "redis", "--kind", "memory", "--agent", "bob") == {"theirs"}
    assert found(mindex, "redis", "--kind", "memory", "--agent", "*") == {"mine", "vague", "theirs"}
    assert found(mindex, "--agent=bob", "redis", "--kind", "memory") == {"theirs"}
    assert "domains/caching/redis.md" in found(mindex, "redis", "--agent", "bob")


@pytest.mark.parametrize(
    "wrong",
    [
        ["--kind", "nonsense"],
        ["--view", "tiny"],
        ["--mode", "magic"],
        ["--fusion", "cold"],
        ["--format", "yaml"],
        ["--min-importance", "11"],
        ["--min-confidence", "1.5"],
        ["--limit", "many"],
        ["--nope"],
    ],
)
def test_a_wrong_option_is_a_usage_error(mindex: Mindex, shared: Path, wrong: list[str]) -> None:
    is_one_error(mindex("search", "redis", *wrong), wrong[-1], code=2)
    ran = mindex("search", "redis", *wrong, "--json")
    assert ran.code == 2
    assert ran.json["error"]["kind"] == "usage"
    assert set(ran.json["error"]) == {"kind", "message", "hint"}


# ── formats ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_every_format_holds_the_same_hits(mindex: Mindex, shared: Path) -> None:
    hits = mindex("search", "Redis", "--json").json["results"]
    assert mindex("search", "Redis", "--format", "json").json["results"] == hits
    assert mindex("search", "Redis", "--format", "json", "--json").json["results"] == hits
    assert mindex("search", "Redis", "--format", "text").out == mindex("search", "Redis").out
    rows = list(csv.DictReader(io.StringIO(mindex("search", "Redis", "--format", "csv").out)))
    assert [row["id"] for row in rows] == [hit["id"] for hit in hits]
    assert [row["text"] for row in rows] == [hit["text"] for hit in hits]
    markdown = mindex("search", "Redis", "--format", "md").out
    assert all(f"## {hit['title']}" in markdown and quoted(hit["text"]) in markdown for hit in hits)
    files = mindex("search", "Redis", "--format", "files").out.splitlines()
    assert files == list(dict.fromkeys(hit["path"] for hit in hits))


def test_a_csv_or_markdown_that_was_cut_has_a_note(mindex: Mindex, shared: Path) -> None:
    ran = mindex("search", "Redis", "--format", "csv", "--budget", 400)
    rows = len(list(csv.DictReader(io.StringIO(ran.out))))
    note = f"note: budget of 400 tokens: {rows} of 5 shown, as passages\n"
    assert 1 < rows < 5
    assert note in ran.err
    assert mindex("search", "Redis", "--format", "md", "--budget", 400).out.endswith(f"\n\n{note}")
    (row, _) = csv.DictReader(io.StringIO(mindex("search", "Redis", "--format", "csv", "--budget", 150).out))
    assert "redis" in row["text"].lower() and row["truncated"] == "true"


def test_json_and_another_format_contradict(mindex: Mindex, shared: Path) -> None:
    ran = mindex("search", "Redis", "--format", "csv", "--json")
    assert (ran.code, ran.json["error"]["kind"]) == (2, "usage")


# ── queries ───────────────────────────────────────────────────────────────────────────────────────────────────

STRANGE = [
    "?!?", '"', '"unbalanced', "NOT", "NOT redis", "AND OR", "*", "{content}:", "{content}: ", "title:", "(((", ")",
    "^", "'; DROP TABLE records; --", "redis\0 cache", "\0", "\udcff\ud800", "a" * 100_000, "redis " * 20_000,
    '"' * 5_000, "(" * 5_000, "NEAR(redis, 5)", "a MATCH 'x'", "%", "_", "\\", "\U0001f980", "-", "--", "-x",
]  # fmt: skip


@pytest.mark.parametrize("query", STRANGE, ids=range(len(STRANGE)))
def test_no_query_is_an_error(mindex: Mindex, shared: Path, query: str) -> None:
    ran = mindex("search", "--json", "--limit", 1, "--", query)
    assert ran.code == 0, ran
    assert ran.json["notes"]
    assert mindex("status", "--json").json["records"]["chunk"] > 50


@pytest.mark.parametrize("query", ["", "   ", "\n"])
def test_an_empty_query_is_a_usage_error(mindex: Mindex, shared: Path, query: str) -> None:
    is_one_error(mindex("search", query), "empty", code=2)


def test_a_query_that_starts_with_a_dash_follows_two_dashes(mindex: Mindex, tmp_path: Path) -> None:
    mindex("index", write(tmp_path / "docs", {"a.md": "Use -redis to leave it out. The flag is --json."}))
    assert mindex("search", "--json", "--", "-redis").json["total"] == 1
    ran = mindex("search", "--", "--json")  # a question about the flag, not the flag
    assert ran.out.startswith("1 of 1")
    is_one_error(mindex("search", "--limit", 0, "--", "--json"), "limit 0", code=2)
    is_one_error(mindex("search", "-redis"), "-r", code=2)


def test_a_query_with_half_a_surrogate_finds_its_words(mindex: Mindex, shared: Path) -> None:
    assert mindex("search", "redis \udcff", "--json").json["tier"] == "keyword"
    is_one_error(mindex("search", "redis", "--path", "\udcff"), code=2)


def test_a_long_query_is_cut_with_a_note(mindex: Mindex, shared: Path) -> None:
    ran = mindex("search", "redis " * 20_000, "--json")
    assert "query cut to 4000 characters" in ran.json["notes"]
    assert ran.json["results"]
    assert len(ran.json["query"]) < 500


def test_non_ascii_text_is_found_and_printed(mindex: Mindex, tmp_path: Path) -> None:
    mindex(
        "index", write(tmp_path / "docs", {"größe.md": "# Übersicht\n\nDie Größe der Tür.", "東京.md": "東京の天気"})
    )
    assert "Die Größe der Tür." in mindex("search", "größe").out
    ran = mindex("search", "東京", "--json")
    assert ran.json["results"][0]["path"] == "東京.md"
    assert "東京" in ran.out
    assert json.loads(ran.out) == ran.json
