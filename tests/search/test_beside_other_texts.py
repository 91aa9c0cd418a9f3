"""What is stored beside an answer changes neither how it is judged nor whether it is found."""

from __future__ import annotations

import ast
import sysconfig
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from mindex.datatypes import Hit
from mindex.entries.new_memory import NewMemory
from mindex.memory import Memory
from tests.conftest import HANDBOOK

pytestmark = pytest.mark.model

FACTS = {
    "The orders service stores everything in PostgreSQL 16": "what database do we use",
    "User has a son, Emil, who is nine": "does the user have kids",
    "User is vegetarian and does not eat mushrooms": "what should I cook for the user",
    "Deploys are frozen from 15 December to 7 January": "when can we not release",
    "The staging cluster runs in Frankfurt": "where is staging",
    "User prefers answers without bullet points": "how does the user like answers formatted",
    "Marta owns the mobile app": "who is responsible for the mobile app",
    "User's birthday is on 3 March": "when was the user born",
    "We pay for Datadog until June": "which monitoring do we pay for",
    "User plays the cello in an orchestra": "which instrument does the user play",
}
# The seeds' own examples.
REDIS = (
    "# Redis TTL and eviction policies\n\nHow long data stays in the cache, and which keys go first when it is full.\n"
)


@cache
def sentences(count: int) -> tuple[str, ...]:
    """Paragraphs of docstrings of the standard library: real texts about nothing in particular."""
    found: dict[str, None] = {}
    for path in sorted(Path(sysconfig.get_paths()["stdlib"]).rglob("*.py")):
        if "site-packages" in path.parts or "test" in path.parts:
            continue
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and (text := ast.get_docstring(node)):
                for part in text.split("\n\n"):
                    if 30 < len(part) < 300:
                        found[" ".join(part.split())] = None
        if len(found) >= count:
            return tuple(found)[:count]
    raise AssertionError(f"only {len(found)} sentences")


def best(memory: Memory, question: str, fact: str, limit: int = 5) -> tuple[int, Hit] | None:
    hits = memory.search(question, limit=limit).hits
    return next(((rank, hit) for rank, hit in enumerate(hits, start=1) if hit.record.text == fact), None)


def told(path: Path) -> Memory:
    memory = Memory(path)
    memory.add_many([NewMemory(text=fact) for fact in FACTS])
    return memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with told(tmp_path / "facts.db") as made:
        yield made


def write_pages(folder: Path, texts: tuple[str, ...]) -> Path:
    folder.mkdir(parents=True)
    for number, text in enumerate(texts):
        (folder / f"page{number:04}.md").write_text(f"{text}\n", encoding="utf-8")
    return folder


def test_ten_facts_answer_ten_plain_questions_beside_the_handbook_and_another_folder(
    memory: Memory, tmp_path: Path
) -> None:
    memory.index(HANDBOOK, write_pages(tmp_path / "library", sentences(600)))
    found = {question: best(memory, question, fact) for fact, question in FACTS.items()}
    assert None not in found.values(), found
    assert sum(one is not None and one[0] == 1 for one in found.values()) >= 9


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["memory", "turn", "file"])
def test_what_is_unrelated_hardly_moves_the_relevance_of_a_right_memory(
    memory: Memory, tmp_path: Path, kind: str
) -> None:
    alone = {question: best(memory, question, fact) for fact, question in FACTS.items()}
    assert None not in alone.values()
    if kind == "memory":
        memory.add_many([NewMemory(text=text) for text in sentences(2_000)])
    elif kind == "turn":
        for number, text in enumerate(sentences(300)):
            memory.conversations.add(text, "", session_id=f"s{number // 20}")
    else:
        texts = sentences(5_000)
        for part in range(10):
            memory.index(write_pages(tmp_path / f"folder{part}", texts[part * 500 : (part + 1) * 500]))
    stayed = []
    for fact, question in FACTS.items():
        before, after = alone[question], best(memory, question, fact, 50)
        assert before is not None
        if before[1].weak:  # alone it was not recognised: among thousands it may be anywhere
            continue
        assert after is not None, question
        assert abs(after[1].relevance - before[1].relevance) < 0.1, question
        if before[0] == 1:
            stayed.append(after[0] <= 3)
    assert sum(stayed) >= 0.9 * len(stayed)


@pytest.mark.parametrize("pages", [3, 30, 300])
def test_the_seeds_examples_are_answered_with_confidence(memory: Memory, tmp_path: Path, pages: int) -> None:
    memory.add("User prefers dark mode")
    folder = write_pages(tmp_path / "pages", sentences(pages - 1))
    (folder / "redis.md").write_text(REDIS, encoding="utf-8")
    memory.index(folder)
    for query, text in (("dark theme", "dark mode"), ("how data is cached", "Redis TTL")):
        hits = [hit for hit in memory.search(query, limit=3).hits if text in hit.record.text]
        assert hits, query
        assert not hits[0].weak, (query, hits[0].relevance)


def test_whether_a_hit_is_confident_does_not_depend_on_a_small_limit(memory: Memory) -> None:
    memory.index(HANDBOOK)
    for fact in FACTS:
        memory.add(fact)
    answers = [memory.search("database backups", limit=limit) for limit in (1, 2, 5)]
    judged = [{hit.record.id: hit.weak for hit in answer.hits} for answer in answers]
    assert judged[0].items() < judged[1].items() < judged[2].items()
    assert len({(answer.total, answer.notes) for answer in answers}) == 1
