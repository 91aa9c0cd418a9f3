"""Whole questions against a small memory: what comes back, in which tier, and with which explanation."""

from __future__ import annotations

from math import log
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mindex.errors import UsageError
from mindex.memory import Memory
from tests.conftest import write
from tests.handbook_questions import ANSWERED, BARELY_ANSWERED, UNANSWERED

PAGES = {
    "domains/caching/redis.md": "# Redis\n\nKeys of the catalogue expire after ten minutes and are evicted by use.\n",
    "domains/caching/rules.instructions.md": "# Rules\n\nNever store the catalogue twice in any place at all.\n",
    "domains/billing/invoices.md": "# Invoices\n\nThe catalogue of prices is read by the PolicyController now.\n",
    "zh.md": "# 值班\n\n东京的值班工程师每周一交接。\n",
}


@pytest.fixture
def memory(keyword_memory: Memory, tmp_path: Path) -> Memory:
    keyword_memory.index(write(tmp_path / "docs", PAGES))
    return keyword_memory


def paths(memory: Memory, query: str, **options: object) -> list[str]:
    return [hit.record.path for hit in memory.search(query, **options).hits]  # type: ignore[arg-type]


@pytest.mark.parametrize("query", ["PolicyController", "policycontroller", "policy controller"])
def test_an_identifier_is_found_however_it_is_written(memory: Memory, query: str) -> None:
    assert paths(memory, query)[0] == "domains/billing/invoices.md"


def test_chinese_is_found_by_two_characters(memory: Memory) -> None:
    assert paths(memory, "值班") == ["zh.md"]
    assert paths(memory, "东京") == ["zh.md"]


def test_the_current_file_lifts_its_domain_and_instructions_lift_themselves(memory: Memory) -> None:
    plain = {hit.record.path: hit for hit in memory.search("catalogue").hits}
    lifted = {hit.record.path: hit for hit in memory.search("catalogue", current_file="src/Caching/Client.cs").hits}
    changes = {path: lifted[path].score - plain[path].score for path in plain}
    assert changes["domains/caching/redis.md"] == pytest.approx(4 * log(1.3))  # a factor of e adds 4 to the log-odds
    assert changes["domains/caching/rules.instructions.md"] == pytest.approx(4 * log(1.3))
    assert changes["domains/billing/invoices.md"] == pytest.approx(0)
    stages = {stage.name: stage.change for stage in lifted["domains/caching/rules.instructions.md"].trace.stages}
    assert stages["domain"] == pytest.approx(4 * log(1.3))
    assert stages["instruction"] == pytest.approx(4 * log(1.2))


def test_the_stages_of_a_hit_sum_to_its_score(handbook_memory: Memory) -> None:
    for hit in handbook_memory.search("redis eviction", current_file="src/Caching/RedisClient.cs").hits:
        assert sum(stage.change for stage in hit.trace.stages) == pytest.approx(hit.score)


def test_not_excludes_from_keyword_and_vector_candidates(handbook_memory: Memory) -> None:
    for hit in handbook_memory.search("redis NOT session", limit=50).hits:
        assert "session" not in hit.record.text.lower()


@pytest.mark.parametrize("query", ["python web NOT fastapi", "python NOT fastapi", '"python web" NOT fastapi'])
def test_what_is_excluded_is_not_found_by_loose_words_either(keyword_memory: Memory, query: str) -> None:
    keyword_memory.add("FastAPI serves python web applications")
    keyword_memory.add("The snake is a python")
    answer = keyword_memory.search(query, floor=0)
    assert [hit.record.text for hit in answer.hits] == ["The snake is a python"]
    assert not any("FastAPI" in note for note in keyword_memory.search(query, floor=1).notes)


@pytest.mark.parametrize("query", ["python NOT fastapi", "python_web NOT fastapi", "pytho_we NOT fastapi"])
@pytest.mark.parametrize("inside_words", [False, True])
def test_what_is_excluded_is_found_in_no_tier(keyword_memory: Memory, query: str, inside_words: bool) -> None:
    keyword_memory.add("FastAPI serves python_web applications")
    answer = keyword_memory.search(query, floor=0, inside_words=inside_words)
    assert answer.hits == ()
    assert answer.notes[-1] == "nothing relevant"


def test_a_hit_that_fulfils_a_strict_query_is_relevant(handbook_memory: Memory) -> None:
    answer = handbook_memory.search("canary OR zeppelin", limit=50)
    assert answer.hits
    assert all("canary" in hit.record.text.lower() for hit in answer.hits)


def test_a_phrase_that_is_nowhere_falls_back_to_its_words_and_says_so(memory: Memory) -> None:
    answer = memory.search('"catalogue keys"')
    assert answer.hits
    assert any("any of its words" in note for note in answer.notes)


def test_nothing_relevant_is_noted_and_nothing_is_shown(memory: Memory) -> None:
    answer = memory.search("sourdough bread starter")
    assert (answer.hits, answer.total, answer.has_more) == ((), 0, False)
    assert any(note.startswith("nothing relevant") for note in answer.notes)


def test_part_of_a_word_is_not_an_answer(memory: Memory) -> None:
    assert memory.search("atalogu").hits == ()


def test_without_an_embedder_the_answer_says_that_it_is_by_keyword(memory: Memory) -> None:
    answer = memory.search("catalogue")
    assert answer.tier == "keyword"
    assert any("no embedder" in note for note in answer.notes)


def test_the_top_hit_does_not_change_with_the_limit(handbook_memory: Memory) -> None:
    for query, _ in ANSWERED[:10]:
        tops = {handbook_memory.search(query, limit=limit).hits[0].record.id for limit in (1, 5, 50)}
        assert len(tops) == 1


def test_pages_follow_each_other_without_gap_or_overlap(handbook_memory: Memory) -> None:
    whole = [hit.record.id for hit in handbook_memory.search("redis", limit=10).hits]
    parts = [
        hit.record.id for offset in (0, 4, 8) for hit in handbook_memory.search("redis", limit=4, offset=offset).hits
    ]
    assert len(set(parts)) == len(parts) == 12
    assert set(parts[:4]) < set(parts[:8]) < {*whole, *parts[8:]} and set(whole) < set(parts)
    assert handbook_memory.search("redis", limit=1).has_more


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "vector"])
def test_every_mode_names_its_tier(handbook_memory: Memory, mode: str) -> None:
    assert handbook_memory.search("redis eviction", mode=mode).tier == mode  # type: ignore[arg-type]


@pytest.mark.model
def test_meaning_finds_what_words_cannot(tmp_path: Path) -> None:
    """The seed's example: no word in common, so only the vector half can find it."""
    pages = {
        "a.md": "# Redis TTL and eviction policies\n\nKeys expire after ten minutes; the least used go first.\n",
        "b.md": "# Invoices\n\nShops pay within fourteen days and get a reminder after that.\n",
        "c.md": "# Offices\n\nThe harbour office opens at eight; visitors ring twice.\n",
    }
    with Memory(tmp_path / "memory.db") as memory:
        memory.index(write(tmp_path / "docs", pages))
        best = memory.search("how data is cached", floor=0).hits[0]
    assert best.record.title == "Redis TTL and eviction policies"
    assert best.trace.keyword_rank is None


def test_every_query_the_handbook_answers_is_answered(handbook_memory: Memory) -> None:
    silent = [query for query, _ in ANSWERED if not handbook_memory.search(query).hits]
    assert silent == []


def test_the_right_page_is_among_the_first_five(handbook_memory: Memory) -> None:
    missed = [query for query, path in ANSWERED if path not in paths(handbook_memory, query)]
    missed += [query for query, path in BARELY_ANSWERED if path not in paths(handbook_memory, query, floor=0)]
    assert len(missed) <= 2, missed


def test_the_right_page_is_mostly_the_first(handbook_memory: Memory) -> None:
    first = [path == paths(handbook_memory, query)[0] for query, path in ANSWERED]
    assert sum(first) / len(first) >= 0.85


@pytest.mark.parametrize("query", UNANSWERED)
def test_foreign_topics_have_no_confident_hit(handbook_memory: Memory, query: str) -> None:
    answer = handbook_memory.search(query)
    assert [(hit.record.title, hit.relevance) for hit in answer.hits if not hit.weak] == []


def test_foreign_topics_are_mostly_met_with_silence(handbook_memory: Memory) -> None:
    answered = [query for query in UNANSWERED if handbook_memory.search(query).hits]
    assert len(answered) <= len(UNANSWERED) / 4, answered


@pytest.mark.parametrize(
    "query",
    ["???", "🙂", "x" * 100_000, '"', "NOT", "*", "{content}:", "a\0b", "'; DROP TABLE records; --", "((((", "%", "_"],
)
def test_odd_queries_are_answered_like_any_other(memory: Memory, query: str) -> None:
    assert memory.search(query).tier in ("keyword", "substring")


@pytest.mark.parametrize("query", ["", "   ", "\n"])
def test_an_empty_query_is_an_error(memory: Memory, query: str) -> None:
    with pytest.raises(UsageError, match="empty"):
        memory.search(query)


@pytest.mark.parametrize(("limit", "offset"), [(0, 0), (-1, 0), (5, -1)])
def test_amounts_below_the_least_are_errors(memory: Memory, limit: int, offset: int) -> None:
    with pytest.raises(UsageError):
        memory.search("catalogue", limit=limit, offset=offset)


def test_a_limit_beyond_the_most_is_cut_with_a_note(memory: Memory) -> None:
    answer = memory.search("catalogue", limit=10**9)
    assert "limit cut to 50, the maximum" in answer.notes


def test_an_unknown_collection_or_kind_is_an_error_not_an_empty_answer(memory: Memory) -> None:
    with pytest.raises(UsageError, match="docs"):
        memory.search("catalogue", collections=["nowhere"])
    with pytest.raises(UsageError, match="chunk"):
        memory.search("catalogue", kinds=["nothing"])


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(st.text(min_size=1).filter(lambda text: text.strip() != ""))
def test_no_text_makes_search_raise(memory: Memory, text: str) -> None:
    memory.search(text)
