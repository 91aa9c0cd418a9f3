"""One call of a SQLite store reads one snapshot, even if another process writes between two of its statements."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mindex.datatypes import AnyOf, Collection, Filters, Record, RecordVectors, Term
from mindex.search.word_evidence import idf, shares, surprisal_by_id
from mindex.store.base import KeywordQuery, Store, TermStatistics
from mindex.store.rules import bm25
from mindex.store.sqlite.readers import Readers
from mindex.store.sqlite.store import SqliteStore
from tests.contract.records import MODEL, axis, update

ALL = Filters(agent="*")
SOME = Filters(agent="me", kinds=("memory",))
EARLIER = [f"m{n:04}" for n in range(520)]  # more than are read in one statement


def entry(id_: str, text: str) -> Record:
    return Record(id=id_, kind="memory", text=text, agent="me", created_at=1, updated_at=1)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store of which every statement that reads is preceded by a write of another connection."""
    path = tmp_path / "memory.db"
    other = SqliteStore(path)
    other.files.put_collection(Collection("docs", "/docs"))
    other.entries.add([entry(id_, f"harbour number{n}") for n, id_ in enumerate(EARLIER)], by="me")
    other.vectors.put(MODEL, [RecordVectors(id_, [axis(n % 3)]) for n, id_ in enumerate(EARLIER)])
    counts = {"writes": 0, "active": 0, "left": 30}

    def write(statement: str) -> None:
        if counts["active"] or counts["left"] == 0 or not statement.lstrip().startswith("SELECT"):
            return
        counts["left"] -= 1
        counts["active"] = 1  # the other store also reads
        number = counts["writes"] = counts["writes"] + 1
        ids = f"w{number:04}", f"c{number:04}"
        other.entries.add([entry(id_, f"harbour harbour new {id_}") for id_ in ids], by="me")
        other.vectors.put(MODEL, [RecordVectors(id_, [axis(0)]) for id_ in ids])
        other.files.apply([update(f"{number}.md", "harbour")])
        counts["active"] = 0

    store = SqliteStore(path)
    open_reader = Readers._open

    def traced(self: Readers) -> sqlite3.Connection:
        connection = open_reader(self)
        if not counts["active"]:
            connection.set_trace_callback(write)
        return connection

    monkeypatch.setattr(Readers, "_open", traced)
    store._engine.database.prepare_readers(())  # those that are open are not traced
    return store


def keyword(store: Store, filters: Filters) -> None:
    tokens = ("harbour", "new", "number1")
    query = KeywordQuery(AnyOf(tuple(map(Term, tokens))), tokens=tokens, described=50)
    found = store.retrieval.keyword(query, filters, 50)
    for token in tokens:
        assert found.statistics.frequency[token] <= found.statistics.records
    assert len(found.matched_tokens) == len(found.lengths) == len(found.hits) == 50


def term_statistics(store: Store) -> None:
    counted = store.retrieval.term_statistics(["harbour", "new"])
    assert counted.frequency["harbour"] == counted.records


def whole_list(store: Store) -> None:
    page = store.retrieval.list(ALL, limit=5_000)
    assert page.total == len(page.records)


def many_records(store: Store) -> None:
    """The first and the last of the ids are of the same writes, and are read by different statements."""
    first, last = ids = [f"w{n:04}" for n in range(1, 60)], [f"c{n:04}" for n in range(1, 60)]
    found = {record.id for record in store.retrieval.records([*first, *EARLIER, *last])}
    assert [len(found.intersection(part)) for part in ids] == [len(found.intersection(first))] * 2


def many_vectors(store: Store) -> None:
    first, last = ids = [f"w{n:04}" for n in range(1, 60)], [f"c{n:04}" for n in range(1, 60)]
    found = store.vectors.stored(MODEL, [*first, *EARLIER, *last]).keys()
    assert [len(found & set(part)) for part in ids] == [len(found & set(first))] * 2


def nearest(store: Store) -> None:
    found = store.retrieval.nearest(MODEL, np.asarray(axis(0), np.float32), ALL, 5_000)
    assert found.size == len(found.hits)


def status(store: Store) -> None:
    counted = store.maintenance.status()
    assert counted.records.get("chunk", 0) == sum(one.chunks for one in counted.collections.values())


def checks(store: Store) -> None:
    assert [check for check in store.maintenance.check() if not check.ok] == []


@pytest.mark.parametrize(
    "consistent",
    [
        lambda store: keyword(store, ALL),
        lambda store: keyword(store, SOME),
        term_statistics,
        whole_list,
        many_records,
        many_vectors,
        nearest,
        status,
        checks,
    ],
    ids=["keyword", "keyword in a scope", "statistics", "list", "records", "vectors", "nearest", "status", "checks"],
)
def test_a_call_reads_one_snapshot(store: Store, consistent: Callable[[Store], None]) -> None:
    for _ in range(2):  # the first one may load what the second one has
        consistent(store)


@pytest.mark.parametrize("holders", [0, 5, 10, 11, 1_000])
def test_no_weight_is_negative_for_any_counts(holders: int) -> None:
    """More holders than records were once counted in two snapshots; the root of a negative share is complex."""
    counts = TermStatistics(10, {"harbour": holders, "crane": 1})
    held = {"r": frozenset({"harbour"})}
    assert bm25.idf(holders, 10) > 0
    assert idf(holders, 10) >= 0
    share = shares(("harbour", "crane"), held, counts)["r"]
    assert 0 <= share <= 1
    assert isinstance(share**0.5, float)
    assert surprisal_by_id(("harbour", "crane"), held, {"r": 9}, counts)["r"] >= 0
