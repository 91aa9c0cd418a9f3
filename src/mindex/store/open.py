"""Opens the store of a database, by its path or URL. The only place that constructs one."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from glob import escape
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING

from mindex.errors import ConfigError, NotFoundError, UnsupportedError, UsageError
from mindex.private_files import close_to_others
from mindex.store.base import Store
from mindex.store.sqlite.caches import CACHE_ROWS
from mindex.store.sqlite.store import SqliteStore
from mindex.user_folders import default_database

if TYPE_CHECKING:
    from mindex.model import Report
    from mindex.model.reports import RepairReport
    from mindex.store.postgres.administration import Administration
    from mindex.store.sqlite.backup import SqliteBackups


def _open_postgres(url: str, cache_rows: int, logs_access: bool, replica: str = "", creates: bool = True) -> Store:
    try:
        from mindex.store.postgres.store import PostgresStore  # psycopg is there only where it was asked for
    except ModuleNotFoundError as error:
        raise _missing_packages(error) from None
    return PostgresStore(url, cache_rows=cache_rows, logs_access=logs_access, replica=replica, creates=creates)


def open_administration(database: str) -> Administration:
    """Return what an administrator does to a shared database. Raises ConfigError for any other database."""
    if database.partition("://")[0] not in ("postgresql", "postgres"):
        raise ConfigError(
            f"{database} is not shared: only a PostgreSQL database has roles", "name one with --db postgresql://…"
        )
    try:
        from mindex.store.postgres import administration  # psycopg is there only where it was asked for
        from mindex.store.postgres.address import parse_address  # beside it
    except ModuleNotFoundError as error:
        raise _missing_packages(error) from None
    return administration.Administration(parse_address(database))


def repair_file(database: str, target: Path, report: Report | None = None) -> RepairReport:
    """Save what can be read of a damaged database file into a new one. Raises UsageError for the URL of a server."""
    if "://" in database:
        raise UsageError(f"{database} is no file", "a server keeps its own data sound: restore a backup of it")
    from mindex.store.sqlite.salvage import salvage  # only for a damaged file

    return salvage(Path(database).expanduser(), target, report)


def open_backups(database: str) -> SqliteBackups:
    """Return what makes and restores backups of a database file. Raises UnsupportedError for any other database."""
    scheme, separator, _ = database.partition("://")
    if separator:
        how = "pg_dump and pg_restore do that" if scheme in ("postgresql", "postgres") else "its service does that"
        raise UnsupportedError(f"mindex backs up SQLite files; for {scheme}:// {how}", "see docs/team.md")
    from mindex.store.sqlite.backup import SqliteBackups  # a search does without

    return SqliteBackups(Path(database))


def scratch_database(url: str) -> AbstractContextManager[str]:
    """The URL of an empty database beside the one that a URL names, deleted in the end. Only PostgreSQL makes one."""
    if url.partition("://")[0] not in ("postgresql", "postgres"):
        raise ConfigError(f"{url} is no PostgreSQL database", "name one: postgresql://USER@HOST/DATABASE")
    try:
        from mindex.store.postgres.address import parse_address  # psycopg is there only where it was asked for
        from mindex.store.postgres.administration import scratch_schema  # beside it
    except ModuleNotFoundError as error:
        raise _missing_packages(error) from None
    return scratch_schema(parse_address(url))


def _missing_packages(error: ModuleNotFoundError) -> Exception:
    if error.name not in ("psycopg", "psycopg_pool"):
        return error
    return ConfigError("PostgreSQL needs two more packages", "pip install 'mindex[postgres]'")


def _open_azure(url: str, cache_rows: int, logs_access: bool) -> Store:  # noqa: ARG001 - accesses of files are not logged
    try:
        from mindex.store.azure.store import AzureStore  # its client is there only where it was asked for
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("azure", "azure_core"):
            raise
        raise ConfigError("Azure AI Search needs two more packages", "pip install 'mindex[azure]'") from None
    return AzureStore(url, cache_rows=cache_rows)


# Opens the store of a URL. The second argument is `cache_rows`, the third `logs_access`.
Opener = Callable[[str, int, bool], Store]
_ENGINES: dict[str, Opener] = {"postgresql": _open_postgres, "postgres": _open_postgres, "azure": _open_azure}


def register_engine(scheme: str, opener: Opener) -> None:
    """Let `open_store` open URLs of a scheme (`postgresql`, without `://`) with another engine."""
    _ENGINES[scheme] = opener


def _close_to_others(database: Path) -> None:
    """Take the files of a memory away from other users, if one from before, or a copy, is open to all, and say so."""
    files = [database.with_name(f"{database.name}{suffix}") for suffix in ("", "-wal", "-shm")]
    closed = close_to_others(files)
    if closed:
        closed += close_to_others(database.parent.glob(f"{escape(database.name)}.v*.bak"))
    if database.parent == default_database().parent:  # another folder may hold what others are to read
        closed += close_to_others([database.parent])
    if closed:
        names = ", ".join(map(str, closed))
        getLogger(__name__).warning("every user of this machine could open %s; from now on only you can", names)


def open_store(
    database: str | Path,
    *,
    cache_rows: int = CACHE_ROWS,
    logs_access: bool = True,
    replica: str = "",
    creates: bool = True,
) -> Store:
    """Open a database file, or the database of a URL, and create it if missing. Raises ConfigError for its scheme.

    `cache_rows` bounds each kind of cache; with 0, and `logs_access=False`, searches leave no trace in the store.
    `replica` is the URL of a PostgreSQL server that reads go to. Without `creates`, a file or a PostgreSQL schema that
    is not there raises NotFoundError; an index of Azure is made by the first who opens it.
    """
    scheme, separator, _ = str(database).partition("://")
    if not separator and not replica:
        if not creates and not Path(database).exists():
            raise NotFoundError(f"there is no database {database}", "check the path")
        store = SqliteStore(Path(database), cache_rows=cache_rows, logs_access=logs_access)
        if not store.read_only:
            _close_to_others(Path(database))
        return store
    engine = _ENGINES.get(scheme)
    if engine is _open_postgres:
        return _open_postgres(str(database), cache_rows, logs_access, replica, creates)
    if replica:
        raise ConfigError(f"{database} has no replicas", "leave --db-read out: it is for a PostgreSQL database")
    if engine is None:
        raise ConfigError(
            f"no engine for {scheme}:// is installed",
            "name a file such as memory.db, postgresql://USER@HOST/DATABASE or azure://SERVICE/INDEX",
        )
    return engine(str(database), cache_rows, logs_access)
