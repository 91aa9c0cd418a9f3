"""What `mindex admin` does to a shared database: set it up, grant and revoke, distribute. It opens no memory."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mindex.config import Settings
from mindex.datatypes.administration import Distribution, Grants, Scope, Setup
from mindex.errors import ConfigError, UsageError
from mindex_postgres import missing_packages

if TYPE_CHECKING:
    from mindex_postgres.administration import Administration as Database


class Administration:
    """The administrator's view of the database that the settings name. Raises ConfigError if it is not PostgreSQL."""

    def __init__(self, settings: Settings) -> None:
        self._database = _open(settings.database)

    def init(self, owners: Sequence[str] = (), *, run: bool = False) -> Setup:
        """The statements that make extension, roles and schema; with `run` they are run, and the tables are made."""
        return self._database.init(owners, run=run)

    def grant(
        self, login: str, *, agents: Sequence[str] = (), collections: Sequence[str] = (), read_only: bool = False
    ) -> Grants:
        """Let a login see these agents and collections, and write them unless `read_only`."""
        scopes = _scopes(agents, collections)
        if not scopes:
            raise UsageError("nothing is granted", "name an agent with --agent A, or a collection with --collection C")
        return self._database.grant(login, scopes, read_only=read_only)

    def revoke(self, login: str, *, agents: Sequence[str] = (), collections: Sequence[str] = ()) -> Grants:
        """Revoke grants; all of a login's if none is named."""
        return self._database.revoke(login, _scopes(agents, collections))

    def list(self) -> Grants:
        """All grants, and whether row-level security is on."""
        return self._database.list()

    def distribute(self) -> Distribution:
        """Spread the tables over the machines of a Citus cluster."""
        return self._database.distribute()


def _open(database: str) -> "Database":
    if database.partition("://")[0] not in ("postgresql", "postgres"):
        raise ConfigError(
            f"{database} is not shared: only a PostgreSQL database has roles", "name one with --db postgresql://…"
        )
    try:
        from mindex_postgres import administration  # psycopg is installed only on request
        from mindex_postgres.address import parse_address  # beside it
    except ModuleNotFoundError as error:
        raise missing_packages(error) from None
    return administration.Administration(parse_address(database))


def _scopes(agents: Sequence[str], collections: Sequence[str]) -> list[tuple[Scope, str]]:
    named: list[tuple[Scope, str]] = [("agent", name) for name in agents]
    named += [("collection", name) for name in collections]
    for scope, name in named:
        if not name or name == "*":
            raise UsageError(f"'{name}' is no {scope}", f"name each {scope} that is meant")
    return named
