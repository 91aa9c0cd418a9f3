"""Rights and row-level security: what the group roles of a schema may do, and which rows a login sees and writes.

Three group roles are named after the database and the schema, because roles belong to the whole server:
DATABASE_SCHEMA_owner owns the tables, …_writer and …_reader have the least rights that they need. With row-level
security a login sees only the agents and collections that the table `grants` names for it. A table that is missing
in `RIGHTS` is the owner's alone.
"""

from collections.abc import Iterator, Mapping
from hashlib import sha256

from psycopg import sql

from mindex.values import dataclass
from mindex_postgres.transaction import Transaction

_LONGEST_NAME = 63  # bytes of a name in PostgreSQL
_TABLES = "SELECT relname FROM pg_class WHERE relnamespace = to_regnamespace(%s) AND relkind IN ('r', 'p') ORDER BY 1"
_IS_ON = "SELECT coalesce((SELECT relrowsecurity FROM pg_class WHERE oid = to_regclass(%s)), false)"

# ── who sees and writes which rows ────────────────────────────────────────────────────────────────────────────

_GRANTED = "ARRAY(SELECT name FROM {{schema}}.grants WHERE login = current_user::text{which})"


def _granted(scope: str = "", *, writes: bool = False) -> str:
    """The names that this login was granted. It depends on no row, so a statement reads it once."""
    which = (f" AND scope = '{scope}'" if scope else "") + (" AND writes" if writes else "")
    return _GRANTED.format(which=which)


def _of_record(*, writes: bool = False) -> str:
    """A chunk belongs to its collection, an entry to its agent. The first condition is one that an index knows."""
    return (
        f"owner = ANY ({_granted(writes=writes)}) AND CASE kind WHEN 'chunk' "
        f"THEN owner = ANY ({_granted('collection', writes=writes)}) "
        f"ELSE owner = ANY ({_granted('agent', writes=writes)}) END"
    )


def _of_words(table: str, *, writes: bool = False) -> str:
    """By the owner alone, unless an agent and a collection have the same name: then by the record."""
    return (
        f"owner = ANY ({_granted(writes=writes)}) AND (owner <> ALL ((SELECT {{schema}}.ambiguous_owners())::text[]) "
        f"OR EXISTS (SELECT 1 FROM {{schema}}.records r WHERE r.owner = {table}.owner AND r.id = {table}.record))"
    )


def _of_vector(*, writes: bool = False) -> str:
    return (
        f"owner = ANY ({_granted(writes=writes)}) AND CASE kind_group WHEN 0 "
        f"THEN owner = ANY ({_granted('collection', writes=writes)}) "
        f"ELSE owner = ANY ({_granted('agent', writes=writes)}) END"
    )


def _of_collection(column: str, *, writes: bool = False) -> str:
    return f"{column} = ANY ({_granted('collection', writes=writes)})"


def _with_record(column: str, *, writes: bool = False) -> str:
    """Whose record this login sees: the policy of `records` also holds in the subquery."""
    more = f" AND {_of_record(writes=True)}" if writes else ""
    return f"EXISTS (SELECT 1 FROM {{schema}}.records r WHERE r.id = {column}{more})"


_MINE = "login = current_user::text"
_OF_AGENT = f"agent = ANY ({_granted('agent')})"


@dataclass(frozen=True, slots=True)
class Rights:
    """One table: what readers and writers may do at all, and with which rows while row-level security is on.

    A policy that is empty admits no row.
    """

    writer: str = ""  # beside SELECT, which readers also have
    sees: str = ""
    inserts: str = ""
    updates: str = ""
    deletes: str = ""


def _rights(sees: str, writes: str, writer: str = "INSERT, UPDATE, DELETE") -> Rights:
    return Rights(writer, sees, writes, writes, writes)


RIGHTS: Mapping[str, Rights] = {
    # The first writer of vectors claims the space; a login that changes it later has to see all records.
    "meta": Rights("INSERT, UPDATE, DELETE", "true", "key = 'space' OR starts_with(key, 'canary ')"),
    "spaces": Rights("INSERT, UPDATE, DELETE", "true", "true"),
    "numbers": Rights("UPDATE", "true", updates="true"),
    # A reader's client is shown numbers as well, so every login that sees an agent may give them.
    "program_numbers": Rights("INSERT", _OF_AGENT, _OF_AGENT),
    "grants": Rights(sees=_MINE),
    "collections": _rights(_of_collection("name"), _of_collection("name", writes=True)),
    "documents": _rights(_of_collection("collection"), _of_collection("collection", writes=True)),
    "records": _rights(_of_record(), _of_record(writes=True)),
    "words": _rights(_of_words("words"), _of_words("words", writes=True)),
    "terms": _rights(_of_words("terms"), _of_words("terms", writes=True)),
    "vectors": _rights(_of_vector(), _of_vector(writes=True)),
    "history": _rights(_with_record("history.record"), _with_record("history.record", writes=True), "INSERT, DELETE"),
    "links": _rights(
        f"{_with_record('links.source')} AND {_with_record('links.target')}",
        f"{_with_record('links.source', writes=True)} AND {_with_record('links.target')}"
        f" OR {_with_record('links.source')} AND {_with_record('links.target', writes=True)}",
    ),
    # A record is counted as read by all who see it. What was asked is seen by the login that has asked.
    "accesses": _rights(_with_record("accesses.record"), _with_record("accesses.record")),
    "access_log": Rights(
        "INSERT, UPDATE, DELETE", _MINE, f"{_MINE} AND {_with_record('access_log.record')}", _MINE, _MINE
    ),
    # Purging a record empties its lines; only the owner syncs.
    "synced_changes": Rights(
        "UPDATE", _with_record("synced_changes.record"), updates=_with_record("synced_changes.record", writes=True)
    ),
    "extractions": _rights(_with_record("extractions.record"), _with_record("extractions.record", writes=True)),
    "cache": _rights(_MINE, _MINE),
    "commits": _rights(_MINE, _MINE),
    # All words of all records: a login counts those of the records that it sees (`visible_counts`).
    "counts": Rights("INSERT, UPDATE, DELETE", inserts="true"),
}  # fmt: skip
_COMMANDS = (("sees", "SELECT", "USING"), ("inserts", "INSERT", "WITH CHECK"), ("updates", "UPDATE", "USING"),
             ("deletes", "DELETE", "USING"))  # fmt: skip
# Runs with the rights of the owner: whether a name is ambiguous depends on rows that its caller does not see.
_AMBIGUOUS_OWNERS = """
CREATE OR REPLACE FUNCTION {schema}.ambiguous_owners() RETURNS text[]
LANGUAGE sql STABLE SECURITY DEFINER SET search_path TO pg_catalog, pg_temp AS $$
    SELECT coalesce(array_agg(DISTINCT g.name), '{{}}') FROM {schema}.grants g
    WHERE CASE g.scope
        WHEN 'agent' THEN EXISTS (SELECT 1 FROM {schema}.records r WHERE r.owner = g.name AND r.kind = 'chunk')
        ELSE EXISTS (SELECT 1 FROM {schema}.records r WHERE r.owner = g.name AND r.kind != 'chunk')
    END
$$
"""
_MERGE_COUNTS = """
CREATE OR REPLACE FUNCTION {schema}.merge_counts() RETURNS void
LANGUAGE sql SECURITY DEFINER SET search_path TO pg_catalog, pg_temp AS $$
    WITH gone AS (
        DELETE FROM {schema}.counts
        WHERE name IN (SELECT name FROM {schema}.counts GROUP BY name HAVING count(*) > 1) RETURNING name, change
    )
    INSERT INTO {schema}.counts SELECT name, sum(change) FROM gone GROUP BY name HAVING sum(change) != 0
$$
"""


# ── group roles ───────────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class GroupRoles:
    """The names of the group roles of a schema."""

    owner: str
    writer: str
    reader: str


def group_roles(database: str, schema: str) -> GroupRoles:
    """The group roles of a schema, called after it and its database: roles belong to all databases of a server.

    A hash tells those apart that would be too long, or could be of another database: `a_b` with `c`, `a` with `b_c`.
    """
    return GroupRoles(*(_group_role(database, schema, purpose) for purpose in ("owner", "writer", "reader")))


def _group_role(database: str, schema: str, purpose: str) -> str:
    start, end = f"{database}_{schema}", f"_{purpose}"
    if "_" in database or len((start + end).encode()) > _LONGEST_NAME:
        end = f"_{sha256(f'{database}/{schema}'.encode()).hexdigest()[:8]}{end}"
        start = start.encode()[: _LONGEST_NAME - len(end)].decode(errors="ignore")
    return start + end


def roles_here(transaction: Transaction, schema: str) -> GroupRoles:
    """The group roles of a schema in the database of a transaction."""
    return group_roles(str(transaction.value("SELECT current_database()")), schema)


def quoted(name: str) -> str:
    return sql.Identifier(name).as_string()


def is_on(transaction: Transaction, schema: str) -> bool:
    """Whether row-level security is on in a schema."""
    return bool(transaction.value(_IS_ON, f"{quoted(schema)}.records"))


def apply_rights(transaction: Transaction, schema: str) -> None:
    """Give the group roles of a schema, if there are any, their rights on its tables; renew policies that are on.

    Run by the owner after every migration: a new table gets what `RIGHTS` says, and nothing else.
    """
    roles = roles_here(transaction, schema)
    groups = [roles.writer, roles.reader]
    if transaction.value("SELECT count(*) FROM pg_roles WHERE rolname = ANY(%s)", groups) == len(groups):
        for statement in _rights_statements(schema, roles):
            transaction.run(statement)
    if is_on(transaction, schema):
        turn_on(transaction, schema)


def _rights_statements(schema: str, roles: GroupRoles) -> Iterator[str]:
    place, writer, reader = map(quoted, (schema, roles.writer, roles.reader))
    yield f"REVOKE ALL ON ALL TABLES IN SCHEMA {place} FROM {writer}, {reader}"
    for table, rights in RIGHTS.items():
        yield f"GRANT SELECT ON {place}.{table} TO {writer}, {reader}"
        if rights.writer:
            yield f"GRANT {rights.writer} ON {place}.{table} TO {writer}"
    yield f"GRANT USAGE, SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA {place} TO {writer}"  # an import raises one


def turn_on(transaction: Transaction, schema: str) -> None:
    """Let every login but those of the owner see only what it was granted, in every table of the schema."""
    place = quoted(schema)
    for function in (_AMBIGUOUS_OWNERS, _MERGE_COUNTS):
        transaction.run(function.format(schema=place))
    roles = roles_here(transaction, schema)
    writer, reader = quoted(roles.writer), quoted(roles.reader)
    for function, callers in (("ambiguous_owners", f"{writer}, {reader}"), ("merge_counts", writer)):
        transaction.run(f"REVOKE EXECUTE ON FUNCTION {place}.{function}() FROM PUBLIC")
        transaction.run(f"GRANT EXECUTE ON FUNCTION {place}.{function}() TO {callers}")
    for table in transaction.column(_TABLES, place):
        name = f"{place}.{quoted(table)}"
        rights = RIGHTS.get(table, Rights())
        for field, command, clause in _COMMANDS:
            policy = quoted(f"mindex {command.lower()}")
            transaction.run(f"DROP POLICY IF EXISTS {policy} ON {name}")
            if condition := getattr(rights, field).format(schema=place):
                transaction.run(f"CREATE POLICY {policy} ON {name} FOR {command} {clause} ({condition})")
        transaction.run(f"ALTER TABLE {name} ENABLE ROW LEVEL SECURITY")
    for table in ("access_log", "cache"):
        transaction.run(f"ALTER TABLE {place}.{table} ALTER COLUMN login SET DEFAULT current_user::text")


def writable_record(schema: str) -> str:
    """The condition that this login may write a row of `records`, where row-level security is on."""
    return _of_record(writes=True).format(schema=quoted(schema))
