"""Posting lists of a large memory answer as FTS5 does, after any change, in any process."""

from __future__ import annotations

import multiprocessing
import random
import sqlite3
import sys
import weakref
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mindex.datatypes import (
    AllOf,
    AnyOf,
    Collection,
    Filters,
    KeywordNode,
    Model,
    Phrase,
    Prefix,
    Record,
    RecordVectors,
    Term,
)
from mindex.errors import StoreError
from mindex.store.results import KeywordQuery
from mindex.store.sqlite import posting_build, postings
from mindex.store.sqlite.posting_index import make_segment
from mindex.store.sqlite.postings import PostingLimits
from mindex.store.sqlite.store import SqliteStore
from tests.contract.records import EVERYONE, update

LIMITS = PostingLimits(records=50, segment=40, changes=30, overlay=120, alone=0)
NEVER = PostingLimits(records=sys.maxsize)
# Few words, so that they meet; and one in a script without spaces.
WORDS = [*(f"w{letter}" for letter in "abcdefghijklmnop"), "日本語", "getUserName"]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def store(path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(path, posting_limits=LIMITS)) as opened:
        opened.files.put_collection(Collection("docs", "/docs"))
        yield opened


def memory(number: int, draw: random.Random) -> Record:
    words = draw.choices(WORDS, weights=range(len(WORDS), 0, -1), k=draw.randint(1, 30))
    agent = draw.choice(["ann", "ann", "ann", "bob"])
    title = draw.choice(["", *WORDS])
    tags = tuple(draw.sample(WORDS[:4], draw.randint(0, 2)))
    return Record(f"m{number}", "memory", " ".join([*words, str(number)]), title, agent=agent, tags=tags)


def any_query(draw: random.Random) -> KeywordNode:
    tokens = ["wa", "wb", "wc", "wd", "we", "wk", "wo", "wp", "日本", "user", "absent"]
    leaves: list[KeywordNode] = [Term(token) for token in draw.sample(tokens, 3)]
    leaves += [
        Phrase(tuple(draw.choices(tokens[:6], k=draw.randint(2, 3)))),
        Phrase(("get", "user")),
        Prefix(draw.choice(["日", "w", "us"])),
        Term(draw.choice(tokens), draw.choice(["title", "text", "tags"])),
    ]
    chosen = tuple(dict.fromkeys(draw.sample(leaves, draw.randint(1, 4))))
    kind = draw.choice([AnyOf, AnyOf, AllOf])
    return chosen[0] if len(chosen) == 1 else kind(chosen)


def uses_postings(store: SqliteStore) -> bool:
    generation = store._engine.database.generation
    with store._engine.database.read() as connection, store._engine.postings.reader(connection, generation) as lists:
        return lists is not None


def assert_answers_agree(store: SqliteStore, path: Path, draw: random.Random, queries: int = 25) -> None:
    """What the store finds is what one without posting lists finds."""
    with closing(SqliteStore(path, posting_limits=NEVER)) as plain:
        plain._engine.postings.reader = no_postings  # type: ignore[method-assign,assignment]
        for _ in range(queries):
            query = KeywordQuery(any_query(draw), tokens=("wa", "wc", "日", "absent"), described=5)
            filters = draw.choice([EVERYONE, EVERYONE, Filters(agent="ann"), Filters(agent="bob", tags=("wa",))])
            ours = store.retrieval.keyword(query, filters, 12)
            theirs = plain.retrieval.keyword(query, filters, 12)
            assert [hit.score for hit in ours.hits] == pytest.approx([hit.score for hit in theirs.hits], rel=1e-9)
            assert [hit.id for hit in ours.hits] == [hit.id for hit in theirs.hits], query
            assert ours == replace(theirs, hits=ours.hits)


class no_postings:  # noqa: N801 - replaces a method
    def __init__(self, connection: sqlite3.Connection, generation: int) -> None:
        pass

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None


def test_without_numpy_fts5_answers_and_nothing_is_built(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(1)
    store.entries.add([memory(number, draw) for number in range(100)], by="me")
    monkeypatch.setattr(postings, "missing_packages", lambda: ("numpy",))
    store._engine.postings.build()
    assert not uses_postings(store)
    monkeypatch.undo()
    store.vectors.pack()
    assert uses_postings(store)
    monkeypatch.setattr(postings, "missing_packages", lambda: ("numpy",))
    assert not uses_postings(store)
    assert_answers_agree(store, path, draw)


@pytest.mark.parametrize("seed", range(8))
def test_posting_lists_score_as_fts5_does_while_records_come_change_and_go(
    store: SqliteStore, path: Path, seed: int
) -> None:
    draw = random.Random(seed)
    store.entries.add([memory(number, draw) for number in range(100)], by="me")
    store.files.apply([update("a.md", *(memory(number, draw).text for number in range(40)))])
    store.vectors.pack()
    assert uses_postings(store)
    assert_answers_agree(store, path, draw)
    for turn in range(1, 8):
        store.entries.add([memory(100 * turn + number, draw) for number in range(draw.randint(1, 60))], by="me")
        for number in draw.sample(range(100), 9):
            new = memory(number, draw)
            change = {"retired_at": turn} if draw.random() < 0.4 else {"text": new.text, "title": new.title}
            store.entries.revise(
                f"m{number}", lambda record, change=change: replace(record, **change), by="me", action="update"
            )
        store.files.apply([update("a.md", *(memory(number, draw).text for number in range(turn, turn + 30)))])
        if draw.random() < 0.6:
            store.vectors.pack()
        assert uses_postings(store)
        assert_answers_agree(store, path, draw)


def test_below_the_size_there_are_no_posting_lists(store: SqliteStore, path: Path) -> None:
    draw = random.Random(1)
    store.entries.add([memory(number, draw) for number in range(LIMITS.records - 1)], by="me")
    store.vectors.pack()
    store.maintenance.optimize()
    assert not uses_postings(store) and count(path, "posting_lists") == 0
    store.entries.add([memory(999, draw)], by="me")
    store.vectors.pack()
    assert uses_postings(store)


def test_a_process_that_continues_searching_makes_them_automatically(store: SqliteStore, path: Path) -> None:
    draw = random.Random(1)
    store.entries.add([memory(number, draw) for number in range(100)], by="me")
    query = KeywordQuery(Term("wa"))
    store.retrieval.keyword(query, EVERYONE, 5)
    assert store._engine.postings._builder is None
    store.retrieval.keyword(query, EVERYONE, 5)
    builder = store._engine.postings._builder
    assert builder is not None
    builder.join()
    assert uses_postings(store)
    assert_answers_agree(store, path, draw)


def test_one_search_of_a_process_does_without_them(path: Path) -> None:
    limits = replace(LIMITS, alone=1_000)
    draw = random.Random(1)
    with closing(SqliteStore(path, posting_limits=limits)) as store:
        store.entries.add([memory(number, draw) for number in range(100)], by="me")
        store.vectors.pack()
        store.retrieval.term_statistics(WORDS)  # as a hook reads them, before its search
        assert not uses_postings(store)
        store.retrieval.term_statistics(WORDS)
        assert store._engine.postings._loaded is None
        assert uses_postings(store)


def test_a_rare_scope_gets_all_of_its_records(store: SqliteStore) -> None:
    store.entries.add([Record(f"m{n}", "memory", f"common {n}", agent="ann") for n in range(3_000)], by="me")
    tagged = [
        Record(f"t{n}", "memory", f"padding common words here {n}", agent="ann", tags=("rare",)) for n in range(7)
    ]
    store.entries.add(tagged, by="me")
    store.vectors.pack()
    assert uses_postings(store)
    hits = store.retrieval.keyword(KeywordQuery(Term("common")), Filters(agent="ann", tags=("rare",)), 5).hits
    assert [hit.id for hit in hits] == ["t0", "t1", "t2", "t3", "t4"]


def _add_elsewhere(path: Path) -> None:
    with closing(SqliteStore(path, posting_limits=LIMITS)) as store:
        store.entries.add([Record("elsewhere", "memory", "quaternion", agent="ann")], by="other")
        store.entries.revise("m1", lambda record: replace(record, retired_at=1), by="other", action="forget")


def test_the_next_search_sees_what_another_process_wrote(store: SqliteStore, path: Path) -> None:
    draw = random.Random(3)
    store.entries.add([memory(number, draw) for number in range(100)], by="me")
    store.entries.add([Record("mine", "memory", "quaternion 1", agent="ann")], by="me")
    store.vectors.pack()
    query = KeywordQuery(AnyOf((Term("quaternion"), Term("1"))), tokens=("quaternion",))
    assert {hit.id for hit in store.retrieval.keyword(query, EVERYONE, 9).hits} == {"mine", "m1"}
    other = multiprocessing.get_context("spawn").Process(target=_add_elsewhere, args=(path,))
    other.start()
    other.join()
    found = store.retrieval.keyword(query, EVERYONE, 9)
    assert {hit.id for hit in found.hits} == {"mine", "elsewhere"}
    assert found.statistics.frequency == {"quaternion": 2}
    assert uses_postings(store)


def test_segments_of_another_process_replace_what_this_one_had_loaded(store: SqliteStore, path: Path) -> None:
    draw = random.Random(4)
    store.entries.add([memory(number, draw) for number in range(90)], by="me")
    store.vectors.pack()
    assert_answers_agree(store, path, draw)
    with closing(SqliteStore(path, posting_limits=LIMITS)) as other:
        other.entries.add([memory(100 + number, draw) for number in range(60)], by="other")
        other.vectors.pack()
        assert_answers_agree(store, path, draw)
        other.maintenance.optimize()
    assert_answers_agree(store, path, draw)


class _Killed(BaseException):
    """Represents the end of the process."""


def test_a_build_that_is_cut_short_goes_on_where_it_stopped(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(5)
    store.entries.add([memory(number, draw) for number in range(150)], by="me")
    write = posting_build._write
    written: list[int] = []

    def killed_in_the_third(connection: sqlite3.Connection, plan: posting_build._Plan, segment: object) -> None:
        write(connection, plan, segment)  # type: ignore[arg-type]
        written.append(len(plan.keys))
        if len(written) == 3:
            raise _Killed

    monkeypatch.setattr(posting_build, "_write", killed_in_the_third)
    with pytest.raises(_Killed):
        store.vectors.pack()
    assert count(path, "posting_segments") == 2
    assert not uses_postings(store)
    store.entries.revise("m3", lambda record: replace(record, text="changed wa wa"), by="me", action="update")
    assert_answers_agree(store, path, draw)
    store.vectors.pack()
    assert written == [40, 40, 40, 40, 30]
    assert uses_postings(store)
    assert_answers_agree(store, path, draw)


def test_a_failed_build_leaves_the_search_to_fts5(
    store: SqliteStore, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(6)
    store.entries.add([memory(number, draw) for number in range(100)], by="me")

    def full(*_: object) -> None:
        raise StoreError("no space left", "free some")

    monkeypatch.setattr(posting_build, "_write", full)
    for _ in range(3):
        assert store.retrieval.keyword(KeywordQuery(Term("wa")), EVERYONE, 5).hits
        if store._engine.postings._builder:
            store._engine.postings._builder.join()
    assert not uses_postings(store)


def test_with_too_many_changes_fts5_answers_until_they_are_in_a_segment(store: SqliteStore, path: Path) -> None:
    draw = random.Random(7)
    store.entries.add([memory(number, draw) for number in range(100)], by="me")
    store.vectors.pack()
    store.entries.add([memory(1_000 + number, draw) for number in range(LIMITS.overlay + 1)], by="me")
    assert not uses_postings(store)
    assert_answers_agree(store, path, draw)
    store._engine.postings.build()
    assert uses_postings(store)
    assert_answers_agree(store, path, draw)


def test_vectors_that_change_alone_need_no_new_segment(store: SqliteStore, path: Path) -> None:
    draw = random.Random(8)
    store.entries.add([memory(number, draw) for number in range(100)], by="me")
    store.vectors.pack()
    before = count(path, "posting_segments")
    model = Model("m", "m", 8)
    vector = np.ones((1, 8), np.float32)
    for _ in range(2):
        store.vectors.put(model, [RecordVectors(f"m{number}", vector) for number in range(100)])
        store.vectors.pack()
    assert count(path, "posting_segments") == before
    assert uses_postings(store)


def test_segments_stay_few_and_what_is_replaced_goes(store: SqliteStore, path: Path) -> None:
    draw = random.Random(9)
    store.entries.add([memory(number, draw) for number in range(60)], by="me")
    for turn in range(12):
        for number in range(35):
            text = f"wa wb {turn} {number}"
            store.entries.revise(f"m{number}", lambda one, text=text: replace(one, text=text), by="me", action="update")
        store.vectors.pack()
    assert count(path, "posting_segments") <= 4
    assert_answers_agree(store, path, draw)


def test_purged_words_are_in_no_posting_list(store: SqliteStore, path: Path) -> None:
    draw = random.Random(10)
    store.entries.add([memory(number, draw) for number in range(100)], by="me")
    store.entries.add([Record("secret", "memory", "hunter2hunter", agent="ann")], by="me")
    store.vectors.pack()
    listed = "posting_lists WHERE term LIKE '%hunter%'"
    assert count(path, listed)
    store.entries.purge(["secret"])
    assert not count(path, listed) and b"hunter2hunter" not in path.read_bytes()
    assert uses_postings(store)
    assert_answers_agree(store, path, draw)


def test_new_words_after_an_upgrade_make_new_posting_lists(store: SqliteStore, path: Path) -> None:
    draw = random.Random(11)
    store.entries.add([memory(number, draw) for number in range(100)], by="me")
    store.vectors.pack()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = '0' WHERE key = 'analyzer'")
    with closing(SqliteStore(path, posting_limits=LIMITS)) as upgraded:
        assert not uses_postings(upgraded) and count(path, "posting_lists") == 0
        upgraded.vectors.pack()
        assert_answers_agree(upgraded, path, draw)


def count(path: Path, table: str) -> int:
    with closing(sqlite3.connect(path)) as connection:
        return int(connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0])


@pytest.mark.parametrize("column", ["posting_lists SET occurrences", "posting_segments SET lengths"])
def test_fts5_answers_where_posting_lists_are_damaged(store: SqliteStore, path: Path, column: str) -> None:
    draw = random.Random(13)
    store.entries.add([memory(number, draw) for number in range(100)], by="me")
    store.vectors.pack()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE {column} = x'010203'")
    assert_answers_agree(store, path, draw, queries=3)
    assert store.maintenance.damaged() == ("posting lists",)


def test_doctor_compares_posting_lists_with_fts5_and_optimize_mends_them(store: SqliteStore, path: Path) -> None:
    draw = random.Random(12)
    store.entries.add([memory(number, draw) for number in range(100)], by="me")
    assert "posting lists" not in {check.name for check in store.maintenance.check()}
    store.vectors.pack()
    store.entries.add([memory(1_000, draw)], by="me")
    assert {check.name: check.ok for check in store.maintenance.check()}["posting lists"]
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE posting_lists SET occurrences = substr(occurrences, 1, 4)")
    assert not {check.name: check.ok for check in store.maintenance.check()}["posting lists"]
    store.maintenance.optimize()
    assert all(check.ok for check in store.maintenance.check())
    assert_answers_agree(store, path, draw)


class _Columns(list[str]):
    """The tokens of a record; a weak reference can point to it, but not to a list."""


def test_a_segment_is_made_without_holding_the_texts_of_its_records() -> None:
    held: list[int] = []
    alive: list[weakref.ref[_Columns]] = []

    def rows() -> Iterator[tuple[int, list[str]]]:
        for key in range(50):
            columns = _Columns(["", f"word{key} again", "", "", ""])
            alive.append(weakref.ref(columns))
            held.append(sum(one() is not None for one in alive))
            yield key, columns
            del columns

    assert len(list(make_segment(range(50), rows()).lists)) == 51
    assert max(held) <= 2


def test_a_segment_has_the_rows_of_records_that_are_gone_and_counts_long_texts_from_0_again() -> None:
    segment = make_segment([9, 7], [(9, ["", "a " * 8200])])
    assert segment.keys.tolist() == [7, 9] and segment.lengths.tolist() == [0, 8200]
    ((term, occurrences),) = segment.lists
    places = np.sort(np.arange(8200) % 8192) | 1 << 13 | 1 << 16
    assert term == "a" and np.frombuffer(occurrences, np.uint32).tolist() == places.tolist()
