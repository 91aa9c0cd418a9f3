"""Records that have no vector yet, beside others that have one: their words are enough to be found and trusted."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.datatypes import Answer
from mindex.memory import Memory
from tests.conftest import HANDBOOK, write

pytestmark = pytest.mark.model


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory of the handbook, a fact added a moment ago, and a folder whose vectors are still to come."""
    folder = tmp_path_factory.mktemp("unembedded")
    pages = {"npmrc.md": "# npmrc\n\nThe npmrc files hold the registry and the tokens of a project.\n"}
    with Memory(folder / "memory.db") as memory:
        memory.index(HANDBOOK)
        memory.add("The vault's unseal keys are split between Ada and Ben", embed=False)
        memory.index(write(folder / "npm", pages), embed=False)
    return folder


def search(folder: Path, query: str) -> Answer:
    with Memory(folder / "memory.db") as memory:
        return memory.search(query, limit=3)


@pytest.mark.parametrize(
    ("query", "words"), [("unseal keys", "split between Ada"), ("npmrc files", "hold the registry")]
)
def test_what_has_no_vector_yet_is_found_first_and_confidently(folder: Path, query: str, words: str) -> None:
    answer = search(folder, query)

    assert words in answer.hits[0].record.text
    assert not answer.hits[0].weak
    assert any("no vector yet; judged by keywords only" in note for note in answer.notes)


def test_there_is_no_note_where_every_hit_has_its_vector(folder: Path) -> None:
    answer = search(folder, "undo a release")

    assert answer.hits[0].record.path == "domains/deployment/releases.md"
    assert not any("no vector yet" in note for note in answer.notes)


def test_a_word_in_passing_is_not_an_answer(folder: Path) -> None:
    assert search(folder, "which keys open the cache").hits[0].record.collection == "handbook"
    hits = search(folder, "how are pages split into chunks").hits
    assert all(hit.weak for hit in hits if not hit.record.collection)
