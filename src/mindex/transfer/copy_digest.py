"""How the content of two stores is compared: counts, and digests that do not depend on the order of the rows."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b

from mindex.datatypes import Collection, Document, Record, RecordVectors
from mindex.store.export_rows import ExportRow

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
