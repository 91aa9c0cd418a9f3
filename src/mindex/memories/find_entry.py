"""What was told, live or retired, by its id or a unique start of it."""

from __future__ import annotations

from mindex.errors import AmbiguousIdError, NotFoundError
from mindex.model import Record
from mindex.store.base import Store


def find_entry(store: Store, reference: str) -> Record:
    ids = store.retrieval.resolve(reference.lower(), retired=True) if reference else ()
    if len(ids) > 1 and reference.lower() not in ids:
        raise AmbiguousIdError(f"'{reference}' is the start of {', '.join(ids[:5])}", "give more of the id")
    record = store.retrieval.record(reference.lower() if reference.lower() in ids else ids[0]) if ids else None
    if record is None or record.kind == "chunk":
        what = "a piece of a file" if record else "nothing that was told"
        raise NotFoundError(f"'{reference}' is {what}", "search for it, or `mindex list --kind memory`")
    return record
