"""What `memory_recall` answers: an index of all matches, then details, never dearer than the caller allowed. Pure.

Sizes are added up, not measured on the whole text again and again: a recall costs little more than its search.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from mindex.clock import to_iso
from mindex.mcp.dialects.memory_mcp_defaults import family_of
from mindex.mcp.strict_tool import json_text
from mindex.model import Answer, Record
from mindex.present.budget import most_that_fit
from mindex.present.record_view import summary_of
from mindex.present.to_json import Json
from mindex.store.base import RankingSignals

AnswerView = dict[str, Json]

_ECHO = 200
_LEAST_ECHO = 20


def tokens_of(text: str) -> int:
    """As the seed counts: the characters of JavaScript divided by four, rounded up."""
    return -(-_length(text) // 4)


def standard_memory(record: Record, signals: RankingSignals | None) -> AnswerView:
    last = signals.last_accessed if signals else None
    shown: AnswerView = {
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
    signals: Mapping[str, RankingSignals] = field(default_factory=dict)

    def within(self, budget: int) -> AnswerView:
        """Index entries first, then details, both in order; an index too dear is cut, and `has_more` says so."""
        hits = self.answer.hits
        echo = self.query if len(self.query) <= _ECHO else self.query[: _ECHO - 1] + "…"
        room = 4 * budget - self._frame(echo)
        index, left = _that_fit((_entry(hit.record) for hit in hits), room)
        if hits and not index:
            # One entry is too dear beside the question: words of both go, so that an answer is never empty.
            echo = echo[:_LEAST_ECHO]
            room = 4 * budget - self._frame(echo)
            index, left = _that_fit([_cut(_entry(hits[0].record), room)], room)
        details, _ = _that_fit((standard_memory(hit.record, self.signals.get(hit.record.id)) for hit in hits), left)
        shown = self._shown(index, details, echo)
        return {**shown, "tokens_used": _own_cost(_length(json_text(shown)) - len("0"))}

    def _frame(self, echo: str) -> int:
        """The size of an answer without entries and details."""
        return _length(json_text({**self._shown([], [], echo), "has_more": False, "tokens_used": 9999}))

    def _shown(self, index: list[AnswerView], details: list[AnswerView], echo: str) -> AnswerView:
        return {
            "index": [*index],
            "details": [*details],
            "total_count": self.answer.total,
            "has_more": self.answer.offset + len(index) < self.answer.total,
            "tokens_used": 0,
            "query": echo,
        }


def _entry(record: Record) -> AnswerView:
    return {
        "id": record.id,
        "type": family_of(record.type),
        "summary": summary_of(record),
        "importance": record.importance,
    }


def _cut(entry: AnswerView, room: int) -> AnswerView:
    """With as many characters of its summary as there is room for."""
    summary = str(entry["summary"])

    def shortened(size: int) -> AnswerView:
        return {**entry, "summary": summary[:size] + "…"}

    return shortened(most_that_fit(len(summary), lambda size: len(_that_fit([shortened(size)], room)[0]) == 1))


def _that_fit(items: Iterable[AnswerView], room: int) -> tuple[list[AnswerView], int]:
    """Items in order until the room is taken, and the room that is left; as a list of JSON, indented by two."""
    kept: list[AnswerView] = []
    left = room - 2  # an empty list has no line of its own
    for item in items:
        text = json_text(item)
        left -= _length(text) + 4 * (text.count("\n") + 1) + 2
        if left < 0:
            break
        kept.append(item)
        room = left
    return kept, room


def _own_cost(length: int) -> int:
    """The tokens of so many characters and of the digits that say how many tokens there are."""
    return next(cost for digits in count(1) if len(str(cost := -(-(length + digits) // 4))) <= digits)


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
