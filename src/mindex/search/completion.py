"""What completes an answer: a correction, notes on entries left out, conflicts, what surrounds its hits, damage."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from mindex.clock import now_ms
from mindex.datatypes import Answer, Query, Record
from mindex.errors import UsageError
from mindex.search.guidance import expired_note, unfinished_note, with_notes
from mindex.search.hit_conflicts import with_conflicts
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
        answer = with_conflicts(store, answer, query.guidance)
        answer = with_notes(answer, *replaced_notes(store, query, answer.hits))
    answer = with_notes(answer, *damage_notes(store))
    return _with_surroundings(store, answer, around, query.filters.as_of)


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
