"""What is shown of a record: `RecordView`, of which text and JSON are both made, so that their content is the same."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from mindex.clock import to_iso
from mindex.datatypes import Conflict, Hit, Range, Record, Usage
from mindex.present.passage import best_passage, telling_matches
from mindex.present.passage_layout import Run
from mindex.present.token_count import count_tokens
from mindex.values import dataclass

if TYPE_CHECKING:
    from mindex.present.to_json import Json

OMITTED = "…"  # replaces the part that was left out of a line
_SUMMARY_WORDS = 20
_LINE = 130  # characters: about twenty words
_MAX_HIGHLIGHTS = 10
_MAX_TAGS = 10
_SPEAKER = 80  # characters that may precede a turn's first sentence: a name, a date, a greeting
# Properties of a record that are shown as they are, unless they are empty.
_COPIED = (
    "title", "type", "path", "collection", "first_line", "last_line", "domain", "instruction", "agent", "source",
    "superseded_by", "context",
)  # fmt: skip
_MARKUP = re.compile(r"^[#>\s*\-|=`~]+|[`*|]+|\b_+|(?<!_)_+\b")  # within a word, `_` is not a mark


@dataclass(frozen=True, slots=True)
class RecordView:
    """One shown record. None means: not part of this view. The order of the fields is the order of the output."""

    id: str
    at: str | None = None  # its place, in views without path and lines
    kind: str | None = None
    title: str | None = None
    type: str | None = None
    score: float | None = None
    relevance: float | None = None
    weak: bool | None = None
    date: str | None = None
    tokens: int | None = None
    path: str | None = None
    collection: str | None = None
    first_line: int | None = None
    last_line: int | None = None
    domain: str | None = None
    instruction: bool | None = None
    importance: int | None = None
    confidence: float | None = None
    agent: str | None = None
    created_at: str | None = None
    expires_at: str | None = None
    access_count: int | None = None
    last_accessed: str | None = None
    source: str | None = None
    superseded_by: str | None = None
    context: str | None = None
    tags: tuple[str, ...] | None = None
    anchor: Mapping[str, Json] | None = None
    fields: Mapping[str, Json] | None = None  # those that the text does not contain
    summary: str | None = None
    text: str | None = None
    highlights: tuple[Range, ...] | None = None  # characters of the text that match the query
    truncated: bool | None = None
    lines: tuple[str, ...] | None = None  # of a text with gaps: the lines of each of its parts
    runs: tuple[Run, ...] | None = None  # of a text with gaps: its parts; not part of the JSON
    explain: Hit | None = None
    around: tuple[RecordView, ...] | None = None
    conflicts: tuple[Conflict, ...] | None = None
    older: str | None = None  # the id of a newer hit that states another value of the same thing
    until: str | None = None  # the day from which that one holds
    older_value: str | None = None  # what this one states; not part of the JSON

    @property
    def telling_highlights(self) -> tuple[Range, ...] | None:
        """The highlights that JSON has: not more than they are worth, since each costs two or three tokens."""
        return telling_matches(self.text or "", self.highlights, _MAX_HIGHLIGHTS) if self.highlights else None

    @property
    def place(self) -> str | None:
        """`path:first-last`, which `get` accepts; only the path where lines are unknown; None for an entry."""
        return self.at or (with_lines(self.path, self.first_line, self.last_line) if self.path else None)


def view_record(
    record: Record, hit: Hit | None = None, *, explain: bool = False, highlights: tuple[Range, ...] = ()
) -> RecordView:
    """Return everything there is to show of a record, and of the hit that found it."""
    copied: dict[str, Any] = {name: getattr(record, name) or None for name in _COPIED}
    return RecordView(
        id=record.id,
        kind=record.kind,
        score=round(hit.score, 4) if hit else None,
        relevance=round(hit.relevance, 3) if hit else None,
        weak=(hit.weak or None) if hit else None,
        tokens=count_tokens(record.text),
        importance=record.importance,
        confidence=record.confidence,
        created_at=to_iso(record.created_at) if record.created_at and record.kind != "chunk" else None,
        expires_at=to_iso(record.expires_at) if record.expires_at else None,
        tags=record.tags[:_MAX_TAGS] or None,
        anchor=anchor_view(record),
        fields=own_fields(record) or None,
        summary=None if _repeats_summary(record) else record.summary,
        text=record.text,
        highlights=highlights or None,
        explain=hit if explain else None,
        around=tuple(map(neighbour_view, hit.around)) or None if hit else None,
        conflicts=(hit.conflicts or None) if hit else None,
        **older_view(hit),
        **copied,
    )


def neighbour_view(turn: Record) -> RecordView:
    """A turn that is shown beside another one."""
    return RecordView(id=turn.id, created_at=to_iso(turn.created_at), text=turn.text)


def with_usage(row: RecordView, record: Record, usage: Usage | None) -> RecordView:
    """The row as `get` shows it: with how often it was returned, and the ids by which other programs knew it."""
    foreign = stored_fields(record).get("foreign_ids")
    return replace(
        row,
        access_count=usage.count if usage else None,
        last_accessed=to_iso(usage.last_at) if usage and usage.last_at else None,
        fields={**(row.fields or {}), "foreign_ids": foreign} if foreign else row.fields,
    )


def without_description(row: RecordView) -> RecordView:
    """The row without the fields that only describe it, for a budget that the text needs."""
    return replace(
        row, kind=None, score=None, date=None, collection=None, domain=None, instruction=None, importance=None,
        confidence=None, agent=None, expires_at=None, access_count=None, last_accessed=None, source=None, context=None,
        tags=None, fields=None, summary=None, conflicts=ids_of(row.conflicts or ()),
    )  # fmt: skip


def text_and_place(row: RecordView) -> RecordView:
    """Only the text of a row, else its title, and what finds it again; and that it is weak, if it is."""
    return RecordView(
        id=row.id,
        at=row.place,
        title=None if row.text else row.title,
        weak=row.weak,
        text=row.text,
        highlights=row.highlights,
        truncated=row.truncated,
    )


def older_view(hit: Hit | None) -> dict[str, Any]:
    """What a view says of a hit that a newer one contradicts."""
    if hit is None or hit.older is None:
        return {}
    return {
        "older": hit.older.newer,
        "until": to_iso(hit.older.until)[:10],
        "older_value": hit.older.value or None,
    }


def ids_of(conflicts: Sequence[Conflict]) -> tuple[Conflict, ...] | None:
    """The memories that a hit is in conflict with as a line names them: by their ids; None if there are none."""
    return tuple(Conflict(one.id) for one in conflicts) or None


def anchor_view(record: Record) -> dict[str, Json] | None:
    """The file lines that a record is about: where they are now if that was checked, else where they were."""
    kept = record.fields.get("anchor")
    if not isinstance(kept, Mapping) or "path" not in kept:
        return None
    if "state" in kept:
        return {"at": kept["at"], "state": kept["state"]}
    return {"at": f"{kept['path']}:{kept.get('first')}-{kept.get('last')}"}


def stored_fields(record: Record) -> dict[str, Json]:
    return dict(record.fields)  # type: ignore[arg-type]  # JSON as it was stored


def own_fields(record: Record) -> dict[str, Json]:
    """The fields of a record that its text, which is made of most of them, does not contain."""
    if record.kind == "turn":
        return {"session_id": str(record.fields["session_id"])} if record.fields.get("session_id") else {}
    if record.kind not in ("contact", "project", "skill", "history"):
        return {}
    fields = stored_fields(record)
    if record.kind == "project" and "sources" in fields:
        fields["sources"] = _reported(fields["sources"])
    return {
        name: value
        for name, value in fields.items()
        if name not in ("type", "foreign_ids") and value != [] and f"{name}: {field_text(value)}" not in record.text
    }


def _reported(sources: Json) -> Json:
    """The sources of a project whose status was reported, with that status; the text lists all locations."""
    shown = ("location", "status", "message")
    return [
        {name: one[name] for name in shown if name in one}
        for one in (sources if isinstance(sources, list) else ())
        if isinstance(one, dict) and "status" in one
    ]


def field_text(value: Json) -> str:
    """A value in a line for people: lists of texts with commas, everything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False)


_HEADING = 60  # characters
_PART = re.compile(r" \(part \d+ of \d+\)$")


def heading_of(record: Record) -> str:
    """The last heading above a chunk, which says most of where it is; '' if that is only the name of its file."""
    heading = _PART.sub("", record.title.rsplit(" > ", 1)[-1])
    if heading == PurePosixPath(record.path).stem:
        return ""
    return heading if len(heading) <= _HEADING else f"{heading[: _HEADING - 1].rstrip()}{OMITTED}"


def place(record: Record, *, with_collection: bool = False) -> str:
    """`path:first-last` or `collection/path:first-last`, which `get` accepts; empty for an entry.

    Only the path where lines are unknown.
    """
    path = file_name(record.path, record.collection if with_collection else "")
    return with_lines(path, record.first_line, record.last_line) if path else ""


def with_lines(path: str, first: int | None, last: int | None) -> str:
    return f"{path}:{first}-{last}" if first else path


def file_name(path: str | None, collection: str | None) -> str:
    """`collection/path`, or the path alone without a collection; empty without a path."""
    return f"{collection}/{path}" if path and collection else path or ""


def shortened_place(whole: str, most: int) -> str:
    """A place in at most `most` bytes: `…/` replaces its first folders, which `get` does not need."""
    if not whole or size_of(whole) <= most:
        return whole
    parts = whole.split("/")
    shorter = (f"{OMITTED}/{'/'.join(parts[first:])}" for first in range(1, len(parts)))
    end = whole
    while end and size_of(end) > most - size_of(OMITTED):
        end = end[1:]
    return next((short for short in shorter if size_of(short) <= most), f"{OMITTED}{end}")


def shortened_words(text: str, most: int) -> str:
    """The first words of a text, in at most `most` bytes, marked if cut."""
    if not text or size_of(text) <= most:
        return text
    start = text
    while start and size_of(start) > most - size_of(OMITTED):
        start = start[:-1]
    words = start if text[len(start)].isspace() else start.rpartition(" ")[0]
    return f"{(words or start).rstrip()}{OMITTED}"


def size_of(text: str) -> int:
    """The bytes of a text, by which its tokens are counted."""
    return len(text.encode("utf-8", "backslashreplace"))


def summary_of(record: Record) -> str:
    """The record's own summary, or the first words of its text."""
    if record.summary:
        return record.summary
    return _first_words(record.text)


def best_line(record: Record, matches: Sequence[Range]) -> str:
    """The record's own summary, or at most twenty words around the best matches in its text."""
    if record.summary or not matches:
        return summary_of(record)
    start, end = best_passage(record.text, matches, _LINE)
    return _first_words(record.text[start:end])


def words_around(text: str, matches: Sequence[Range], most: int = _LINE, *, is_code: bool = False) -> str:
    """At most twenty words of a text in one line of `most` characters, those around its best matches."""
    start, end = best_passage(text, matches, min(most, _LINE))
    before, behind = OMITTED if text[:start].strip() else "", OMITTED if text[end:].strip() else ""
    words = " ".join(text[start:end].split()) if is_code else _first_words(text[start:end]).removesuffix(OMITTED)
    return f"{before}{words}{behind}"


def line_about(record: Record, matches: Sequence[Range] = ()) -> str:
    """What a line says of an entry: its summary; of a profile, whose summary only names it, the best of its values."""
    if record.kind != "profile" or not record.text:
        return summary_of(record)
    start, end = best_passage(record.text, matches, _LINE)
    return _first_words(record.text[start:end].replace("\n", "; "))


def _first_words(text: str) -> str:
    """The first words of a text without its headings, unless it has nothing else."""
    lines = [line for line in text.split("\n") if not line.startswith("#")] or [text]
    return " ".join(_MARKUP.sub("", " ".join(lines)).split()[:_SUMMARY_WORDS])[:200]


def _repeats_summary(record: Record) -> bool:
    """Whether the text begins with the summary."""
    summary = " ".join(record.summary.removesuffix("…").split()).casefold()
    length = len(summary) + (_SPEAKER if record.kind == "turn" else 0)
    return summary in " ".join(record.text[: 2 * length + _SPEAKER].split()).casefold()[:length]
