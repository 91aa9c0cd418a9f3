"""Opens the store of a database, by its path or URL. The only place that constructs one."""

from __future__ import annotations

from contextlib import AbstractContextManager
from glob import escape
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING

from mindex.errors import ConfigError, NotFoundError, UnsupportedError, UsageError
from mindex.private_files import close_to_others
from mindex.store.base import Engine, OpenOptions, Store
from mindex.store.sql.caches import CACHE_ROWS
from mindex.store.sqlite.store import SqliteStore
from mindex.user_folders import default_database

if TYPE_CHECKING:
    from mindex.datatypes import Report
    from mindex.datatypes.reports import RepairReport
    from mindex.store.sqlite.backup import SqliteBackups


def repair_file(database: str, target: Path, report: Report | None = None) -> RepairReport:
    """Save what can be read of a damaged database file into a new one. Raises UsageError for the URL of a server."""
    if "://" in database:
        raise UsageError(f"{database} is not a file", "a server keeps its own data sound: restore a backup of it")
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
    engine = _engine(url.partition("://")[0])
    if engine is None or engine.scratch is None:
        raise ConfigError(f"{url} is not a PostgreSQL database", "use one: postgresql://USER@HOST/DATABASE")
    return engine.scratch(url)


_ENGINES: dict[str, Engine] = {}


def register_engine(scheme: str, engine: Engine) -> None:
    """Let `open_store` open URLs of a scheme (`postgresql`, without `://`) with another engine, in this process."""
    _ENGINES[scheme] = engine


def _engine(scheme: str) -> Engine | None:
    """Return the engine of a scheme, which may be an extension's. None if there is none."""
    if scheme in _ENGINES:
        return _ENGINES[scheme]
    from mindex.entry_points import RELEASED, is_registered, load  # most databases are files

    if scheme not in RELEASED["stores"] and not is_registered("stores", scheme):
        return None
    engine: Engine = load("stores", scheme)
    return engine


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
    engine = _engine(scheme)
    if replica and (engine is None or not engine.has_replicas):
        raise ConfigError(f"{database} has no replicas", "leave --db-read out: it is for a PostgreSQL database")
    if engine is None:
        raise ConfigError(
            f"no engine for {scheme}:// is installed",
            "name a file such as memory.db, postgresql://USER@HOST/DATABASE or azure://SERVICE/INDEX",
        )
    return engine.open(str(database), OpenOptions(cache_rows, logs_access, replica, creates))
