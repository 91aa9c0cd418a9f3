"""Conflicts: pairs of live memories that cannot both be true, and the older memories that a new one replaces by rule.

They are found when a memory is stored or embedded, and kept as links. Superseding, forgetting or correcting one of the
two ends a conflict: a link counts only while both are live and their texts still differ. A wrong replacement hides a
memory that is still true, so anything less than a clear update is a conflict, which is only reported.
"""

from collections.abc import Iterable

from mindex.clock import now_ms
from mindex.datatypes import Conflict, Filters, MemoryInConflict, Record
from mindex.datatypes.records import CAPTURED, CONFLICT_LINK, PROJECT_TAG
from mindex.entries.conflict_rules import Difference, find_difference
from mindex.store.base import NewLink, Store
from mindex.store.rules.filters import admits

_LAST = 2**63  # the number of a memory that is not stored yet


def conflict_between(one: Record, other: Record) -> Difference | None:
    """Return how two memories differ that cannot both be true; None for others, and across agents or contexts."""
    if one.id == other.id or one.agent != other.agent or {one.kind, other.kind} != {"memory"}:
        return None
    if "event" in (one.type, other.type) or (one.context and other.context and one.context != other.context):
        return None
    older, newer = by_age(one, other)
    return find_difference(older.text, newer.text)


def by_age(one: Record, other: Record) -> tuple[Record, Record]:
    """Return the older and the newer of two memories; a stored one is older than one that is not stored yet."""
    older, newer = sorted((one, other), key=lambda record: (record.updated_at, record.number or _LAST))
    return older, newer


def conflicting(record: Record, candidates: Iterable[Record]) -> dict[str, Difference]:
    """The candidates that a memory is in conflict with, by id, and how they differ."""
    return {other.id: found for other in candidates if (found := conflict_between(record, other))}


def is_replaced(old: Record, new: Record, difference: Difference) -> bool:
    """Whether a new memory replaces one that it is in conflict with: its words say so, and both have the same scope.

    A captured memory replaces only captured ones.
    """
    if not difference.is_update or by_age(new, old)[1].id != new.id or (_is_captured(new) and not _is_captured(old)):
        return False
    return new.agent == old.agent and new.context == old.context and _projects(new) == _projects(old)


def _is_captured(record: Record) -> bool:
    return f"{record.source}:".startswith(f"{CAPTURED}:")


def _projects(record: Record) -> frozenset[str]:
    return frozenset(tag for tag in record.tags if tag.startswith(PROJECT_TAG))


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
    return f"superseded by rule; if both are true, `mindex restore {older}` brings the older one back"


def open_conflicts(record: Record, others: Iterable[Record]) -> tuple[Conflict, ...]:
    """The conflicts of a memory with those of the others that are not expired."""
    now = now_ms()
    live = (other for other in others if other.expires_at is None or other.expires_at > now)
    return tuple(Conflict(one.id, one.summary, found.why) for one in live if (found := conflict_between(record, one)))
