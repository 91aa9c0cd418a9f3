"""What `memory_recall` answers: an index of all matches, then details, never dearer than the caller allowed. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mindex.clock import to_iso
from mindex.mcp.dialects.memory_mcp_rules import family_of
from mindex.mcp.strict import json_text
from mindex.model import Answer, Record
from mindex.present.rows import Json, summary_of
from mindex.present.views import most_that_fit
from mindex.store.base import Signals

_ECHO = 200
_LEAST_ECHO = 20


def tokens_of(text: str) -> int:
    """As the seed counts: characters of JavaScript divided by four, rounded up."""
    return -(-len(text.encode("utf-16-le", "surrogatepass")) // 8)


def standard_memory(record: Record, signals: Signals | None) -> dict[str, Json]:
    last = signals.last_accessed if signals else None
    shown: dict[str, Json] = {
        "id": record.id,
        "type": family_of(record.type),
        "summary": summary_of(record),
        "content": record.text,
        "importance": record.importance,
        "created_at": to_iso(record.created_at),
        "last_accessed": to_iso(last or record.created_at),
    }
    if record.entities:
        shown["entities"] = list(record.entities)
    return shown


@dataclass(frozen=True, slots=True)
class Recalled:
    """All that was found, of which `within` shows as much as a budget allows."""

    answer: Answer
    query: str
    signals: Mapping[str, Signals] = field(default_factory=dict)

    def within(self, budget: int) -> dict[str, Json]:
        """Index entries first, then details, both in order; an index that does not fit is cut and `has_more` says so."""
        echo = self.query if len(self.query) <= _ECHO else self.query[: _ECHO - 1] + "…"
        index = [_entry(hit.record) for hit in self.answer.hits]

        def fits(shown: dict[str, Json]) -> bool:
            return tokens_of(json_text(shown)) <= budget

        count = most_that_fit(len(index), lambda count: fits(self._shown(index[:count], [], echo)))
        if index and not count:
            # The frame and one entry are too dear: the question goes first, then words of the summary.
            echo = echo[:_LEAST_ECHO]
            index, count = [_shortest(index[0], lambda entry: fits(self._shown([entry], [], echo)))], 1
        kept = index[:count]
        details = self._affordable(budget)
        shown = most_that_fit(len(details), lambda count: fits(self._shown(kept, details[:count], echo)))
        return self._shown(kept, details[:shown], echo)

    def _affordable(self, budget: int) -> list[dict[str, Json]]:
        """Details that could fit at all: fifty long texts are not written out time and again to see that they do not."""
        details, characters = [], 0
        for hit in self.answer.hits:
            characters += len(hit.record.text)
            if characters > 4 * budget:
                break
            details.append(standard_memory(hit.record, self.signals.get(hit.record.id)))
        return details

    def _shown(self, index: list[dict[str, Json]], details: list[dict[str, Json]], echo: str) -> dict[str, Json]:
        shown: dict[str, Json] = {
            "index": [*index],
            "details": [*details],
            "total_count": self.answer.total,
            "has_more": self.answer.offset + len(index) < self.answer.total,
            "tokens_used": 0,
            "query": echo,
        }
        for _ in range(3):  # its own digits count, too
            shown["tokens_used"] = tokens_of(json_text(shown))
        return shown


def _entry(record: Record) -> dict[str, Json]:
    return {
        "id": record.id,
        "type": family_of(record.type),
        "summary": summary_of(record),
        "importance": record.importance,
    }
