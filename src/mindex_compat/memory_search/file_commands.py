"""`ms index`, `ms status` and `ms collection`."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import click

from mindex import Memory
from mindex.cli.output import ProgressBar, note
from mindex.datatypes import IndexReport
from mindex.errors import UsageError
from mindex_compat.memory_search.guidance import in_own_words, nothing_indexed
from mindex_compat.memory_search.program import Program
from mindex_compat.memory_search.status import status_of, status_text

_PATH = click.Path(path_type=Path)


@click.command("index", short_help="Bring the collections up to date.")
@click.option("--force", is_flag=True, help="Read unchanged files again.")
@click.option("--prune", is_flag=True, help="List the missing files that are removed; this always happens.")
@click.option("--contextualize", is_flag=True, help="Have a language model describe each chunk's place in its file.")
@click.option("--dry-run", is_flag=True, help="Show what would change, without changing it.")
@click.option("--pull", is_flag=True, help="Run `git pull --ff-only` in the folders first.")
@click.pass_obj
def index(program: Program, /, force: bool, prune: bool, contextualize: bool, dry_run: bool, pull: bool) -> None:
    """Bring the collections up to date. Only new and changed files are read."""
    with program.opened() as memory:
        known = [one for one in memory.collections.list() if not one.imported]
        if not known:
            raise nothing_indexed(memory)
        if pull and not dry_run:
            for one in known:
                _pull(Path(one.root))
        before = _paths(memory)
        with ProgressBar(lines=True) as bar:
            report = memory.index(force=force, dry_run=dry_run, contextualize=contextualize or None, report=bar)
        gone = sorted(before - _paths(memory)) if prune and not dry_run else []
    _print_index(program, report, gone)


def _paths(memory: Memory) -> set[str]:
    return {
        f"{one.name}/{file.path}"
        for one in memory.collections.list()
        for file in memory.collections.documents_of(one.name)
    }


def _pull(root: Path) -> None:
    command = ["git", "-C", str(root), "pull", "--ff-only"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    except OSError as error:
        raise UsageError(f"cannot run git: {error}", "install it, or leave --pull out") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["git failed"]
        note(f"{root} was not pulled: {next((line for line in lines if line.startswith('fatal:')), lines[-1])}")


def _print_index(program: Program, report: IndexReport, gone: list[str] | None = None) -> None:
    verb = "would change" if report.dry_run else "indexed"
    lines = [
        f"{one.name}: {one.new} new, {one.changed} changed, {one.deleted} removed, {one.unchanged} unchanged"
        f" ({one.chunks_added} chunks added, {one.chunks_removed} removed)"
        for one in report.collections
    ]
    lines += [f"skipped {one.path}: {one.reason}" for one in report.skipped]
    lines += [f"removed {path}" for path in gone or ()]
    lines.append(f"{verb} in {report.seconds} s; {report.embedded} embedded, {report.pending} pending")
    program.emit(report, lambda: "\n".join(lines))
    for one in report.notes:
        note(in_own_words(one))


@click.command("status", short_help="Show what is indexed.")
@click.pass_obj
def status(program: Program, /) -> None:
    """Show the index, its size, files, chunks and collections."""
    with program.opened() as memory:
        found = status_of(memory)
    program.emit(found, lambda: status_text(found))


@click.group("collection", short_help="Add, list and remove folders.", no_args_is_help=True)
def collection() -> None:
    """Add, list and remove folders."""


@collection.command("add", short_help="Index a folder.")
@click.argument("path", type=_PATH)
@click.option("--name", help="Collection name (default: the folder's name).")
@click.pass_obj
def collection_add(program: Program, /, path: Path, name: str | None) -> None:
    """Index a folder as a collection."""
    with program.opened(creates=True) as memory, ProgressBar(lines=True) as bar:
        report = memory.index(path, name=name, report=bar)
    _print_index(program, report)


@collection.command("list", short_help="List the collections.")
@click.pass_obj
def collection_list(program: Program, /) -> None:
    """List the collections with their files and chunks."""
    with program.opened() as memory:
        found = status_of(memory)["collections"]
    rows: Any = found
    program.emit(
        {"collections": found},
        lambda: (
            "\n".join(f"{one['name']}: {one['files']} files, {one['chunks']} chunks, {one['path']}" for one in rows)
            or "No collections."
        ),
    )


@collection.command("remove", short_help="Remove a collection; its files stay.")
@click.argument("name")
@click.pass_obj
def collection_remove(program: Program, /, name: str) -> None:
    """Remove a collection from the index. Its files are not changed."""
    with program.opened() as memory:
        chunks = memory.collections.remove(name)
    program.emit({"removed": name, "chunks": chunks}, lambda: f"removed {name} ({chunks} chunks)")
