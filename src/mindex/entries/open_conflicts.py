"""Open conflicts: pairs of live memories that cannot both hold now.

They are found when a memory is stored or embedded, and kept as links. Superseding, forgetting or correcting one of the
two ends a conflict: a link counts only while both are live and their texts still differ.
"""

from collections.abc import Iterable

from mindex.clock import now_ms
from mindex.datatypes import Conflict, Filters, MemoryInConflict, Record
from mindex.datatypes.records import CONFLICT_LINK
from mindex.entries.conflict_rules import find_conflict
from mindex.store.base import NewLink, Store
from mindex.store.rules.filters import admits

_LAST = 2**63  # the number of a memory that is not stored yet


def conflict_between(one: Record, other: Record) -> str:
    """Return why two memories cannot both hold; '' if they can, or belong to different agents or contexts."""
    if one.id == other.id or one.agent != other.agent or {one.kind, other.kind} != {"memory"}:
        return ""
    if "event" in (one.type, other.type) or (one.context and other.context and one.context != other.context):
        return ""
    older, newer = by_age(one, other)
    return find_conflict(older.text, newer.text)


def by_age(one: Record, other: Record) -> tuple[Record, Record]:
    """Return the older and the newer of two memories; a stored one is older than one that is not stored yet."""
    older, newer = sorted((one, other), key=lambda record: (record.updated_at, record.number or _LAST))
    return older, newer


def conflicting(record: Record, candidates: Iterable[Record]) -> frozenset[str]:
    """The ids of the candidates that a memory is in conflict with."""
    return frozenset(other.id for other in candidates if conflict_between(record, other))


def conflict_links(id_: str, others: Iterable[str]) -> list[NewLink]:
    """Return the links of a memory with those that it is in conflict with."""
    return [(id_, other, CONFLICT_LINK, 1.0) for other in sorted(others)]


def conflicts_of(store: Store, record: Record, known: Iterable[Conflict] = ()) -> tuple[Conflict, ...]:
    """The open conflicts of one memory, of which some may be known: their memories are not read again."""
    found = {one.id: one for one in known}
    linked = store.entries.linked(record.id, CONFLICT_LINK)
    if unknown := [id_ for id_ in linked if id_ not in found]:
        found |= {one.id: one for one in open_conflicts(record, store.retrieval.records(unknown))}
    return tuple(found[id_] for id_ in linked if id_ in found)


def in_conflict(store: Store, filters: Filters) -> tuple[MemoryInConflict, ...]:
    """The memories in scope that have open conflicts, newest first, each with these."""
    others: dict[str, list[str]] = {}
    for one, other in store.entries.linked_pairs(CONFLICT_LINK, filters.agent):
        others.setdefault(one, []).append(other)
        others.setdefault(other, []).append(one)
    records = {record.id: record for record in store.retrieval.records(list(others))}
    now = now_ms()
    found = [
        MemoryInConflict(record, conflicts)
        for id_, record in records.items()
        if admits(filters, record, now)
        and (conflicts := open_conflicts(record, [records[other] for other in others[id_] if other in records]))
    ]
    return tuple(sorted(found, key=lambda one: (-one.record.created_at, -(one.record.number or 0))))


def count_open_conflicts(store: Store, agent: str) -> int:
    """How many pairs of an agent's memories are in conflict."""
    return sum(len(one.conflicts) for one in in_conflict(store, Filters(agent=agent))) // 2


def settling_note(newer: str, older: str) -> str:
    """How to resolve a conflict, for the caller that added the newer memory."""
    return f"if {newer} is right: `mindex update {newer} --supersedes {older}` supersedes the other one"


def restoring_note(older: str) -> str:
    """How to revert a supersession, for the caller that caused it."""
    return f"superseded by rule; if both hold: `mindex restore {older}` brings it back"


def open_conflicts(record: Record, others: Iterable[Record]) -> tuple[Conflict, ...]:
    """The conflicts of a memory with those of the others that still hold."""
    now = now_ms()
    live = (other for other in others if other.expires_at is None or other.expires_at > now)
    return tuple(Conflict(other.id, other.summary, why) for other in live if (why := conflict_between(record, other)))
