"""`mindex sync` reports first and embeds what it received; `mindex watch` embeds while it watches."""

from __future__ import annotations

import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from mindex.memory import Memory
from mindex.providers.embed.local import LocalEmbedder
from tests.conftest import write
from tests.running import run_here, wait_until

HARBOUR = "The harbour opens at six"
pytestmark = pytest.mark.model


@pytest.fixture
def received(tmp_path: Path) -> tuple[Path, Path]:
    """A database with a backlog of 30 memories, and a folder with a change of another machine."""
    shared = tmp_path / "shared"
    shared.mkdir()
    with Memory(tmp_path / "laptop.db") as laptop:
        laptop.add(HARBOUR, embed=False)
        laptop.sync.run(shared)
    with Memory(tmp_path / "desktop.db") as desktop:
        for number in range(30):
            desktop.add(f"Elder memory number {number}", embed=False)
    return tmp_path / "desktop.db", shared


def pending(database: Path) -> int:
    with Memory(database) as memory:
        return memory.embedding.status().pending


def test_a_sync_reports_first_and_embeds_only_the_records_it_received(
    received: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    database, shared = received
    printed: list[str] = []
    real = LocalEmbedder.embed

    def embed(self: LocalEmbedder, texts: Sequence[str]) -> object:
        printed.append(sys.stdout.buffer.getvalue().decode())  # type: ignore[attr-defined]
        assert not any("Elder" in text for text in texts)
        return real(self, texts)

    monkeypatch.setattr(LocalEmbedder, "embed", embed)
    ran = run_here("--db", database, "sync", shared)
    assert ran.code == 0
    assert printed
    assert all("30 changes sent, 1 received: 1 record new or changed" in text for text in printed)
    assert pending(database) == 30
    run_here("--db", database, "sync", shared)  # receives nothing, embeds nothing
    assert pending(database) == 30


def test_a_sync_without_embedding_leaves_all_vectors(received: tuple[Path, Path]) -> None:
    database, shared = received
    assert run_here("--db", database, "sync", shared, "--no-embed").code == 0
    assert pending(database) == 31


@pytest.mark.slow
def test_watch_indexes_changes_while_it_embeds_the_backlog(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write(
        tmp_path / "docs", {f"{number}.md": f"# Elder {number}\n\nText of page {number}." for number in range(9)}
    )
    release, held, stop, real = threading.Event(), threading.Event(), threading.Event(), LocalEmbedder.embed

    def embed(self: LocalEmbedder, texts: Sequence[str]) -> object:
        if any("Elder" in text for text in texts):
            held.set()
            assert release.wait(60)
        return real(self, texts)

    monkeypatch.setattr(LocalEmbedder, "embed", embed)
    embedded: list[int] = []
    with Memory(tmp_path / "memory.db") as memory:
        memory.index(root, embed=False)
        thread = threading.Thread(
            target=memory.watch, args=(stop,), kwargs={"embedded": lambda done: embedded.append(done.embedded)}
        )
        thread.start()
        try:
            assert held.wait(60), "the backlog is embedded"
            write(root, {"fresh.md": "# Fresh\n\nThe harbour has three cranes."})
            wait_until(lambda: "fresh.md" in {one.path for one in memory.list(limit=50).records}, what="the new file")
            assert not embedded
            release.set()
            wait_until(lambda: memory.embedding.status().pending == 0, what="all vectors")
            wait_until(lambda: sum(embedded) == 10, what="the report")
        finally:
            release.set()
            stop.set()
            thread.join(60)
