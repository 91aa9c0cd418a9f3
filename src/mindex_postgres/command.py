"""The commands `mindex admin …`: roles, grants and distribution of a shared PostgreSQL database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mindex.cli.open_memory import Context
from mindex.config import load_settings
from mindex.datatypes.administration import Distribution, Grants, Setup
from mindex.errors import ConfigError
from mindex.present.text import aligned, amount, note_lines
from mindex_postgres import missing_packages

if TYPE_CHECKING:
    from mindex_postgres.administration import Administration


def setup_text(setup: Setup) -> str:
    """A script for psql; after it was run, one line for each step."""
    if not setup.ran:
        return "\n".join(f"-- {step.purpose}\n{step.statement};" for step in setup.steps)
    return "\n".join(aligned([(step.purpose, step.outcome) for step in setup.steps]))


def grants_text(grants: Grants) -> str:
    rows = [(one.login, one.scope, one.name, "reads" if one.read_only else "reads and writes") for one in grants.grants]
    state = (
        "row-level security is on" if grants.row_security else "row-level security is off: every login sees everything"
    )
    none = f"{grants.login} has no grants" if grants.login else "no grants"
    return "\n".join([*(aligned(rows) if rows else [none]), state, *note_lines(grants.notes)])


def distribution_text(result: Distribution) -> str:
    return "\n".join(
        [
            f"distributed by agent and collection: {', '.join(result.distributed)}",
            f"on every machine: {', '.join(result.reference)}",
            amount(result.machines, "machine"),
        ]
    )


_COLLECTIONS = click.option(
    "-c",
    "--collection",
    "collections",
    multiple=True,
    metavar="C",
    help="Files of this collection (repeatable).",
)
_LOGIN = click.argument("login")


@click.group("admin", short_help="Manage roles and grants of a PostgreSQL database.")
def admin_command() -> None:
    """Manage a shared PostgreSQL database (--db postgresql://…): roles and grants."""


def _administration(context: Context) -> Administration:
    """The administrator's view of the database that the settings name. Raises ConfigError if it is not PostgreSQL."""
    database = load_settings({"db": context.db}).database
    if database.partition("://")[0] not in ("postgresql", "postgres"):
        raise ConfigError(
            f"{database} is not shared: only a PostgreSQL database has roles", "name one with --db postgresql://…"
        )
    try:
        from mindex_postgres.administration import Administration  # psycopg is installed only on request
    except ModuleNotFoundError as error:
        raise missing_packages(error) from None
    return Administration(database)


def _agents(context: Context) -> tuple[str, ...]:
    """The agent of --agent, which precedes all commands; here it is the one that is granted."""
    return (context.agent,) if context.agent is not None else ()


@admin_command.command("init", short_help="Print or run the statements for an administrator.")
@click.option("--run", is_flag=True, help="Run the statements and create the tables.")
@click.option("--owner", "owners", multiple=True, metavar="LOGIN", help="Make this login an owner (repeatable).")
@click.pass_obj
def init_command(context: Context, /, **options: Any) -> None:
    """Print the SQL that an administrator must run: extension, schema, roles. You can run it again safely.

    The roles are named after the database and the schema. In the database team, team_mindex_owner owns the tables,
    team_mindex_writer and team_mindex_reader have the minimum permissions to write and to read. Make a login a member
    with `GRANT team_mindex_writer TO ada;`, or let `mindex admin grant` do it, with row-level security.
    """
    result = _administration(context).init(**options)
    context.emit(result, lambda: setup_text(result))


@admin_command.command("grant", short_help="Let a login read and write agents and collections.")
@_LOGIN
@_COLLECTIONS
@click.option("--read-only", is_flag=True, help="Allow reading only.")
@click.pass_obj
def grant_command(context: Context, /, **options: Any) -> None:
    """Let LOGIN see and write the entries of --agent A, and the files of --collection C.

    The first grant turns row-level security on permanently: from then on, a login sees only the agents and collections
    that it was granted, in every command and program. Owners see everything.
    """
    result = _administration(context).grant(agents=_agents(context), **options)
    context.emit(result, lambda: grants_text(result))


@admin_command.command("revoke", short_help="Revoke the grants of a login.")
@_LOGIN
@_COLLECTIONS
@click.pass_obj
def revoke_command(context: Context, /, **options: Any) -> None:
    """Revoke LOGIN's grants for --agent A and --collection C, or all of its grants if you pass neither."""
    result = _administration(context).revoke(agents=_agents(context), **options)
    context.emit(result, lambda: grants_text(result))


@admin_command.command("list")
@click.pass_obj
def list_command(context: Context) -> None:
    """List all grants."""
    result = _administration(context).list()
    context.emit(result, lambda: grants_text(result))


@admin_command.command("distribute", short_help="Spread the tables over a Citus cluster.")
@click.pass_obj
def distribute_command(context: Context) -> None:
    """Distribute the tables over a Citus cluster, by agent and collection."""
    result = _administration(context).distribute()
    context.emit(result, lambda: distribution_text(result))
