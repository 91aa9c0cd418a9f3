"""Connections that answer nothing any more, while new ones work: every statement ends, dead connections are dropped."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TypeVar
from urllib.parse import parse_qs, urlsplit

import pytest

from mindex.errors import StoreError
from mindex.fail_fast import fail_fast
from mindex.memory import Memory
from mindex.store.transactions import in_transaction
from mindex_postgres import connection, server_pool
from mindex_postgres.store import postgres_store
from tests.contract.records import memory_of
from tests.mcp.team import KEYWORD, team_server
from tests.postgres_server import PostgresServer
from tests.silent_proxy import SilentProxy

pytestmark = [pytest.mark.server, pytest.mark.postgres]

T = TypeVar("T")
BOUND = 15.0


@pytest.fixture
def proxy(postgres_server: PostgresServer) -> Iterator[SilentProxy]:
    with SilentProxy(postgres_server.socket) as proxy:
        yield proxy


@pytest.fixture
def url(proxy: SilentProxy, postgres_database: str) -> str:
    return proxy.url(parse_qs(urlsplit(postgres_database).query)["schema"][0])


@pytest.fixture
def memory(url: str) -> Iterator[Memory]:
    with Memory(url, agent="ann", options=KEYWORD) as memory:
        memory.add("Anna keeps bees")
        together(6, lambda: memory.search("bees"))
        yield memory


def timed(call: Callable[[], T]) -> tuple[T, float]:
    started = time.monotonic()
    return call(), time.monotonic() - started


def together(count: int, call: Callable[[], object]) -> list[object]:
    """Call from several threads at once, so that the pool has several connections. Returns what was returned."""
    results: list[object] = []
    threads = [threading.Thread(target=lambda: results.append(call()), daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return results


def test_the_next_search_answers_within_seconds_although_all_connections_of_the_pool_are_dead(
    memory: Memory, proxy: SilentProxy
) -> None:
    proxy.go_silent()
    answer, seconds = timed(lambda: memory.search("bees"))
    assert [hit.record.text for hit in answer.hits] == ["Anna keeps bees"]
    assert seconds < BOUND
    _, seconds = timed(lambda: memory.search("bees"))
    assert seconds < 1  # the others are not tried, one after the other


def test_searches_of_several_threads_answer_within_seconds(memory: Memory, proxy: SilentProxy) -> None:
    proxy.go_silent()
    answers, seconds = timed(lambda: together(6, lambda: memory.search("bees")))
    assert len(answers) == 6 and seconds < BOUND


def test_a_statement_whose_answer_is_lost_is_run_again(memory: Memory, proxy: SilentProxy) -> None:
    """The connection is taken, the transaction has begun, and the answer of the server never comes."""
    database = memory.store._engine.database  # type: ignore[attr-defined]
    attempts: list[int] = []

    def read() -> object:
        with database.read() as transaction:
            attempts.append(1)
            if len(attempts) == 1:
                proxy.go_silent()
            return transaction.value("SELECT 42")

    with fail_fast():
        answer, seconds = timed(lambda: database.until_answered(read))
    assert (answer, len(attempts)) == (42, 2)
    assert seconds < BOUND


def test_a_write_is_stored_once_although_its_answer_is_lost(url: str, proxy: SilentProxy) -> None:
    """Silence before the statements, before the commit, and in a block of several writes."""
    with closing(postgres_store(url, cache_rows=0)) as store:
        store.entries.add([memory_of("zero")], by="me")
        proxy.go_silent()
        _, seconds = timed(lambda: store.entries.add([memory_of("one")], by="me"))
        assert seconds < BOUND
        database = store._engine.database
        commit, attempts = database._commit, [0]

        def commit_in_silence(*arguments: object) -> None:
            attempts[0] += 1
            if attempts[0] == 1:
                proxy.go_silent()
            commit(*arguments)  # type: ignore[arg-type]

        database._commit = commit_in_silence  # type: ignore[method-assign, assignment]
        _, seconds = timed(lambda: store.entries.add([memory_of("two")], by="me"))
        assert (attempts, seconds < BOUND) == ([2], True)

        def write(_: int) -> None:
            store.entries.add([memory_of("three")], by="me")
            if not calls:
                proxy.go_silent()
            calls.append(1)
            store.entries.add([memory_of("four")], by="me")

        calls: list[int] = []
        _, seconds = timed(lambda: in_transaction(store.entries, write))
        assert (len(calls), seconds < BOUND) == (2, True)
        assert [len(store.entries.history(id_)) for id_ in ("zero", "one", "two", "three", "four")] == [1] * 5


def test_a_long_statement_is_waited_for_as_long_as_the_server_works_on_it(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_pool, "SILENCE_SECONDS", 0.5)
    database = memory.store._engine.database  # type: ignore[attr-defined]
    with database.read() as transaction:
        assert transaction.value("SELECT 'slept' FROM pg_sleep(3)") == "slept"
    database.execute_alone("DO $$ BEGIN PERFORM pg_sleep(3); END $$")


def test_a_server_that_works_on_a_statement_for_ever_is_not_waited_for_for_ever(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_STATEMENT_SECONDS", 1)
    database = memory.store._engine.database  # type: ignore[attr-defined]
    with pytest.raises(StoreError, match="took too long"), database.read() as transaction:
        transaction.value("SELECT pg_sleep(60)")


def test_a_server_is_ready_again_within_seconds(tmp_path: Path, url: str, proxy: SilentProxy) -> None:
    with team_server(tmp_path, db=url) as team:
        anna = team.token("anna")
        assert team.get("/ready").status_code == 200
        together(6, lambda: team.get("/api/v1/search?q=bees", anna))
        proxy.go_silent()
        time.sleep(1.1)  # so long what was learnt of the database counts
        started = time.monotonic()
        while (status := team.get("/ready").status_code) != 200 and time.monotonic() - started < 60:
            time.sleep(0.2)
        assert (status, time.monotonic() - started < BOUND) == (200, True)
        response, seconds = timed(lambda: team.get("/api/v1/search?q=bees", anna))
        assert (response.status_code, seconds < BOUND) == (200, True)
