"""The formats that can be imported, and which of them a file or folder has."""

from importlib import import_module
from pathlib import Path
from typing import cast

from mindex.errors import UsageError
from mindex.transfer.importer_base import Importer

# In the order in which they are tried; `a-b` is in `importers/a_b.py`.
IMPORTERS = (
    "jsonl", "markdown", "memory-exchange", "memory-mcp", "mudpuppy", "memory-search", "memorizer", "reference-memory",
    "claude-code", "notes",
)  # fmt: skip


def load_importer(name: str) -> Importer:
    """Return the importer of a format by its name. Raises UsageError for an unknown name."""
    if name not in IMPORTERS:
        raise UsageError(f"nothing is known of '{name}'", f"import from one of {', '.join(IMPORTERS)}")
    module = import_module(f"mindex.transfer.importers.{name.replace('-', '_')}")
    return cast(Importer, module.importer)


def detect_importer(path: Path) -> Importer:
    """Return the importer that recognises a file or folder. Raises UsageError when there is none."""
    for name in IMPORTERS:
        importer = load_importer(name)
        if importer.recognises(path):
            return importer
    what = "folder" if path.is_dir() else "file"
    raise UsageError(
        f"{path} is no {what} that mindex knows how to import", f"say what it is: --from {', '.join(IMPORTERS)}"
    )
