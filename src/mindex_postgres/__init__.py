"""The engine for teams: a schema in a PostgreSQL database with pgvector. Only this package imports psycopg."""

from contextlib import AbstractContextManager

from mindex.errors import ConfigError
from mindex.store.base import Engine, OpenOptions, Store

MINDEX_INTERFACE = 1


def open_database(url: str, options: OpenOptions) -> Store:
    """Open the database of a URL. Raises ConfigError without psycopg."""
    try:
        from mindex_postgres.store import postgres_store  # psycopg is installed only on request
    except ModuleNotFoundError as error:
        raise missing_packages(error) from None
    return postgres_store(
        url,
        cache_rows=options.cache_rows,
        logs_access=options.logs_access,
        replica=options.replica,
        creates=options.creates,
    )


def scratch_database(url: str) -> AbstractContextManager[str]:
    """The URL of an empty schema in the database of a URL, dropped in the end."""
    try:
        from mindex_postgres.address import parse_address  # psycopg is installed only on request
        from mindex_postgres.administration import scratch_schema  # beside it
    except ModuleNotFoundError as error:
        raise missing_packages(error) from None
    return scratch_schema(parse_address(url))


def missing_packages(error: ModuleNotFoundError) -> Exception:
    if error.name not in ("psycopg", "psycopg_pool"):
        return error
    return ConfigError("PostgreSQL needs two more packages", "pip install 'mindex[postgres]'")


ENGINE = Engine(open_database, has_replicas=True, scratch=scratch_database)
