"""The status and the checks of a memory, gathered from the store, the models and the folders."""

from pathlib import Path

from mindex.embedding.models import Models
from mindex.embedding.selection import EmbedderSelection
from mindex.model import Check, CollectionStatus, Status
from mindex.store.base import Store


def status(store: Store, embedding: EmbedderSelection) -> Status:
    counts = store.maintenance.status()
    collections = tuple(
        CollectionStatus(
            collection.name,
            collection.root,
            counts.collections[collection.name].documents,
            counts.collections[collection.name].chunks,
            collection.indexed_at,
            missing=not collection.imported and not Path(collection.root).is_dir(),
            context=collection.context,
        )
        for collection in store.files.collections()
        if collection.name in counts.collections  # else added since it was counted
    )
    tier, why = embedding.search_tier()
    return Status(
        db=counts.location,
        schema=counts.schema,
        records=counts.records,
        collections=collections,
        embedding=embedding.status(),
        tier=tier,
        size_bytes=counts.size_bytes,
        caches=counts.caches,
        tier_reason=why,
    )


def checks(store: Store, models: Models) -> tuple[Check, ...]:
    """Every check, each with what to do about a failure."""
    found = [*store.maintenance.check(), *models.check()]
    for collection in store.files.collections():
        if collection.imported:
            continue
        exists = Path(collection.root).is_dir()
        message = f"{collection.root} is there" if exists else f"{collection.root} is not there"
        found.append(Check(f"collection {collection.name}", exists, message, "bring the folder back, or remove it"))
    return tuple(found)
