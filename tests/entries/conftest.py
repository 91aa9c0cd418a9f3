"""Fixtures of the tests of entries."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mindex.datatypes import Change, Record
from mindex.store.rules import entry_rules as rules
from tests.providers.servers import ModelServer


@pytest.fixture(autouse=True)
def changes_are_computed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every callback of `revise` runs twice in these tests, as it may on an engine that runs a transaction again."""
    revise = rules.revise

    def revise_twice(
        statements: rules.EntryStatements, id_: str, change: Callable[[Record], Record], **options: object
    ) -> Change:
        def computed_twice(record: Record) -> Record:
            change(record)
            return change(record)

        return revise(statements, id_, computed_twice, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(rules, "revise", revise_twice)


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """The server that every memory is embedded by."""
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))
    with ModelServer() as served:
        monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "ollama")
        monkeypatch.setenv("MINDEX_EMBEDDING_MODEL", "a-model")
        monkeypatch.setenv("MINDEX_EMBEDDING_URL", served.url)
        yield served
