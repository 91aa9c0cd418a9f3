"""What the engines that are released with mindex are made of: rules of every engine, and rows that travel."""

from mindex.database_url import refuse_password
from mindex.embedding_text import embedded_text
from mindex.fail_fast import fails_fast
from mindex.nul import without_nul
from mindex.private_files import make_private_folder
from mindex.store import record_json
from mindex.store.background import BackgroundWriter
from mindex.store.cache_kinds import CONTEXT_CACHE, TEXT_CACHES, context_key
from mindex.store.damage_notes import first_names
from mindex.store.export_rows import (
    Accesses,
    ExistingRecord,
    ExportedVectors,
    ExportRow,
    ExportSnapshot,
    Extraction,
    ImportPreview,
    Link,
    RestoreOptions,
    RestoreOutcome,
    by_program,
)
from mindex.store.record_json import decode_object, encode
from mindex.store.results import (
    Access,
    KeywordQuery,
    KeywordResult,
    Label,
    NearestRecords,
    Neighbours,
    NewLink,
    Page,
    RankingContext,
    RankingSignals,
    ScoredRecord,
    TermStatistics,
    TokenChoice,
)
from mindex.store.rules import bm25, entry_rules, program_numbers, spaces
from mindex.store.rules.access_tokens import name_taken
from mindex.store.rules.chunks import PlacedChunk, StoredChunk, plan_chunks
from mindex.store.rules.code_tags import TaggedChunk, correct_tags
from mindex.store.rules.filters import glob_expression, glob_matches, holds_literally, is_glob, path_matches
from mindex.store.rules.import_entries import restore
from mindex.store.rules.kind_groups import KindGroup, first_of_each_group, kind_group
from mindex.store.rules.last_change import is_as_last_changed
from mindex.store.rules.link_targets import targets_by_source
from mindex.store.rules.merged_records import duplicate_of, put_merged
from mindex.store.rules.program_numbers import former_slots
from mindex.store.rules.spaces import (
    Former,
    SpaceRoles,
    decode_canary,
    describe_space,
    described_space,
    encode_canary,
    query_vector,
    require_role,
)
from mindex.store.rules.waiting_cache_values import WaitingCacheValues
from mindex.store.sql import caches, space_rows
from mindex.store.sql.access_tokens import SqlTokens
from mindex.store.sql.caches import SqlCaches
from mindex.store.sql.dialect import Condition, Dialect, join
from mindex.store.sql.entries import SqlEntries
from mindex.store.sql.entry_statements import SqlEntryStatements
from mindex.store.sql.filters import live_records, path_condition
from mindex.store.sql.retrieval import SqlRetrieval
from mindex.store.sql.statements import HistoryRows, RecordRows
from mindex.store.sql.sync import SqlSync
from mindex.store.sql.usage import read_usage
from mindex.store.sql.vector_store import SqlVectorStore
from mindex.store.sqlite.store import SqliteStore
from mindex.store.sync_rows import MergedRecord, SyncRow
from mindex.store.usage_counts import UsageCounts

__all__ = [
    "CONTEXT_CACHE",
    "TEXT_CACHES",
    "Access",
    "Accesses",
    "BackgroundWriter",
    "Condition",
    "Dialect",
    "ExistingRecord",
    "ExportRow",
    "ExportSnapshot",
    "ExportedVectors",
    "Extraction",
    "Former",
    "HistoryRows",
    "ImportPreview",
    "KeywordQuery",
    "KeywordResult",
    "KindGroup",
    "Label",
    "Link",
    "MergedRecord",
    "NearestRecords",
    "Neighbours",
    "NewLink",
    "Page",
    "PlacedChunk",
    "RankingContext",
    "RankingSignals",
    "RecordRows",
    "RestoreOptions",
    "RestoreOutcome",
    "ScoredRecord",
    "SpaceRoles",
    "SqlCaches",
    "SqlEntries",
    "SqlEntryStatements",
    "SqlRetrieval",
    "SqlSync",
    "SqlTokens",
    "SqlVectorStore",
    "SqliteStore",
    "StoredChunk",
    "SyncRow",
    "TaggedChunk",
    "TermStatistics",
    "TokenChoice",
    "UsageCounts",
    "WaitingCacheValues",
    "bm25",
    "by_program",
    "caches",
    "context_key",
    "correct_tags",
    "decode_canary",
    "decode_object",
    "describe_space",
    "described_space",
    "duplicate_of",
    "embedded_text",
    "encode",
    "encode_canary",
    "entry_rules",
    "fails_fast",
    "first_names",
    "first_of_each_group",
    "former_slots",
    "glob_expression",
    "glob_matches",
    "holds_literally",
    "is_as_last_changed",
    "is_glob",
    "join",
    "kind_group",
    "live_records",
    "make_private_folder",
    "name_taken",
    "path_condition",
    "path_matches",
    "plan_chunks",
    "program_numbers",
    "put_merged",
    "query_vector",
    "read_usage",
    "record_json",
    "refuse_password",
    "require_role",
    "restore",
    "space_rows",
    "spaces",
    "targets_by_source",
    "without_nul",
]  # fmt: skip
