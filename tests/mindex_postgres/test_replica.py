"""Reads that go to a replica: a real one, which streams from the server of the tests."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from mindex.errors import ConfigError
from mindex.memory import Memory
from mindex.store.open import open_store
from mindex.store.sql.store import SqlStore
from mindex_postgres.store import postgres_store
from tests.contract.records import EVERYONE, found, memory_of
from tests.postgres_server import PostgresServer, Replica
from tests.running import run_here

pytestmark = [pytest.mark.server, pytest.mark.slow]

WHERE = "SELECT pg_is_in_recovery()"


@pytest.fixture(scope="module")
def replica(postgres_server: PostgresServer) -> Iterator[Replica]:
    with postgres_server.replica() as replica:
        yield replica


@pytest.fixture
def store(postgres_database: str, replica: Replica) -> Iterator[SqlStore]:
    with closing(postgres_store(postgres_database, cache_rows=100, replica=replica.url())) as store:
        yield store


def reads_from_replica(store: SqlStore) -> bool:
    with store._engine.database.read() as transaction:
        return bool(transaction.value(WHERE))


def test_reads_go_to_the_replica_and_writes_to_the_primary(store: SqlStore) -> None:
    store.entries.add([memory_of("one")], by="me")
    assert found(store, "one", EVERYONE) == ["one"]
    assert reads_from_replica(store)
    store.entries.revise("one", lambda record: record, by="me", action="update")
    assert len(store.entries.history("one")) >= 1


def test_a_process_reads_what_it_has_written_while_the_replica_is_behind(store: SqlStore, replica: Replica) -> None:
    with replica.behind():
        store.entries.add([memory_of("two")], by="me")
        assert found(store, "two", EVERYONE) == ["two"]  # from the primary
        assert not reads_from_replica(store)
        started = time.monotonic()
        for _ in range(20):
            assert store.retrieval.record("two")
        assert time.monotonic() - started < 2  # only the first one waits
        check = store.maintenance.check()[-1]
        assert check.name == "replica" and not check.ok
        assert "bytes of changes behind" in check.message and "from the primary" in check.fix
    check = store.maintenance.check()[-1]
    assert check.ok and "has all that was written" in check.message
    assert reads_from_replica(store) and found(store, "two", EVERYONE) == ["two"]


def test_what_others_have_written_may_be_missing_until_it_is_replayed(
    postgres_database: str, store: SqlStore, replica: Replica
) -> None:
    assert reads_from_replica(store)  # it has all from before
    with replica.behind(), closing(open_store(postgres_database)) as other:
        other.entries.add([memory_of("three")], by="them")
        assert store.retrieval.record("three") is None  # and no read waits for it
    assert store.maintenance.check()[-1].ok
    assert store.retrieval.record("three") is not None


def test_the_command_line_takes_a_replica(postgres_database: str, replica: Replica) -> None:
    options = ["--db", postgres_database, "--db-read", replica.url(), "--agent", "ann"]
    assert run_here("add", "the wombat digs", *options).code == 0
    assert "wombat" in run_here("search", "wombat", *options).out
    assert "replica" in run_here("doctor", *options).out


def test_a_replica_of_another_server_is_refused(postgres_database: str, replica: Replica) -> None:
    with PostgresServer() as another, pytest.raises(ConfigError, match=r"\(--db-read\) is not a replica of"):
        open_store(postgres_database, replica=another.url())


def test_a_replica_of_a_file_is_refused() -> None:
    with pytest.raises(ConfigError, match="has no replicas"):
        Memory("memory.db", options={"db_read": "postgresql://ada@db.example/team"})


def test_the_primary_serves_where_the_replica_does_not_answer_from_the_start(postgres_database: str) -> None:
    options = ["--db", postgres_database, "--db-read", "postgresql://ada@127.0.0.1:1/team", "--agent", "ann"]
    assert run_here("add", "the wombat digs", *options).code == 0
    assert "wombat" in run_here("search", "wombat", *options).out
    doctor = run_here("doctor", *options)
    assert doctor.code == 1
    assert "no server answers at postgresql://ada@127.0.0.1:1/team" in doctor.out and "(--db-read)" in doctor.out
    assert "from the primary" in doctor.out


def test_a_replica_serves_when_it_answers_later(postgres_database: str, postgres_server: PostgresServer) -> None:
    with postgres_server.replica() as late:
        late.stop()
        with closing(postgres_store(postgres_database, cache_rows=100, replica=late.url())) as store:
            store.entries.add([memory_of("one")], by="me")
            assert store.retrieval.record("one") and not reads_from_replica(store)
            late.start()
            assert store.maintenance.check()[-1].ok
            assert reads_from_replica(store) and store.retrieval.record("one")


def test_a_replica_with_a_malformed_url_is_refused_and_its_option_named(postgres_database: str) -> None:
    run_here("--db", postgres_database, "add", "the wombat digs")
    ran = run_here("--db", postgres_database, "--db-read", "postgresql://ada@127.0.0.1:1/team?shema=x", "status")
    assert ran.code == 1 and "(--db-read)" in ran.err and "shema" in ran.err


def test_reads_go_to_the_primary_when_the_replica_goes_down(
    postgres_database: str, postgres_server: PostgresServer
) -> None:
    with (
        postgres_server.replica() as going,
        closing(postgres_store(postgres_database, cache_rows=100, replica=going.url())) as store,
    ):
        store.entries.add([memory_of("one")], by="me")
        assert store.retrieval.record("one")
        going.stop()
        assert store.retrieval.record("one")
        started = time.monotonic()
        assert store.retrieval.record("one") and not reads_from_replica(store)
        assert time.monotonic() - started < 1
        check = store.maintenance.check()[-1]
        assert not check.ok and "no server answers at" in check.message and "(--db-read)" in check.message
