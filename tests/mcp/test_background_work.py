from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import anyio
import pytest

from mcp import Client
from mindex.datatypes import IndexReport, Progress
from mindex.files.service import IndexService
from mindex.mcp.dialect import dialect_named
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server import MindexServer
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory
from mindex.providers.embed.local import LocalEmbedder
from mindex.providers.onnx.engine import Engine
from tests.conftest import write
from tests.mcp.conftest import KEYWORD, structured, text
from tests.providers.servers import ModelServer, status
from tests.running import wait_until

pytestmark = pytest.mark.anyio

LONG = 60.0


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", {f"{n}.md": f"# Page {n}\n\nText of page {n}." for n in range(3)})


@pytest.fixture
def serve(tmp_path: Path, database: str) -> Iterator[Callable[..., tuple[MemoryHost, MindexServer]]]:
    opened: list[MemoryHost] = []

    def make(**options: object) -> tuple[MemoryHost, MindexServer]:
        given = {"db": database, "root": tmp_path, "settings": KEYWORD, **options}
        native = dialect_named("native")
        opened.append(MemoryHost(ServerOptions(**given, guidance=native.guidance)))  # type: ignore[arg-type]
        return opened[-1], MindexServer(opened[-1], native)

    yield make
    for host in opened:
        host.close()


def joined(host: MemoryHost) -> None:
    """Wait for the background work."""
    for thread in host.background._threads:
        thread.join(LONG)
        assert not thread.is_alive()


async def test_every_result_notes_the_progress_while_the_index_is_built(
    docs: Path, serve: Callable[..., tuple[MemoryHost, MindexServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, server = serve(build=docs)
    half_way, go_on = threading.Event(), threading.Event()
    report, start = host.background._report_progress, host.start

    def held(progress: Progress) -> None:
        report(progress)
        if progress.done == 1:
            half_way.set()
            assert go_on.wait(LONG)

    monkeypatch.setattr(host.background, "_report_progress", held)
    monkeypatch.setattr(host, "start", lambda: None)  # the first message would start it
    async with Client(server) as client:
        first = await client.call_tool("search", {"query": "page"})
        assert structured(first)["notes"] == [
            "docs: the first indexing is not complete; search again in a moment; `status` shows how much is there",
            "indexing: starting",
        ]
        start()
        assert half_way.wait(LONG)
        for tool, arguments in (("search", {"query": "page"}), ("status", {})):
            result = await client.call_tool(tool, arguments)
            assert "indexing: 1 of 3 files" in structured(result)["notes"]
            assert "note: indexing: 1 of 3 files" in text(result)
        go_on.set()
        joined(host)
        after = await client.call_tool("search", {"query": "page"})
    assert structured(after)["total"] == 3
    assert not any("indexing" in note for note in structured(after)["notes"])


async def test_the_first_message_starts_the_background_work(
    docs: Path, serve: Callable[..., tuple[MemoryHost, MindexServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, server = serve(build=docs)
    started = anyio.Event()
    monkeypatch.setattr(host, "start", started.set)
    async with Client(server) as client:
        await client.list_tools()
        with anyio.fail_after(LONG):
            await started.wait()


async def test_every_result_notes_a_folder_that_cannot_be_indexed(
    tmp_path: Path, serve: Callable[..., tuple[MemoryHost, MindexServer]]
) -> None:
    host, server = serve(build=tmp_path / "nope")
    host.start()
    joined(host)
    async with Client(server) as client:
        result = await client.call_tool("status", {})
    assert f"indexing {tmp_path / 'nope'} failed: there is no folder" in text(result)


def test_a_source_is_stored_and_indexed_with_its_excludes(
    docs: Path, serve: Callable[..., tuple[MemoryHost, MindexServer]]
) -> None:
    host, _ = serve(source=docs, build=docs, exclude=("0.md",))
    assert host.source is not None
    assert (host.source.name, host.source.exclude) == ("docs", ("0.md",))
    host.start()
    joined(host)
    assert host.memory.status().collections[0].documents == 2


@pytest.mark.slow
def test_watching_indexes_first_and_then_follows_the_files(
    docs: Path, serve: Callable[..., tuple[MemoryHost, MindexServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, _ = serve(source=docs, watch=True)
    seen = threading.Condition()
    reports: list[IndexReport] = []
    index = IndexService.index

    def heard(*arguments: object, **options: object) -> IndexReport:
        outcome = index(*arguments, **options)  # type: ignore[arg-type]
        with seen:
            reports.append(outcome)
            seen.notify_all()
        return outcome

    monkeypatch.setattr(IndexService, "index", heard)
    host.start()
    with seen:
        assert seen.wait_for(lambda: len(reports) >= 2, LONG)  # built, then looked at by the watch
        write(docs, {"new.md": "# New\n\nText."})
        assert seen.wait_for(lambda: any(r.collections[0].new == 1 for r in reports), LONG)
    assert reports[0].collections[0].new == 3


def test_closing_stops_an_index_that_is_being_built(
    docs: Path, serve: Callable[..., tuple[MemoryHost, MindexServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, _ = serve(build=docs)
    begun = threading.Event()
    report = host.background._report_progress

    def held(progress: Progress) -> None:
        begun.set()
        assert host.background._stop.wait(LONG)
        report(progress)

    monkeypatch.setattr(host.background, "_report_progress", held)
    host.start()
    assert begun.wait(LONG)
    host.close()
    joined(host)


def test_the_handshake_does_not_wait_for_a_locked_database(
    serve: Callable[..., tuple[MemoryHost, MindexServer]], monkeypatch: pytest.MonkeyPatch
) -> None:
    host, _ = serve()
    unlocked = threading.Event()
    monkeypatch.setattr(host, "_memory", None)
    opened = host._open
    monkeypatch.setattr(host, "_open", lambda: unlocked.wait(LONG) and opened())
    assert host.peek(0.01, 0.01) is None
    unlocked.set()
    assert host.memory.status().tier == "keyword"


async def test_a_search_before_the_model_is_loaded_uses_keywords_and_notes_it(
    handbook_memory: Memory,
    serve: Callable[..., tuple[MemoryHost, MindexServer]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host, server = serve(db=str(handbook_memory.settings.database), settings={"embedding.wait": 0})
    asked, open_model = threading.Event(), LocalEmbedder._open

    def held(embedder: LocalEmbedder) -> Engine:
        assert asked.wait(LONG)
        return open_model(embedder)

    monkeypatch.setattr(LocalEmbedder, "_open", held)
    async with Client(server) as client:
        early = structured(
            await client.call_tool("search", {"query": "how long may a door status live, asked too early"})
        )
        assert early["tier"] == "keyword"
        assert early["notes"][0] == "the embedding model is still loading; answered by keyword"
        asked.set()
        embedder = host.memory.models.embedder
        assert embedder is not None
        wait_until(lambda: embedder.loaded, what="the model, which the first search began to load")
        late = structured(await client.call_tool("search", {"query": "how long may a door status live"}))
        status = structured(await client.call_tool("status", {}))
    assert "tier" not in late  # the usual one is not named
    assert late["results"][0]["path"] == "domains/caching/redis.md"
    assert "notes" not in status


# ── vectors ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def model_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A server of models; what it is like, and when it failed, is remembered in this test only."""
    monkeypatch.setenv("MINDEX_CACHE_DIR", str(tmp_path / "cache"))
    with ModelServer() as served:
        yield served


def of(served: ModelServer) -> dict[str, object]:
    return {"embedding.provider": "openai", "embedding.url": served.url, "embedding.model": "some-model"}


def test_records_without_vectors_are_embedded_after_the_first_search(
    docs: Path, model_server: ModelServer, serve: Callable[..., tuple[MemoryHost, MindexServer]], database: str
) -> None:
    with Memory(database, options=of(model_server)) as memory:
        memory.index(docs, embed=False)
        memory.add("The user prefers dark mode.", embed=False)
    host, _ = serve(settings=of(model_server))
    host.start()
    host.memory.search("anything", mode="keyword")
    asked = len(model_server.asked)
    host.memory.search("anything")
    wait_until(lambda: host.memory.status().embedding.pending == 0, what="every vector")
    assert not asked
    answer = host.memory.search("dark mode", mode="vector", floor=0)
    assert answer.tier == "vector" and answer.total


def test_a_model_that_was_down_is_tried_again_at_intervals(
    docs: Path,
    model_server: ModelServer,
    serve: Callable[..., tuple[MemoryHost, MindexServer]],
    tmp_path: Path,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("mindex.mcp.background_work._BACKFILL_SECONDS", 0.3)
    model_server.always = status(503)
    with Memory(database, options=KEYWORD) as memory:
        memory.index(docs)
    host, _ = serve(settings={**of(model_server), "embedding.timeout": 5.0})
    host.start()
    host.memory.search("anything")
    wait_until(lambda: "503" in capsys.readouterr().err, what="a word about the model")
    requests = len(model_server.asked)
    assert host.memory.status().embedding.pending == 3
    model_server.always = None
    for file in (tmp_path / "cache" / "breakers").glob("*"):
        file.unlink()  # what half a minute does
    wait_until(lambda: host.memory.status().embedding.pending == 0, what="every vector")
    assert requests < 20


@pytest.mark.model
def test_a_running_server_loads_the_model_that_a_reembedding_chose(
    docs: Path,
    model_server: ModelServer,
    serve: Callable[..., tuple[MemoryHost, MindexServer]],
    tmp_path: Path,
    database: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("mindex.mcp.background_work._MODEL_CHECK_SECONDS", 0.05)
    host, _ = serve(settings={}, build=docs)
    host.start()
    wait_until(lambda: not host.notes() and host.memory.status().embedding.pending == 0, what="the index")
    with Memory(database) as memory:
        memory.models.reembed(provider="openai", model="some-model", url=model_server.url)

    def followed() -> bool:
        held = host.memory.embedding._active
        return held is not None and held.embedder is not None and held.embedder.model.name == "some-model"

    wait_until(followed, what="the other model")  # without any request
    assert host.memory.search("text of page 1").tier == "hybrid"


@pytest.mark.model
async def test_indexing_one_page_does_not_wait_for_what_else_is_pending(
    tmp_path: Path,
    database: str,
    serve: Callable[..., tuple[MemoryHost, MindexServer]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    old = write(tmp_path / "old", {f"{n}.md": f"# Elder {n}\n\nText of page {n}." for n in range(40)})
    with Memory(db=database) as memory:
        memory.index(old, embed=False)
    write(tmp_path / "new", {"page.md": "# Fresh\n\nThe harbour has three cranes."})
    release, held, real = threading.Event(), threading.Event(), LocalEmbedder.embed

    def embed(self: LocalEmbedder, texts: Sequence[str]) -> object:
        if any("Elder" in text for text in texts):
            held.set()
            assert release.wait(LONG)
        return real(self, texts)

    monkeypatch.setattr(LocalEmbedder, "embed", embed)
    host, server = serve(settings={})
    host.memory.models.load()
    host.background.embed()
    assert await anyio.to_thread.run_sync(held.wait, LONG)  # the others are being embedded, and take long
    async with Client(server) as client:
        report = structured(await client.call_tool("index", {"path": "new"}))
    assert (report["embedded"], report["pending"], release.is_set()) == (1, 40, False)
    release.set()
    wait_until(lambda: host.memory.embedding.status().pending == 0, what="the others")
