"""What completes an answer: a correction, notes on entries left out, conflicts, what surrounds its hits, damage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

from mindex.clock import now_ms
from mindex.datatypes import Answer, Conflict, Hit, Query, Record
from mindex.datatypes.guidance import Guidance
from mindex.datatypes.records import CONFLICT_LINK
from mindex.errors import UsageError
from mindex.search.guidance import conflict_note, expired_note, unfinished_note, with_notes
from mindex.search.newer_first import replaced_notes
from mindex.search.query import MAX_LIMIT, ParsedQuery, parse
from mindex.store.base import Store
from mindex.store.damage_notes import damage_notes
from mindex.values import replace

_MAX_AROUND = 20

Ask: TypeAlias = Callable[[Query, ParsedQuery], Answer]  # a search for the same caller, without what completes it


def with_correction(store: Store, query: Query, answer: Answer, ask: Ask) -> Answer:
    """The answer to the query with its unknown words corrected, if that has a confident hit that holds them.

    Otherwise the answer as it is, with a note that names the words that may be meant.
    """
    from mindex.search.spelling import correct, did_you_mean, results_for  # most queries have a confident hit

    correction = correct(store, query.text, query.filters)
    if correction is None:
        return answer
    corrected = ask(replace(query, text=correction.query), parse(correction.query))
    confident = [
        hit.record
        for hit in corrected.hits
        if not hit.weak
        and corrected.tier != "substring"
        and (hit.trace.matched_share or 0.0) >= correction.needed_share
    ]
    if correction.holds_words_of(confident):
        notes = (results_for(correction), *corrected.notes)
        return replace(corrected, query=query.text, corrected_query=correction.query, notes=notes)
    return with_notes(answer, did_you_mean(correction))


class LeftOut:
    """Notes on what a search without a confident hit leaves out: expired entries, files that are not indexed yet."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._all_indexed = False  # once every folder was, a search does not ask again

    def noted(self, query: Query, parsed: ParsedQuery, answer: Answer, ask: Ask) -> Answer:
        confident = any(not hit.weak for hit in answer.hits) and answer.tier != "substring"
        if (confident and not answer.loose) or query.offset:
            return answer
        if expired := self._count_expired(query, parsed, ask):
            note = expired_note(expired, query.guidance)
            return replace(answer, notes=(note,)) if answer.vacant else with_notes(answer, note)
        if answer.vacant or self._all_indexed:
            return answer
        unfinished = unfinished_note(self._store, query.guidance)
        self._all_indexed = not unfinished
        return with_notes(answer, unfinished)

    def _count_expired(self, query: Query, parsed: ParsedQuery, ask: Ask) -> int:
        """How many hits the query would have among expired entries, which are searched only if there are some."""
        now, filters = now_ms(), query.filters
        if filters.include_expired or filters.as_of is not None or "entries" not in self._store.capabilities:
            return 0
        if not self._store.entries.expired(now):
            return 0
        everything = replace(filters, include_expired=True)
        again = replace(query, filters=everything, limit=MAX_LIMIT, weak=False, rerank=False, expand=False)
        found = (hit.record.expires_at for hit in ask(again, parsed).hits)
        return sum(expires is not None and expires <= now for expires in found)


def completed(store: Store, query: Query, answer: Answer, around: int) -> Answer:
    """The answer with what only its hits need: conflicts, anchors, surrounding turns; and notes on what is missing."""
    if answer.total and query.offset >= answer.total:
        answer = with_notes(answer, f"no results after {query.offset}: there are {answer.total}")
    if query.filters.as_of is None:  # conflicts are those of now
        answer = _with_conflicts(store, answer, query.guidance)
        answer = with_notes(answer, *replaced_notes(store, query, answer.hits))
    answer = with_notes(answer, *damage_notes(store))
    return _with_surroundings(store, answer, around, query.filters.as_of)


# ── conflicts: most pages have none, and one query says so ────────────────────────────────────────────────────


def _with_conflicts(store: Store, answer: Answer, guidance: Guidance) -> Answer:
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


# ── surroundings ──────────────────────────────────────────────────────────────────────────────────────────────


def _with_surroundings(store: Store, answer: Answer, around: int, as_of: int | None) -> Answer:
    """The hits with the state of their anchors and, for turns, the turns before and after."""
    if around < 0:
        raise UsageError(f"around {around} is too small", f"use 0 to {_MAX_AROUND}")
    shown = {hit.record.id for hit in answer.hits}
    hits = []
    for hit in answer.hits:
        turns: tuple[Record, ...] = ()
        if around and hit.record.kind == "turn":
            count = min(around, _MAX_AROUND)
            turns = store.entries.surrounding_turns(hit.record.id, count, count)
        others = tuple(turn for turn in turns if turn.id not in shown and (as_of is None or turn.created_at <= as_of))
        record = current_anchor(hit.record)
        hits.append(hit if record is hit.record and not others else replace(hit, record=record, around=others))
    cut = f"around cut to {_MAX_AROUND}" if around > _MAX_AROUND else ""
    return with_notes(replace(answer, hits=tuple(hits)), cut)


def current_anchor(record: Record) -> Record:
    """The record with the state of its anchor: `fresh`, `drifted` or `gone`. Others are returned unchanged."""
    if "anchor" not in record.fields:
        return record
    from mindex.entries.anchors import with_anchor_state  # few records have one

    return with_anchor_state(record)
