"""What the importers that are released with mindex make rows with: checks, ids and safe reading."""

from mindex.entries.field_specs import (
    FIELD_ENTRY_KINDS,
    FIELDS,
    FieldEntryKind,
    FieldSpec,
    record_values,
    validate_fields,
)
from mindex.entries.profile_record import profile_id, with_unchecked_data
from mindex.entries.skill_schedule import validate_trigger
from mindex.entries.turns import make_turn
from mindex.entries.validation import json_size
from mindex.files.document_metadata import ROOT_DOMAIN, domain_of_path
from mindex.limits import MAX_VALUES_BYTES
from mindex.regular_files import open_regular
from mindex.store.base import Access
from mindex.store.export_rows import Link
from mindex.store.sqlite.errors import is_busy
from mindex.transfer.importer_base import (
    EMPTY,
    DocumentRows,
    ExportRow,
    Importer,
    OtherRows,
    ReadRow,
    SkippedRow,
    accesses,
    foreign_id,
    memory_row,
)
from mindex.transfer.importers import foreign_values
from mindex.transfer.importers.folder_files import LINK_OUT, leads_out
from mindex.transfer.importers.foreign_values import json_text
from mindex.transfer.importers.json_lines import Json, first_objects, read_json, read_objects
from mindex.transfer.jsonl_rows import LARGEST_NUMBER

__all__ = [
    "EMPTY",
    "FIELDS",
    "FIELD_ENTRY_KINDS",
    "LARGEST_NUMBER",
    "LINK_OUT",
    "MAX_VALUES_BYTES",
    "ROOT_DOMAIN",
    "Access",
    "DocumentRows",
    "ExportRow",
    "FieldEntryKind",
    "FieldSpec",
    "Importer",
    "Json",
    "Link",
    "OtherRows",
    "ReadRow",
    "SkippedRow",
    "accesses",
    "domain_of_path",
    "first_objects",
    "foreign_id",
    "foreign_values",
    "is_busy",
    "json_size",
    "json_text",
    "leads_out",
    "make_turn",
    "memory_row",
    "open_regular",
    "profile_id",
    "read_json",
    "read_objects",
    "record_values",
    "validate_fields",
    "validate_trigger",
    "with_unchecked_data",
]  # fmt: skip
