"""What an extension may import, beside `mindex` itself: the types of each kind of extension, and a few helpers.

Every name in `__all__` is public, here and in `mindex`; nothing else is. An extension is a package that registers entry
points (docs/extending.md) and says with `MINDEX_INTERFACE = 1`, in its top-level package or module, for which version
of this interface it was written.

`INTERFACE_VERSION` rises when a name is removed or changes its meaning. A name that is to go is deprecated first: it
works, with a DeprecationWarning that names its replacement, for two minor releases at least. Extensions that were
written for an older version are loaded until a name that this version had is removed.

A name is imported when it is first used: an importer does not pay for the SDK of MCP.
"""

from importlib import import_module
from typing import TYPE_CHECKING
from warnings import warn

if TYPE_CHECKING:
    from mindex.analyzer import analyze_record
    from mindex.cli.open_memory import Context
    from mindex.clock import from_iso, now_ms
    from mindex.config import Settings, load_settings
    from mindex.datatypes import AllOf, AnyOf, Collection, Document, Model, Phrase, Prefix, Term, VectorArray, Without
    from mindex.entry_points import INTERFACE as INTERFACE_VERSION
    from mindex.errors import GenerationError, ProviderError, RerankError
    from mindex.mcp.dialect import Dialect, Tools
    from mindex.mcp.tools import READS, REFRESHES, REVISES, Toolset, tool, tool_result
    from mindex.providers.base import ProviderSettings
    from mindex.providers.embed.base import Embedder
    from mindex.providers.generate.base import Generator, Prompt
    from mindex.providers.rerank.base import Reranker
    from mindex.store.base import Engine, OpenOptions, Store, unsupported
    from mindex.store.export_rows import Accesses, ExportRow, Link
    from mindex.store.open import open_store
    from mindex.store.results import (
        ChunkCounts,
        CollectionCount,
        DocumentUpdate,
        KeywordQuery,
        KeywordResult,
        Label,
        NearestRecords,
        Page,
        RankingContext,
        RankingSignals,
        ScoredRecord,
        StoreStatus,
        TermStatistics,
    )
    from mindex.transfer.importer_base import DocumentRows, Importer, SkippedRow, foreign_id, memory_row
    from mindex.user_folders import cache_folder

__all__ = [
    "INTERFACE_VERSION", "READS", "REFRESHES", "REVISES", "Accesses", "AllOf", "AnyOf", "ChunkCounts", "Collection",
    "CollectionCount", "Context", "Dialect", "Document", "DocumentRows", "DocumentUpdate", "Embedder", "Engine",
    "ExportRow", "GenerationError", "Generator", "Importer", "KeywordQuery", "KeywordResult", "Label", "Link", "Model",
    "NearestRecords", "OpenOptions", "Page", "Phrase", "Prefix", "Prompt", "ProviderError", "ProviderSettings",
    "RankingContext", "RankingSignals", "RerankError", "Reranker", "ScoredRecord", "Settings", "SkippedRow", "Store",
    "StoreStatus", "Term", "TermStatistics", "Tools", "Toolset", "VectorArray", "Without", "analyze_record",
    "cache_folder", "foreign_id", "from_iso", "load_settings", "memory_row", "now_ms", "open_store",
    "tool", "tool_result", "unsupported",
]  # fmt: skip

_MODULES = {
    "mindex.analyzer": "analyze_record",
    "mindex.cli.open_memory": "Context",
    "mindex.clock": "from_iso now_ms",
    "mindex.config": "Settings load_settings",
    "mindex.errors": "GenerationError ProviderError RerankError",
    "mindex.mcp.dialect": "Dialect Tools",
    "mindex.mcp.tools": "READS REFRESHES REVISES Toolset tool tool_result",
    "mindex.datatypes": "AllOf AnyOf Collection Document Model Phrase Prefix Term VectorArray Without",
    "mindex.providers.base": "ProviderSettings",
    "mindex.providers.embed.base": "Embedder",
    "mindex.providers.generate.base": "Generator Prompt",
    "mindex.providers.rerank.base": "Reranker",
    "mindex.store.base": "Engine OpenOptions Store unsupported",
    "mindex.store.export_rows": "Accesses ExportRow Link",
    "mindex.store.open": "open_store",
    "mindex.store.results": "ChunkCounts CollectionCount DocumentUpdate KeywordQuery KeywordResult Label NearestRecords"
    " Page RankingContext RankingSignals ScoredRecord StoreStatus TermStatistics",
    "mindex.transfer.importer_base": "DocumentRows Importer SkippedRow foreign_id memory_row",
    "mindex.user_folders": "cache_folder",
}
_DEPRECATED: dict[str, str] = {}  # a name that is to go → what to use instead


def __getattr__(name: str) -> object:
    if name in _DEPRECATED:
        warn(f"mindex.extension.{name} is deprecated: {_DEPRECATED[name]}", DeprecationWarning, stacklevel=2)
    if name == "INTERFACE_VERSION":
        return import_module("mindex.entry_points").INTERFACE
    for module, names in _MODULES.items():
        if name in names.split():
            return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
