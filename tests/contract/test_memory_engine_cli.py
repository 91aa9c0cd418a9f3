"""The command line on the in-memory engine: nothing above the store interface knows which engine it works with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mindex.errors import UnsupportedError
from mindex.memory import Memory
from tests.conftest import HANDBOOK, write
from tests.handbook_questions import ANSWERED
from tests.running import Ran, run_here

Mindex = Callable[..., Ran]

pytestmark = pytest.mark.smoke  # few, and they go through the whole store


@pytest.fixture
def mindex(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Mindex:
    """Runs a command on the engine's database, in this process and without a model. It must succeed."""
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Ran:
        ran = run_here("--db", database, *arguments)
        if "does not store entries" in ran.out + ran.err:
            raise UnsupportedError(ran.out + ran.err)
        assert ran.code == 0, ran
        return ran

    return run


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(
        tmp_path / "docs",
        {
            "harbour.md": "# Harbour\n\nThe keeper lights the lamp at dusk.\n",
            "cache.md": "# Cache\n\nRedis evicts the oldest keys.\n",
        },
    )


def texts(ran: Ran) -> list[str]:
    return [hit["text"] for hit in ran.json["results"]]


def test_search_finds_what_was_indexed_and_follows_the_files(mindex: Mindex, docs: Path) -> None:
    assert "2 files, 2 new; chunks +2 −0, 0 kept" in mindex("index", docs).out
    (hit,) = mindex("--json", "search", "who lights the lamp?").json["results"]
    assert (hit["path"], hit["collection"], "lights the lamp" in hit["text"]) == ("harbour.md", "docs", True)
    (docs / "harbour.md").write_text("# Harbour\n\nThe ferry leaves at noon.\n")
    assert "1 changed, 1 unchanged; chunks +1 −1, 0 kept" in mindex("index", docs).out
    assert texts(mindex("--json", "search", "lamp")) == []
    assert texts(mindex("--json", "search", "ferry")) == ["# Harbour\n\nThe ferry leaves at noon."]


def test_a_memory_is_added_changed_and_taken_back(mindex: Mindex) -> None:
    added = mindex("--json", "add", "Ada prefers tea", "--type", "preference").json
    assert added["created"]
    assert texts(mindex("--json", "search", "tea")) == ["Ada prefers tea"]
    assert mindex("--json", "add", "Ada  prefers tea").json == {**added, "created": False, "duplicate": True}
    mindex("update", added["id"], "--text", "Ada prefers coffee")
    assert texts(mindex("--json", "search", "coffee")) == ["Ada prefers coffee"]
    assert texts(mindex("--json", "search", "tea")) == []
    assert "is as before change 2 (change 3)" in mindex("undo", added["id"]).out
    assert texts(mindex("--json", "search", "tea")) == ["Ada prefers tea"]
    assert texts(mindex("--json", "search", "coffee")) == []
    assert [change["action"] for change in mindex("--json", "history", added["id"]).json["changes"]] == [
        "add", "update", "undo",
    ]  # fmt: skip


@pytest.mark.model
@pytest.mark.parametrize("database", ["toy://vectors"])
def test_search_finds_by_meaning_where_the_engine_has_vectors(
    mindex: Mindex, docs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "local")
    assert "2 embedded, 0 pending" in mindex("index", docs).out
    found = mindex("--json", "search", "when is the beacon switched on in the evening?").json
    assert (found["tier"], found["results"][0]["path"]) == ("hybrid", "harbour.md")
    assert "384 dimensions, 0 pending" in mindex("status").out


@pytest.mark.slow
def test_all_engines_rank_the_handbook_alike(tmp_path: Path) -> None:
    """The order, and scores that differ by what engines may differ in: how rare they take a phrase to be."""
    ranked = []
    for database in (tmp_path / "memory.db", f"toy://{tmp_path}"):
        with Memory(database, options={"embedding.provider": "none"}) as memory:
            memory.index(HANDBOOK)
            answers = [memory.search(question, limit=5) for question, _ in ANSWERED[:10]]
            ranked.append([(hit.record.path, hit.record.first_line) for answer in answers for hit in answer.hits])
    assert ranked[0] == ranked[1]
