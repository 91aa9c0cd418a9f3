"""The options of a server, from the command line."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

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
    guidance: Guidance = LIBRARY  # of the dialect
