"""The result of `memory_recall` within its token budget: an index of all matches, then details. Pure functions.

Tokens are counted as Memory MCP does: the characters of JavaScript divided by four, rounded up. Sizes are added up, not
measured on the whole text again and again: a recall costs little more than its search.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count

from mindex.clock import to_iso
from mindex.mcp.dialects.memory_mcp_type_and_lifetime import family_of
from mindex.mcp.tools import JsonObject, indented_json
from mindex.model import Answer, Record
from mindex.present.budget import most_that_fit
from mindex.present.record_view import summary_of
from mindex.store.base import RankingSignals

# How many characters of the query the result repeats.
_MAX_ECHO = 200
_MIN_ECHO = 20


def memory_row(record: Record, signals: RankingSignals | None) -> JsonObject:
    """Return a memory as Memory MCP shows it in full."""
    last = signals.last_accessed if signals else None
    return {
        "id": record.id,
        "type": family_of(record.type),
        "summary": summary_of(record),
        "content": record.text,
        "importance": record.importance,
        "created_at": to_iso(record.created_at),
        "last_accessed": to_iso(last or record.created_at),
        **({"entities": list(record.entities)} if record.entities else {}),
    }


@dataclass(frozen=True, slots=True)
class RecallResult:
    """All matches, of which `within` returns as much as a budget allows."""

    answer: Answer
    query: str
    signals: Mapping[str, RankingSignals] = field(default_factory=dict)

    def within(self, budget: int) -> JsonObject:
        """Return index entries first, then details, both in order. `has_more` says that the index was cut."""
        hits = self.answer.hits
        echo = self.query if len(self.query) <= _MAX_ECHO else self.query[: _MAX_ECHO - 1] + "…"
        size = 4 * budget - self._empty_size(echo)
        index, left = _fitting((_index_row(hit.record) for hit in hits), size)
        if hits and not index:
            # One entry does not fit beside the query: both are shortened, so that a result is never empty.
            echo = echo[:_MIN_ECHO]
            size = 4 * budget - self._empty_size(echo)
            index, left = _fitting([_shortened(_index_row(hits[0].record), size)], size)
        details, _ = _fitting((memory_row(hit.record, self.signals.get(hit.record.id)) for hit in hits), left)
        result = self._result(index, details, echo)
        return {**result, "tokens_used": _tokens_with_count(_length(indented_json(result)) - len("0"))}

    def _empty_size(self, echo: str) -> int:
        """Return the size of a result without index entries and details."""
        return _length(indented_json({**self._result([], [], echo), "has_more": False, "tokens_used": 9999}))

    def _result(self, index: list[JsonObject], details: list[JsonObject], echo: str) -> JsonObject:
        return {
            "index": [*index],
            "details": [*details],
            "total_count": self.answer.total,
            "has_more": self.answer.offset + len(index) < self.answer.total,
            "tokens_used": 0,
            "query": echo,
        }


def _index_row(record: Record) -> JsonObject:
    return {
        "id": record.id,
        "type": family_of(record.type),
        "summary": summary_of(record),
        "importance": record.importance,
    }


def _shortened(row: JsonObject, size: int) -> JsonObject:
    """Return the row with as many characters of its summary as fit."""
    summary = str(row["summary"])

    def with_characters(count: int) -> JsonObject:
        return {**row, "summary": summary[:count] + "…"}

    return with_characters(most_that_fit(len(summary), lambda count: bool(_fitting([with_characters(count)], size)[0])))


def _fitting(rows: Iterable[JsonObject], size: int) -> tuple[list[JsonObject], int]:
    """Return the first rows that fit as a list of JSON, indented by two, and the size that is left."""
    fitting: list[JsonObject] = []
    left = size - 2  # an empty list has no line of its own
    for row in rows:
        text = indented_json(row)
        left -= _length(text) + 4 * (text.count("\n") + 1) + 2
        if left < 0:
            break
        fitting.append(row)
        size = left
    return fitting, size


def _tokens_with_count(length: int) -> int:
    """Return the tokens of so many characters and of the digits of that number itself."""
    return next(cost for digits in count(1) if len(str(cost := -(-(length + digits) // 4))) <= digits)


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
