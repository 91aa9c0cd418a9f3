"""The indexer: brings the chunks of a folder up to date and writes only what has changed."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mindex.clock import now_ms
from mindex.daily_log_format import FORMAT_VERSION
from mindex.datatypes import Collection, CollectionReport, Document, Progress, Report, SkippedFile
from mindex.errors import MindexError
from mindex.files.chunker import CHUNKER_VERSION, chunk_markdown, chunk_text
from mindex.files.daily_log_lines import cut_at_log_lines, without_log_lines
from mindex.files.document_metadata import chunk_tags, document_tags, domain_of_path, is_instruction
from mindex.files.file_changes import FileChanges, find_changes, fingerprint
from mindex.files.file_scan import ScannedFile, read_bytes, scan
from mindex.files.links import document_links
from mindex.files.text_decoding import BinaryFile, decode
from mindex.ids import short_hash
from mindex.project_file import ProjectFile
from mindex.redaction.redactor import Redactor
from mindex.store.base import ChunkCounts, DocumentUpdate, Store
from mindex.type_rules import TYPE_RULES_VERSION, chunk_type

# Short transactions: other processes also write.
_BATCH_CHUNKS = 500
_BATCH_DOCUMENTS = 100
_DAY_NS = 24 * 60 * 60 * 10**9


@dataclass(frozen=True, slots=True)
class _ReadFile:
    """A new or changed file that was read: its document with the chunks, or why it cannot be indexed."""

    path: str
    document_id: str
    was_indexed: bool  # perhaps at another path
    result: DocumentUpdate | SkippedFile


@dataclass(slots=True)
class _Batch:
    """What one transaction writes, and the files, by path, that cannot be indexed."""

    updates: list[DocumentUpdate] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)  # ids of documents
    rejected: dict[str, SkippedFile] = field(default_factory=dict)

    @property
    def is_full(self) -> bool:
        chunks = sum(len(update.records or ()) for update in self.updates)
        return len(self.updates) >= _BATCH_DOCUMENTS or chunks >= _BATCH_CHUNKS

    def add(self, file: _ReadFile) -> None:
        if isinstance(file.result, DocumentUpdate):
            self.updates.append(file.result)
            return
        self.rejected[file.path] = file.result
        if file.was_indexed:  # its stored chunks are no longer what the file says
            self.removed.append(file.document_id)


class Indexer:
    """Indexes one collection. `redactor` is applied to every text before it is stored."""

    def __init__(
        self,
        store: Store,
        collection: Collection,
        *,
        exclude: Sequence[str],
        max_bytes: int,
        redactor: Redactor,
        project: ProjectFile | None = None,
    ) -> None:
        """`project` is the file of the project that the collection is in: it excludes more, or larger files."""
        self._store = store
        self._collection = collection
        self._exclude = (*exclude, *collection.exclude)
        self._project = project
        self._max_bytes = project.max_bytes(max_bytes) if project else max_bytes
        self._redactor = redactor
        self.project_notes = project.notes if project else ()  # what of the project's file is ignored, and why
        self.written_chunks: list[str] = []  # ids of the chunks of new and changed files
        # Everything beside a file's bytes that decides its chunks.
        self._version = f"c{CHUNKER_VERSION}j{FORMAT_VERSION}t{TYPE_RULES_VERSION}-{redactor.version}"

    def index(
        self, *, force: bool = False, dry_run: bool = False, report: Report | None = None
    ) -> tuple[CollectionReport, tuple[SkippedFile, ...]]:
        """Bring the collection up to date; with `dry_run` only report what would happen to its files and chunks."""
        collection = self._collection
        documents = self._store.files.documents(collection.name)
        changes = self._find_changes(documents, force)
        chunks = ChunkCounts()
        rejected: dict[str, SkippedFile] = {}
        for batch in _batches(changes, self._read_files(changes, documents, report)):
            chunks += self._count_chunks(batch) if dry_run else self._store_batch(batch)
            rejected |= batch.rejected
        if not dry_run:
            self._store.files.put_collection(replace(collection, indexed_at=now_ms()))
        skipped = (*changes.skipped, *rejected.values())
        changed = {file.path for file in changes.changed} - rejected.keys()
        outcome = CollectionReport(
            name=collection.name,
            root=collection.root,
            seen=changes.seen - len(rejected),
            new=len({file.path for file in changes.new} - rejected.keys()),
            changed=len(changed - changes.moved.keys()),
            moved=len(changed & changes.moved.keys()),
            deleted=len(changes.deleted),
            unchanged=changes.unchanged + len(changes.touched),
            skipped=len(skipped),
            chunks_added=chunks.added,
            chunks_kept=chunks.kept,
            chunks_removed=chunks.removed,
        )
        shown = self._redactor.for_reading().redact_text
        return outcome, tuple(replace(file, path=shown(file.path)) for file in skipped)

    def _count_chunks(self, batch: _Batch) -> ChunkCounts:
        """Return how many chunks a batch would add, keep and remove; nothing is stored."""
        chunks = ChunkCounts()
        for update in batch.updates:
            if update.records is None:  # the document changes, its chunks do not
                continue
            stored = {chunk.id for chunk in self._store.files.chunks(update.document.id)}
            now = {record.id for record in update.records}
            chunks += ChunkCounts(len(now - stored), len(now & stored), len(stored - now))
        return chunks + ChunkCounts(removed=sum(len(self._store.files.chunks(id_)) for id_ in batch.removed))

    def _store_batch(self, batch: _Batch) -> ChunkCounts:
        if not batch.updates and not batch.removed:
            return ChunkCounts()
        counts = self._store.files.apply(batch.updates, batch.removed)
        self.written_chunks += (record.id for update in batch.updates for record in update.records or ())
        return counts

    def planned_updates(self, *, force: bool = False) -> Iterator[DocumentUpdate]:
        """Yield every document with its chunks, as indexing would leave it; nothing is stored."""
        documents = self._store.files.documents(self._collection.name)
        changes = self._find_changes(documents, force)
        done = {document.id for document in changes.deleted}
        for file in self._read_files(changes, documents, None):
            done.add(file.document_id)
            if isinstance(file.result, DocumentUpdate):
                yield file.result
        for document in documents.values():
            if document.id not in done:
                yield DocumentUpdate(document, self._store.files.chunks(document.id))

    def _find_changes(self, documents: dict[str, Document], force: bool) -> FileChanges:
        root = Path(self._collection.root)
        files = scan(root, exclude=self._exclude, project=self._project, max_bytes=self._max_bytes)
        return find_changes(files, documents, self._fingerprint_of, self._version, force=force)

    def _fingerprint_of(self, file: ScannedFile) -> str:
        """Return an empty string for a file that cannot be read now: indexing it will report why."""
        data = read_bytes(file, max_bytes=self._max_bytes)
        return "" if isinstance(data, SkippedFile) else fingerprint(data, self._version)

    def _read_files(
        self, changes: FileChanges, documents: dict[str, Document], report: Report | None
    ) -> Iterator[_ReadFile]:
        """Read the new and changed files, one at a time, in the order in which they are to be stored."""
        taken = {document.id for document in documents.values()} - {document.id for document in changes.deleted}
        files = sorted((*changes.changed, *changes.new), key=_urgency)
        # Moves first: a new document can take a path only when the moved one has left it.
        files.sort(key=lambda file: file.path not in changes.moved)
        for done, file in enumerate(files):
            if report is not None:
                report(Progress("chunk", done, len(files), file.path))
            data = read_bytes(file, max_bytes=self._max_bytes)
            before = changes.moved.get(file.path) or documents.get(file.path)
            id_ = before.id if before is not None else _document_id(self._collection.name, file.path, taken)
            taken.add(id_)
            result = data if isinstance(data, SkippedFile) else self._make_document(id_, file, data)
            yield _ReadFile(file.path, id_, before is not None, result)
        if report is not None and files:
            report(Progress("chunk", len(files), len(files)))

    def _make_document(self, id_: str, file: ScannedFile, data: bytes) -> DocumentUpdate | SkippedFile:
        """Return the document and chunks of one file, or why it cannot be indexed."""
        if kinds := self._redactor.kinds_in(file.path):
            return SkippedFile(file.path, f"its path contains a secret ({', '.join(kinds)}); rename it")
        try:
            decoded = decode(data)
            text = self._redactor.redact_text(without_log_lines(file.location, decoded), keep_lines=True)
        except (BinaryFile, MindexError) as error:
            return SkippedFile(file.path, str(error))
        suffix = file.path.lower().rpartition(".")[2]
        parsed = chunk_text(text) if suffix == "txt" else chunk_markdown(text, mdx=suffix == "mdx")
        name = parsed.title or file.path.rsplit("/", 1)[-1].rsplit(".", 1)[0]
        front = parsed.front_matter
        # A title that is in no breadcrumb is a field like the others.
        titled = (f"title: {front.title}",) if front.title and parsed.heading not in ("", front.title) else ()
        document = Document(
            id=id_,
            collection=self._collection.name,
            path=file.path,
            fingerprint=fingerprint(data, self._version),
            size=file.size,
            mtime_ns=file.mtime_ns,
            title=name,
            domain=domain_of_path(file.path),
            instruction=is_instruction(file.path),
            tags=document_tags(parsed),
            links=document_links(file.path, text),
            indexed_at=now_ms(),
            fields=titled + front.fields,
        )
        repeats: Counter[str] = Counter()
        records = []
        for chunk in cut_at_log_lines(file.location, decoded, parsed.chunks):
            section = " > ".join(chunk.breadcrumb)  # part of the id: what the file is called is not
            titles = (
                chunk.breadcrumb if parsed.heading or chunk.breadcrumb[:1] == (name,) else (name, *chunk.breadcrumb)
            )
            title = (" > ".join(titles) or name) + (f" (part {chunk.part} of {chunk.parts})" if chunk.parts > 1 else "")
            key = f"{section}\n{chunk.text}"
            repeats[key] += 1
            record_id = short_hash(id_, section, chunk.text, str(repeats[key]))
            tags = chunk_tags(chunk.text, front.tags)
            record = document.record(record_id, chunk.text, title, tags, chunk.first_line, chunk.last_line)
            records.append(replace(record, type=chunk_type(titles, chunk.text)))
        return DocumentUpdate(document, tuple(records))


def _batches(changes: FileChanges, files: Iterable[_ReadFile]) -> Iterator[_Batch]:
    """Put the work into batches that each leave the collection consistent."""
    # Deleted ones are part of the first batch: a new document may take the path of one.
    touched = [DocumentUpdate(document, None) for document in changes.touched]
    batch = _Batch(touched, [document.id for document in changes.deleted])
    for file in files:
        batch.add(file)
        if batch.is_full:
            yield batch
            batch = _Batch()
    yield batch


def _urgency(file: ScannedFile) -> tuple[int, int, str]:
    """Sort files by the day of their last change, the latest first, and those of one day by size, the smallest first.

    Chunks are embedded in the order in which they are stored: what a user tries first has its vectors first.
    """
    return -(file.mtime_ns // _DAY_NS), file.size, file.path


def _document_id(collection: str, path: str, taken: set[str]) -> str:
    """Return an id made of the collection and the path; a file that moved away may still have the plain one."""
    id_, attempt = short_hash("document", collection, path), 1
    while id_ in taken:
        attempt += 1
        id_ = short_hash("document", collection, path, str(attempt))
    return id_
