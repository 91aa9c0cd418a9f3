"""psycopg's errors as errors of the store: one sentence each, with the fix, and never a password."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import psycopg
from psycopg import errors

from mindex.datatypes.administration import Grant, GrantKind
from mindex.errors import ConfigError, LostConnectionError, StoreBusyError, StoreError, UnreachableError, UsageError

# Row-level security shows a login its own rows, an owner all of them.
OWN_GRANTS = """
SELECT login, scope, name, NOT writes FROM {schema}.grants WHERE login = current_user::text ORDER BY scope, name
"""
_SEVERAL = 3  # agents that a hint names


def read_only_error(login: str, grants: Sequence[Grant], place: str) -> StoreError:
    """The error of every write of a login that may write nothing."""
    if not grants:
        return StoreError(f"{place} is read-only for the login {login}", "ask its owner for a role that may write")
    one = grants[0]
    return StoreError(
        f"{place} is read-only for the login {login}, which was granted {_listed(grants)}",
        f"ask an owner for `mindex admin grant {login} --{one.scope} {one.name}`, without --read-only",
    )


def refusal(
    login: str, grants: Sequence[Grant], wanted: Iterable[tuple[GrantKind, str]], place: str
) -> StoreError | None:
    """The error for what row-level security has refused; None if the grants are not the reason.

    `wanted` are the agents and collections that the transaction has written, each as its scope and name.
    """
    known = {(one.scope, one.name): one for one in grants}
    refused = [one for one in sorted(wanted) if one not in known or known[one].read_only]
    if not refused:
        return None
    scope, name = refused[0]
    message = f"the login {login} may not write {scope} {name} in {place}"
    ask = f"ask an owner for `mindex admin grant {login} --{scope} {name}`"
    if (scope, name) in known:
        return StoreError(f"{message}: its grant is read-only", f"{ask}, without --read-only")
    agents = [one.name for one in grants if one.scope == "agent" and not one.read_only]
    hint = f"{_use(agents)}; or {ask}" if scope == "agent" and agents else ask
    return StoreError(f"{message}: it was granted {_listed(grants)}", hint)


def _use(agents: Sequence[str]) -> str:
    if len(agents) == 1:
        return f"use --agent {agents[0]} or MINDEX_AGENT={agents[0]}"
    return f"use --agent {' or '.join(agents[:_SEVERAL])}, or set MINDEX_AGENT to it"


def _listed(grants: Sequence[Grant]) -> str:
    return ", ".join(map(str, grants)) or "nothing"


_CHECK = "check that the server runs and that its host, port and database name are right"
_PASSWORD = "check it in the service file, ~/.pgpass or PGPASSWORD"
_OTHER_PROTOCOL = "the server there is not PostgreSQL"
# The messages of libpq if no server answers.
_SILENCE = re.compile(
    "refused|time|No such file|resolve host|translate host name|closed the connection|route|reachable"
)
# What it says before the reason.
_PREFIX = re.compile(r"connection (?:is bad|failed): |connection to server .*? failed: ")
_LONGEST_REASON = 200
_NONE_LEFT = "the server has no connection left"
# What the server or libpq says of a connection that failed, and what to do; the first that fits.
_CONNECTING = (
    ("password authentication failed", "the server refused the password", _PASSWORD),
    ("no password supplied", "the server wants a password", _PASSWORD),
    ("does not exist", "the server has no such database or role", "check the names in the URL, or create them"),
    ("definition of service", "the service file has no such service", "check its name in the URL and the service file"),
    ("pg_hba.conf", "the server does not admit this user from here", "ask for an entry in its pg_hba.conf"),
    ("invalid response to SSL negotiation", _OTHER_PROTOCOL, "check the host and the port"),
    ("expected authentication request", _OTHER_PROTOCOL, "check the host and the port"),
    ("too many", _NONE_LEFT, "try again, or put a pooler such as PgBouncer before it"),
    ("remaining connection slots", _NONE_LEFT, "try again, or put a pooler before it"),
    ("starting up", "the server is just starting", "try again in a moment"),
    ("shutting down", "the server is just shutting down", "try again when it runs"),
)  # fmt: skip
# Errors of a statement → what happened, and what to do.
_STATEMENTS: tuple[tuple[type[psycopg.Error] | tuple[type[psycopg.Error], ...], str, str], ...] = (
    (errors.QueryCanceled, "{place} ended a statement that took too long (statement_timeout)",
     "try again, or ask its administrator to raise statement_timeout for this role"),
    (errors.InsufficientPrivilege, "this login may not do that in {place} ({reason})",
     "ask an owner for `mindex admin grant LOGIN --agent A`, or `--collection C`"),
    (errors.ReadOnlySqlTransaction, "{place} is read-only", "connect to the primary server"),
    ((errors.DiskFull, errors.OutOfMemory), "{place} has no space left",
     "free some on the server; nothing that was stored is lost"),
    ((errors.UndefinedTable, errors.UndefinedColumn), "a table of mindex is missing in {place}: {reason}",
     "restore a backup, or choose another schema with ?schema=NAME"),
)  # fmt: skip
# What the server says of an extension that is not installed on it.
NOT_INSTALLED = (errors.FeatureNotSupported, errors.UndefinedFile)
_BUSY = (errors.LockNotAvailable, errors.DeadlockDetected, errors.SerializationFailure, errors.UniqueViolation)
# What the server says of a record whose id exists.
_TAKEN = re.compile(r"^Key \((?:owner, )?id\)=\((?:.*, )?(\w+)\) already exists")
_GOING = (errors.AdminShutdown, errors.CrashShutdown, errors.CannotConnectNow, errors.IdleInTransactionSessionTimeout)


def is_conflict(error: psycopg.Error) -> bool:
    """Whether another transaction was faster, so that the same one may succeed when it is run again."""
    return isinstance(error, errors.SerializationFailure | errors.DeadlockDetected | errors.UniqueViolation)


def is_lost(error: psycopg.Error) -> bool:
    """Whether the connection is gone, or could not be made: the server restarts, or the network failed."""
    if isinstance(error, _GOING):
        return True
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and error.sqlstate is None


def store_error(error: psycopg.Error, place: str) -> StoreError | UsageError:
    """The error to raise instead. `place` is the database's URL, which holds no password."""
    if isinstance(error, psycopg.DataError):
        return UsageError(f"a value cannot be looked up or stored ({_reason(error)})", "check the text or number")
    if isinstance(error, errors.UniqueViolation) and (taken := _TAKEN.search(error.diag.message_detail or "")):
        return StoreError(f"there is a record '{taken[1]}' already", "run the command again")
    if isinstance(error, _BUSY):
        return StoreBusyError(f"other processes kept changing the same records of {place}", "try again")
    for kind, message, hint in _STATEMENTS:
        if isinstance(error, kind):
            return StoreError(message.format(place=place, reason=_reason(error)), hint)
    if is_lost(error):
        return LostConnectionError(
            f"the connection to {place} was lost; nothing of the unfinished change was stored", "try again"
        )
    return StoreError(f"{place}: {_reason(error)}", "run `mindex doctor`")


def no_pgvector(place: str) -> StoreError:
    """The error of a server on which pgvector is not installed."""
    return StoreError(f"the server of {place} has no pgvector", "install pgvector 0.8 or newer on the server")


def connection_error(error: psycopg.Error, place: str) -> StoreError | ConfigError:
    """The error to raise when a connection could not be made: ConfigError where libpq does not take the URL."""
    said = str(error)
    for part, message, hint in _CONNECTING:
        if part in said:
            return UnreachableError(f"cannot use {place}: {message}", hint)
    reason = _PREFIX.sub("", said).partition("\n")[0][:_LONGEST_REASON]
    if isinstance(error, psycopg.ProgrammingError) or reason.startswith("invalid "):
        return ConfigError(
            f"cannot use {place}: {reason}",
            "write postgresql://USER@HOST/DATABASE with options of libpq; ?schema=NAME names the schema",
        )
    if _SILENCE.search(reason):
        return UnreachableError(f"no server answers at {place}", _CHECK)
    return UnreachableError(f"cannot use {place}: {reason}", _CHECK)


def has_no_connection_left(error: StoreError | ConfigError) -> bool:
    """Whether the server answered, but could not take another connection."""
    return _NONE_LEFT in error.message


def _reason(error: psycopg.Error) -> str:
    return error.diag.message_primary or " ".join(str(error).split())
