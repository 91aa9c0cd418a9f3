"""The commands search, get and list."""

import sys
from dataclasses import replace
from typing import Any

import click

from mindex.cli.open_memory import Context
from mindex.cli.options import (
    combine,
    completed_by,
    limit_option,
    offset_option,
    table_option,
)
from mindex.cli.output import colour, note, say
from mindex.errors import UsageError
from mindex.present.answer_view import View
from mindex.present.output_formats import FORMATS, WITHOUT_NOTES, Shown, formatted, within_budget
from mindex.present.records_view import LIST_VIEWS, ListView, view_page, view_records
from mindex.search.options import SEARCH_OPTIONS
from mindex.search.query import MAX_LIMIT
from mindex.search_view import names_files, search_view

_TAKEN = [one for one in SEARCH_OPTIONS if one.flags]
_search_options = combine(*(table_option(one) for one in _TAKEN if one.in_library and not one.scope))
_scope_options = combine(*(table_option(one) for one in _TAKEN if one.scope))  # `list` also takes them
_view_option, _budget_option, _explain_option = (
    table_option(one) for one in _TAKEN if one.name in ("view", "budget", "explain")
)

_format_option = click.option(
    "-f", "--format", "form", type=click.Choice(FORMATS), default="text", show_default=True, help="Output format."
)
# How `search` and `get` print.
_format_options = combine(_format_option, _budget_option)


@click.command("search")
@click.argument("words", nargs=-1, required=True, metavar="QUERY")
@_search_options
@_view_option
@click.option("--digest", "view", flag_value="digest", help="Ids with places or first words, 10 to 20 tokens each.")
@click.option("--compact", "view", flag_value="compact", help="One line per result, about 30 tokens each.")
@_format_options
@_explain_option
@_scope_options
@click.pass_obj
def search_command(
    context: Context,
    /,
    words: tuple[str, ...],
    view: View,
    form: str,
    explain: bool,
    **options: Any,  # passed on to `search_view`
) -> None:
    """Search everything that is indexed.

    Plain words find texts that contain any of them, best first. "exact phrase", AND, OR, NOT, prefix*, title:word and
    {content}: word make the query strict.
    """
    _check_formats(context, form)
    if explain and (view in ("digest", "compact") or form in ("md", "csv", "files")):
        raise UsageError(
            "--explain does not work with this view or format", "use --view full, passages or dual, as text or JSON"
        )
    given = {name: value for name, value in options.items() if value is not None}
    with context.memory() as memory:
        _, shown = search_view(memory, " ".join(words), view, form=form, explain=explain, **given)
        _print(context, shown, form)


def _check_formats(context: Context, form: str) -> None:
    if context.as_json and form not in ("text", "json"):
        raise UsageError(f"--json cannot be combined with --format {form}", "pass one of them")


def _print(context: Context, shown: Shown, form: str) -> None:
    if form != "text":
        say(formatted(shown, form))
        for text in shown.notes if form in WITHOUT_NOTES else ():
            note(text)
    else:
        context.emit(shown, lambda: shown.text(colour=colour()))


@click.command("get", short_help="Show records by id, file, lines or glob.")
@click.argument(
    "references",
    nargs=-1,
    required=True,
    metavar="ID|PATH|PATH:10-40|GLOB|…",
    shell_complete=completed_by("references"),
)
@_format_options
@click.option("--as-of", metavar="T", help="Show entries as of this time.")
@click.pass_obj
def get_command(
    context: Context, references: tuple[str, ...], form: str, budget: int | None, as_of: str | None
) -> None:
    """Show records by id (or an unambiguous start of it), file, lines of a file, or glob.

    Also: ID±2 (or ID+-2, ID~2), a chunk or turn with two neighbours on each side; '#5', an entry by its number;
    doc://PATH and memory://ID; mem_a1 or mudpuppy:3, an imported entry by its former id; links:ID and backlinks:ID, the
    files that a file links to and that link to it; profile or profile.user.name; history:ID; timeline:yesterday..today;
    due; conflicts; tags; types; sessions.
    """
    _check_formats(context, form)
    with context.memory() as memory:
        found = memory.get(*references, as_of=as_of)
        several = names_files("full", form) and memory.collections.several()
    if context.as_json or form == "json":
        _print(context, view_records(found, budget=budget), form)
    else:  # what is missing is printed once: as an error
        present = replace(found, missing=(), why=())
        shown = within_budget(
            lambda most: view_records(present, budget=most, several_collections=several), form, budget
        )
        if shown.rows or shown.notes:
            _print(context, shown, form)
        if found.missing:
            why = "; ".join(found.why) or "search for it first"
            say(f"error: nothing found for {', '.join(found.missing)}; {why}", err=True)
    if found.missing:
        sys.exit(1)


@click.command("list")
@limit_option(20, f"Number of records, at most {MAX_LIMIT}.")
@offset_option
@click.option("--view", type=click.Choice(LIST_VIEWS), default="full", show_default=True, help="Amount of detail.")
@_format_option
@click.option("--conflicts", is_flag=True, help="Only memories that conflict with another.")
@_scope_options
@click.pass_obj
def list_command(
    context: Context, /, limit: int, offset: int, view: ListView, form: str, conflicts: bool, **scope: Any
) -> None:
    """List records, newest first."""
    _check_formats(context, form)
    if conflicts and scope["as_of"]:
        raise UsageError("--conflicts cannot be combined with --as-of", "remove --as-of")
    with context.memory() as memory:
        filters = memory.filters(**scope)
        page = memory.list(filters, limit=limit, offset=offset)  # also checks the limit and the offset
        for text in memory.damage_notes():
            note(text)
        found = memory.entries.in_conflict(filters) if conflicts else ()
        several = names_files(view, form) and memory.collections.several()
    records, total = page.records, page.total
    if conflicts:
        total = len(found)
        records = tuple(one.record for one in found[offset : offset + min(limit, MAX_LIMIT)])
    if limit > MAX_LIMIT:
        note(f"limit cut to {MAX_LIMIT}, the maximum")
    if total and offset >= total:
        note(f"no results after {offset}: there are {total}")
    in_conflict = {one.record.id: one.conflicts for one in found}
    _print(context, view_page(records, total, offset, view, conflicts=in_conflict, several_collections=several), form)
