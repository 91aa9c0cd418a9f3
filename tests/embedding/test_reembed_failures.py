"""Failures of a model, a disk or a second process in the middle of a change leave the old vectors."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from mindex.datatypes import Progress
from mindex.errors import EmbeddingError
from mindex.memory import Memory
from tests.providers.conftest import Again
from tests.providers.servers import ModelServer, Trick, garbage, half, late, vectors
from tests.running import finish, is_one_error, run, start, wait_until

QUESTION = "where do parcels wait?"
FILES = {
    f"{number:02}.md": f"# Pier {number}\n\nParcels of ship {number} wait at pier {number}." for number in range(150)
}


@pytest.fixture
def opened(again: Again) -> Callable[..., Memory]:
    def open_memory(served: ModelServer, model: str = "first") -> Memory:
        named = {"embedding.provider": "ollama", "embedding.url": served.url, "embedding.model": model}
        return again({**named, "embedding.timeout": 20.0})

    return open_memory


@pytest.fixture
def filled(server: ModelServer, docs: Path, opened: Callable[..., Memory]) -> Memory:
    memory = opened(server)
    assert memory.index(docs).embedded == 150
    return memory


def spaces(memory: Memory) -> list[tuple[str, int, int, bool, int]]:
    return [
        (one.model.name, one.model.dimensions, one.model.edition, one.active, one.vectors)
        for one in memory.store.vectors.spaces()
    ]


def after(records: int, change: Callable[[], object]) -> Callable[[Progress], None]:
    """Do something once this number of records has new vectors."""
    done: list[object] = []

    def report(progress: Progress) -> None:
        if progress.done >= records and not done:
            done.append(change())

    return report


def forgive(cache: Path) -> None:
    for file in (cache / "breakers").glob("*"):
        file.unlink()


def test_a_model_that_becomes_another_one_half_way_is_noticed_and_the_change_starts_again(
    filled: Memory, other: ModelServer
) -> None:
    with pytest.raises(EmbeddingError, match="has become another model"):
        filled.models.reembed(
            model="second", url=other.url, report=after(63, lambda: setattr(other, "salt", "swapped"))
        )
    assert spaces(filled) == [("first", 48, 0, True, 150), ("second", 64, 0, False, 63)]
    assert filled.search(QUESTION, floor=0).tier == "hybrid"

    done = filled.models.reembed(model="second", url=other.url)

    assert (done.embedded, done.remaining) == (150, 0)
    assert spaces(filled) == [("second", 64, 1, True, 150)]
    assert filled.search(QUESTION, floor=0).tier == "hybrid"


def test_dimensions_that_change_half_way_are_noticed_and_the_change_starts_again(
    filled: Memory, other: ModelServer
) -> None:
    with pytest.raises(EmbeddingError, match="now answers with 32 dimensions, it was 64"):
        filled.models.reembed(model="second", url=other.url, report=after(63, lambda: setattr(other, "dimensions", 32)))
    assert filled.search(QUESTION, floor=0).tier == "hybrid"
    assert filled.models.reembed(model="second", url=other.url).embedded == 150
    assert spaces(filled) == [("second", 32, 0, True, 150)]


@pytest.mark.parametrize(
    "trick", [half, garbage, vectors(lambda rows: rows[1:]), vectors(lambda rows: rows + rows[:1])]
)
def test_a_broken_answer_half_way_leaves_the_vectors_made_so_far(
    filled: Memory, other: ModelServer, alone: Path, trick: Trick
) -> None:
    with pytest.raises(EmbeddingError, match="the old model is used until then"):
        filled.models.reembed(model="second", url=other.url, report=after(63, lambda: setattr(other, "always", trick)))
    assert spaces(filled) == [("first", 48, 0, True, 150), ("second", 64, 0, False, 63)]
    assert filled.search(QUESTION, floor=0).tier == "hybrid"
    other.always = None
    forgive(alone)
    assert filled.models.reembed(model="second", url=other.url).embedded == 87
    assert spaces(filled) == [("second", 64, 0, True, 150)]


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_two_processes_that_change_at_once_end_in_one_whole_space(
    filled: Memory, server: ModelServer, other: ModelServer, tmp_path: Path, force: list[str]
) -> None:
    other.tricks.extend([late(0.02)] * 40)  # so that both are at it for a while
    asked = ["--db", str(tmp_path / "memory.db"), "reembed", *force, "--json"]
    asked += ["--provider", "ollama", "--model", "second", "--url", other.url]
    both = [finish(process) for process in [start(*asked), start(*asked)]]
    assert [ran.code for ran in both] == [0, 0], [ran.err for ran in both]
    assert all(ran.json["remaining"] == 0 for ran in both)
    ((name, dimensions, _, active, count),) = spaces(filled)
    assert (name, dimensions, active, count) == ("second", 64, True, 150)
    answer = filled.search(QUESTION, floor=0)
    assert answer.tier == "hybrid"


# No file may grow beyond this: neither the database nor its log.
_LIMITED = """
import resource, sys
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
from mindex.cli.main import main
main()
"""


@pytest.mark.skipif(sys.platform == "win32", reason="no such limit there")
@pytest.mark.parametrize("force", [False, True])
def test_a_disk_that_is_full_half_way_costs_nothing_but_the_time(
    server: ModelServer, docs: Path, opened: Callable[..., Memory], tmp_path: Path, force: bool
) -> None:
    server.dimensions = 512
    db = tmp_path / "memory.db"
    memory = opened(server)
    memory.index(docs)
    memory.close()
    given = ["--force"] if force else ["--model", "second"]
    env = {
        "MINDEX_EMBEDDING_PROVIDER": "ollama",
        "MINDEX_EMBEDDING_URL": server.url,
        "MINDEX_EMBEDDING_MODEL": "first",
    }
    ran = run(300_000, "--db", db, "reembed", *given, program=_LIMITED, env=env)
    is_one_error(ran, "memory.db", "space")

    memory = opened(server)
    before = spaces(memory)
    assert before[0] == ("first", 512, 0, True, 150)
    assert before[1][4] < 150
    assert memory.search(QUESTION, floor=0).tier == "hybrid"
    assert all(check.ok for check in memory.store.maintenance.check())
    done = memory.models.reembed()
    assert (done.embedded, done.remaining) == (150 - before[1][4], 0)
    assert spaces(memory) == [("first" if force else "second", 512, int(force), True, 150)]


def test_a_server_that_runs_goes_on_through_a_change_of_provider_and_one_of_edition(
    filled: Memory, server: ModelServer, other: ModelServer, opened: Callable[..., Memory]
) -> None:
    running = opened(server)
    running.embedding_queue.in_background = True
    assert running.search(QUESTION, floor=0).tier == "hybrid"
    changes: list[Callable[[], object]] = [
        lambda: filled.models.reembed(provider="openai", model="second", url=other.url),
        lambda: filled.models.reembed(provider="openai", model="second", url=other.url, force=True),
        lambda: filled.models.reembed(provider="ollama", model="first", url=server.url),
    ]
    for number, change in enumerate(changes):
        change()
        answer = running.search(f"{QUESTION} {number}", floor=0)
        assert answer.tier == "hybrid"
        assert not any("no vectors" in note for note in answer.notes)
        running.add(f"The harbour master {number} drinks tea")
        wait_until(lambda: running.status().embedding.pending == 0, what="the vector of what was told")
