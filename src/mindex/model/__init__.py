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
    IMPORTED,
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
    from mindex.model.administration import Grant
    from mindex.model.consolidation import FROM, Consolidation, ExtractionReport, Proposal
    from mindex.model.guidance import Guidance
    from mindex.model.program_numbers import Slot
    from mindex.model.record_properties import ENTRY_PROPERTIES, PROPERTIES, RecordProperty
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
        SourceStatus,
        SourceType,
        Status,
        TimelineEvent,
    )
    from mindex.model.spaces import EmbedderSpec, Space
    from mindex.model.tokens import Token

__all__ = [
    "DESCRIPTIVE_FIELDS", "ENTRY_PROPERTIES", "FROM", "IMPORTED", "KINDS", "MODES", "PROPERTIES", "TYPES",
    "AddResult", "AllOf", "Answer", "AnyOf", "Change", "Check", "Chunk", "Collection", "CollectionReport",
    "CollectionStatus", "Conflict", "Consolidation", "ContextPlan", "Document", "DueSkill", "EmbedderSpec",
    "EmbeddingStatus", "ExtractionReport", "Filters", "GetResult", "Grant", "Guidance", "Hit", "IndexReport",
    "KeywordNode", "Kind", "LabelCount", "MemoryInConflict", "MemoryStatistics", "Mode", "Model", "Phrase",
    "Prefix", "Progress", "ProjectSource", "Proposal", "PurgeResult", "Query", "QueryTerms", "Range", "Record",
    "RecordProperty", "RecordVectors", "Report", "Role", "SecretFinding", "SecretsRemoved", "Session",
    "SessionPage", "SimilarMemory", "SkippedFile", "Slot", "SourceStatus", "SourceType", "Space", "Stage", "Status",
    "Term", "Tier", "TimelineEvent", "Token", "Trace", "Usage", "VectorArray", "Without",
]  # fmt: skip

# Making a dataclass takes longer than many a query: those that a search does not need are made when first used.
_LATER = {
    "mindex.model.administration": ("Grant"),
    "mindex.model.consolidation": ("FROM Consolidation ExtractionReport Proposal"),
    "mindex.model.guidance": ("Guidance"),
    "mindex.model.program_numbers": ("Slot"),
    "mindex.model.record_properties": ("ENTRY_PROPERTIES PROPERTIES RecordProperty"),
    "mindex.model.reports": (
        "AddResult Check CollectionReport CollectionStatus ContextPlan DueSkill EmbeddingStatus IndexReport "
        "LabelCount MemoryInConflict MemoryStatistics ProjectSource PurgeResult SecretFinding SecretsRemoved "
        "Session SessionPage SimilarMemory SkippedFile SourceStatus SourceType Status TimelineEvent"
    ),
    "mindex.model.spaces": ("EmbedderSpec Space"),
    "mindex.model.tokens": ("Token"),
}


def __getattr__(name: str) -> object:
    for module, names in _LATER.items():
        if name in names.split():
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
