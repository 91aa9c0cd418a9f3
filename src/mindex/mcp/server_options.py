"""The options of a server, from the command line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mindex.config import ForeignVariable
from mindex.datatypes.guidance import LIBRARY, Guidance


def working_root() -> Path | None:
    """The working folder, below which agents may index; None for `/`, a home folder or a folder above it.

    A client that starts a server there has chosen no folder.
    """
    here = Path.cwd()
    return None if Path.home().is_relative_to(here) else here


@dataclass(frozen=True, slots=True)
class ServerOptions:
    db: str | None = None
    dialect_db: str | None = None  # `--database-path`: the program that a dialect replaces may have its database there
    agent: str | None = None
    root: Path | None = field(default_factory=working_root)  # agents may index below it; None: known collections only
    source: Path | None = None
    exclude: tuple[str, ...] = ()
    build: Path | None = None
    watch: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)
    foreign: tuple[ForeignVariable, ...] = ()  # variables of the program that a dialect replaces
    backfill_delay: float = 0.0  # seconds before records without vectors, of earlier, are embedded in the background
    data: Path | None = None  # of that program, at its usual place
    index_name: str = ""  # `--index-name` of MemoryExchange
    guidance: Guidance = LIBRARY  # of the dialect
