"""Files as one principal sees them: those of its collections."""

from collections.abc import Iterable, Sequence

from mindex.datatypes import Collection, Document, Record
from mindex.store.base import ChunkCounts, DocumentUpdate, FileStore
from mindex.store.scoped.rules import ScopedGroup


class ScopedFiles(ScopedGroup[FileStore]):
    """Implements `mindex.store.base.FileStore`."""

    def collections(self) -> tuple[Collection, ...]:
        return tuple(one for one in self._group.collections() if self._rules.sees_collection(one.name))

    def put_collection(self, collection: Collection) -> None:
        self._rules.require_collection(collection.name)
        self._group.put_collection(collection)

    def remove_collection(self, name: str) -> int:
        self._rules.require_collection(name)
        return self._group.remove_collection(name)

    def documents(self, collection: str) -> dict[str, Document]:
        return self._group.documents(collection) if self._rules.sees_collection(collection) else {}

    def find_documents(self, path: str) -> tuple[Document, ...]:
        found = self._group.find_documents(path)
        return tuple(one for one in found if self._rules.sees_collection(one.collection))

    def domains(self) -> frozenset[str]:
        if self._rules.sees_all_files:
            return self._group.domains()
        return frozenset(one.domain for one in self._visible_documents())

    def apply(self, updates: Sequence[DocumentUpdate], removed: Iterable[str] = ()) -> ChunkCounts:
        self._rules.require_write()
        for update in updates:
            self._rules.require_collection(update.document.collection)
        removed = list(removed)
        if removed and not self._rules.sees_all_files:
            visible = {one.id for one in self._visible_documents()}
            removed = [id_ for id_ in removed if id_ in visible]
        return self._group.apply(updates, removed)

    def chunks(self, document: str) -> tuple[Record, ...]:
        return tuple(filter(self._rules.sees, self._group.chunks(document)))

    def uncontextualized(self, collections: Sequence[str]) -> tuple[str, ...]:
        return self._group.uncontextualized(list(filter(self._rules.sees_collection, collections)))

    def set_contexts(self, contexts: Sequence[tuple[str, str]]) -> int:
        self._rules.require_write()
        visible = set(self._rules.visible(id_ for id_, _ in contexts))
        return self._group.set_contexts([one for one in contexts if one[0] in visible])

    def drop_contexts(self, collections: Sequence[str]) -> int:
        for name in collections:
            self._rules.require_collection(name)
        return self._group.drop_contexts(collections)

    def _visible_documents(self) -> list[Document]:
        return [one for collection in self.collections() for one in self._group.documents(collection.name).values()]
