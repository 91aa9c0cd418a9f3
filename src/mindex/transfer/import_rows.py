"""Import the rows of any importer: check them, redact their secrets, assign them to agents, store them in batches.

A row that was stored before, or before the process was killed, is known by its id or its text: a second import adds
only what is missing.
"""

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from mindex.clock import to_iso
from mindex.datatypes import Progress, Record, Report
from mindex.datatypes.program_numbers import NUMBERED_KINDS, Renumbered
from mindex.datatypes.transfer import ImportReport, MergedRow, TableReport
from mindex.entries.field_specs import UNIQUE
from mindex.errors import MindexError, StoreError
from mindex.nul import without_nul
from mindex.redaction.redactor import Redactor
from mindex.store.base import Store
from mindex.store.export_rows import ImportPreview, Link, RestoreOptions, RestoreOutcome
from mindex.transfer.imported_collections import DocumentRows, DocumentWriter
from mindex.transfer.imported_rows import (
    AgentMapping,
    NewIds,
    check_row,
    names_hold_secret,
    redact_document,
    redact_row,
    rows_with_secrets,
)
from mindex.transfer.importer_base import ExportRow, Importer, OtherRows, ReadRow, SkippedRow
from mindex.transfer.jsonl_format import InvalidRow, reason_of

_BATCH = 500
_BATCH_CHARACTERS = 4_000_000
_MAX_REASONS = 5  # of a table
_UNREADABLE = "unreadable"  # the table of rows that are in none
_Outcome = Literal["stored", "merged", "dropped"]
# The properties of a row that may be lost if a record with the same text is there.
_COMPARED = tuple("type importance confidence source context tags entities created_at expires_at".split())
_SEARCHED_TOGETHER = 50  # rows that are searched for secrets at once


def import_rows(
    store: Store,
    path: Path,
    importer: Importer,
    *,
    agents: AgentMapping = AgentMapping(),  # noqa: B008 - frozen
    redactor: Redactor = Redactor(),  # noqa: B008 - frozen
    by: str = "main",
    dry_run: bool = False,
    report: Report | None = None,
) -> ImportReport:
    """Store what an importer reads. Each row is added, a duplicate, or skipped with the reason in the report.

    The report accounts for every table of the source: how many rows were read, stored, merged and dropped, and why.
    A dry run reports the same and stores nothing. Raises StoreError when the store fails; what was stored stays.
    """
    before = _file_state(path)
    total = importer.count(path)
    options = _restore_options(importer, agents, importer.last_numbers(path), by)
    preview = ImportPreview() if dry_run else None
    order = (*importer.tables, *importer.parts)
    new_ids = _new_ids(store, importer.read(path), agents)
    run = _ImportRun(store, agents, redactor, options, preview, new_ids, DocumentWriter(store, dry_run), order)
    try:
        for batch in _batches(importer.read(path)):
            run.store_batch(batch)
            if report is not None:
                report(Progress("import", run.read, max(total, run.read)))
        run.finish()
    except StoreError as error:
        if not run.added:
            raise
        raise type(error)(
            f"{error.message} ({run.added:,} records came in before that)",
            f"{error.hint}; then import again: what is there is not added twice",
        ) from error
    if before != _file_state(path):
        run.skip(path.name, "it changed while it was read: import it again, nothing is added twice")
    return run.report()


def _new_ids(store: Store, rows: Iterable[ReadRow], agents: AgentMapping) -> NewIds:
    """Return new ids for rows whose ids records of other agents have; those stay theirs.

    This reads the whole source once more, but only if the store has entries of another agent.
    """
    found = NewIds()
    if {agents.everything}.issuperset(store.entries.agents()):
        return found
    for batch in _batches(rows):
        records = [row.record for row in batch if isinstance(row, ExportRow)]
        targets = {record.id: agents.target(without_nul(record.agent)) for record in records}
        owners = store.entries.owners(targets)
        for id_, agent in targets.items():
            if owners.get(id_, agent) != agent:
                found.note_taken(id_, agent)
    return found


def _restore_options(importer: Importer, agents: AgentMapping, numbers: Mapping[str, int], by: str) -> RestoreOptions:
    above: dict[str, int] = {}
    for agent, last in numbers.items():
        name = agents.target(agent)
        above[name] = max(last if last <= 2**53 else 0, above.get(name, 0))
    unique = {str(kind): name for kind, name in UNIQUE.items()}
    program = importer.name if importer.name in NUMBERED_KINDS else ""
    reason = f"imported from {importer.name}"
    return RestoreOptions(by=by, reason=reason, above=above, unique=unique, program=program)


def _file_state(path: Path) -> tuple[int, int, int] | None:
    """Return what changes when a file is written. None for a folder: each of its files is read at once."""
    try:
        stat = path.stat()
    except OSError:  # it was removed, which is also a change
        return (0, 0, 0)
    return (stat.st_ino, stat.st_size, stat.st_mtime_ns) if path.is_file() else None


def _batches(rows: Iterable[ReadRow]) -> Iterator[list[ReadRow]]:
    batch: list[ReadRow] = []
    size = 0
    for row in rows:
        batch.append(row)
        for one in row.rows if isinstance(row, DocumentRows) else [row] if isinstance(row, ExportRow) else []:
            size += len(one.record.text) * (1 + len(one.history))
        if len(batch) == _BATCH or size > _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


@dataclass(slots=True)
class _TableCounts:
    """What became of the rows of one table so far."""

    became: Counter[_Outcome] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)
    remarks: dict[str, None] = field(default_factory=dict)

    def report(self, table: str) -> TableReport:
        reasons = [f"{reason} ({count:,})" for reason, count in self.reasons.items()]
        why = (*_first(reasons), *self.remarks)
        stored, merged, dropped = (self.became[one] for one in get_args(_Outcome))
        return TableReport(table, self.became.total(), stored, merged, dropped, why)


def _first(reasons: list[str]) -> list[str]:
    """The first reasons of a table; `skipped` has all of them, row by row."""
    return reasons if len(reasons) <= _MAX_REASONS else [*reasons[:_MAX_REASONS], "…"]


@dataclass(slots=True)
class _ImportRun:
    """One import, and its counts so far. With a preview, nothing is stored."""

    store: Store
    agents: AgentMapping
    redactor: Redactor
    restore_options: RestoreOptions
    preview: ImportPreview | None
    new_ids: NewIds
    documents: DocumentWriter
    order: tuple[str, ...]  # of the tables in the report
    open_links: list[tuple[str, Link]] = field(default_factory=list)  # whose target is not stored yet
    skipped: list[SkippedRow] = field(default_factory=list)
    renumbered: list[Renumbered] = field(default_factory=list)
    redacted_kinds: dict[str, None] = field(default_factory=dict)
    redacted_rows: int = 0
    duplicates: int = 0
    read: int = 0
    added: int = 0
    removed: int = 0  # chunks of earlier imports that the source has no more
    merged: list[MergedRow] = field(default_factory=list)
    tables: defaultdict[str, _TableCounts] = field(default_factory=lambda: defaultdict(_TableCounts))

    def store_batch(self, batch: Iterable[ReadRow]) -> None:
        """Store the rows of a batch, in one transaction, and each document of it in a separate one."""
        entries: list[ExportRow | SkippedRow] = []
        for row in batch:
            if isinstance(row, DocumentRows):
                self._store_document(row)
            elif isinstance(row, OtherRows):
                self._count_others(row)
            else:
                entries.append(row)
        valid = self._redacted(self._valid(entries))
        rows = [self.new_ids.assign(row, self.agents.target(row.record.agent)) for row in valid]
        outcomes = self.store.entries.restore_rows(rows, self.restore_options, self.preview)
        links = []
        for row, outcome in zip(rows, outcomes, strict=True):
            self._count(row, outcome)
            if outcome.id == row.record.id:
                links += [(row.record.id, link) for link in row.links]
        self._link(links)

    def _store_document(self, read: DocumentRows) -> None:
        """Store a document with those of its chunks that pass the checks."""
        if names_hold_secret(read.collection, read.document, self.redactor):
            for row in read.rows:
                self._drop(row, "the name of its file or collection contains a secret")
            return
        rows = self._redacted(self._valid(read.rows))
        context = self.redactor.for_reading().redact_text(read.collection.context)
        document = redact_document(read.document, self.redactor)
        read = replace(read, collection=replace(read.collection, context=context), document=document)
        outcome = self.documents.put(read, rows)
        self.removed += outcome.removed
        for row in rows:
            if row.record.id in outcome.taken:
                self._drop(row, f"another record has the id {row.record.id}")
                continue
            new = row.record.id in outcome.added
            self.added += new
            self.duplicates += not new
            self._account(row, "stored" if new else "merged")

    def _count_others(self, others: OtherRows) -> None:
        if others.dropped:
            self._count_rows(others.table, "dropped", others.dropped, others.why)
        if others.remark:
            self.tables[others.table].remarks[others.remark] = None

    def _count_rows(self, table: str, became: _Outcome, count: int, why: str) -> None:
        self.tables[table].became[became] += count
        if why:
            self.tables[table].reasons[why] += count

    def _account(self, row: ExportRow | SkippedRow, became: _Outcome, why: str = "") -> None:
        """Count a row for its table, and its parts for theirs."""
        self._count_rows(_table_of(row), became, 1, why)
        for table, count in row.parts.items():
            self._count_rows(table, became, count, why and "what they belong to was dropped")

    def _valid(self, batch: Iterable[ExportRow | SkippedRow]) -> list[ExportRow]:
        rows = []
        for row in batch:
            if isinstance(row, SkippedRow):
                self.read += row.row
                self.skipped.append(row)
                if row.row:
                    self._account(row, "dropped", row.reason)
                elif row.table:
                    self.tables[row.table].remarks[row.reason] = None
                continue
            self.read += 1
            with self._skip_invalid(row):
                with contextlib.suppress(RecursionError):  # `check_row` refuses what is nested too deeply
                    row = without_nul(row)
                check_row(row)
                rows.append(row)
        return rows

    def _redacted(self, rows: list[ExportRow]) -> list[ExportRow]:
        """Return the rows as they may be stored."""
        groups = (rows[start : start + _SEARCHED_TOGETHER] for start in range(0, len(rows), _SEARCHED_TOGETHER))
        suspects = {id(row) for group in groups for row in rows_with_secrets(group, self.redactor)}
        clean = []
        for row in rows:
            if id(row) not in suspects:
                clean.append(row)
                continue
            with self._skip_invalid(row):
                redacted, kinds = redact_row(row, self.redactor)
                check_row(redacted)  # a name may be gone
                self.redacted_rows += bool(kinds)
                self.redacted_kinds.update(dict.fromkeys(kinds))
                clean.append(redacted)
        return clean

    @contextlib.contextmanager
    def _skip_invalid(self, row: ExportRow) -> Iterator[None]:
        """Report an error of a row as the reason why it is skipped, and go on."""
        try:
            yield
        except (InvalidRow, RecursionError, MindexError) as error:
            self._drop(row, reason_of(error))

    def _count(self, row: ExportRow, outcome: RestoreOutcome) -> None:
        self.renumbered += outcome.renumbered
        if outcome.outcome == "duplicate":
            self.duplicates += 1
            self._account(row, "merged")
            if outcome.id != row.record.id:
                kept = self.store.retrieval.record(outcome.id) if self.preview is None else None
                self.merged.append(MergedRow(_where(row), outcome.id, _not_kept(row, kept) if kept else {}))
        elif outcome.outcome == "conflict":
            self._drop(row, _conflict(row, outcome, self.restore_options))
        else:
            self.added += 1
            self._account(row, "stored")
            old = None if self.restore_options.program else row.record.number  # else it is a number of that program
            if old is not None and outcome.number is not None and old != outcome.number:
                self.renumbered.append(Renumbered(row.record.kind, old, outcome.number))

    def _link(self, links: list[tuple[str, Link]]) -> None:
        """Store the links whose two records are there, and keep the others until `finish`."""
        if not links or self.preview is not None:
            return
        stored = self.store.entries.owners({link.target for _, link in links})
        self.store.entries.restore_links([one for one in links if one[1].target in stored])
        self.open_links += [one for one in links if one[1].target not in stored]

    def skip(self, where: str, reason: str) -> None:
        """Report a reason that is about no single row."""
        self.skipped.append(SkippedRow(where, reason))

    def _drop(self, row: ExportRow, reason: str) -> None:
        self.skipped.append(SkippedRow(_where(row), reason))
        self._account(row, "dropped", reason)

    def finish(self) -> None:
        if self.open_links:
            self.store.entries.restore_links(self.open_links)

    def _place_in_report(self, table: str) -> int:
        """Tables of records first, then those of their parts, then the others, each group in its own order."""
        return self.order.index(table) if table in self.order else len(self.order)

    def report(self) -> ImportReport:
        kinds = ", ".join(self.redacted_kinds)
        notes = [f"secrets were left out of {self.redacted_rows:,} records: {kinds}"] if self.redacted_rows else []
        if self.removed:
            notes.append(f"{self.removed:,} chunks of an earlier import are no longer in the source, and were removed")
        return ImportReport(
            self.read,
            self.added,
            self.duplicates,
            tuple(self.skipped),
            tuple(self.renumbered),
            dry_run=self.preview is not None,
            notes=tuple(notes),
            merged=tuple(self.merged),
            tables=tuple(self.tables[table].report(table) for table in sorted(self.tables, key=self._place_in_report)),
        )


def _not_kept(row: ExportRow, kept: Record) -> dict[str, object]:
    """The values of a merged row that the record with the same text does not have, by name."""
    own, values = row.record, dict[str, object]()
    for name in _COMPARED:
        value: Any = getattr(own, name)
        there = getattr(kept, name)
        lacking = [one for one in value if one not in there] if isinstance(value, tuple) else value
        if lacking and lacking != there:
            values[name] = to_iso(value) if name.endswith("_at") else lacking
    values |= {
        name: value for name, value in own.fields.items() if name != "foreign_ids" and value != kept.fields.get(name)
    }
    if row.accesses is not None and row.accesses.count:
        values["access_count"] = row.accesses.count
    if len(row.history) > 1:
        values["changes"] = len(row.history)
    return values


def _table_of(row: ExportRow | SkippedRow) -> str:
    """The table of the source, or its equivalent in a source without tables."""
    return row.table or (row.record.kind if isinstance(row, ExportRow) else _UNREADABLE)


def _where(row: ExportRow) -> str:
    return row.where or row.record.source or f"{row.record.kind} {row.record.id}"


def _conflict(row: ExportRow, outcome: RestoreOutcome, restore_options: RestoreOptions) -> str:
    record = row.record
    if record.id != outcome.id:
        return f"{record.kind} '{outcome.id}' has the same {restore_options.unique[record.kind]} already"
    if record.kind == "profile":
        return f"'{record.agent}' has a profile already, and another one"
    return f"another record has the id {record.id}"
