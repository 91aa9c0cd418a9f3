"""Fixtures of the tests of entries."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.servers import ModelServer


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """The server that every memory is embedded by."""
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))
    with ModelServer() as served:
        monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "ollama")
        monkeypatch.setenv("MINDEX_EMBEDDING_MODEL", "a-model")
        monkeypatch.setenv("MINDEX_EMBEDDING_URL", served.url)
        yield served
