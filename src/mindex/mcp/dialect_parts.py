"""What the dialects that are released with mindex are made of: views of records, scopes and checks."""

from mindex.analyzer import analyze
from mindex.entries import json_paths
from mindex.entries.entities import extract_entities
from mindex.entries.field_specs import FIELDS, FieldEntryKind
from mindex.entries.importance import estimate_importance
from mindex.entries.json_paths import leaves
from mindex.entries.note_files import ROOT, NoteWrite, checked_path
from mindex.http_access.current_principal import require_write
from mindex.mcp.memory_host import MemoryHost
from mindex.present.answer_view import view_answer
from mindex.present.fence import body, one_line
from mindex.present.record_view import summary_of, view_record
from mindex.present.records_view import view_records
from mindex.present.text import note_lines
from mindex.present.to_json import Json, to_json, worded
from mindex.private_files import make_private_folder
from mindex.redaction.redactor import Redactor
from mindex.regular_files import read_regular
from mindex.search.option_types import Scope, SearchOptions
from mindex.search.query import MAX_LIMIT, parse
from mindex.store.base import RankingSignals
from mindex.times.typed import parse_expiry, parse_time
from mindex.web.site import status_of

__all__ = [
    "FIELDS", "MAX_LIMIT", "ROOT", "FieldEntryKind", "Json", "MemoryHost", "NoteWrite", "RankingSignals",
    "Redactor", "Scope", "SearchOptions", "analyze", "body", "checked_path", "estimate_importance",
    "extract_entities", "json_paths", "leaves", "make_private_folder", "note_lines", "one_line", "parse",
    "parse_expiry", "parse_time", "read_regular", "require_write", "status_of", "summary_of", "to_json",
    "view_answer", "view_record", "view_records", "worded",
]  # fmt: skip
