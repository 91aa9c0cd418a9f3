"""Which names are public: these lists, and nothing else. A change here is a change of the interface."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import mindex
from mindex import extension

_LIBRARY = """
    AmbiguousIdError Answer Check CollectionError ConfigError ConflictError EmbeddingError Filters ForbiddenPathError
    ForeignDatabaseError GetResult Hit IndexReport Memory MindexError NotFoundError Progress Record SchemaError Stage
    Status StoreBusyError StoreError Trace UsageError
"""
_EXTENSION = """
    INTERFACE_VERSION READS REFRESHES REVISES Accesses AllOf AnyOf ChunkCounts Collection CollectionCount Context
    Dialect Document DocumentRows DocumentUpdate Embedder Engine ExportRow GenerationError Generator Importer
    KeywordQuery KeywordResult Label Link Model NearestRecords OpenOptions Page Phrase Prefix Prompt ProviderError
    ProviderSettings RankingContext RankingSignals RerankError Reranker ScoredRecord Settings SkippedRow Store
    StoreStatus Term TermStatistics Tools Toolset VectorArray Without analyze_record cache_folder foreign_id from_iso
    load_settings memory_row now_ms open_store tool tool_result unsupported
"""


def test_the_library_has_these_names() -> None:
    assert sorted(mindex.__all__) == sorted(_LIBRARY.split())


def test_the_interface_of_extensions_has_these_names() -> None:
    assert sorted(extension.__all__) == sorted(_EXTENSION.split())
    assert len(extension.__all__) <= 60
    assert extension.INTERFACE_VERSION == 1


def test_every_name_is_there_and_is_what_type_checkers_see() -> None:
    assert all(getattr(extension, name) is not None for name in extension.__all__)
    tree = ast.parse(Path(extension.__file__).read_text(encoding="utf-8"))
    (checked,) = (node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in checked.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    used = {name: (module, name) for module, names in extension._MODULES.items() for name in names.split()}
    assert seen == {**used, "INTERFACE_VERSION": ("mindex.entry_points", "INTERFACE")}
    assert sorted(seen) == sorted(extension.__all__)


def test_a_name_that_is_not_public_is_an_error() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Memory'"):
        _ = extension.Memory  # type: ignore[attr-defined]


def test_a_deprecated_name_works_and_names_its_replacement(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(extension._DEPRECATED, "now_ms", "use time.time()")
    with pytest.warns(DeprecationWarning, match=r"mindex\.extension\.now_ms is deprecated: use time\.time"):
        assert extension.now_ms() > 0
