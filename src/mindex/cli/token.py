"""The command token: who may reach this memory through `serve --http`, as which agent, with which rights."""

from collections.abc import Mapping, Sequence

import click

from mindex.cli.open_memory import Context, prints
from mindex.cli.options import completed_by
from mindex.clock import now_ms
from mindex.datatypes.access_tokens import Rights, Token
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.present.administration import new_token_json, new_token_text, tokens_json, tokens_text


@click.group("token", short_help="Manage access tokens for `serve --http`.")
def token_command() -> None:
    """Manage access tokens for `serve --http`: one token for each person or client.

    A token acts as one agent and cannot see entries of others. Files are shared, unless --collections limits them.

    \b
    mindex token add anna --expires 90d      with a separate agent, anna
    mindex token add board --agent anna --read-only
    mindex token list
    mindex token revoke anna
    """


@token_command.command("add")
@click.argument("name")
@click.option("--read-only", is_flag=True, help="Allow search and get only.")
@click.option("--metrics", is_flag=True, help="Allow /metrics only.")
@click.option(
    "--collections",
    multiple=True,
    metavar="C,…",
    help="Only these indexed folders.",
    shell_complete=completed_by("collections"),
)
@click.option("--expires", metavar="T", help="Expiry: 30d, 12h, 2027-01-01 (default: never).")
@click.pass_obj
def add(
    context: Context, name: str, read_only: bool, metrics: bool, collections: tuple[str, ...], expires: str | None
) -> None:
    """Create a token and show it once; only its hash is stored.

    The token acts as the agent of --agent (default: NAME). With --agent '*', it sees the entries of all agents, but can
    add entries only with a tool that has an argument for the agent.
    """
    if metrics and (read_only or collections or context.agent):
        raise UsageError("--metrics cannot be combined with other options", "remove them")
    rights: Rights = "metrics" if metrics else "read" if read_only else "write"
    names = [part.strip() for one in collections for part in one.split(",") if part.strip()]
    if collections and not names:
        raise UsageError("--collections is empty", "remove it, or write --collections docs,notes")
    with context.memory(creates=True) as memory:
        made = memory.tokens.add(name, agent=context.agent or "", rights=rights, collections=names, expires=expires)
    context.emit(new_token_json(made.secret, made.token), lambda: new_token_text(made.secret, made.token))


@token_command.command("list")
@prints(
    lambda tokens: tokens_text(tokens, now_ms()),
    lambda tokens: tokens_json(tokens, now_ms()),
    makes_default=False,
)
def list_(memory: Memory) -> Sequence[Token]:
    """List all tokens except the owner's: names and permissions, never the tokens."""
    return memory.tokens.all()


@token_command.command("revoke")
@click.argument("name", shell_complete=completed_by("tokens"))
@prints("{revoked} revoked; a running server refuses it within a second".format_map)
def revoke(memory: Memory, name: str) -> Mapping[str, str]:
    """Revoke a token. Running servers reject it within a second.

    For `owner`, the next start of a server creates a new token.
    """
    memory.tokens.revoke(name)
    return {"revoked": name}


@token_command.command("show")
@prints(str, lambda token: {"token": token}, creates=True)
def show(memory: Memory) -> str:
    """Print the owner's token, and create it if it does not exist. It has all permissions."""
    memory.tokens.owner_file()
    return memory.tokens.owner_token()
