"""Open conflicts of the memories that an answer shows: of most pages there are none, and one query says so."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from mindex.clock import now_ms
from mindex.datatypes import Answer, Conflict, Hit, Record
from mindex.datatypes.guidance import Guidance
from mindex.datatypes.records import CONFLICT_LINK
from mindex.search.guidance import conflict_note, with_notes
from mindex.store.base import Store


def with_conflicts(store: Store, answer: Answer, guidance: Guidance) -> Answer:
    """The answer with the open conflicts of each memory in it, and how to end the first one of a confident hit."""
    now = now_ms()
    memories = [hit.record.id for hit in answer.hits if _may_conflict(hit.record, now)]
    known = answer.conflict_links
    unknown = [id_ for id_ in memories if id_ not in known]
    linked = {id_: known[id_] for id_ in memories if known.get(id_)}
    if unknown:
        linked |= store.entries.links_of(unknown, CONFLICT_LINK)
    if not linked:
        return answer
    from mindex.entries.conflicts import by_age, open_conflicts  # few pages have a conflict

    records = _records(store, answer.hits, linked)
    found: dict[str, tuple[Conflict, ...]] = {}
    for id_, others in linked.items():
        found[id_] = open_conflicts(records[id_], [records[other] for other in others if other in records])
    hits = tuple(replace(hit, conflicts=found.get(hit.record.id, ())) for hit in answer.hits)
    pairs = list(dict.fromkeys(_pairs(hit for hit in hits if not hit.weak)))
    if not pairs:
        return replace(answer, hits=hits)
    older, newer = by_age(*(records[id_] for id_ in pairs[0]))
    note = conflict_note(newer.id, older.id, guidance, more=len(pairs) > 1)
    return with_notes(replace(answer, hits=hits), note)


def _may_conflict(record: Record, now: int) -> bool:
    return record.kind == "memory" and (record.expires_at is None or record.expires_at > now)


def _records(store: Store, hits: Sequence[Hit], linked: Mapping[str, tuple[str, ...]]) -> dict[str, Record]:
    """The hits and the memories that are linked to them, by id; those that are not shown are read."""
    known = {hit.record.id: hit.record for hit in hits}
    missing = {other for others in linked.values() for other in others} - known.keys()
    read = store.retrieval.records(sorted(missing)) if missing else ()
    return known | {record.id: record for record in read}


def _pairs(hits: Iterable[Hit]) -> Iterable[tuple[str, str]]:
    """Each two memories in conflict, the smaller id first."""
    for hit in hits:
        for other in hit.conflicts:
            yield min(hit.record.id, other.id), max(hit.record.id, other.id)
