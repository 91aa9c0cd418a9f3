"""Which files of a folder are new, changed, moved, deleted or unchanged since they were indexed."""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from mindex.clock import now_ms
from mindex.datatypes import Document, SkippedFile
from mindex.files.file_scan import ScannedFile

# A file saved within this time of being read may change again while its time stays the same.
_CLOCK_GRAIN_NS = 2_000_000_000


@dataclass(slots=True)
class FileChanges:
    """What indexing has to do in one collection."""

    seen: int = 0
    unchanged: int = 0
    touched: list[Document] = field(default_factory=list)  # another time, the same bytes
    changed: list[ScannedFile] = field(default_factory=list)  # moved ones included
    new: list[ScannedFile] = field(default_factory=list)
    moved: dict[str, Document] = field(default_factory=dict)  # new path → the document that moved there
    deleted: list[Document] = field(default_factory=list)
    skipped: list[SkippedFile] = field(default_factory=list)


def fingerprint(data: bytes, version: str) -> str:
    """Return what documents are compared by: a hash of the bytes and the version of everything that makes chunks."""
    return f"{hashlib.sha256(data).hexdigest()}:{version}"


def find_changes(
    files: Iterable[ScannedFile | SkippedFile],
    documents: Mapping[str, Document],
    fingerprint_of: Callable[[ScannedFile], str],
    version: str,
    *,
    force: bool,
) -> FileChanges:
    """Compare the files of a folder with its documents by path; with `force` every known file counts as changed.

    `fingerprint_of` reads a file and returns an empty string when it cannot be read.
    """
    changes = FileChanges()
    new: list[ScannedFile] = []
    missing = dict(documents)
    for file in files:
        if isinstance(file, SkippedFile):
            changes.skipped.append(file)
            continue
        changes.seen += 1
        before = missing.pop(file.path, None)
        if before is None:
            new.append(file)
        elif not force and _is_surely_unchanged(before, file, version):
            changes.unchanged += 1
        elif not force and before.fingerprint == fingerprint_of(file):
            touched = replace(before, size=file.size, mtime_ns=file.mtime_ns, indexed_at=now_ms())
            changes.touched.append(touched)
        else:
            changes.changed.append(file)
    # Below a folder that could not be read no file is known to be deleted.
    unread = tuple(skipped.path for skipped in changes.skipped if skipped.path.endswith("/"))
    if "./" in unread:
        missing = {}
    missing = {path: document for path, document in missing.items() if not path.startswith(unread or ("\0",))}
    _pair_moves(changes, new, missing, fingerprint_of)
    return changes


def _pair_moves(
    changes: FileChanges,
    new: Iterable[ScannedFile],
    missing: dict[str, Document],
    fingerprint_of: Callable[[ScannedFile], str],
) -> None:
    """Treat a new file with the bytes of a missing one as that file, moved, even if another version made its chunks."""
    by_bytes = {document.fingerprint.partition(":")[0]: document for document in missing.values()}
    for file in new:
        document = by_bytes.pop(fingerprint_of(file).partition(":")[0], None) if by_bytes else None
        if document is None:
            changes.new.append(file)
        else:
            changes.moved[file.path] = document
            changes.changed.append(file)
            del missing[document.path]
    changes.deleted = list(missing.values())


def _is_surely_unchanged(before: Document, file: ScannedFile, version: str) -> bool:
    """Return whether size and time show that the file need not be read again."""
    return (
        (before.size, before.mtime_ns) == (file.size, file.mtime_ns)
        and before.fingerprint.endswith(f":{version}")
        and before.mtime_ns < before.indexed_at * 1_000_000 - _CLOCK_GRAIN_NS
    )
