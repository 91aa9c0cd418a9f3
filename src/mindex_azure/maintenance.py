"""Size, health and repair of an Azure store."""

from mindex.analyzer import analyze_record
from mindex.datatypes import Check, Record, Report
from mindex.store.base import CollectionCount, StoreStatus
from mindex.store.engine_parts import SqliteStore
from mindex.values import dataclass
from mindex_azure import odata, schema
from mindex_azure.connection import Changes, Row
from mindex_azure.documents import chunk_row, key_of, read_body
from mindex_azure.engine import AzureEngine
from mindex_azure.odata import WORD_FIELDS

_SAMPLE = 200
_FIX = "run `mindex optimize`, then `mindex index`"


@dataclass(frozen=True, slots=True)
class _Strays:
    """Keys of chunks whose file is not there, and of parts whose chunk is not there."""

    chunks: list[str]
    parts: list[str]


class AzureMaintenance:
    """Implements `mindex.store.base.Maintenance`."""

    def __init__(self, engine: AzureEngine, local: SqliteStore) -> None:
        """`local` has the caches."""
        self._engine = engine
        self._connection = engine.connection
        self._local = local

    def status(self) -> StoreStatus:
        chunks = self._engine.facet(odata.CHUNKS, "collection")
        documents = self._engine.facet("doctype eq 'document'", "collection")
        names = [row["id"] for row in self._connection.pages("doctype eq 'collection'", ("id",))]
        total = sum(chunks.values())
        return StoreStatus(
            location=self._connection.address.place,
            schema=schema.SCHEMA_VERSION,
            records={"chunk": total} if total else {},
            collections={name: CollectionCount(documents.get(name, 0), chunks.get(name, 0)) for name in names},
            size_bytes=self._size(),
            caches=self._local.maintenance.status().caches,
        )

    def _size(self) -> int | None:
        """What the service says that the index takes; it counts every few minutes."""
        name = schema.index_behind(self._connection)
        measured = self._connection.attempt(lambda: self._connection.indexes.get_index_statistics(name))
        return measured.storage_size or None

    def check(self) -> tuple[Check, ...]:
        strays = self._strays()
        bad = f"{len(strays.chunks)} chunks lack their file" if strays.chunks else ""
        files = Check("chunks", not bad, bad or "every chunk belongs to a file", _FIX)
        bad = f"{len(strays.parts)} vectors lack a record" if strays.parts else ""
        vectors = Check("vectors", not bad, bad or "every vector belongs to a record", _FIX)
        sample = self._sample()
        different = sum(_differs(row) for row in sample)
        message = f"{len(sample)} records analysed again, {different} differ"
        return files, vectors, Check("words of a sample", not different, message, _FIX), self._check_versions()

    def check_deep(self, report: Report | None = None) -> tuple[Check, ...]:
        """Of the file with the caches: the service keeps its own data sound."""
        return self._local.maintenance.check_deep(report)

    def damaged(self) -> tuple[str, ...]:
        return self._local.maintenance.damaged()

    def _check_versions(self) -> Check:
        old = schema.old_indexes(self._connection)
        name = schema.index_behind(self._connection)
        message = f"{', '.join(old)} of older versions can go" if old else f"{name} is the only version"
        return Check("versions", True, message, "run `mindex optimize`")

    def optimize(self) -> None:
        """Remove what belongs to nothing, rewrite the words of chunks if they are wrong, drop old versions."""
        strays = self._strays()
        self._connection.write(Changes(deletes=[*strays.chunks, *strays.parts]))
        if any(map(_differs, self._sample())):
            for row in self._connection.pages(odata.CHUNKS, ("position", "body")):
                written = chunk_row(read_body(Record, row), row["position"])
                words = {name: written[name] for name in (*WORD_FIELDS, "length")}
                self._connection.write(Changes(merges=[{"key": row["key"], **words}]))
        for name in schema.old_indexes(self._connection):
            self._connection.attempt(lambda name=name: self._connection.indexes.delete_index(name))  # type: ignore[misc]

    def _strays(self) -> _Strays:
        documents = {row["id"] for row in self._connection.pages("doctype eq 'document'", ("id",))}
        rows = list(self._connection.pages(odata.VECTORS, ("id", "document", "doctype")))
        chunks = {row["key"] for row in rows if row["doctype"] == "chunk" and row["document"] in documents}
        return _Strays(
            [row["key"] for row in rows if row["doctype"] == "chunk" and row["key"] not in chunks],
            [row["key"] for row in rows if row["doctype"] == "part" and key_of("chunk", row["id"]) not in chunks],
        )

    def _sample(self) -> list[Row]:
        return self._connection.search(odata.CHUNKS, select=("body", *WORD_FIELDS), top=_SAMPLE).rows


def _differs(row: Row) -> bool:
    """Whether a chunk's words are not those that the analyzer makes of it."""
    columns = analyze_record(read_body(Record, row))
    return any((row[f"words_{name}"] or "") != words for name, words in columns._asdict().items())
