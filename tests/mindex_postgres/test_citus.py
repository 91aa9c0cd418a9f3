"""Distribution over the machines of a Citus cluster.

Without one, only that it is refused and that the keys allow it. `MINDEX_TEST_CITUS=postgresql://…` names a database
with Citus in which a schema may be made and dropped.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from mindex.datatypes import Filters, RecordVectors
from mindex.errors import StoreError
from mindex.memory import Memory
from mindex_postgres.administration import Administration
from mindex_postgres.citus import DISTRIBUTED
from tests.contract.records import MODEL, axis, nearest
from tests.postgres_server import PostgresServer

pytestmark = pytest.mark.server

CLUSTER = os.environ.get("MINDEX_TEST_CITUS", "")  # read now: tests do without variables of mindex
OPTIONS = {"embedding.provider": "none"}
KEY = """
SELECT a.attname FROM pg_index i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0]
WHERE i.indrelid = %s::regclass AND i.indisprimary
"""


def administration(url: str) -> Administration:
    return Administration(url)


def test_a_server_without_citus_says_what_is_missing(postgres_database: str) -> None:
    with pytest.raises(StoreError, match=r"has no Citus; install Citus on the server, run `CREATE EXTENSION citus;`"):
        administration(postgres_database).distribute()


def test_every_distributed_table_has_a_key_that_begins_with_its_column(
    postgres_database: str, postgres_server: PostgresServer
) -> None:
    Memory(postgres_database, options=OPTIONS).close()
    schema = postgres_database.partition("schema=")[2]
    with psycopg.connect(postgres_server.url()) as connection:
        keys = {table: connection.execute(KEY, [f"{schema}.{table}"]).fetchone() for table in DISTRIBUTED}
    assert keys == {table: (column,) for table, column in DISTRIBUTED.items()}


@pytest.fixture
def cluster() -> Iterator[str]:
    """The URL of a schema in a database with Citus."""
    if not CLUSTER:
        pytest.skip("MINDEX_TEST_CITUS names no database with Citus")
    yield f"{CLUSTER}{'&' if '?' in CLUSTER else '?'}schema=mindex_test"
    with psycopg.connect(CLUSTER, autocommit=True) as connection:
        connection.execute("DROP SCHEMA IF EXISTS mindex_test CASCADE")


def test_a_distributed_memory_does_what_any_other_does(cluster: str, handbook: Path) -> None:
    with Memory(cluster, agent="ann", options=OPTIONS) as memory:
        before = memory.add("the wombat digs a burrow").id
    assert administration(cluster).distribute().machines >= 1
    with pytest.raises(StoreError, match="distributed already"):
        administration(cluster).distribute()
    everyone = Filters(agent="*")
    with Memory(cluster, agent="ann", options=OPTIONS) as memory:
        memory.index(handbook)
        rocket = memory.add("the rocket costs 12 coins", tags=["space"]).id
        memory.add("the rocket is green", agent="bob")
        memory.update(rocket, text="the rocket costs 15 coins")
        memory.conversations.add("where is the rocket?", "on the ramp", session_id="s1")
        memory.conversations.add("and the crew?", "inside", session_id="s1")
        memory.store.vectors.put(MODEL, [RecordVectors(before, [axis(1)]), RecordVectors(rocket, [axis(2)])])
        memory.store.entries.link([(before, rocket, "conflict", 1.0)])

        assert [hit.record.id for hit in memory.search("wombat", mode="keyword").hits] == [before]
        assert memory.search("how are releases deployed?").hits[0].record.path.endswith("releases.md")
        assert memory.count("rocket", agent="*") == 3 and memory.search("rokcet").corrected_query == "rocket"
        assert nearest(memory.store, axis(2), everyone)[0] == rocket
        assert [change.action for change in memory.history(rocket)] == ["add", "update"]
        assert memory.entries.agents() == ("ann", "bob")
        assert memory.conversations.list().sessions[0].turns == 2
        assert memory.store.entries.linked_pairs("conflict", "*") == (tuple(sorted((before, rocket))),)
        assert memory.maintenance.statistics("*").total == 3
        assert memory.transfer.export(io.BytesIO(), vectors=True).records == 5
        assert memory.status().records["memory"] == 3
        assert memory.undo(rocket)[0].after.text == "the rocket costs 12 coins"
        assert memory.purge(before).records == 1 and memory.get(before, rocket).missing == (before,)
        memory.maintenance.optimize()
        assert all(check.ok for check in memory.doctor())
