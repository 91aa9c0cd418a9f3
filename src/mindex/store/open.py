"""Opens the store of a database, by its path or URL. The only place that constructs one."""

from collections.abc import Callable
from pathlib import Path

from mindex.errors import ConfigError
from mindex.store.base import Store
from mindex.store.sqlite.caches import CACHE_ROWS
from mindex.store.sqlite.store import SqliteStore


def _open_postgres(url: str, cache_rows: int, logs_access: bool) -> Store:
    try:
        from mindex.store.postgres.store import PostgresStore  # psycopg is there only where it was asked for
    except ModuleNotFoundError as error:
        if error.name not in ("psycopg", "psycopg_pool"):
            raise
        raise ConfigError("PostgreSQL needs two more packages", "pip install 'mindex[postgres]'") from None
    return PostgresStore(url, cache_rows=cache_rows, logs_access=logs_access)


# Opens the store of a URL. The second argument is `cache_rows`, the third `logs_access`.
Opener = Callable[[str, int, bool], Store]
_ENGINES: dict[str, Opener] = {"postgresql": _open_postgres, "postgres": _open_postgres}


def register_engine(scheme: str, opener: Opener) -> None:
    """Let `open_store` open URLs of a scheme (`postgresql`, without `://`) with another engine."""
    _ENGINES[scheme] = opener


def open_store(database: str | Path, *, cache_rows: int = CACHE_ROWS, logs_access: bool = True) -> Store:
    """Open a database file, or the database of a URL, and create it if missing. Raises ConfigError for its scheme.

    `cache_rows` bounds each kind of cache; with 0, and `logs_access=False`, searches leave no trace in the store.
    """
    scheme, separator, _ = str(database).partition("://")
    if not separator:
        return SqliteStore(Path(database), cache_rows=cache_rows, logs_access=logs_access)
    if scheme not in _ENGINES:
        raise ConfigError(f"no engine for {scheme}:// is installed", "name a file, for example memory.db")
    return _ENGINES[scheme](str(database), cache_rows, logs_access)
