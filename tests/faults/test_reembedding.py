"""MiniLM → bge-small → MiniLM on a filled memory while others search it, and with a kill half way."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path

import pytest

from mcp import Client, StdioServerParameters
from mindex.datatypes import Answer
from mindex.memory import Memory
from mindex.providers.packaged_models import BUILT_IN
from tests.conftest import HANDBOOK
from tests.mcp.conftest import structured
from tests.running import finish, run, start, wait_until

QUESTIONS = (
    "how long may a door status live?",
    "who is woken when a locker stays silent at night",
    "what happens to parcels nobody fetches",
    "sourdough",  # no word of it is anywhere: a search without vectors finds nothing
)
# Answers again and again, one line each: which question, whom it found by which cosine, and what was said beside it.
_SEARCHER = """
import json, sys
from mindex.memory import Memory
db, stop, *questions = sys.argv[1:]
import pathlib
with Memory(db) as memory:
    while not pathlib.Path(stop).exists():
        for number, question in enumerate(questions):
            answer = memory.search(question, floor=0.0)
            found = [[hit.record.id, round(hit.trace.cosine or 0, 4)] for hit in answer.hits]
            print(json.dumps([number, answer.tier, found, answer.notes]), flush=True)
"""

# The command line, which embeds some records and then no more.
_HALF_WAY = """
import time
from mindex.cli.main import main
from mindex.store.sql.vector_store import SqlVectorStore
put, batches = SqlVectorStore.put, []
def put_once(*arguments, **options):
    if batches:
        time.sleep(600)
    batches.append(1)
    return put(*arguments, **options)
SqlVectorStore.put = put_once
main()
"""

Found = list[tuple[str, float]]


@dataclass(frozen=True)
class Line:
    question: int
    tier: str
    found: Found
    notes: list[str]


def reference(memory: Memory) -> list[Found]:
    """What a model answers to each question."""
    return [_found(memory.search(question, floor=0.0)) for question in QUESTIONS]


def _found(answer: Answer) -> Found:
    return [(hit.record.id, round(hit.trace.cosine or 0, 4)) for hit in answer.hits]


def same(one: Found, other: Found) -> bool:
    """Whether two answers come from one space: the same records by the same cosines."""
    return [id_ for id_, _ in one] == [id_ for id_, _ in other] and all(
        abs(left - right) < 0.002 for (_, left), (_, right) in zip(one, other, strict=True)
    )


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("filled")
    with Memory(folder / "memory.db") as memory:
        memory.index(HANDBOOK)
        memory.add("The user prefers dark mode in every editor")
    return folder / "memory.db"


@pytest.fixture
def db(filled: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINDEX_BOOST_MEMORY", "0")  # how often a memory was found would move it between two searches
    return Path(shutil.copy(filled, tmp_path / "memory.db"))


class Searching:
    """A process that searches in a loop, and what it printed."""

    def __init__(self, db: Path, folder: Path) -> None:
        self._stop = folder / "stop"
        self._out = folder / "answers"
        with self._out.open("w") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-c", _SEARCHER, str(db), str(self._stop), *QUESTIONS],
                stdout=out,
                stderr=subprocess.PIPE,
                text=True,
            )

    def lines(self) -> list[Line]:
        whole = self._out.read_text().rpartition("\n")[0].splitlines()
        return [
            Line(number, tier, [(id_, cosine) for id_, cosine in found], notes)
            for number, tier, found, notes in map(json.loads, whole)
        ]

    def end(self) -> None:
        self._stop.touch()
        _, trouble = self.process.communicate(timeout=60)
        assert (self.process.returncode, trouble) == (0, "")


@pytest.fixture
def searching(db: Path, tmp_path: Path) -> Iterator[Searching]:
    looping = Searching(db, tmp_path)
    yield looping
    if looping.process.poll() is None:
        looping.process.kill()
        looping.process.communicate()


@pytest.mark.slow
def test_there_and_back_while_another_process_searches_and_with_a_kill_half_way(db: Path, searching: Searching) -> None:
    with Memory(db) as memory:
        answers = {"first": reference(memory)}
        wait_until(lambda: len(searching.lines()) > 8, within=60, what="a first round of answers")

        process = start("--db", db, "reembed", "--model", "bge-small-en-v1.5", program=_HALF_WAY)
        wait_until(lambda: _gathered(memory) > 0, within=60, what="the first new vectors")
        process.send_signal(signal.SIGKILL)
        process.communicate()
        gathered = _gathered(memory)
        assert 0 < gathered < 74
        assert memory.store.vectors.active_space() == BUILT_IN.fingerprint
        assert all(same(one, other) for one, other in zip(reference(memory), answers["first"], strict=True))
        status = run("--db", db, "status", "--json").json
        assert status["embedding"]["reembedding"] == {"to": "local/bge-small-en-v1.5", "done": gathered, "total": 74}

        resumed = run("--db", db, "reembed", "--json").json
        assert resumed["embedded"] == 74 - gathered
        answers["second"] = reference(memory)
        _until_it_answers_like(searching, answers["second"])

        back = run("--db", db, "reembed", "--model", BUILT_IN.name, "--json").json
        assert (back["from"], back["embedded"]) == ("local/bge-small-en-v1.5", 74)
        _until_it_answers_like(searching, answers["first"])
        searching.end()

    lines = searching.lines()
    assert all(line.found and line.tier == "hybrid" and not line.notes for line in lines)
    by = [
        next((name for name, found in answers.items() if same(line.found, found[line.question])), "") for line in lines
    ]
    assert [name for name, _ in groupby(by)] == ["first", "second", "first"], (
        "an answer came from no space, or from two"
    )


def _gathered(memory: Memory) -> int:
    return sum(space.vectors for space in memory.store.vectors.spaces() if space.next)


def _until_it_answers_like(searching: Searching, answers: list[Found]) -> None:
    def follows() -> bool:
        last = searching.lines()[-len(QUESTIONS) :]
        return all(same(line.found, answers[line.question]) for line in last)

    wait_until(follows, within=60, what="answers from the space that is searched now")


@pytest.mark.slow
@pytest.mark.anyio
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_server_that_runs_answers_from_the_new_space_without_a_restart(db: Path) -> None:
    command = [sys.executable, "-c", "from mindex.cli.main import main; main()", "--db", str(db), "serve"]
    parameters = StdioServerParameters(
        command=command[0], args=command[1:], env={**os.environ, "MINDEX_EMBEDDING_WAIT": "30"}
    )

    async def asked(client: Client) -> Found:
        result = structured(await client.call_tool("search", {"query": QUESTIONS[0], "view": "compact"}))
        assert "tier" not in result, result  # the usual one is not named
        assert not [note for note in result.get("notes", []) if "no confident match" not in note], result
        return [(hit["id"], hit["relevance"]) for hit in result["results"]]

    async with Client(parameters) as client:
        first = await asked(client)
        process = start("--db", db, "reembed", "--model", "bge-small-en-v1.5")
        meanwhile = []
        while process.poll() is None:
            meanwhile.append(await asked(client))
        assert finish(process).code == 0
        second = await asked(client)
        status = structured(await client.call_tool("status", {}))
    assert first != second
    assert len(meanwhile) > 1
    assert all(found in (first, second) for found in meanwhile)
    assert status["embedding"]["model"] == "bge-small-en-v1.5"
    with Memory(db) as memory:
        assert [id_ for id_, _ in second] == [hit.record.id for hit in memory.search(QUESTIONS[0]).hits]
