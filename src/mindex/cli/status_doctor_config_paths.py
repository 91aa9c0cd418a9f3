"""The commands status, doctor, config and paths."""

import sys
from collections.abc import Mapping, Sequence

import click

from mindex.cli.open_memory import Context, prints
from mindex.cli.output import ProgressBar, note
from mindex.config import ForeignVariable, cache_folder, default_database, load_settings, user_config
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.model import Status
from mindex.present.reports import checks_json, checks_text, repair_text, status_text
from mindex.present.settings import settings_json
from mindex.present.text import aligned

_WIDEST_VALUE = 32  # most are shorter; a longer one only moves the rest of its own line


@click.command("status", short_help="What is in the memory, and what is still pending.")
@prints(status_text)
def status_command(memory: Memory) -> Status:
    """What is in the memory, where it is, and what is still pending."""
    return memory.status()


@click.command("doctor", short_help="Check everything, and say how to mend it.")
@click.option("--deep", is_flag=True, help="Read every row, and compare it with its checksum and its index.")
@click.option(
    "--repair", "target", metavar="NEW.db", help="Save what can be read of a damaged database into a new file."
)
@click.pass_obj
def doctor_command(context: Context, deep: bool, target: str | None) -> None:
    """Check the database, the indexes, the folders and the model; say how to mend what is broken.

    --repair leaves the damaged file as it is. The exit code is 1 when a check fails, or something was lost.
    """
    if target is not None:
        if deep:
            raise UsageError("--repair checks the new database by itself", "leave --deep out")
        with ProgressBar() as bar:
            repaired = Memory.repair(load_settings({"db": context.db}).database, target, report=bar)
        context.emit(repaired, lambda: repair_text(repaired))
        failed = bool(repaired.lost or not repaired.sound)
    else:
        with context.memory() as memory, ProgressBar() as bar:
            checks = memory.doctor(deep=deep, report=bar)
        context.emit(checks_json(checks), lambda: checks_text(checks))
        failed = not all(check.ok for check in checks)
    if failed:
        sys.exit(1)


@click.command("config")
@click.option("--tools", metavar="NAME", help="As `serve --tools NAME` has them, which reads that program's variables.")
@click.pass_obj
def config_command(context: Context, tools: str | None) -> None:
    """Every setting, its value, and where the value comes from."""
    fixed: Mapping[str, object] = {}  # by the dialect
    foreign: Sequence[ForeignVariable] = ()
    if tools is not None:
        # The SDK, which no other use of this command needs.
        from mindex.mcp.dialects import dialect_named
        from mindex.mcp.dialects.environment import VARIABLES

        fixed, foreign = dialect_named(tools).settings, VARIABLES.get(tools, ())
    settings = load_settings(
        {**fixed, "db": context.db, "db_read": context.db_read, "agent": context.agent}, foreign=foreign
    )
    for text in settings.notes:
        note(text)
    shown = settings_json(settings.as_in_project())
    for one in shown:
        if one["key"] in fixed:
            one["origin"] = f"--tools {tools}"
    rows = [[str(one[name]) for name in ("key", "value", "origin", "meaning")] for one in shown]
    context.emit({"settings": shown}, lambda: "\n".join(aligned(rows, widest=_WIDEST_VALUE)))


@click.command("paths")
@click.pass_obj
def paths_command(context: Context) -> None:
    """Where mindex keeps its files."""
    settings = load_settings({"db": context.db, "agent": context.agent})
    paths = {
        "db": settings.database,
        "config": str(user_config()),
        "cache": str(cache_folder()),
        "data": str(default_database().parent),
    }
    context.emit(paths, lambda: "\n".join(aligned([[name, path] for name, path in paths.items()])))
