"""Resolves references to records: ids, short ids, paths, line spans and globs.

Files are read from disk, as they are now, and never from outside a collection's root.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from mindex.errors import ForbiddenPathError, NotFoundError, UsageError
from mindex.ingest.text_decoding import BinaryFile, decode
from mindex.memories.entries import resolve_id
from mindex.model import Document, GetResult, Record
from mindex.present.text import amount
from mindex.store.base import Store

_SPAN = re.compile(r"(?P<path>.+?):(?P<first>\d{1,9})(?:-(?P<last>\d{1,9}))?")
_ID = re.compile(r"[a-z0-9]{3,64}", re.IGNORECASE)
_MOST_MATCHES = 100
_LONGEST_REASON = 200

# Redacts the text of a file.
Redact = Callable[[str], str]
# Resolves a reference that names neither a record nor a file; returns None for any other reference.
Special = Callable[[str], Sequence[Record] | None]


def find_records(
    store: Store,
    references: Sequence[str],
    redact: Redact,
    as_of: int | None = None,
    special: Special = lambda _: None,
) -> GetResult:
    """The records of every reference, in order. References without a record are listed as missing, not raised."""
    if not any(reference.strip(" ,\t\n") for reference in references):
        raise UsageError("nothing was asked for", "name an id, a file, lines of a file or a glob")
    records: dict[str, Record] = {}
    missing: list[str] = []
    notes: list[str] = []
    why: dict[str, None] = {}
    for reference in _split(store, references):
        resolved: Sequence[Record] | None = None
        try:
            resolved = special(reference)
            found = list(_resolve(store, reference, redact, as_of) if resolved is None else resolved)
        except (NotFoundError, ForbiddenPathError) as error:
            found = []
            why[error.message[:_LONGEST_REASON]] = None
        if resolved is not None and not found:
            notes.append(f"nothing is {reference}")
        elif not found:
            missing.append(reference)
        for record in found:
            records.setdefault(f"{record.id}:{record.first_line}-{record.last_line}", record)
    return GetResult(tuple(records.values()), tuple(missing), tuple(notes), tuple(why))


def read_file(store: Store, path: str, redact: Redact) -> Record:
    """One indexed file, whole. Raises NotFoundError, or ForbiddenPathError for a path outside every collection."""
    if not path.strip() or "\0" in path:
        raise UsageError("the path is empty", "name an indexed file, for example docs/setup.md")
    documents = _documents(store, path)
    if not documents:
        raise NotFoundError(f"no indexed file '{path}'", "search for it, or index its folder first")
    if len(documents) > 1:
        names = ", ".join(f"{document.collection}/{document.path}" for document in documents[:5])
        raise UsageError(f"'{path}' is in more than one place", f"say which: {names}")
    return _file_record(store, documents[0], redact)


def _split(store: Store, references: Sequence[str]) -> Iterator[str]:
    """A comma separates references, unless a file has that name."""
    for reference in references:
        printable = reference.encode("utf-8", "backslashreplace").decode()  # a broken name cannot be looked up
        if "," in printable and store.files.find_documents(printable):
            yield printable
        else:
            yield from (part.strip() for part in printable.split(",") if part.strip())


def _resolve(store: Store, reference: str, redact: Redact, as_of: int | None) -> Iterator[Record]:
    if _ID.fullmatch(reference) and (id_ := resolve_id(store, reference)):
        if record := _record(store, id_, as_of):
            yield record
        return
    span = _SPAN.fullmatch(reference)
    if span and (documents := _documents(store, span["path"])):
        first = max(1, int(span["first"]))
        last = int(span["last"]) if span["last"] else first
        if last < int(span["first"]):
            swapped = f"{span['path']}:{last}-{first}"
            raise UsageError(f"'{reference}' ends before it begins", f"write the smaller number first: {swapped}")
        for document in documents:
            yield _file_record(store, document, redact, first, last)
        return
    for document in _documents(store, reference)[:_MOST_MATCHES]:
        yield _file_record(store, document, redact)


def _record(store: Store, id_: str, as_of: int | None) -> Record | None:
    """A record as it is or was at a moment. Forgotten ones are not shown, superseded ones are."""
    record = store.retrieval.record(id_)
    if record is not None and record.kind != "chunk" and as_of is not None:
        record = next((change.after for change in reversed(store.entries.history(id_)) if change.at <= as_of), None)
    if record is None or (record.retired_at is not None and not record.superseded_by):
        return None
    return record


def _documents(store: Store, path: str) -> tuple[Document, ...]:
    """Indexed files by relative path, end of path, glob, or absolute path inside a root."""
    path = path.replace("\\", "/").removeprefix("./")
    if ".." in path.split("/"):
        raise ForbiddenPathError(f"'{path}' leads out of its folder", "name an indexed file")
    if not (path.startswith("/") or re.match(r"[a-zA-Z]:/", path)):
        return store.files.find_documents(path)
    for collection in store.files.collections():
        root = collection.root.replace("\\", "/").rstrip("/") + "/"
        if path.startswith(root):
            below = store.files.find_documents(f"{collection.name}/{path.removeprefix(root)}")
            return tuple(document for document in below if document.collection == collection.name)
    raise ForbiddenPathError(f"'{path}' is outside every collection", "name an indexed file")


def _file_record(store: Store, document: Document, redact: Redact, first: int = 1, last: int | None = None) -> Record:
    lines = _lines(store, document, redact)
    if first > max(1, len(lines)):
        has = amount(len(lines), "line")
        raise NotFoundError(f"{document.path} has {has}", "ask for lines that are there")
    last = len(lines) if last is None else min(max(first, last), len(lines))
    return Record(
        id=document.id,
        kind="chunk",
        text="\n".join(lines[first - 1 : last]),
        title=document.title,
        tags=document.tags,
        created_at=document.mtime_ns // 1_000_000,
        updated_at=document.indexed_at,
        document=document.id,
        collection=document.collection,
        path=document.path,
        first_line=first,
        last_line=last,
        domain=document.domain,
        instruction=document.instruction,
    )


def _lines(store: Store, document: Document, redact: Redact) -> list[str]:
    root = next((Path(c.root) for c in store.files.collections() if c.name == document.collection), None)
    if root is None:  # removed since the document was looked up
        raise NotFoundError(f"the collection '{document.collection}' is gone", "`mindex status` lists them")
    try:
        real = (root / document.path).resolve(strict=True)
        if not real.is_relative_to(root.resolve()):
            raise ForbiddenPathError(f"{document.path} leads out of {root}", "replace the link by the file")
        if not real.is_file():  # a pipe would be waited for
            raise NotFoundError(f"{document.path} is no longer a file", "run `mindex index` to bring it up to date")
        text = redact(decode(real.read_bytes()))
    except (OSError, BinaryFile) as error:
        raise NotFoundError(
            f"{document.path} cannot be read ({error})", "run `mindex index` to bring it up to date"
        ) from error
    return re.split(r"\r\n|\r|\n", text.rstrip("\r\n"))
