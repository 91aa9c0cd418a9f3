"""The command line in this process, for speed; tests that need a separate process are in test_processes."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mindex.datatypes import Record
from mindex.memory import Memory
from tests.conftest import HANDBOOK
from tests.databases import Databases
from tests.running import Ran, run_here

Mindex = Callable[..., Ran]


@pytest.fixture(scope="session")
def empty_database(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> str:
    """A database without a record. Made once: a test takes a copy."""
    empty = databases.new(tmp_path_factory.mktemp("empty") / "memory.db")
    Memory(empty, options={"embedding.provider": "none"}).close()
    return empty


@pytest.fixture
def database(databases: Databases, empty_database: str, tmp_path: Path) -> Iterator[str]:
    """An empty database, which exists already."""
    made = databases.copy(empty_database, tmp_path / "memory.db")
    yield made
    databases.drop(made)


@pytest.fixture(autouse=True)
def no_model(tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No model, and an empty database: one that is named must exist, or reading commands refuse it."""
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("MINDEX_DB", database)
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def mindex() -> Mindex:
    """Run a command as `mindex ARGUMENTS` would."""
    return run_here


@pytest.fixture(scope="session")
def handbook_without_vectors(tmp_path_factory: pytest.TempPathFactory, databases: Databases) -> tuple[str, Path]:
    """A database and the folder it was made of."""
    folder = tmp_path_factory.mktemp("words")
    root = Path(shutil.copytree(HANDBOOK, folder / "handbook"))
    database = databases.new(folder / "memory.db")
    with Memory(database, options={"embedding.provider": "none"}) as memory:
        memory.index(root)
    return database, root


@pytest.fixture
def shared(handbook_without_vectors: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> Path:
    """The handbook's folder, its database the default one. Shared: tests only ask."""
    monkeypatch.setenv("MINDEX_DB", handbook_without_vectors[0])
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
def own_copy(handbook_memory: Memory, databases: Databases, database: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """A copy of the handbook's database, with its vectors, that a test may change."""
    handbook_memory.store.settle()
    databases.restore(database, handbook_memory.status().db)
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "local")
    return database


def store_entry(database: str, record: Record) -> None:
    """Store an entry with all its properties, times included."""
    with Memory(database) as memory:
        memory.store.entries.add([record], by="user")
