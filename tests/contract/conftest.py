"""Every test of the store's laws runs on every engine; a test of a group that an engine does not serve is skipped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import pytest

from mindex.datatypes import Collection
from mindex.errors import UnsupportedError
from mindex.store import open as engines
from mindex.store.base import Engine, Store
from mindex.store.sqlite.store import SqliteStore
from tests.contract.memory_engine import DATABASES, open_memory_store

Open = Callable[[], Store]

# Without these there is no memory; an engine may leave the other groups to SQLite.
_LEAST = frozenset({"files", "entries", "retrieval"})


engines.register_engine("toy", Engine(open_memory_store))
engines.register_engine("partial", Engine(partial(open_memory_store, capabilities=_LEAST)))


# Their tests need entries, which an engine for files does not have: it need not be opened to be skipped.
_OF_ENTRIES = {"test_entries", "test_export", "test_transactions", "test_spaces", "test_memory_engine_agrees"}
_OF_OUR_VECTOR_INDEXES = (
    "test_many_vectors_are_ranked",
    "test_a_reader_that_loaded_an_older_packing",
    "test_filters_are_applied_before_the_top_k",
    "test_each_group_of_kinds_brings_its_own_nearest",
)
_SERVERS = {"postgres": "postgres_database", "azure": "azure_database"}


@pytest.fixture(
    params=[
        "sqlite",
        "toy",
        "partial",
        pytest.param("postgres", marks=[pytest.mark.server, pytest.mark.postgres]),
        pytest.param("azure", marks=pytest.mark.server),
    ]
)
def database(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The path or URL of an empty database of each engine."""
    if request.param in _SERVERS:
        url: str = request.getfixturevalue(_SERVERS[request.param])
        return url
    return str(tmp_path / "store.db") if request.param == "sqlite" else f"{request.param}://{tmp_path}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = [one for one in items if not ("[azure" in one.name and _is_left_out_for_azure(one))]


def _is_left_out_for_azure(item: pytest.Item) -> bool:
    """Tests of entries, and those of vectors by the thousand: they are about mindex's own vector indexes."""
    return item.path.stem in _OF_ENTRIES or item.name.startswith(_OF_OUR_VECTOR_INDEXES)


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
        if database.startswith("azure:"):
            _settle_together(opened)
        return opened[-1]

    yield open_again
    for store in opened:
        store.close()


def _settle_together(stores: Sequence[Store]) -> None:
    """Let each store wait for what the others wrote: a service shows it later, and no test is to hurry it."""
    from mindex_azure.connection import Connection  # `scripts/core` runs these tests without it

    connections = [store._engine.connection for store in stores]  # type: ignore[attr-defined]
    for one in connections:
        one.settle = lambda: [Connection.settle(other) for other in connections]  # type: ignore[method-assign]


@pytest.fixture
def store(open_store: Open, database: str) -> Iterator[Store]:
    """An empty store; after each test, every row of it agrees with its checksum and with the others."""
    store = open_store()
    store.files.put_collection(Collection("docs", "/docs"))
    yield store
    if isinstance(store, SqliteStore) or database.startswith("postgresql:"):
        assert [check for check in store.maintenance.check_deep() if not check.ok] == []


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
