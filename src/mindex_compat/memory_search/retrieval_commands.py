"""`ms search` and `ms get`."""

from __future__ import annotations

import json
from typing import Any

import click

from mindex import Memory
from mindex.cli.output import note, say
from mindex.errors import NotFoundError, UsageError
from mindex.mcp.dialect_parts import body
from mindex_compat.memory_search.guidance import in_own_words
from mindex_compat.memory_search.observations import TYPES
from mindex_compat.memory_search.output import Format, View, printed
from mindex_compat.memory_search.passages import Passage, Passages
from mindex_compat.memory_search.program import Program
from mindex_compat.memory_search.search import DEFAULT_LIMIT, MODES, Request, search

_FORMATS = ("human", "json", "csv", "xml", "md", "files")


@click.command("search", short_help="Search indexed files and entries.")
@click.argument("query")
@click.option("-l", "--limit", type=int, default=DEFAULT_LIMIT, show_default=True, help="Number of results.")
@click.option("-f", "--format", "form", type=click.Choice(_FORMATS), default="human", show_default=True, help="Output.")
@click.option("-e", "--expand", is_flag=True, help="Also search rewordings of the query.")
@click.option("--explain", is_flag=True, help="Show the scores of each result.")
@click.option("--collection", default="", metavar="NAME", help="Only this collection.")
@click.option("--compact", "view", flag_value="compact", help="JSON with ids, lines and token counts.")
@click.option("--digest", "view", flag_value="digest", help="Files and lines only.")
@click.option("--budget", type=click.IntRange(1), metavar="N", help="Maximum number of tokens of all results.")
@click.option("--timeline", metavar="CHUNKID", help="Show a chunk with two neighbours on each side.")
@click.option("--after", default="", metavar="DATE", help="Files changed after: 7d, 2w, 1m (month), 1y, 2026-01-15.")
@click.option("--before", default="", metavar="DATE", help="Files changed before.")
@click.option("--path", default="", metavar="PATTERN", help="Part of a path, or a glob.")
@click.option("--type", "type_", type=click.Choice(TYPES), help="Only this type of observation.")
@click.option("--concept", default="", metavar="TAG", help="Only chunks with this concept.")
@click.option(
    "--layer",
    type=click.Choice(["1", "2", "3"]),
    help="1: --compact, 2: best hit in its file, 3: text of the best hit.",
)
@click.option("--mode", type=click.Choice([*MODES]), default="hybrid", show_default=True, help="Retrieval mode.")
@click.pass_obj
def search_(
    program: Program,
    /,
    query: str,
    form: Format,
    explain: bool,
    view: View | None,
    budget: int | None,
    timeline: str | None,
    type_: str | None,
    layer: str | None,
    mode: str,
    **options: Any,  # fields of `Request`
) -> None:
    """Search indexed files and entries, best first."""
    form = "json" if program.as_json else form
    view = "compact" if layer == "1" else view or "full"
    if view != "full" and form not in ("human", "json"):
        raise UsageError(f"--{view} cannot be combined with --format {form}", "leave one of them out")
    with program.opened() as memory:
        if timeline is not None:
            _print_timeline(memory, timeline, form)
            return
        request = Request(query, mode=MODES[mode], type=type_ or "", **options)
        found = search(memory, request)
        for one in found.notes:
            note(in_own_words(one))
        if layer in ("2", "3") and found.results:
            best = str(found.results[0].passage.id)
            if layer == "2":
                _print_timeline(memory, best, form)
            else:
                _print_passages(Passages(memory).find(best), as_json=form == "json", raw=False)
            return
        say(printed(found, form, view, explain=explain, budget=budget))


@click.command("get", short_help="Show chunks and files.")
@click.argument("identifier")
@click.option("--raw", is_flag=True, help="Print the content alone.")
@click.option("--lines", "span", metavar="A-B", help="Only these lines of the file.")
@click.pass_obj
def get(program: Program, /, identifier: str, raw: bool, span: str | None) -> None:
    """Show chunks and files.

    IDENTIFIER is a number or short id of a search, a path or part of one, path:line (the chunk there), a glob, a list
    with commas, or memory://collection/path. --json prints a list of chunks.
    """
    between = _span(span) if span else None
    with program.opened() as memory:
        _print_passages(Passages(memory).find(identifier), as_json=program.as_json, raw=raw, between=between)


def _span(text: str) -> tuple[int, int]:
    first, _, last = text.partition("-")
    if not first.isdecimal() or not (last or first).isdecimal() or int(last or first) < int(first):
        raise UsageError(f"--lines '{text}' is not a range", "write --lines 10-20")
    return int(first), int(last or first)


def _print_passages(
    passages: list[Passage], *, as_json: bool, raw: bool, between: tuple[int, int] | None = None
) -> None:
    texts = [one.lines(*between) if between else one.text for one in passages]
    if between and not any(texts):
        raise NotFoundError(f"it has no lines {between[0]}-{between[1]}", "leave --lines out to see which it has")
    if as_json:
        shown = [{**one.json(), "content": text} for one, text in zip(passages, texts, strict=True)]
        say(json.dumps(shown, ensure_ascii=False, indent=2))
    elif raw:
        say("\n".join(texts))
    else:
        say("\n\n".join(f"{_heading(one)}\n{body(text)}" for one, text in zip(passages, texts, strict=True)))


def _heading(one: Passage) -> str:
    return f"{one.file}:{one.first_line}-{one.last_line} #{one.id} {one.short_id}"


def _print_timeline(memory: Memory, reference: str, form: Format) -> None:
    target, near = Passages(memory).around(reference)
    if form == "json":
        say(json.dumps({"timeline": [one.json() for one in near]}, ensure_ascii=False, indent=2))
        return
    marks = ("➤ " if one.record.id == target.record.id else "  " for one in near)
    say("\n\n".join(f"{mark}{_heading(one)}\n{body(one.text)}" for mark, one in zip(marks, near, strict=True)))
