"""The commands status, doctor, config, paths and plugins."""

import os
import sys
from collections.abc import Mapping, Sequence

import click

from mindex.cli.open_memory import Context, prints
from mindex.cli.output import ProgressBar, note
from mindex.config import ForeignVariable, load_settings
from mindex.datatypes import Status
from mindex.entry_points import disabled, installed, problems
from mindex.errors import NotFoundError, UsageError
from mindex.memory import Memory
from mindex.present.administration import (
    Plugin,
    changed_setting_json,
    changed_setting_text,
    plugins_json,
    plugins_text,
    settings_json,
)
from mindex.present.reports import checks_json, checks_text, repair_text, status_text
from mindex.present.text import aligned
from mindex.user_folders import cache_folder, default_database, user_config
from mindex.user_settings import set_setting, unset_setting

_WIDEST_VALUE = 32  # most are shorter; a longer one only shifts the rest of its line


@click.command("status", short_help="Show what is stored and what is pending.")
@prints(status_text)
def status_command(memory: Memory) -> Status:
    """Show what is stored, where, and what is pending."""
    return memory.status()


@click.command("doctor", short_help="Check the database and suggest fixes.")
@click.option("--deep", is_flag=True, help="Check every row against its checksum and index.")
@click.option("--repair", "target", metavar="NEW.db", help="Recover a damaged database into a new file.")
@click.pass_obj
def doctor_command(context: Context, deep: bool, target: str | None) -> None:
    """Check the database, indexes, folders and models, and suggest fixes.

    --repair does not change the damaged file. The exit code is 1 if a check fails or a row was lost.
    """
    if target is not None:
        if deep:
            raise UsageError(
                "--deep cannot be combined with --repair", "remove --deep: --repair always checks the new database"
            )
        with ProgressBar() as bar:
            repaired = Memory.repair(context.settings().database, target, report=bar)
        context.emit(repaired, lambda: repair_text(repaired))
        failed = bool(repaired.lost or not repaired.sound)
    else:
        with context.memory() as memory, ProgressBar() as bar:
            checks = memory.doctor(deep=deep, report=bar)
        context.emit(checks_json(checks), lambda: checks_text(checks))
        failed = not all(check.ok for check in checks)
    if failed:
        sys.exit(1)


@click.group("config", invoke_without_command=True, short_help="Show or change the settings.")
@click.option("--tools", metavar="NAME", help="Show the settings of `serve --tools NAME`.")
@click.pass_context
def config_command(ctx: click.Context, tools: str | None) -> None:
    """Show every setting, its value and its source.

    `config set KEY VALUE` writes a value to the user config, `config unset KEY` removes it.
    """
    if ctx.invoked_subcommand is None:
        _show_settings(ctx.obj, tools)
    elif tools is not None:
        raise UsageError("--tools only shows settings", "remove --tools")


def _show_settings(context: Context, tools: str | None) -> None:
    fixed: Mapping[str, object] = {}  # by the dialect
    foreign: Sequence[ForeignVariable] = ()
    if tools is not None:
        from mindex.mcp.dialect import tools_named  # no other use of this command needs the tools

        chosen = tools_named(tools)
        fixed, foreign = chosen.dialect().settings, chosen.foreign()
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


@config_command.command("set", context_settings={"ignore_unknown_options": True})  # a value may be -1
@click.argument("key")
@click.argument("value")
@click.pass_obj
def set_(context: Context, key: str, value: str) -> None:
    """Write a setting to the user config, for example `search.floor 0.4`.

    Comments and order of the file are kept. Lists are written with commas: `index.exclude drafts/,*.tmp`.
    """
    changed = set_setting(key, value)
    if changed.setting.variable in os.environ:
        note(f"{changed.setting.variable} is set in the environment and overrides the file")
    context.emit(changed_setting_json(changed), lambda: changed_setting_text(changed))


@config_command.command("unset")
@click.argument("key")
@click.pass_obj
def unset(context: Context, key: str) -> None:
    """Remove a setting from the user config, so that its default applies."""
    removed, path = unset_setting(key), str(user_config())
    context.emit(
        {"key": key, "removed": removed, "file": path},
        lambda: f"{key} removed from {path}" if removed else f"{key} is not set in {path}",
    )


@click.command("paths")
@click.pass_obj
def paths_command(context: Context) -> None:
    """Show where mindex keeps its files."""
    settings = context.settings()
    paths = {
        "db": settings.database,
        "config": str(user_config()),
        "cache": str(cache_folder()),
        "data": str(default_database().parent),
    }
    context.emit(paths, lambda: "\n".join(aligned([[name, path] for name, path in paths.items()])))


@click.command("plugins", short_help="List extensions, or turn one off or on.")
@click.option("--disable", metavar="NAME", help="Turn an extension off.")
@click.option("--enable", metavar="NAME", help="Turn an extension on.")
@click.pass_obj
def plugins_command(context: Context, disable: str | None, enable: str | None) -> None:
    """List the installed extensions: what each provides, and what is wrong with it.

    An extension that is turned off is not loaded. Restart running servers after a change.
    """
    if disable is not None and enable is not None:
        raise UsageError("--disable cannot be combined with --enable", "run the command twice")
    off = disabled()
    if name := disable or enable:
        known = {point.extension for point in installed()} | off
        if name not in known:
            raise NotFoundError(f"there is no extension '{name}'", f"use one of {', '.join(sorted(known))}")
        off = off | {name} if disable else off - {name}
        if off:
            set_setting("plugins.disabled", ",".join(sorted(off)))
        else:
            unset_setting("plugins.disabled")
    found: dict[str, list[str]] = {}
    distributions = {point.extension: point.distribution for point in installed()}
    for point in installed():
        found.setdefault(point.extension, []).append(f"{point.group} {point.name}")
    plugins = [
        Plugin(name, distributions[name], tuple(provides), enabled=name not in off)
        for name, provides in sorted(found.items())
    ]
    wrong = [str(error) for error in problems()]
    context.emit(plugins_json(plugins, wrong), lambda: plugins_text(plugins, wrong))
