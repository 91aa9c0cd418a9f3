"""The result of `memory_recall` within its token budget: an index of the matches, then details. Pure functions.

Every match is one line of JSON. Half of the budget belongs to the details: the summaries of the index are cut so far
that its entries fit into the other half, and what they leave goes to the details. Three details are shown if there are
as many matches: the contents of long ones are cut, and end with `…`. Where not even that fits, they are shown as far as
they fit whole; where not even one does, all of the budget is for the index.

Tokens are counted as Memory MCP does: the characters of JavaScript divided by four, rounded up. Sizes are added up, not
measured on the whole text again and again: a recall costs little more than its search.
"""

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from mindex.clock import to_iso
from mindex.datatypes import Answer, Record
from mindex.mcp.dialect_parts import Json, RankingSignals, summary_of, worded
from mindex.mcp.tools import JsonObject
from mindex_compat.dialects.memory_mcp_rules import family_of

# How many characters of the query the result repeats.
_MAX_ECHO = 200
_MIN_ECHO = 20
# A summary of fewer characters tells nothing: then fewer entries are shown instead.
_MIN_SUMMARY = 24
# Details are shown as long as each has at least this number of characters of its content.
_MIN_DETAILS, _MIN_CONTENT = 3, 160
_INDENT = "    "
_LINE = len(_INDENT) + len(",\n")  # of a row


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


def recall_text(result: Mapping[str, Json]) -> str:
    """Return the JSON of a result as text, with one line for each match."""
    parts = []
    for name, value in result.items():
        if isinstance(value, list) and value:
            rows = ",\n".join(_INDENT + _one_line(row) for row in value)
            parts.append(f'  "{name}": [\n{rows}\n  ]')
        else:
            parts.append(f'  "{name}": {_one_line(value)}')
    return "{\n" + ",\n".join(parts) + "\n}"


def recalled_ids(result: Mapping[str, Any]) -> set[str]:
    """Return the ids of the matches that a result shows: its index lists them all."""
    return {row["id"] for row in result["index"]}


@dataclass(frozen=True, slots=True)
class RecallResult:
    """The matches of one page, of which `within` returns as much as a budget allows. `total` counts all matches."""

    answer: Answer
    query: str
    total: int
    signals: Mapping[str, RankingSignals] = field(default_factory=dict)

    def within(self, budget: int) -> JsonObject:
        """Return index entries first, then details, both in order. `has_more` says that matches follow the index."""
        hits, notes = self.answer.hits, self.answer.notes
        echo = self.query if len(self.query) <= _MAX_ECHO else self.query[: _MAX_ECHO - 1] + "…"
        size = 4 * budget - self._empty_size(echo, notes)
        records = [hit.record for hit in hits]
        index, used = _index(records, size // 2)
        if (hits and not index) or size < 0:
            # Not even one entry fits beside the query and the notes: these are cut, so that a result is never empty.
            echo, notes = echo[:_MIN_ECHO], ()
            size = 4 * budget - self._empty_size(echo, notes)
            index, used = _index(records[:1], size, least=0)
        rows = [memory_row(record, self.signals.get(record.id)) for record in records]
        details, _ = _fitting(rows, size - used)
        if len(details) < _MIN_DETAILS:
            details = _cut_details(rows[:_MIN_DETAILS], size - used) or details
        if not details and len(index) > 1:
            index, _ = _index(records, size)
        result = self._result(index, details, echo, notes)
        return {**result, "tokens_used": _tokens_with_count(_length(recall_text(result)) - len("0"))}

    def _empty_size(self, echo: str, notes: Sequence[str]) -> int:
        """Return the size of a result without index entries and details."""
        empty = {**self._result([], [], echo, notes), "has_more": False, "tokens_used": 9999}
        return _length(recall_text(empty)) + 2 * len("\n  ")  # the ends of two lists that are not empty

    def _result(
        self, index: list[JsonObject], details: list[JsonObject], echo: str, notes: Sequence[str]
    ) -> JsonObject:
        result: JsonObject = {
            "index": [*index],
            "details": [*details],
            "total_count": self.total,
            "has_more": self.answer.has_more or len(index) < len(self.answer.hits),
            "tokens_used": 0,
            "query": echo,
        }
        return result | (
            {"notes": [*map(worded, notes)]} if notes else {}
        )  # not in Memory MCP: what the caller should know


def _index(records: Sequence[Record], size: int, least: int = _MIN_SUMMARY) -> tuple[list[JsonObject], int]:
    """Return the entries of the index that fit, and their size; summaries have at least this number of characters."""
    summaries = [summary_of(record) for record in records]

    def rows(length: int) -> list[JsonObject]:
        return [
            {"id": record.id, "summary": _cut(summary, length)}
            for record, summary in zip(records, summaries, strict=True)
        ]

    longest = max(map(len, summaries), default=0)
    lengths = range(1, longest + 1)
    length = bisect_left(lengths, True, key=lambda length: len(_fitting(rows(length), size)[0]) < len(records))
    return _fitting(rows(max(length, least)), size)


def _cut_details(rows: Sequence[JsonObject], size: int) -> list[JsonObject]:
    """Return all of the rows, with contents cut so that they fit; none if one would have too little of its content.

    What a short one leaves is shared by those that follow, so the shortest are taken first.
    """
    lengths = [_length(_one_line(row)) + _LINE for row in rows]
    cut = {}
    for place, index in enumerate(sorted(range(len(rows)), key=lengths.__getitem__)):
        share, row = size // (len(rows) - place), rows[index]
        if lengths[index] > share:
            content = str(row["content"])
            most = len(content)
            # A character may be several in JSON: cut until it fits.
            while most >= _MIN_CONTENT and _length(_one_line(row)) + _LINE > share:
                most -= max(1, _length(_one_line(row)) + _LINE - share)
                row = {**row, "content": _cut(content, most)}
            if most < _MIN_CONTENT:
                return []
        size -= _length(_one_line(row)) + _LINE
        cut[index] = row
    return [cut[index] for index in range(len(rows))]


def _cut(text: str, length: int) -> str:
    return text if len(text) <= length else text[: max(0, length - 1)].rstrip() + "…"


def _fitting(rows: Iterable[JsonObject], size: int) -> tuple[list[JsonObject], int]:
    """Return the first rows that fit, a line each, and their size."""
    fitting: list[JsonObject] = []
    used = 0
    for row in rows:
        with_row = used + _length(_one_line(row)) + _LINE
        if with_row > size:
            break
        fitting.append(row)
        used = with_row
    return fitting, used


def _one_line(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)


def _tokens_with_count(length: int) -> int:
    """Return the tokens of this number of characters and of the digits of that number itself."""
    return next(cost for digits in count(1) if len(str(cost := -(-(length + digits) // 4))) <= digits)


def _length(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2
