"""The access log of a damaged file."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from mindex.datatypes import Record
from mindex.store.base import Access
from mindex.store.sql import access_log
from mindex.store.sqlite.store import SqliteStore


def test_an_id_that_a_damaged_index_returns_does_not_end_the_background_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(SqliteStore(tmp_path / "memory.db")) as store:
        store.entries.add([Record("a", "memory", "text", agent="me")], by="me")
        with monkeypatch.context() as patch:
            patch.setattr(access_log, "read_keys", lambda *_: {"other": 99})
            store.entries.log_access([Access("a", 5, "get")], oldest=0, rows=100)
            store.settle()
        store.entries.log_access([Access("a", 6, "get")], oldest=0, rows=100)
        store.settle()
        assert store.retrieval.ranking_signals(["a"])["a"].access_count == 1
