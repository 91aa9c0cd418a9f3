"""The default places of the programs' data. The files need not exist."""

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

# This module must not import the SDK or an importer: `mindex serve` looks here before it does anything else.

_STATE = ".memory-exchange-state.json"


def memory_exchange(folder: Path) -> tuple[Path, ...]:
    """The database beside the state file of MemoryExchange, in the folder or one directly below it."""
    return tuple(
        path.with_name("memory_exchange.db") for path in (folder / _STATE, *sorted(folder.glob(f"*/{_STATE}")))
    )


def memory_mcp(_: Path) -> tuple[Path, ...]:
    if sys.platform == "darwin":
        return (Path.home() / ".claude-memories" / "memory.db",)
    variable, usual = ("APPDATA", "AppData/Roaming") if sys.platform == "win32" else ("XDG_DATA_HOME", ".local/share")
    return (Path(os.environ.get(variable) or Path.home() / usual) / "claude-memories" / "memory.db",)


def mudpuppy_homes() -> tuple[Path, ...]:
    """The folders of mudpuppy, and of its later releases: those that a variable names, else the usual ones."""
    named = [os.environ[name] for name in ("MUDPUPPY_HOME", "MATRIOSHKA_BRAIN_HOME") if os.environ.get(name)]
    return tuple(Path(home).expanduser() for home in named or ("~/.mudpuppy", "~/.matrioshka-brain"))


def mudpuppy(_: Path) -> tuple[Path, ...]:
    return tuple(home / "data" / "memory.db" for home in mudpuppy_homes())


def memorizer(_: Path) -> tuple[Path, ...]:
    return tuple(Path.home() / home / "data" / "memory.db" for home in (".annabelle", ".hexa-puffs"))


def memory_search(_: Path) -> tuple[Path, ...]:
    """The folder with the index and the named ones, and the index that its configuration names instead."""
    home = Path.home() / ".memory-search"
    named = program_config(home).get("indexPath")
    return (home, *([Path(named).expanduser()] if isinstance(named, str) and named else []))


def program_config(home: Path) -> Mapping[str, object]:
    """Return what the `config.json` of a folder holds; nothing if there is none or it cannot be read."""
    try:
        held = json.loads((home / "config.json").read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return {}
    return held if isinstance(held, dict) else {}


# Program → its data, given the working folder.
PLACES: Mapping[str, Callable[[Path], tuple[Path, ...]]] = {
    "memory-exchange": memory_exchange,
    "memory-mcp": memory_mcp,
    "mudpuppy": mudpuppy,
    "memory-search": memory_search,
    "memorizer": memorizer,
}
