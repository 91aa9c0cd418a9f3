"""The values that packages exchange: frozen dataclasses that depend on no other package."""

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
    QueryTerms,
    Range,
    Term,
    Without,
)
from mindex.model.records import (
    DESCRIPTIVE_FIELDS,
    KINDS,
    TYPES,
    Change,
    Chunk,
    Collection,
    Conflict,
    Document,
    Kind,
    Record,
)
from mindex.model.results import Answer, GetResult, Hit, Progress, Report, Stage, Tier, Trace, Usage
from mindex.model.vectors import Model, RecordVectors, Role, VectorArray

if TYPE_CHECKING:
    from mindex.model.consolidation import Consolidation, ExtractionReport, Proposal
    from mindex.model.reports import (
        AddResult,
        Check,
        CollectionReport,
        CollectionStatus,
        ContextPlan,
        DueSkill,
        EmbeddingStatus,
        IndexReport,
        LabelCount,
        MemoryInConflict,
        MemoryStatistics,
        ProjectSource,
        PurgeResult,
        SecretFinding,
        SecretsRemoved,
        Session,
        SessionPage,
        SimilarMemory,
        SkippedFile,
        Status,
        TimelineEvent,
    )

__all__ = [
    "DESCRIPTIVE_FIELDS", "KINDS", "MODES", "TYPES", "AddResult", "AllOf", "Answer", "AnyOf", "Change", "Check",
    "Chunk", "Collection", "CollectionReport", "CollectionStatus", "Conflict", "Consolidation", "ContextPlan",
    "Document", "DueSkill", "EmbeddingStatus", "ExtractionReport", "Filters", "GetResult", "Hit", "IndexReport",
    "KeywordNode", "Kind", "LabelCount", "MemoryInConflict", "MemoryStatistics", "Mode", "Model", "Phrase", "Prefix",
    "Progress", "ProjectSource", "Proposal", "PurgeResult", "Query", "QueryTerms", "Range", "Record", "RecordVectors",
    "Report", "Role", "SecretFinding", "SecretsRemoved", "Session", "SessionPage", "SimilarMemory", "SkippedFile",
    "Stage", "Status", "Term", "Tier", "TimelineEvent", "Trace", "Usage", "VectorArray", "Without",
]  # fmt: skip

# Making a dataclass takes longer than many a query: those that a search does not need are made when first used.
_LATER = ("mindex.model.reports", "mindex.model.consolidation")


def __getattr__(name: str) -> object:
    for module in map(import_module, _LATER if name in __all__ else ()):
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
