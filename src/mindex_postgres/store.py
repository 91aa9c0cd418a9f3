"""The engine for teams: one schema of a PostgreSQL database, with pgvector."""

from dataclasses import replace
from functools import partial

from mindex.store.engine_parts import SqlStore
from mindex_postgres.address import parse_address
from mindex_postgres.connection import DEFAULT_WAIT, run_again
from mindex_postgres.engine import PostgresEngine
from mindex_postgres.maintenance import PostgresMaintenance
from mindex_postgres.transaction import Transaction


def postgres_store(
    url: str,
    *,
    wait: float = DEFAULT_WAIT,
    cache_rows: int,
    logs_access: bool = True,
    replica: str = "",
    creates: bool = True,
) -> SqlStore[Transaction]:
    """Open the store of a URL.

    `wait` bounds how long a write is tried, `cache_rows` each kind of cache (0 stores nothing). `replica` is the URL of
    a replica that reads go to. Its schema is that of `url`. Without `creates`, tables that are not there raise
    NotFoundError.
    """
    address = parse_address(url)
    reads = replace(parse_address(replica), schema=address.schema) if replica else None
    engine = PostgresEngine(address, wait=wait, replica=reads, creates=creates)
    again = partial(run_again, engine.database)
    return SqlStore(engine, PostgresMaintenance(engine), cache_rows=cache_rows, logs_access=logs_access, calls=again)
