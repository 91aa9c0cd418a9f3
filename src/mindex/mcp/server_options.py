"""The options of a server, from the command line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mindex.config import ForeignVariable
from mindex.search.guidance import LIBRARY, Guidance


@dataclass(frozen=True, slots=True)
class ServerOptions:
    db: str | None = None
    dialect_db: str | None = None  # `--database-path`: the program that a dialect replaces may have its database there
    agent: str | None = None
    root: Path = field(default_factory=Path.cwd)
    source: Path | None = None
    exclude: tuple[str, ...] = ()
    build: Path | None = None
    watch: bool = False
    settings: Mapping[str, object] = field(default_factory=dict)
    foreign: tuple[ForeignVariable, ...] = ()  # variables of the program that a dialect replaces
    backfill_delay: float = 0.0  # seconds before records without vectors, of earlier, are embedded in the background
    index_name: str = ""  # `--index-name` of MemoryExchange
    guidance: Guidance = LIBRARY  # of the dialect
