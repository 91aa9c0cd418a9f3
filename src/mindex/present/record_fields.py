"""What is shown of a record: one row type that both text and JSON are made of, so that they cannot drift apart."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import fields as dataclass_fields
from dataclasses import replace
from typing import TypeAlias

from mindex.clock import to_iso
from mindex.model import Hit, Record, Trace
from mindex.present.tokens import count_tokens
from mindex.values import dataclass

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"

_SUMMARY_WORDS = 20
_MOST_TAGS = 10
_LONG_WORD = 40  # characters: what is longer is cut anywhere
_SPEAKER = 80  # characters that may stand before what was said: a name, a date, a greeting
_MARKUP = re.compile(r"^[#>\s*\-|=`~]+|[`*_|]+")


@dataclass(frozen=True, slots=True)
class RecordView:
    """One shown record. None means: not part of this view. The order of the fields is the order of the output."""

    id: str
    at: str | None = None
    kind: str | None = None
    title: str | None = None
    type: str | None = None
    score: float | None = None
    relevance: float | None = None
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
    updated_at: str | None = None
    expires_at: str | None = None
    source: str | None = None
    superseded_by: str | None = None
    context: str | None = None
    tags: tuple[str, ...] | None = None
    anchor: Mapping[str, Json] | None = None
    fields: Mapping[str, Json] | None = None  # what the text does not say already
    summary: str | None = None
    text: str | None = None
    truncated: bool | None = None
    explain: Mapping[str, Json] | None = None
    around: tuple[RecordView, ...] | None = None

    def json(self) -> dict[str, Json]:
        """As an object; what is absent is left out."""
        values = {field.name: getattr(self, field.name) for field in dataclass_fields(self)}
        return {
            name: [part.json() if isinstance(part, RecordView) else part for part in value]
            if isinstance(value, tuple)
            else value
            for name, value in values.items()
            if value is not None and value != ()
        }


def plain_row(row: RecordView) -> RecordView:
    """A row without what only describes it: where its text has no room, the text comes first."""
    return RecordView(
        id=row.id,
        at=row.at,
        title=row.title,
        type=row.type,
        score=row.score,
        tokens=row.tokens,
        path=row.path,
        first_line=row.first_line,
        last_line=row.last_line,
        created_at=row.created_at,
        superseded_by=row.superseded_by,
        anchor=row.anchor,
        text=row.text,
        truncated=row.truncated,
        explain=row.explain,
        around=row.around,
    )


def lean_row(row: RecordView) -> RecordView:
    """Only the text, and what finds it again."""
    at = row.at or (f"{row.path}:{row.first_line}-{row.last_line}" if row.path else None)
    return RecordView(id=row.id, at=at, text=row.text, truncated=row.truncated)


def shortened(row: RecordView, size: int) -> RecordView:
    """With at most so many characters of its text, cut at a word where one ends near; marked if that is not all."""
    text = row.text or ""
    if size >= len(text):
        return row
    kept = text[:size]
    if not text[size].isspace():
        end = max(kept.rfind(" "), kept.rfind("\n"))
        kept = kept[:end] if size - end < _LONG_WORD and end > 0 else kept
    return replace(row, text=kept.rstrip(), truncated=True)


def digest_row(hit: Hit) -> RecordView:
    record = hit.record
    return RecordView(id=record.id, at=place(record) or None, anchor=_anchor(record))


def compact_row(hit: Hit) -> RecordView:
    record = hit.record
    return RecordView(
        id=record.id,
        at=place(record) or None,
        # What was told has no place that would say what it is about: its summary does.
        title=(_last_heading(record) if record.kind == "chunk" else summary_of(record)) or None,
        type=record.type or None,
        score=round(hit.score, 3),
        date=to_iso(record.created_at)[:10] if record.created_at else None,
        tokens=count_tokens(record.text),
        anchor=_anchor(record),
    )


def full_row(hit: Hit, *, explain: bool = False) -> RecordView:
    row = record_row(hit.record, score=hit.score, relevance=hit.relevance, trace=hit.trace if explain else None)
    return replace(row, around=tuple(map(_beside, hit.around))) if hit.around else row


def _beside(turn: Record) -> RecordView:
    """An exchange that is shown for the sake of another."""
    return RecordView(id=turn.id, created_at=to_iso(turn.created_at), text=turn.text)


def index_row(hit: Hit) -> RecordView:
    """An entry of the dual view's index: an id and at most twenty words."""
    return RecordView(id=hit.record.id, summary=summary_of(hit.record))


def record_row(
    record: Record, *, score: float | None = None, relevance: float | None = None, trace: Trace | None = None
) -> RecordView:
    """All there is to show of a record."""
    chunk = record.kind == "chunk"
    return RecordView(
        id=record.id,
        kind=record.kind,
        title=record.title or None,
        type=record.type or None,
        score=None if score is None else round(score, 4),
        relevance=None if relevance is None else round(relevance, 3),
        tokens=count_tokens(record.text),
        path=record.path or None,
        collection=record.collection or None,
        first_line=record.first_line or None,
        last_line=record.last_line or None,
        domain=record.domain or None,
        instruction=True if record.instruction else None,
        importance=record.importance,
        confidence=record.confidence,
        agent=record.agent or None,
        created_at=to_iso(record.created_at) if record.created_at and not chunk else None,
        expires_at=to_iso(record.expires_at) if record.expires_at else None,
        source=record.source or None,
        superseded_by=record.superseded_by or None,
        context=record.context or None,
        tags=record.tags[:_MOST_TAGS],
        anchor=_anchor(record),
        fields=own_fields(record) or None,
        summary=None if _says_already(record) else record.summary,
        text=record.text,
        explain=None if trace is None else explained(trace, relevance),
    )


def _anchor(record: Record) -> dict[str, Json] | None:
    """Where it stands now, if whoever fetched the record looked; else where it stood."""
    kept = record.fields.get("anchor")
    if not isinstance(kept, Mapping) or "path" not in kept:
        return None
    if "state" in kept:
        return {"at": kept["at"], "state": kept["state"]}
    return {"at": f"{kept['path']}:{kept.get('first')}-{kept.get('last')}"}


def own_fields(record: Record) -> dict[str, Json]:
    """What a kind's fields say beside the record's text, which is made of most of them."""
    if record.kind == "turn":
        return {"session_id": str(record.fields["session_id"])} if record.fields.get("session_id") else {}
    if record.kind not in ("contact", "project", "skill", "history"):
        return {}
    fields: dict[str, Json] = dict(record.fields)  # type: ignore[arg-type]  # JSON as it was stored
    return {
        name: value
        for name, value in fields.items()
        if name != "type" and f"{name}: {field_text(value)}" not in record.text
    }


def field_text(value: Json) -> str:
    """A value in a line for people: lists of texts by commas, the rest as JSON has it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False)


def explained(trace: Trace, relevance: float | None) -> dict[str, Json]:
    """Why a hit stands where it stands; the stages sum to the score."""
    known: dict[str, Json] = {
        "keyword_rank": trace.keyword_rank,
        "keyword_score": _rounded(trace.keyword_score),
        "vector_rank": trace.vector_rank,
        "cosine": _rounded(trace.cosine),
        "coverage": _rounded(trace.coverage),
        "z": _rounded(trace.z),
        "g": _rounded(trace.g),
        "rerank": _rounded(trace.rerank),
        "relevance": _rounded(relevance),
    }
    shown: dict[str, Json] = {name: value for name, value in known.items() if value is not None}
    shown["stages"] = [{"name": stage.name, "change": round(stage.change, 6)} for stage in trace.stages]
    return shown


def place(record: Record) -> str:
    """`path:first-last`, which `get` takes as it is; empty for what was told."""
    return f"{record.path}:{record.first_line}-{record.last_line}" if record.path else ""


def summary_of(record: Record) -> str:
    """The record's own summary, or the first words of its text."""
    if record.summary:
        return record.summary
    lines = [line for line in record.text.split("\n") if not line.startswith("#")] or [record.text]
    words = _MARKUP.sub("", " ".join(lines)).split()[:_SUMMARY_WORDS]
    return " ".join(words)[:200]


def _says_already(record: Record) -> bool:
    """Whether the text begins with what sums it up."""
    said = " ".join(record.summary.removesuffix("…").split()).casefold()
    begins = len(said) + (_SPEAKER if record.kind == "turn" else 0)
    return said in " ".join(record.text[: 2 * begins + _SPEAKER].split()).casefold()[:begins]


def _last_heading(record: Record) -> str:
    return record.title.rsplit(" > ", 1)[-1][:60]


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 4)
