"""Brings a folder's records up to date: finds what is new, changed, moved or gone, and touches nothing else."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mindex.clock import now_ms
from mindex.daily_log_format import FORMAT_VERSION
from mindex.errors import MindexError
from mindex.ids import short_hash
from mindex.ingest.chunker import CHUNKER_VERSION, chunk_markdown, chunk_text
from mindex.ingest.daily_log_lines import cut_at_log_lines, without_log_lines
from mindex.ingest.document_metadata import chunk_tags, describe
from mindex.ingest.file_scan import ScannedFile, read, scan
from mindex.ingest.front_matter import unique
from mindex.ingest.text_decoding import BinaryFile, decode
from mindex.model import Collection, CollectionReport, Document, Progress, Record, SkippedFile
from mindex.redaction.redactor import Redactor
from mindex.store.base import ChunkCounts, DocumentUpdate, Store

# A file saved within this time of being read may change again without its time changing.
_CLOCK_GRAIN_NS = 2_000_000_000
# Short transactions: others write too.
_BATCH_CHUNKS = 500
_BATCH_DOCUMENTS = 100
_MAX_TAGS = 30

Report = Callable[[Progress], None]


@dataclass(slots=True)
class _Plan:
    """What one collection needs, by path."""

    unchanged: int = 0
    touched: list[Document] = field(default_factory=list)
    changed: list[ScannedFile] = field(default_factory=list)
    new: list[ScannedFile] = field(default_factory=list)
    moved: dict[str, Document] = field(default_factory=dict)  # new path → the document that moved there
    deleted: list[Document] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)  # looked like files to index, and turned out to be none
    seen: int = 0

    def count(self, paths: Iterable[str]) -> int:
        return sum(path not in self.refused for path in paths)


class Indexer:
    """Indexes collections of one store."""

    def __init__(self, store: Store, *, exclude: Sequence[str], max_bytes: int, redactor: Redactor) -> None:
        self._store = store
        self._exclude = tuple(exclude)
        self._max_bytes = max_bytes
        self._redactor = redactor
        # What, beside a file's bytes, decides its chunks.
        self._version = f"c{CHUNKER_VERSION}j{FORMAT_VERSION}-{redactor.version}"

    def index(
        self, collection: Collection, *, force: bool = False, dry_run: bool = False, report: Report | None = None
    ) -> tuple[CollectionReport, tuple[SkippedFile, ...]]:
        """Bring a collection up to date; with `dry_run` only say what would happen to its files."""
        known = self._store.files.documents(collection.name)
        plan = self._plan(collection, known, force)
        applied = ChunkCounts()
        if not dry_run:
            applied = self._carry_out(collection, plan, known, report)
            self._store.files.put_collection(replace(collection, indexed_at=now_ms()))
        moved = plan.count(plan.moved)
        return (
            CollectionReport(
                name=collection.name,
                root=collection.root,
                seen=plan.seen - len(plan.refused),
                new=plan.count(file.path for file in plan.new),
                changed=plan.count(file.path for file in plan.changed) - moved,
                moved=moved,
                deleted=len(plan.deleted),
                unchanged=plan.unchanged + len(plan.touched),
                skipped=len(plan.skipped),
                chunks_added=applied.added,
                chunks_kept=applied.kept,
                chunks_removed=applied.removed,
            ),
            tuple(plan.skipped),
        )

    def rehearsed(self, collection: Collection, *, force: bool = False) -> Iterator[DocumentUpdate]:
        """Every document of a collection with its chunks, as indexing would leave it; nothing is stored."""
        known = self._store.files.documents(collection.name)
        plan = self._plan(collection, known, force)
        settled = {document.id for document in plan.deleted}
        taken = {document.id for document in known.values()} - settled
        for update in self._updates(collection, plan, known, taken, None):
            settled.add(update if isinstance(update, str) else update.document.id)
            if not isinstance(update, str):
                yield update
        for document in known.values():
            if document.id not in settled:
                yield DocumentUpdate(document, self._store.files.chunks(document.id))

    # ── what is to be done ────────────────────────────────────────────────────────────────────────────────────

    def _plan(self, collection: Collection, known: dict[str, Document], force: bool) -> _Plan:
        plan = _Plan()
        new: list[ScannedFile] = []
        gone = dict(known)
        exclude = (*self._exclude, *collection.exclude)
        for found in scan(Path(collection.root), exclude=exclude, max_bytes=self._max_bytes):
            if isinstance(found, SkippedFile):
                plan.skipped.append(found)
                continue
            plan.seen += 1
            before = gone.pop(found.path, None)
            if before is None:
                new.append(found)
            elif force:
                plan.changed.append(found)
            elif _spared(before, found, self._version):
                plan.unchanged += 1
            elif before.fingerprint == self._fingerprint_of(found):
                plan.touched.append(replace(before, size=found.size, mtime_ns=found.mtime_ns, indexed_at=now_ms()))
            else:
                plan.changed.append(found)
        # Below a folder that could not be read nothing is known to be gone.
        unread = tuple(skip.path for skip in plan.skipped if skip.path.endswith("/"))
        if "./" in unread:
            gone = {}
        gone = {path: document for path, document in gone.items() if not path.startswith(unread or ("\0",))}
        self._pair_moves(plan, new, gone)
        return plan

    def _pair_moves(self, plan: _Plan, new: list[ScannedFile], gone: dict[str, Document]) -> None:
        """A new file with the bytes of one that is gone is that file, moved."""
        by_fingerprint = {document.fingerprint: document for document in gone.values()}
        for file in new:
            document = by_fingerprint.pop(self._fingerprint_of(file), None) if by_fingerprint else None
            if document is None:
                plan.new.append(file)
            else:
                plan.moved[file.path] = document
                plan.changed.append(file)
                del gone[document.path]
        plan.deleted = list(gone.values())

    def _fingerprint_of(self, file: ScannedFile) -> str:
        """Empty for a file that cannot be read now: whoever goes on to index it will say why."""
        data = read(file, max_bytes=self._max_bytes)
        return "" if isinstance(data, SkippedFile) else _fingerprint(data, self._version)

    # ── doing it ──────────────────────────────────────────────────────────────────────────────────────────────

    def _carry_out(
        self, collection: Collection, plan: _Plan, known: dict[str, Document], report: Report | None
    ) -> ChunkCounts:
        """Write in batches, each one transaction that leaves the collection consistent."""
        applied = (
            self._store.files.apply([], [document.id for document in plan.deleted]) if plan.deleted else ChunkCounts()
        )
        if plan.touched:
            applied += self._store.files.apply([DocumentUpdate(document, None) for document in plan.touched])
        taken = {document.id for document in known.values()} - {document.id for document in plan.deleted}
        batch: list[DocumentUpdate] = []
        for update in self._updates(collection, plan, known, taken, report):
            if isinstance(update, str):
                applied += self._store.files.apply([], [update])
                continue
            batch.append(update)
            if len(batch) >= _BATCH_DOCUMENTS or sum(len(item.records or ()) for item in batch) >= _BATCH_CHUNKS:
                applied += self._store.files.apply(batch)
                batch = []
        if batch:
            applied += self._store.files.apply(batch)
        return applied

    def _updates(
        self,
        collection: Collection,
        plan: _Plan,
        known: dict[str, Document],
        taken: set[str],
        report: Report | None,
    ) -> Iterator[DocumentUpdate | str]:
        """Documents as they are now, and the ids of those that are none any more."""
        files = sorted((*plan.changed, *plan.new), key=lambda file: file.path)
        # Moves first: until a moved document has left its old path, nothing new can stand there.
        files.sort(key=lambda file: file.path not in plan.moved)
        for done, file in enumerate(files):
            if report is not None:
                report(Progress("chunk", done, len(files), file.path))
            data = read(file, max_bytes=self._max_bytes)
            before = plan.moved.get(file.path) or known.get(file.path)
            id_ = before.id if before is not None else _document_id(collection.name, file.path, taken)
            taken.add(id_)
            update = data if isinstance(data, SkippedFile) else self._update(collection.name, id_, file, data)
            if isinstance(update, DocumentUpdate):
                yield update
                continue
            plan.skipped.append(update)
            plan.refused.add(file.path)
            if before is not None:  # what is stored of it is no longer what the file says
                yield before.id
        if report is not None and files:
            report(Progress("chunk", len(files), len(files)))

    def _update(self, collection: str, id_: str, file: ScannedFile, data: bytes) -> DocumentUpdate | SkippedFile:
        """One file's bytes as a document and its chunks."""
        try:
            written = decode(data)
            text = self._redactor.redact_text(without_log_lines(file.location, written), keep_lines=True)
        except (BinaryFile, MindexError) as error:
            return SkippedFile(file.path, str(error))
        parsed = chunk_text(text) if file.path.lower().endswith(".txt") else chunk_markdown(text)
        description = describe(file.path, parsed)
        now = now_ms()
        name = parsed.title or file.path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        document = Document(
            id=id_,
            collection=collection,
            path=file.path,
            fingerprint=_fingerprint(data, self._version),
            size=file.size,
            mtime_ns=file.mtime_ns,
            title=name,
            domain=description.domain,
            instruction=description.instruction,
            tags=description.tags,
            links=description.links,
            indexed_at=now,
        )
        seen: Counter[str] = Counter()
        records = []
        for chunk in cut_at_log_lines(file.location, written, parsed.chunks):
            section = " > ".join(chunk.breadcrumb)
            title = section or name
            seen[section + "\n" + chunk.text] += 1
            records.append(
                Record(
                    id=short_hash(id_, section, chunk.text, str(seen[section + "\n" + chunk.text])),
                    kind="chunk",
                    text=chunk.text,
                    title=f"{title} (part {chunk.part} of {chunk.parts})" if chunk.parts > 1 else title,
                    tags=unique((*parsed.front_matter.tags, *chunk_tags(chunk.text)), _MAX_TAGS),
                    created_at=file.mtime_ns // 1_000_000,
                    updated_at=now,
                    document=id_,
                    collection=collection,
                    path=file.path,
                    first_line=chunk.first_line,
                    last_line=chunk.last_line,
                    domain=description.domain,
                    instruction=description.instruction,
                )
            )
        return DocumentUpdate(document, tuple(records))


def _spared(before: Document, found: ScannedFile, version: str) -> bool:
    """Whether size and time say that the file need not be read again."""
    return (
        (before.size, before.mtime_ns) == (found.size, found.mtime_ns)
        and before.fingerprint.endswith(f":{version}")
        and before.mtime_ns < before.indexed_at * 1_000_000 - _CLOCK_GRAIN_NS
    )


def _fingerprint(data: bytes, version: str) -> str:
    return f"{hashlib.sha256(data).hexdigest()}:{version}"


def _document_id(collection: str, path: str, taken: set[str]) -> str:
    """From the collection and the file's first path; another file may have taken that name along when it moved."""
    id_, attempt = short_hash("document", collection, path), 1
    while id_ in taken:
        attempt += 1
        id_ = short_hash("document", collection, path, str(attempt))
    return id_
