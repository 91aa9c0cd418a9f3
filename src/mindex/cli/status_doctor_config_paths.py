"""The commands status, doctor, config and paths."""

from collections.abc import Mapping, Sequence

import click

from mindex.cli.open_memory import Context, prints
from mindex.cli.output import note
from mindex.config import Configured, ForeignVariable, bare_address, cache_folder, load_settings, user_config
from mindex.memory import Memory
from mindex.model import Check, Status
from mindex.present.reports import checks_json, checks_text, status_text
from mindex.present.text import aligned

_WIDEST_VALUE = 32  # most are shorter; a longer one only moves the rest of its own line


@click.command("status", short_help="What is in the memory, and what is still pending.")
@prints(status_text)
def status_command(memory: Memory) -> Status:
    """What is in the memory, where it is, and what is still pending."""
    return memory.status()


@click.command("doctor", short_help="Check everything, and say how to mend it.")
@prints(checks_text, checks_json, fails=lambda checks: not all(check.ok for check in checks))
def doctor_command(memory: Memory) -> Sequence[Check]:
    """Check the database, the indexes, the folders and the model; say how to mend what is broken."""
    return memory.doctor()


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
    settings = load_settings({**fixed, "db": context.db, "agent": context.agent}, foreign=foreign)
    for text in settings.notes:
        note(text)
    shown = [
        {
            "key": one.setting.key,
            "value": _shown_value(one),
            "origin": f"--tools {tools}" if one.setting.key in fixed else one.origin,
            "variable": one.setting.variable,
            "meaning": one.setting.meaning,
        }
        for one in settings
    ]
    rows = [[str(one[name]) for name in ("key", "value", "origin", "meaning")] for one in shown]
    context.emit({"settings": shown}, lambda: "\n".join(aligned(rows, widest=_WIDEST_VALUE)))


def _shown_value(one: Configured) -> object:
    if one.setting.secret:
        return "(set)" if one.value else ""
    if one.setting.address:
        bare = bare_address(str(one.value))
        return "(malformed)" if bare is None else bare
    if one.origin == "default" and one.setting.unset:
        return one.setting.unset
    return list(one.value) if isinstance(one.value, tuple) else one.value


@click.command("paths")
@click.pass_obj
def paths_command(context: Context) -> None:
    """Where mindex keeps its files."""
    settings = load_settings({"db": context.db, "agent": context.agent})
    paths = {"db": settings.database, "config": str(user_config()), "cache": str(cache_folder())}
    context.emit(paths, lambda: "\n".join(aligned([[name, path] for name, path in paths.items()])))
