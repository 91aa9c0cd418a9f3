"""Indexed files, read from disk as they are now and redacted, and never from outside a collection's root.

A file of an imported collection is on no disk: it is put together from its chunks.
"""

import re
from collections.abc import Sequence
from glob import escape
from pathlib import Path

from mindex.datatypes import Document, Record, SkippedFile
from mindex.errors import ForbiddenPathError, NotFoundError, UsageError
from mindex.files.collections import root_problem
from mindex.files.file_scan import LINK, ScannedFile, read_bytes
from mindex.files.text_decoding import BinaryFile, decode
from mindex.limits import MAX_FILE_BYTES
from mindex.present.record_view import OMITTED
from mindex.present.text import amount
from mindex.redaction.redactor import Redactor
from mindex.store.base import FileStore
from mindex.values import dataclass

_UPDATE = "run `mindex index` to bring it up to date"


@dataclass(frozen=True, slots=True)
class IndexedFiles:
    """The files of all collections."""

    _files: FileStore
    _redactor: Redactor

    def find(self, path: str) -> tuple[Document, ...]:
        """Indexed files by relative path, end of path, glob, or absolute path inside a root.

        `…` before the end of a path, as a digest shows it, matches anything.
        Raises ForbiddenPathError for a path outside every collection.
        """
        path = path.replace("\\", "/").removeprefix("./")
        if ".." in path.split("/"):
            raise ForbiddenPathError(f"'{path}' is outside the collection", "name an indexed file")
        if path.startswith(OMITTED):
            return self._files.find_documents(f"*{escape(path.removeprefix(OMITTED))}")
        if not (path.startswith("/") or re.match(r"[a-zA-Z]:/", path)):
            return self._files.find_documents(path)
        for collection in self._files.collections():
            root = collection.root.replace("\\", "/").rstrip("/") + "/"
            if path.startswith(root):
                below = self._files.find_documents(f"{collection.name}/{path.removeprefix(root)}")
                return tuple(document for document in below if document.collection == collection.name)
        raise ForbiddenPathError(f"'{path}' is outside every collection", "name an indexed file")

    def find_one(self, path: str) -> Document:
        """As `find`. Raises NotFoundError when there is no such file, UsageError when there are several."""
        if not path.strip() or "\0" in path:
            raise UsageError("the path is empty", "name an indexed file, for example docs/setup.md")
        documents = self.find(path)
        if not documents:
            raise NotFoundError(f"no indexed file '{path}'", "search for it, or index its folder first")
        if len(documents) > 1:
            names = ", ".join(f"{document.collection}/{document.path}" for document in documents[:5])
            raise UsageError(f"'{path}' is in more than one place", f"say which: {names}")
        return documents[0]

    def read_lines(self, documents: Sequence[Document], first: int, last: int) -> list[Record]:
        """These lines of each file that has them. Raises NotFoundError when none has."""
        found, missing = [], None
        for document in documents:
            try:
                found.append(self.read(document, first, last))
            except NotFoundError as error:
                missing = error
        if missing is not None and not found:
            raise missing
        return found

    def read(self, document: Document, first: int = 1, last: int | None = None) -> Record:
        """Lines of a file as one record. Raises NotFoundError when they, or the file, are not there."""
        lines = self._lines(document)
        if first > max(1, len(lines)):
            raise NotFoundError(f"{document.path} has {amount(len(lines), 'line')}", "ask for existing lines")
        last = len(lines) if last is None else min(max(first, last), len(lines))
        text = "\n".join(lines[first - 1 : last])
        return document.record(document.id, text, document.title, document.tags, first, last)

    def _lines(self, document: Document) -> list[str]:
        collection = next((one for one in self._files.collections() if one.name == document.collection), None)
        if collection is None:  # removed since the document was looked up
            raise NotFoundError(f"the collection '{document.collection}' is gone", "`mindex status` lists them")
        if collection.imported:
            return "\n\n".join(chunk.text.strip("\r\n") for chunk in self._files.chunks(document.id)).split("\n")
        if problem := root_problem(collection):
            raise ForbiddenPathError(f"{document.path} is not read: {problem}", "bring the folder back")
        location = str(Path(collection.root) / document.path)
        data = read_bytes(ScannedFile(document.path, location, 0, 0), max_bytes=MAX_FILE_BYTES)
        if isinstance(data, SkippedFile) and data.reason == LINK:
            raise ForbiddenPathError(f"{document.path} is a link now, which is not followed", "replace it by the file")
        if isinstance(data, SkippedFile):
            raise NotFoundError(f"{document.path} cannot be read ({data.reason})", _UPDATE)
        try:
            text = self._redactor.redact_text(decode(data), keep_lines=True)
        except BinaryFile as error:
            raise NotFoundError(f"{document.path} cannot be read ({error})", _UPDATE) from error
        return re.split(r"\r\n|\r|\n", text.rstrip("\r\n"))
