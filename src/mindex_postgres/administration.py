"""What an administrator does to a schema: its group roles, who is granted what, and its distribution."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TypeAlias, TypeVar

from psycopg import errors

from mindex.datatypes.administration import Distribution, Grant, GrantKind, Grants, Setup, SetupStep
from mindex.errors import ConfigError, NotFoundError, StoreError, UsageError
from mindex.ids import new_id
from mindex_postgres import citus
from mindex_postgres.address import Address, parse_address
from mindex_postgres.connection import DEFAULT_WAIT, Database
from mindex_postgres.errors import NOT_INSTALLED, no_pgvector
from mindex_postgres.migrations import migrate
from mindex_postgres.row_security import GroupRoles, apply_rights, group_roles, is_on, quoted, roles_here, turn_on
from mindex_postgres.transaction import Transaction
from mindex_postgres.vector_rows import IS_OWNER

T = TypeVar("T")
_Step: TypeAlias = tuple[SetupStep, str, tuple[str, ...]]

_CREATE_EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector SCHEMA public"
_CREATE_ROLE = "DO $$ BEGIN CREATE ROLE {role} NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$"
_TAKE_OVER = """\
DO $$ DECLARE one regclass; routine regprocedure; BEGIN
    FOR one IN SELECT oid FROM pg_class WHERE relnamespace = '{schema}'::regnamespace AND relkind IN ('r', 'p') LOOP
        EXECUTE format('ALTER TABLE %s OWNER TO {owner}', one);
    END LOOP;
    FOR routine IN SELECT oid FROM pg_proc WHERE pronamespace = '{schema}'::regnamespace LOOP
        EXECUTE format('ALTER FUNCTION %s OWNER TO {owner}', routine);
    END LOOP;
END $$"""
_HAS_ROLE = "SELECT 1 FROM pg_roles WHERE rolname = %s"
_IS_MEMBER = "SELECT pg_has_role(%s, %s, 'MEMBER')"
_OWNED_BY = """
SELECT NOT EXISTS (
    SELECT 1 FROM pg_class WHERE relnamespace = n.oid AND relkind IN ('r', 'p') AND relowner != n.nspowner
    UNION ALL SELECT 1 FROM pg_proc WHERE pronamespace = n.oid AND proowner != n.nspowner
) FROM pg_namespace n WHERE nspname = %s AND nspowner = to_regrole(%s)
"""
_MAY_USE = "SELECT has_schema_privilege(%s, %s, 'USAGE') AND has_schema_privilege(%s, %s, 'USAGE')"
_PUT = """
INSERT INTO grants (login, scope, name, writes) VALUES (%s, %s, %s, %s)
ON CONFLICT (login, scope, name) DO UPDATE SET writes = excluded.writes
"""
_HAS_COLLECTION = "SELECT 1 FROM collections WHERE name = %s"
_LOGINS = "SELECT DISTINCT login FROM grants JOIN pg_roles ON rolname = login"
_LIST = "SELECT login, scope, name, NOT writes FROM grants WHERE %s IN ('', login) ORDER BY login, scope, name"


@contextmanager
def scratch_schema(address: Address) -> Iterator[str]:
    """The URL of an empty schema in the same database, dropped in the end with all that it holds."""
    scratch = replace(address, schema=f"mindex_scratch_{new_id()}")
    try:
        yield scratch.shown
    finally:
        database = Database(scratch, wait=DEFAULT_WAIT)
        try:
            database.execute_alone(f"DROP SCHEMA IF EXISTS {quoted(scratch.schema)} CASCADE")
        finally:
            database.close()


class Administration:
    """One schema of a PostgreSQL database, for its administrator and its owners."""

    def __init__(self, url: str) -> None:
        self._address = parse_address(url)
        self._schema = self._address.schema

    # ── init ──────────────────────────────────────────────────────────────────────────────────────────────────

    def init(self, owners: Sequence[str] = (), *, run: bool = False) -> Setup:
        """The statements that make the extension, the roles and the schema; with `run` they are run, then the tables.

        Without `run` nothing is connected to. Raises StoreError when this login may not do it, NotFoundError for an
        owner who does not exist.
        """
        if not run:
            steps = [step for step, _, _ in self._steps(self._named_roles(), owners)]
            return Setup(self._address.shown, tuple(steps), ran=False)
        database = Database(self._address, wait=DEFAULT_WAIT)
        try:
            with database.read() as transaction:
                roles = roles_here(transaction, self._schema)
                for login in owners:
                    self._require_login(transaction, login)
            done = [database.write(partial(_run, one), long=True) for one in self._steps(roles, owners)]
            migrate(database)
            database.write(self._apply_rights, long=True)
        except StoreError as error:
            if isinstance(error.__cause__, errors.InsufficientPrivilege):
                raise StoreError(
                    f"this login may not set up {database.place}", "run `mindex admin init --run` as a superuser, "
                    "or have an administrator run what `mindex admin init` prints",
                ) from error  # fmt: skip
            if isinstance(error.__cause__, NOT_INSTALLED):
                raise no_pgvector(database.place) from error
            raise
        finally:
            database.close()
        tables = SetupStep("tables, and the rights of the roles on them", "", "done")
        return Setup(database.place, (*done, tables), ran=True)

    def _apply_rights(self, transaction: Transaction) -> None:
        roles = roles_here(transaction, self._schema)
        transaction.run(f"SET LOCAL ROLE {quoted(roles.owner)}")
        apply_rights(transaction, self._schema)
        for login in transaction.column(_LOGINS):  # a memory that was restored has grants, and new roles
            self._set_roles(transaction, login)

    def _named_roles(self) -> GroupRoles:
        """The roles of the database that the URL names. Raises ConfigError where a service or a default does."""
        if not self._address.database:
            raise ConfigError(
                f"{self._address.shown} names no database, and the roles are named after it",
                "write postgresql://USER@HOST/DATABASE, or ask the server with --run",
            )
        return group_roles(self._address.database, self._schema)

    def _steps(self, roles: GroupRoles, owners: Sequence[str]) -> Iterator[_Step]:
        """Each statement, with the query that returns true if it is not needed, and its parameters."""
        schema, owner, writer, reader = map(quoted, (self._schema, roles.owner, roles.writer, roles.reader))
        yield (
            SetupStep("extension", _CREATE_EXTENSION),
            "SELECT 1 FROM pg_extension WHERE extname = 'vector'", (),
        )  # fmt: skip
        for role in (roles.owner, roles.writer, roles.reader):
            yield SetupStep(f"role {role}", _CREATE_ROLE.format(role=quoted(role))), _HAS_ROLE, (role,)
        yield (
            SetupStep("owners pass rights on", f"GRANT {writer}, {reader} TO {owner} WITH ADMIN TRUE, INHERIT FALSE"),
            f"{_IS_MEMBER} AND pg_has_role(%s, %s, 'MEMBER WITH ADMIN OPTION')",
            (roles.owner, roles.reader, roles.owner, roles.writer),
        )  # fmt: skip
        yield (
            SetupStep(f"schema {self._schema}", f"CREATE SCHEMA IF NOT EXISTS {schema} AUTHORIZATION {owner}"),
            "SELECT 1 FROM pg_namespace WHERE nspname = %s", (self._schema,),
        )  # fmt: skip
        take_over = f"ALTER SCHEMA {schema} OWNER TO {owner};\n" + _TAKE_OVER.format(
            schema=schema.replace("'", "''"), owner=owner.replace("'", "''")
        )
        yield SetupStep("ownership", take_over), _OWNED_BY, (self._schema, owner)
        yield (
            SetupStep("use of the schema", f"GRANT USAGE ON SCHEMA {schema} TO {writer}, {reader}"),
            _MAY_USE, (roles.writer, self._schema, roles.reader, self._schema),
        )  # fmt: skip
        for login in owners:
            yield (
                SetupStep(f"{login} is an owner", f"GRANT {owner} TO {quoted(login)}"),
                _IS_MEMBER,
                (login, roles.owner),
            )

    # ── grants ────────────────────────────────────────────────────────────────────────────────────────────────

    def grant(
        self, login: str, *, agents: Sequence[str] = (), collections: Sequence[str] = (), read_only: bool = False
    ) -> Grants:
        """Let a login see, and unless `read_only` write, agents and collections; the first grant of a schema turns
        row-level security on. Raises NotFoundError for a login that does not exist.
        """
        scopes = _scopes(agents, collections)
        if not scopes:
            raise UsageError(
                "there is nothing to grant", "name an agent with --agent A, or a collection with --collection C"
            )

        def grant(transaction: Transaction) -> Grants:
            notes = []
            self._require_login(transaction, login)
            if not is_on(transaction, self._schema):
                turn_on(transaction, self._schema)
                notes.append("row-level security is on from now: a login sees what it was granted, owners see all")
            for scope, name in scopes:
                transaction.run(_PUT, login, scope, name, not read_only)
                if scope == "collection" and not transaction.value(_HAS_COLLECTION, name):
                    notes.append(f"there is no collection {name} yet: the grant holds once one of that name is indexed")
            self._set_roles(transaction, login)
            if transaction.value(_IS_MEMBER, login, roles_here(transaction, self._schema).owner):
                notes.append(f"{login} is an owner, and sees everything without a grant")
            return self._read(transaction, login, notes)

        return self._change(grant)

    def revoke(self, login: str, *, agents: Sequence[str] = (), collections: Sequence[str] = ()) -> Grants:
        """Take grants of a login back; all of them if none is named. Raises NotFoundError when it has no such grant."""
        scopes = _scopes(agents, collections)

        def revoke(transaction: Transaction) -> Grants:
            gone = 0
            for scope, name in scopes:
                query = "DELETE FROM grants WHERE login = %s AND scope = %s AND name = %s"
                gone += transaction.run(query, login, scope, name)
            if not scopes:
                gone = transaction.run("DELETE FROM grants WHERE login = %s", login)
            if not gone:
                raise NotFoundError(f"{login} has no such grant in {self._address.shown}", "see `mindex admin list`")
            if transaction.value(_HAS_ROLE, login):
                self._set_roles(transaction, login)
            return self._read(transaction, login, [] if scopes else [f"{login} sees nothing any more"])

        return self._change(revoke)

    def list(self) -> Grants:
        """All grants, and whether row-level security is on."""
        return self._change(lambda transaction: self._read(transaction, "", []))

    def _require_login(self, transaction: Transaction, login: str) -> None:
        """Raise NotFoundError for a login that does not exist."""
        if not transaction.value(_HAS_ROLE, login):
            raise NotFoundError(
                f"{self._address.shown} has no login {login}",
                f"an administrator creates it with `CREATE ROLE {quoted(login)} LOGIN PASSWORD '…';`",
            )

    def _set_roles(self, transaction: Transaction, login: str) -> None:
        """Make the login a writer if it may write anything, a reader if it may see anything, else neither."""
        roles = roles_here(transaction, self._schema)
        found = transaction.rows(_LIST, login)
        writes = any(not read_only for *_, read_only in found)
        member = quoted(login)
        for role, wanted in ((roles.writer, writes), (roles.reader, bool(found) and not writes)):
            command = f"GRANT {quoted(role)} TO {member}" if wanted else f"REVOKE {quoted(role)} FROM {member}"
            if wanted != transaction.value(_IS_MEMBER, login, role) or not wanted:
                transaction.run(command)

    def _read(self, transaction: Transaction, login: str, notes: Sequence[str]) -> Grants:
        grants = tuple(Grant(*row) for row in transaction.rows(_LIST, login))
        return Grants(grants, is_on(transaction, self._schema), tuple(notes), login)

    def _change(self, work: Callable[[Transaction], T]) -> T:
        """Run a function in one transaction, as the owner of the tables. Raises StoreError for any other login."""

        def as_owner(transaction: Transaction) -> T:
            owner = roles_here(transaction, self._schema).owner
            if not transaction.value(IS_OWNER):
                raise StoreError(
                    f"this login does not own {self._address.shown}",
                    f"use a login of the role {owner}; `mindex admin init --owner LOGIN --run` makes one",
                )
            # What is made belongs to the role, and not to the login that happens to make it.
            transaction.run(f"SET LOCAL ROLE {quoted(owner)}")
            return work(transaction)

        database = Database(self._address, wait=DEFAULT_WAIT)
        try:
            with database.read() as transaction:
                is_set_up = transaction.value(_HAS_ROLE, roles_here(transaction, self._schema).writer)
            if not is_set_up:  # and perhaps it does not exist: no tables are made by a mistyped name
                raise StoreError(f"{database.place} has no mindex roles yet", "run `mindex admin init --run` first")
            migrate(database)
            return database.write(as_owner, long=True)
        finally:
            database.close()

    # ── distribution ──────────────────────────────────────────────────────────────────────────────────────────

    def distribute(self) -> Distribution:
        """Spread the tables over the machines of a Citus cluster. Raises StoreError where Citus is not installed."""
        database = Database(self._address, wait=DEFAULT_WAIT)
        try:
            migrate(database)
            return citus.distribute(database)
        finally:
            database.close()


def _scopes(agents: Sequence[str], collections: Sequence[str]) -> list[tuple[GrantKind, str]]:
    named: list[tuple[GrantKind, str]] = [("agent", name) for name in agents]
    named += [("collection", name) for name in collections]
    for scope, name in named:
        if not name or name == "*":
            raise UsageError(f"'{name}' is not a valid {scope}", f"pass the name of one {scope} at a time")
    return named


def _run(described: _Step, transaction: Transaction) -> SetupStep:
    step, is_there, values = described
    if transaction.value(is_there, *values):
        return SetupStep(step.purpose, step.statement, "there already")
    transaction.run(step.statement)
    return SetupStep(step.purpose, step.statement, "done")
