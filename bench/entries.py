"""Rows about 10,000 entries, as mudpuppy measures them: adding them at once, and searching them in each mode."""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from ground import Ground
from measure import Row, Timings, Took, alternate, timed, told
from mindex.analyzer import COLUMN_WEIGHTS, COLUMNS, analyze_record
from mindex.clock import now_ms
from mindex.datatypes import Filters, Record
from mindex.datatypes.record_properties import ENTRY_PROPERTIES
from mindex.entries.new_memory import NewMemory, make_records
from mindex.ids import content_hash
from mindex.memory import Memory
from mindex.providers.packaged_models import BUILT_IN
from mindex.redaction.redactor import Redactor
from mindex.search.option_types import SearchOptions
from mindex.search.query import parse
from mindex.store.base import Store
from mindex.store.open import open_store
from mindex.store.sqlite.filter_sql import match_expression
from mindex.store.sqlite.record_rows import encode
from telling import sentences

_NAMES = tuple(one.name for one in ENTRY_PROPERTIES)
_BARE_ROW = f"INSERT INTO records ({', '.join(_NAMES)}, content_hash) VALUES ({', '.join('?' * (len(_NAMES) + 1))})"
_BARE_WORDS = f"INSERT INTO records_fts (rowid, {', '.join(COLUMNS)}) VALUES (?, ?, ?, ?, ?, ?)"
_BARE_FTS = f"""
SELECT rowid, bm25(records_fts, {", ".join(map(str, COLUMN_WEIGHTS.values()))}) AS score
FROM records_fts WHERE records_fts MATCH ? ORDER BY score LIMIT 200
"""
_BULK = 500
_ROUNDS = 3
# As the dialect searches memories, whose score nothing is added to.
_AS_DIALECT: SearchOptions = {"fusion": "weighted", "floor": 0, "limit": 10, "kinds": ["memory"]}

_Row = tuple[tuple[object, ...], tuple[str, ...]]  # the values of a row, and its words by column


def entries_bulk(ground: Ground) -> Row:
    """Two comparisons with a bare insert, which gets finished values and tokens.

    Storing: the same records, finished as well, with history, names, checksums and the log of changes; what analysing
    takes is subtracted. All of it: from the texts, which the rules read for secrets, type, summary, entities and
    importance, and the analyzer for tokens.
    """
    rounds = min(_ROUNDS, ground.sizes.rounds)
    redactor, now = Redactor(), now_ms()
    added, inserted, ruled, analysed, stored = [], [], [], [], []
    for turn in range(rounds):
        path = ground.scratch(f"entries-bulk-{turn}") / "memory.db"
        with Memory(path, options={"embedding.provider": "none"}) as memory:
            # Each step gets its own texts, which are in no cache.
            whole, ruled_texts, analysed_texts = (
                [NewMemory(text) for text in sentences(ground, ground.sizes.small, salt + turn)]
                for salt in (40, 50, 60)
            )
            added.append(timed(lambda memory=memory, whole=whole: memory.add_many(whole)))
            inserted.append(_insert(ground.scratch(f"entries-bare-{turn}") / "bare.db", _rows_of(path)))
            ruled.append(timed(lambda texts=ruled_texts: make_records(texts, redactor, now)))
            finished = [record for record, _ in make_records(ruled_texts, redactor, now)]
            others = [record for record, _ in make_records(analysed_texts, redactor, now)]
            analysed.append(timed(lambda records=others: [analyze_record(record) for record in records]))
        with closing(open_store(ground.scratch(f"entries-stored-{turn}") / "memory.db")) as store:
            stored.append(timed(lambda store=store, records=finished: _add(store, records)))
    ours, bare, analysis = Timings(added), Timings(inserted), Timings(analysed)
    share, storing = bare.cpu / ours.cpu, bare.cpu / (Timings(stored).cpu - analysis.cpu)
    parts = {"rules": Timings(ruled).cpu_over(ours), "analysis": analysis.cpu_over(ours)}
    return Row(
        name="entries-bulk",
        measured=f"{ground.sizes.small:,} memories added at once, without vectors: {told(ours.wall)}",
        baseline=f"a bare insert of the same rows and FTS entries: {told(bare.wall)}",
        ratio=f"{storing:.0%} {share:.0%}",
        target="≥ 40 % of its rate: storing; all of it",
        ok=storing >= 0.4,
        note=f"CPU, median of {rounds}; both {_BULK} a transaction with synchronous=FULL. The bare insert gets finished"
        " values and tokens. Storing also gets them, and writes history, names, checksums and the log of changes. All"
        f" of it begins with texts: the rules (secrets, type, summary, entities, importance) take {parts['rules']:.0%}"
        f" of its CPU time, the analysis into tokens {parts['analysis']:.0%}",
        numbers={"ratio": ours.over(bare), "share": share, "storing": storing, **parts},
    )


def _add(store: Store, records: Sequence[Record]) -> None:
    for start in range(0, len(records), _BULK):
        store.entries.add(records[start : start + _BULK], by="main")


def _rows_of(path: Path) -> list[_Row]:
    """The rows of a store and their words, ready to be inserted."""
    with closing(open_store(path)) as store:
        records = store.retrieval.list(Filters(), limit=1_000_000).records
    return [(_values(record), tuple(analyze_record(record))) for record in records]


def _values(record: Record) -> tuple[object, ...]:
    values = (getattr(record, name) for name in _NAMES)
    return (*(encode(one) if isinstance(one, tuple | dict) else one for one in values), content_hash(record.text))


def _insert(path: Path, rows: Sequence[_Row]) -> Took:
    """Insert rows into an empty store of ours by hand, with nothing beside them."""
    open_store(path).close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA synchronous = FULL")

        def insert() -> None:
            for start in range(0, len(rows), _BULK):
                connection.execute("BEGIN IMMEDIATE")
                for values, words in rows[start : start + _BULK]:
                    key = connection.execute(_BARE_ROW, values).lastrowid
                    connection.execute(_BARE_WORDS, (key, *words))
                connection.execute("COMMIT")

        return timed(insert)


def entries_search(ground: Ground) -> Row:
    draw = random.Random(7)
    texts = sentences(ground, ground.sizes.small, 44)
    questions = [" ".join(draw.sample(text.split()[:-1], 4)) for text in texts[: ground.sizes.questions]]
    questions = [question for question in questions if parse(question).node is not None]
    expressions = [match_expression(node) for question in questions if (node := parse(question).node)]
    path = ground.scratch("entries-search") / "memory.db"
    with Memory(path, options={"boost.memory": 0}) as memory:
        memory.models.use(ground.embedder)
        added = memory.add_many(map(NewMemory, texts), embed=False)
        memory.store.vectors.put(BUILT_IN, ground.vectors([one.id for one in added]))
        memory.store.vectors.pack()
        for question in questions:  # their vectors are in the cache from here on
            memory.search(question, mode="vector", **_AS_DIALECT)
        memory.store.settle()
        with closing(sqlite3.connect(path)) as bare:
            keyword, vector, hybrid, fts = alternate(
                len(questions),
                lambda turn: timed(lambda: memory.search(questions[turn], mode="keyword", **_AS_DIALECT)),
                lambda turn: timed(lambda: memory.search(questions[turn], mode="vector", **_AS_DIALECT)),
                lambda turn: timed(lambda: memory.search(questions[turn], mode="hybrid", **_AS_DIALECT)),
                lambda turn: timed(lambda: bare.execute(_BARE_FTS, (expressions[turn],)).fetchall()),
            )
    ratios = {"keyword": keyword.over(fts), "vector": vector.over(keyword), "hybrid": hybrid.over(keyword)}
    limits = {"keyword": 4, "vector": 3, "hybrid": 3}
    times = f"keyword {told(keyword.wall)}, vector {told(vector.wall)}, hybrid {told(hybrid.wall)}"
    return Row(
        name="entries-search",
        measured=f"10 of {ground.sizes.small:,} memories by `weighted`: {times}",
        baseline=f"the bare FTS5 query of the same terms: {told(fts.wall)}",
        ratio=" ".join(f"{ratio:.1f}×" for ratio in ratios.values()),
        target="keyword ≤ 4×; vector, hybrid ≤ 3× keyword",
        ok=all(ratios[mode] <= limit for mode, limit in limits.items()),
        note=f"wall, median of {len(questions)} questions of four words whose vectors are cached; CPU"
        f" {keyword.cpu_over(fts):.1f}× {vector.cpu_over(keyword):.1f}× {hybrid.cpu_over(keyword):.1f}×, the log"
        " of accesses in the background included",
        numbers={"ratio": ratios["keyword"], **ratios, "cpu_ratio": keyword.cpu_over(fts)},
    )
