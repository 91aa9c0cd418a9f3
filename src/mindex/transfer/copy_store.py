"""Copy everything that one store holds to another one: files and chunks, entries with all that is theirs, vectors.

A copy keeps no state. Rows that the target has already are recognized and left as they are, so an interrupted copy
resumes if it is run again. Entries of the target are never overwritten; files are brought up to date, as an index run
would. A target with other entries or files is refused. At the end both stores are compared: by counts, and by digests
that do not depend on the order of the rows.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from mindex.clock import now_ms
from mindex.datatypes import Collection, Document, Model, Progress, Record, RecordVectors, Report
from mindex.datatypes.spaces import Space
from mindex.datatypes.transfer import CopiedTable, CopyReport
from mindex.embedding.canary import is_same
from mindex.errors import ConflictError, UsageError
from mindex.store.base import DocumentUpdate, Store
from mindex.store.export_rows import ExportRow, ImportPreview, Link, RestoreOptions, RestoreOutcome

# The tables of a copy, in the order of its report. Kinds of entries are between the chunks and their history.
FILES = ("collections", "documents", "chunks")
PARTS_OF_ENTRIES = ("changes", "links", "accesses")
VECTORS = "vectors"
# Rows that go on changing while a memory is only read: they are counted and not compared.
UNCOMPARED = frozenset({"accesses"})

_SIZE = 16  # bytes


@dataclass(slots=True)
class Digest:
    """How many rows there were, and the sum of their hashes."""

    rows: int = 0
    total: int = 0

    def add(self, value: object) -> None:
        content = repr(value).encode("utf-8", "surrogatepass")
        self.add_bytes(content)

    def add_bytes(self, content: bytes) -> None:
        self.rows += 1
        self.total = (self.total + int.from_bytes(blake2b(content, digest_size=_SIZE).digest())) % 2 ** (8 * _SIZE)


@dataclass(slots=True)
class StoreDigests:
    """The digests of one store's tables, filled as they are read."""

    tables: defaultdict[str, Digest] = field(default_factory=lambda: defaultdict(Digest))

    def add_collection(self, collection: Collection) -> None:
        self.tables["collections"].add(collection)

    def add_document(self, document: Document, chunks: Sequence[Record]) -> None:
        self.tables["documents"].add(document)
        for chunk in chunks:
            self.tables["chunks"].add(chunk)

    def add_entry(self, row: ExportRow) -> None:
        self.tables[row.record.kind].add((row.record, row.extraction, row.numbers))
        for change in row.history:
            self.tables["changes"].add(change)
        for link in row.links:
            self.tables["links"].add((row.record.id, link))
        for access in row.accesses.log if row.accesses else ():
            self.tables["accesses"].add(access)

    def add_vectors(self, vectors: Sequence[RecordVectors]) -> None:
        import numpy as np  # only for vectors

        for one in vectors:
            # Some engines store the fluency with the precision of the vectors.
            numbers = np.float32(one.fluency).tobytes() + np.asarray(one.vectors, "<f4").tobytes()
            self.tables[VECTORS].add_bytes(one.record.encode() + numbers)


def without_time(collection: Collection) -> Collection:
    """A collection as it is while its files are being copied: its index is not complete yet."""
    return replace(collection, indexed_at=None)


_BATCH = 500
_BATCH_CHARACTERS = 2_000_000
_GROUPS = ("files", "entries", "vectors")
_HINT = "copy into an empty store; `mindex export` and `mindex import` bring entries into one that is in use"


def copy_store(
    source: Store, target: Store, *, names: tuple[str, str], dry_run: bool = False, report: Report | None = None
) -> CopyReport:
    """Copy what the target lacks, then compare both. `names` are those of source and target in messages.

    A dry run checks and counts, and stores nothing. Raises ConflictError when the target holds what the source does
    not.
    """
    run = _CopyRun(source, target, names, dry_run, report or (lambda _: None))
    run.refuse_other_content()
    run.copy()
    if not dry_run:
        run.compare()
    return run.report()


@dataclass(slots=True)
class _CopyRun:
    source: Store
    target: Store
    names: tuple[str, str]
    dry_run: bool
    progress: Report
    read: StoreDigests = field(default_factory=StoreDigests)
    found: StoreDigests = field(default_factory=StoreDigests)
    copied: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    started: int = field(default_factory=now_ms)
    _space: Space | None = None
    # The space in the target: its fingerprint may have the hash of the weights, and the source's not, or vice versa.
    _target_model: Model = field(default_factory=lambda: Model("", "", 0))
    _done: int = 0
    _total: int = 0

    def _both(self, group: str) -> bool:
        return group in self.source.capabilities and group in self.target.capabilities

    # ── before ────────────────────────────────────────────────────────────────────────────────────────────────

    def refuse_other_content(self) -> None:
        """Raise ConflictError when the target has a file or an entry that the source does not have."""
        mine, other = self.names
        if self._both("files"):
            roots = {one.name: one.root for one in self.source.files.collections()}
            for collection in self.target.files.collections():
                if roots.get(collection.name) != collection.root:
                    raise ConflictError(
                        f"{other} has the collection {collection.name}, which {mine} does not have", _HINT
                    )
                known = {document.id for document in self.source.files.documents(collection.name).values()}
                for document in self.target.files.documents(collection.name).values():
                    if document.id not in known:
                        raise ConflictError(f"{other} has the file {document.path}, which {mine} does not have", _HINT)
        if self._both("entries"):
            with self.target.entries.export_snapshot() as snapshot:
                for rows in _batches(snapshot.rows):
                    known_ids = self.source.entries.owners(row.record.id for row in rows)
                    for row in rows:
                        if known_ids.get(row.record.id) != row.record.agent:
                            raise ConflictError(
                                f"{other} has the entry {row.record.id}, which {mine} does not have", _HINT
                            )

    def _chosen_space(self) -> Space | None:
        """The space whose vectors are copied; None, with a note, where the target has vectors of another model."""
        space = next((one for one in self.source.vectors.spaces(counted=False) if one.active), None)
        if space is None:
            return None
        if any(one.next for one in self.source.vectors.spaces(counted=False)):
            self.notes.append("vectors of an unfinished model change were not copied; run `mindex reembed` again")
        if self.source.vectors.count_former():
            self.notes.append(
                f"vectors are not copied: some are of the model before {space.name}; run `mindex reembed` first to"
                " have them copied, or the target makes its own"
            )
            return None
        here = next((one for one in self.target.vectors.spaces(counted=False) if one.active), None)
        left = "its vectors are not copied: `mindex backfill` makes those of the target"
        if here is not None and not here.model.may_be(space.model):
            self.notes.append(f"the target is embedded with another model than {space.name}; {left}")
            return None
        self._target_model = there = here.model if here is not None else space.model
        mine, theirs = self.source.vectors.canary(space.model), self.target.vectors.canary(there)
        if mine is not None and theirs is not None and not is_same(mine, theirs):
            self.notes.append(f"{space.name} makes other vectors in the target than here; {left}")
            return None
        return space

    # ── copying ───────────────────────────────────────────────────────────────────────────────────────────────

    def copy(self) -> None:
        for group in _GROUPS:
            if not self._both(group):
                self.notes.append(f"{group} are left out: one of the two stores does not serve them")
        if self._both("vectors"):
            self._space = self._chosen_space()
            if self._space is not None and not self.dry_run:
                canary = self.source.vectors.canary(self._space.model)
                if canary is not None:
                    self.target.vectors.put_canary(self._target_model, canary)
        if "maintenance" in self.source.capabilities:
            self._total = sum(self.source.maintenance.status().records.values())
        if self._both("files"):
            self._copy_files()
        if self._both("entries"):
            self._copy_entries()
        if self.copied[VECTORS]:
            self.target.vectors.pack()
        self.target.settle()

    def _copy_files(self) -> None:
        there = {one.name: one for one in self.target.files.collections()}
        for collection in self.source.files.collections():
            self.read.add_collection(collection)
            present = self.target.files.documents(collection.name) if collection.name in there else {}
            if collection.name not in there:
                self.copied["collections"] += 1
                if not self.dry_run:
                    self.target.files.put_collection(without_time(collection))
            documents = self.source.files.documents(collection.name)
            for batch in self._read_documents(documents.values()):
                self._copy_documents(batch, present)
            if not self.dry_run and there.get(collection.name) != collection:
                self.target.files.put_collection(collection)

    def _read_documents(self, documents: Iterable[Document]) -> Iterator[list[DocumentUpdate]]:
        batch: list[DocumentUpdate] = []
        size = chunks = 0
        for document in documents:
            records = self.source.files.chunks(document.id)
            batch.append(DocumentUpdate(document, records))
            chunks += len(records)
            size += sum(len(record.text) for record in records)
            if len(batch) >= _BATCH or chunks >= _BATCH or size > _BATCH_CHARACTERS:
                yield batch
                batch, size, chunks = [], 0, 0
        if batch:
            yield batch

    def _copy_documents(self, batch: Sequence[DocumentUpdate], present: dict[str, Document]) -> None:
        lacking = []
        for update in batch:
            records = update.records or ()
            self.read.add_document(update.document, records)
            same = present.get(update.document.path) == update.document
            there = self.target.files.chunks(update.document.id) if same else ()
            if same and there == records:
                continue
            lacking.append(update)
            known = {record.id for record in there}
            self.copied["documents"] += not same
            self.copied["chunks"] += sum(record.id not in known for record in records)
        ids = [record.id for update in batch for record in update.records or ()]
        if lacking and not self.dry_run:
            self.target.files.apply(lacking)
            contexts = [(one.id, one.context) for update in lacking for one in update.records or () if one.context]
            if contexts:
                self.target.files.set_contexts(contexts)
        self._copy_vectors(ids)
        self._advance("copy", len(ids))

    def _copy_entries(self) -> None:
        links: list[tuple[str, Link]] = []
        refused: list[str] = []
        preview = ImportPreview() if self.dry_run else None
        with self.source.entries.export_snapshot(log=True) as snapshot:
            # A name that is there twice, from a time when it had not to be unique, stays there twice.
            options = RestoreOptions(by="copy", above=snapshot.last_numbers)
            for rows in _batches(snapshot.rows):
                outcomes = self._restored(rows, options, preview)
                for row, outcome in zip(rows, outcomes, strict=True):
                    self.read.add_entry(row)
                    if outcome is None:
                        continue
                    if outcome.outcome == "added":
                        self.copied[row.record.kind] += 1
                        self.copied["changes"] += len(row.history)
                        self.copied["links"] += len(row.links) if self.dry_run else 0
                        self.copied["accesses"] += len(row.accesses.log) if row.accesses else 0
                    elif outcome.id != row.record.id or outcome.outcome == "conflict":
                        refused.append(f"{row.record.id} was not copied: {outcome.id} has its place")
                    links += ((row.record.id, link) for link in row.links)
                self._copy_vectors([row.record.id for row in rows if row.record.retired_at is None])
                self._advance("copy", len(rows))
        if not self.dry_run:
            for start in range(0, len(links), _BATCH):
                self.copied["links"] += self.target.entries.restore_links(links[start : start + _BATCH])
        self.notes += refused[:5]

    def _restored(
        self, rows: Sequence[ExportRow], options: RestoreOptions, preview: ImportPreview | None
    ) -> list[RestoreOutcome | None]:
        """Store rows. Returns what became of each; None, with a note, for one that has a value the target cannot hold.

        The store does not say which row that is, so a refused batch is halved until it has one row.
        """
        try:
            return list(self.target.entries.restore_rows(rows, options, preview))
        except UsageError as error:
            if len(rows) > 1:
                half = len(rows) // 2
                return [
                    *self._restored(rows[:half], options, preview), *self._restored(rows[half:], options, preview)
                ]  # fmt: skip
            self.notes.append(f"{rows[0].record.kind} {rows[0].record.id} was not copied: {error.message}")
            return [None]

    def _copy_vectors(self, ids: Sequence[str]) -> None:
        space = self._space
        if space is None or not ids:
            return
        vectors = self.source.vectors.with_fluency(space.model, ids)
        self.read.add_vectors(vectors)
        there = self.target.vectors.stored(self._target_model, ids) if self.target.vectors.active_space() else {}
        lacking = [one for one in vectors if one.record not in there]
        if lacking:
            stored = len(lacking)
            if not self.dry_run:
                spec = space.embedder_spec if self._target_model == space.model else None
                stored = self.target.vectors.put(self._target_model, lacking, spec)
            self.copied[VECTORS] += stored

    def _advance(self, stage: str, rows: int) -> None:
        self._done += rows
        self._total = max(self._total, self._done)
        self.progress(Progress(stage, self._done, self._total))

    # ── afterwards ────────────────────────────────────────────────────────────────────────────────────────────

    def compare(self) -> None:
        """Read the target again, and report writes to the source during the copy."""
        self._done = 0
        if self._both("files"):
            for collection in self.target.files.collections():
                self.found.add_collection(collection)
                for document in self.target.files.documents(collection.name).values():
                    records = self.target.files.chunks(document.id)
                    self.found.add_document(document, records)
                    self._compare_vectors(records)
            if self.source.files.collections() != self.target.files.collections():
                self.notes.append("files were indexed in the source during the copy; run it again")
        if self._both("entries"):
            with self.target.entries.export_snapshot(log=True) as snapshot:
                for rows in _batches(snapshot.rows):
                    for row in rows:
                        self.found.add_entry(row)
                    self._compare_vectors([row.record for row in rows if row.record.retired_at is None])
            if next(self.source.entries.changes_between(self.started, 2**62), None) is not None:
                self.notes.append("entries were changed in the source during the copy; run it again")

    def _compare_vectors(self, records: Sequence[Record]) -> None:
        if self._space is not None:
            ids = [record.id for record in records]
            self.found.add_vectors(self.target.vectors.with_fluency(self._target_model, ids))
        self._advance("verify", len(records))

    def report(self) -> CopyReport:
        kinds = sorted((self.read.tables.keys() | self.found.tables.keys()) - {*FILES, *PARTS_OF_ENTRIES, VECTORS})
        tables = []
        for name in (*FILES, *kinds, *PARTS_OF_ENTRIES, VECTORS):
            if not (self.read.tables[name].rows or self.found.tables[name].rows):
                continue
            read, found = self.read.tables[name], self.found.tables[name]
            same = None if self.dry_run or name in UNCOMPARED else read == found
            tables.append(CopiedTable(name, read.rows, self.copied[name], None if self.dry_run else found.rows, same))
        verified = None if self.dry_run else all(one.same is not False for one in tables)
        if verified is False:
            self.notes.append(
                "the stores differ: the target was changed after it was copied, or the source; copy into an empty store"
            )
        return CopyReport(*self.names, tuple(tables), verified, self.dry_run, tuple(self.notes))


def _batches(rows: Iterator[ExportRow]) -> Iterator[list[ExportRow]]:
    batch: list[ExportRow] = []
    size = 0
    for row in rows:
        batch.append(replace(row, vectors=()))
        size += len(row.record.text) * (1 + 2 * len(row.history))
        if len(batch) == _BATCH or size > _BATCH_CHARACTERS:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
