"""What a question does not pay for: modules, models and preparations that only others need."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import pytest

import mindex
from mindex import datatypes
from mindex.errors import RerankError
from mindex.memory import Memory
from mindex.providers.base import ProviderSettings
from mindex.providers.breaker import FAILURES
from mindex.providers.rerank.base import create_reranker
from tests.mcp.handshakes import initialize

# Prints what was imported on the way to the answer.
_ASKED = """
import sys
from mindex.cli.main import main
try:
    main()
finally:
    print("\\n".join(sorted(sys.modules)), file=sys.stderr)
"""
_FOR_OTHERS = {
    "numpy",
    "onnxruntime",
    "tokenizers",
    "httpx2",
    "mindex.datatypes.reports",
    "mindex.datatypes.consolidation",
    "mindex.store.export_rows",
    "mindex.store.rules.import_entries",
    "mindex.store.sql.export",
    "mindex.store.sql.purge",
    "mindex.store.sqlite.health",
    "mindex.search.query_embedding",
    "mindex.search.expand",
    "mindex.search.rerank",
    "mindex.providers.rerank.base",
    "mindex.providers.generate.base",
    "mindex.embedding_text",
    "mindex.lexicon",
    "mindex.times.typed",
    "mindex.times.in_text",
    "mindex.search.question_time",
    "mindex.datatypes.query_time",
}


def test_a_search_by_keyword_imports_only_what_it_needs(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as memory:
        memory.add("The harbour master keeps the keys of the lighthouse.")
    command = [
        sys.executable,
        "-c",
        _ASKED,
        "--db",
        tmp_path / "memory.db",
        "search",
        "--mode",
        "keyword",
        "lighthouse",
    ]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    assert "harbour master" in done.stdout
    assert not _FOR_OTHERS.intersection(done.stderr.splitlines())


# ── extensions are looked up only if one is used ───────────────────────────────────────────────────────────

# Prints what was imported until the first reply was written, and ends.
_SERVED = """
import os, sys
from mindex.mcp import run_server
def begin(start):
    print("\\n".join(sorted(sys.modules)), file=sys.stderr, flush=True)
    os._exit(0)
run_server._Start.begin = begin
from mindex.cli.main import main
main()
"""
_EMBEDDED = """
import sys
from mindex import Memory
with Memory(sys.argv[1]) as memory:
    memory.add("The harbour master keeps the keys of the lighthouse.")
    print(memory.search("who has the keys").tier)
print("\\n".join(sorted(sys.modules)), file=sys.stderr)
"""
_LOOKS_FOR_EXTENSIONS = {"mindex.entry_points", "mindex.extension"}


def test_a_search_by_keyword_reads_no_entry_points(tmp_path: Path) -> None:
    with Memory(tmp_path / "memory.db", options={"embedding.provider": "none"}) as memory:
        memory.add("The harbour master keeps the keys of the lighthouse.")
    command = [sys.executable, "-c", _ASKED, "--db", tmp_path / "memory.db", "search", "--mode", "keyword", "keys"]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    assert not {*_LOOKS_FOR_EXTENSIONS, "importlib.metadata"}.intersection(done.stderr.splitlines())


@pytest.mark.skipif(sys.platform == "win32", reason="there the SDK answers the handshake")
def test_serve_reads_no_entry_points_before_it_answers_initialize(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _SERVED, "--db", str(tmp_path / "memory.db"), "serve"]
    line = json.dumps(initialize())
    done = subprocess.run(command, input=line + "\n", capture_output=True, text=True, encoding="utf-8", check=True)
    assert json.loads(done.stdout)["result"]["serverInfo"]["name"] == "mindex"
    assert "mindex.mcp.run_server" in done.stderr.splitlines()
    assert not {*_LOOKS_FOR_EXTENSIONS, "importlib.metadata"}.intersection(done.stderr.splitlines())


@pytest.mark.model
def test_the_built_in_embedder_reads_no_entry_points(tmp_path: Path) -> None:
    command = [sys.executable, "-c", _EMBEDDED, str(tmp_path / "memory.db")]
    done = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    assert done.stdout == "hybrid\n"
    assert not _LOOKS_FOR_EXTENSIONS.intersection(done.stderr.splitlines())


@pytest.mark.parametrize("module", [mindex, datatypes])
def test_every_public_name_is_there_when_it_is_asked_for(module: object) -> None:
    names = getattr(module, "__all__")  # noqa: B009 - of a module, which mypy takes for an object
    assert not [name for name in names if not hasattr(module, name)]


@pytest.mark.parametrize("module", [mindex, datatypes])
def test_a_name_that_is_not_public_is_an_error_as_of_any_module(module: object) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        module.Nothing  # type: ignore[attr-defined]  # noqa: B018


# ── a reranker that is down ───────────────────────────────────────────────────────────────────────────────────


class SkippedRow(Sequence[str]):
    """Texts that no code may read."""

    def __len__(self) -> int:
        return 2

    def __getitem__(self, place: object) -> NoReturn:
        pytest.fail("a text was read to a reranker that is being left alone")


@pytest.fixture
def nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """An address where every connection is refused, and whose failures are remembered in this test only."""
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/v1/rerank"


def test_a_reranker_that_is_left_alone_has_nothing_prepared_for_it(nobody: str) -> None:
    reranker = create_reranker(ProviderSettings("http", "any", nobody))
    assert reranker is not None
    for _ in range(FAILURES):
        with pytest.raises(RerankError, match="nothing answers"):
            reranker.score("a question", ["a text"])
    with pytest.raises(RerankError, match=f"has failed {FAILURES} times"):
        reranker.score("a question", SkippedRow())


def test_a_long_text_is_not_taken_apart_for_a_reranker_that_is_left_alone(
    nobody: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"embedding.provider": "none", "rerank.provider": "http", "rerank.model": "any", "rerank.url": nobody}
    with Memory(tmp_path / "memory.db", options=options) as memory:
        for number in range(3):
            memory.add(f"The lighthouse of harbour {number}. " + "Its lamp is lit at dusk. " * 60)
        for _ in range(FAILURES):
            answer = memory.search("lighthouse lamp")
        monkeypatch.setattr("mindex.search.rerank.passage", lambda *_: pytest.fail("a passage was chosen for nobody"))
        left_alone = memory.search("lighthouse lamp")
    assert any(f"has failed {FAILURES} times" in note for note in left_alone.notes)
    assert [hit.record.id for hit in left_alone.hits] == [hit.record.id for hit in answer.hits]
