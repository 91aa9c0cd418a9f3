from __future__ import annotations

import os
import signal
import stat
import time
from pathlib import Path

import pytest

from mindex.clock import DAY_MS, now_ms
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.store.base import Store
from mindex_eval.cached_models import evaluation_folder
from mindex_eval.measured_memory import MeasuredMemory
from mindex_eval.populate import as_markdown, populated_set
from mindex_eval.question_sets import Text, read_set
from tests.conftest import write
from tests.mindex_eval.conftest import GARDEN, beir_set, lines_of
from tests.running import finish, start, wait_until

ASKED = [{"_id": "q1", "text": "Which words?"}]


def corpus_of(*texts: str) -> list[dict[str, object]]:
    return [{"_id": f"d{number}", "text": text} for number, text in enumerate(texts)]


# ── texts as files ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_title_is_a_heading() -> None:
    assert as_markdown(Text("d", "Some words.", "A\n title")) == "# A title\n\nSome words.\n"
    assert as_markdown(Text("d", "", "Only a title")).strip() == "# Only a title"


AWKWARD = (
    "---\ntitle: not mine\ntags: [no]\n---\nkumquat after what looks like front matter",
    "---\nkumquat between two lines\n---",
    "# A heading\n\nkumquat below a heading\n\n## Another\n\nand more of the same text, long enough to be kept",
    "```\nkumquat = 1\n",
    "| a | b |\n|---|---|\n| kumquat | 2 |",
    "kumquat\u2028\x0band a form feed\x0cbetween",
    "\ufeffkumquat behind a mark",
    "    kumquat as indented code",
    "- kumquat\n- in a list",
    "<!-- a comment --> kumquat",
    "# kumquat",
    "---\ntitle: kumquat\n---",
)


@pytest.mark.parametrize("number", range(len(AWKWARD)))
def test_a_text_of_any_form_is_found_under_its_own_id(tmp_path: Path, cache: Store, number: int) -> None:
    others = corpus_of("something else", "and something more")
    corpus = [*others, {"_id": "the one", "text": AWKWARD[number]}]
    found = read_set(beir_set(tmp_path / "s", corpus, ASKED, [("q1", "the one", 1)]))
    with populated_set(found, {}, cache) as populated, MeasuredMemory(populated.database, {}, cache) as measured:
        memory = measured.memory
        assert populated.documents == 3
        hits = memory.search("kumquat").hits
        assert [populated.id_of(hit.record) for hit in hits] == ["the one"]


def test_every_line_of_an_awkward_text_is_kept(tmp_path: Path, cache: Store) -> None:
    corpus = corpus_of(*AWKWARD)
    found = read_set(beir_set(tmp_path / "s", corpus, ASKED, [("q1", "d0", 1)]))
    with populated_set(found, {}, cache) as populated, MeasuredMemory(populated.database, {}, cache) as measured:
        memory = measured.memory
        held: dict[str, str] = {}
        for record in memory.list(limit=50).records:
            id_ = populated.id_of(record)
            held[id_] = f"{held.get(id_, '')} {record.title} {record.text}"
    for number, text in enumerate(AWKWARD):
        words = [word for word in text.replace("\ufeff", "").split() if word.isalpha()]
        assert [word for word in words if word not in held[f"d{number}"]] == []


# ── groups and turns ──────────────────────────────────────────────────────────────────────────────────────────


def test_each_group_is_a_separate_collection(tmp_path: Path, cache: Store) -> None:
    corpus = [
        {"_id": f"{group} {number}", "text": f"word number {number}", "group": group}
        for group in ("a group/with a slash", "another")
        for number in range(3)
    ]
    asked = [{"_id": "q1", "text": "Which?", "group": "another"}]
    found = read_set(beir_set(tmp_path / "s", corpus, asked, [("q1", "another 1", 1)]))
    with populated_set(found, {}, cache) as populated, MeasuredMemory(populated.database, {}, cache) as measured:
        memory = measured.memory
        hits = memory.search("word", limit=10, collections=[populated.groups["another"]]).hits
        assert sorted(populated.id_of(hit.record) for hit in hits) == ["another 0", "another 1", "another 2"]


def test_a_turn_is_stored_with_speaker_and_date_for_its_groups_agent(tmp_path: Path, cache: Store) -> None:
    said = {"_id": "t1", "text": "I bought a boat.", "speaker": "Ada", "date": "2023-05-08T13:56", "group": "talk"}
    other = {**said, "_id": "t2", "group": "elsewhere", "speaker": "Ben", "session": 2}
    asked = [{"_id": "q1", "text": "Who bought a boat?", "group": "talk"}]
    found = read_set(beir_set(tmp_path / "s", [said, other], asked, [("q1", "t1", 1)]))
    with populated_set(found, {}, cache) as populated, MeasuredMemory(populated.database, {}, cache) as measured:
        memory = measured.memory
        assert populated.documents == 2
        hits = memory.search("boat", agent=populated.groups["talk"]).hits
        assert [populated.id_of(hit.record) for hit in hits] == ["t1"]
        record = hits[0].record
        assert record.kind == "turn"
        assert "Ada" in record.text
        assert "8 May 2023" in record.text
        assert "Ben" in memory.search("boat", agent=populated.groups["elsewhere"]).hits[0].record.text


def test_the_same_words_said_twice_are_two_turns(tmp_path: Path, cache: Store) -> None:
    corpus = [
        {"_id": f"t{number}", "text": "Good morning.", "speaker": "Ada", "date": "2023-05-08"} for number in (1, 2)
    ]
    found = read_set(beir_set(tmp_path / "s", corpus, ASKED, [("q1", "t1", 1)]))
    with populated_set(found, {}, cache) as populated, MeasuredMemory(populated.database, {}, cache) as measured:
        memory = measured.memory
        hits = memory.search("morning", agent="*").hits
        assert sorted(populated.id_of(hit.record) for hit in hits) == ["t1", "t2"]


def test_a_memory_is_stored_for_its_groups_agent(tmp_path: Path, cache: Store) -> None:
    corpus = [
        {"_id": group, "text": "The user drinks oolong.", "kind": "memory", "group": group} for group in ("ada", "ben")
    ]
    found = read_set(beir_set(tmp_path / "s", corpus, [{**ASKED[0], "group": "ada"}], [("q1", "ada", 1)]))
    with populated_set(found, {}, cache) as populated, MeasuredMemory(populated.database, {}, cache) as measured:
        for group in ("ada", "ben"):
            (hit,) = measured.memory.search("oolong", agent=populated.groups[group]).hits
            assert (hit.record.kind, populated.id_of(hit.record)) == ("memory", group)


# ── real files ────────────────────────────────────────────────────────────────────────────────────────────────


def test_real_files_are_indexed_where_they_are_and_left_as_they_are(tmp_path: Path, cache: Store) -> None:
    folder = beir_set(tmp_path / "s", None, ASKED, [("q1", "deep/one.md", 1)])
    write(folder / "files", {"deep/one.md": "# One\n\nkumquat\n", "two.md": "# Two\n\nother\n"})
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    with (
        populated_set(read_set(folder), {}, cache) as populated,
        MeasuredMemory(populated.database, {}, cache) as measured,
    ):
        memory = measured.memory
        assert [populated.id_of(hit.record) for hit in memory.search("kumquat").hits] == ["deep/one.md"]
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_what_could_not_be_indexed_is_said(tmp_path: Path, cache: Store) -> None:
    folder = beir_set(tmp_path / "s", None, ASKED, [("q1", "one.md", 1)])
    write(folder / "files", {"one.md": "words", "large.md": "x" * 2000})
    with populated_set(read_set(folder), {"index.max_bytes": "1000"}, cache) as populated:
        assert populated.documents == 1
        assert populated.notes[0].startswith("large.md was left out: too large")


def test_a_set_of_which_nothing_can_be_indexed_is_an_error(tmp_path: Path, cache: Store) -> None:
    folder = beir_set(tmp_path / "s", None, ASKED, [("q1", "one.pdf", 1)])
    write(folder / "files", {"one.pdf": "words"})
    with pytest.raises(UsageError, match="nothing of"), populated_set(read_set(folder), {}, cache):
        pass


# ── kept, and not kept ────────────────────────────────────────────────────────────────────────────────────────


def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    return folder


def test_nothing_is_left_in_the_temporary_folder(
    tmp_path: Path, garden: Path, cache: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = temporary(monkeypatch, tmp_path)
    with populated_set(read_set(garden), {}, cache):
        assert list(folder.iterdir()) != []
    assert list(folder.iterdir()) == []
    with pytest.raises(KeyboardInterrupt), populated_set(read_set(garden), {}, cache):
        raise KeyboardInterrupt
    assert list(folder.iterdir()) == []


def test_a_corpus_that_was_filled_before_is_taken_as_it_was(garden: Path, cache: Store) -> None:
    with populated_set(read_set(garden), {}, cache) as first:
        pass
    with populated_set(read_set(garden), {}, cache) as again:
        assert again.database.is_relative_to(evaluation_folder())
        assert (again.documents, again.ids) == (first.documents, first.ids)
    with populated_set(read_set(garden), {"search.weights.blend": "0.3"}, cache) as same:
        assert same.database == again.database  # how it is asked changes nothing in it


def test_another_corpus_or_another_way_in_is_filled_again(garden: Path, cache: Store) -> None:
    with populated_set(read_set(garden), {}, cache):
        pass
    with populated_set(read_set(garden), {"secrets.mode": "off"}, cache) as other:
        assert not other.database.is_relative_to(evaluation_folder())
    with (garden / "corpus.jsonl").open("a") as corpus:
        corpus.write(lines_of([{"_id": "new", "text": "One more."}]))
    with populated_set(read_set(garden), {}, cache) as more:
        assert more.documents == len(GARDEN) + 1


def test_real_files_of_a_set_are_indexed_again_when_one_of_them_or_a_question_changed(
    tmp_path: Path, cache: Store
) -> None:
    folder = beir_set(tmp_path / "s", None, ASKED, [("q1", "one.md", 1)])
    write(folder / "files", {"one.md": "kumquat", "two.md": "quince"})

    def is_kept() -> bool:
        with populated_set(read_set(folder), {}, cache) as populated:
            return populated.database.is_relative_to(evaluation_folder())

    assert [is_kept(), is_kept()] == [False, True]
    write(folder / "files", {"two.md": "medlar"})
    assert [is_kept(), is_kept()] == [False, True]
    (folder / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\ttwo.md\t1\n")
    assert [is_kept(), is_kept()] == [False, True]
    (folder / "files" / "link.md").symlink_to(tmp_path / "elsewhere.md")
    assert [is_kept(), is_kept()] == [False, False]


def test_memories_are_stored_again_each_day_because_their_age_counts(
    tmp_path: Path, garden: Path, cache: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus = [{"_id": "d0", "text": "tea", "kind": "memory"}]
    facts = beir_set(tmp_path / "facts", corpus, ASKED, [("q1", "d0", 1)])

    def is_kept(folder: Path) -> bool:
        with populated_set(read_set(folder), {}, cache) as populated:
            return populated.database.is_relative_to(evaluation_folder())

    assert [is_kept(facts), is_kept(facts), is_kept(garden), is_kept(garden)] == [False, True, False, True]
    monkeypatch.setattr("mindex_eval.populate.now_ms", lambda: now_ms() + DAY_MS)
    assert [is_kept(facts), is_kept(garden)] == [False, True]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no modes")
def test_a_filled_memory_is_private(garden: Path, cache: Store, caplog: pytest.LogCaptureFixture) -> None:
    with populated_set(read_set(garden), {}, cache):
        pass
    (kept,) = (evaluation_folder() / "filled").iterdir()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (kept, kept / "memory.db")] == [0o700, 0o600]
    with populated_set(read_set(garden), {}, cache) as populated, MeasuredMemory(populated.database, {}, cache):
        assert caplog.text == ""


def test_a_filled_memory_that_is_broken_is_made_again(garden: Path, cache: Store) -> None:
    with populated_set(read_set(garden), {}, cache):
        pass
    (kept,) = (evaluation_folder() / "filled").iterdir()
    (kept / "map.json").write_text("{}")
    with populated_set(read_set(garden), {}, cache) as populated:
        assert populated.documents == len(GARDEN)


def test_the_number_of_filled_databases_is_limited(
    tmp_path: Path, cache: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindex_eval.populate._MAX_KEPT", 2)
    for number in range(4):
        corpus = corpus_of(f"word {number}")
        with populated_set(read_set(beir_set(tmp_path / f"s{number}", corpus, ASKED, [("q1", "d0", 1)])), {}, cache):
            pass
    assert sorted(path.name[:2] for path in (evaluation_folder() / "filled").iterdir()) == ["s2", "s3"]


def test_a_memory_is_kept_where_the_user_wants_it(tmp_path: Path, garden: Path, cache: Store) -> None:
    with populated_set(read_set(garden), {}, cache, keep=tmp_path / "kept"):
        pass
    with Memory(tmp_path / "kept" / "garden" / "memory.db") as memory:
        hit = memory.search("slugs").hits[0]
        assert "copper tape" in memory.get(hit.record.path).records[0].text
    with (
        pytest.raises(UsageError, match="is not empty"),
        populated_set(read_set(garden), {}, cache, keep=tmp_path / "kept"),
    ):
        pass


@pytest.mark.skipif(os.name == "nt", reason="signals as POSIX has them")
@pytest.mark.slow
def test_ctrl_c_in_the_middle_leaves_no_temporary_folder(tmp_path: Path) -> None:
    """Some thousand turns take long enough to be stopped in the middle."""
    corpus = [
        {"_id": f"t{number}", "text": f"word {number}", "speaker": "Ada", "date": "2023-05-08"}
        for number in range(20_000)
    ]
    folder = beir_set(tmp_path / "talk", corpus, ASKED, [("q1", "t1", 1)])
    temporary_folder, cache_folder = tmp_path / "temporary", tmp_path / "cache"
    temporary_folder.mkdir()
    env = {
        "TMPDIR": str(temporary_folder),
        "MINDEX_CACHE_DIR": str(cache_folder),
        "MINDEX_EMBEDDING_PROVIDER": "none",
    }
    process = start("eval", folder, env=env)
    wait_until(lambda: any(temporary_folder.rglob("memory.db-wal")), what="the filling")
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    ran = finish(process)
    assert (ran.code, ran.out) == (130, "")
    assert ran.err.startswith("stopped")
    assert list(temporary_folder.iterdir()) == []
    assert list((cache_folder / "eval").glob("filled/*")) == []
