"""The command line in this process, for speed; what needs a process of its own is in test_processes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mindex.memory import Memory
from mindex.model import Record
from mindex.store.sqlite import keyword
from tests.conftest import HANDBOOK
from tests.running import Ran, run_here

Mindex = Callable[..., Ran]


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database without a record. Made once: a test takes a copy."""
    path = tmp_path_factory.mktemp("empty") / "memory.db"
    Memory(path, options={"embedding.provider": "none"}).close()
    return path


@pytest.fixture(autouse=True)
def no_model(tmp_path: Path, empty_database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model, and an empty database: one that is named must exist, or reading commands refuse it."""
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("MINDEX_DB", str(shutil.copy(empty_database, tmp_path / "memory.db")))
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def mindex() -> Mindex:
    """Run a command as `mindex ARGUMENTS` would."""
    return run_here


@pytest.fixture(scope="session")
def handbook_without_vectors(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A database and the folder it was made of."""
    folder = tmp_path_factory.mktemp("words")
    root = Path(shutil.copytree(HANDBOOK, folder / "handbook"))
    with Memory(folder / "memory.db", options={"embedding.provider": "none"}) as memory:
        memory.index(root)
    return folder / "memory.db", root


@pytest.fixture
def shared(handbook_without_vectors: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The handbook's folder, its database the default one. Shared: tests only ask."""
    monkeypatch.setenv("MINDEX_DB", str(handbook_without_vectors[0]))
    return handbook_without_vectors[1]


@pytest.fixture
def indexed(mindex: Mindex, handbook: Path) -> Path:
    """The handbook, indexed without a model in the default database."""
    assert mindex("index", handbook).code == 0
    return handbook


@pytest.fixture
def with_model(handbook_memory: Memory, monkeypatch: pytest.MonkeyPatch) -> Iterator[Memory]:
    """The shared handbook with its vectors as the default database."""
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "local")
    monkeypatch.setenv("MINDEX_DB", handbook_memory.status().db)
    yield handbook_memory


@pytest.fixture
def own_copy(handbook_memory: Memory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the handbook's database, with its vectors, that a test may change."""
    handbook_memory.store.settle()
    with handbook_memory.store._engine.database.write() as connection:  # noqa: F841 - locked while it is copied
        copy = Path(shutil.copy(handbook_memory.status().db, tmp_path / "memory.db"))
        log = Path(handbook_memory.status().db + "-wal")
        if log.exists():
            shutil.copy(log, tmp_path / "memory.db-wal")
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "local")
    return copy


def store_entry(db: Path, record: Record) -> None:
    """Store an entry with all its properties, times included."""
    with Memory(db) as memory, memory.store._engine.database.write() as connection:
        cursor = connection.execute(
            "INSERT INTO records (id, kind, agent, type, importance, confidence, created_at, updated_at, expires_at,"
            " text) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                record.id,
                record.kind,
                record.agent,
                record.type,
                record.importance,
                record.confidence,
                record.created_at,
                record.updated_at,
                record.expires_at,
                record.text,
            ),
        )
        assert cursor.lastrowid is not None
        keyword.index(connection, cursor.lastrowid, record)
