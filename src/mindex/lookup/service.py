"""`get` and `read_file`: references resolved to records, each access logged."""

from __future__ import annotations

from dataclasses import replace

from mindex.access_log import AccessLog
from mindex.clock import parse_time
from mindex.lookup.references import find_records, read_file
from mindex.lookup.special_references import SpecialReferences
from mindex.model import GetResult, Record
from mindex.redaction.redactor import Redactor
from mindex.search.service import current_anchor
from mindex.store.base import Store


class Lookup:
    """Looks up records of one store. Files are read from disk and redacted: what is not stored is not shown either."""

    def __init__(self, store: Store, redactor: Redactor, access_log: AccessLog, special: SpecialReferences) -> None:
        self._store = store
        self._redactor = redactor.for_reading()
        self._access_log = access_log
        self._special = special

    def get(self, *references: str, as_of: str | None = None) -> GetResult:
        """See `Memory.get`."""
        moment = parse_time(as_of) if as_of else None
        found = find_records(
            self._store,
            references,
            self._redact_file,
            moment,
            special=lambda reference: self._special.resolve(reference, as_of),
        )
        self._access_log.log_get(found.records)
        return replace(found, records=tuple(map(current_anchor, found.records)))

    def read_file(self, path: str) -> Record:
        """One indexed file, whole, as it is on disk now. Raises NotFoundError and ForbiddenPathError."""
        return read_file(self._store, path, self._redact_file)

    def _redact_file(self, text: str) -> str:
        return self._redactor.redact_text(text, keep_lines=True)
