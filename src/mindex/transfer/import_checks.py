"""What every row must be to be imported, whichever importer read it."""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import chain
from math import isfinite

from mindex.clock import FIRST_MS, LAST_MS
from mindex.datatypes import KINDS, Record
from mindex.datatypes.record_properties import ENTRY_PROPERTIES
from mindex.entries import validation
from mindex.entries.field_specs import FIELDS, validate_fields
from mindex.entries.skill_schedule import validate_trigger
from mindex.redaction.redactor import Redactor
from mindex.store.export_rows import ExportRow
from mindex.transfer.import_redaction import free_texts
from mindex.transfer.jsonl_rows import InvalidRow

_ID = re.compile(r"[a-z0-9]{4,64}")
_MAX_BYTES = 8 * 1024 * 1024
_TIMES = tuple(one for one in ENTRY_PROPERTIES if one.value == "time")
_NAMES = tuple(one.name for one in ENTRY_PROPERTIES if one.value == "text" and not one.redacted)


def check_row(row: ExportRow) -> None:
    """Raise InvalidRow or UsageError for a row that the store could not hold."""
    record = row.record
    if not _ID.fullmatch(record.id):
        raise InvalidRow(f"'{record.id:.40}' is not a mindex id: at least four letters and digits")
    if record.kind not in KINDS or (record.kind == "chunk") != bool(record.document):
        raise InvalidRow(f"'{record.kind:.40}' is not a kind of entry")
    if record.agent == "*" or (record.agent and not record.agent.strip()):
        raise InvalidRow("`agent` is blank or '*'; an imported row needs one agent")
    _check_kind(record)
    for state in row.states():
        _check_state(state)
    log = row.accesses.log if row.accesses else ()
    logged = (*((row.accesses.last_at,) if row.accesses else ()), *(one.at for one in log))
    for moment in (*(change.at for change in row.history), *(link.created_at for link in row.links), *logged):
        _check_time(moment)
    if not all(one.score is None or isfinite(one.score) for one in log):
        raise InvalidRow("an access has a score that is not a number")
    if not all(isfinite(link.weight) for link in row.links):
        raise InvalidRow("a link has a weight that is not a number")
    _check_texts(row)
    if not _is_plain_name(record.agent):
        raise InvalidRow("the name of its agent contains a secret or characters that cannot be shown")
    if record.kind != "chunk":
        validation.validate_record(record)


@lru_cache(maxsize=256)
def _is_plain_name(name: str) -> bool:
    return name.isprintable() and Redactor().redact_text(name) == name


def _check_kind(record: Record) -> None:
    if record.kind == "memory":
        validation.validate_text(record.text)
    elif record.kind == "profile" and not isinstance(record.fields.get("data"), Mapping):
        raise InvalidRow("a profile without data is none")
    elif record.kind in FIELDS and record.retired_at is None:
        own = {name: value for name, value in record.fields.items() if name != "foreign_ids"}
        validate_fields(record.kind, own, imported=True)
        if record.kind == "skill":
            validate_trigger(str(record.fields.get("trigger_type")), record.fields.get("trigger_config"))


def _check_state(state: Record) -> None:
    if state.kind == "memory":
        validation.validate_type(state.type)
    if state.importance is not None:
        validation.validate_importance(state.importance)
    if state.confidence is not None:
        validation.validate_confidence(state.confidence)
    for one in _TIMES:
        if (moment := getattr(state, one.name)) != one.default:
            _check_time(moment)


def _check_time(moment: object) -> None:
    if not isinstance(moment, int) or not FIRST_MS <= moment <= LAST_MS:
        raise InvalidRow("it has a time that no calendar holds")


def _check_texts(row: ExportRow) -> None:
    size = 0
    try:
        for text in chain(free_texts(row), _names(row)):
            size += len(text.encode())
    except UnicodeEncodeError:
        raise InvalidRow("it holds half a character (a lone surrogate)") from None
    if size > _MAX_BYTES * (1 + len(row.history)):
        raise InvalidRow(f"it is longer than {_MAX_BYTES // 2**20} MiB")


def _names(row: ExportRow) -> Iterator[str]:
    """Yield the other texts: names and ids, which cannot have a secret."""
    for state in row.states():
        yield from (getattr(state, name) for name in _NAMES)
    yield from (change.action for change in row.history)
    for link in row.links:
        yield from (link.target, link.kind)
    yield from (one.model for one in row.vectors)
