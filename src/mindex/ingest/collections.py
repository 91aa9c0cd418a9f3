"""The collection of a folder: a root is indexed once, under one name, and never inside another."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mindex.errors import CollectionError, NotFoundError, UsageError
from mindex.model import Collection


def collection_for(
    folder: Path,
    known: Sequence[Collection],
    *,
    name: str | None = None,
    context: str | None = None,
    exclude: Sequence[str] = (),
) -> Collection:
    """Return the known collection of a folder, or a new one that is not stored yet.

    Raises CollectionError for a folder inside or around a known one, NotFoundError for a missing one.
    """
    root = _real_folder(folder)
    for collection in known:
        if collection.root == str(root):
            return _known_collection(collection, name, context, exclude)
        other = Path(collection.root)
        if other in root.parents:
            raise CollectionError(
                f"{root} lies inside the collection '{collection.name}' ({other})",
                f"it is indexed with it: run `mindex index {other}`",
            )
        if root in other.parents:
            raise CollectionError(
                f"{root} holds the collection '{collection.name}' ({other})",
                "index its other folders one by one, or forget that collection first with"
                f" `mindex index --remove {collection.name}`",
            )
    return Collection(_free_name(name or root.name or "root", known), str(root), tuple(exclude), context or "")


def _real_folder(folder: Path) -> Path:
    try:
        root = folder.expanduser().resolve()
        if root.is_dir():
            return root
        exists = root.exists()
    except (OSError, RuntimeError, ValueError) as error:
        raise UsageError(f"{str(folder)!r} is not a usable path ({error})", "name an existing folder") from None
    if exists:
        raise UsageError(f"{folder} is a file, not a folder", f"index the folder it lies in: {folder.parent}")
    raise NotFoundError(f"there is no folder {folder}", "check the path")


def _known_collection(
    collection: Collection, name: str | None, context: str | None, exclude: Sequence[str]
) -> Collection:
    if name is not None and name != collection.name:
        raise CollectionError(
            f"{collection.root} is already indexed as '{collection.name}'", "leave --name out, or use that name"
        )
    changed = replace(collection, exclude=tuple(exclude)) if exclude else collection
    return changed if context is None else replace(changed, context=context)


def _free_name(name: str, known: Sequence[Collection]) -> str:
    taken = {collection.name for collection in known}
    if name not in taken:
        return name
    return next(f"{name}-{number}" for number in range(2, len(taken) + 3) if f"{name}-{number}" not in taken)
