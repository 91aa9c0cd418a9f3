"""A whole memory over a model that is a server: up, down, and back."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mindex.datatypes import Check
from mindex.errors import EmbeddingError
from mindex.memory import Memory
from mindex.providers.http import Client
from tests.providers.servers import ModelServer, Trick, garbage, hang, html, status, vectors
from tests.running import run

# How relevant a hit is, is for others to say: here everything is shown (floor 0).
QUESTION = "which event makes a subscriber delete the key of a station?"


def options(server: ModelServer, model: str = "nomic-embed-text", timeout: float = 20.0) -> dict[str, object]:
    return {
        "embedding.provider": "ollama",
        "embedding.url": server.url,
        "embedding.model": model,
        "embedding.timeout": timeout,
    }


def opened(tmp_path: Path, server: ModelServer, model: str = "nomic-embed-text", timeout: float = 20.0) -> Memory:
    return Memory(tmp_path / "memory.db", options=options(server, model, timeout))


def forgive(cache: Path) -> None:
    """Remove the breakers' files, as if half a minute had passed."""
    for file in (cache / "breakers").glob("*"):
        file.unlink()


@pytest.mark.parametrize("model", ["nomic-embed-text", "a-model-of-ones-own"])
def test_a_handbook_is_indexed_and_searched_by_words_and_vectors(
    server: ModelServer, tmp_path: Path, handbook: Path, model: str
) -> None:
    with opened(tmp_path, server, model) as memory:
        report = memory.index(handbook)
        answer = memory.search(QUESTION, floor=0)

        assert report.embedded > 20
        assert (report.pending, report.notes) == (0, ())
        assert (answer.tier, answer.notes) == ("hybrid", ())
        assert answer.hits
        assert memory.status().embedding.dimensions == server.dimensions

    with opened(tmp_path, server, model) as memory:  # another process finds everything as it was
        assert memory.index(handbook).embedded == 0
        answer = memory.search("one person on call per shift, a rota week starts on Monday", mode="vector", floor=0)
        assert answer.hits[0].record.path == "on-call.md"


def test_with_the_server_down_search_is_by_keyword_and_memories_are_stored(
    server: ModelServer, tmp_path: Path, handbook: Path, alone: Path
) -> None:
    with opened(tmp_path, server) as memory:
        memory.index(handbook)
        server.stop()

        answer = memory.search(QUESTION, floor=0)
        assert answer.tier == "keyword"
        assert answer.hits
        assert any(f"nothing answers at {server.url}" in note and "ollama serve" in note for note in answer.notes)

        added = memory.add("The lighthouse keeper prefers tea to coffee")
        assert [hit.record.id for hit in memory.search("lighthouse keeper", floor=0).hits][:1] == [added.id]
        (handbook / "new.md").write_text("# Ferries\n\nFerries leave for the island at noon.\n", encoding="utf-8")
        report = memory.index(handbook)
        assert report.pending >= 2
        assert any("no vectors" in note for note in report.notes)
        with pytest.raises(EmbeddingError):
            memory.maintenance.backfill()

        server.start()
        forgive(alone)
        embedded, remaining = memory.maintenance.backfill()
        assert (embedded, remaining) == (report.pending, 0)
        answer = memory.search("lighthouse keeper tea", mode="vector", floor=0)
        assert answer.tier != "keyword"
        assert answer.hits[0].record.id == added.id


@pytest.mark.parametrize(
    "trick",
    [
        html,
        garbage,
        hang,
        status(500, {"error": "out of memory"}),
        status(401),
        status(429, retry_after="60"),
        vectors(lambda rows: rows[1:]),
        vectors(lambda rows: [[0.0] * len(row) for row in rows]),
        vectors(lambda rows: [row[:-1] for row in rows]),
    ],
)
def test_search_and_index_continue_with_a_note_after_any_failure_of_a_server(
    server: ModelServer, tmp_path: Path, handbook: Path, alone: Path, trick: Trick
) -> None:
    with opened(tmp_path, server) as memory:
        memory.index(handbook)
    server.always = trick
    (handbook / "new.md").write_text("# Ferries\n\nFerries leave for the island at noon.\n", encoding="utf-8")

    with opened(tmp_path, server, timeout=1.0) as memory:
        report = memory.index(handbook)
        answer = memory.search("when do ferries leave?", floor=0)

        assert report.pending == 1
        assert any("no vectors" in note for note in (*report.notes, *answer.notes))
        assert answer.hits[0].record.path == "new.md"
        assert answer.notes

    server.always = None
    forgive(alone)
    with opened(tmp_path, server) as memory:
        assert memory.maintenance.backfill() == (1, 0)
        assert memory.search("when do ferries leave to the island?", floor=0).notes == ()


def test_dimensions_that_change_on_the_server_do_no_harm(server: ModelServer, tmp_path: Path, handbook: Path) -> None:
    with opened(tmp_path, server) as memory:
        memory.index(handbook)
    server.dimensions = 64

    with opened(tmp_path, server) as memory:
        answer = memory.search(QUESTION, floor=0)

    assert answer.tier == "keyword"
    assert answer.hits
    assert any("now answers with 64 dimensions, it was 48; run `mindex reembed`" in note for note in answer.notes)


def test_doctor_says_what_is_wrong(server: ModelServer, tmp_path: Path, handbook: Path, alone: Path) -> None:
    def check(memory: Memory) -> Check:
        forgive(alone)
        return next(one for one in memory.doctor() if one.name == "embedding model")

    with opened(tmp_path, server) as memory:
        memory.index(handbook)
        assert check(memory).ok
        server.models = ("another",)
        assert check(memory).fix == "run: ollama pull nomic-embed-text"
        server.models = ()
        server.always = status(403)
        assert "wants a key (403)" in check(memory).message
        server.always = None
        server.dimensions = 64
        assert check(memory).fix == "run `mindex reembed`"
        server.stop()
        assert f"nothing answers at {server.url}" in check(memory).message


def test_a_command_searches_by_keyword_with_a_note_while_the_breaker_is_open(
    server: ModelServer, tmp_path: Path, handbook: Path
) -> None:
    env = {f"MINDEX_{key.replace('.', '_').upper()}": str(value) for key, value in options(server).items()}
    env["MINDEX_DB"] = str(tmp_path / "memory.db")
    assert run("index", handbook, env=env).code == 0
    server.stop()
    for _ in range(3):
        run("search", QUESTION, env=env)

    ran = run("search", QUESTION, "--json", env=env)

    assert ran.code == 0
    assert ran.json["tier"] == "keyword"
    assert "has failed 3 times" in str(ran.json["notes"])


def calls_of(job: Callable[[], object]) -> int:
    """How many functions a job calls, in this thread: which does not depend on the load of the machine."""
    calls = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        job()
    finally:
        sys.setprofile(None)
    return calls


def test_with_the_breaker_open_a_search_does_hardly_more_than_without_a_model(
    server: ModelServer, tmp_path: Path, handbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How long both take is for the bench to say (`bench/speed.py --only down`)."""
    without_model = Memory(tmp_path / "memory.db", options={"embedding.provider": "none"})
    with opened(tmp_path, server) as memory, without_model as without:
        memory.index(handbook)
        server.stop()
        for number in range(4):
            memory.search(f"{QUESTION} {number}")
            without.search(f"{QUESTION} {number}")
        monkeypatch.setattr(Client, "send", lambda *_: pytest.fail("a server that is left alone was called"))
        monkeypatch.setattr("mindex.providers.server.sleep", lambda _: pytest.fail("a search paused"))

        keyword = calls_of(lambda: without.search(f"{QUESTION} again"))
        left_alone = calls_of(lambda: memory.search(f"{QUESTION} again"))

    assert left_alone <= 1.2 * keyword


def test_a_direct_request_does_not_wait_for_the_breaker(server: ModelServer, tmp_path: Path, handbook: Path) -> None:
    def shut_out(memory: Memory) -> None:
        server.always = status(500)
        for number in range(6):
            memory.search(f"{QUESTION} {number}", floor=0)
        server.always = None
        assert any("has failed" in note for note in memory.search(f"{QUESTION} again", floor=0).notes)

    with opened(tmp_path, server) as memory:
        memory.index(handbook)
        added = memory.add("The lighthouse keeper prefers tea to coffee", embed=False)
        shut_out(memory)
        assert memory.maintenance.backfill() == (1, 0)
        assert memory.search("lighthouse keeper", floor=0).notes == ()

        shut_out(memory)
        assert all(check.ok for check in memory.doctor())
        assert memory.search("keeper of the lighthouse", floor=0).notes == ()

        shut_out(memory)
        assert memory.models.reembed(model="another").remaining == 0
        assert memory.search("tea or coffee", mode="vector", floor=0).hits[0].record.id == added.id


@pytest.mark.parametrize("role", ["rerank", "generation"])
def test_doctor_calls_every_server_whose_breaker_is_open(server: ModelServer, tmp_path: Path, role: str) -> None:
    provider = {"rerank": "http", "generation": "openai"}[role]
    settings: dict[str, object] = {"embedding.provider": "none"}
    settings |= {f"{role}.provider": provider, f"{role}.url": server.url, f"{role}.model": "m"}
    with Memory(tmp_path / "memory.db", options=settings) as memory:
        server.always = html
        for _ in range(3):
            assert not all(check.ok for check in memory.doctor())
        server.always = None
        assert all(check.ok for check in memory.doctor())
