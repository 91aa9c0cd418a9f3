"""The status and the checks of a memory, gathered from the store, the models and the folders."""

from pathlib import Path

from mindex.clock import now_ms
from mindex.datatypes import Check, CollectionStatus, Report, Status
from mindex.embedding.models import Models
from mindex.embedding.selection import EmbedderSelection
from mindex.entry_points import problems
from mindex.files.collections import root_problem
from mindex.hook_pause import WITHOUT_END, paused_until
from mindex.project_file import find_project_file
from mindex.store.base import Store


def status(store: Store, embedding: EmbedderSelection, folder: Path) -> Status:
    """What is stored, and whether hooks are paused, which a file in the memory's `folder` says."""
    counts = store.maintenance.status()
    collections = tuple(
        CollectionStatus(
            collection.name,
            collection.root,
            counts.collections[collection.name].documents,
            counts.collections[collection.name].chunks,
            collection.indexed_at,
            missing=not collection.imported and bool(root_problem(collection)),
            context=collection.context,
        )
        for collection in store.files.collections()
        if collection.name in counts.collections  # else added since it was counted
    )
    tier, why = embedding.search_tier()
    end = paused_until(folder)
    paused = end > now_ms()
    return Status(
        db=counts.location,
        schema=counts.schema,
        records=counts.records,
        collections=collections,
        embedding=embedding.status(store),
        tier=tier,
        size_bytes=counts.size_bytes,
        caches=counts.caches,
        tier_reason=why,
        hooks_paused=paused,
        hooks_resume_at=end if paused and end != WITHOUT_END else None,
        extension_problems=tuple(str(error) for error in problems(own=False)),
    )


def checks(store: Store, models: Models, *, deep: bool = False, report: Report | None = None) -> tuple[Check, ...]:
    """Every check, each with what to do about a failure. With `deep`, every row is read and compared."""
    found = [*store.maintenance.check(), *models.check()]
    if deep:
        found += store.maintenance.check_deep(report)
    for collection in store.files.collections():
        if collection.imported:
            continue
        problem = root_problem(collection)
        message = problem or f"{collection.root} is there"
        found.append(
            Check(f"collection {collection.name}", not problem, message, "bring the folder back, or remove it")
        )
        project = find_project_file(Path(collection.root))
        if project is not None and project.notes:
            fix = "fix the file; its wrong parts have no effect"
            found.append(Check(f"project file of {collection.name}", False, "; ".join(project.notes), fix))
    found += [Check("extensions", False, error.message, error.hint) for error in problems()]
    return tuple(found)
