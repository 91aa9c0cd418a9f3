"""Rows about entries: adding, the near-duplicate look-up, bulk, updating and recalling, in a store of 10,000."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from ground import Ground
from measure import Row, alternate, timed, told
from mindex.analyzer import COLUMN_WEIGHTS, COLUMNS, analyze_record
from mindex.clock import now_ms
from mindex.datatypes import Filters, Record
from mindex.entries import entries
from mindex.entries.near_duplicates import conflicting_among, find_related, similar_among
from mindex.entries.new_memory import NewMemory, make_records
from mindex.memory import Memory
from mindex.redaction.redactor import Redactor
from mindex.search.query import parse
from mindex.store.base import KeywordQuery
from mindex.store.sqlite.filter_sql import match_expression

_BARE_FTS = f"""
SELECT rowid, bm25(records_fts, {", ".join(map(str, COLUMN_WEIGHTS.values()))}) AS score
FROM records_fts WHERE records_fts MATCH ? ORDER BY score LIMIT 200
"""


def sentences(ground: Ground, count: int, salt: int) -> list[str]:
    """Texts of about twenty words, made of the corpus's own words: no two alike."""
    words = [word for passage in ground.passages[:2_000] for word in passage.text.split() if word.isalpha()]
    draw = random.Random(salt)
    return [f"{' '.join(draw.choices(words, k=19))} {salt}-{number}" for number in range(count)]


@contextmanager
def told_store(ground: Ground, name: str) -> Iterator[Memory]:
    """A memory without a model that holds 10,000 memories."""
    path = ground.scratch(f"told-{name}") / "memory.db"
    with Memory(path, options={"embedding.provider": "none"}) as memory:
        memory.add_many(NewMemory(text) for text in sentences(ground, ground.sizes.small, 1))
        yield memory


class _Bare:
    """The same row and its FTS entry in a bare database of the same size, with the same durability."""

    def __init__(self, path: Path, source: Path) -> None:
        with sqlite3.connect(source) as original, sqlite3.connect(path) as copy:
            original.backup(copy)
        self._connection = sqlite3.connect(path, isolation_level=None)
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute("PRAGMA synchronous = FULL")

    def add(self, record: Record, columns: tuple[str, ...]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        key = self._connection.execute(
            "INSERT INTO records (id, kind, agent, created_at, updated_at, tags, entities, fields, text)"
            " VALUES (?, 'memory', 'main', ?, ?, ?, ?, '{}', ?)",
            (record.id, record.created_at, record.updated_at, json.dumps(record.tags), "[]", record.text),
        ).lastrowid
        self._connection.execute(
            f"INSERT INTO records_fts (rowid, {', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)", (key, *columns)
        )
        self._connection.execute("COMMIT")

    def update(self, id_: str, text: str, columns: tuple[str, ...]) -> None:
        self._connection.execute("BEGIN IMMEDIATE")
        (key,) = self._connection.execute("SELECT key FROM records WHERE id = ?", (id_,)).fetchone()
        self._connection.execute("UPDATE records SET text = ? WHERE key = ?", (text, key))
        self._connection.execute("DELETE FROM records_fts WHERE rowid = ?", (key,))
        self._connection.execute(
            f"INSERT INTO records_fts (rowid, {', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)", (key, *columns)
        )
        self._connection.execute("COMMIT")


def _columns(record: Record) -> tuple[str, ...]:
    analysed = analyze_record(record)
    return tuple(getattr(analysed, name) for name in COLUMNS)


def adding(ground: Ground) -> Row:
    texts = sentences(ground, ground.sizes.questions, 2)
    with told_store(ground, "add") as memory:
        bare = _Bare(ground.scratch("bare-add") / "bare.db", Path(memory.status().db))
        records = [Record(f"bare{n:08}", "memory", text, created_at=1, updated_at=1) for n, text in enumerate(texts)]
        prepared = [_columns(record) for record in records]
        with patch.object(entries, "find_related", return_value=()):
            ours, baseline = alternate(
                len(texts),
                lambda turn: timed(lambda: memory.entries.insert(NewMemory(texts[turn]))),
                lambda turn: timed(lambda: bare.add(records[turn], prepared[turn])),
            )
    ratio = ours.over(baseline)
    return Row(
        name="add",
        measured=f"one memory into {ground.sizes.small:,}, without vector and look-up: {told(ours.wall)}",
        baseline=f"a bare insert of row and FTS entry, synchronous=FULL: {told(baseline.wall)}",
        ratio=f"{ratio:.2f}×",
        target="≤ 3×",
        ok=ratio <= 3,
        note=f"wall, median of {len(texts)}; CPU {ours.cpu_over(baseline):.1f}×; the rules (secrets, summary, entities,"
        " importance) and history included",
        numbers={"ratio": ratio, "cpu_ratio": ours.cpu_over(baseline)},
    )


def lookup(ground: Ground) -> Row:
    texts = sentences(ground, ground.sizes.questions, 3)
    with told_store(ground, "lookup") as memory:
        prepared = [record for record, _ in make_records([*map(NewMemory, texts)], Redactor(), now_ms())]
        scope = Filters(kinds=("memory",), types=("fact",))
        ours, baseline = alternate(
            len(texts),
            lambda turn: timed(lambda: _look_up(memory, prepared[turn])),
            lambda turn: timed(
                lambda: memory.store.retrieval.keyword(KeywordQuery(parse(texts[turn]).node), scope, 200)
            ),  # type: ignore[arg-type]  # plain words
        )
    ratio = ours.over(baseline)
    return Row(
        name="near-lookup",
        measured=f"the look-up of near-duplicates and conflicts among {ground.sizes.small:,}: {told(ours.wall)}",
        baseline=f"a keyword search for the same words: {told(baseline.wall)}",
        ratio=f"{ratio:.2f}×",
        target="≤ 2×",
        ok=ratio <= 2,
        note=f"wall, median of {len(texts)}",
        numbers={"ratio": ratio},
    )


def _look_up(memory: Memory, record: Record) -> None:
    """What a new memory is compared with: near-duplicates and conflicts."""
    related = find_related(memory.store, record)
    similar_among(record, related, ("fact",), but=conflicting_among(record, related))


def bulk(ground: Ground) -> Row:
    texts = sentences(ground, ground.sizes.small, 4)
    path = ground.scratch("bulk") / "memory.db"
    with Memory(path, options={"embedding.provider": "none"}) as memory:
        took = timed(lambda: memory.add_many(NewMemory(text) for text in texts))
    rate = len(texts) / took.wall
    return Row(
        name="bulk",
        measured=f"{len(texts):,} memories added at once, without vectors: {told(took.wall)}",
        baseline="2,000 a second",
        ratio=f"{rate:,.0f}/s",
        target="≥ 2,000/s",
        ok=rate >= 2_000,
        note="one transaction for each 500",
        numbers={"rate": rate},
    )


def updating(ground: Ground) -> Row:
    texts = sentences(ground, ground.sizes.questions, 5)
    with told_store(ground, "update") as memory:
        ids = [record.id for record in memory.store.retrieval.list(Filters(), limit=len(texts)).records]
        bare = _Bare(ground.scratch("bare-update") / "bare.db", Path(memory.status().db))
        prepared = [_columns(Record("x", "memory", text)) for text in texts]
        # As for `add`, the look-up of conflicts is a separate row.
        with patch.object(entries, "find_related", return_value=()):
            ours, baseline = alternate(
                len(texts),
                lambda turn: timed(lambda: memory.update(ids[turn], text=texts[turn])),
                lambda turn: timed(lambda: bare.update(ids[turn], texts[turn], prepared[turn])),
            )
    ratio = ours.over(baseline)
    return Row(
        name="update",
        measured=f"a new text for one of {ground.sizes.small:,}, without look-up: {told(ours.wall)}",
        baseline=f"a bare update of row and FTS entry: {told(baseline.wall)}",
        ratio=f"{ratio:.2f}×",
        target="≤ 4×",
        ok=ratio <= 4,
        note=f"wall, median of {len(texts)}; history and rules included",
        numbers={"ratio": ratio},
    )


def recall(ground: Ground) -> Row:
    draw = random.Random(6)
    texts = [" ".join(draw.sample(text.split()[:-1], 4)) for text in sentences(ground, ground.sizes.questions, 1)]
    with told_store(ground, "recall") as memory:
        bare = sqlite3.connect(memory.status().db)
        expressions = [match_expression(node) for text in texts if (node := parse(text).node)]
        ours, baseline = alternate(
            len(expressions),
            lambda turn: timed(lambda: memory.search(texts[turn], mode="keyword", fusion="signals", limit=20, floor=0)),
            lambda turn: timed(lambda: bare.execute(_BARE_FTS, (expressions[turn],)).fetchall()),
        )
    ratio = ours.over(baseline)
    return Row(
        name="recall",
        measured=f"20 of {ground.sizes.small:,} memories by `signals`: {told(ours.wall)}",
        baseline=f"the bare FTS5 query of the same terms: {told(baseline.wall)}",
        ratio=f"{ratio:.2f}×",
        target="≤ 2×",
        ok=ratio <= 2,
        note=f"wall, median of {len(expressions)} questions of four words; CPU {ours.cpu_over(baseline):.1f}×",
        numbers={"ratio": ratio, "cpu_ratio": ours.cpu_over(baseline)},
    )
