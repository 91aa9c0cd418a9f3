"""The command profile: shows and changes the profile of the user, and its history."""

import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from mindex.cli.open_memory import Context, prints
from mindex.cli.options import reason_option
from mindex.datatypes import Change
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.present import history as present


@click.group("profile", short_help="Read and change the user's profile.")
def profile_command() -> None:
    """Read and change the user's profile: JSON values by path, every change kept."""


@profile_command.command("get")
@click.argument("path", default="")
@prints(lambda shown: present.profile_text(*shown.values()))
def get(memory: Memory, path: str) -> Mapping[str, object]:
    """Show the profile, or the value at a path: user.name, projects[0].title."""
    return {"value" if path else "profile": memory.profile.get(path)}


@profile_command.command("set")
@click.argument("path", required=False)
@click.argument("value", required=False)
@click.option("--remove", metavar="PATH", help="Remove the value at this path.")
@click.option("--replace", is_flag=True, help="Replace a whole object or list instead of merging.")
@reason_option
@click.pass_obj
def set_(context: Context, path: str | None, value: str | None, remove: str | None, replace: bool, reason: str) -> None:
    """Set one value. VALUE is JSON if it parses (5, true, ["a"]), else text."""
    if remove is not None:
        if path is not None or replace:
            raise UsageError(
                "--remove cannot be combined with PATH, VALUE or --replace",
                f"run `mindex profile set --remove {remove}`",
            )
        changes = {remove: None}
    elif path is None or value is None:
        raise UsageError("missing argument: PATH or VALUE", "write `mindex profile set user.name Anna --reason …`")
    else:
        changes = {path: _json_or_text(value)}
    with context.memory(creates=True) as memory:
        change = memory.profile.set(changes, reason, replace=replace)
    context.emit(present.fields_changed_json(change), lambda: present.fields_changed_text(change, "changed"))


def _json_or_text(text: str) -> Any:
    """Return the value of a text that is JSON, else the text."""
    try:
        return json.loads(text, parse_constant=_refuse_constant)
    except ValueError:
        return text
    except RecursionError:
        raise UsageError("the value is nested too deeply", "reduce the nesting, or store it as text") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(name)  # NaN and Infinity are Python's, not JSON's


@profile_command.command("history")
@prints(present.versions_text, present.versions_json)
def history(memory: Memory) -> Sequence[Change]:
    """Show every version with its changes: when, by whom and why."""
    return memory.profile.history()


@profile_command.command("rollback")
@click.argument("version", type=int)
@reason_option
@click.pass_obj
def rollback(context: Context, version: int, reason: str) -> None:
    """Restore a version of the profile; this is a change like any other."""
    with context.memory() as memory:
        change = memory.profile.rollback(version, reason)
    context.emit(
        present.fields_changed_json(change),
        lambda: present.fields_changed_text(change, f"is as version {version} again"),
    )
