"""Proposals to replace old memories: near-duplicates by one memory, many unimportant ones by a summary.

Nothing is changed here: `merge` applies a proposal. A language model may write the text that replaces the others; it
must keep every number, date and name. Without a model, or if it fails, the most complete near-duplicate is kept, and
only if it says what the others say.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mindex.analyzer import fold
from mindex.datatypes import Model, Proposal, Record, VectorArray
from mindex.entries.conflict_rules import contradict
from mindex.entries.merged_text import ConsolidationWriter, covers, missing_facts
from mindex.entries.near_duplicates import NEAR_COSINE, NEAR_LINK
from mindex.providers.generate.base import Generator
from mindex.redaction.redactor import Redactor
from mindex.store.base import Store

# A long tail: at least this number of memories about one thing that are unimportant and hardly ever read.
MIN_TAIL = 8
_MAX_TAIL = 30
_LOW_IMPORTANCE = 5
_RARE_ACCESS = 1
_MAX_MEMBERS = 10
_BLOCK = 512  # rows compared at once


class Consolidator:
    """Proposes which memories of one agent can be replaced by one; `notes` says what was left out and why."""

    def __init__(self, store: Store, model: Model | None, generator: Generator | None, redactor: Redactor) -> None:
        self._store = store
        self._model = model
        self._writer = ConsolidationWriter(generator, redactor)

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._writer.notes)

    def proposals(self, memories: Sequence[Record]) -> Iterator[Proposal]:
        """Yield proposals, near-duplicates first; the language model writes only those that the caller takes."""
        memories = [record for record in memories if _may_be_replaced(record)]
        taken: set[str] = set()
        for group in _by_agent_and_type(memories):
            for members in find_clusters(self._store, self._model, group):
                if proposal := self._merge_proposal(members):
                    taken.update(record.id for record in proposal.originals)
                    yield proposal
        for group in _by_agent_and_type(record for record in memories if record.id not in taken):
            for topic, tail in self._long_tails(group):
                if proposal := self._summary_proposal(topic, tail):
                    yield proposal

    def _merge_proposal(self, members: tuple[Record, ...]) -> Proposal | None:
        text = self._writer.merge(members)
        if not text:
            return _keep_most_complete(members)
        same = next((record.id for record in members if fold(record.text) == fold(text)), "")
        return Proposal("merge", members, text, _nearly_the_same(members), kept=same, by="model")

    def _long_tails(self, group: Sequence[Record]) -> Iterator[tuple[str, tuple[Record, ...]]]:
        """Yield unimportant, hardly read memories that share a name or a tag, with what they share; longest first."""
        signals = self._store.retrieval.ranking_signals([record.id for record in group])
        unimportant = {
            record.id: record
            for record in group
            if (record.importance or 0) <= _LOW_IMPORTANCE
            and record.id in signals
            and signals[record.id].access_count <= _RARE_ACCESS
        }
        topics: defaultdict[str, list[str]] = defaultdict(list)
        for record in unimportant.values():
            for name in {fold(name) for name in (*record.entities, *record.tags)}:
                topics[name].append(record.id)
        for topic, ids in sorted(topics.items(), key=lambda item: (-len(item[1]), item[0])):
            left = [unimportant[id_] for id_ in ids if id_ in unimportant]
            tail = tuple(sorted(left, key=lambda record: (record.created_at, record.number or 0))[:_MAX_TAIL])
            if len(tail) >= MIN_TAIL:
                for record in tail:
                    del unimportant[record.id]
                yield topic, tail

    def _summary_proposal(self, topic: str, tail: tuple[Record, ...]) -> Proposal | None:
        if not self._writer.available:
            self._writer.add_note("summaries of long tails need a language model; set generation.provider")
            return None
        text = self._writer.summarize(tail)
        if not text:
            self._writer.add_note(f"no summary of {len(tail)} memories about {topic}: {self._writer.failure}")
            return None
        why = f"{len(tail)} memories of type {tail[0].type} about {topic}, little important and hardly asked for"
        return Proposal("summary", tail, text, why, by="model")


def _keep_most_complete(members: Sequence[Record]) -> Proposal | None:
    """Propose to keep the longest memory that covers others; None when none covers another.

    Near vectors do not prove it: they are as close for a brother and a sister as for two wordings of one thing.
    """
    best: tuple[Record, ...] = ()
    for keeper in sorted(members, key=lambda record: (-len(record.text), -record.created_at, record.id)):
        covered = [record for record in members if record.id != keeper.id and covers(keeper.text, record.text)]
        if covered and len(covered) >= len(best):
            best = (keeper, *covered)
    if not best:
        return None
    why = f"{_nearly_the_same(best)}; the most complete one stays"
    return Proposal("merge", best, best[0].text, why, kept=best[0].id)


def _nearly_the_same(members: Sequence[Record]) -> str:
    return f"{len(members)} memories of type {members[0].type} say nearly the same"


def _by_agent_and_type(memories: Iterable[Record]) -> Iterable[list[Record]]:
    groups: defaultdict[tuple[str, str], list[Record]] = defaultdict(list)
    for record in memories:
        groups[record.agent, record.type].append(record)
    return groups.values()


def _may_be_replaced(record: Record) -> bool:
    """Return whether a record is a memory that neither expires nor is anchored to lines of a file."""
    return record.kind == "memory" and record.expires_at is None and "anchor" not in record.fields


# ── clusters of near-duplicates ───────────────────────────────────────────────────────────────────────────────


def find_clusters(store: Store, model: Model | None, memories: Sequence[Record]) -> Iterator[tuple[Record, ...]]:
    """Yield each memory with its near-duplicates, the one with the most neighbours first; no memory is in two clusters.

    Vectors are compared only if a model is given.
    """
    neighbours = _neighbours(store, model, memories)
    by_id = {record.id: record for record in memories}
    free = {id_ for id_, others in neighbours.items() if others}
    for id_ in sorted(free, key=lambda one: (-len(neighbours[one]), by_id[one].created_at, one)):
        if id_ not in free:
            continue
        members = [by_id[id_]]
        cosines = neighbours[id_]
        for other in sorted(cosines.keys() & free, key=lambda one: (-cosines[one], one)):
            if len(members) < _MAX_MEMBERS and not any(_differ(by_id[other].text, one.text) for one in members):
                members.append(by_id[other])
        if len(members) > 1:
            free.difference_update(record.id for record in members)
            yield tuple(members)


def _neighbours(store: Store, model: Model | None, memories: Sequence[Record]) -> dict[str, dict[str, float]]:
    """Return the near-duplicates of each memory with their cosine, which is 0 for a pair that only a link shows."""
    texts = {record.id: record.text for record in memories}
    pairs: dict[tuple[str, str], float] = {}
    for id_, others in store.entries.links_of(list(texts), NEAR_LINK).items():
        for other in others:
            if other in texts and other != id_:
                pairs[min(id_, other), max(id_, other)] = 0.0
    if model is not None and len(memories) > 1:
        for one, other, cosine in _close_pairs(store.vectors.stored(model, list(texts))):
            pairs[min(one, other), max(one, other)] = cosine
    neighbours: dict[str, dict[str, float]] = {id_: {} for id_ in texts}
    for (one, other), cosine in pairs.items():
        if not _differ(texts[one], texts[other]):
            neighbours[one][other] = neighbours[other][one] = cosine
    return neighbours


def _differ(one: str, other: str) -> bool:
    """Return whether they contradict each other, or each names something that the other does not."""
    return contradict(one, other) or bool(missing_facts(one, other) and missing_facts(other, one))


def _close_pairs(vectors: Mapping[str, VectorArray]) -> Iterator[tuple[str, str, float]]:
    """Yield pairs of ids whose vectors are close, with their cosine. A text of several pieces is not compared."""
    import numpy as np  # a consolidation without vectors needs none of it

    ids = [id_ for id_, pieces in vectors.items() if len(pieces) == 1]
    if len(ids) < 2:
        return
    rows = np.concatenate([vectors[id_] for id_ in ids])
    rows = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
    for start in range(0, len(ids), _BLOCK):
        cosines = rows[start : start + _BLOCK] @ rows.T
        for row, column in np.argwhere(cosines >= NEAR_COSINE):
            if start + row < column:
                yield ids[start + row], ids[column], float(cosines[row, column])
