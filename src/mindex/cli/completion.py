"""The commands help and completion, and shell completion: commands, options, and names that the database holds.

The scripts are click's own.

A database that does not exist is not made, and an error completes nothing: it must not land in a command line.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import click
from click.shell_completion import BashComplete, CompletionItem, FishComplete, ShellComplete, ZshComplete

from mindex.cli.open_memory import Context
from mindex.cli.options import COMPLETE_VARIABLE, global_options_first
from mindex.config import load_settings
from mindex.datatypes import KINDS, TYPES
from mindex.entries.conversations import MAX_SESSIONS
from mindex.errors import MindexError, UsageError
from mindex.memory import Memory
from mindex.present.record_view import file_name, summary_of
from mindex.present.text import amount

ENTRY_KINDS = tuple(kind for kind in KINDS if kind != "chunk")
_SPECIAL = ("backlinks:", "conflicts", "due", "history:", "links:", "profile", "sessions", "tags", "timeline", "types")
_MOST = 50  # names that are offered at once
_UNSAFE = re.compile(r"[^\w@%+=:,./~-]")  # in an unquoted word of bash
_ESCAPED = r"\\\\\g<0>"  # two backslashes: the script's `read` takes one of them

Item: TypeAlias = "CompletionItem[str]"  # a text, because click 8.1 has no generic class


class _Shell(ShellComplete):
    """Complete the options of `mindex` itself also after a command, since people write them there."""

    def get_completion_args(self) -> tuple[list[str], str]:
        arguments, typed = super().get_completion_args()
        return global_options_first(arguments), typed

    def get_completions(self, args: list[str], incomplete: str) -> list[Item]:
        found = super().get_completions(args, incomplete)
        if incomplete.startswith("-"):
            known = {item.value for item in found}
            ours = self.cli.shell_complete(click.Context(self.cli), incomplete)
            found += [item for item in ours if item.value not in known]
        return found


class _Bash(_Shell, BashComplete):
    def format_completion(self, item: Item) -> str:
        """Bash puts the name into the command line as it is: a blank in it must be escaped, unless a quote is open."""
        quoted = os.environ["COMP_WORDS"].rpartition("\n")[2].startswith(("'", '"'))
        return f"{item.type},{item.value if quoted else _UNSAFE.sub(_ESCAPED, item.value)}"


class _Zsh(_Shell, ZshComplete):
    pass


class _Fish(_Shell, FishComplete):
    # Only the first comma separates: names and descriptions may have others.
    source_template = FishComplete.source_template.replace('string split ","', 'string split --max 1 ","')


_SHELLS: Mapping[str, type[_Shell]] = {"bash": _Bash, "zsh": _Zsh, "fish": _Fish}
SHELLS = tuple(_SHELLS)


def complete_in_shell(cli: click.Command, instruction: str) -> int:
    """Print what a script asks for: `bash_complete`, `zsh_complete` … Returns the exit code."""
    shell, _, task = instruction.partition("_")
    if shell not in _SHELLS or task != "complete":
        return 1
    try:
        found = _SHELLS[shell](cli, {}, "mindex", COMPLETE_VARIABLE).complete()
    except Exception:  # the command itself will report the error
        return 1
    click.echo(found.encode())
    return 0


# ── names of the database ─────────────────────────────────────────────────────────────────────────────────────


def complete_names(names: str, context: click.Context, typed: str) -> list[Item]:
    """Return the completions of one of `NAMES` from the command line's database; nothing if there is no database."""
    if names == "files":
        return [CompletionItem(typed, type="file")]
    if names == "types":
        return [CompletionItem(type_) for type_ in TYPES if type_.startswith(typed)]
    chosen = context.find_root().params
    try:
        settings = load_settings(
            {"db": chosen.get("db"), "db_read": chosen.get("db_read"), "agent": chosen.get("agent")}
        )
        with Memory(settings=settings, creates=False) as memory:
            found = {item.value: item for item in NAMES[names](memory, typed)}  # a path may be in two collections
            return list(found.values())[:_MOST]
    except (MindexError, OSError):
        return []


def _collections(memory: Memory, typed: str) -> Iterator[Item]:
    found = (one for one in memory.collections.list() if one.name.startswith(typed))
    return (CompletionItem(one.name, help=one.context or one.root) for one in found)


def _tags(memory: Memory, typed: str) -> Iterator[Item]:
    return (CompletionItem(one.name, help=amount(one.count, "record")) for one in memory.labels.tags(typed))


def _agents(memory: Memory, typed: str) -> Iterator[Item]:
    return (CompletionItem(agent) for agent in memory.entries.agents() if agent.startswith(typed))


def _tokens(memory: Memory, typed: str) -> Iterator[Item]:
    return (CompletionItem(one.name) for one in memory.tokens.all() if one.name.startswith(typed))


def _sessions(memory: Memory, typed: str) -> Iterator[Item]:
    found = memory.conversations.list(limit=MAX_SESSIONS).sessions
    return (CompletionItem(one.id, help=_line(one.summary)) for one in found if one.id.startswith(typed))


def _entries(memory: Memory, typed: str, kinds: Sequence[str] = ENTRY_KINDS) -> Iterator[Item]:
    """The newest entries whose ids start as typed."""
    newest = memory.list(memory.filters(kinds=kinds), limit=_MOST).records
    found = [record for record in newest if record.id.startswith(typed.lower())]
    if not found and typed:
        found = [record for record in memory.entries.starting(typed, limit=_MOST) if record.kind in kinds]
    return (CompletionItem(record.id, help=_line(summary_of(record))) for record in found)


def _references(memory: Memory, typed: str) -> Iterator[Item]:
    """What `get` takes: words, ids of entries and paths of files."""
    yield from (CompletionItem(word) for word in _SPECIAL if typed and word.startswith(typed))
    yield from _entries(memory, typed)
    for one in memory.collections.documents(typed, limit=_MOST):
        yield CompletionItem(file_name(one.path, "" if one.path.startswith(typed) else one.collection), help=one.title)


def _line(text: str) -> str:
    return " ".join(text.split())[:60]


NAMES: Mapping[str, Callable[[Memory, str], Iterator[Item]]] = {
    "collections": _collections,
    "tags": _tags,
    "agents": _agents,
    "sessions": _sessions,
    "tokens": _tokens,
    "entries": _entries,
    "references": _references,
    **{kind: partial(_entries, kinds=(kind,)) for kind in ("contact", "project", "skill")},
}


# ── the commands ──────────────────────────────────────────────────────────────────────────────────────────────


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
    script = _SHELLS[shell](context.find_root().command, {}, "mindex", COMPLETE_VARIABLE).source()
    _emit(context, {"shell": shell, "script": script}, script.rstrip("\n"))


def _emit(context: click.Context, value: dict[str, str], text: str) -> None:
    ours: Context = context.obj
    ours.emit(value, lambda: text)
