"""The collections of a memory as a service: list, add, remove; their documents; the workspace folder."""

from collections.abc import Sequence
from pathlib import Path

from mindex.config import Settings
from mindex.errors import NotFoundError, UsageError
from mindex.ingest.collections import collection_for
from mindex.model import Collection, Document, Record
from mindex.store.base import Store


class Collections:
    """Reached as `memory.collections`. Indexing itself is `Memory.index`."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._store = store
        self._settings = settings

    def list(self) -> tuple[Collection, ...]:
        return self._store.files.collections()

    def add(self, folder: str | Path, *, name: str | None = None, exclude: Sequence[str] = ()) -> Collection:
        """Add a folder as a collection without indexing it yet. Returns the collection it already is, if any."""
        known = self.list()
        collection = collection_for(Path(folder), known, name=name, exclude=exclude)
        if collection not in known:
            self._store.files.put_collection(collection)
        return collection

    def remove(self, name: str) -> int:
        """Remove a collection with its chunks; its files stay as they are. Returns how many chunks were removed."""
        if name not in {collection.name for collection in self.list()}:
            raise NotFoundError(f"there is no collection '{name}'", "`mindex status` lists them")
        return self._store.files.remove_collection(name)

    def documents(self, starting: str = "", *, limit: int = 100) -> tuple[Document, ...]:
        """Documents whose path, or `collection/path`, starts with a text; by collection, then path."""
        found: list[Document] = []
        for collection in self.list():
            for path, document in sorted(self._store.files.documents(collection.name).items()):
                if len(found) == limit:
                    return tuple(found)
                if path.startswith(starting) or f"{collection.name}/{path}".startswith(starting):
                    found.append(document)
        return tuple(found)

    def documents_of(self, name: str) -> tuple[Document, ...]:
        """Every document of one collection."""
        return tuple(self._store.files.documents(name).values())

    def chunks(self, document: str) -> tuple[Record, ...]:
        """The chunks of a document, by its id, in order."""
        return self._store.files.chunks(document)

    def workspace(self) -> Collection | None:
        """The collection of the workspace folder, which is made if missing; None when it is not to be indexed."""
        folder = self._settings.workspace
        if folder is None or not self._settings.flag("workspace.auto_index"):
            return None
        try:
            folder.mkdir(parents=True, exist_ok=True)
            root = folder.resolve()
        except (OSError, RuntimeError) as error:
            raise UsageError(f"{folder} cannot be the workspace ({error})", "set workspace.path to a folder") from None
        # Indexed already, itself or with a folder around it: it is kept up to date under that name.
        around = (collection for collection in self.list() if root.is_relative_to(collection.root))
        return next(around, None) or self.add(root, name="workspace")
