"""Looks up references: ids, short ids, paths, line spans, globs and special references become records."""

import re
from collections.abc import Iterator, Sequence

from mindex.access_log import AccessLog
from mindex.errors import ForbiddenPathError, NotFoundError, UsageError
from mindex.lookup.indexed_files import IndexedFiles
from mindex.lookup.links import Links
from mindex.lookup.special_references import SpecialReferences
from mindex.memories.entries import resolve_id
from mindex.model import GetResult, Record
from mindex.search.service import current_anchor
from mindex.store.base import Store
from mindex.time_parser import parse_time
from mindex.values import dataclass

_SPAN = re.compile(r"(?P<path>.+?):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
_ID = re.compile(r"[a-z0-9]{3,64}", re.IGNORECASE)
_MOST_MATCHES = 100
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Lookup:
    """Reached as `memory.lookup`. Files are redacted when they are read: what is not stored is not shown either."""

    _store: Store
    _files: IndexedFiles
    _special: SpecialReferences
    _links: Links
    _access_log: AccessLog

    def get(self, *references: str, as_of: str | None = None) -> GetResult:
        """See `Memory.get`. References without a record are listed as missing, not raised."""
        moment = parse_time(as_of) if as_of else None
        if not any(reference.strip(" ,\t\n") for reference in references):
            raise UsageError("nothing was asked for", "name an id, a file, lines of a file or a glob")
        records: dict[str, Record] = {}
        missing: list[str] = []
        notes: list[str] = []
        why: dict[str, None] = {}
        for reference in self._split(references):
            resolved: Sequence[Record] | None = None
            linked = None
            try:
                linked = self._links.resolve(reference)
                resolved = linked.records if linked else self._special.resolve(reference, as_of)
                found = list(self._resolve(reference, moment) if resolved is None else resolved)
            except (NotFoundError, ForbiddenPathError) as error:
                found = []
                why[error.message[:_LONGEST_REASON]] = None
            if linked is not None:
                notes += linked.notes
            elif resolved is not None and not found:
                notes.append(f"nothing is {reference}")
            elif not found:
                missing.append(reference)
            for record in found:
                records.setdefault(f"{record.id}:{record.first_line}-{record.last_line}", record)
        self._access_log.log_get(list(records.values()))
        return GetResult(tuple(map(current_anchor, records.values())), tuple(missing), tuple(notes), tuple(why))

    def read_file(self, path: str) -> Record:
        """One indexed file, whole, as it is on disk now. Raises NotFoundError and ForbiddenPathError."""
        return self._files.read(self._files.find_one(path))

    def _split(self, references: Sequence[str]) -> Iterator[str]:
        """A comma separates references, unless a file has that name."""
        for reference in references:
            printable = reference.encode("utf-8", "backslashreplace").decode()  # a broken name cannot be looked up
            if "," in printable and self._store.files.find_documents(printable):
                yield printable
            else:
                yield from (part.strip() for part in printable.split(",") if part.strip())

    def _resolve(self, reference: str, as_of: int | None) -> Iterator[Record]:
        if _ID.fullmatch(reference) and (id_ := resolve_id(self._store, reference)):
            if record := self._record(id_, as_of):
                yield record
            return
        span = _SPAN.fullmatch(reference)
        if span and (documents := self._files.find(span["path"])):
            first = max(1, int(span["first"]))
            last = int(span["last"]) if span["last"] else first
            if last < int(span["first"]):
                swapped = f"{span['path']}:{last}-{first}"
                raise UsageError(f"'{reference}' ends before it begins", f"write the smaller number first: {swapped}")
            yield from self._files.read_lines(documents, first, last)
            return
        for document in self._files.find(reference)[:_MOST_MATCHES]:
            yield self._files.read(document)

    def _record(self, id_: str, as_of: int | None) -> Record | None:
        """A record as it is or was at a moment. Forgotten ones are not shown, superseded ones are."""
        record = self._store.retrieval.record(id_)
        if record is not None and record.kind != "chunk" and as_of is not None:
            changes = reversed(self._store.entries.history(id_))
            record = next((change.after for change in changes if change.at <= as_of), None)
        if record is None or (record.retired_at is not None and not record.superseded_by):
            return None
        return record
