"""The entry that a reference names: an id or its prefix, a number, another program's id. And all records in scope."""

import re
from collections.abc import Iterator, Sequence

from mindex.datatypes import Filters, Record
from mindex.errors import AmbiguousIdError, NotFoundError
from mindex.store.base import Store

_PAGE = 500
_NUMBER = re.compile(r"#(?P<number>[0-9]{1,18})")
_ADDRESS = re.compile(r"memory://(?P<name>.+)", re.IGNORECASE)
_FOREIGN = re.compile(r"(?P<program>[a-z][a-z_-]*):(?P<id>.+)")


def find_entry(store: Store, reference: str) -> Record:
    """The entry, live or retired, that `get` finds by this reference: its id or `memory://ID`, a unique prefix of it,
    its number (`#5`), or the id by which another program knew it (`mem_a1`, `mudpuppy:3`).

    Raises NotFoundError for a chunk or nothing, AmbiguousIdError for several.
    """
    if match := _NUMBER.fullmatch(reference):
        id_ = numbered_id(store, int(match["number"]), store.entries.agents())
        record = store.retrieval.record(id_) if id_ else None
    else:
        address = _ADDRESS.fullmatch(reference)
        record = _named(store, address["name"] if address else reference) if reference else None
    if record is None or record.kind == "chunk":
        if record:
            raise NotFoundError(f"'{reference}' is a chunk of a file, not an entry", "change the file instead")
        raise NotFoundError(f"there is no entry '{reference}'", "search for it, or `mindex list --kind memory`")
    return record


def _named(store: Store, name: str) -> Record | None:
    """The record of a whole id, else the entry that another program called exactly so, else that of a prefix."""
    if (record := store.retrieval.record(name.lower())) is not None:
        return record
    # A bare number is what several programs call their entries by.
    foreign = map(store.retrieval.record, () if name.isdecimal() else foreign_ids(store, name))
    found = [one for one in foreign if one is not None and one.kind != "chunk"]
    entries = [one for one in found if one.retired_at is None] or found
    if len(entries) > 1:
        ids = ", ".join(one.id for one in entries[:5])
        raise AmbiguousIdError(f"other programs knew {len(entries)} entries as '{name}': {ids}", "give the id")
    if entries:
        return entries[0]
    id_ = resolve_id(store, name)
    return store.retrieval.record(id_) if id_ else None


def foreign_ids(store: Store, reference: str) -> Sequence[str]:
    """Ids of the records that another program knew by a reference, alone or as PROGRAM:ID."""
    find_by_foreign_id, match = store.retrieval.find_by_foreign_id, _FOREIGN.fullmatch(reference)
    return find_by_foreign_id(reference) or (find_by_foreign_id(match["id"], match["program"]) if match else ())


def resolve_id(store: Store, reference: str) -> str | None:
    """The id of a record, live or retired, by a prefix of it; None when there is none. Raises AmbiguousIdError."""
    ids = store.retrieval.resolve(reference.lower(), retired=True)
    if reference.lower() in ids:
        return reference.lower()
    if len(ids) > 1:
        raise AmbiguousIdError(f"'{reference}' is ambiguous: {', '.join(ids[:5])}", "pass more of the id")
    return ids[0] if ids else None


def numbered_id(store: Store, number: int, agents: Sequence[str]) -> str | None:
    """The id of the entry with a number; None when there is none. Raises AmbiguousIdError for entries of two agents."""
    found = {agent: id_ for agent in agents if (id_ := store.entries.by_number(agent, number))}
    if len(found) > 1:
        names = ", ".join(f"{id_} of {agent}" for agent, id_ in found.items())
        raise AmbiguousIdError(f"{len(found)} agents have an entry {number}: {names}", "give the id")
    return next(iter(found.values()), None)


def list_all(store: Store, scope: Filters, *, offset: int = 0) -> Iterator[Record]:
    """Yield every record in scope from an offset on, newest first."""
    while page := store.retrieval.list(scope, limit=_PAGE, offset=offset).records:
        yield from page
        offset += len(page)
