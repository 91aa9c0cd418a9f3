"""Which engine a path or a URL opens."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindex.errors import ConfigError
from mindex.memory import Memory
from mindex.store import open as opening
from mindex.store.base import Store
from mindex.store.open import open_store, register_engine


def test_a_path_opens_a_sqlite_file(tmp_path: Path) -> None:
    store = open_store(tmp_path / "memory.db")
    assert (tmp_path / "memory.db").is_file()
    assert store.folder == tmp_path
    store.close()


def test_an_unknown_scheme_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no engine for postgresql:// is installed"):
        Memory("postgresql://localhost/team")


def test_a_registered_engine_opens_its_urls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "_ENGINES", {})
    opened: list[tuple[str, int, bool]] = []

    def opener(url: str, cache_rows: int, logs_access: bool) -> Store:
        opened.append((url, cache_rows, logs_access))
        return open_store(tmp_path / "memory.db", cache_rows=cache_rows, logs_access=logs_access)

    register_engine("toy", opener)
    with Memory("toy://somewhere", options={"embedding.provider": "none"}) as memory:
        memory.add("The harbour has three cranes")
    assert opened == [("toy://somewhere", 10_000, True)]
