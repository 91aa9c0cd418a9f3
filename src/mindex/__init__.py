"""mindex: one memory for every AI agent on a machine.

>>> from mindex import Memory
>>> with Memory("memory.db") as memory:  # doctest: +SKIP
...     memory.index("docs")
...     answer = memory.search("how is data cached?")
"""

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
from mindex.model import Answer, Check, Filters, Found, Hit, IndexReport, Progress, Record, Stage, Status, Trace

__version__ = "0.1.0"

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
    "Found",
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
