"""The commands contact, project and skill, made from `mindex.entries.field_specs`, and profile."""

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

import click

from mindex.cli.open_memory import Context, prints
from mindex.cli.options import F, combine, id_argument_of, limit_option, reason_option
from mindex.datatypes import Change, DueSkill, ProjectSource, Record
from mindex.entries.field_specs import FIELDS, FieldEntryKind, FieldSpec
from mindex.entries.project_sources import STATUSES, TYPES
from mindex.errors import UsageError
from mindex.memory import Memory
from mindex.present import entries as present
from mindex.present.history import fields_changed_json, fields_changed_text, profile_text, versions_json, versions_text
from mindex.store.base import Page
from mindex.times.typed import parse_time


def _option(field: FieldSpec, *, help_: str = "") -> Callable[[F], F]:
    more = {"text": "", "texts": " Repeatable.", "json": " As JSON."}[field.shape]
    return click.option(
        f"--{field.name.replace('_', '-')}",
        field.name,
        multiple=field.shape == "texts",
        metavar="JSON" if field.shape == "json" else "T",
        help=help_ or field.help + more,
    )


def _filter_options(kind: FieldEntryKind) -> Callable[[F], F]:
    options = []
    for field in FIELDS[kind]:
        if field.shape == "text":
            part = " (a part is enough)" if field.name == "name" else ""
            options.append(_option(field, help_=f"Filter by {field.name}{part}."))
    if kind == "project":
        options.append(click.option("--contact", metavar="ID", help="Only projects of this contact."))
    return combine(*options)


def _field_values(kind: FieldEntryKind, options: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that were given; None removes a field, which an empty text means."""
    values: dict[str, Any] = {}
    for field in FIELDS[kind]:
        value = options[field.name]
        if value is None or value == ():
            continue
        if field.shape == "texts":
            value = [text for text in value if text] or None
        elif field.shape == "json":
            value = _parse_json(field.name, value) if value else None
        values[field.name] = value
    return values


def _parse_json(name: str, text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise UsageError(f"{name} is not JSON", """write it like '{"schedule": "0 9 * * 1-5"}'""") from None


def _group(kind: FieldEntryKind, about: str) -> click.Group:
    """Return the commands add, list, get, update and delete of a kind."""
    group = click.Group(kind, help=about, short_help=about.partition(".")[0] + ".")

    @group.command("add", help=f"Add a {kind}; NAME may also be passed as --name.")
    @click.argument("named", required=False, metavar="[NAME]")
    @combine(*map(_option, FIELDS[kind]))
    @click.pass_obj
    def add(context: Context, /, named: str | None, **options: Any) -> None:
        if named is not None and options["name"] is not None:
            raise UsageError("the name is passed twice", "pass it once")
        options["name"] = options["name"] if named is None else named
        with context.memory(creates=True) as memory:
            things = memory.field_entries(kind)
            record = things.add(**_field_values(kind, options))
            notes = things.notes(record)
        context.emit(present.thing_added_json(record, notes), lambda: present.thing_added_text(record, notes))

    @group.command("list", help=f"List {kind}s, oldest first.")
    @_filter_options(kind)
    @limit_option(50, "Number of records, at most 500.")
    @prints(
        lambda page: present.things_text(page.records, page.total),
        lambda page: {"records": [present.thing_json(record) for record in page.records], "total": page.total},
    )
    def list_(memory: Memory, /, limit: int, **filters: Any) -> Page:
        return memory.field_entries(kind).list(limit=limit, **filters)

    @group.command("get", help=f"Show a {kind} by its id, an unambiguous part of it, or its name.")
    @id_argument_of(kind)
    @prints(present.thing_text, present.thing_json)
    def get(memory: Memory, id_: str) -> Record:
        return memory.field_entries(kind).get(id_)

    @group.command("update", help=f"Change the given fields of a {kind}; '' removes a value.")
    @id_argument_of(kind)
    @combine(*map(_option, FIELDS[kind]))
    @reason_option
    @prints(lambda change: fields_changed_text(change, "updated"), fields_changed_json)
    def update(memory: Memory, /, id_: str, reason: str, **options: Any) -> Change:
        return memory.field_entries(kind).update(id_, reason, **_field_values(kind, options))

    @group.command("delete", help=f"Forget a {kind}; `mindex restore` brings it back.")
    @id_argument_of(kind)
    @reason_option
    @prints(lambda change: fields_changed_text(change, "forgotten"), fields_changed_json)
    def delete(memory: Memory, id_: str, reason: str) -> Change:
        return memory.field_entries(kind).delete(id_, reason)

    return group


contact_command = _group("contact", "Store and look up people.")
project_command = _group("project", "Store and look up projects.")
skill_command = _group("skill", "Store recurring tasks. mindex lists those that are due; a client runs them.")


_project_argument = click.argument("project")
_location_argument = click.argument("location")
_source_type_option = click.option("--type", "source_type", type=click.Choice(TYPES), help="Type (default: detect).")


@project_command.command("link")
@_project_argument
@_location_argument
@_source_type_option
@reason_option
@prints(present.linked_source_text)
def link(memory: Memory, project: str, location: str, source_type: str | None, reason: str) -> ProjectSource:
    """Link a folder, repository or URL to a project.

    \b
    mindex project link Atlas ~/code/atlas
    mindex project link Atlas https://atlas.example.org
    """
    return memory.projects.link(project, location, source_type=source_type or "", reason=reason)


@project_command.command("unlink")
@_project_argument
@_location_argument
@reason_option
@prints(present.unlinked_source_text)
def unlink(memory: Memory, project: str, location: str, reason: str) -> ProjectSource:
    """Unlink a source from a project; its indexed files stay."""
    return memory.projects.unlink(project, location, reason=reason)


@project_command.command("sources")
@click.argument("project", required=False)
@click.option("--type", "source_type", type=click.Choice(TYPES), help="Only sources of this type.")
@prints(present.sources_text, lambda found: {"sources": found, "total": len(found)})
def sources(memory: Memory, project: str | None, source_type: str | None) -> Sequence[ProjectSource]:
    """List the sources of a project, or of all, with their status.

    The status of a folder is checked: ok, not indexed (warning) or missing (error). The status of a remote repository
    or a URL is the last reported one, or unknown.
    """
    return memory.projects.sources(project, source_type=source_type or "")


@project_command.command("report")
@_project_argument
@_location_argument
@click.argument("status", type=click.Choice(STATUSES), metavar="STATUS")
@click.option("--message", default="", metavar="T", help="What is wrong with the source.")
@prints(present.linked_source_text)
def report(memory: Memory, project: str, location: str, status: str, message: str) -> ProjectSource:
    """Store the status of a source: ok, warning, error or unknown."""
    return memory.projects.report(project, location, status, message)


@skill_command.command("due")
@click.option("--at", metavar="T", help="Time (default: now).")
@prints(present.due_text, present.due_json)
def due(memory: Memory, at: str | None) -> Sequence[DueSkill]:
    """List the enabled skills that are due, longest due first."""
    return memory.skills.due(datetime.fromtimestamp(parse_time(at) / 1000, UTC) if at else None)


# ── the profile ──────────────────────────────────────────────────────────────────────────────────────────────────────


@click.group("profile", short_help="Read and change the user's profile.")
def profile_command() -> None:
    """Read and change the user's profile: JSON values by path, every change kept."""


@profile_command.command("get")
@click.argument("path", default="")
@prints(lambda shown: profile_text(*shown.values()))
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
    context.emit(fields_changed_json(change), lambda: fields_changed_text(change, "changed"))


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
@prints(versions_text, versions_json)
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
        fields_changed_json(change),
        lambda: fields_changed_text(change, f"is as version {version} again"),
    )
