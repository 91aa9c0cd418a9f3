"""Every test of the store's laws runs on every engine; a test of a group that an engine does not serve is skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from mindex.errors import UnsupportedError
from mindex.model import Collection
from mindex.store import open as engines
from mindex.store.base import Store
from tests.contract.memory_engine import DATABASES, open_memory_store

Open = Callable[[], Store]

# Without these there is no memory; an engine may leave the other groups to SQLite.
_LEAST = frozenset({"files", "entries", "retrieval"})


engines.register_engine("toy", open_memory_store)
engines.register_engine("partial", partial(open_memory_store, capabilities=_LEAST))


@pytest.fixture(params=["sqlite", "toy", "partial", pytest.param("postgres", marks=pytest.mark.server)])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The path or URL of an empty database of each engine."""
    if request.param == "postgres":
        url: str = request.getfixturevalue("postgres_database")
        return url
    return str(tmp_path / "store.db") if request.param == "sqlite" else f"{request.param}://{tmp_path}"


@pytest.fixture(autouse=True)
def drop_memory_databases() -> Iterator[None]:
    yield
    DATABASES.clear()


@pytest.fixture
def open_store(database: str) -> Iterator[Open]:
    """Opens the same data again and again, as further processes would."""
    opened: list[Store] = []

    def open_again() -> Store:
        opened.append(engines.open_store(database))
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Open) -> Store:
    store = open_store()
    store.files.put_collection(Collection("docs", "/docs"))
    return store


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup() -> Iterator[None]:
    return (yield from _skipped_where_unsupported())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    return (yield from _skipped_where_unsupported())


def _skipped_where_unsupported() -> Iterator[None]:
    """Skip a test when it needs a group that the engine does not serve."""
    try:
        return (yield)
    except UnsupportedError as error:
        pytest.skip(error.message)
