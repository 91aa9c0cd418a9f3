"""Newer truth first: hits that state different values of one thing are one group, ordered by date, the newest first.

Memories in conflict are linked when they are stored. What turns say is compared here, and only the sentences that have
a word of the query: a page costs at most a few hundred comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, combinations
from typing import TYPE_CHECKING

from mindex.datatypes import Hit, Query, Record
from mindex.datatypes.records import CONFLICT_LINK
from mindex.datatypes.results import Older
from mindex.search.guidance import replaced_note
from mindex.search.judgement import Scores
from mindex.store.base import Store
from mindex.times import past_word
from mindex.values import dataclass

if TYPE_CHECKING:  # most pages have no turns and no conflict (tests/test_costs.py)
    from mindex.entries.conflict_rules import Difference

# This number of the best entries is compared, for every page: the first hit must not depend on its size.
_WINDOW = 10
_STEP = 1e-6  # between the members of a group, in log-odds: all are shown with the relevance of the best
_MAX_SENTENCES = 4  # of an entry
_MAX_REPLACED = 3  # superseded memories that notes name
_STEM = 5  # letters of a word of the query that a sentence must have


@dataclass(frozen=True, slots=True)
class NewerFirst:
    """The older hits of a page, each with the newer one; the conflict links that were read; a note.

    The note is about the hits in `differing`, and is worth saying if one of them is confident.
    """

    older: Mapping[str, Older]
    links: Mapping[str, tuple[str, ...]]
    note: str = ""
    differing: frozenset[str] = frozenset()
    moved: bool = False  # whether the order may have changed


def put_newer_first(
    store: Store, query: Query, records: Mapping[str, Record], order: Sequence[str], scores: Iterable[Scores]
) -> NewerFirst:
    """Add to the scores what orders hits with different values of one thing by date. `order`: the best hits first.

    A query that asks for the past keeps its order, and the note says so, unless the query asks for nothing but a time.
    """
    if query.filters.as_of is not None:
        return NewerFirst({}, {})
    window = [id_ for id_ in order[: 2 * _WINDOW] if id_ in records and records[id_].kind in ("memory", "turn")]
    window = window[:_WINDOW]
    memories = [id_ for id_ in window if records[id_].kind == "memory"]
    linked = store.entries.links_of(memories, CONFLICT_LINK) if memories else {}
    links = {id_: linked.get(id_, ()) for id_ in memories}  # one without any has an empty tuple
    pairs = _differences(query.text, [records[id_] for id_ in window], links)
    counted = _counted(query.text, [records[id_] for id_ in window])
    if not pairs and not counted:
        return NewerFirst({}, links)
    if word := _asks_for_past(query):
        if query.time is not None and query.time.only:
            return NewerFirst({}, links)
        note = f"different values of one thing in the order of relevance: '{word}' asks for the past"
        return NewerFirst({}, links, note, frozenset(chain.from_iterable((*pairs, *counted))))
    for group in _groups((*pairs, *counted)):
        newest_first = sorted(group, key=lambda id_: (-_date(records[id_]), -(records[id_].number or 0), id_))
        for one in scores:
            best = max(one.total[id_] for id_ in group)
            for place, id_ in enumerate(newest_first):
                one.add(id_, "newer", best - _STEP * place - one.total[id_])
    older: dict[str, Older] = {}
    for (before, after), difference in sorted(pairs.items(), key=lambda pair: _date(records[pair[0][1]])):
        older.setdefault(before, Older(after, difference.before, _date(records[after])))
    return NewerFirst(older, links, moved=True)


def replaced_notes(store: Store, query: Query, hits: Iterable[Hit]) -> tuple[str, ...]:
    """For a query that asks for the past: which memories the hits superseded. A search finds only the present ones."""
    word = _asks_for_past(query)
    if not word or query.filters.as_of is not None or (query.time is not None and query.time.only):
        return ()
    shown = {hit.record.id: hit.record for hit in hits if hit.record.kind == "memory" and not hit.weak}
    ids = [older for id_ in shown for older in store.entries.superseded(id_)[-1:]][:_MAX_REPLACED]
    found = [record for record in map(store.retrieval.record, ids) if record is not None]
    return tuple(
        replaced_note(word, older, query.guidance)
        for older in found
        if older.superseded_by in shown and older.agent == shown[older.superseded_by].agent
    )


def _asks_for_past(query: Query) -> str:
    return query.time.phrase if query.time is not None and query.time.past else past_word(query.text)


def _counted(query: str, records: Sequence[Record]) -> list[tuple[str, str]]:
    """Pairs of turns of one user with different counts of what the query counts."""
    turns = [record for record in records if record.kind == "turn"]
    if len(turns) < 2:
        return []
    from mindex.search.counts import asks_for_a_count, count_in  # few pages have turns

    if not asks_for_a_count(query):
        return []
    counts = {turn.id: count_in(query, turn) for turn in turns}
    return [
        (one.id, other.id)
        for one, other in combinations(turns, 2)
        if one.agent == other.agent and counts[one.id] and counts[other.id] and counts[one.id] != counts[other.id]
    ]


def _differences(
    query: str, records: Sequence[Record], links: Mapping[str, tuple[str, ...]]
) -> dict[tuple[str, str], Difference]:
    """Each older and newer hit that state different values, and these."""
    has_turn = any(record.kind == "turn" for record in records)
    pairs = [
        (one, other)
        for one, other in combinations(records, 2)
        if (has_turn and "turn" in (one.kind, other.kind)) or other.id in links.get(one.id, ())
    ]
    if not pairs:
        return {}
    from mindex.entries.conflict_rules import find_difference  # few pages have turns or a conflict

    said = {record.id: _sentences_about(query, record) for record in records}
    found = {}
    for one, other in pairs:
        if not said[one.id] or not said[other.id] or one.agent != other.agent or "event" in (one.type, other.type):
            continue
        older, newer = sorted((one, other), key=lambda record: (_date(record), record.number or 0))
        if difference := find_difference(said[older.id], said[newer.id]):
            found[older.id, newer.id] = difference
    return found


def _sentences_about(query: str, record: Record) -> str:
    """The text of a memory; of a turn what the user said with a word of the query in it."""
    if record.kind == "memory":
        return record.text
    from mindex.entries.sentences import sentences  # as above

    words = {word[:_STEM] for word in query.casefold().split() if len(word) > 3}
    text = str(record.fields.get("user_message") or record.text)
    found = [one for one in sentences(text) if any(word in one.casefold() for word in words)]
    return "\n".join(found[:_MAX_SENTENCES])


def _groups(pairs: Iterable[tuple[str, str]]) -> list[set[str]]:
    groups: list[set[str]] = []
    for pair in pairs:
        joined = [group for group in groups if not group.isdisjoint(pair)]
        groups = [group for group in groups if group not in joined] + [set(pair).union(*joined)]
    return groups


def _date(record: Record) -> int:
    return record.created_at if record.kind == "turn" else record.updated_at
