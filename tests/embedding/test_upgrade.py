"""A database of version 0.1.0, whose model is no longer installed: searched at once, and embedded again under load."""

from __future__ import annotations

import re
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from contextlib import closing
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import numpy as np
import pytest

from mindex.datatypes.spaces import EmbedderSpec
from mindex.memory import Memory
from mindex.providers.embed.local import LocalEmbedder
from mindex.providers.packaged_models import BUILT_IN, MINILM
from tests.conftest import write

pytestmark = pytest.mark.model

RECORDS = 150
# The only space of version 0.1.0: its fingerprint has no hash.
OF_010 = "local/all-MiniLM-L6-v2/384/mean/256/|"
# How version 0.1.0 reads a fingerprint, and makes its own again.
_READ_BY_010 = re.compile(r"([^/]*)/(.*)/(\d{1,9})/([^/]*)/(\d{1,9})/([^|]*)\|(.*?)(?:#([1-9]\d{0,8}))?", re.DOTALL)

_KILLED_REEMBED = """
import sys, time
from importlib import metadata
def distribution(name, original=metadata.distribution):
    if "minilm" in name:
        raise metadata.PackageNotFoundError(name)
    return original(name)
metadata.distribution = distribution
from mindex.memory import Memory
with Memory(sys.argv[1]) as memory:
    def report(progress):
        print(progress.done, flush=True)
        time.sleep(0.2)  # so that it can be killed between two batches
    memory.models.reembed(report=report)
"""


@pytest.fixture
def of_010(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Its vectors are those of the real all-MiniLM-L6-v2, whose package is missing from then on."""
    db = tmp_path / "memory.db"
    pages = {f"{n:03}.md": f"# Pier {n}\n\nParcels of ship {n} wait at pier {n}." for n in range(RECORDS)}
    with Memory(db, options={"embedding.model": MINILM.name}) as memory:
        assert memory.index(write(tmp_path / "docs", pages)).embedded == RECORDS
        memory.store.vectors.begin_space(MINILM, EmbedderSpec("local"))
    with closing(sqlite3.connect(db)) as connection, connection:
        for table, column in (("models", "fingerprint"), ("meta", "value"), ("meta", "key")):
            where = f"WHERE {column} LIKE '%all-MiniLM%'"
            query = f"UPDATE {table} SET {column} = replace({column}, ?, ''), checksum = NULL {where}"
            connection.execute(query, (f"@{MINILM.sha256}",))
        connection.execute("UPDATE models SET settings = '{}'")
        assert connection.execute("SELECT fingerprint FROM models").fetchall() == [(OF_010,)]

    def distribution(name: str) -> object:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.distribution", distribution)
    return db


def is_read_by_010(fingerprint: str) -> bool:
    """Whether version 0.1.0 would search this space with its built-in model."""
    parts = _READ_BY_010.fullmatch(fingerprint)
    own = ("local", "all-MiniLM-L6-v2", "384", "mean", "256", "", "")
    return parts is not None and parts.groups()[:-1] == own


def test_version_010_does_not_search_a_space_that_new_vectors_are_in(of_010: Path) -> None:
    with Memory(of_010) as memory:
        memory.search("parcels")
        assert is_read_by_010(memory.store.vectors.active_space())  # only searched: both versions can
        status = memory.status().embedding
        assert (status.model, status.sha256) == (MINILM.name, "")  # the hash of the other model is not that of this one
        memory.add("The harbour master drinks tea")
        assert not is_read_by_010(memory.store.vectors.active_space())
        assert [space.model for space in memory.store.vectors.spaces()] == [BUILT_IN]


def test_an_export_of_mixed_vectors_leaves_them_out_with_a_note(of_010: Path, tmp_path: Path) -> None:
    with Memory(of_010) as memory:
        memory.add("The harbour master drinks tea")
        done = memory.transfer.export(tmp_path / "all.jsonl", vectors=True)
        assert "some are of the former model; run `mindex reembed` first" in done.notes[-1]
        assert '"vectors"' not in (tmp_path / "all.jsonl").read_text()


def test_a_copy_takes_former_vectors_along_and_mixed_ones_not(of_010: Path, tmp_path: Path) -> None:
    copied = tmp_path / "copied.db"
    with Memory(of_010) as memory:
        assert memory.transfer.copy(str(copied)).notes == ()
    with Memory(copied) as memory:
        assert [(space.fingerprint, space.vectors) for space in memory.store.vectors.spaces()] == [(OF_010, RECORDS)]
        assert memory.search("Parcels of ship 7 wait at pier 7").tier == "hybrid"
    with Memory(of_010) as memory:
        memory.add("The harbour master drinks tea")
        assert any("vectors are not copied" in note for note in memory.transfer.copy(str(tmp_path / "second.db")).notes)
    with Memory(tmp_path / "second.db") as memory:
        assert memory.store.vectors.active_space() == ""


def test_a_killed_reembed_under_load_is_continued_while_servers_search_and_write(of_010: Path) -> None:
    reembed = subprocess.Popen([sys.executable, "-c", _KILLED_REEMBED, str(of_010)], stdout=subprocess.PIPE, text=True)
    assert reembed.stdout is not None
    stop, failures, added = threading.Event(), [], []

    def search() -> None:
        with Memory(of_010) as memory:
            while not stop.is_set():
                answer = memory.search("Parcels of ship 7 wait at pier 7")
                if answer.tier != "hybrid" or "7" not in answer.hits[0].record.text:
                    failures.append(f"{answer.tier}: {answer.notes}")
                time.sleep(0.05)

    def write_entries() -> None:
        with Memory(of_010) as memory:
            while not stop.is_set() and len(added) < 30:
                change = memory.add(f"Crane {len(added)} lifts boxes of apples")
                failures.extend(change.notes)
                added.append(change.id)
                time.sleep(0.1)

    threads = [threading.Thread(target=work) for work in (search, write_entries)]
    for thread in threads:
        thread.start()
    try:
        done_when_killed = int(reembed.stdout.readline())
        reembed.send_signal(signal.SIGKILL)
        reembed.wait()
        with Memory(of_010) as memory:
            assert memory.store.vectors.active_space() == BUILT_IN.fingerprint
            left = memory.store.vectors.count_former()
            assert 0 < left <= RECORDS
            assert memory.status().embedding.upgrade is not None
            done = memory.models.reembed()
            assert RECORDS - done_when_killed <= done.embedded <= RECORDS + 30
            assert (memory.store.vectors.count_former(), memory.status().embedding.upgrade) == (0, None)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
        reembed.kill()
        reembed.stdout.close()
    assert failures == []
    assert added
    with Memory(of_010) as memory:
        assert memory.maintenance.backfill()[1] == 0
        records = memory.store.vectors.embedded_records(BUILT_IN, RECORDS + 30)
        assert len(records) == RECORDS + len(added)
        stored = memory.store.vectors.stored(BUILT_IN, [record.id for record in records])
        from mindex.embedding_text import embedding_pieces

        again = LocalEmbedder().embed([embedding_pieces(record)[0] for record in records])
        cosines = [float(np.dot(stored[record.id][0], vector)) for record, vector in zip(records, again, strict=True)]
        assert min(cosines) > 0.99  # none is of the former model: those have about .9
