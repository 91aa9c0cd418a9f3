"""The command setup: adds mindex to the clients of this machine, indexes folders, and asks one question."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from shlex import quote
from typing import TypeVar

import click

from mindex.analyzer import STOP_WORDS
from mindex.cli.install import run_install
from mindex.cli.open_memory import Context
from mindex.cli.output import ProgressBar, say
from mindex.clients.clients import CLIENTS, Client, Machine, client_named, this_machine, trace_of
from mindex.clients.install import Installer, program
from mindex.datatypes import Answer
from mindex.datatypes.clients import InstallReport, SetupReport
from mindex.datatypes.transfer import ImportReport
from mindex.errors import MindexError, NotFoundError, UsageError
from mindex.memory import Memory
from mindex.present.clients import SETUP_HITS, setup_json, setup_text
from mindex.present.text import amount
from mindex.regular_files import read_regular
from mindex.search.query import MAX_LIMIT, parse
from mindex.transfer.importer_base import found_data

T = TypeVar("T")

_NONE = "none"
_NO = ("n", "no")  # also mean none, as an answer
_LONGEST_QUESTION = 80  # characters of the proposed one
_USUAL = ("~/notes", "~/Notes", "~/Documents")
_OBSIDIAN = "{appdata}/obsidian/obsidian.json"
_MARKDOWN = (".md", ".markdown", ".mdx")
_SKIPPED = frozenset({"node_modules", "venv", "__pycache__"})
# A home folder may be large: the search for markdown ends after this many folders.
_MAX_FOLDERS = 2_000


@click.command("setup", short_help="Connect your clients and index your folders.")
@click.option("--agents", "names", metavar="A,B", help=f"Clients to connect ('{_NONE}': none), without a prompt.")
@click.option("--folders", multiple=True, metavar="DIR", help=f"Folder to index ('{_NONE}': none), without a prompt.")
@click.option("-y", "--yes", is_flag=True, help="Skip the prompts: use all clients found, and this folder.")
@click.pass_obj
def setup_command(context: Context, names: str | None, folders: tuple[str, ...], yes: bool) -> None:
    """Set up mindex: connect your clients, index your folders, and run one search.

    It asks which clients to connect, and whether to index each folder of notes that it finds (~/notes, ~/Documents,
    Obsidian vaults). --yes connects all clients and indexes only this folder; name others with --folders. It offers to
    import the data of other memory programs; with --yes it only reports them. At the end it prints what it did and how
    to undo it. If you run it again, it asks only for what is missing.
    """
    asks = not yes
    if asks and not sys.stdin.isatty():
        if names is None or not folders:
            raise UsageError(
                "setup asks questions, and there is no terminal", "add --yes, or pass --agents A,B --folders DIR"
            )
        asks = False  # both are said
    found = tuple(agent for agent in CLIENTS if trace_of(agent, this_machine()))
    ready = _with_mindex(context, found)
    missing = [agent.name for agent in found if agent.name not in ready]
    # A mistake in a flag is said before the memory is made.
    agents = None if names is None else _agents(names)
    chosen = None
    if folders:
        chosen = _folders(",".join(folders)) if _NONE in folders else [_folder(text) for text in folders]
    with context.memory(creates=True) as memory:
        known = {one.name: one.root for one in memory.collections.list() if not one.imported}
        if agents is None:
            agents = _agents_asked(missing, ready) if asks else _agents(",".join(missing))
        if chosen is None:
            proposed = _proposed_folder(known.values())
            chosen = _folders_asked(proposed, known) if asks else _folders(proposed)
        with ProgressBar() as bar:
            indexed = memory.index(*chosen, report=bar) if chosen else None
        now = [one.name for one in indexed.collections] if indexed else []
        # After the folders: an error of theirs leaves the agents as they are.
        installer = Installer(this_machine(), force=names is not None)
        installed = run_install(context, installer, agents, program()) if agents else None
        imports, import_notes = _imports(memory, asks=asks, db=context.db)
        is_empty = not memory.list(limit=1).records
        answer = _first_answer(memory, asks=asks) if installed or indexed or imports else None
        several = memory.collections.several()
    notes = [] if found or names is not None else ["no client was found on this machine"]
    if is_empty:
        notes.append("the database is empty; add to it with `mindex index DIR` or `mindex add TEXT`")
    elif answer is None:
        notes.append("nothing was missing; `mindex index DIR` adds a folder, `mindex index` updates all folders")
    report = SetupReport(
        installed,
        indexed,
        answer,
        _undo(context, installed, [name for name in now if name not in known]),
        (*notes, *import_notes),
        several,
        imports=imports,
        ready_agents=tuple(name for name in ready if name not in {agent.name for agent in agents}),
        ready_folders={name: root for name, root in known.items() if name not in now},
    )
    context.emit(setup_json(report), lambda: setup_text(report))
    if installed and any(result.outcome == "refused" for result in installed.results):
        sys.exit(1)


# ── agents ────────────────────────────────────────────────────────────────────────────────────────────────────


def _agents(text: str) -> tuple[Client, ...]:
    """Return the agents of `a, b`. Raises UsageError for an unknown one."""
    names = [name.strip() for name in text.split(",") if name.strip() not in ("", _NONE)]
    return tuple({name.lower(): client_named(name) for name in names}.values())


def _with_mindex(context: Context, found: Sequence[Client]) -> list[str]:
    """Return the agents that have the entry of mindex which an install would write now."""
    tried = run_install(context, Installer(this_machine(), dry_run=True), found, program())
    return [result.agent for result in tried.results if result.outcome == "unchanged"]


def _agents_asked(missing: Sequence[str], ready: Sequence[str]) -> tuple[Client, ...]:
    if not missing:
        if not ready:
            click.echo("No client was found on this machine; `mindex install CLIENT --force` writes its config anyway.")
        return ()
    shown = ", ".join(missing)
    if ready:
        say(f"mindex is in {', '.join(ready)} already. Other clients on this machine: {shown}.", err=True)
    else:
        say(f"Clients on this machine: {shown}.", err=True)
    chosen: tuple[Client, ...] = click.prompt(
        f"Add mindex to which clients? (names, or {_NONE})",
        default=shown,
        err=True,
        value_proc=lambda text: _asked(_agents, text),
    )
    return chosen


# ── folders ───────────────────────────────────────────────────────────────────────────────────────────────────


def _folder(text: str) -> Path:
    """Return the folder. Raises NotFoundError when there is none."""
    path = Path(text.strip()).expanduser()
    if not path.is_dir():
        raise NotFoundError(f"there is no folder {path}", "check the path")
    return path.absolute()


def _folders(text: str) -> list[Path]:
    return [_folder(part) for part in text.split(",") if part.strip() not in ("", _NONE)]


def _folders_asked(proposed: str, known: Mapping[str, str]) -> list[Path]:
    """Ask for each folder of notes that is found, then for others; not at all if nothing new is found."""
    found = [folder for folder in note_folders(this_machine()) if str(folder) != proposed]
    taken = [Path(root) for root in known.values()]
    if known and not proposed and all(_overlaps(folder, taken) for folder in found):
        return []
    say("You and your clients can search the folders that you index. mindex never changes their files.", err=True)
    if known:
        say(f"Indexed already: {', '.join(known.values())}.", err=True)
    chosen: list[Path] = []
    for folder in found:
        if not _overlaps(folder, [*taken, *chosen]) and click.confirm(f"Index {folder}?", default=True, err=True):
            chosen.append(folder)
    other = "other folders" if found else "folders"
    if _overlaps(Path(proposed), chosen):
        proposed = ""
    more: list[Path] = click.prompt(
        f"Index which {other}? (paths, separated by commas, or {_NONE})",
        default=proposed or _NONE,
        err=True,
        value_proc=lambda text: _asked(_folders, text),
    )
    return [*chosen, *(folder for folder in more if folder not in chosen)]


def _proposed_folder(indexed: Iterable[str]) -> str:
    """Return the working folder if it looks like one of notes or a project, and is not indexed.

    It contains markdown, is not the home folder, and neither inside a folder that is indexed nor around one.
    """
    folder = Path.cwd()
    if _overlaps(folder, map(Path, indexed)):
        return ""
    holds_markdown = any(folder.glob("*.md")) or any(folder.glob("*/*.md"))
    return str(folder) if holds_markdown and folder not in (Path.home(), Path(folder.anchor)) else ""


def _overlaps(folder: Path, others: Iterable[Path]) -> bool:
    """Return whether a folder is one of the others, inside or around one of them."""
    here = folder.resolve()
    places = [other.resolve() for other in others]
    return any(here.is_relative_to(place) or place.is_relative_to(here) for place in places)


# ── other programs ────────────────────────────────────────────────────────────────────────────────────────────


def _imports(memory: Memory, *, asks: bool, db: str | None) -> tuple[dict[str, ImportReport], list[str]]:
    """Import what other programs left at their usual places if the user agrees; without a terminal, name the command.

    Returns the reports by path, and notes. Data that was imported already is not offered again.
    """
    done: dict[str, ImportReport] = {}
    notes = []
    for name, path in found_data(Path.cwd()):
        try:
            new = memory.transfer.import_(path, source=name, dry_run=True).added
        except MindexError as error:
            notes.append(f"{path} cannot be imported: {error}")
            continue
        if new and not asks:
            command = f"mindex{f' --db {quote(db)}' if db else ''} import {quote(str(path))}"
            notes.append(f"{name} left {amount(new, 'record')} that mindex does not have: `{command}` imports them")
        elif new and click.confirm(f"Import {amount(new, 'record')} from {name} ({path})?", default=True, err=True):
            with ProgressBar() as bar:
                done[str(path)] = memory.transfer.import_(path, source=name, report=bar)
    return done, notes


# ── the question, and the end ─────────────────────────────────────────────────────────────────────────────────


def _first_answer(memory: Memory, *, asks: bool) -> Answer | None:
    """Return the answer to one question: the user's, or a heading of what is indexed. None: the memory is empty."""
    records = memory.list(limit=MAX_LIMIT).records
    if not records:
        return None
    headings = [record.title.rpartition(" > ")[2] for record in records]
    short = [heading for heading in headings if 0 < len(heading) <= _LONGEST_QUESTION]
    # The most words that a search counts: "When it does not work" has five words and finds nothing by them.
    question = max(
        short, key=lambda one: len({*parse(one).tokens} - STOP_WORDS), default=records[0].text[:_LONGEST_QUESTION]
    )
    if asks:
        question = click.prompt("Ask it something", default=question, err=True)
    return memory.search(question, limit=SETUP_HITS)


def _undo(context: Context, installed: InstallReport | None, collections: Sequence[str]) -> tuple[str, ...]:
    """Return the commands that take back what was done."""
    changed = [one.agent for one in installed.results if one.outcome in ("installed", "updated")] if installed else []
    db = f" --db {quote(context.db)}" if context.db else ""
    return (
        *((f"mindex install {' '.join(changed)} --undo",) if changed else ()),
        *(f"mindex index --remove {quote(name)}{db}" for name in collections),
    )


def _asked(parse: Callable[[str], T], text: str) -> T:
    """Return the parsed answer. A mistake becomes the error that makes click print it and ask again."""
    try:
        return parse(_NONE if text.strip().lower() in _NO else text)
    except (UsageError, NotFoundError) as error:
        raise click.UsageError(str(error)) from None


# ── folders of notes ─────────────────────────────────────────────────────────────────────────────────────────────────


def note_folders(machine: Machine) -> Iterator[Path]:
    """Yield the folders of notes that contain markdown, also if only their subfolders do: Obsidian vaults first."""
    seen: set[Path] = set()
    for folder in (*_vaults(machine.resolve(_OBSIDIAN)), *map(machine.resolve, _USUAL)):
        place = folder.resolve()
        if place not in seen and place != machine.home.resolve() and has_markdown(folder):
            seen.add(place)
            yield folder


def has_markdown(folder: Path) -> bool:
    """Return whether a folder or one of its subfolders contains a markdown file; hidden folders are left out."""
    walk = os.walk(folder)
    for _, folders, files in islice(walk, _MAX_FOLDERS):
        if any(name.lower().endswith(_MARKDOWN) for name in files):
            return True
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _SKIPPED]
    return False


def _vaults(config: Path) -> list[Path]:
    """Return the folders that Obsidian has open or had open; none if its file cannot be read."""
    try:
        vaults = json.loads(read_regular(config))["vaults"].values()
    except (OSError, ValueError, RecursionError, KeyError, TypeError, AttributeError):
        return []
    named = [vault.get("path") for vault in vaults if isinstance(vault, dict)]
    return [Path(path) for path in named if isinstance(path, str) and _is_absolute(path)]


def _is_absolute(path: str) -> bool:
    try:
        return b"\0" not in os.fsencode(path) and Path(path).is_absolute()
    except UnicodeEncodeError:  # half a character
        return False
