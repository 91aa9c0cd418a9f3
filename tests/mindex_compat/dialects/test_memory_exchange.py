from __future__ import annotations

import os
import re
import sqlite3
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import anyio
import pytest

from mcp import Client
from mindex.datatypes import Progress
from mindex.files.document_metadata import domain_of_current_file
from mindex.mcp.dialect import dialect_named
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server import MindexServer
from mindex.mcp.server_options import ServerOptions
from mindex.present.fence import body
from mindex_compat.dialects.memory_exchange import domain_map
from mindex_compat.dialects.memory_exchange_flags import FLAGS, read_flags, settings_of_flags
from tests.conftest import write
from tests.mcp.conftest import KEYWORD, Served, structured, text
from tests.mcp.sessions import started
from tests.mindex_azure.azure_search_server import KEY, AzureSearchServer

pytestmark = pytest.mark.anyio

FILES = {
    "domains/caching/redis.md": "# Redis\n\n## TTL\n\nEach `door_status` entry expires after 45 seconds.\n",
    "domains/auth/login.md": "# Login\n\n## TTL\n\nEach session entry expires after 30 minutes.\n",
    "coding.instructions.md": "# Coding\n\nEach entry of a list ends with a comma.\n",
    "personal/diary.md": "# Diary\n\nEach entry expires never.\n",
    "MemoryExchangeManagement.md": (
        "# Management\n\n```yaml\ndomain_coverage:\n  caching: ['src/Caching/', 'src/**/*Cache/']\n"
        '  auth: ["src/Login/"]\n```\n'
    ),
}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", FILES)


@pytest.fixture
def open_host(database: str) -> Iterator[Callable[..., MemoryHost]]:
    opened: list[MemoryHost] = []

    def make(source: Path | None, **options: object) -> MemoryHost:
        dialect = dialect_named("memory-exchange")
        settings = {**KEYWORD, **dialect.settings_for(source)}
        given = {"db": database, "exclude": dialect.exclude, "settings": settings, **options}
        opened.append(MemoryHost(ServerOptions(source=source, **given)))  # type: ignore[arg-type]
        return opened[-1]

    yield make
    for host in opened:
        host.close()


@pytest.fixture
async def client(source: Path, open_host: Callable[..., MemoryHost]) -> AsyncIterator[Client]:
    host = open_host(source)
    host.memory.index(source, exclude=host.options.exclude)
    async with Client(MindexServer(host, dialect_named("memory-exchange"))) as connected:
        yield connected


async def test_the_search_tool_has_both_names(client: Client) -> None:
    tools = (await client.list_tools()).tools
    assert [tool.name for tool in tools] == [
        "search_memory_exchange",
        "search_memory_bank",
        "get_memory_file",
        "get_index_status",
    ]
    assert list(tools[0].input_schema["properties"]) == ["query", "currentFilePath", "topK"]
    for tool in tools:
        assert tool.annotations is not None
        assert (tool.annotations.read_only_hint, tool.annotations.idempotent_hint) == (True, True)


async def test_results_have_the_text_of_memory_exchange(client: Client, source: Path) -> None:
    result = await client.call_tool("search_memory_exchange", {"query": "door_status", "topK": 1})
    assert text(result) == (
        "Found 1 relevant memory exchange entries:\n"
        "\n"
        "--- Result 1 ---\n"
        f"Source: {source}/domains/caching/redis.md\n"
        "Section: Redis > TTL\n"
        "Domain: caching\n"
        "\n"
        "  ## TTL\n\n  Each `door_status` entry expires after 45 seconds.\n"  # indented: it cannot pose as a result
        "\n"
    )
    assert structured(result)["fusion"] == "rrf"
    assert body(structured(result)["results"][0]["text"]) in text(result)


async def test_a_result_without_tags_has_no_line_for_them(client: Client) -> None:
    message = text(await client.call_tool("search_memory_bank", {"query": "session", "topK": 1}))
    assert "Domain: auth\n\n  ## TTL" in message


async def test_nothing_found_is_one_sentence(client: Client) -> None:
    result = await client.call_tool("search_memory_exchange", {"query": "zzzzz"})
    assert text(result) == "No relevant memory exchange entries found for your query."


@pytest.mark.parametrize(("top_k", "shown"), [(-3, 1), (0, 1), (2, 2), (10, 10), (500, 10)])
async def test_top_k_is_clamped(tmp_path: Path, open_host: Callable[..., MemoryHost], top_k: int, shown: int) -> None:
    many = write(tmp_path / "many", {f"{n}.md": f"# Page {n}\n\nAn entry about caches, number {n}." for n in range(20)})
    host = open_host(many)
    host.memory.index(many)
    async with Client(MindexServer(host, dialect_named("memory-exchange"))) as client:
        result = await client.call_tool("search_memory_exchange", {"query": "caches", "topK": top_k})
        assert text(result).count("--- Result ") == shown
        usual = await client.call_tool("search_memory_exchange", {"query": "caches"})
        assert text(usual).startswith("Found 5 relevant memory exchange entries:")


async def test_hits_far_below_our_floor_are_shown(client: Client) -> None:
    message = text(
        await client.call_tool("search_memory_exchange", {"query": "unicorns comma penguins zebras quokkas"})
    )
    assert "coding.instructions.md" in message


async def test_the_current_file_lifts_its_domain(client: Client) -> None:
    arguments = {"query": "entry expires", "currentFilePath": "/home/me/repo/src/Login/Form.cs"}
    lifted = structured(await client.call_tool("search_memory_exchange", arguments))["results"][0]
    assert lifted["domain"] == "auth"
    arguments["currentFilePath"] = "src/Caching/RedisClient.cs"
    lifted = structured(await client.call_tool("search_memory_exchange", arguments))["results"][0]
    assert lifted["domain"] == "caching"


async def test_personal_is_never_indexed(client: Client) -> None:
    result = await client.call_tool("search_memory_exchange", {"query": "diary"})
    assert text(result).startswith("No relevant")


async def test_only_the_source_is_seen(client: Client, source: Path, open_host: Callable[..., MemoryHost]) -> None:
    other = write(source.parent / "docs-secret", {"key.md": "# Key\n\nThe door_status master key."})
    open_host(None).memory.index(other)
    assert "docs-secret" not in text(await client.call_tool("search_memory_exchange", {"query": "door_status key"}))
    for path in ("docs-secret/key.md", "../docs-secret/key.md", str(other / "key.md"), "key.md"):
        assert text(await client.call_tool("get_memory_file", {"filePath": path})).startswith("Error: ")


@pytest.mark.parametrize(
    "path", ["domains/caching/redis.md", "domains\\caching\\redis.md", "./domains/caching/redis.md"]
)
async def test_a_file_is_read_whole(client: Client, path: str) -> None:
    result = await client.call_tool("get_memory_file", {"filePath": path})
    assert text(result) == FILES["domains/caching/redis.md"].rstrip()
    assert structured(result)["records"][0]["path"] == "domains/caching/redis.md"


async def test_get_takes_a_path_as_search_shows_it(client: Client, source: Path) -> None:
    result = await client.call_tool("get_memory_file", {"filePath": f"{source}/domains/auth/login.md"})
    assert text(result).startswith("# Login")


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("get_memory_file", {"filePath": " "}, "Error: filePath is required."),
        (
            "get_memory_file",
            {"filePath": "../../etc/passwd"},
            "Error: the specified path is outside the memory exchange source directory.",
        ),
        (
            "get_memory_file",
            {"filePath": "/etc/passwd"},
            "Error: the specified path is outside the memory exchange source directory.",
        ),
        ("get_memory_file", {"filePath": "nope.md"}, "Error: file not found: nope.md"),
        ("get_memory_file", {"filePath": "personal/diary.md"}, "Error: file not found: personal/diary.md"),
        ("search_memory_exchange", {"query": "  "}, "Error: the query is empty; pass the words to search for"),
        ("search_memory_exchange", {}, "Error: argument 'query' is missing"),
        ("search_memory_exchange", {"query": "x", "limit": 3}, "Error: unknown argument 'limit'"),
    ],
)
async def test_errors_are_ordinary_texts(client: Client, tool: str, arguments: dict[str, str], message: str) -> None:
    result = await client.call_tool(tool, arguments)
    assert text(result).startswith(message)
    assert not result.is_error


async def test_status_has_the_text_of_memory_exchange(client: Client, source: Path) -> None:
    result = await client.call_tool("get_index_status", {})
    message = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d", "TIME", text(result))
    assert message == (
        "## Memory Exchange Index Status\n"
        "\n"
        f"- **Source path:** {source}\n"
        "- **Provider:** Local (no embeddings)\n"
        "- **Index name:** memory-exchange\n"
        "- **Indexed chunks:** 4\n"
        "- **Indexed files:** 4\n"
        "- **Last indexed:** TIME\n"
    )
    assert structured(result)["indexed_files"] == 4


async def test_an_empty_index_is_warned_about(source: Path, open_host: Callable[..., MemoryHost]) -> None:
    async with Client(MindexServer(open_host(source), dialect_named("memory-exchange"))) as client:
        message = text(await client.call_tool("get_index_status", {}))
        found = text(await client.call_tool("search_memory_exchange", {"query": "caching"}))
    assert found.startswith("No relevant memory exchange entries found for your query.\nnote: ")
    assert "docs: the first indexing is not complete" in found
    assert "- **Last indexed:** never\n" in message
    assert "\n\n**Warning:** The index is empty." in message


@pytest.mark.sqlite_only  # the file of another program
async def test_a_database_of_memory_exchange_is_not_changed(
    tmp_path: Path, source: Path, open_host: Callable[..., MemoryHost], capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = tmp_path / "memory_exchange.db"
    connection = sqlite3.connect(theirs)
    connection.execute("PRAGMA journal_mode = WAL")  # as MemoryExchange has it
    connection.execute("CREATE TABLE chunks (id TEXT)")
    connection.commit()
    connection.close()
    before = theirs.read_bytes()
    host = open_host(source, db=None, dialect_db=str(theirs))
    host.memory.index(source)
    assert theirs.read_bytes() == before
    assert (tmp_path / "memory_exchange.mindex.db").is_file()
    assert "belongs to another program; using" in capsys.readouterr().err


# ── the domain map ────────────────────────────────────────────────────────────────────────────────────────────


def test_the_map_comes_from_the_first_yaml_block() -> None:
    text = "```yaml\r\ncoverage:\r\n  caching: ['src/Caching/', 'src/**/*Cache/']\r\n```\n```yaml\n  x: ['y/']\n```\n"
    assert domain_map(text) == {"src/Caching/": "caching", "src/**/*Cache/": "caching"}


@pytest.mark.parametrize("text", ["", "no block", "```yaml\nnothing: here\n```", "```yaml\n  a: [b, c]\n"])
def test_a_file_without_a_map_is_not_a_map(text: str) -> None:
    assert domain_map(text) == {}


@pytest.mark.parametrize(
    ("path", "domain"),
    [
        ("src/Caching/RedisClient.cs", "caching"),
        ("C:\\repo\\src\\Caching\\RedisClient.cs", "caching"),
        ("src/Shop/PriceCache/Store.cs", "caching"),
        ("src/Shop/Store.cs", None),
    ],
)
def test_the_domain_map_assigns_code_paths_to_domains(path: str, domain: str | None) -> None:
    assert domain_of_current_file(path, domain_map(FILES["MemoryExchangeManagement.md"]), {"caching"}) == domain


# ── the first build ───────────────────────────────────────────────────────────────────────────────────────────


async def test_a_search_waits_for_the_first_build_of_a_small_folder(
    source: Path, open_host: Callable[..., MemoryHost]
) -> None:
    host = open_host(source, build=source)
    async with Client(MindexServer(host, dialect_named("memory-exchange"))) as client:
        result = await client.call_tool("search_memory_exchange", {"query": "door_status", "topK": 1})
        assert "domains/caching/redis.md" in text(result)
        assert structured(result)["notes"] == ["no embedder is configured; answered by keyword"]


async def test_a_file_is_read_after_the_first_build(source: Path, open_host: Callable[..., MemoryHost]) -> None:
    host = open_host(source, build=source)
    async with Client(MindexServer(host, dialect_named("memory-exchange"))) as client:
        result = await client.call_tool("get_memory_file", {"filePath": "domains/auth/login.md"})
        assert text(result).startswith("# Login")


async def test_a_first_build_that_takes_too_long_is_answered_with_what_there_is(
    source: Path, open_host: Callable[..., MemoryHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mindex_compat.dialects.memory_exchange._WAIT_SECONDS", 0.2)
    host = open_host(source, build=source)
    go_on = threading.Event()
    report = host.background._report_progress

    def held(progress: Progress) -> None:
        report(progress)
        assert go_on.wait(60)

    monkeypatch.setattr(host.background, "_report_progress", held)
    async with Client(MindexServer(host, dialect_named("memory-exchange"))) as client:
        result = await client.call_tool("search_memory_exchange", {"query": "door_status"})
        go_on.set()
    note = "the index is being built for the first time; this answer has only what is in it so far"
    assert note in structured(result)["notes"]
    assert f"note: {note}" in text(result)
    assert any(one.startswith("indexing: ") for one in structured(result)["notes"])


async def test_a_folder_that_was_indexed_before_is_searched_at_once(
    source: Path, open_host: Callable[..., MemoryHost], monkeypatch: pytest.MonkeyPatch
) -> None:
    open_host(source).memory.index(source)
    host = open_host(source, build=source)
    go_on = threading.Event()
    monkeypatch.setattr(host.background, "_report_progress", lambda _: go_on.wait(60))
    async with Client(MindexServer(host, dialect_named("memory-exchange"))) as client:
        with anyio.fail_after(5):
            result = await client.call_tool("search_memory_exchange", {"query": "door_status"})
        go_on.set()
    assert text(result).startswith("Found ")


SEEN = "every user of this machine can see the key in --azure-openai-key; put it into AZURE_OPENAI_API_KEY instead"


# ── its flags ─────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("flags", "settings", "notes"),
    [
        ({}, {}, ()),
        ({"--provider": "Local"}, {"embedding.provider": "local"}, ()),
        ({"--model-path": "models/minilm"}, {"embedding.provider": "local", "embedding.model": "models/minilm"}, ()),
        ({"--model-path": "m/model.onnx"}, {"embedding.provider": "local", "embedding.model": "m"}, ()),
        (
            {
                "--provider": "azure",
                "--azure-openai-endpoint": "https://x.openai.azure.com",
                "--azure-openai-key": "k",
                "--azure-openai-deployment": "ada",
            },
            {
                "embedding.provider": "azure",
                "embedding.url": "https://x.openai.azure.com",
                "embedding.api_key": "k",
                "embedding.model": "ada",
            },
            (SEEN,),
        ),
        (
            {"--azure-openai-key": "k"},
            {},
            (SEEN, "--azure-openai-key is not used without --provider azure; it sets embedding.api_key"),
        ),
        (
            {"--provider": "azure", "--model-path": "m"},
            {"embedding.provider": "azure"},
            ("--model-path is not used with --provider azure; it sets embedding.model",),
        ),
    ],
)
def test_each_flag_is_a_setting_or_says_which_setting_replaces_it(
    flags: dict[str, str], settings: dict[str, object], notes: tuple[str, ...]
) -> None:
    assert settings_of_flags(flags) == (settings, notes)


def test_every_flag_has_a_meaning() -> None:
    for flag in FLAGS:
        settings, notes = settings_of_flags({flag: "local"})
        assert settings or notes or flag in ("--index-name", "--azure-search-endpoint")


@pytest.fixture
def no_azure(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_SEARCH_ENDPOINT", "AZURE_SEARCH_API_KEY", "MEMORYEXCHANGE_AZURE_SEARCH_ENDPOINT"):
        monkeypatch.setenv(name, "")  # so that it is restored after the test


@pytest.mark.parametrize(
    ("flags", "variable", "db"),
    [
        ({"--azure-search-endpoint": "https://x.net"}, "", "azure:///memory-exchange-mindex"),
        ({"--azure-search-endpoint": "https://x.net", "--index-name": "wiki"}, "", "azure:///wiki-mindex"),
        ({"--azure-search-endpoint": "https://x.net", "--provider": "local"}, "", ""),
        ({"--provider": "azure"}, "https://x.net", "azure:///memory-exchange-mindex"),
        ({}, "https://x.net", ""),
    ],
)
def test_an_azure_search_service_is_the_store(
    no_azure: None, monkeypatch: pytest.MonkeyPatch, flags: dict[str, str], variable: str, db: str
) -> None:
    monkeypatch.setenv("MEMORYEXCHANGE_AZURE_SEARCH_ENDPOINT", variable)
    read = read_flags(flags)
    assert (read.db, os.environ["AZURE_SEARCH_ENDPOINT"]) == (db, "https://x.net" if db else "")
    assert any("is not used with --provider local" in note for note in read.notes) is ("--provider" in flags and not db)


def test_a_key_of_the_service_reaches_the_store_and_the_user_is_warned(no_azure: None) -> None:
    read = read_flags({"--azure-search-endpoint": "https://x.net", "--azure-search-key": "k-1"})
    assert os.environ["AZURE_SEARCH_API_KEY"] == "k-1"
    assert read.notes == (
        "every user of this machine can see the key in --azure-search-key; put it into AZURE_SEARCH_API_KEY instead",
    )


@pytest.mark.server
async def test_a_session_on_azure_ai_search(source: Path, azure_search_server: AzureSearchServer) -> None:
    flags = ["--azure-search-endpoint", azure_search_server.endpoint, "--azure-search-key", KEY]
    flags += ["--index-name", f"wiki{os.getpid()}", "--source-path", str(source), "--build-index"]
    async with started("memory-exchange", *flags, env={"MINDEX_EMBEDDING_PROVIDER": "none"}) as client:
        found = text(await client.call_tool("search_memory_exchange", {"query": "door_status"}))
        assert "redis.md" in found
        status = text(await client.call_tool("get_index_status", {}))
        assert "- **Provider:** Azure (no embeddings)\n" in status
    assert f"wiki{os.getpid()}-mindex" in azure_search_server.aliases


async def test_the_status_says_why_there_are_no_vectors(source: Path, open_host: Callable[..., MemoryHost]) -> None:
    host = open_host(source, settings={"embedding.provider": "local", "embedding.model": "/no/model"})
    async with Client(MindexServer(host, dialect_named("memory-exchange"))) as client:
        status = text(await client.call_tool("get_index_status", {}))
    assert "- **Provider:** Local\n" in status
    assert "there is no folder /no/model" in status


async def test_the_index_has_the_name_of_the_flag(source: Path, open_host: Callable[..., MemoryHost]) -> None:
    async with Client(MindexServer(open_host(source, index_name="wiki"), dialect_named("memory-exchange"))) as client:
        assert "- **Index name:** wiki\n" in text(await client.call_tool("get_index_status", {}))


async def test_a_name_of_code_is_found_before_texts_with_its_parts(
    tmp_path: Path, serving: Callable[..., Served]
) -> None:
    parts = {
        f"p{n}.md": f"# Note {n}\n\nThe policy of the controller: a controller has a policy, number {n}.\n"
        for n in range(8)
    }
    exact = {"access.md": "# Access\n\nIn the end it is `PolicyController` that decides who may open a locker here.\n"}
    served = serving("memory-exchange")
    served.host.memory.index(write(tmp_path / "kb", {**parts, **exact}))
    async with Client(served.server) as client:
        found = text(await client.call_tool("search_memory_exchange", {"query": "PolicyController", "topK": 3}))
    assert found.startswith("Found 3 relevant")
    assert found.index("access.md") < found.index("Result 2")
