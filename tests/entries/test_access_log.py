"""The access log keeps what was asked for as long as the settings say, in every database that is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.clock import DAY_MS, now_ms
from mindex.memory import Memory
from mindex.store.base import Access
from tests.running import run_here

OPTIONS = {"embedding.provider": "none", "access_log.days": 30, "access_log.rows": 50}


def queries(db: Path) -> tuple[str, ...]:
    """What is in the log, without opening the memory, which would prune it."""
    with Memory(db, options={"embedding.provider": "none", "access_log.days": 9_999}) as memory:
        return memory.store.entries.logged_queries()


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """A database whose log has an old query and a new one, as 0.1.0 left it when fewer than 200 were logged."""
    with Memory(tmp_path / "memory.db", options=OPTIONS) as memory:
        id_ = memory.add("Herons eat fish").id
        accesses = [Access(id_, now_ms() - age * DAY_MS, "search", f"asked {age} days ago") for age in (40, 20)]
        memory.store.entries.log_access(accesses, oldest=0, rows=1_000)
    return tmp_path / "memory.db"


def test_what_is_too_old_goes_when_the_memory_is_opened(db: Path) -> None:
    assert queries(db) == ("asked 20 days ago", "asked 40 days ago")
    with Memory(db, options=OPTIONS) as memory:
        memory.status()
    assert queries(db) == ("asked 20 days ago",)


def test_a_command_that_only_reads_removes_old_rows(db: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_ACCESS_LOG_DAYS", "30")
    assert run_here("--db", db, "list").code == 0
    assert queries(db) == ("asked 20 days ago",)


def test_rows_beyond_the_limit_go_when_the_memory_is_opened(db: Path) -> None:
    with Memory(db, options=OPTIONS) as memory:
        id_ = memory.list().records[0].id
        accesses = [Access(id_, now_ms(), "search", f"asked {number:03}") for number in range(120)]
        memory.store.entries.log_access(accesses, oldest=0, rows=1_000)
    assert len(queries(db)) > 50
    with Memory(db, options=OPTIONS):
        pass
    assert queries(db) == tuple(f"asked {number:03}" for number in range(70, 120))


def test_optimize_prunes_and_takes_the_text_out_of_the_file(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options=OPTIONS) as memory:
        id_ = memory.add("Herons eat fish").id
        accesses = [Access(id_, now_ms() - age * DAY_MS, "search", f"asked {age} days ago") for age in (40, 20)]
        memory.store.entries.log_access(accesses, oldest=0, rows=1_000)
        memory.maintenance.optimize()
        assert memory.store.entries.logged_queries() == ("asked 20 days ago",)
    assert b"asked 40 days ago" not in (tmp_path / "memory.db").read_bytes()


def test_a_search_prunes_what_is_an_hour_too_old(db: Path) -> None:
    with Memory(db, options={**OPTIONS, "access_log.days": 9_999}) as memory:
        memory.store.entries.log_access(
            [Access(memory.list().records[0].id, now_ms(), "search", "herons")], oldest=now_ms() - 30 * DAY_MS, rows=50
        )
        assert memory.store.entries.logged_queries() == ("asked 20 days ago", "herons")
