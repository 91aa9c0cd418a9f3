"""Collections: a root is indexed once, under one name, and never inside another.

The service lists, adds and removes them, lists their documents, and makes the workspace folder one of them.
"""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mindex.config import Settings
from mindex.datatypes import Collection, Document, Record
from mindex.errors import CollectionError, NotFoundError, UsageError
from mindex.limits import MAX_FIELD, MAX_NAME, MAX_PATTERNS
from mindex.private_files import make_private_folder
from mindex.redaction.redactor import Redactor
from mindex.store.base import Store
from mindex.values import dataclass


@dataclass(frozen=True, slots=True)
class Collections:
    """`memory.collections`: the indexed folders. `Memory.index` indexes them."""

    _store: Store
    _settings: Settings

    def list(self) -> tuple[Collection, ...]:
        """Return all collections."""
        return self._store.files.collections()

    def several(self) -> bool:
        """Return whether there is more than one collection, so that a path alone may be ambiguous."""
        return len(self.list()) > 1

    def add(self, folder: str | Path, *, name: str | None = None, exclude: Sequence[str] = ()) -> Collection:
        """Add a folder as a collection without indexing it yet. If it is one already, that one is returned."""
        known = self.list()
        collection = collection_for(Path(folder), known, name=name, exclude=exclude)
        if collection not in known:
            refuse_unusable_names(collection, Redactor.of(self._settings))
            self._store.files.put_collection(collection)
        return collection

    def remove(self, name: str) -> int:
        """Remove a collection with its chunks; its files are not changed. Returns the number of removed chunks."""
        if name not in {collection.name for collection in self.list()}:
            raise NotFoundError(f"there is no collection '{name}'", "`mindex status` lists them")
        return self._store.files.remove_collection(name)

    def documents(self, starting: str = "", *, limit: int = 100) -> tuple[Document, ...]:
        """Return documents whose path, or `collection/path`, starts with a text, by collection and path."""
        found: list[Document] = []
        for collection in self.list():
            for path, document in sorted(self._store.files.documents(collection.name).items()):
                if len(found) == limit:
                    return tuple(found)
                if path.startswith(starting) or f"{collection.name}/{path}".startswith(starting):
                    found.append(document)
        return tuple(found)

    def documents_of(self, name: str) -> tuple[Document, ...]:
        """Return all documents of a collection."""
        return tuple(self._store.files.documents(name).values())

    def chunks(self, document: str) -> tuple[Record, ...]:
        """Return the chunks of a document, by its id, in order."""
        return self._store.files.chunks(document)

    def workspace(self) -> Collection | None:
        """Return the collection of the workspace folder, created if missing; None if it is not indexed."""
        folder = self._settings.workspace
        if folder is None or not self._settings.flag("workspace.auto_index"):
            return None
        try:
            make_private_folder(folder)
            root = folder.resolve()
        except (OSError, RuntimeError) as error:
            raise UsageError(f"{folder} cannot be the workspace ({error})", "set workspace.path to a folder") from None
        # Indexed already, itself or with a folder around it: it is kept up to date under that name.
        around = (collection for collection in self.list() if root.is_relative_to(collection.root))
        return next(around, None) or self.add(folder, name="workspace")  # not its root: it may have become a link


def collection_for(
    folder: Path,
    known: Sequence[Collection],
    *,
    name: str | None = None,
    context: str | None = None,
    exclude: Sequence[str] = (),
) -> Collection:
    """Return the known collection of a folder, or a new one that is not stored yet.

    Raises CollectionError for a folder inside or around a known one, or one that became a link to another folder since
    it was indexed, NotFoundError for a missing one.
    """
    root = _real_folder(folder)
    # As it was named, without resolving links: what was indexed under that name was another folder.
    named = Path(os.path.abspath(folder.expanduser()))  # noqa: PTH100
    moved = next((one for one in known if named.is_relative_to(one.root) and _leads_elsewhere(one.root)), None)
    if moved is not None:
        raise CollectionError(
            f"the folder of '{moved.name}' was not indexed: {root_problem(moved)}",
            f"index that folder by its own name, or remove this collection with `mindex index --remove {moved.name}`",
        )
    for collection in known:
        if collection.root == str(root):
            return _known_collection(collection, name, context, exclude)
        other = Path(collection.root)
        if other in root.parents:
            raise CollectionError(
                f"{root} is inside the collection '{collection.name}' ({other})",
                f"index it with that collection: run `mindex index {other}`",
            )
        if root in other.parents:
            raise CollectionError(
                f"{root} contains the collection '{collection.name}' ({other})",
                "index its other folders one by one, or forget that collection first with"
                f" `mindex index --remove {collection.name}`",
            )
    return Collection(free_name(name or root.name or "root", known), str(root), tuple(exclude), context or "")


def root_problem(collection: Collection) -> str:
    """Return why the folder of a collection is not read: it is gone, or a link leads elsewhere; '' if it is read.

    A root is stored without links. Where it, or a folder above it, became one since, the files behind it were never
    named to be indexed.
    """
    root = collection.root
    if real := _leads_elsewhere(root):
        return f"{root} now leads to {real}"
    return "" if Path(root).is_dir() else f"{root} is not there"


def _leads_elsewhere(root: str) -> str:
    """Return the folder to which a root leads by a link; '' if it leads nowhere else."""
    real = os.path.realpath(root)
    return "" if os.path.normcase(real) == os.path.normcase(root) else real


def refuse_unusable_names(collection: Collection, redactor: Redactor) -> None:
    """Raise UsageError when the name, the folder or an exclude pattern is too long or holds a secret."""
    limits = {"name": MAX_NAME, "root": MAX_FIELD, "context": MAX_FIELD}
    for what, most in limits.items():
        if len(getattr(collection, what)) > most:
            raise UsageError(f"the {what} of a collection has at most {most:,} characters", "shorten it")
    if len(collection.exclude) > MAX_PATTERNS or any(len(pattern) > MAX_FIELD for pattern in collection.exclude):
        allowed = f"give at most {MAX_PATTERNS:,} of {MAX_FIELD:,} characters"
        raise UsageError("there are too many exclude patterns, or they are too long", allowed)
    named = {"name of the collection": collection.name, "path of the folder": collection.root}
    for what, text in (*named.items(), *(("exclude pattern", pattern) for pattern in collection.exclude)):
        if kinds := redactor.kinds_in(text):
            raise UsageError(f"the {what} contains a secret ({', '.join(kinds)})", "rename it, or use another pattern")


def _real_folder(folder: Path) -> Path:
    try:
        root = folder.expanduser().resolve()
        if root.is_dir():
            return root
        exists = root.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"{str(folder)!r} is not a usable path ({error})", "name an existing folder") from None
    if exists:
        raise UsageError(f"{folder} is a file, not a folder", f"index its folder: {folder.parent}")
    raise NotFoundError(f"there is no folder {folder}", "check the path")


def _known_collection(
    collection: Collection, name: str | None, context: str | None, exclude: Sequence[str]
) -> Collection:
    if name is not None and name != collection.name:
        raise CollectionError(
            f"{collection.root} is already indexed as '{collection.name}'", "remove --name, or use that name"
        )
    changed = replace(collection, exclude=tuple(exclude)) if exclude else collection
    return changed if context is None else replace(changed, context=context)


def free_name(name: str, known: Sequence[Collection]) -> str:
    """Return the name, or the first of `name-2`, `name-3` … that no known collection has."""
    taken = {collection.name for collection in known}
    if name not in taken:
        return name
    return next(f"{name}-{number}" for number in range(2, len(taken) + 3) if f"{name}-{number}" not in taken)
