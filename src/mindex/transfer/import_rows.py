"""The way in: rows of any importer, checked, cleaned, given to their agent, and stored some hundred at a time.

What was stored before, or before a kill, is known by its id or its words: a second import adds only what is missing.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from mindex.errors import MindexError, StoreError, UsageError
from mindex.memories.field_specs import UNIQUE
from mindex.model import Progress
from mindex.redaction.redactor import Mode
from mindex.store.base import Store
from mindex.store.export_rows import ImportPreview, Link, RestoreOptions, RestoreOutcome
from mindex.transfer import import_checks
from mindex.transfer.importer import Counting, ExportRow, Importer, ImportReport, Numbering, SkippedRow
from mindex.transfer.jsonl_rows import Malformed

_BATCH = 500
_TOGETHER = 50  # looked at together for secrets
_BATCH_CHARACTERS = 4_000_000

Report = Callable[[Progress], None]


@dataclass(frozen=True, slots=True)
class AgentMapping:
    """Who gets what: everything goes to one agent, or what was one's goes to another's; the rest stays."""

    everything: str = ""
    each: Mapping[str, str] = field(default_factory=dict)
    default: str = "main"  # for what belongs to nobody

    def __post_init__(self) -> None:
        for name in (self.everything, self.default, *self.each.values()):
            if name == "*":
                raise UsageError("'*' is everyone: nothing can be given to them", "name one agent")

    def agent(self, name: str) -> str:
        return self.everything or self.each.get(name) or name or self.default


def import_(
    store: Store,
    path: Path,
    importer: Importer,
    *,
    mapped: AgentMapping | None = None,
    secrets: Mode = "redact",
    by: str = "main",
    dry_run: bool = False,
    report: Report | None = None,
) -> ImportReport:
    """Bring in what an importer reads: every row is added, is there already, or is named with the reason why not."""
    before = _state(path)
    mapped = mapped or AgentMapping()
    total = importer.count(path) if isinstance(importer, Counting) else 0
    numbers = importer.last_numbers(path) if isinstance(importer, Numbering) else {}
    incoming = _Incoming(store, mapped, secrets, _restoring(importer, mapped, numbers, by), dry_run)
    try:
        for batch in _batches(importer.read(path)):
            incoming.take(batch)
            if report is not None:
                report(Progress("import", incoming.read, max(total, incoming.read)))
        incoming.finish()
    except StoreError as error:
        if not incoming.added:
            raise
        raise type(error)(
            f"{error.message} ({incoming.added:,} records came in before that)",
            f"{error.hint}; then import again: what is there is not added twice",
        ) from error
    if before != _state(path):
        incoming.skip(SkippedRow(path.name, "it changed while it was read: import it again, nothing is added twice"))
    return incoming.report()


def _restoring(importer: Importer, mapped: AgentMapping, numbers: Mapping[str, int], by: str) -> RestoreOptions:
    above: dict[str, int] = {}
    for agent, last in numbers.items():
        name = mapped.agent(agent)
        above[name] = max(last if last <= 2**53 else 0, above.get(name, 0))
    unique = {str(kind): name for kind, name in UNIQUE.items()}
    return RestoreOptions(by=by, reason=f"imported from {importer.name}", above=above, unique=unique)


def _state(path: Path) -> tuple[int, int, int] | None:
    """What a file looks like from outside; of a folder, its files are read whole and need no watching."""
    try:
        stat = path.stat()
    except OSError:  # gone: that is a change, too
        return (0, 0, 0)
    return (stat.st_ino, stat.st_size, stat.st_mtime_ns) if path.is_file() else None


def _batches(found: Iterable[ExportRow | SkippedRow]) -> Iterator[list[ExportRow | SkippedRow]]:
    batch: list[ExportRow | SkippedRow] = []
    size = 0
    for one in found:
        batch.append(one)
        if isinstance(one, ExportRow):
            size += len(one.record.text) * (1 + len(one.history))
        if len(batch) == _BATCH or size > _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _some(rows: list[ExportRow]) -> Iterator[list[ExportRow]]:
    for start in range(0, len(rows), _TOGETHER):
        yield rows[start : start + _TOGETHER]


class _Incoming:
    """One import under way, and what came of the rows so far."""

    def __init__(
        self, store: Store, mapped: AgentMapping, secrets: Mode, restore_options: RestoreOptions, dry_run: bool
    ) -> None:
        self._store = store
        self._mapped = mapped
        self._secrets = secrets
        self._restoring = restore_options
        self._rehearsal = ImportPreview() if dry_run else None
        self._open_links: list[tuple[str, Link]] = []
        self._skipped: list[SkippedRow] = []
        self._renumbered: list[tuple[int, int]] = []
        self._redacted: dict[str, None] = {}
        self._redactions = 0
        self._duplicates = 0
        self.read = 0
        self.added = 0

    def take(self, batch: Iterable[ExportRow | SkippedRow]) -> None:
        """Store one batch, in one transaction."""
        rows = []
        for one in batch:
            if isinstance(one, SkippedRow):
                self.read += one.row
                self.skip(one)
                continue
            self.read += 1
            rows += self._sensible(one)
        rows = self._owned(self._clean(rows))
        restored = self._store.entries.restore_rows(rows, self._restoring, self._rehearsal)
        for row, outcome in zip(rows, restored, strict=True):
            self._note(row, outcome)
        there = [row for row, outcome in zip(rows, restored, strict=True) if outcome.id == row.record.id]
        self._link([(row.record.id, link) for row in there for link in row.links])

    def _sensible(self, row: ExportRow) -> list[ExportRow]:
        """The row, or nothing and its name among the skipped."""
        with self._named(row):
            import_checks.check(row)
            return [row]
        return []

    def _clean(self, rows: list[ExportRow]) -> list[ExportRow]:
        """The rows as they may be stored."""
        suspects = {id(row) for some in _some(rows) for row in import_checks.suspects(some, self._secrets)}
        kept = []
        for row in rows:
            if id(row) not in suspects:
                kept.append(row)
                continue
            with self._named(row):
                crossed, kinds = import_checks.cleaned(row, self._secrets)
                self._redactions += bool(kinds)
                self._redacted.update(dict.fromkeys(kinds))
                kept.append(crossed)
        return kept

    @contextlib.contextmanager
    def _named(self, row: ExportRow) -> Iterator[None]:
        """What is wrong with a row is said with its name, and no reason to stop."""
        try:
            yield
        except RecursionError:
            self.skip(SkippedRow(_where(row), "it is nested too deeply"))
        except Malformed as error:
            self.skip(SkippedRow(_where(row), str(error)))
        except MindexError as error:
            self.skip(SkippedRow(_where(row), error.message))

    def _owned(self, rows: list[ExportRow]) -> list[ExportRow]:
        """The rows in the hands of their agents here; ids that others have in this store are not taken from them."""
        owners = self._store.entries.owners({id_ for row in rows for id_ in import_checks.references(row)})
        hands: dict[str, import_checks.Owner] = {}
        for row in rows:
            agent = self._mapped.agent(row.record.agent)
            if agent not in hands:
                others = frozenset(id_ for id_, owner in owners.items() if owner != agent)
                hands[agent] = import_checks.Owner(agent, others)
        return [hands[self._mapped.agent(row.record.agent)].takes(row) for row in rows]

    def _note(self, row: ExportRow, restored: RestoreOutcome) -> None:
        record = row.record
        if restored.outcome == "duplicate":
            self._duplicates += 1
        elif restored.outcome == "conflict":
            self.skip(SkippedRow(_where(row), _conflict(row, restored, self._restoring)))
        else:
            self.added += 1
            if record.number is not None and restored.number is not None and record.number != restored.number:
                self._renumbered.append((record.number, restored.number))

    def _link(self, links: list[tuple[str, Link]]) -> None:
        """Links are made when both ends are there; the others wait for theirs."""
        if not links or self._rehearsal is not None:
            return
        there = self._store.entries.owners({link.target for _, link in links})
        self._store.entries.restore_links([one for one in links if one[1].target in there])
        self._open_links += [one for one in links if one[1].target not in there]

    def skip(self, unread: SkippedRow) -> None:
        self._skipped.append(unread)

    def finish(self) -> None:
        if self._open_links:
            self._store.entries.restore_links(self._open_links)

    def report(self) -> ImportReport:
        notes = []
        if self._redactions:
            notes.append(f"secrets were left out of {self._redactions:,} records: {', '.join(self._redacted)}")
        return ImportReport(
            self.read,
            self.added,
            self._duplicates,
            tuple(self._skipped),
            tuple(self._renumbered),
            self._rehearsal is not None,
            tuple(notes),
        )


def _where(row: ExportRow) -> str:
    return row.where or row.record.source or f"{row.record.kind} {row.record.id}"


def _conflict(row: ExportRow, restored: RestoreOutcome, restore_options: RestoreOptions) -> str:
    record = row.record
    if record.id != restored.id:
        return f"{record.kind} '{restored.id}' has the same {restore_options.unique[record.kind]} already"
    if record.kind == "profile":
        return f"'{record.agent}' has a profile already, and another one"
    return f"another record has the id {record.id}"
