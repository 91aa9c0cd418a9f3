"""The references `links:ID` and `backlinks:ID` of `get`: the files that a file links to, and those that link to it.

ID is the id of a chunk, which means its file, or the path of a file.
"""

import re
from collections.abc import Iterator, Sequence

from mindex.datatypes import Document, Record
from mindex.entries.references import resolve_id
from mindex.errors import NotFoundError
from mindex.files.links import LinkTargets, document_links, place_in
from mindex.lookup.indexed_files import IndexedFiles
from mindex.present.text import amount
from mindex.store.base import Store
from mindex.values import dataclass

_REFERENCE = re.compile(r"(?P<direction>links|backlinks):(?P<file>.*)", re.DOTALL)
_ID = re.compile(r"[a-z0-9]{3,64}", re.IGNORECASE)
_MAX_FILES = 100
_MAX_MISSING = 10


@dataclass(frozen=True, slots=True)
class FoundLinks:
    """Chunks of the linked files, in order, and notes about what is not among them."""

    records: tuple[Record, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Links:
    """Resolves the links between the files of a collection."""

    _store: Store
    _files: IndexedFiles

    def resolve(self, reference: str) -> FoundLinks | None:
        """What a file links to, or what links to it; None for any other reference. Raises NotFoundError."""
        match = _REFERENCE.fullmatch(reference)
        if match is None:
            return None
        document = self._document(match["file"].strip())
        documents = self._store.files.documents(document.collection)
        targets = LinkTargets(documents.values())
        return self._links(document, targets) if match["direction"] == "links" else self._backlinks(document, targets)

    def _document(self, reference: str) -> Document:
        if _ID.fullmatch(reference) and (id_ := resolve_id(self._store, reference)):
            record = self._store.retrieval.record(id_)
            if record is None or record.kind != "chunk":
                raise NotFoundError(
                    f"'{reference}' is not a part of a file: only files have links", "name an indexed file"
                )
            reference = record.document
        return self._files.find_one(reference)

    def _links(self, document: Document, targets: LinkTargets) -> FoundLinks:
        """The first chunk of each linked file; where the link names a heading or a block, the chunk that holds it."""
        found: dict[str, Record] = {}
        missing = []
        for link in document.links:
            target = targets.find(link, document.path)
            if target is None:
                missing.append(link)
            elif target.document.id != document.id:
                chunk = place_in(self._store.files.chunks(target.document.id), target.place)
                found |= {chunk.id: chunk} if chunk else {}
        notes = [] if found else [f"{document.path} links to no indexed file"]
        if missing:
            names = ", ".join(missing[:_MAX_MISSING]) + (" …" if len(missing) > _MAX_MISSING else "")
            are = "is" if len(missing) == 1 else "are"
            notes.append(f"links to {amount(len(missing), 'file')} that {are} not indexed: {names}")
        return FoundLinks(tuple(found.values()), tuple(notes))

    def _backlinks(self, document: Document, targets: LinkTargets) -> FoundLinks:
        """The chunks that hold a link to the file, of at most 100 files in the order of their paths."""

        def leads_here(links: Sequence[str], source: str) -> bool:
            found = (targets.find(link, source) for link in links)
            return any(target is not None and target.document.id == document.id for target in found)

        sources = [one for one in targets.documents if one.id != document.id and leads_here(one.links, one.path)]
        sources.sort(key=lambda one: one.path)

        def linking(source: Document) -> Iterator[Record]:
            chunks = self._store.files.chunks(source.id)
            own = [chunk for chunk in chunks if leads_here(document_links(source.path, chunk.text), source.path)]
            yield from own or chunks[:1]  # a link in the front matter is in no chunk

        records = tuple(record for source in sources[:_MAX_FILES] for record in linking(source))
        if len(sources) > _MAX_FILES:
            return FoundLinks(records, (f"the first {_MAX_FILES} of {len(sources)} files that link to it",))
        return FoundLinks(records, () if records else (f"no indexed file links to {document.path}",))
