"""Looks up references: ids, numbers, addresses, paths, line spans, globs and special references become records."""

import re
from collections.abc import Iterator, Sequence
from urllib.parse import unquote

from mindex.access_log import AccessLog
from mindex.datatypes import KINDS, GetResult, Record, Usage
from mindex.entries.field_entries import FieldEntries
from mindex.entries.references import foreign_ids, numbered_id, resolve_id
from mindex.errors import DamagedRowError, ForbiddenPathError, NotFoundError, UsageError
from mindex.limits import MAX_FIELD, MAX_REFERENCES
from mindex.lookup.indexed_files import IndexedFiles
from mindex.lookup.special_references import SpecialReferences
from mindex.search.completion import current_anchor
from mindex.store.base import Store
from mindex.store.damage_notes import damage_notes
from mindex.times.typed import parse_time
from mindex.values import dataclass

_SPAN = re.compile(r"(?P<path>.+?):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
_ID = re.compile(r"[a-z0-9]{3,64}", re.IGNORECASE)
_ADDRESS = re.compile(r"(?P<scheme>doc|memory)://(?P<name>.+)", re.IGNORECASE)
_NUMBER = re.compile(r"#?(?P<number>\d{1,18})")
_MAX_MATCHES = 100
_LONGEST_REASON = 200


@dataclass(frozen=True, slots=True)
class Lookup:
    """`memory.lookup`: read records and files. Files are redacted when they are read, as when they are indexed."""

    _store: Store
    _files: IndexedFiles
    _special: SpecialReferences
    _access_log: AccessLog
    _agent: str
    _field_entries: tuple[FieldEntries, ...]  # contacts, projects and skills, which are also known by their names

    def get(self, *references: str, as_of: str | None = None) -> GetResult:
        """See `Memory.get`. References without a record are listed as missing, not raised."""
        moment = parse_time(as_of) if as_of else None
        if any(len(reference) > MAX_FIELD for reference in references):
            raise UsageError("a reference is too long", f"write at most {MAX_FIELD:,} characters")
        if not any(reference.strip(" ,\t\n") for reference in references):
            raise UsageError("missing argument", "pass an id, a path, path:10-40 or a glob")
        records: dict[str, Record] = {}
        missing: list[str] = []
        notes: list[str] = []
        why: dict[str, None] = {}
        named = list(self._split(references))
        if len(named) > MAX_REFERENCES:
            raise UsageError(
                f"{len(named)} references are too many at once", f"ask for at most {MAX_REFERENCES}, or use a glob"
            )
        for reference in named:
            special = None
            found: Sequence[Record] = ()
            try:
                special = self._special.resolve(reference, as_of)
                found = special.records if special else self._resolve(reference, moment)
            except (NotFoundError, ForbiddenPathError, DamagedRowError) as error:
                why[error.message[:_LONGEST_REASON]] = None
            if special:
                notes += special.notes
            elif not found:
                missing.append(reference)
            for record in found:
                records.setdefault(f"{record.id}:{record.first_line}-{record.last_line}", record)
        shown = tuple(map(current_anchor, records.values()))
        usage = self._usage(shown)  # as it was before this access
        self._access_log.log_get(shown)
        return GetResult(shown, tuple(missing), (*notes, *damage_notes(self._store)), tuple(why), usage)

    def _usage(self, records: Sequence[Record]) -> dict[str, Usage]:
        """How often each entry was returned, and when last; chunks are not counted."""
        entries = [record.id for record in records if record.kind in KINDS and record.kind != "chunk"]
        signals = self._store.retrieval.ranking_signals(entries) if entries else {}
        return {id_: Usage(one.access_count, one.last_accessed) for id_, one in signals.items()}

    def read_file(self, path: str) -> Record:
        """Return a whole indexed file as it is on disk now. Raises NotFoundError and ForbiddenPathError."""
        return self._files.read(self._files.find_one(path))

    def _split(self, references: Sequence[str]) -> Iterator[str]:
        """A comma separates references, unless a file has that name."""
        for reference in references:
            printable = reference.encode("utf-8", "backslashreplace").decode()  # a broken name cannot be looked up
            if "," in printable and self._store.files.find_documents(printable):
                yield printable
            else:
                yield from (part.strip() for part in printable.split(",") if part.strip())

    def _resolve(self, reference: str, as_of: int | None) -> Sequence[Record]:
        """The records of an id, a number, a file or its lines; else those that another program knew by this id, or
        the contacts, projects and skills of this name.

        Raises NotFoundError, ForbiddenPathError and AmbiguousIdError.
        """
        if reference.startswith("#"):
            numbered = self._numbered(reference)
            if found := self._live(numbered, as_of) or self._refuse_forgotten(numbered):
                return found
            raise NotFoundError(f"{self._agent} has no entry {reference}", "search for it first")
        address = _ADDRESS.fullmatch(reference)
        name = unquote(address["name"]) if address else reference
        is_file = address is not None and address["scheme"].lower() == "doc"
        if not is_file and _ID.fullmatch(name):
            # What another program called exactly so wins over ids that only begin so.
            exact = not name.isdecimal() and self._store.retrieval.record(name.lower()) is None
            if not (exact and self._foreign(name)) and (id_ := resolve_id(self._store, name)):
                return self._live([id_], as_of) or self._refuse_forgotten([id_])
        refused = None
        try:
            found = list(self._file_records(name))
        except ForbiddenPathError as error:  # the other program may have called it by an absolute path
            found, refused = [], error
        ids = [] if found or is_file else [*self._numbered(name), *self._foreign(reference, name)]
        found = found or self._live(ids, as_of)
        if not found and address is None:  # `memory://ID` is an id and no name
            found = self._live([one.id for things in self._field_entries for one in things.named(name)], as_of)
        if not found:
            self._refuse_forgotten(ids)
        if not found and refused is not None:
            raise refused
        return found

    def _numbered(self, reference: str) -> Sequence[str]:
        """The id of the agent's entry with a number (`#5`). Raises AmbiguousIdError when several agents have one."""
        match = _NUMBER.fullmatch(reference)
        if match is None:
            return ()
        agents = self._store.entries.agents() if self._agent == "*" else (self._agent,)
        id_ = numbered_id(self._store, int(match["number"]), agents)
        return () if id_ is None else (id_,)

    def _foreign(self, *references: str) -> Sequence[str]:
        """Ids of the records that another program knew by one of these, alone or as PROGRAM:ID.

        A bare number is a native one.
        """
        for reference in (one for one in dict.fromkeys(references) if not one.isdecimal()):
            if found := foreign_ids(self._store, reference):
                return self._of_agent(found)[:_MAX_MATCHES]
        return ()

    def _of_agent(self, ids: Sequence[str]) -> Sequence[str]:
        """Those of the records that the agent sees: its own entries, and files. Ids of other programs are short."""
        records = (self._store.retrieval.record(id_) for id_ in ids)
        return [one.id for one in records if one and (one.kind == "chunk" or self._agent in ("*", one.agent))]

    def _refuse_forgotten(self, ids: Sequence[str]) -> Sequence[Record]:
        """Raise NotFoundError for an entry that is forgotten; return nothing if there is none."""
        for id_ in ids:
            if (record := self._store.retrieval.record(id_)) is not None and record.retired_at is not None:
                raise NotFoundError(f"'{id_}' is forgotten; `mindex restore {id_}` brings it back")
        return ()

    def _live(self, ids: Sequence[str], as_of: int | None) -> list[Record]:
        return [record for id_ in dict.fromkeys(ids) if (record := self._record(id_, as_of))]

    def _file_records(self, reference: str) -> Iterator[Record]:
        """Whole files by path or glob, or lines of them."""
        span = _SPAN.fullmatch(reference)
        if span and (documents := self._files.find(span["path"])):
            first = max(1, int(span["first"]))
            last = int(span["last"]) if span["last"] else first
            if last < int(span["first"]):
                swapped = f"{span['path']}:{last}-{first}"
                raise UsageError(f"'{reference}' ends before it begins", f"write the smaller number first: {swapped}")
            yield from self._files.read_lines(documents, first, last)
            return
        for document in self._files.find(reference)[:_MAX_MATCHES]:
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
