"""The values that packages exchange: frozen dataclasses that depend on no other package."""

from importlib import import_module
from typing import TYPE_CHECKING

from mindex.datatypes.query import (
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
from mindex.datatypes.records import (
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
from mindex.datatypes.results import Answer, GetResult, Hit, Progress, Report, Stage, Tier, Trace, Usage
from mindex.datatypes.vectors import Model, RecordVectors, Role, VectorArray

if TYPE_CHECKING:
    from mindex.datatypes.access_tokens import Token
    from mindex.datatypes.administration import Grant
    from mindex.datatypes.consolidation import FROM, Consolidation, ExtractionReport, Proposal
    from mindex.datatypes.guidance import Guidance
    from mindex.datatypes.program_numbers import Slot
    from mindex.datatypes.query_time import QueryTime
    from mindex.datatypes.record_properties import ENTRY_PROPERTIES, PROPERTIES, RecordProperty
    from mindex.datatypes.reports import (
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
    from mindex.datatypes.spaces import EmbedderSpec, Space

__all__ = [
    "DESCRIPTIVE_FIELDS", "ENTRY_PROPERTIES", "FROM", "IMPORTED", "KINDS", "MODES", "PROPERTIES", "TYPES",
    "AddResult", "AllOf", "Answer", "AnyOf", "Change", "Check", "Chunk", "Collection", "CollectionReport",
    "CollectionStatus", "Conflict", "Consolidation", "ContextPlan", "Document", "DueSkill", "EmbedderSpec",
    "EmbeddingStatus", "ExtractionReport", "Filters", "GetResult", "Grant", "Guidance", "Hit", "IndexReport",
    "KeywordNode", "Kind", "LabelCount", "MemoryInConflict", "MemoryStatistics", "Mode", "Model", "Phrase",
    "Prefix", "Progress", "ProjectSource", "Proposal", "PurgeResult", "Query", "QueryTerms", "QueryTime", "Range",
    "Record", "RecordProperty", "RecordVectors", "Report", "Role", "SecretFinding", "SecretsRemoved", "Session",
    "SessionPage", "SimilarMemory", "SkippedFile", "Slot", "SourceStatus", "SourceType", "Space", "Stage", "Status",
    "Term", "Tier", "TimelineEvent", "Token", "Trace", "Usage", "VectorArray", "Without",
]  # fmt: skip

# Making a dataclass takes longer than many a query: those that a search does not need are in these modules, of which
# the last ones take longest, and are made when first used.
_LATER = (
    "guidance", "spaces", "program_numbers", "access_tokens", "administration", "record_properties", "query_time",
    "consolidation", "reports",
)  # fmt: skip


def __getattr__(name: str) -> object:
    for module in _LATER if name in __all__ else ():
        if hasattr(found := import_module(f"{__name__}.{module}"), name):
            return getattr(found, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
