"""`ms facts`, `ms context` and `ms sessions`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import click

from mindex.cli.output import note, say
from mindex.errors import UsageError
from mindex_compat.memory_search import context_block, facts, path_contexts, sessions
from mindex_compat.memory_search.program import Program

_PATH = click.Path(path_type=Path)


@click.group("facts", short_help="Store values by key.", no_args_is_help=True)
def facts_() -> None:
    """Store values by key. Each is also found by `search`."""


@facts_.command("set", short_help="Store a value.")
@click.argument("key")
@click.argument("value")
@click.pass_obj
def facts_set(program: Program, /, key: str, value: str) -> None:
    """Store a value. It replaces the current value of the key."""
    with program.opened(creates=True) as memory:
        fact, notes = facts.set_fact(memory, key, value)
    for one in notes:
        note(one)
    program.emit(fact.json(), fact.line)


@facts_.command("get", short_help="Show the facts that match a pattern.")
@click.argument("pattern")
@click.option("-f", "--format", "form", type=click.Choice(["human", "json"]), default="human", help="Output.")
@click.pass_obj
def facts_get(program: Program, /, pattern: str, form: str) -> None:
    """Show the facts whose key matches a pattern with `*` and `?`."""
    with program.opened() as memory:
        found = facts.matching(memory, pattern)
    _print_facts({"pattern": pattern}, found, as_json=program.as_json or form == "json")


@facts_.command("list", short_help="List all facts.")
@click.option("-f", "--format", "form", type=click.Choice(["human", "json"]), default="human", help="Output.")
@click.pass_obj
def facts_list(program: Program, /, form: str) -> None:
    """List all facts by key."""
    with program.opened() as memory:
        found = facts.matching(memory, "*")
    _print_facts({}, found, as_json=program.as_json or form == "json")


def _print_facts(head: Mapping[str, object], found: list[facts.Fact], *, as_json: bool) -> None:
    if as_json:
        say(json.dumps({**head, "results": [one.json() for one in found]}, ensure_ascii=False, indent=2))
    else:
        say("\n".join(one.line() for one in found) or "No facts found.")


@facts_.command("delete", short_help="Forget facts.")
@click.argument("key")
@click.option("--pattern", is_flag=True, help="KEY is a pattern with * and ?.")
@click.pass_obj
def facts_delete(program: Program, /, key: str, pattern: bool) -> None:
    """Forget the fact of a key. `mindex restore ID` brings it back."""
    with program.opened() as memory:
        found = facts.delete_facts(memory, key, pattern=pattern)
    program.emit(
        {"deleted": [one.key for one in found]},
        lambda: "\n".join(f"deleted {one.key} (entry {one.record.id})" for one in found),
    )


@click.group("context", short_help="Build context for prompts.", no_args_is_help=True)
def context() -> None:
    """Build context for prompts, and describe folders."""


@context.command("build", short_help="Print the best passages for a prompt.")
@click.argument("query")
@click.option("-l", "--limit", type=int, default=5, show_default=True, help="Number of passages.")
@click.option("-t", "--tokens", type=click.IntRange(1), default=2000, show_default=True, help="Maximum tokens.")
@click.pass_obj
def context_build(program: Program, /, query: str, limit: int, tokens: int) -> None:
    """Print the best passages for a prompt."""
    with program.opened() as memory:
        block = context_block.build(memory, query, limit=limit, tokens=tokens)
    program.emit({"query": query, "context": block}, lambda: block or "No matches found.")


@context.command("sync", short_help="Put passages into a CLAUDE.md.")
@click.argument("path", type=_PATH, default=Path("CLAUDE.md"))
@click.option("-q", "--query", default="", help="Search query (default: the folder's name).")
@click.option("-l", "--limit", type=int, default=5, show_default=True, help="Number of passages.")
@click.option("-t", "--tokens", type=click.IntRange(1), default=2000, show_default=True, help="Maximum tokens.")
@click.pass_obj
def context_sync(program: Program, /, path: Path, query: str, limit: int, tokens: int) -> None:
    """Put the best passages between two marked lines of a file; the rest of the file does not change."""
    path = path / "CLAUDE.md" if path.is_dir() else path
    with program.opened() as memory:
        block = context_block.build(memory, query or path.absolute().parent.name, limit=limit, tokens=tokens)
    changed = context_block.sync(path, block)
    program.emit({"file": str(path), "changed": changed}, lambda: f"{path} {'updated' if changed else 'is up to date'}")


@context.command("add", short_help="Describe a file or folder.")
@click.argument("path", type=_PATH)
@click.argument("description")
@click.pass_obj
def context_add(program: Program, /, path: Path, description: str) -> None:
    """Describe a file or folder in one line, which `build`, `sync` and `search -f json` show.

    The folder of a collection is described to clients as well.
    """
    if not description.strip():
        raise UsageError("the description is empty", "write `mindex ms context add PATH DESCRIPTION`")
    _describe(program, path, description)
    program.emit({"path": str(path), "description": description}, lambda: f"{path}: {description}")


@context.command("rm", short_help="Remove a description.")
@click.argument("path", type=_PATH)
@click.pass_obj
def context_rm(program: Program, /, path: Path) -> None:
    """Remove the description of a file or folder."""
    _describe(program, path, "")
    program.emit({"removed": str(path)}, lambda: f"removed the description of {path}")


def _describe(program: Program, path: Path, description: str) -> None:
    root = str(path.expanduser().resolve())
    with program.opened() as memory:
        path_contexts.describe(path, description)
        if root in {one.root for one in memory.collections.list()}:
            memory.index(root, context=description, embed=False)


@context.command("list", short_help="List the descriptions.")
@click.pass_obj
def context_list(program: Program, /) -> None:
    """List the described files and folders."""
    known = path_contexts.descriptions()
    program.emit(
        {"contexts": [{"path": path, "description": text} for path, text in known.items()]},
        lambda: "\n".join(f"{path}: {text}" for path, text in known.items()) or "No descriptions.",
    )


@click.group("sessions", short_help="Show sessions.", no_args_is_help=True)
def sessions_() -> None:
    """Show sessions: imported ones, and those that mindex captures."""


@sessions_.command("list", short_help="List the latest sessions.")
@click.option("-l", "--limit", type=click.IntRange(1), default=10, show_default=True, help="Number of sessions.")
@click.pass_obj
def sessions_list(program: Program, /, limit: int) -> None:
    """List the latest sessions."""
    with program.opened() as memory:
        found = sessions.recent_sessions(memory, limit)
    program.emit(
        {"sessions": [one.json() for one in found]},
        lambda: "\n".join(one.line() for one in found) or "No sessions.",
    )


@sessions_.command("show", short_help="Show what a session captured.")
@click.argument("id_", metavar="ID")
@click.pass_obj
def sessions_show(program: Program, /, id_: str) -> None:
    """Show what was captured in a session."""
    with program.opened() as memory:
        session, captures = sessions.captures_of(memory, id_)
    program.emit({**session.json(), "captures": captures}, lambda: sessions.shown(session, captures))
