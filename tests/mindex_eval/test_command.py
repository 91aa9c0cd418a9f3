from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.conftest import write
from tests.mindex_eval.conftest import beir_set
from tests.postgres_server import PostgresServer
from tests.running import is_one_error, run_here

METRICS = ["ndcg@10", "recall@5", "recall@10", "hit@5", "mrr", "tokens", "p50_ms", "p95_ms"]

pytestmark = pytest.mark.usefixtures("no_model")


def test_a_table_for_people(garden: Path) -> None:
    ran = run_here("eval", garden)
    assert ran.code == 0, ran
    lines = ran.out.splitlines()
    assert lines[0] == "garden: 10 documents, 7 queries"
    head = next(line for line in lines if "nDCG@10" in line)
    assert head.split() == ["nDCG@10", "recall@5", "recall@10", "hit@5", "MRR", "tokens", "p50", "ms", "p95", "ms"]
    row = next(line for line in lines if line.startswith("keyword")).split()
    assert len(row) == 9
    assert float(row[1]) > 0.8
    assert ran.err == ""


def test_the_object_that_other_programs_rely_on(garden: Path) -> None:
    shown = run_here("eval", garden, "--json").json
    assert (shown["set"], shown["documents"], shown["queries"]) == ("garden", 10, 7)
    assert list(shown["runs"]) == ["keyword"]
    assert list(shown["runs"]["keyword"])[: len(METRICS)] == METRICS
    assert set(shown["per_query"]["keyword"]) == {f"q{number}" for number in range(1, 8)}
    assert shown["settings"] == {"embedding.provider": "none"}
    assert shown["version"]
    mean = sum(one["ndcg@10"] for one in shown["per_query"]["keyword"].values()) / 7
    assert shown["runs"]["keyword"]["ndcg@10"] == pytest.approx(mean, abs=1e-5)


def test_a_set_is_measured_on_postgresql_and_nothing_stays_there(
    garden: Path, postgres_database: str, postgres_server: PostgresServer
) -> None:
    schemas = "SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'mindex_scratch_%'"
    here, there = (run_here("eval", garden, "--json", *more).json for more in ((), ("--on", postgres_database)))
    assert there["runs"]["keyword"]["ndcg@10"] == pytest.approx(here["runs"]["keyword"]["ndcg@10"], abs=0.005)
    assert postgres_server.run(schemas) == [(0,)]


def test_only_postgresql_makes_a_database_for_a_run(garden: Path) -> None:
    is_one_error(run_here("eval", garden, "--on", "azure://service/index"), "is not a PostgreSQL database")


def test_several_sets_have_a_mean(garden: Path, stars: Path) -> None:
    shown = run_here("eval", garden, stars, "--json").json
    assert [one["set"] for one in shown["sets"]] == ["garden", "stars"]
    scores = [one["runs"]["keyword"]["ndcg@10"] for one in shown["sets"]]
    assert shown["mean"]["keyword"]["ndcg@10"] == pytest.approx(sum(scores) / 2, abs=1e-5)
    assert "mean of 2 sets" in run_here("eval", garden, stars).out


def test_text_and_json_say_the_same(garden: Path) -> None:
    shown, text = run_here("eval", garden, "--json", "--worst", 1).json, run_here("eval", garden, "--worst", 1).out
    assert f"{shown['runs']['keyword']['ndcg@10']:.3f}" in text
    assert shown["worst"][0]["id"] in text
    assert "why: keyword rank" in text
    assert shown["worst"][0]["expected"][0]["id"] in text


def test_a_run_is_compared_with_an_earlier_one(garden: Path, tmp_path: Path) -> None:
    (tmp_path / "before.json").write_text(run_here("eval", garden, "--json", "--set", "search.candidates=1").out)
    ran = run_here("eval", garden, "--compare", tmp_path / "before.json", "--metric", "recall@10")
    assert "keyword: no significant difference, recall@10 " in ran.out
    (one,) = run_here("eval", garden, "--compare", tmp_path / "before.json", "--json").json["compared"]
    assert one["queries"] == 7
    assert one["interval"][0] <= one["difference"] <= one["interval"][1]


def test_a_run_compared_with_itself_differs_in_nothing(tmp_path: Path) -> None:
    """The right one is second each time: 0.63092975… has more digits than a file holds."""
    words = ["walrus", "kettle", "violin", "ladder", "pepper", "tunnel", "magnet", "saddle", "candle", "anchor"]
    corpus = [{"_id": f"a{word}", "title": word, "text": f"The {word} {word}: all about the {word}."} for word in words]
    corpus += [{"_id": word, "text": f"Beside many other things there is one {word} at the end."} for word in words]
    asked = [{"_id": f"q{word}", "text": word} for word in words]
    folder = beir_set(tmp_path / "s", corpus, asked, [(f"q{word}", word, 1) for word in words])
    ran = run_here("eval", folder, "--json")
    assert {one["ndcg@10"] for one in ran.json["per_query"]["keyword"].values()} == {0.63093}
    (tmp_path / "same.json").write_text(ran.out)
    (one,) = run_here("eval", folder, "--compare", tmp_path / "same.json", "--json").json["compared"]
    assert (one["difference"], one["interval"], one["p"]) == (0, [0, 0], 1)
    assert one["verdict"] == "no significant difference"


def test_a_single_one_is_counted_as_one(tmp_path: Path) -> None:
    folder = beir_set(
        tmp_path / "s", [{"_id": "d", "text": "kumquat"}], [{"_id": "q", "text": "kumquat"}], [("q", "d", 1)]
    )
    (tmp_path / "before.json").write_text(run_here("eval", folder, "--json").out)
    text = run_here("eval", folder, "--compare", tmp_path / "before.json").out
    assert text.startswith("s: 1 document, 1 query\n")
    assert "p 1.0000, 1 query)" in text


def test_a_sweep_is_a_table_with_the_present_value_marked(garden: Path, stars: Path) -> None:
    asked = ("eval", garden, stars, "--modes", "keyword", "--sweep", "search.candidates=1,200", "--metric", "recall@10")
    text = run_here(*asked).out
    assert text.startswith("recall@10 of keyword\n")
    assert "200 (now)" in text
    assert "left out" in text
    (shown,) = run_here(*asked, "--json").json["sweeps"]
    assert (shown["key"], shown["baseline"]) == ("search.candidates", "200")
    assert [one["value"] for one in shown["values"]] == ["200", "1"]
    assert {one["set"] for one in shown["left_out"]} == {"garden", "stars"}


def test_silence_is_a_table_of_pairs(garden: Path, stars: Path) -> None:
    text = run_here("eval", garden, stars, "--silence").out
    assert "stars → garden" in text
    assert "lowest: " in text
    shown = run_here("eval", garden, stars, "--silence", "--json").json
    assert set(shown["mean"]) == {"auroc", "silenced", "refused"}
    assert shown["lowest"]["refused"] == min(pair["refused"] for pair in shown["pairs"])
    assert shown["languages"] == {"garden": "en", "stars": "en"}


def test_as_shipped_is_printed_beside_the_ranking(garden: Path) -> None:
    lines = run_here("eval", garden).out.splitlines()
    head = next(line for line in lines if line.startswith("as shipped "))
    assert head.split("  ")[0] == "as shipped"
    assert " ".join(head.split()) == "as shipped hit@1 hit@5 recall@5 recall@10 no answer none confident"
    row = lines[lines.index(head) + 1].split()
    shown = run_here("eval", garden, "--json").json
    shipped = shown["runs"]["keyword"]["as_shipped"]
    assert list(shipped)[:6] == ["hit@1", "hit@5", "recall@5", "recall@10", "no_answer", "no_confident"]
    assert row == [
        "keyword",
        f"{shipped['hit@1']:.3f}",
        f"{shipped['hit@5']:.3f}",
        f"{shipped['recall@5']:.3f}",
        f"{shipped['recall@10']:.3f}",
        f"{shipped['no_answer']:.1%}",
        f"{shipped['no_confident']:.1%}",
    ]
    page = shown["as_shipped_per_query"]["keyword"]["q1"]
    assert {name: page[name] for name in ("rank", "hits", "confident", "recall@5")} == {
        "rank": 1,
        "hits": 1,
        "confident": 1,
        "recall@5": 1.0,
    }
    bare = shown["runs"]["keyword"]["without_floor"]
    row = next(line for line in lines if line.startswith("keyword, no floor")).split()
    assert row[3:7] == [f"{bare[name]:.3f}" for name in ("hit@1", "hit@5", "recall@5", "recall@10")]


def test_sets_in_one_memory_are_a_table_from_alone_to_together(garden: Path, stars: Path, tmp_path: Path) -> None:
    asked = ("eval", garden, f"{stars}:memory", "--together")
    text = run_here(*asked, "--keep", tmp_path / "kept").out
    assert "2 sets in one memory: 16 documents, floor 0.5" in text
    row = next(line for line in text.splitlines() if line.startswith("stars:memory"))
    shown = run_here(*asked, "--json").json
    (_, told) = shown["sets"]
    assert (told["set"], told["queries"], told["documents"]) == ("stars:memory", 4, 6)
    for figure in (told["alone"]["ndcg@10"], told["together"]["as_shipped"]["hit@5"]):
        assert f"{figure:.3f}" in row
    assert set(told["per_query"]["a1"]) == {"alone", "together"}
    bare = next(line for line in text.splitlines()[1:] if line.startswith("no floor"))
    assert bare.split() == ["no", "floor", "hit@1", "hit@5", "recall@5", "recall@10"]
    means = [shown["mean"][where]["as_shipped"]["hit@5"] for where in ("alone", "together")]
    assert f"{means[0]:.3f} → {means[1]:.3f}" in text
    kept = run_here("--db", tmp_path / "kept" / "together" / "memory.db", "search", "comet tail", "--json").json
    assert "comet" in kept["results"][0]["text"]


def test_talks_are_shown_by_session_and_every_set_by_category(tmp_path: Path, garden: Path) -> None:
    corpus = [
        {"_id": f"{talk}#{n}", "text": text, "response": "I see.", "date": "2024-01-02"}
        for talk, texts in (("boat", ("My boat is Nimbus.", "It leaks.")), ("violin", ("I sold the violin.",)))
        for n, text in enumerate(texts)
    ]
    asked = [
        {"_id": "q1", "text": "What became of boat and violin?", "category": "both"},
        {"_id": "q2", "text": "Which boat leaks?", "category": "one"},
    ]
    judged = [("q1", "boat#1", 1), ("q1", "violin#0", 1), ("q2", "boat#1", 1)]
    talks = beir_set(tmp_path / "talks", corpus, asked, judged)
    lines = run_here("eval", talks).out.splitlines()
    assert " ".join(next(line for line in lines if line.startswith("by session")).split()[2:]) == (
        "all@5 any@5 all@10 any@10"
    )
    split = lines.index(next(line for line in lines if line.startswith("category, keyword as shipped")))
    assert [line.split()[0] for line in lines[split + 1 : split + 3]] == ["both", "one"]
    shown = run_here("eval", talks, "--json").json
    assert shown["runs"]["keyword"]["as_shipped"]["all@5"] == 1.0  # boat#0 has the session of boat#1
    assert shown["categories"]["values"]["one"]["as_shipped"]["keyword"]["all@5"] == 1.0
    mixed = run_here("eval", talks, garden, "--together").out
    assert "\nby session " in mixed
    assert "\ntalks, category " in mixed


def test_silence_together_leaves_each_set_out(garden: Path, stars: Path) -> None:
    asked = ("eval", garden, stars, "--silence", "--together")
    text = run_here(*asked).out
    assert "left out and asked" in text
    assert "lowest: " in text
    shown = run_here(*asked, "--json").json
    assert [one["set"] for one in shown["sets"]] == ["garden", "stars"]
    assert set(shown["mean"]) == {"no_confident", "no_answer", "tokens"}
    assert shown["lowest"]["no_confident"] == min(one["no_confident"] for one in shown["sets"])


def test_one_set_may_be_measured_in_two_ways(garden: Path) -> None:
    shown = run_here("eval", garden, f"{garden}:memory", "--json").json
    assert [(one["set"], one["documents"]) for one in shown["sets"]] == [("garden", 10), ("garden:memory", 10)]


def test_ones_own_notes_with_questions_that_have_no_answer(tmp_path: Path) -> None:
    asked = "- question: when is the kumquat ripe\n  answer: a.md\n- question: violin concerto\n  none: true\n"
    folder = write(tmp_path / "notes", {"a.md": "# Fruit\n\nThe kumquat is ripe in May.\n", "questions.yaml": asked})
    ran = run_here("eval", folder)
    assert "silence: 1 of 1 questions without an answer refused, 0 of 1 with one silenced" in ran.out
    assert run_here("eval", folder, "--json").json["silence"]["refused"] == 1


def test_without_a_question_with_an_answer_there_is_nothing_to_rank(garden: Path, tmp_path: Path) -> None:
    asked = "- question: violin concerto\n  none: true\n- question: ripe kumquats in May\n  none: true\n"
    folder = write(tmp_path / "notes", {"a.md": "# Fruit\n\nKumquats are ripe in May.\n", "questions.yaml": asked})
    text = run_here("eval", folder).out
    assert text.startswith("notes: 1 document, 2 queries without an answer\n")
    row = next(line for line in text.splitlines() if line.startswith("keyword"))
    assert row.split()[1:] == ["–"] * 8
    assert "silence: 1 of 2 questions without an answer refused\n" in text
    shown = run_here("eval", folder, "--json").json
    assert (shown["queries"], shown["silence"]["unanswerable"]) == (0, 2)
    assert {shown["runs"]["keyword"][name] for name in METRICS} == {None}
    both, alone = run_here("eval", garden, folder, "--json").json, run_here("eval", garden, "--json").json
    assert both["mean"]["keyword"]["ndcg@10"] == alone["runs"]["keyword"]["ndcg@10"]
    assert "mean of" not in run_here("eval", garden, folder).out
    for asked_for in (["--sweep", "search.candidates=1"], ["--silence"]):
        is_one_error(run_here("eval", garden, folder, *asked_for), "none of the 2 questions of notes", code=2)


def test_answers_that_the_settings_keep_out_of_the_index_are_said(tmp_path: Path) -> None:
    files = {"a.md": "kumquat", "venv/b.md": "quince", "c.md": "***\n"}
    asked = "".join(f"- question: {path}\n  answer: {path}\n" for path in files)
    folder = write(tmp_path / "notes", {**files, "questions.yaml": asked})
    text = run_here("eval", folder).out
    assert "note: nothing is indexed of venv/b.md and 1 more, which is to answer questions" in text


def test_a_question_without_an_id_is_shown_once(tmp_path: Path) -> None:
    asked = (
        "- question: ripe kumquats\n  answer: b.md\n  difficulty: hard\n- id: n2\n  question: medlar\n  answer: a.md\n"
    )
    files = {"a.md": "Kumquats are ripe in May.", "b.md": "Quinces are not.", "c.md": "medlar", "questions.yaml": asked}
    text = run_here("eval", write(tmp_path / "notes", files), "--worst", 2).out
    assert "\nripe kumquats (hard), nDCG@10 0.000\n" in text
    assert "\nn2, nDCG@10 0.000: medlar\n" in text
    assert "\ndifficulty  queries" in text


def test_the_default_of_a_swept_setting_has_a_name(garden: Path, stars: Path) -> None:
    asked = ("eval", garden, stars, "--modes", "keyword", "--sweep", "embedding.model=other")
    text = run_here(*asked).out
    assert "\ndefault (now)  " in text
    garden_row = next(line for line in text.splitlines() if line.startswith("garden"))
    assert garden_row.split()[1] == garden_row.split()[3] == "default"
    assert run_here(*asked, "--json").json["sweeps"][0]["baseline"] == ""


def test_what_was_left_out_is_said(tmp_path: Path) -> None:
    asked = [{"_id": "q1", "text": "kumquat"}, {"_id": "q2", "text": "quince", "adversarial": True}]
    folder = beir_set(tmp_path / "s", [{"_id": "d", "text": "kumquat"}], asked, [("q1", "d", 1), ("q2", "d", 1)])
    assert run_here("eval", folder).out.startswith("s: 1 document, 1 query, 1 adversarial left out")
    assert run_here("eval", folder, "--adversarial", "--json").json["queries"] == 2


def test_the_memory_of_the_user_is_left_alone(garden: Path, tmp_path: Path) -> None:
    ran = run_here("--db", tmp_path / "mine.db", "eval", garden)
    assert ran.code == 0, ran
    assert not (tmp_path / "mine.db").exists()
    assert not any((tmp_path / "home").rglob("memory.db"))


def test_a_kept_memory_can_be_asked_afterwards(garden: Path, tmp_path: Path) -> None:
    assert run_here("eval", garden, "--keep", tmp_path / "kept").code == 0
    ran = run_here("--db", tmp_path / "kept" / "garden" / "memory.db", "search", "slugs", "--json")
    assert "copper" in ran.json["results"][0]["text"]


def test_mistakes_are_one_line_that_says_what_to_do(garden: Path, stars: Path, tmp_path: Path) -> None:
    other = tmp_path / "elsewhere" / "garden"
    other.mkdir(parents=True)
    is_one_error(run_here("eval", tmp_path / "gone"), "there is no folder")
    is_one_error(run_here("eval", garden, "--set", "blend"), "is not KEY=VALUE", code=2)
    is_one_error(run_here("eval", garden, "--set", "no.such=1"), "there is no setting 'no.such'", code=2)
    blend = "search.weights.blend=abc"
    for option in ("--set", "--sweep"):
        told = f"{option} {blend} is not valid: a number is expected, not 'abc'; correct search.weights.blend: share"
        is_one_error(run_here("eval", garden, option, blend), told, code=2)
    told = "--set search.candidates=many is not valid: a whole number is expected, not 'many'"
    is_one_error(run_here("eval", garden, "--set", "search.candidates=many"), told, code=2)
    is_one_error(run_here("eval", garden, "--sweep", "search.floor=0.1,0.5"), "without a floor", "--silence", code=2)
    (tmp_path / "afile").write_text("words")
    kept = run_here("eval", garden, "--keep", tmp_path / "afile")
    is_one_error(kept, f"cannot keep databases in {tmp_path}/afile/garden: Not a directory", "--keep", code=2)
    is_one_error(run_here("eval", garden, "--modes", "fuzzy"), "unknown mode 'fuzzy'", code=2)
    is_one_error(run_here("eval", garden, "--silence"), "--silence needs questions of other sets", code=2)
    is_one_error(run_here("eval", garden, other), "two of these sets are called 'garden'", code=2)
    is_one_error(run_here("eval", garden, "--sweep", "search.candidates=1", "--worst", "3"), "separate tables", code=2)
    is_one_error(
        run_here("eval", garden, stars, "--sweep", "search.candidates=1", "--silence"), "combined with --sweep", code=2
    )
    is_one_error(run_here("eval", garden, "--together"), "pass at least two sets", code=2)
    is_one_error(run_here("eval", garden, stars, "--together", "--worst", "3"), "separate tables", code=2)
    is_one_error(
        run_here("eval", garden, stars, "--together", *("--sweep", "search.candidates=1")),
        "combined with --sweep",
        code=2,
    )
    is_one_error(run_here("eval", garden, stars, "--together", "--silence", "--keep", tmp_path), "--keep", code=2)
    is_one_error(run_here("eval", f"{garden}@nobody"), "garden has no group 'nobody'", code=2)
    is_one_error(run_here("eval", garden, "--metric", "mrr"), "--metric needs --sweep or --compare", code=2)
    swept = ("--sweep", "search.candidates=1")
    is_one_error(run_here("eval", garden, *swept, "--modes", "keyword,vector"), "look at one mode", code=2)
    is_one_error(
        run_here("eval", garden, *swept, "--modes", "keyword", "--rerank"), "unknown mode 'keyword+rerank'", code=2
    )
    is_one_error(run_here("eval", garden, *swept, "--expand"), "no language model", code=2)
    is_one_error(run_here("eval", garden, "--compare", tmp_path / "gone.json"), "there is no")
    is_one_error(run_here("eval", garden, "--sample", "0"), code=2)
    is_one_error(run_here("eval"), "no set is named", code=2)


def test_an_error_is_an_object_when_json_is_asked_for(garden: Path) -> None:
    (garden / "corpus.jsonl").write_text("{")
    error = json.loads(run_here("eval", garden, "--json").out)["error"]
    assert error["kind"] == "usage"
    assert "corpus.jsonl:1" in error["message"]
