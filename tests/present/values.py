"""Hits, answers and records for the tests of this folder."""

from __future__ import annotations

from mindex.datatypes import Answer, Hit, Record, Stage, Trace
from mindex.search.query import parse


def hit(number: int, text: str = "Some text about caching.", path: str = "docs/caching.md") -> Hit:
    record = Record(
        id=f"abcdefghij{number:02d}",
        kind="chunk",
        text=text,
        title="Architecture > Caching",
        tags=("redis",),
        collection="docs",
        path=path,
        first_line=number,
        last_line=number + 5,
        domain="caching",
        created_at=1_750_000_000_000,
    )
    trace = Trace(stages=(Stage("keyword", 0.25), Stage("vector", 0.35)), keyword_rank=number, cosine=0.61)
    return Hit(record, 0.6, 0.9, trace)


def answer(*hits: Hit, query: str = "how is data cached", notes: tuple[str, ...] = ()) -> Answer:
    return Answer(query, "hybrid", "blend", len(hits), False, hits, notes, terms=parse(query).terms)


def memory_hit(text: str, number: int) -> Hit:
    return Hit(Record(id=f"abcdefghij{number:02d}", kind="memory", text=text, type="fact"), 0.6, 0.9)


def records(*texts: str) -> tuple[Record, ...]:
    return tuple(Record(id=f"id{n}", kind="memory", text=text) for n, text in enumerate(texts))
