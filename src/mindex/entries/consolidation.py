"""Proposals to replace old memories: near-duplicates by one memory, many unimportant ones by a summary.

Nothing is changed here: `merge` applies a proposal. A language model may write the text that replaces the others; it
must keep every number, date and name. Without a model, or if it fails, the most complete near-duplicate is kept, and
only if it says what the others say.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from mindex.analyzer import fold
from mindex.datatypes import Model, Proposal, Record
from mindex.entries.consolidation_writer import ConsolidationWriter
from mindex.entries.merge_loss_check import covers
from mindex.entries.near_duplicate_clusters import find_clusters
from mindex.providers.generate.base import Generator
from mindex.redaction.redactor import Redactor
from mindex.store.base import Store

# A long tail: at least this number of memories about one thing that are unimportant and hardly ever read.
MIN_TAIL = 8
_MAX_TAIL = 30
_LOW_IMPORTANCE = 5
_RARE_ACCESS = 1


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
