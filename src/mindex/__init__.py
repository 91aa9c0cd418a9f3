"""mindex: one memory for every AI agent on a machine.

>>> from mindex import Memory
>>> with Memory("memory.db") as memory:  # doctest: +SKIP
...     memory.index("docs")
...     answer = memory.search("how is data cached?")
"""

from typing import TYPE_CHECKING

from mindex.datatypes import Answer, Filters, GetResult, Hit, Progress, Record, Stage, Trace
from mindex.errors import (
    AmbiguousIdError,
    CollectionError,
    ConfigError,
    ConflictError,
    EmbeddingError,
    ForbiddenPathError,
    ForeignDatabaseError,
    MindexError,
    NotFoundError,
    SchemaError,
    StoreBusyError,
    StoreError,
    UsageError,
)
from mindex.memory import Memory

if TYPE_CHECKING:
    from mindex.datatypes import Check, IndexReport, Status

__version__ = "0.2.0"

__all__ = [
    "AmbiguousIdError",
    "Answer",
    "Check",
    "CollectionError",
    "ConfigError",
    "ConflictError",
    "EmbeddingError",
    "Filters",
    "ForbiddenPathError",
    "ForeignDatabaseError",
    "GetResult",
    "Hit",
    "IndexReport",
    "Memory",
    "MindexError",
    "NotFoundError",
    "Progress",
    "Record",
    "SchemaError",
    "Stage",
    "Status",
    "StoreBusyError",
    "StoreError",
    "Trace",
    "UsageError",
]


def __getattr__(name: str) -> object:
    """Of the public names, those that a search does without: made when first asked for, as `mindex.datatypes` does."""
    from mindex import datatypes  # names of `__all__` that a search does without

    if name in __all__:
        return getattr(datatypes, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
