"""The command token: who may reach this memory through `serve --http`, as which agent, with which rights."""

from collections.abc import Sequence

import click

from mindex.cli.open_memory import Context, prints
from mindex.cli.options import completed_by
from mindex.clock import now_ms
from mindex.datatypes.access_tokens import Rights, Token
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.present import access_tokens as present


@click.group("token", short_help="Who may reach this memory through `serve --http`.")
def token_command() -> None:
    """Who may reach this memory through `serve --http`: one token for each person or program.

    A token acts as one agent: the entries of others do not exist for it. Files are shared, but for --collections.

    \b
    mindex token add anna --expires 90d      her own agent, called anna
    mindex token add board --agent anna --read-only
    mindex token list
    mindex token revoke anna
    """


@token_command.command("add")
@click.argument("name")
@click.option("--read-only", is_flag=True, help="It may search and read, and change nothing.")
@click.option("--metrics", is_flag=True, help="It opens /metrics and nothing else.")
@click.option(
    "--collections",
    multiple=True,
    metavar="C,…",
    help="Of indexed folders it sees only these.",
    shell_complete=completed_by("collections"),
)
@click.option("--expires", metavar="T", help="When it ends: 30d, 12h, 2027-01-01. Without it, when it is revoked.")
@click.pass_obj
def add(
    context: Context, name: str, read_only: bool, metrics: bool, collections: tuple[str, ...], expires: str | None
) -> None:
    """Make a token and show it, this once; stored is only its hash.

    It acts as the agent of --agent, by default the one called NAME. --agent '*' sees every agent's entries, and
    adds one only where the tool has an argument that names the agent.
    """
    if metrics and (read_only or collections or context.agent):
        raise UsageError("--metrics opens no memory", "leave the other options out")
    rights: Rights = "metrics" if metrics else "read" if read_only else "write"
    names = [part.strip() for one in collections for part in one.split(",") if part.strip()]
    if collections and not names:
        raise UsageError("--collections names none", "leave it out, or write --collections docs,notes")
    with context.memory(creates=True) as memory:
        made = memory.tokens.add(name, agent=context.agent or "", rights=rights, collections=names, expires=expires)
    context.emit(
        present.new_token_json(made.secret, made.token), lambda: present.new_token_text(made.secret, made.token)
    )


@token_command.command("list")
@prints(
    lambda tokens: present.tokens_text(tokens, now_ms()),
    lambda tokens: present.tokens_json(tokens, now_ms()),
    makes_default=False,
)
def list_(memory: Memory) -> Sequence[Token]:
    """Show all tokens but the owner's: names and rights, never the tokens themselves."""
    return memory.tokens.all()


@token_command.command("revoke")
@click.argument("name", shell_complete=completed_by("tokens"))
@click.pass_obj
def revoke(context: Context, name: str) -> None:
    """Take a token back. A running server refuses it within a second; `owner`: the next start makes a new one."""
    with context.memory() as memory:
        memory.tokens.revoke(name)
    context.emit({"revoked": name}, lambda: f"{name} revoked; a running server refuses it within a second")


@token_command.command("show")
@prints(str, lambda token: {"token": token}, creates=True)
def show(memory: Memory) -> str:
    """Print the owner's token, which is made if there is none yet. It has every right."""
    memory.tokens.owner_file()
    return memory.tokens.owner_token()
