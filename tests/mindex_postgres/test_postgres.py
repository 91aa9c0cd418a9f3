"""What only the PostgreSQL engine has: connections, rights, restarts, several writers, and its indexes.

What it has in common with every other engine is in `tests/contract`.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import psycopg
import pytest

from mindex.datatypes import AnyOf, Collection, Filters, Record, RecordVectors, Term
from mindex.errors import ConfigError, SchemaError, StoreBusyError, StoreError, UsageError
from mindex.memory import Memory
from mindex.store.base import Access, KeywordQuery
from mindex.store.open import open_store
from mindex.store.sql.store import SqlStore
from mindex_postgres import keyword, migrations, server_pool, vectors
from mindex_postgres.address import parse_address
from mindex_postgres.administration import Administration
from mindex_postgres.connection import Database
from mindex_postgres.store import postgres_store
from tests.contract.records import EVERYONE, EVERYTHING, MODEL, axis, found, memory_of, update
from tests.postgres_server import PostgresServer
from tests.running import run_here

pytestmark = [pytest.mark.server, pytest.mark.postgres]


@pytest.fixture
def store(postgres_database: str) -> Iterator[SqlStore]:
    with closing(postgres_store(postgres_database, cache_rows=100)) as store:
        store.files.put_collection(Collection("docs", "/docs"))
        yield store


@contextmanager
def database_of(server: PostgresServer, name: str, *statements: str) -> Iterator[str]:
    """The URL of a database of a test's own, in which an administrator has run some statements."""
    server.run(f"CREATE DATABASE {name}")
    try:
        for statement in statements:
            server.run(statement, database=name)
        yield server.url(database=name)
    finally:
        server.run(f"DROP DATABASE {name} WITH (FORCE)")


@contextmanager
def role_of(server: PostgresServer, name: str, options: str = "") -> Iterator[str]:
    server.run(f"CREATE ROLE {name} LOGIN {options}")
    try:
        yield name
    finally:
        server.run(f"DROP OWNED BY {name} CASCADE", f"DROP ROLE {name}")


def lose_connections(server: PostgresServer) -> None:
    """End every connection of mindex, as a restart of the server does."""
    server.run("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'mindex'")


# ── opening ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_server_that_does_not_answer_is_named() -> None:
    with pytest.raises(StoreError, match=r"no server answers at postgresql://ada@127\.0\.0\.1:1/team; check that"):
        open_store("postgresql://ada@127.0.0.1:1/team")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://ada@127.0.0.1:1/team?shema=x", r'invalid URI query parameter: "shema"; .*\?schema=NAME'),
        ("postgresql://ada@127.0.0.1:1/team?sslmode=x", 'invalid sslmode value: "x"; '),
        ("postgresql://ada@127.0.0.1:99999/team", 'invalid port number: "99999"; '),
    ],
)
def test_what_libpq_does_not_take_in_a_url_is_named(url: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        open_store(url)


def test_a_host_that_is_called_invalid_is_one_that_does_not_answer() -> None:
    with pytest.raises(StoreError, match=r"no server answers at postgresql://ada@db\.invalid/team"):
        open_store("postgresql://ada@db.invalid/team")


def test_a_port_of_another_protocol_is_named_as_such() -> None:
    def greet(listener: socket.socket) -> None:
        with suppress(OSError):  # closed in the end
            while True:
                connection, _ = listener.accept()
                connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                connection.recv(100)
                connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=greet, args=[listener], daemon=True).start()
        with pytest.raises(StoreError, match=r"127\.0\.0\.1:\d+/team: the server there is not PostgreSQL; check"):
            open_store(f"postgresql://ada@127.0.0.1:{listener.getsockname()[1]}/team")


@pytest.mark.parametrize(
    "command",
    [("search", "wombat"), ("status",), ("list",), ("optimize",), ("index",)],
    ids=" ".join,
)
def test_a_reading_command_makes_no_schema_of_a_mistyped_name(
    postgres_server: PostgresServer, command: tuple[str, ...]
) -> None:
    ran = run_here("--db", postgres_server.url(schema="typo"), *command)
    assert ran.code == 1 and "has no memory in its schema typo; check the names in the URL" in ran.err
    assert schemas(postgres_server, "typo") == []


def test_a_dry_run_of_an_import_makes_no_schema(postgres_server: PostgresServer, tmp_path: Path) -> None:
    (tmp_path / "CLAUDE.md").write_text("# Rules\n\nIndent with tabs.\n")
    ran = run_here("--db", postgres_server.url(schema="typo"), "import", tmp_path / "CLAUDE.md", "--dry-run")
    assert ran.code == 0, ran
    assert schemas(postgres_server, "typo") == []


def test_a_dry_run_of_a_copy_makes_no_schema(
    postgres_server: PostgresServer, postgres_database: str, tmp_path: Path
) -> None:
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as memory:
        memory.add("the wombat digs")
    target = postgres_server.url(schema="planned")
    ran = run_here("copy", tmp_path / "memory.db", target, "--dry-run")
    assert ran.code == 0 and "memory" in ran.out
    assert schemas(postgres_server, "planned") == []
    refused = run_here("copy", target, postgres_database)
    assert refused.code == 1 and "has no memory in its schema planned" in refused.err
    assert schemas(postgres_server, "planned") == []


def schemas(server: PostgresServer, name: str) -> list[Any]:
    return server.run(f"SELECT nspname FROM pg_namespace WHERE nspname = '{name}'")


def test_a_database_that_does_not_exist_is_an_error_that_says_so(postgres_server: PostgresServer) -> None:
    with pytest.raises(StoreError, match="no such database or role; check the names in the URL"):
        open_store(postgres_server.url(database="nowhere"))


def test_a_wrong_password_is_refused_and_never_printed(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder,) = postgres_server.run("SHOW data_directory")[0]
    rules = Path(folder, "pg_hba.conf")
    before = rules.read_text()
    with role_of(postgres_server, "locked", "PASSWORD 'right'"):
        rules.write_text(f"local all locked scram-sha-256\n{before}")
        postgres_server.run("SELECT pg_reload_conf()")
        try:
            monkeypatch.setenv("PGPASSWORD", "wr0ng")
            ran = run_here("--db", postgres_server.url(user="locked"), "status")
            monkeypatch.delenv("PGPASSWORD")
            lacking = run_here("--db", postgres_server.url(user="locked"), "status")
        finally:
            rules.write_text(before)
            postgres_server.run("SELECT pg_reload_conf()")
    assert ran.code == 1 and "the server refused the password; check it in the service file" in ran.err
    assert "wr0ng" not in ran.out + ran.err
    assert lacking.code == 1 and "the server wants a password" in lacking.err


def test_an_old_pgvector_is_refused_with_the_statement_that_updates_it(postgres_server: PostgresServer) -> None:
    old = ("CREATE EXTENSION vector", "UPDATE pg_extension SET extversion = '0.7.4' WHERE extname = 'vector'")
    with (
        database_of(postgres_server, "old_vector", *old) as url,
        pytest.raises(
            StoreError, match=r"has pgvector 0\.7\.4, and mindex needs 0\.8; .*ALTER EXTENSION vector UPDATE;"
        ),
    ):
        open_store(url)


def test_a_role_that_may_not_create_the_extension_gets_the_statement(postgres_server: PostgresServer) -> None:
    with (
        role_of(postgres_server, "plain"),
        database_of(postgres_server, "no_vector", "GRANT CREATE ON DATABASE no_vector TO plain"),
        # pgvector is a trusted extension: a user who may create a schema may also create it, unless that is revoked.
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setattr(migrations, "_CREATE_EXTENSION", "CREATE EXTENSION IF NOT EXISTS file_fdw")
        with pytest.raises(
            StoreError, match=r"may not create the extension pgvector .* ask an administrator to run `CREATE"
        ):
            open_store(postgres_server.url(user="plain", database="no_vector"))


def test_a_server_without_pgvector_is_an_error_that_says_so(
    postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(migrations, "_CREATE_EXTENSION", "CREATE EXTENSION not_there")
    with (
        database_of(postgres_server, "bare") as url,
        pytest.raises(StoreError, match=r"has no pgvector; install pgvector 0\.8 or newer on the server"),
    ):
        open_store(url)


def test_a_role_that_may_not_create_the_schema_gets_the_statement(postgres_server: PostgresServer) -> None:
    with (
        role_of(postgres_server, "guest"),
        database_of(postgres_server, "closed", "CREATE EXTENSION vector"),
        pytest.raises(StoreError, match=r'run `CREATE SCHEMA "mindex" AUTHORIZATION "guest";` in this database'),
    ):
        open_store(postgres_server.url(user="guest", database="closed"))


def test_a_newer_schema_is_refused(store: SqlStore, postgres_database: str, postgres_server: PostgresServer) -> None:
    schema = postgres_database.partition("schema=")[2]
    postgres_server.run(f"UPDATE {schema}.meta SET value = '99' WHERE key = 'schema'")
    with pytest.raises(
        SchemaError, match=r"written by a newer mindex \(schema 99, this one speaks \d+\); upgrade with"
    ):
        open_store(postgres_database)
    with pytest.raises(StoreError, match="indexed by a newer mindex; restart this process after the upgrade"):
        store.entries.add([memory_of("one")], by="me")


def test_a_schema_without_the_table_of_terms_gets_it_filled(
    postgres_database: str, postgres_server: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = postgres_database.partition("schema=")[2]
    with closing(open_store(postgres_database)) as store:
        store.entries.add([replace(memory_of(f"m{n}"), text=f"apple number {n}") for n in range(3)], by="me")
    postgres_server.run(
        f"DROP TABLE {schema}.terms",
        f"ALTER TABLE {schema}.words ADD COLUMN weights real[]",
        f"CREATE INDEX words_by_token ON {schema}.words USING gin (tokens)",
        f"UPDATE {schema}.meta SET value = '1' WHERE key = 'schema'",
    )
    monkeypatch.setattr(migrations.migrate, "__defaults__", (migrations.MIGRATIONS[:2],))  # the others are made already
    with closing(open_store(postgres_database)) as store:
        assert len(found(store, "apple", EVERYONE)) == 3
        assert all(check.ok for check in store.maintenance.check())


def test_a_schema_without_numbers_of_programs_gets_those_that_stay_valid(
    postgres_database: str, postgres_server: PostgresServer
) -> None:
    schema = postgres_database.partition("schema=")[2]
    with closing(open_store(postgres_database)) as store:
        origins = {"ours": {}, "v3": {"memory-mcp": "mem_1"}, "mud": {"mudpuppy": ["2", "5000"]}}
        added = [replace(memory_of(id_), fields={"foreign_ids": ids} if ids else {}) for id_, ids in origins.items()]
        store.entries.add(added, by="me")
    before = migrations.MIGRATIONS.index(migrations._add_program_numbers)
    postgres_server.run(
        f"DROP TABLE {schema}.program_numbers, {schema}.commits",
        f"UPDATE {schema}.meta SET value = '{before}' WHERE key = 'schema'",
    )
    with closing(open_store(postgres_database)) as store:
        found = {
            program: [store.entries.by_number("a", n, program=program, kind="memory") for n in (1, 2, 3, 5000)]
            for program in ("mudpuppy", "memorizer")
        }
        assert found == {"mudpuppy": ["ours", "mud", "mud", "mud"], "memorizer": ["ours", None, None, None]}
        store.entries.add([memory_of("next")], by="me")
        assert store.entries.by_number("a", 5001) == "next"


def test_processes_that_open_an_empty_database_at_once_make_one_schema(postgres_database: str) -> None:
    opened: list[object] = []

    def open_one() -> None:
        try:
            with closing(open_store(postgres_database)) as one:
                opened.append(one.maintenance.status().schema)
        except StoreError as error:
            opened.append(error)

    threads = [threading.Thread(target=open_one) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert opened == [len(migrations.MIGRATIONS)] * 6


def test_two_schemas_of_one_database_are_two_memories(postgres_server: PostgresServer) -> None:
    with (
        postgres_server.schema() as one,
        postgres_server.schema() as other,
        closing(open_store(one)) as first,
        closing(open_store(other)) as second,
    ):
        first.entries.add([memory_of("one")], by="me")
        assert (first.entries.agents(), second.entries.agents()) == (("a",), ())
        assert first.maintenance.status().location == one


def test_a_replica_is_read_and_refuses_every_write(postgres_server: PostgresServer, postgres_database: str) -> None:
    with closing(open_store(postgres_database)) as store:
        store.entries.add([memory_of("one")], by="me")
    schema = postgres_database.partition("schema=")[2]
    with role_of(postgres_server, "reader"):
        postgres_server.run(
            f"GRANT USAGE ON SCHEMA {schema} TO reader",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader",
            "ALTER ROLE reader SET default_transaction_read_only = on",
        )
        with closing(open_store(postgres_server.url(user="reader", schema=schema))) as replica:
            assert replica.read_only and found(replica, "text", EVERYONE) == ["one"]
            with pytest.raises(StoreError, match="is read-only; connect to the primary server"):
                replica.entries.add([memory_of("two")], by="me")


# ── nothing outlives a transaction ────────────────────────────────────────────────────────────────────────────


def test_connections_keep_no_state_that_a_pooler_would_mix_up(store: SqlStore) -> None:
    store.files.apply([update("a.md", *["apple pear"] * 20)])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)])])
    for number in range(8):  # psycopg would prepare a statement that it sees often
        found(store, "apple")
        store.retrieval.nearest(MODEL, np.asarray(axis(0), np.float32), EVERYTHING, 5)
        store.entries.add([memory_of(f"m{number}")], by="me")
    pool = store._engine.database._primary._pool
    with pool.connection() as one:
        settings = one.execute(
            "SELECT name FROM pg_settings WHERE source = 'session' AND name != 'client_encoding'"
        ).fetchall()
        prepared = one.execute("SELECT * FROM pg_prepared_statements").fetchall()
        locks = one.execute("SELECT * FROM pg_locks WHERE locktype = 'advisory'").fetchall()
    assert (settings, prepared, locks) == ([], [], [])


# ── a server that goes away ───────────────────────────────────────────────────────────────────────────────────


def test_a_write_whose_connection_is_lost_is_run_again_and_stored_once(
    store: SqlStore, postgres_server: PostgresServer
) -> None:
    store.entries.add([memory_of("one")], by="me")
    calls: list[str] = []

    def change(record: Record) -> Record:
        calls.append(record.text)
        if len(calls) == 1:
            lose_connections(postgres_server)
        return replace(record, text="new text")

    store.entries.revise("one", change, by="me", action="update")
    assert calls == ["text of one"] * 2
    assert [one.action for one in store.entries.history("one")] == ["add", "update"]
    assert all(check.ok for check in store.maintenance.check())


def test_a_transaction_whose_connection_is_lost_leaves_nothing_and_says_so(
    store: SqlStore, postgres_server: PostgresServer
) -> None:
    lost = pytest.raises(StoreError, match="nothing of the unfinished change was stored; try again")
    with lost, store.entries.transaction():
        store.entries.add([memory_of("one")], by="me")
        lose_connections(postgres_server)
        store.entries.add([memory_of("two")], by="me")
    assert store.retrieval.resolve("") == ()
    store.entries.add([memory_of("three")], by="me")
    assert store.retrieval.resolve("") == ("three",)


@pytest.mark.parametrize("arrived", [True, False])
def test_a_commit_that_was_not_answered_is_looked_up(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch, arrived: bool
) -> None:
    """The server commits, or does not, and then the connection is gone: the entry is there once in both cases."""
    execute = psycopg.Connection.execute
    lost: list[str] = []

    def lose_answer(self: Any, query: Any, *rest: Any, **more: Any) -> Any:
        if query != "COMMIT" or lost or self.info.transaction_status != psycopg.pq.TransactionStatus.INTRANS:
            return execute(self, query, *rest, **more)
        lost.append("answer")
        if arrived:
            execute(self, query)
        self.close()
        raise psycopg.OperationalError("server closed the connection unexpectedly")

    monkeypatch.setattr(psycopg.Connection, "execute", lose_answer)
    (outcome,) = store.entries.add([Record("t", "turn", "said", agent="a", created_at=1)], by="me")
    assert (lost, outcome.created) == (["answer"], True)
    assert len(store.entries.history("t")) == 1


def test_a_read_after_a_restart_uses_a_new_connection(store: SqlStore, postgres_server: PostgresServer) -> None:
    store.entries.add([memory_of("one")], by="me")
    lose_connections(postgres_server)
    assert found(store, "text", EVERYONE) == ["one"]


@pytest.mark.slow
def test_what_was_acknowledged_survives_a_server_that_is_killed(tmp_path: Path) -> None:
    with PostgresServer() as server, server.schema() as url, closing(open_store(url)) as store:
        acknowledged: list[str] = []
        unknown: list[str] = []  # their commit was not answered
        stop = threading.Event()

        def add(writer: int) -> None:
            number = 0
            while not stop.is_set():
                number += 1
                try:
                    store.entries.add([memory_of(f"w{writer}n{number}")], by="me")
                    acknowledged.append(f"w{writer}n{number}")
                except StoreError as error:
                    assert "whether it was is unknown" in str(error)
                    unknown.append(f"w{writer}n{number}")

        threads = [threading.Thread(target=add, args=(writer,)) for writer in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.5)
        server.kill_and_start()
        before = len(acknowledged)
        deadline = time.monotonic() + 30
        while len(acknowledged) < before + 20 and time.monotonic() < deadline:
            time.sleep(0.1)
        stop.set()
        for thread in threads:
            thread.join(60)
        assert len(acknowledged) >= before + 20 and len(unknown) <= len(threads)
        stored = store.retrieval.resolve("", 10_000)
        assert set(acknowledged) <= set(stored) <= {*acknowledged, *unknown}
        assert len(set(stored)) == len(stored)
        numbers = [record.number for record in store.retrieval.records(acknowledged)]
        assert len(set(numbers)) == len(numbers) == len(acknowledged)
        assert all(check.ok for check in store.maintenance.check())


def test_a_statement_that_takes_too_long_for_the_server_is_an_error_that_says_so(
    postgres_server: PostgresServer, postgres_database: str, store: SqlStore
) -> None:
    schema = postgres_database.partition("schema=")[2]
    with role_of(postgres_server, "hurried", "SUPERUSER"):
        postgres_server.run("ALTER ROLE hurried SET statement_timeout = '300ms'")
        url = postgres_server.url(user="hurried", schema=schema)
        with closing(open_store(url)) as hurried, store.entries.transaction():
            store.entries.add([memory_of("one")], by="me")
            with pytest.raises(StoreError, match=r"ended a statement that took too long \(statement_timeout\)"):
                hurried.entries.add([memory_of("two")], by="me")
        assert store.retrieval.resolve("") == ("one",)


def test_a_writer_that_waits_too_long_for_another_says_that_it_is_busy(postgres_database: str, store: SqlStore) -> None:
    with closing(postgres_store(postgres_database, wait=0.3, cache_rows=0)) as impatient, store.entries.transaction():
        store.entries.add([memory_of("one")], by="me")
        with pytest.raises(StoreBusyError, match="try again"):
            impatient.entries.add([memory_of("two")], by="me")


def test_an_id_that_exists_is_refused_at_once(store: SqlStore) -> None:
    store.entries.add([memory_of("one")], by="me")
    with pytest.raises(StoreError, match="there is a record 'one' already"):
        store.entries.add([replace(memory_of("one"), text="other words", agent="b")], by="me")


def test_more_threads_than_connections_wait_and_then_say_so(
    postgres_database: str, store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_pool, "CONNECTIONS", 1)
    with closing(postgres_store(postgres_database, wait=0.3, cache_rows=0)) as narrow:
        outcome: list[object] = []

        def read() -> None:
            try:
                outcome.append(narrow.retrieval.record("one"))
            except StoreError as error:
                outcome.append(error)

        thread = threading.Thread(target=read)
        with narrow._engine.database.read():
            thread.start()
            thread.join(30)
        assert isinstance(outcome[0], StoreBusyError) and "all 1 connections" in str(outcome[0])
        assert narrow.retrieval.record("one") is None


def test_a_role_that_owns_no_table_writes_and_leaves_the_indexes_to_the_owner(
    postgres_database: str,
    store: SqlStore,
    postgres_server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors, "EXACT", 5)
    schema = postgres_database.partition("schema=")[2]
    with role_of(postgres_server, "writer"):
        postgres_server.run(
            f"GRANT USAGE ON SCHEMA {schema} TO writer",
            f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO writer",
            f"GRANT USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA {schema} TO writer",
        )
        with closing(open_store(postgres_server.url(user="writer", schema=schema))) as writer:
            writer.entries.add([memory_of(f"m{n}") for n in range(9)], by="me")
            writer.vectors.put(MODEL, [RecordVectors(f"m{n}", [axis(n)]) for n in range(9)])
            writer.vectors.pack()
            writer.entries.purge(["m8"])
            assert len(found(writer, "text", EVERYONE)) == 8
    query = f"SELECT count(*) FROM pg_indexes WHERE schemaname = '{schema}' AND indexname LIKE 'vectors_hnsw%'"
    assert postgres_server.run(query) == [(0,)]
    assert [check.fix for check in store.maintenance.check() if not check.ok] == [
        "run `mindex optimize` with a login that owns the tables"
    ]
    store.maintenance.optimize()
    assert postgres_server.run(query) == [(1,)]
    assert all(check.ok for check in store.maintenance.check())


def vector_indexes(store: SqlStore) -> list[tuple[str, bool]]:
    query = """
    SELECT c.relname::text, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
    WHERE i.indrelid = 'vectors'::regclass AND starts_with(c.relname, 'vectors_hnsw_')
    """
    with store._engine.database.read() as transaction:
        return [(name, is_valid) for name, is_valid in transaction.rows(query)]


def test_a_group_that_has_become_large_gets_its_index_in_the_background(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EXACT", 5)
    store.entries.add([memory_of(f"m{n}") for n in range(9)], by="me")
    store.vectors.put(MODEL, [RecordVectors(f"m{n}", [axis(n)]) for n in range(5)])
    store.vectors.pack()
    store.vectors._rows.wait_for_indexes()
    assert vector_indexes(store) == []
    store.vectors.put(MODEL, [RecordVectors(f"m{n}", [axis(n)]) for n in range(5, 9)])
    store.vectors.pack()
    store.vectors._rows.wait_for_indexes()
    assert vector_indexes(store) == [("vectors_hnsw_1_2", True)]
    assert store.retrieval.nearest(MODEL, axis(7), EVERYONE, 1).hits[0].id == "m7"


def test_an_index_is_made_by_one_process_and_again_where_that_was_interrupted(
    store: SqlStore,
    postgres_database: str,
    postgres_server: PostgresServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vectors, "EXACT", 5)
    store.entries.add([memory_of(f"m{n}") for n in range(9)], by="me")
    store.vectors.put(MODEL, [RecordVectors(f"m{n}", [axis(n)]) for n in range(9)])
    with closing(cast(SqlStore, open_store(postgres_database))) as other:
        with other._engine.database.hold_lock("vector indexes") as is_mine:
            assert is_mine
            store.vectors._rows.build_indexes()  # leaves it to the other
            assert vector_indexes(store) == []
        other.vectors._rows.build_indexes()
    schema = postgres_database.partition("schema=")[2]
    index = f"'{schema}.vectors_hnsw_1_2'::regclass"
    postgres_server.run(f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = {index}")
    assert vector_indexes(store) == [("vectors_hnsw_1_2", False)]
    store.vectors.pack()
    store.vectors._rows.wait_for_indexes()
    assert vector_indexes(store) == [("vectors_hnsw_1_2", True)]


def test_writers_of_other_agents_and_files_do_not_wait_for_each_other(postgres_database: str, store: SqlStore) -> None:
    """Entries of two agents are changed at once; a block of several writes lets files and vectors be written."""
    store.entries.add([memory_of("one"), replace(memory_of("two"), agent="b")], by="me")
    with closing(postgres_store(postgres_database, wait=0.5, cache_rows=0)) as other:

        def change(record: Record) -> Record:
            other.entries.revise("two", lambda two: replace(two, text="other words"), by="me", action="update")
            return replace(record, text="new words")

        store.entries.revise("one", change, by="me", action="update")
        with store.entries.transaction():
            store.entries.add([memory_of("three")], by="me")
            other.files.apply([update("a.md", "text of a file")])
            other.vectors.put(MODEL, [RecordVectors("two", [axis(0)])])
            with pytest.raises(StoreBusyError):
                other.entries.revise("two", lambda two: replace(two, text="third"), by="me", action="update")
    assert store.retrieval.resolve("") == ("idamd1", "one", "three", "two")
    assert store.retrieval.term_statistics(["text", "word"]).frequency == {"text": 2, "word": 2}


def test_a_text_that_the_server_cannot_hold_is_a_usage_error(store: SqlStore) -> None:
    with pytest.raises(UsageError, match="cannot be looked up or stored"):
        store.entries.add([replace(memory_of("one"), text="half a pair \ud800")], by="me")
    assert store.retrieval.resolve("") == ()


# ── indexes ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_counting_accesses_never_touches_the_rows_of_vectors_and_records(
    store: SqlStore, postgres_database: str, postgres_server: PostgresServer
) -> None:
    schema = postgres_database.partition("schema=")[2]
    store.entries.add([memory_of(f"m{n}") for n in range(10)], by="me")
    store.vectors.put(MODEL, [RecordVectors(f"m{n}", [axis(n)]) for n in range(10)])
    rows = "SELECT ctid::text, xmin::text FROM"
    query = f"{rows} {schema}.vectors UNION ALL {rows} {schema}.records"
    before = sorted(postgres_server.run(query))
    for number in range(1_000):
        store.entries.log_access([Access(f"m{number % 10}", number, "search", "q", 0.5)], oldest=0, rows=10_000)
    store.settle()
    assert sorted(postgres_server.run(query)) == before
    assert store.retrieval.ranking_signals(["m3"])["m3"].access_count == 100


def test_common_words_are_left_out_of_the_choice_until_too_few_are_found(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The best records are the same; those that contain only common words appear if there are no others."""
    texts = [f"common words {'rare' if n % 40 == 0 else ''} {'seldom' if n % 50 == 1 else ''} n{n}" for n in range(200)]
    store.files.apply([update("a.md", *texts)])
    query = KeywordQuery(AnyOf((Term("common"), Term("rare"), Term("seldom"))))
    whole = store.retrieval.keyword(query, EVERYTHING, 30).hits
    monkeypatch.setattr(keyword, "_CANDIDATES", 10)
    narrowed = store.retrieval.keyword(query, EVERYTHING, 8).hits
    assert narrowed == whole[:8]
    assert len(store.retrieval.keyword(query, EVERYTHING, 30).hits) == 30


def test_counts_are_right_after_they_were_merged(store: SqlStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mindex_postgres.engine._MERGE_AFTER", 5)
    for number in range(4):
        store.files.apply([update(f"{number}.md", "apple pear", f"apple n{number}")])
    store.settle()
    store.files.apply([], ["doc0.md"])
    with store._engine.database.read() as transaction:
        names = transaction.column("SELECT name FROM counts WHERE name = 'appl'")
    assert len(names) < 5
    assert store.retrieval.term_statistics(["appl", "pear"]).frequency == {"appl": 6, "pear": 3}
    assert all(check.ok for check in store.maintenance.check())


@pytest.mark.slow
def test_a_narrow_scope_gets_all_its_neighbours_from_the_index(
    store: SqlStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "EXACT", 200)
    monkeypatch.setattr("mindex_postgres.nearest.EXACT", 20)
    count = 3_000
    random = np.random.default_rng(7)
    rows = random.normal(size=(count, 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    updates = [update(f"{n}.md", f"text {n}", tags=("rare",) if n % 50 == 0 else ()) for n in range(count)]
    store.files.apply(updates)
    store.vectors.put(MODEL, [RecordVectors(f"id{n}md1", rows[n : n + 1]) for n in range(count)])
    store.vectors._rows.build_indexes()
    assert len(vector_indexes(store)) == 1
    scope = Filters(tags=("rare",))
    true = sorted(range(0, count, 50), key=lambda n: -float(rows[n] @ rows[7]))[:40]
    hits = store.retrieval.nearest(MODEL, rows[7], scope, 40).hits
    assert len(hits) == 40
    assert len({hit.id for hit in hits} & {f"id{n}md1" for n in true}) >= 38
    assert hits[0].score == pytest.approx(float(rows[true[0]] @ rows[7]), abs=1e-5)


def test_a_damaged_index_is_found_and_mended(
    store: SqlStore, postgres_database: str, postgres_server: PostgresServer
) -> None:
    schema = postgres_database.partition("schema=")[2]
    store.files.apply([update("a.md", "apple", "pear")])
    store.vectors.put(MODEL, [RecordVectors("idamd1", [axis(0)])])
    postgres_server.run(
        f"DELETE FROM {schema}.words WHERE record = 'idamd1'", f"UPDATE {schema}.vectors SET record = 'stray'"
    )
    assert [check.name for check in store.maintenance.check() if not check.ok] == [
        "keyword index", "vectors", "words of a sample",
    ]  # fmt: skip
    store.maintenance.optimize()
    assert all(check.ok for check in store.maintenance.check())
    assert (found(store, "apple"), store.vectors.pending(MODEL)) == (["idamd1"], 2)


def test_a_dump_of_the_schema_is_the_whole_memory(
    store: SqlStore, postgres_database: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    schema = postgres_database.partition("schema=")[2]
    store.files.apply([update("a.md", "apple", "pear")])
    store.entries.add([memory_of("one")], by="me")
    store.vectors.put(MODEL, [RecordVectors("one", [axis(0)])])
    dump = str(tmp_path / "memory.dump")
    url = postgres_server.url()
    postgres_server.program("pg_dump", "--format=custom", f"--schema={schema}", f"--file={dump}", url)
    with database_of(postgres_server, "restored", "CREATE EXTENSION vector") as other:
        postgres_server.program("pg_restore", f"--dbname={other}", dump)
        with closing(open_store(f"{other}&schema={schema}")) as restored:
            assert (found(restored, "apple"), found(restored, "text", EVERYONE)) == (["idamd1"], ["one"])
            assert restored.entries.history("one") == store.entries.history("one")
            assert restored.vectors.pending(MODEL) == 2
            restored.entries.add([memory_of("two")], by="me")
            assert restored.entries.by_number("a", 2) == "two"
            assert all(check.ok for check in restored.maintenance.check())


# ── the command line ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_command_line_serves_a_team_database(
    postgres_database: str, handbook: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("MINDEX_DB", postgres_database)

    def mindex(*arguments: object) -> Any:
        ran = run_here("--json", *arguments)
        assert ran.code == 0, ran
        return ran.json

    mindex("index", handbook)
    added = mindex("add", "Ada prefers tea", "--type", "preference")
    mindex("update", added["id"], "--text", "Ada prefers coffee")
    assert [hit["text"] for hit in mindex("search", "what does Ada prefer?")["results"][:1]] == ["Ada prefers coffee"]
    mindex("undo", added["id"])
    assert [change["action"] for change in mindex("history", added["id"])["changes"]] == ["add", "update", "undo"]
    assert [hit["text"] for hit in mindex("search", "what does Ada prefer?")["results"][:1]] == ["Ada prefers tea"]
    assert mindex("status")["db"] == postgres_database
    assert run_here("doctor").code == 0


def test_answers_are_those_of_a_sqlite_file(postgres_database: str, handbook: Path, tmp_path: Path) -> None:
    from tests.handbook_questions import ANSWERED

    ranked = []
    for database in (str(tmp_path / "memory.db"), postgres_database):
        with Memory(database, options={"embedding.provider": "none"}) as memory:
            memory.index(handbook)
            answers = [memory.search(question, limit=10) for question, _ in ANSWERED]
            ranked.append([[(hit.record.path, hit.record.first_line) for hit in answer.hits] for answer in answers])
    pairs = [(set(ours), set(theirs)) for ours, theirs in zip(*ranked, strict=True)]
    same = [len(ours & theirs) / len(ours | theirs) if ours | theirs else 1.0 for ours, theirs in pairs]
    assert sum(same) / len(same) >= 0.98
    assert sum(ours[:1] == theirs[:1] for ours, theirs in zip(*ranked, strict=True)) >= 0.95 * len(same)


def test_a_deep_check_finds_an_entry_that_differs_from_its_history_and_a_change_without_its_entry(
    postgres_server: PostgresServer,
) -> None:
    with database_of(postgres_server, "deep_check") as url, closing(open_store(url)) as store:
        store.entries.add(
            [Record("a", "memory", "nine", agent="me"), Record("b", "memory", "ten", agent="me")], by="me"
        )
        assert all(check.ok for check in store.maintenance.check_deep())
        postgres_server.run("UPDATE mindex.records SET text = 'njne' WHERE id = 'a'", database="deep_check")
        postgres_server.run("UPDATE mindex.history SET record = 'c' WHERE record = 'b'", database="deep_check")
        failed = {check.name: check.message for check in store.maintenance.check_deep() if not check.ok}
    assert failed == {
        "history": "1 entries differ from their last change: a",
        "references": "lead nowhere: 1 of history.record",
        "words of all records": "2 analysed again, 1 differ",
    }


def test_the_migration_removes_tags_that_came_from_inline_code(
    postgres_database: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    schema = postgres_database.partition("schema=")[2]
    (tmp_path / "guide.md").write_text("Read `Path` first. #howto\n", encoding="utf-8")
    with Memory(postgres_database, options={"embedding.provider": "none"}) as memory:
        memory.index(tmp_path)
    postgres_server.run(
        f"UPDATE {schema}.records SET tags = '{{howto,Path}}', folded_tags = '{{howto,path}}'",
        f"UPDATE {schema}.documents SET tags = '{{howto,Path}}'",
        f"DROP TABLE {schema}.commits",
        f"UPDATE {schema}.meta SET value = '6' WHERE key = 'schema'",
    )
    with Memory(postgres_database, options={"embedding.provider": "none"}) as memory:
        assert [record.tags for record in memory.list().records] == [("howto",)]
        assert memory.list(memory.filters(tags=["path"])).total == 0
        assert memory.search("Path").total == 1


def test_a_schema_without_marks_of_writes_gets_them(postgres_server: PostgresServer, postgres_database: str) -> None:
    """As 0.1.0 made it, with roles: a login that only writes also leaves marks, and removes its own."""
    database = Database(parse_address(postgres_database), wait=5)
    assert migrations.migrate(database, migrations.MIGRATIONS[:5]) == 5  # what 0.1.0 had
    database.close()
    administration = Administration(postgres_database)
    administration.init((), run=True)
    with role_of(postgres_server, "marker"):
        administration.grant("marker", agents=["a"], read_only=False)
        url = postgres_database.replace("postgresql://postgres@", "postgresql://marker@")
        with closing(postgres_store(url, cache_rows=0)) as store:
            for id_ in ("one", "two"):
                store.entries.add([memory_of(id_)], by="me")
            with store._engine.database.read() as transaction:
                assert transaction.rows("SELECT login FROM commits") == [("marker",)]  # that of the last write
