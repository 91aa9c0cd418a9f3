"""Lists what records can be filtered by: the tags and types that they have, and how many have each."""

from collections import Counter
from collections.abc import Mapping

from mindex.analyzer import fold
from mindex.datatypes import TYPES, Filters, LabelCount
from mindex.entries.validation import validate_limit
from mindex.store.base import Store
from mindex.values import dataclass

MAX_TAGS = 500


@dataclass(frozen=True, slots=True)
class Labels:
    """`memory.labels`: tags and types. Without filters: those of the agent's entries and of all files."""

    _store: Store
    _agent: str

    def tags(
        self, starting: str = "", *, filters: Filters | None = None, limit: int = MAX_TAGS
    ) -> tuple[LabelCount, ...]:
        """Return tags that start with a text, the most frequent first, then by name.

        Filters ignore case and accents, and so does this list: it has the most frequent spelling of each tag.
        """
        most = validate_limit(limit, MAX_TAGS)
        scope = Filters(agent=self._agent) if filters is None else filters
        spelled = self._store.retrieval.label_counts("tag", scope)
        totals: Counter[str] = Counter()
        for tag, count in spelled.items():
            totals[fold(tag)] += count
        names = {fold(tag): tag for tag, _ in sorted(spelled.items(), key=lambda item: (item[1], item[0]))}
        start = fold(starting)
        return _most_frequent({names[key]: count for key, count in totals.items() if key.startswith(start)})[:most]

    def types(self) -> tuple[LabelCount, ...]:
        """Return all types that a memory may have, and those of imported ones, the most frequent first."""
        counts = self._store.retrieval.label_counts("type", Filters(agent=self._agent, kinds=("memory",)))
        return _most_frequent(dict.fromkeys(TYPES, 0) | counts)


def _most_frequent(counts: Mapping[str, int]) -> tuple[LabelCount, ...]:
    return tuple(
        LabelCount(name, count) for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    )
