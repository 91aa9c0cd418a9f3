"""Makes the schema of an empty database, or brings an older one to the newest, under an advisory lock."""

from collections.abc import Callable, Sequence
from functools import partial

from psycopg import errors, sql

from mindex.analyzer import ANALYZER_VERSION
from mindex.errors import NotFoundError, SchemaError, StoreError
from mindex.store.engine_parts import former_slots, put_program_numbers
from mindex_postgres.connection import Database
from mindex_postgres.errors import NOT_INSTALLED, no_pgvector
from mindex_postgres.row_security import apply_rights
from mindex_postgres.transaction import Transaction

Migration = Callable[[Transaction], None]

_MIN_SERVER, _MIN_VECTOR = 17, (0, 8)
_EXTENSION = """
SELECT e.extversion, n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
WHERE e.extname = 'vector'
"""
_CREATE_EXTENSION = "CREATE EXTENSION IF NOT EXISTS vector"
_STATE = """
SELECT pg_is_in_recovery() OR current_setting('default_transaction_read_only')::boolean,
    NOT coalesce(has_table_privilege(to_regclass(quote_ident(%s) || '.records'), 'INSERT'), true),
    to_regclass('pg_catalog.pg_dist_partition') IS NOT NULL
"""
# The owner of the schema, and whether this login may act as it.
_OWNER = """
SELECT nspowner::regrole::text, pg_has_role(nspowner, 'SET'), nspowner = current_user::regrole::oid,
    has_schema_privilege(oid, 'CREATE')
FROM pg_namespace WHERE nspname = %s
"""
_NUMBERED = """
SELECT id, kind, agent, number, source, fields -> 'foreign_ids' FROM records
WHERE number IS NOT NULL AND kind != 'chunk'
"""
_RAISE_NUMBER = "UPDATE numbers SET last = greatest(last, %s)"
_EXISTS = "SELECT to_regclass(quote_ident(%s) || '.meta') IS NOT NULL"


def _create(transaction: Transaction) -> None:
    _run(transaction, "schema_1.sql")
    transaction.run("INSERT INTO meta VALUES ('analyzer', %s)", str(ANALYZER_VERSION))


def _add_program_numbers(transaction: Transaction) -> None:
    """Give the entries of a schema that had one number for all programs those that stay valid."""
    _run(transaction, "schema_6.sql")
    slots = former_slots((*values, foreign) for *values, foreign in transaction.rows(_NUMBERED))
    put_program_numbers(transaction, slots)
    # A number that another program gave may be above all of ours.
    transaction.defer(_RAISE_NUMBER, max((number for *_, number in slots), default=0))


def _correct_tags(transaction: Transaction) -> None:
    """Remove the tags that came from inline code. If there were any, opening rebuilds the keyword index."""
    from mindex_postgres.code_tags import remove_code_tags  # only an upgrade needs it

    if remove_code_tags(transaction):
        transaction.run("UPDATE meta SET value = '1' WHERE key = 'analyzer'")


def _add_commit_marks(transaction: Transaction) -> None:
    _run(transaction, "schema_8.sql")


def _run(transaction: Transaction, script: str) -> None:
    from importlib import resources  # it brings in much, and a schema is made only once

    transaction.run(resources.files("mindex_postgres").joinpath(script).read_text(encoding="utf-8"))


# Migration n brings a schema from version n to n + 1. Never change one that was released: add another.
MIGRATIONS: tuple[Migration, ...] = (
    _create,
    partial(_run, script="schema_2.sql"),
    partial(_run, script="schema_3.sql"),
    partial(_run, script="schema_4.sql"),
    partial(_run, script="schema_5.sql"),
    _add_program_numbers,
    _correct_tags,
    _add_commit_marks,
)


def version_of(transaction: Transaction, schema: str) -> int:
    """The version of the schema; 0 while there is none."""
    if not transaction.value(_EXISTS, schema):
        return 0
    return int(transaction.value("SELECT value FROM meta WHERE key = 'schema'") or 0)


def migrate(database: Database, migrations: Sequence[Migration] = MIGRATIONS, *, creates: bool = True) -> int:
    """Bring the schema to the newest version. Returns it.

    Raises SchemaError for a newer one, StoreError if the server or pgvector is too old, or a permission is missing;
    without `creates` NotFoundError if there are no tables.
    """
    schema, target = database.address.schema, len(migrations)
    with database.read() as transaction:
        _require_server(database, transaction)
        is_replica, lacks_rights, database.has_citus = transaction.row(_STATE, schema) or (False, False, False)
        database.read_only, database.lacks_rights = is_replica or lacks_rights, lacks_rights and not is_replica
        version = version_of(transaction, schema)
        extension = transaction.row(_EXTENSION)
    if version == 0 and not creates:
        raise NotFoundError(
            f"{database.place} has no memory in its schema {schema}",
            "check the names in the URL; `mindex index DIR`, `add` and `import` create it",
        )
    if version > target:
        raise SchemaError(
            f"{database.place} was written by a newer mindex (schema {version}, this one speaks {target})",
            "upgrade with `pip install -U 'mindex[postgres]'`",
        )
    if version < target and database.read_only:
        state = (
            "is empty" if version == 0 else f"was made by an older mindex (schema {version}, this one needs {target})"
        )
        raise SchemaError(
            f"{database.place} {state}, and cannot be written from here",
            "have a login of its owner open it once on the primary server, with any command",
        )
    if extension is None or version < target:
        extension = database.write(lambda transaction: _bring_up(database, transaction, migrations), long=True)
    _require_vector(database, *extension)
    database.look_in([extension[1]])
    database.marks.is_on = _add_commit_marks in migrations
    return target


def _bring_up(database: Database, transaction: Transaction, migrations: Sequence[Migration]) -> tuple[str, str]:
    """Make the extension and the tables that are missing. Returns the version and the schema of the extension."""
    schema = database.address.schema
    transaction.lock("migrate")
    extension = _ensure_vector(database, transaction)
    _require_vector(database, *extension)
    name, place = (sql.Identifier(one).as_string() for one in (schema, extension[1]))
    version = version_of(transaction, schema)  # another process may have been faster
    if version == 0:
        _create_schema(database, transaction, name)
    _become_owner(database, transaction, version)
    transaction.run(f"SET LOCAL search_path TO {name}, {place}")
    for step in range(version, len(migrations)):
        migrations[step](transaction)
        transaction.run(
            "INSERT INTO meta VALUES ('schema', %s) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            str(step + 1),
        )
    apply_rights(transaction, schema)
    return extension


def _become_owner(database: Database, transaction: Transaction, version: int) -> None:
    """Let the tables belong to the role that owns the schema, whichever of its members makes them.

    Raises SchemaError for a login that is not a member.
    """
    owner, may_become, is_owner, may_create = transaction.row(_OWNER, database.address.schema) or (
        "",
        False,
        False,
        False,
    )
    if is_owner or (version == 0 and may_create and not may_become):
        return
    if not may_become:
        state = "is empty" if version == 0 else "was made by an older mindex"
        raise SchemaError(
            f"{database.place} {state}, and only its owner {owner} can bring it up to date",
            "have a login of that role open it once, with any command",
        )
    transaction.run(f"SET LOCAL ROLE {owner}")  # as the server quotes it


def _ensure_vector(database: Database, transaction: Transaction) -> tuple[str, str]:
    found = transaction.row(_EXTENSION)
    if found is None:
        try:
            with transaction.part():
                # Where another schema's migration does the same, the later one fails and is run again.
                transaction.run("SET LOCAL search_path TO public")
                transaction.run(_CREATE_EXTENSION)
        except NOT_INSTALLED:
            raise no_pgvector(database.place) from None
        except errors.InsufficientPrivilege:
            raise StoreError(
                f"this role may not create the extension pgvector in {database.place}",
                f"ask an administrator to run `{_CREATE_EXTENSION};` in this database",
            ) from None
        found = transaction.row(_EXTENSION)
    assert found is not None
    return found[0], found[1]


def _create_schema(database: Database, transaction: Transaction, name: str) -> None:
    if transaction.value("SELECT 1 FROM pg_namespace WHERE nspname = %s", database.address.schema):
        return  # made by an administrator, for this role
    try:
        transaction.run(f"CREATE SCHEMA {name}")
    except errors.InsufficientPrivilege:
        role = sql.Identifier(str(transaction_role(database))).as_string()
        raise StoreError(
            f"this role may not create the schema {database.address.schema} in {database.place}",
            f"ask an administrator to run `CREATE SCHEMA {name} AUTHORIZATION {role};` in this database",
        ) from None


def transaction_role(database: Database) -> str:
    with database.read() as transaction:
        return str(transaction.value("SELECT current_user"))


def _require_server(database: Database, transaction: Transaction) -> None:
    version = int(transaction.value("SELECT current_setting('server_version_num')"))
    if version < _MIN_SERVER * 10_000:
        raise StoreError(
            f"{database.place} runs PostgreSQL {version // 10_000}, and mindex needs {_MIN_SERVER}",
            "upgrade the server",
        )


def _require_vector(database: Database, version: str, schema: str) -> None:  # noqa: ARG001 - a row of `_EXTENSION`
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < _MIN_VECTOR:
        raise StoreError(
            f"{database.place} has pgvector {version}, and mindex needs 0.8",
            "install a newer pgvector on the server, then run `ALTER EXTENSION vector UPDATE;` in this database",
        )
