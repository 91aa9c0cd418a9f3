"""Eight processes that write and search at once: nothing is lost, doubled or refused."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from mindex.memory import Memory

_WRITER = textwrap.dedent(
    """
    import sys
    from mindex import Memory
    who, count, db = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    with Memory(db, options={"embedding.provider": "none"}) as memory:
        for number in range(count):
            told = memory.add(f"writer {who} tells story number {number} about the harbour")
            assert told.created, told
            if number % 10 == 0:
                assert memory.add("a thing that every writer knows").id
                memory.search(f"story {number}")
    """
)


def _start(*arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", _WRITER, *arguments], stderr=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_eight_writers_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    db, count = str(tmp_path / "shared.db"), 100
    writers = [_start(str(who), str(count), db) for who in range(8)]
    errors = [writer.communicate(timeout=240)[1] for writer in writers]
    assert [writer.returncode for writer in writers] == [0] * 8, errors
    with Memory(db, options={"embedding.provider": "none"}) as memory:
        status = memory.status()
        assert status.records == {"memory": 8 * count + 1}
        assert all(check.ok for check in memory.store.maintenance.check())
        numbers = [record.number for record in memory.store.retrieval.list(memory.filters(), limit=1_000).records]
        assert len(set(numbers)) == len(numbers)


@pytest.mark.slow
def test_the_history_has_the_updates_of_both_processes(tmp_path: Path) -> None:
    db = tmp_path / "shared.db"
    with Memory(db, options={"embedding.provider": "none"}) as memory:
        added = memory.add("the first text")
    program = textwrap.dedent(
        """
        import sys
        from mindex import Memory
        who, db, id_ = sys.argv[1:]
        with Memory(db, options={"embedding.provider": "none"}) as memory:
            for number in range(20):
                memory.update(id_, **({"tags": [f"t{number}"]} if who == "a" else {"context": f"c{number}"}))
        """
    )
    children = [subprocess.Popen([sys.executable, "-c", program, who, str(db), added.id]) for who in "ab"]
    assert [child.wait(120) for child in children] == [0, 0]
    with Memory(db, options={"embedding.provider": "none"}) as memory:
        assert len(memory.history(added.id)) == 41
        (record,) = memory.get(added.id).records
        assert (record.tags, record.context) == (("t19",), "c19")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is not known there")
def test_a_kill_between_adding_and_embedding_leaves_the_memory_and_one_pending(tmp_path: Path) -> None:
    db = tmp_path / "killed.db"
    program = textwrap.dedent(
        """
        import os, signal, sys
        from mindex import Memory
        from mindex.embedding.queue import EmbeddingQueue
        EmbeddingQueue.embed = lambda self, *ids: os.kill(os.getpid(), signal.SIGKILL)
        Memory(sys.argv[1]).add("the harbour office has a kitchen")
        """
    )
    done = subprocess.run([sys.executable, "-c", program, str(db)], check=False)
    assert done.returncode == -signal.SIGKILL
    with Memory(db) as memory:
        assert memory.search("harbour kitchen", mode="keyword").total == 1
        assert memory.status().embedding.pending == 1
        assert memory.maintenance.backfill() == (1, 0)
