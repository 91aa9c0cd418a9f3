"""The command plugins: lists extensions, and turns them off and on."""

import click

from mindex.cli.open_memory import Context
from mindex.entry_points import disabled, installed, problems
from mindex.errors import NotFoundError, UsageError
from mindex.present.plugins import Plugin, plugins_json, plugins_text
from mindex.user_settings import set_setting, unset_setting

_KEY = "plugins.disabled"


@click.command("plugins", short_help="List extensions, or turn one off or on.")
@click.option("--disable", metavar="NAME", help="Turn an extension off.")
@click.option("--enable", metavar="NAME", help="Turn an extension on.")
@click.pass_obj
def plugins_command(context: Context, disable: str | None, enable: str | None) -> None:
    """List the installed extensions: what each provides, and what is wrong with it.

    An extension that is turned off is not loaded. Running servers follow after a restart.
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
            set_setting(_KEY, ",".join(sorted(off)))
        else:
            unset_setting(_KEY)
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
