"""The views of an answer, as JSON and as text."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from mindex.datatypes import Hit, Record
from mindex.present.answer_view import VIEWS, DualView, View, view_answer
from mindex.present.to_json import compact_json
from mindex.present.token_count import count_tokens
from tests.present.values import answer, hit, memory_hit


def test_an_absent_value_is_left_out_not_null() -> None:
    shown = view_answer(answer(hit(1))).json()
    assert "null" not in compact_json(shown)
    (result,) = shown["results"]  # type: ignore[misc]
    assert set(result) == {  # type: ignore[arg-type]
        "id", "kind", "title", "score", "relevance", "tokens", "path", "collection", "first_line", "last_line",
        "domain", "tags", "text", "highlights",
    }  # fmt: skip


def test_explain_shows_the_stages_and_they_sum_to_the_score() -> None:
    (result,) = view_answer(answer(hit(1)), explain=True).json()["results"]  # type: ignore[misc]
    assert sum(stage["change"] for stage in result["explain"]["stages"]) == pytest.approx(result["score"])  # type: ignore


def test_five_results_cost_little() -> None:
    five = answer(*(hit(number) for number in range(1, 6)))
    assert count_tokens(view_answer(five, "digest").text()) <= 60
    assert count_tokens(view_answer(five, "compact").text()) <= 160


def test_a_digest_names_id_and_place_only() -> None:
    (result,) = view_answer(answer(hit(3)), "digest").json()["results"]  # type: ignore[misc]
    assert result == {"id": "abcdefghij03", "at": "docs/caching.md:3-8"}


def test_a_digest_of_a_memory_shows_its_first_words() -> None:
    shown = view_answer(answer(memory_hit("Postgres it is.", 1)), "digest")
    assert shown.json()["results"] == [{"id": "abcdefghij01", "title": "Postgres it is."}]
    assert shown.text().endswith("\nabcdefghij01 · Postgres it is.")
    five = [memory_hit("We chose Postgres for all invoices.", number) for number in range(1, 6)]
    assert view_answer(answer(*five), "digest").rows[0].title == "We chose Postgres…"


PATHS = ["docs/" + "a-long-folder/" * 20 + "caching.md", "a-very-long-name-" * 12 + ".md", "文書/" * 60 + "東京.md"]


@pytest.mark.parametrize("path", PATHS)
def test_five_results_cost_little_however_long_their_paths_are(path: str) -> None:
    five = answer(*(hit(number, path=path) for number in range(1, 6)))
    assert count_tokens(view_answer(five, "digest", several_collections=True).text()) <= 60
    assert count_tokens(view_answer(five, "compact", several_collections=True).text()) <= 200


@pytest.mark.parametrize("text", ["considerable " * 50, "東京の天気は晴れ" * 20, "x" * 300])
def test_five_long_memories_cost_little_as_a_digest(text: str) -> None:
    shown = view_answer(answer(*(memory_hit(text, number) for number in range(1, 6))), "digest")
    assert count_tokens(shown.text()) <= 60
    assert all((row.title or "").endswith("…") and text.startswith((row.title or "")[:-1]) for row in shown.rows)


def test_a_place_is_shortened_from_its_first_folder_on() -> None:
    path = "docs/a/rather/deep/place/caching.md"
    five = answer(*(hit(number, path=path) for number in range(1, 6)))
    assert view_answer(five, "digest").rows[2].at == "…/place/caching.md:3-8"
    assert view_answer(five, "compact").rows[2].at == f"{path}:3-8"


def test_a_short_place_leaves_more_to_a_long_one() -> None:
    path = "docs/a/rather/deep/place/caching.md"
    hits = [hit(1, path=path), *(hit(number, path="a.md") for number in range(2, 6))]
    assert view_answer(answer(*hits), "digest").rows[0].at == f"{path}:1-6"
    assert view_answer(answer(hits[0]), "digest").rows[0].at == f"{path}:1-6"


@pytest.mark.parametrize("view", ["compact", "digest"])
def test_a_place_names_its_collection_if_there_are_several(view: View) -> None:
    (row,) = view_answer(answer(hit(3, path="a.md")), view, several_collections=True).rows
    assert row.at == "docs/a.md:3-8"
    (row,) = view_answer(answer(hit(3, path="a.md")), view).rows
    assert row.at == "a.md:3-8"


def test_a_weak_line_that_is_cut_says_so() -> None:
    long = "The engine of the boat is a Yanmar 2GM20 and needs oil every 100 hours"
    weak = [replace(memory_hit(text, number), weak=True) for number, text in enumerate((long, "Tea is green"))]
    titles = [row.title or "" for row in view_answer(answer(*weak)).rows]
    assert titles == ["The engine of the boat is a Yanmar 2GM20 and…", "Tea is green"]


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("text", ["considerable " * 50, "東京の天気は晴れ" * 20, "x" * 300])
def test_a_weak_hit_beside_a_confident_one_is_a_line_of_twenty_tokens(view: View, text: str) -> None:
    far = (memory_hit(text, 2), hit(3, text, path="a/" * 90 + "b.md"))
    weak = [replace(one, weak=True, relevance=0.2) for one in far]
    shown = view_answer(answer(hit(1), *weak), view, budget=1_000)
    lines = [line for line in shown.text().splitlines() if line.startswith(("abcdefghij02", "abcdefghij03"))]
    assert len(lines) == 2 and max(map(count_tokens, lines)) <= 20


@pytest.mark.parametrize("budget", [None, 100, 1_000])
def test_the_passages_of_a_weak_hit_near_the_best_one_are_shown(budget: int | None) -> None:
    near = replace(hit(2, "Data is cached in Redis."), weak=True, relevance=0.4)
    _, row = view_answer(answer(hit(1, "Cached data expires."), near), "passages", budget=budget).rows
    assert (row.text, row.weak) == ("Data is cached in Redis.", True)


def test_an_answer_that_is_not_confident_has_passages_only_within_a_budget() -> None:
    weak = answer(*(replace(hit(number, f"Data {number} is cached."), weak=True) for number in range(1, 4)))
    assert not any(row.text for row in view_answer(weak, "passages").rows)
    assert all(row.text for row in view_answer(weak, "passages", budget=300).rows)


def test_weak_hits_beyond_the_page_are_more() -> None:
    weak = replace(answer(replace(memory_hit("Tea is green", 1), weak=True)), total=3, has_more=True)
    shown = view_answer(weak)
    assert shown.has_more and shown.text().splitlines()[0] == f"{len(shown.rows)} of {shown.total} results"


@pytest.mark.parametrize("weak", [False, True])
def test_a_line_of_a_profile_has_the_value_that_matches_or_else_the_first_ones(weak: bool) -> None:
    values = [f"key{number}: a value of some length" for number in range(40)]
    text = "\n".join(["user.name: Anna", *values, "user.home: Lisbon"])
    profile = Record(id="p", kind="profile", text=text, title="Profile of main", summary="Profile of main")
    for query, value in (("what is my home", "user.home: Lisbon"), ("where do I live", "user.name: Anna")):
        found = answer(Hit(profile, 0.6, 0.1 if weak else 0.9, weak=weak), query=query)
        for view in ("compact", "dual"):
            assert value in view_answer(found, view).text().splitlines()[1]
        digest = view_answer(found, "digest").rows[0]
        assert "Profile of" not in (digest.title or "") and digest.title


def test_a_weak_line_names_its_collection_if_there_are_several() -> None:
    weak = answer(replace(hit(3), weak=True, relevance=0.1))
    assert view_answer(weak).text().splitlines()[1] == "abcdefghij03 caching.md · Caching · weak 0.1"
    assert " caching.md (docs) · " in view_answer(weak, several_collections=True).text()


def test_the_json_of_a_weak_hit_has_the_names_of_other_hits() -> None:
    (row,) = view_answer(answer(replace(hit(3), weak=True, relevance=0.1))).json()["results"]  # type: ignore[misc, union-attr]
    full = view_answer(answer(hit(3))).json()["results"][0]  # type: ignore[index]
    assert {"id", "title", "path", "score", "relevance"} <= set(row) <= {*full, "weak"}  # type: ignore[arg-type]
    assert (row["path"], row["title"]) == ("docs/caching.md", "Caching")  # type: ignore[index, call-overload]


def test_the_json_of_a_weak_entry_has_a_path_that_is_empty() -> None:
    memory = replace(hit(3), weak=True, record=replace(hit(3).record, kind="memory", path=None, title=""))
    (row,) = view_answer(answer(memory)).json()["results"]  # type: ignore[misc, union-attr]
    assert {"id", "title", "path", "score", "relevance"} <= set(row)  # type: ignore[arg-type]
    assert row["path"] == ""  # type: ignore[index, call-overload]


@pytest.mark.parametrize("view", ["full", "dual"])
def test_text_shows_the_relevance_alone_and_json_both(view: View) -> None:
    shown = view_answer(answer(hit(1)), view)
    assert "relevance 0.9" in shown.text() and "score" not in shown.text()
    row = shown.json()["details" if view == "dual" else "results"][0]  # type: ignore[index]
    assert (row["score"], row["relevance"]) == (0.6, 0.9)  # type: ignore[index, call-overload]


@pytest.mark.parametrize("view", ["full", "dual"])
def test_an_explained_answer_names_an_order_that_is_not_that_of_the_relevance(view: View) -> None:
    first, second = replace(hit(1), relevance=0.4), replace(hit(2), relevance=0.7)
    head = view_answer(answer(first, second), view, explain=True).text().splitlines()[0]
    assert head.endswith(" tokens · ordered by score")
    assert "ordered by" not in view_answer(answer(second, first), view, explain=True).text()
    assert "ordered by" not in view_answer(answer(first, second), view).text()


@pytest.mark.parametrize("view", VIEWS)
def test_the_head_is_a_plain_line_and_an_unusual_tier_is_a_note(view: View) -> None:
    found = replace(answer(hit(1), hit(2)), total=200, total_capped=True)
    in_detail = ", 2 in detail" if view == "dual" else ""
    assert view_answer(found, view).text().splitlines()[0] == f"2 of 200+ results{in_detail}"
    assert "note: keyword search only" in view_answer(replace(found, tier="keyword"), view).text()
    nothing = replace(found, hits=(), total=0, total_capped=False, tier="keyword")
    assert view_answer(nothing, view).text() == "no results"


def test_explain_shows_the_score() -> None:
    assert "why: score 0.6, keyword rank 1, " in view_answer(answer(hit(1)), explain=True).text()


def test_the_dual_view_counts_what_it_shows() -> None:
    hits = [hit(number, "word " * 60) for number in range(1, 7)]
    assert view_answer(answer(*hits), "dual", details=2).text().startswith("6 of 6 results, 2 in detail\n")
    shown = view_answer(answer(*hits), "dual", budget=170)
    assert isinstance(shown, DualView) and 0 < len(shown.index) < 6
    assert shown.text().startswith(f"{len(shown.index)} of 6 results, 1 in detail\n")
    assert shown.has_more


def test_the_dual_view_has_its_own_keys() -> None:
    shown = view_answer(answer(hit(1), hit(2)), "dual", details=1).json()
    assert {"index", "details", "total_count", "has_more", "tokens_used", "query"} <= set(shown)
    assert [list(row) for row in shown["index"]] == [["id", "summary"]] * 2  # type: ignore[union-attr, arg-type]
    assert len(shown["details"]) == 1  # type: ignore[arg-type]
    assert shown["has_more"] is True


@pytest.mark.parametrize("view", VIEWS)
def test_text_and_json_carry_the_same_content(view: View) -> None:
    shown = view_answer(answer(hit(1), hit(2), notes=("a note",)), view)
    text = shown.text()
    values = json.loads(compact_json(shown))
    for row in [*values.get("results", ()), *values.get("index", ()), *values.get("details", ())]:
        for name, value in row.items():
            for part in value if isinstance(value, list) else [value]:
                assert name in ("kind", "score", "first_line", "last_line", "highlights") or str(part) in text, name
    assert "a note" in text


# ── the best passage ──────────────────────────────────────────────────────────────────────────────────────────


LINES = [f"Line {n} is about something else entirely." for n in range(1, 60)]


def long_hit(number: int = 1) -> Hit:
    """A chunk of a file whose 41st line answers the question."""
    return hit(number, "\n".join([*LINES[:40], "Data is cached for ten minutes.", *LINES[40:]]))


def test_highlights_are_the_characters_of_the_text_that_match() -> None:
    (result,) = view_answer(answer(hit(1, "We cache data; RedisCache does not.")), "full").json()["results"]  # type: ignore[misc]
    words = [result["text"][start:end] for start, end in result["highlights"]]  # type: ignore[index,call-overload]
    assert words == ["cache", "data", "Cache"]


def test_json_has_the_ten_most_telling_highlights_and_a_terminal_all_of_them() -> None:
    shown = view_answer(answer(hit(1, "cache " * 30 + "of data, " + "cache " * 30)))
    (result,) = shown.json()["results"]  # type: ignore[misc]
    words = [result["text"][start:end] for start, end in result["highlights"]]  # type: ignore[index,call-overload]
    assert len(words) == 10 and words.count("data") == 1
    assert shown.text(colour=True).count("\x1b[1;31mcache\x1b[0m") == 60


def test_a_text_without_a_match_has_no_highlights() -> None:
    (result,) = view_answer(answer(hit(1, "Nothing of it.")), "full").json()["results"]  # type: ignore[misc]
    assert "highlights" not in result  # type: ignore[operator]


@pytest.mark.parametrize("view", ["passages", "full", "dual"])
@pytest.mark.parametrize("budget", [150, 300, 500])
def test_under_a_budget_the_lines_around_the_match_are_shown_and_cited(view: View, budget: int) -> None:
    shown = view_answer(answer(long_hit()), view, budget=budget)
    (row,) = shown.rows
    assert "Data is cached for ten minutes." in (row.text or "")
    assert not row.runs and (budget > 300 or "Line 1 " not in (row.text or ""))
    path, _, lines = (row.at or "").rpartition(":")
    first, last = map(int, lines.split("-"))
    assert path == "docs/caching.md"
    assert first <= 41 <= last and last - first == (row.text or "").count("\n")
    assert f"docs/caching.md:{first}-{last}" in shown.text()
    assert shown.tokens <= budget


def test_the_note_of_a_budget_says_that_only_passages_are_shown() -> None:
    shown = view_answer(answer(long_hit(1), long_hit(2), hit(3)), budget=800)
    assert shown.notes[0].startswith("budget of 800 tokens: ") and shown.notes[0].endswith(" of 3 shown, as passages")
    assert view_answer(answer(long_hit(1)), "passages", budget=300).notes == ()


def test_the_passages_of_a_memory_are_marked_where_something_is_left_out() -> None:
    told = "Nothing to see here, move on. " * 60 + "Data is cached in Redis. " + "Nothing to see here. " * 60
    (row,) = view_answer(answer(memory_hit(told, 1)), "passages", budget=200).rows
    text = row.text or ""
    assert "Data is cached in Redis." in text and text.startswith("… ") and text.endswith(" …")
    assert text[2:-2] in told


def test_the_dual_view_keeps_half_of_its_budget_for_details() -> None:
    hits = [long_hit(number) for number in range(1, 51)]
    shown = view_answer(answer(*hits), "dual", budget=1_000, details=5)
    assert isinstance(shown, DualView)
    index = count_tokens(compact_json({"index": shown.index}))
    details = count_tokens(compact_json({"details": shown.rows}))
    assert details >= 300 and index >= 200
    assert "Data is cached" in (shown.rows[0].text or "")


def test_what_details_do_not_need_is_for_the_index() -> None:
    hits = [hit(number) for number in range(1, 51)]
    shown = view_answer(answer(*hits), "dual", budget=600, details=1)
    assert isinstance(shown, DualView)
    assert len(shown.rows) == 1 and not shown.rows[0].truncated
    assert count_tokens(compact_json({"index": shown.index})) > 300
    assert 560 < shown.tokens <= 600


def test_matching_words_are_highlighted_on_a_terminal_only() -> None:
    for view in ("full", "dual"):
        shown = view_answer(answer(hit(1, "We cache data.")), view)
        assert "We \x1b[1;31mcache\x1b[0m \x1b[1;31mdata\x1b[0m." in shown.text(colour=True)
        assert "\x1b" not in shown.text()
    compact = view_answer(answer(hit(1), query="caching"), "compact").text(colour=True)
    assert "docs/\x1b[1;31mcaching\x1b[0m.md:1-6  \x1b[1;31mCaching\x1b[0m  " in compact


def test_the_index_of_the_dual_view_shows_the_words_around_the_match() -> None:
    shown = view_answer(answer(long_hit(), memory_hit("Some fact.", 2)), "dual")
    assert isinstance(shown, DualView)
    assert "Data is cached for ten minutes." in (shown.index[0].summary or "")
    assert len((shown.index[0].summary or "").split()) <= 20
    assert shown.index[1].summary == "Some fact."


def test_a_passage_that_reaches_the_end_is_not_marked_as_cut_behind() -> None:
    told = "Nothing to see here, move on. " * 60 + "Data is cached in Redis."
    shown = view_answer(answer(memory_hit(told, 1)), "passages", budget=200)
    assert (shown.rows[0].text or "").endswith("Redis.")


# ── passages ──────────────────────────────────────────────────────────────────────────────────────────────────


PARTS = "# Caching\n\n{}\n\nData is cached in Redis.\n\n{}\n\nCached data is dropped at night.\n\n{}".format(
    *("\n\n".join(f"Paragraph {n} of part {part} is about the harbour." for n in range(9)) for part in "abc")
)


def test_a_gap_is_marked_and_each_part_is_cited_by_its_own_lines() -> None:
    shown = view_answer(answer(hit(1, PARTS)), "passages", budget=120)
    (row,) = shown.rows
    lines = PARTS.split("\n")
    assert row.runs is not None and len(row.runs) == len(row.lines or ()) > 1
    for run in row.runs:
        assert run.text == "\n".join(lines[run.first_line - 1 : run.last_line])
        assert f"docs/caching.md:{run.first_line}-{run.last_line}" in shown.text()
    assert row.text == "\n…\n".join(run.text for run in row.runs)
    assert row.at == f"docs/caching.md:{row.runs[0].first_line}-{row.runs[-1].last_line}"


def test_hits_that_fit_are_shown_whole() -> None:
    shown = view_answer(answer(hit(1), memory_hit("Data is cached.\n\nSince Monday.", 2)), "passages")
    assert [row.text for row in shown.rows] == ["Some text about caching.", "Data is cached.\n\nSince Monday."]
    assert "abcdefghij01 · docs/caching.md:1-1 · Caching · relevance 0.9\n  Some text about caching." in shown.text()


def test_a_row_of_a_table_comes_with_its_header() -> None:
    rows = "\n".join(f"| key{n} | {n} |" for n in range(60))
    table = f"| key | minutes |\n| --- | --- |\n{rows}\n| cached data | 77 |\n{rows}"
    (row,) = view_answer(answer(hit(1, table)), "passages", budget=90).rows
    assert "| key | minutes |\n| --- | --- |\n…\n" in (row.text or "")
    assert "| cached data | 77 |" in (row.text or "")


def test_a_code_block_is_never_split_unless_it_alone_exceeds_the_budget() -> None:
    code = "```python\n" + "\n\n".join(f"cached_data_{n} = {n}\nprint({n})" for n in range(20)) + "\n```"
    text = f"{LINES[0]}\n\nData is cached:\n\n{code}\n\n{LINES[1]}"
    assert count_tokens(code) < 230
    for budget in (300, 320, 500):
        text_shown = view_answer(answer(hit(1, text)), "passages", budget=budget).text()
        assert ("```python" in text_shown) == ("cached_data_19" in text_shown) == ("\n  ```\n" in f"{text_shown}\n")
    (row,) = view_answer(answer(hit(1, text)), "passages", budget=120).rows
    parts = [part for run in (row.runs or ()) for part in run.text.split("\n\n")] or (row.text or "").split("\n\n")
    assert any(part.startswith("cached_data_") for part in parts)
    for part in parts:
        if "cached_data_" in part:  # cut at blank lines: an assignment is never without its print
            assert part.count("cached_data_") == part.count("print(")


@pytest.mark.parametrize("text", ["数据缓存在东京。今天天气很好。" * 40, "データはキャッシュされる。天気は晴れ。" * 40])
def test_unspaced_text_is_cut_at_the_ends_of_sentences(text: str) -> None:
    (row,) = view_answer(answer(memory_hit(text, 1), query="数据缓存 データ"), "passages", budget=200).rows
    parts = (row.text or "").strip("… ").split(" … ")
    assert parts and all(part.endswith("。") and part in text for part in parts)


def test_the_text_around_a_match_comes_before_single_words_in_the_last_hits() -> None:
    fruits = "apples bananas cherries dates elderberries figs grapes".split()
    kept = " ".join(f"The {fruit} are kept in Redis for {hours} hours." for hours, fruit in enumerate(fruits))
    others = [
        " ".join(f"Sentence {at}.{part} of another text, which has the word data." for part in range(8))
        for at in range(2, 7)
    ]
    first = hit(1, f"This is how data is cached. {kept}")
    last = [replace(hit(number, text), relevance=0.6) for number, text in enumerate(others, start=2)]
    shown = view_answer(answer(first, *last), "passages", budget=400)
    assert all(fruit in (shown.rows[0].text or "") for fruit in fruits)
    assert len(shown.rows) < 1 + len(last)


def test_a_passage_that_an_earlier_hit_has_comes_last() -> None:
    text = "Data is cached in Redis. " + "Nothing of the kind is said here, move on to the next. " * 30
    other = "Redis drops cached data at night, once the backup has been made. " + "Elsewhere it rains. " * 60
    shown = view_answer(answer(hit(1, text), hit(2, text), hit(3, other)), "passages", budget=160)
    assert shown.text().count("Data is cached in Redis.") == 1
    assert "drops cached data at night" in shown.text()


def test_the_compact_view_has_the_line_that_answers_of_a_file() -> None:
    (row,) = view_answer(answer(long_hit()), "compact").rows
    assert row.summary == "Data is cached for ten minutes."
    assert "· Data is cached for ten minutes." in view_answer(answer(long_hit()), "compact").text()


@pytest.mark.parametrize("view", ["compact", "passages"])
def test_the_json_of_short_views_leaves_out_what_is_constant_or_known(view: View) -> None:
    shown = view_answer(answer(hit(1), replace(hit(2), weak=True)), view).json()
    assert not {"query", "fusion", "tier"} & set(shown)
    confident, weak = shown["results"]  # type: ignore[misc]
    assert not {"kind", "domain", "highlights", "tags", "tokens"} & {*confident, *weak}  # type: ignore[misc]
    place = {"at", "text"} if view == "passages" else {"path", "score"}
    assert set(weak) == {"id", "title", "relevance", "weak", *place}  # type: ignore[arg-type]
