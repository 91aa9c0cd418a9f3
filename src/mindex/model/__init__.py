"""The values that travel between rooms. Frozen, typed, and ignorant of where they came from or go to."""

from importlib import import_module
from typing import TYPE_CHECKING

from mindex.model.query import (
    MODES,
    AllOf,
    AnyOf,
    Filters,
    KeywordNode,
    Mode,
    Phrase,
    Prefix,
    Query,
    Term,
    Without,
)
from mindex.model.records import (
    KINDS,
    TYPES,
    Change,
    Chunk,
    Collection,
    Document,
    Embedded,
    Kind,
    Model,
    Record,
)
from mindex.model.results import Answer, Found, Hit, Progress, Stage, Tier, Trace

if TYPE_CHECKING:
    from mindex.model.consolidation import Consolidation, Extracted, Proposal
    from mindex.model.records import Vectors
    from mindex.model.reports import (
        Check,
        CollectionReport,
        CollectionStatus,
        ContextPlan,
        Due,
        EmbeddingStatus,
        Event,
        IndexReport,
        MemoryStatistics,
        Purged,
        Remembered,
        Similar,
        Skipped,
        Status,
        Suspect,
    )

__all__ = [
    "KINDS",
    "MODES",
    "TYPES",
    "AllOf",
    "Answer",
    "AnyOf",
    "Change",
    "Check",
    "Chunk",
    "Collection",
    "CollectionReport",
    "CollectionStatus",
    "Consolidation",
    "ContextPlan",
    "Document",
    "Due",
    "Embedded",
    "EmbeddingStatus",
    "Event",
    "Extracted",
    "Filters",
    "Found",
    "Hit",
    "IndexReport",
    "KeywordNode",
    "Kind",
    "MemoryStatistics",
    "Mode",
    "Model",
    "Phrase",
    "Prefix",
    "Progress",
    "Proposal",
    "Purged",
    "Query",
    "Record",
    "Remembered",
    "Similar",
    "Skipped",
    "Stage",
    "Status",
    "Suspect",
    "Term",
    "Tier",
    "Trace",
    "Vectors",
    "Without",
]

# Making a dataclass takes longer than many a query: those that a search does without are made when first asked for.
_LATER = ("mindex.model.reports", "mindex.model.consolidation")


def __getattr__(name: str) -> object:
    for module in map(import_module, _LATER if name in __all__ else ()):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
