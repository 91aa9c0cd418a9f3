"""`mindex ms`: the commands of memory-search, with its flags, outputs and exit code, over a database of mindex."""

import click

from mindex.cli.open_memory import Context
from mindex_compat.memory_search import entry_commands, file_commands, retrieval_commands, upkeep_commands
from mindex_compat.memory_search.program import OwnErrors, Program


@click.group("ms", cls=OwnErrors, short_help="Use the commands of memory-search.", no_args_is_help=True)
@click.option("--index", default="", metavar="NAME", help="Named index (default: the database of mindex).")
@click.pass_context
def ms_command(ctx: click.Context, index: str) -> None:
    """Use the commands of memory-search, with its flags and outputs.

    \b
    mindex ms collection add docs       index a folder
    mindex ms search "cache" --digest   file:lines only
    mindex ms get 'docs/cache.md:12'    the chunk at this line

    `alias memory="mindex ms"` keeps your scripts.
    """
    context: Context = ctx.obj
    if context.db and index:
        raise click.UsageError("--index cannot be combined with --db", ctx)
    ctx.obj = Program(context, index)


for _command in (
    retrieval_commands.search_,
    retrieval_commands.get,
    file_commands.index,
    file_commands.status,
    file_commands.collection,
    entry_commands.facts_,
    entry_commands.context,
    entry_commands.sessions_,
    upkeep_commands.config,
    upkeep_commands.mode_,
    upkeep_commands.cache,
    upkeep_commands.cleanup,
    upkeep_commands.doctor,
    upkeep_commands.export,
    upkeep_commands.import_,
    upkeep_commands.serve,
    upkeep_commands.cursor,
):
    ms_command.add_command(_command)
