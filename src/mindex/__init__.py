"""mindex: one memory for all the AI clients on a machine.

`Memory` opens a database, or creates it, and has everything that the command line has:

>>> from mindex import Memory, MindexError
>>> with Memory("memory.db") as memory:  # doctest: +SKIP
...     memory.index("docs")                                  # make a folder searchable
...     answer = memory.search("how is data cached?", limit=3)
...     for hit in answer.hits:
...         print(hit.record.path, hit.record.first_line, hit.relevance, hit.record.text)
...     added = memory.add("Standup is at 9:30", tags=["team"])
...     memory.update(added.id, text="Standup is at 10:00", reason="moved")
...     memory.undo(added.id)                                 # every change can be undone

Read with `search`, `get`, `list`, `history`, `status` and `doctor`. Write with `add`, `add_many`, `update`, `forget`,
`restore`, `undo`, `purge`, `index` and `watch`. The groups `memory.conversations`, `profile`, `contacts`, `projects`,
`skills`, `notes`, `timeline`, `collections`, `labels`, `transfer`, `sync`, `models` and `maintenance` have the rest.
`help(Memory.search)` lists every option of a search.

Results are frozen dataclasses: `Answer` contains a `Hit` for each result, and a `Hit` contains its `Record`. An answer
without a confident hit has hits with `weak` set, or none; `answer.notes` says why.

Every error is a `MindexError`: `error.message` says what happened, `error.hint` what to do. `UsageError` is a wrong
argument, `NotFoundError` a missing record or file, `StoreBusyError` a locked database, `EmbeddingError` a model that
fails.

Only the names in `mindex.__all__`, and in `mindex.extension.__all__` for extensions, are public.
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
    "AmbiguousIdError", "Answer", "Check", "CollectionError", "ConfigError", "ConflictError", "EmbeddingError",
    "Filters", "ForbiddenPathError", "ForeignDatabaseError", "GetResult", "Hit", "IndexReport", "Memory", "MindexError",
    "NotFoundError", "Progress", "Record", "SchemaError", "Stage", "Status", "StoreBusyError", "StoreError", "Trace",
    "UsageError",
]  # fmt: skip


def __getattr__(name: str) -> object:
    """Of the public names, those that a search does without: made when first asked for, as `mindex.datatypes` does."""
    from mindex import datatypes  # names of `__all__` that a search does without

    if name in __all__:
        return getattr(datatypes, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
