"""`Passage`: a record as memory-search shows it, with its integer id, file and lines; and how references name one."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from hashlib import sha256
from pathlib import PurePath

from mindex import Memory
from mindex.datatypes import Document, Record
from mindex.errors import NotFoundError
from mindex_compat.memory_search.observations import concepts, observation_type
from mindex_compat.record_numbers import id_start, record_number

PROGRAM = "memory-search"
_SHORT = 6
_PAGE = 1_000
_MAX_DIGITS = 19  # of an integer id
_SPAN = re.compile(r"(?P<path>.+):(?P<line>\d{1,9})")
_GLOB = re.compile(r"[*?\[]")
_MAX_FILES = 100_000  # of an index, among which a part of a path is looked up


@dataclass(frozen=True)
class Passage:
    """A piece of an indexed file, or an entry: one that was imported from memory-search keeps its file and lines."""

    record: Record
    file: str
    index: int
    file_id: int

    @property
    def id(self) -> int:
        """The number by which `get` takes it: its own from before an import, else one made of its id."""
        former = foreign_id(self.record)
        is_number = former.isdecimal() and len(former) <= _MAX_DIGITS
        return int(former) if is_number else record_number(self.record.id)

    @property
    def short_id(self) -> str:
        return self.record.id[:_SHORT]

    @property
    def text(self) -> str:
        return self.record.text

    @property
    def first_line(self) -> int:
        return self.record.first_line or whole(self.record.fields.get("line_start")) or 1

    @property
    def last_line(self) -> int:
        last = self.record.last_line or whole(self.record.fields.get("line_end"))
        return last or self.first_line + self.text.count("\n")

    @property
    def modified(self) -> int:
        return self.record.created_at

    @cached_property
    def type(self) -> str:
        """Its observation type: the imported one, else by the patterns."""
        given = self.record.fields.get("observation_type")
        return str(given) if given else observation_type(self.text, self.record.title)

    @cached_property
    def concepts(self) -> tuple[str, ...]:
        return concepts(self.text, self.record.tags)

    @property
    def collections(self) -> tuple[str, ...]:
        held = self.record.fields.get("collections")
        return (self.record.collection, *(map(str, held) if isinstance(held, list | tuple) else ()))

    def json(self) -> dict[str, object]:
        """A chunk as `get --json` and `--timeline` print it. Vectors are not shown."""
        return {
            "id": self.id,
            "shortId": self.short_id,
            "fileId": self.file_id,
            "chunkIndex": self.index,
            "content": self.text,
            "lineStart": self.first_line,
            "lineEnd": self.last_line,
            "filePath": self.file,
            "contentHash": sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest(),
            "observationType": self.type or None,
            "concepts": list(self.concepts),
        }

    def lines(self, first: int, last: int) -> str:
        """Return those of its lines that have these numbers in its file."""
        lines = self.text.split("\n")
        start = max(0, first - self.first_line)
        return "\n".join(lines[start : max(start, last - self.first_line + 1)])


class Passages:
    """The records of a memory as passages."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._roots = {one.name: one for one in memory.collections.list()}
        self._of_documents: dict[str, tuple[Record, ...]] = {}

    def passage(self, record: Record) -> Passage:
        if record.kind != "chunk":
            file = record.context if record.source.startswith(f"{PROGRAM}:chunks:") else f"memory://{record.id}"
            return Passage(record, file, whole(record.fields.get("chunk_index")), 0)
        ids = [one.id for one in self._chunks(record.document)]
        index = ids.index(record.id) if record.id in ids else 0
        return Passage(record, self.path(record.collection, record.path), index, self._file_id(record))

    def path(self, collection: str, path: str) -> str:
        """Return where a file is: an absolute path, except for files that were imported."""
        known = self._roots.get(collection)
        return path if known is None or known.imported else f"{known.root}/{path}"

    def find(self, reference: str) -> list[Passage]:
        """Return what a reference names: a number, a short id, a file, `path:line`, part of a path, a glob, or a list.

        Raises NotFoundError for one that names nothing.
        """
        files = [] if _GLOB.search(reference) else self._files_with(reference)
        parts = [part.strip() for part in reference.split(",") if part.strip()]
        if not files and parts and "," in reference:
            return [one for part in parts for one in self.find(part)]
        found = self._numbered(reference) or self._at_line(reference) or self._named(reference)
        if not found and files:
            found = [self.passage(one) for file in files for one in self._named_records(self._address(file))]
        if not found:
            raise NotFoundError(f"there is no chunk or file '{reference}'", "find one with `mindex ms search QUERY`")
        return found

    def around(self, reference: str, count: int = 2) -> tuple[Passage, list[Passage]]:
        """Return a passage, and it with its neighbours in its file."""
        one = self.find(reference)[0]
        if one.record.kind != "chunk":
            return one, [one]
        near = self._chunks(one.record.document)
        return one, [self.passage(record) for record in near[max(0, one.index - count) : one.index + count + 1]]

    def _chunks(self, document: str) -> tuple[Record, ...]:
        if document not in self._of_documents:
            self._of_documents[document] = self._memory.collections.chunks(document)
        return self._of_documents[document]

    def _numbered(self, reference: str) -> list[Passage]:
        if not reference.isdecimal() or len(reference) > _MAX_DIGITS:
            return []
        if start := id_start(int(reference)):
            return [self.passage(one) for one in self._memory.entries.starting(start, limit=1)]
        return self._named(f"{PROGRAM}:{reference}")

    def _at_line(self, reference: str) -> list[Passage]:
        """Return the chunk that contains a line of a file."""
        if (span := _SPAN.fullmatch(reference)) is None:
            return []
        line = int(span["line"])
        chunks = (one for file in self._files_with(span["path"])[:1] for one in self._chunks(file.id))
        return [self.passage(one) for one in chunks if one.first_line <= line <= one.last_line][:1]

    def _named(self, reference: str) -> list[Passage]:
        return [self.passage(one) for one in self._named_records(reference)]

    def _named_records(self, reference: str) -> tuple[Record, ...]:
        try:
            return self._memory.get(reference).records
        except NotFoundError:
            return ()

    def _files_with(self, part: str) -> list[Document]:
        """Return the files whose path is this, else those that contain it."""
        part = part.replace("\\", "/")
        return [one for path, one in self._files if part in (path, one.path)] or [
            one for path, one in self._files if part.lower() in path.lower()
        ]

    @cached_property
    def _files(self) -> list[tuple[str, Document]]:
        documents = self._memory.collections.documents(limit=_MAX_FILES)
        return [(self.path(one.collection, one.path), one) for one in documents]

    def _address(self, file: Document) -> str:
        return f"doc://{file.collection}/{file.path}"

    def _file_id(self, record: Record) -> int:
        return record_number(record.document) if re.fullmatch(r"[a-z0-9]{10,}", record.document) else 0


def path_matches(file: str, pattern: str) -> bool:
    """Whether a path contains a text, or matches a glob, in any case."""
    file, pattern = PurePath(file).as_posix().lower(), pattern.replace("\\", "/").lower()
    return fnmatchcase(file, f"*{pattern}*") if _GLOB.search(pattern) else pattern in file


def foreign_id(record: Record) -> str:
    """Return the id by which memory-search knew a record that was imported; '' for any other."""
    ids = record.fields.get("foreign_ids")
    held = ids.get(PROGRAM, "") if isinstance(ids, Mapping) else ""
    return str(held if not isinstance(held, Sequence) or isinstance(held, str) else next(iter(held), ""))


def whole(value: object) -> int:
    """Return an integer of an entry's fields; 0 for anything else."""
    return value if isinstance(value, int) else 0


def memories_of(memory: Memory) -> Iterator[Record]:
    """Yield all memories."""
    scope, offset = memory.filters(kinds=["memory"]), 0
    while records := memory.entries.page(scope, limit=_PAGE, offset=offset).records:
        offset += len(records)
        yield from records


def is_filled(memory: Memory) -> bool:
    """Whether there is anything that a search could find."""
    return bool(memory.collections.list() or memory.list(memory.filters(kinds=["memory"]), limit=1).total)
