"""The commands help and completion."""

from collections.abc import Sequence

import click

from mindex.cli.completion import SHELLS, completion_script
from mindex.cli.open_memory import Context
from mindex.errors import UsageError


def _found(root: click.Context, words: Sequence[str]) -> click.Context:
    """Return the context of the `mindex` command that words name. Raises UsageError if there is none."""
    found = root
    for word in words:
        command = found.command
        if not isinstance(command, click.Group):
            raise UsageError(f"`{found.command_path}` has no command '{word}'", f"see `{found.command_path} --help`")
        name, below, _ = command.resolve_command(found, [word])
        if below is None:  # a shell completes a line that is not finished
            raise UsageError(f"no command '{word}'", "see `mindex --help`")
        found = click.Context(below, parent=found, info_name=name, **below.context_settings)
    return found


def _complete_command(context: click.Context, _: click.Parameter, typed: str) -> list[str]:
    found = _found(context.find_root(), context.params["words"] or ())
    names = found.command.list_commands(found) if isinstance(found.command, click.Group) else []
    return [name for name in names if name.startswith(typed)]


@click.command("help")
@click.argument("words", nargs=-1, metavar="[COMMAND]...", shell_complete=_complete_command)
@click.pass_context
def help_command(context: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command.

    \b
    mindex help conversation add
    """
    text = _found(context.find_root(), words).get_help()
    _emit(context, {"help": text}, text)


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion_command(context: click.Context, shell: str) -> None:
    """Print the script that completes mindex in a shell.

    It completes commands, options, and names of the database: collections, tags, types, agents, conversations, ids and
    files. It does not create a database.

    \b
    bash: echo 'eval "$(mindex completion bash)"' >> ~/.bashrc
    zsh:  echo 'eval "$(mindex completion zsh)"' >> ~/.zshrc      (after compinit)
    fish: mindex completion fish > ~/.config/fish/completions/mindex.fish
    """
    script = completion_script(context.find_root().command, shell)
    _emit(context, {"shell": shell, "script": script}, script.rstrip("\n"))


def _emit(context: click.Context, value: dict[str, str], text: str) -> None:
    ours: Context = context.obj
    ours.emit(value, lambda: text)
