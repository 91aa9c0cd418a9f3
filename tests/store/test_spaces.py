"""Spaces in the SQLite engine: old files, readers that need not reload, keys that are used again."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mindex.datatypes import Filters, Model, Record, RecordVectors
from mindex.datatypes.spaces import EmbedderSpec
from mindex.memory import Memory
from mindex.providers.packaged_models import MINILM
from mindex.store.sql.space_rows import read_roles
from mindex.store.sqlite.connection import Database
from mindex.store.sqlite.migrations import MIGRATIONS, migrate
from mindex.store.sqlite.store import SqliteStore
from mindex.store.sqlite.vector_rows import VECTORS_OF_RECORDS

OLD, NEW, THIRD = Model("test", "old", 4), Model("test", "new", 4), Model("test", "third", 4)
NO_SPEC = EmbedderSpec("test")


@pytest.fixture
def store(tmp_path: Path) -> SqliteStore:
    store = SqliteStore(tmp_path / "memory.db")
    store.entries.add([Record(id_, "memory", f"words of {id_}", agent="main", type="fact") for id_ in "abc"], by="test")
    return store


def give(store: SqliteStore, model: Model) -> None:
    store.vectors.put(
        model,
        [RecordVectors(id_, np.eye(4, dtype=np.float32)[number : number + 1]) for number, id_ in enumerate("abc")],
    )


OF_010 = replace(MINILM, sha256="")


def test_a_file_of_the_first_release_is_searched_in_the_space_it_was_embedded_in(tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    database = Database(path)
    migrate(database, MIGRATIONS[:1])
    with database.write() as connection:
        connection.execute(
            "INSERT INTO records (key, id, kind, created_at, updated_at, text) VALUES (1, 'a', 'memory', 1, 1, 'x')"
        )
        for key, fingerprint in ((1, "test/stray/4/mean/256/|"), (2, OF_010.fingerprint)):
            connection.execute(
                "INSERT INTO models (key, fingerprint, dimensions, created_at) VALUES (?, ?, 384, 1)",
                (key, fingerprint),
            )
        connection.execute("INSERT INTO vectors (model, record, fluency, data) VALUES (2, 1, 1.0, zeroblob(1536))")
        connection.execute("INSERT INTO meta (key, value) VALUES ('space', ?)", (OF_010.fingerprint,))
    database.close()

    with Memory(path) as memory:
        assert memory.store.vectors.active_space() == OF_010.fingerprint
        searched = memory.store.vectors.spaces()[0]
        assert (searched.model, searched.embedder_spec) == (
            OF_010,
            EmbedderSpec("local", "all-MiniLM-L6-v2"),
        )
        assert memory.models.embedder is not None
        assert memory.models.embedder.model == OF_010
        assert memory.store.vectors.drop_unused_spaces() == 1


def test_a_reader_does_not_reload_for_vectors_of_a_space_that_is_being_filled(
    store: SqliteStore, tmp_path: Path
) -> None:
    give(store, OLD)
    reader = SqliteStore(tmp_path / "memory.db")
    query = np.eye(4, dtype=np.float32)[0]
    for _ in range(2):
        reader.retrieval.nearest(OLD, query, Filters(), 3)
    index = reader._engine.vectors._loaded[OLD.fingerprint].index
    rows = index._keys
    store.vectors.begin_space(NEW, NO_SPEC)
    give(store, NEW)
    assert reader.retrieval.nearest(OLD, query, Filters(), 3).hits[0].id == "a"
    assert reader._engine.vectors._loaded[OLD.fingerprint].index is index
    assert index._keys is rows
    reader.close()
    store.close()


def test_a_reused_key_of_a_space_brings_no_vectors_of_the_dropped_one(store: SqliteStore) -> None:
    give(store, OLD)
    store.vectors.begin_space(NEW, NO_SPEC)
    give(store, NEW)
    store._engine.vectors.pack(force=True)  # packing loads it into memory
    store.vectors.begin_space(OLD, NO_SPEC)
    store.vectors.drop_unused_spaces()
    store.vectors.begin_space(THIRD, NO_SPEC)
    with store._engine.database.read() as connection:
        keys = dict(connection.execute("SELECT fingerprint, key FROM models"))
    store.vectors.put(THIRD, [RecordVectors(id_, np.eye(4, dtype=np.float32)[[3]]) for id_ in "abc"])
    assert store.vectors.switch_space(THIRD)
    assert keys[THIRD.fingerprint] == 2  # as the one before had
    cosines = {hit.score for hit in store.retrieval.nearest(THIRD, np.eye(4, dtype=np.float32)[3], Filters(), 3).hits}
    assert cosines == {1.0}
    store.close()


@pytest.mark.parametrize("edition", [0, 1, 27])
@pytest.mark.parametrize("prefix", ["", "text: ", "a # b"])
def test_an_edition_is_read_from_the_fingerprint_alone(store: SqliteStore, edition: int, prefix: str) -> None:
    model = Model("test", "a/b", 4, "cls", "ask: ", prefix, edition=edition)
    give(store, model)
    with store._engine.database.write() as connection:
        connection.execute("UPDATE models SET settings = '{}'")
    assert store.vectors.spaces()[0].model == model
    store.close()


@pytest.mark.parametrize(
    "settings", ["", "[]", "null", "{", '{"provider": 3, "space": 7}', '{"space": {"provider": "x"}}']
)
def test_a_space_with_unreadable_settings_is_known_by_its_fingerprint(store: SqliteStore, settings: str) -> None:
    give(store, OLD)
    with store._engine.database.write() as connection:
        connection.execute("UPDATE models SET settings = ?", (settings,))
    (space,) = store.vectors.spaces()
    assert space.model == OLD
    assert space.fingerprint == OLD.fingerprint
    store.close()


def test_unknown_properties_of_a_space_are_ignored(store: SqliteStore) -> None:
    give(store, OLD)
    with store._engine.database.write() as connection:
        (kept,) = connection.execute("SELECT settings FROM models").fetchone()
        said = json.loads(kept)
        said["space"]["flavour"] = "vanilla"
        connection.execute("UPDATE models SET settings = ?", (json.dumps(said),))
        assert read_roles(connection).active == OLD.fingerprint
    assert store.vectors.spaces()[0].model == OLD
    store.close()


def test_vectors_of_a_few_records_are_looked_up_by_these_records(store: SqliteStore, tmp_path: Path) -> None:
    """Else a copy would read all vectors for each document: 70 MB each time among 100,000."""
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        marked = VECTORS_OF_RECORDS.format(marks="(?, ?)")
        plan = [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {marked}", ("space", "a", "b"))]
    assert any(step.startswith("SEARCH v ") and "record=?" in step for step in plan), plan
