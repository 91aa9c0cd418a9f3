"""Where the CPU time of adding many memories goes: `python bench/entry_steps.py` prints one line a step.

Each step runs alone over all memories, with texts that no cache has seen, as `Memory.add_many` does it: 500 a
transaction, without vectors. The table also shows a bare insert of the same rows and FTS entries. Of several rounds the
least counts: what else the machine does only adds to it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from entries import _BULK, _insert, _rows_of
from ground import QUICK, Ground, Sizes
from measure import load
from mindex.analyzer import analyze_record, fold
from mindex.clock import now_ms
from mindex.datatypes import Record
from mindex.entries.entities import extract_entities
from mindex.entries.importance import estimate_importance
from mindex.entries.new_memory import NewMemory, make_records
from mindex.entries.summary import summarize
from mindex.memory import Memory
from mindex.redaction.redactor import Redactor
from mindex.store.rules import entry_rules as rules
from mindex.store.sql import entry_statements
from mindex.store.sql.entries import SqlEntries
from mindex.store.sql.entry_statements import SqlEntryStatements
from mindex.store.sqlite import keyword, record_rows
from mindex.type_rules import memory_type
from telling import sentences

_T = TypeVar("_T")
_ENTITIES = record_rows._PUT_NAME.format(table="entities", column="entity")


class Steps:
    """CPU seconds by step, in the order in which the steps were first taken."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = {}

    def time(self, name: str, work: Callable[[], _T]) -> _T:
        start = time.process_time()
        result = work()
        self.taken[name] = self.taken.get(name, 0.0) + time.process_time() - start
        return result


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="few memories: see that it runs, not how fast")
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "mindex-bench")
    options = parser.parse_args(arguments)
    options.work.mkdir(parents=True, exist_ok=True)
    ground = Ground(options.work.resolve(), QUICK if options.quick else Sizes())
    try:
        rounds = [_round(ground, turn) for turn in range(1 if options.quick else 4)]
    finally:
        ground.clean()
    count = ground.sizes.small
    least = {name: min(one[name] for one in rounds) / count * 1e6 for name in rounds[0]}
    bare, total = least["a bare insert"], least["add_many as a whole"]
    for name, taken in least.items():
        print(f"{name:52}{taken:8.1f} µs{taken / bare:8.2f}×")
    print(f"\n{count:,} memories, {load()}; add_many has {bare / total:.0%} of the bare insert's rate")
    return 0


def _round(ground: Ground, turn: int) -> dict[str, float]:
    steps, count = Steps(), ground.sizes.small
    texts = sentences(ground, count, 70 + 3 * turn)
    path = ground.scratch(f"steps-{turn}") / "memory.db"
    with Memory(path, options={"embedding.provider": "none"}) as memory:
        whole = [NewMemory(text) for text in sentences(ground, count, 71 + 3 * turn)]
        records = _by_rules(steps, texts)
        store = memory.store.entries
        assert isinstance(store, SqlEntries)
        for start in range(0, count, _BULK):
            _stored(steps, store, records[start : start + _BULK])
    other = ground.scratch(f"steps-whole-{turn}") / "memory.db"
    with Memory(other, options={"embedding.provider": "none"}) as memory:
        steps.time("add_many as a whole", lambda: memory.add_many(whole))
    steps.taken["a bare insert"] = _insert(ground.scratch(f"steps-bare-{turn}") / "bare.db", _rows_of(path)).cpu
    return steps.taken


def _by_rules(steps: Steps, texts: Sequence[str]) -> list[Record]:
    """The records of texts. What is not one of the rules is what making records takes beside them."""
    redactor = Redactor()
    steps.time("secrets", lambda: [redactor.redact(text) for text in texts])
    steps.time("type", lambda: [memory_type(text) for text in texts])
    steps.time("summary", lambda: [summarize(text) for text in texts])
    steps.time("importance", lambda: [estimate_importance(text, "fact") for text in texts])
    steps.time("entities", lambda: [extract_entities(text) for text in texts])
    before = sum(steps.taken.values())
    records = steps.time("validation, ids, records", lambda: make_records([*map(NewMemory, texts)], redactor, now_ms()))
    steps.taken["validation, ids, records"] = max(0.0, steps.taken["validation, ids, records"] - before)
    return [record for record, _ in records]


def _stored(steps: Steps, store: SqlEntries[Any], records: Sequence[Record]) -> None:
    """One transaction, as `SqlEntries.add` makes it of many records."""
    engine = store._engine
    write = engine.write_transaction(durable=True)
    connection = steps.time("begin and commit", write.__enter__)
    bulk = steps.time(
        "hashes, look-up of duplicates",
        lambda: SqlEntryStatements(record_rows, connection, now_ms(), "", records),
    )
    steps.time("numbers, changes", lambda: [rules.add(bulk, record, by="main") for record in records])
    (last,) = connection.execute("SELECT coalesce(max(key), 0) FROM records").fetchone()
    keyed = list(enumerate(bulk._entries.values(), start=last + 1))
    rows = steps.time("rows: values, checksums", lambda: [record_rows._row(key, record) for key, record in keyed])
    steps.time("rows: SQL", lambda: connection.executemany(record_rows._INSERT, rows))
    names = [(fold(name), key) for key, record in keyed for name in record.entities]
    steps.time("names: SQL", lambda: connection.executemany(_ENTITIES, names))
    words = steps.time("tokens", lambda: [(key, *analyze_record(record)) for key, record in keyed])
    steps.time("FTS entries: SQL", lambda: connection.executemany(keyword._ADD, words))
    steps.time("log of changes: SQL", lambda: record_rows.note_changes(connection, [key for key, _ in keyed]))
    history = steps.time("history: JSON, checksums", lambda: [*map(bulk._change_values, bulk._changes)])
    steps.time("history: SQL", lambda: connection.run_many(entry_statements._APPEND, history))
    record_rows.put_last_number(connection, bulk.last_number())
    steps.time("begin and commit", lambda: write.__exit__(None, None, None))


if __name__ == "__main__":
    sys.exit(main())
