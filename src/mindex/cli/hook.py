"""The commands hook, pause and resume."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import click

from mindex.cli.open_memory import Context
from mindex.cli.output import say
from mindex.config import Settings
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.user_folders import default_database


def _folder_of(settings: Settings) -> Path:
    """Where the hooks of a memory keep their files: beside a database file, or in the data folder."""
    database = settings.database
    return default_database().parent if "://" in database else Path(database).absolute().parent


class HookCommand(click.Command):
    """A command that ends with 1 if its arguments are wrong: the exit code 2 blocks the prompt in Claude Code."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            _refuse(ctx.obj, UsageError(error.format_message()))


def _refuse(context: Context, error: UsageError) -> NoReturn:
    """Report wrong arguments in one line, also in the log of the hooks, and exit with 1."""
    from mindex.hooks.run import log_error  # as in `hook_command`

    folder = default_database().parent
    with suppress(Exception):  # invalid settings must not hide this error
        folder = _folder_of(context.settings())
    log_error(folder, "hook", error)
    say(f"error: {' '.join(str(error).split())}", err=True)
    sys.exit(1)


@click.command("hook", cls=HookCommand, short_help="Run a hook; clients call this.")
@click.argument("event", metavar="session-start|prompt|stop|pre-compact|session-end")
@click.option(
    "--client",
    default="claude-code",
    show_default=True,
    metavar="NAME",
    help="Client: claude-code, codex, gemini or opencode.",
)
@click.pass_obj
def hook_command(context: Context, event: str, client: str) -> None:
    """Run a hook. The client sends JSON on stdin and reads JSON from stdout.

    session-start prints what matters for the project, prompt recalls relevant memories, the others store the turns of
    the conversation. Errors go to hooks.log in the data folder, and the exit code is 0; it is 1 if the arguments are
    wrong. docs/agents.md explains how to add hooks to a client.
    """
    from mindex.hook_pause import is_paused  # the file of this command is also that of `pause`
    from mindex.hooks.run import (  # as above
        HookRun,
        check_arguments,
        log_error,  # `pause` and `resume` do not need it
    )

    try:
        check_arguments(event, client)
    except UsageError as error:
        _refuse(context, error)
    folder = default_database().parent
    try:
        # Without word pairs a keyword search takes half the time; they only order hits, of which few are sure.
        pairs = {"search.weights.pairs": 0} if event == "prompt" else {}
        settings = context.settings(pairs)
        folder = _folder_of(settings)
        if is_paused(folder):
            return
        # Not `Context.memory`, whose notes would go to stderr with every prompt.
        text = HookRun(settings, folder, client, lambda: Memory(settings=settings)).run(event, sys.stdin.buffer)
        if text:
            say(text)
    except Exception as error:  # of any kind: the client must not fail
        log_error(folder, event, error)


@click.command("pause")
@click.option("--for", "duration", metavar="2h", help="Duration: 30m, 2h, 1d (default: until `mindex resume`).")
@click.pass_obj
def pause_command(context: Context, duration: str | None) -> None:
    """Pause the hooks of all clients."""
    from mindex.clock import to_iso  # a hook, which starts with every prompt, does not need it
    from mindex.hook_pause import pause  # as above
    from mindex.present.hooks import pause_text  # as above
    from mindex.times.typed import parse_time  # as above

    settings = context.settings()
    until = parse_time(duration, ahead=True) if duration else None
    pause(_folder_of(settings), until)
    shown = to_iso(until) if until is not None else None
    context.emit({"paused": True, "until": shown}, lambda: pause_text(until))


@click.command("resume")
@click.pass_obj
def resume_command(context: Context) -> None:
    """Resume the hooks of all clients."""
    from mindex.hook_pause import resume  # as in `pause`
    from mindex.present.hooks import resume_text  # as above

    was_paused = resume(_folder_of(context.settings()))
    context.emit({"paused": False, "was_paused": was_paused}, lambda: resume_text(was_paused))
