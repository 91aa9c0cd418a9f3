"""MemoryExchange's database: pieces of files, imported as chunks of a collection, with their domains and instructions.

The files themselves are not needed; `mindex index` of their folder makes a separate collection and leaves this one as
it is. A second import brings it up to date. Pieces of files below `personal/` are skipped by name, as that program
promises. Vectors are made again.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from mindex.datatypes import IMPORTED, Collection, Document
from mindex.ids import short_hash
from mindex.transfer.importer_parts import (
    EMPTY,
    LARGEST_NUMBER,
    ROOT_DOMAIN,
    DocumentRows,
    ExportRow,
    OtherRows,
    ReadRow,
    SkippedRow,
    domain_of_path,
    foreign_id,
)
from mindex.transfer.importer_parts import foreign_values as foreign
from mindex_compat.foreign_sqlite import ForeignDatabase, ForeignRow
from mindex_compat.importers.sqlite_source import INDEX, VECTORS, DatabaseImporter, key_of

_COLUMNS = (
    "id content source_file heading_path domain tags related_files is_instruction last_updated chunk_index"
).split()


class MemoryExchange(DatabaseImporter):
    name = "memory-exchange"
    needs = {"chunks": ("content", "source_file")}
    tables = ("chunks",)
    left_out = {"chunks.embedding": VECTORS, "chunks_fts": INDEX}

    def rows(self, database: ForeignDatabase) -> Iterator[ReadRow]:
        files: defaultdict[str, list[ForeignRow]] = defaultdict(list)
        for row in database.rows("chunks", *_COLUMNS):
            where, file = f"chunks {key_of(row)}", foreign.text(row["source_file"]).replace("\\", "/")
            if not foreign.text(row["content"]).strip():
                yield SkippedRow(where, EMPTY)
            elif "personal" in file.lower().split("/")[:-1]:
                yield SkippedRow(where, f"{file} is personal")
            else:
                files[file].append(row)
        source = database.path.resolve()
        collection = Collection(self.name, f"{IMPORTED}{self.name}:{source}", indexed_at=database.modified)
        for file, rows in files.items():
            yield self._document(collection, file, rows, database.modified)
        if present := sum(_is_file(source.parent / file) for file in files):
            hint = f"{present} of its files are in {source.parent}: `mindex index` of that folder follows their changes"
            yield OtherRows("chunks", remark=hint)

    def _document(self, collection: Collection, file: str, rows: list[ForeignRow], modified: int) -> DocumentRows:
        rows.sort(key=lambda row: foreign.integer(row["chunk_index"]) or 0)
        titles = [foreign.text(row["heading_path"]) for row in rows]
        first = next(filter(None, titles), "").partition(" > ")[0]
        domains = [foreign.text(row["domain"]) for row in rows]
        texts = [foreign.text(row["content"]) for row in rows]
        times = [foreign.time_ms(row["last_updated"], modified) for row in rows]
        document = Document(
            id=foreign_id(self.name, "document", file),  # not of the database's place: that may be another one
            collection=collection.name,
            path=file,
            fingerprint=short_hash(*(repr(sorted(row.items())) for row in rows)),
            size=sum(len(text.encode("utf-8", "surrogatepass")) for text in texts),
            mtime_ns=min(LARGEST_NUMBER, max(0, *times) * 1_000_000),
            title=first or Path(file).stem,
            domain=next(filter(None, domains), domain_of_path(file) if file else ROOT_DOMAIN),
            instruction=any(foreign.integer(row["is_instruction"]) for row in rows),
            tags=_unique(foreign.texts(row["tags"]) for row in rows),
            links=_unique(foreign.texts(row["related_files"]) for row in rows),
            indexed_at=modified,
        )
        return DocumentRows(
            collection, document, tuple(self._chunk(document, row, modified) for row in rows), newest=True
        )

    def _chunk(self, document: Document, row: ForeignRow, modified: int) -> ExportRow:
        key, text, domain = key_of(row), foreign.text(row["content"]), foreign.text(row["domain"])
        id_ = foreign_id(self.name, document.id, key, text)
        title = foreign.text(row["heading_path"]) or document.title
        instruction = bool(foreign.integer(row["is_instruction"]))
        fields = foreign.extra_fields(
            foreign_ids={self.name: key},
            chunk_index=foreign.integer(row["chunk_index"]),
            related_files=foreign.texts(row["related_files"]),
            last_updated=foreign.text(row["last_updated"]),
            # Where a piece says another thing than its file.
            domain=domain if domain != document.domain else "",
            is_instruction=instruction if instruction != document.instruction else None,
        )
        at = foreign.time_ms(row["last_updated"], modified)
        record = document.record(id_, text, title, foreign.texts(row["tags"]), 0, 0)
        where = f"chunks {key}"
        return ExportRow(replace(record, created_at=at, fields=fields), where=where, table="chunks")


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that no disk can have
        return False


def _unique(lists: Iterator[Sequence[str]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(text for texts in lists for text in texts))


importer = MemoryExchange()
