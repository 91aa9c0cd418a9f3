"""mudpuppy's users change one line: its tools, its integer ids, its JSON and its errors."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncIterator, Callable
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

from mcp import Client, StdioServerParameters
from mindex.clock import now_ms
from mindex.config import load_settings
from mindex.datatypes import TYPES
from mindex.mcp.dialect import tools_named
from mindex.mcp.run_server import _Start
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory
from mindex_compat.dialects.mudpuppy import FAMILIES
from tests.conftest import write
from tests.mcp.conftest import KEYWORD, Served, structured, text
from tests.mcp.test_serve import MINDEX
from tests.running import run_here, wait_until

pytestmark = pytest.mark.anyio

RESULT = ["id", "content", "entryType", "source", "confidence", "importance", "tags", "score", "matchedBy", "createdAt"]
ENTRY = [
    "id", "content", "contentHash", "entryType", "source", "confidence", "importance", "tags", "createdAt",
    "updatedAt", "accessCount",
]  # fmt: skip


@pytest.fixture
def served(serving: Callable[..., Served]) -> Served:
    return serving("mudpuppy")


@pytest.fixture
def memory(served: Served) -> Memory:
    return served.host.memory


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    async with Client(served.server) as connected:
        yield connected


async def call(client: Client, tool: str, *, is_error: bool = False, **arguments: object) -> dict[str, Any]:
    """The answer, of which text and structured content are the same."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error is is_error, text(result)
    answered: dict[str, Any] = json.loads(text(result))
    assert structured(result) == answered
    assert text(result) == json.dumps(answered, ensure_ascii=False, indent=2)
    return answered


async def test_the_tools_and_arguments_of_mudpuppy(client: Client) -> None:
    arguments = {tool.name: list(tool.input_schema.get("properties", ())) for tool in (await client.list_tools()).tools}
    assert arguments == {
        "memory_add": [
            "content", "entryType", "source", "context", "confidence", "importance", "tags", "expiresAt",
        ],
        "memory_search": [
            "query", "mode", "limit", "entryTypes", "minImportance", "minConfidence", "tags", "vectorWeight",
            "keywordWeight",
        ],
        "memory_get": ["id"],
        "memory_stats": [],
        "memory_delete": ["id"],
    }  # fmt: skip


# ── a whole life ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_added_found_got_counted_and_deleted(client: Client, memory: Memory) -> None:
    content = "User prefers dark mode."
    added = await call(client, "memory_add", content=content, entryType="preference", tags=["ui"])
    assert added == {"id": 1, "created": True, "duplicate": False}

    found = await call(client, "memory_search", query="dark mode", mode="keyword")
    assert found["total"] == 1
    (result,) = found["results"]
    assert list(result) == RESULT
    assert (result["id"], result["content"], result["entryType"]) == (1, content, "preference")
    assert (result["source"], result["confidence"], result["importance"], result["tags"]) == ("manual", 1.0, 5, ["ui"])
    assert (result["score"], result["matchedBy"]) == (1.0, ["keyword"])
    assert result["createdAt"] == pytest.approx(now_ms(), abs=60_000)

    memory.store.settle()
    entry = (await call(client, "memory_get", id=1))["entry"]
    assert list(entry) == [*ENTRY, "lastAccessedAt"]
    assert entry["contentHash"] == hashlib.sha256(content.encode()).hexdigest()
    assert entry["accessCount"] == 1  # the search; this access is not counted yet
    memory.store.settle()
    assert (await call(client, "memory_get", id=1))["entry"]["accessCount"] == 2

    memory.store.settle()
    assert await call(client, "memory_stats") == {
        "totalEntries": 1,
        "byType": {"preference": 1},
        "avgImportance": 5.0,
        "avgConfidence": 1.0,
        "totalAccesses": 3,
        "oldestEntry": entry["createdAt"],
        "newestEntry": entry["createdAt"],
    }

    assert await call(client, "memory_delete", id=1) == {"success": True, "deleted": True}
    assert (await call(client, "memory_search", query="dark mode", mode="keyword"))["results"] == []
    assert await call(client, "memory_get", id=1) == {"error": "Memory entry not found: 1"}
    assert await call(client, "memory_delete", id=1) == {"success": False, "deleted": False}
    (added_again,) = [
        change for change in memory.store.entries.changes_between(0, now_ms() + 1) if change.action == "forget"
    ]
    memory.restore(added_again.record)
    assert (await call(client, "memory_get", id=1))["entry"]["content"] == content


async def test_the_same_content_again_returns_the_same_id(client: Client) -> None:
    await call(client, "memory_add", content="First.")
    second = await call(client, "memory_add", content="Second.")
    again = await call(client, "memory_add", content="Second.", importance=9)
    assert again == {"id": second["id"], "created": False, "duplicate": True}


async def test_a_deleted_content_can_be_added_again(client: Client) -> None:
    first = await call(client, "memory_add", content="First.")
    await call(client, "memory_delete", id=first["id"])
    assert await call(client, "memory_add", content="First.") == {"id": 2, "created": True, "duplicate": False}


async def test_absent_values_are_left_out(client: Client) -> None:
    end = now_ms() + 3_600_000
    given = {"source": "chat", "context": "planning", "confidence": 0.5, "importance": 9, "expiresAt": end}
    id_ = (await call(client, "memory_add", content="The office is in Bern.", **given))["id"]
    entry = (await call(client, "memory_get", id=id_))["entry"]
    assert {name: entry[name] for name in given} == given
    assert "lastAccessedAt" not in entry


async def test_empty_statistics_have_no_times(client: Client) -> None:
    stats = await call(client, "memory_stats")
    assert (stats["totalEntries"], stats["byType"]) == (0, {})
    assert (stats["oldestEntry"], stats["newestEntry"]) == (None, None)


async def test_an_agent_does_not_reach_the_entries_of_another_by_their_numbers(serving: Callable[..., Served]) -> None:
    one, other = serving("mudpuppy", agent="one"), serving("mudpuppy", agent="other")
    async with Client(one.server) as first, Client(other.server) as second:
        assert (await call(first, "memory_add", content="Mine."))["id"] == 1
        assert (await call(second, "memory_add", content="Yours."))["id"] == 2
        assert (await call(second, "memory_get", id=2))["entry"]["content"] == "Yours."
        assert (await call(second, "memory_delete", id=1))["deleted"] is False
        assert (await call(first, "memory_get", id=1))["entry"]["content"] == "Mine."


# ── search ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_filters_act(client: Client) -> None:
    for content, given in {
        "Redis one.": {"entryType": "task", "importance": 9, "tags": ["a"]},
        "Redis two.": {"entryType": "event", "confidence": 0.4, "tags": ["b"]},
        "Redis three.": {"tags": ["a", "c"]},
    }.items():
        await call(client, "memory_add", content=content, **given)

    async def ids(**filters: object) -> set[int]:
        return {row["id"] for row in (await call(client, "memory_search", query="redis", **filters))["results"]}

    assert await ids() == {1, 2, 3}
    assert await ids(entryTypes=["task", "event"]) == {1, 2}
    assert await ids(minImportance=6) == {1}
    assert await ids(minConfidence=0.5) == {1, 3}
    assert await ids(tags=["b", "c"]) == {2, 3}
    assert len(await ids(limit=2)) == 2


async def test_a_memory_of_another_type_is_shown_as_one_of_the_six(client: Client, memory: Memory) -> None:
    assert sorted(type_ for types in FAMILIES.values() for type_ in types) == sorted(TYPES)
    for type_ in TYPES:
        memory.add(f"A note about lighthouses, of type {type_}.", type=type_)
    rows = (await call(client, "memory_search", query="lighthouses", limit=50))["results"]
    assert {row["entryType"] for row in rows} == set(FAMILIES)
    assert len(rows) == len(TYPES)
    preferences = await call(client, "memory_search", query="lighthouses", entryTypes=["preference"])
    assert preferences["total"] == len(FAMILIES["preference"])
    assert sum((await call(client, "memory_stats"))["byType"].values()) == len(TYPES)


async def test_a_limit_above_the_cap_is_noted(client: Client) -> None:
    await call(client, "memory_add", content="Redis one.")
    assert "limit cut to 50, the maximum" in (await call(client, "memory_search", query="redis", limit=10**6))["notes"]


@pytest.mark.model
async def test_hybrid_scores_are_weighted_seven_to_three(serving: Callable[..., Served]) -> None:
    served = serving("mudpuppy", settings={})
    memory = served.host.memory
    memory.embedding_queue.in_background = False
    async with Client(served.server) as client:
        for content in ("user prefers dark mode", "the canteen serves soup", "user deploys on Fridays"):
            await call(client, "memory_add", content=content)
        found = await call(client, "memory_search", query="dark theme")
        by_meaning = await call(client, "memory_search", query="night colour scheme", mode="vector")
    assert "notes" not in found
    first = found["results"][0]
    assert first["content"] == "user prefers dark mode"
    assert first["matchedBy"] == ["vector", "keyword"]
    assert found["results"][1]["matchedBy"] == ["vector"]
    assert by_meaning["results"][0]["content"] == "user prefers dark mode"

    hits = memory.search("dark theme", fusion="weighted", floor=0, kinds=["memory"]).hits
    distances = [sqrt(2 - 2 * (hit.trace.cosine or 0)) for hit in hits]
    similarity = 1 - distances[0] / max(2 * max(distances), 2)
    assert first["score"] == round(0.7 * similarity + 0.3 * 1, 3)


@pytest.mark.model
async def test_weights_of_one_call_replace_seven_to_three(serving: Callable[..., Served]) -> None:
    served = serving("mudpuppy", settings={})
    served.host.memory.embedding_queue.in_background = False

    async def first(client: Client, **weights: float) -> tuple[str, float]:
        row = (await call(client, "memory_search", query="dark theme for the display", **weights))["results"][0]
        return row["content"], row["score"]

    async with Client(served.server) as client:
        for content in ("user prefers dark mode on screens", "the display case holds the theme of the week"):
            await call(client, "memory_add", content=content)
        by_vector = await call(client, "memory_search", query="dark theme for the display", mode="vector")
        similarity = {row["content"]: row["score"] for row in by_vector["results"]}
        meant = await first(client, vectorWeight=1, keywordWeight=0)
        assert meant[0] == "user prefers dark mode on screens"
        assert meant[1] == pytest.approx(similarity[meant[0]], abs=0.002)
        assert (await first(client, vectorWeight=0, keywordWeight=1)) == (
            "the display case holds the theme of the week", 1.0,
        )  # fmt: skip
        content, score = await first(client, vectorWeight=0.5, keywordWeight=1)  # the sum need not be one
        assert score == pytest.approx(0.5 * similarity[content] + 1.0, abs=0.002)
        single = await call(client, "memory_search", query="dark", mode="keyword", vectorWeight=0.9)
    assert single["notes"] == ["vectorWeight and keywordWeight do nothing in a keyword search"]


@pytest.mark.model
async def test_what_was_just_added_is_found_by_its_vector(serving: Callable[..., Served]) -> None:
    served = serving("mudpuppy", settings={})
    async with Client(served.server) as client:
        added = await call(client, "memory_add", content="user prefers dark mode")
        found = await call(client, "memory_search", query="night colour scheme", mode="vector")
        again = await call(client, "memory_add", content="the canteen serves soup")
        after = await call(client, "memory_search", query="what is there to eat", mode="vector")
    assert [(row["id"], row["matchedBy"]) for row in found["results"]] == [(added["id"], ["vector"])]
    assert after["results"][0]["id"] == again["id"]


@pytest.mark.model
async def test_what_was_just_added_comes_first_in_a_hybrid_search_for_its_word(serving: Callable[..., Served]) -> None:
    served = serving("mudpuppy", settings={})
    async with Client(served.server) as client:
        for content in ("I like coriander", "Backups run at two", "The canteen serves soup"):
            await call(client, "memory_add", content=content)
        await call(client, "memory_search", query="soup", mode="vector")  # the model is loaded
        added = await call(client, "memory_add", content="The shredder is on floor 7")
        found = await call(client, "memory_search", query="shredder")
    assert (found["results"][0]["id"], found["results"][0]["matchedBy"]) == (added["id"], ["vector", "keyword"])


@pytest.mark.model
async def test_a_server_that_is_asked_nothing_loads_no_model(serving: Callable[..., Served]) -> None:
    served = serving("mudpuppy", settings={})
    with Memory(served.host.options.db) as before:
        before.add("user prefers dark mode", embed=False)  # waits for its vector
    async with Client(served.server) as client:
        await client.list_tools()
        await call(client, "memory_stats")
        await call(client, "memory_get", id=1)
        await call(client, "memory_search", query="dark", mode="keyword")
        embedder = served.host.memory.models.embedder
        assert embedder is not None
        assert not embedder.loaded
        await call(client, "memory_search", query="dark")
        wait_until(lambda: embedder.loaded, what="the model, which a hybrid search loads")
        wait_until(lambda: not served.host.memory.store.vectors.pending(embedder.model), what="the vector that waits")


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────

FILE = [
    "id", "content", "entryType", "source", "context", "confidence", "importance", "tags", "score", "matchedBy",
    "createdAt",
]  # fmt: skip


@pytest.fixture
async def with_files(serving: Callable[..., Served], tmp_path: Path) -> AsyncIterator[Client]:
    """A server with a workspace of two files, and another folder that was indexed beside it."""
    write(tmp_path / "workspace", {"notes/kitchen.md": "# Kitchen\n\nThe kettle is descaled on Mondays. #home\n"})
    write(tmp_path / "workspace", {"garden.md": "# Garden\n\nThe roses are cut in March.\n"})
    write(tmp_path / "elsewhere", {"kettle.md": "# Kettles\n\nA kettle of another project.\n"})
    served = serving("mudpuppy", settings={**KEYWORD, "workspace.path": str(tmp_path / "workspace")})
    served.host.memory.index(tmp_path / "workspace", name="workspace")
    served.host.memory.index(tmp_path / "elsewhere")
    async with Client(served.server) as connected:
        yield connected


async def test_a_search_finds_the_files_of_the_workspace_beside_memories(with_files: Client) -> None:
    added = await call(with_files, "memory_add", content="The kettle was a present.", tags=["home"])
    found = await call(with_files, "memory_search", query="kettle")
    rows = {row["source"]: row for row in found["results"]}
    assert (found["total"], set(rows)) == (2, {"manual", "file-index"})
    assert rows["manual"]["id"] == added["id"]
    file = rows["file-index"]
    assert list(file) == FILE
    assert "descaled on Mondays" in file["content"]
    assert (file["entryType"], file["context"], file["confidence"], file["importance"]) == ("fact", "Kitchen", 1.0, 5)
    assert file["tags"][0] == "notes/kitchen.md"
    assert file["matchedBy"] == ["keyword"]
    assert 2**52 <= file["id"] < 2**53  # exact in the JSON of every language, and no number of a memory
    entry = (await call(with_files, "memory_get", id=file["id"]))["entry"]
    assert {name: entry[name] for name in FILE[:8]} == {name: file[name] for name in FILE[:8]}
    deleted = await call(with_files, "memory_delete", id=file["id"])
    assert deleted == {
        "success": False,
        "deleted": False,
        "error": f"{file['id']} is a passage of notes/kitchen.md: change or remove the file",
    }


@pytest.mark.parametrize(
    ("filters", "sources"),
    [
        ({}, {"manual", "file-index"}),
        ({"entryTypes": ["fact"]}, {"manual", "file-index"}),
        ({"entryTypes": ["event"]}, set()),
        ({"minImportance": 5}, {"manual", "file-index"}),
        ({"minImportance": 6}, set()),
        ({"minConfidence": 1}, {"manual", "file-index"}),
        ({"tags": ["home"]}, {"manual", "file-index"}),
        ({"tags": ["notes/kitchen.md"]}, {"file-index"}),
        ({"tags": ["garden.md"]}, set()),
        ({"tags": ["notes"]}, set()),  # a folder is not a tag
        ({"limit": 1}, {"manual"}),
    ],
)
async def test_filters_treat_a_file_as_a_fact_of_middling_importance(
    with_files: Client, filters: dict[str, object], sources: set[str]
) -> None:
    await call(with_files, "memory_add", content="Kettle.", tags=["home"])
    found = await call(with_files, "memory_search", query="kettle", **filters)
    assert {row["source"] for row in found["results"]} == sources


async def test_without_a_workspace_every_indexed_folder_is_searched(served: Served, client: Client) -> None:
    served.host.memory.index(write(served.root / "docs", {"a.md": "# Kettles\n\nA kettle boils water.\n"}))
    (row,) = (await call(client, "memory_search", query="kettle"))["results"]
    assert (row["source"], row["tags"]) == ("file-index", ["a.md"])


async def test_passages_of_files_above_100_kb_take_no_place(served: Served, client: Client) -> None:
    large = "# Kettles\n\n" + "".join(
        f"## Kettle {n}\n\nThe kettle {n} boils water. {'x ' * 700}\n\n" for n in range(90)
    )
    assert len(large) > 100 * 1024
    files = {"large.md": large, "small.md": f"# Tea\n\nA kettle is somewhere in this. {'tea ' * 300}\n"}
    served.host.memory.index(write(served.root / "docs", files))
    assert served.host.memory.search("kettle", kinds=["chunk"]).hits[0].record.path == "large.md"
    rows = (await call(client, "memory_search", query="kettle"))["results"]
    assert [row["tags"] for row in rows] == [["small.md"]]
    (served.root / "docs" / "small.md").write_text("# Tea\n")
    (served.root / "docs" / "large.md").write_text("# Kettles\n\nA kettle.\n")
    served.host.memory.index(served.root / "docs")
    rows = (await call(client, "memory_search", query="kettle"))["results"]
    assert [row["tags"] for row in rows] == [["large.md"]]


# ── its own files ─────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """mudpuppy's folder, where it is if no variable names another one."""
    for name in ("MUDPUPPY_HOME", "MATRIOSHKA_BRAIN_HOME"):
        monkeypatch.delenv(name, raising=False)
    return write(tmp_path / "home" / ".mudpuppy", {"workspace/tea.md": "# Tea\n\nGreen tea.\n"})


def config(home: Path, **memory: object) -> dict[str, tuple[object, str]]:
    """The settings that are not the defaults, with their origins, once `config.json` holds this."""
    (home / "config.json").write_text(json.dumps({"memory": memory}), encoding="utf-8")
    settings = load_settings(foreign=tools_named("mudpuppy").foreign())
    return {one.setting.key: (one.value, one.origin) for one in settings if settings.is_set(one.setting.key)}


def test_its_configuration_and_its_workspace_are_read(home: Path) -> None:
    file = str(home / "config.json")
    set_there = config(home, hybridWeights={"vector": 0.2, "keyword": 0.8}, autoIndex=False, embeddingProvider="none")
    assert set_there == {
        "search.weights.weighted": (0.2, file),
        "workspace.auto_index": (False, file),
        "embedding.provider": ("none", file),
        "workspace.path": (str(home / "workspace"), str(home)),
    }
    openai = config(home, embeddingProvider="openai", embeddingModel="text-embedding-3-small")
    assert openai["embedding.model"] == ("text-embedding-3-small", file)


@pytest.mark.parametrize(
    "memory",
    [
        {"hybridWeights": {"vector": "a", "keyword": 1}}, {"hybridWeights": {"vector": -1, "keyword": 2}},
        {"hybridWeights": {"vector": 0, "keyword": 0}}, {"hybridWeights": 7}, {"autoIndex": "perhaps"},
        {"embeddingProvider": "magic"}, {"embeddingProvider": "local", "embeddingModel": "x"}, {"embeddingModel": 7},
    ],
)  # fmt: skip
def test_what_mindex_cannot_use_in_its_configuration_is_left_out(home: Path, memory: dict[str, object]) -> None:
    assert set(config(home, **memory)) == {"workspace.path"}


def test_a_broken_configuration_sets_nothing(home: Path) -> None:
    for text_of_file in ("{", "[]", '{"memory": []}'):
        (home / "config.json").write_text(text_of_file, encoding="utf-8")
        assert [one.key for one in tools_named("mudpuppy").found()] == ["workspace.path"]


def test_variables_and_the_user_file_win_over_its_files(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = write(tmp_path / "other", {"config.json": '{"memory": {"autoIndex": false}}', "workspace/a.md": "a"})
    monkeypatch.setenv("MUDPUPPY_HOME", str(other))
    settings = load_settings(foreign=tools_named("mudpuppy").foreign())
    assert (settings.text("workspace.path"), settings.flag("workspace.auto_index")) == (f"{other}/workspace", False)
    monkeypatch.delenv("MUDPUPPY_HOME")
    user_file = write(tmp_path / "user", {"config.toml": '[workspace]\npath = "/mine"\n'}) / "config.toml"
    assert (
        load_settings(foreign=tools_named("mudpuppy").foreign(), user_file=user_file).text("workspace.path") == "/mine"
    )


def test_the_settings_and_the_start_of_the_server_name_its_files(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (home / "config.json").write_text(
        '{"memory": {"hybridWeights": {"vector": 0.2, "keyword": 0.8}}}', encoding="utf-8"
    )
    shown = run_here("config", "--tools", "mudpuppy", "--json")
    origins = {one["key"]: one["origin"] for one in shown.json["settings"]}
    assert origins["search.weights.weighted"] == str(home / "config.json")
    note = f"{home / 'config.json'} sets search.weights.weighted to 0.2"
    assert note in shown.err
    start = _Start(ServerOptions(settings=KEYWORD), "mudpuppy")
    _ = start.host.memory
    start.close()
    assert note in capsys.readouterr().err


async def test_notes_say_what_to_do_next(client: Client, memory: Memory) -> None:
    empty = await call(client, "memory_search", query="redis")
    assert empty["notes"] == ["the memory is empty; `memory_add` fills it"]
    id_ = memory.add("Redis is down today.", expires=now_ms() + 50).id
    wait_until(lambda: now_ms() > (memory.entries.find(id_).expires_at or 0), what="its end")
    expired = await call(client, "memory_search", query="redis")
    assert (expired["results"], expired["notes"]) == ([], ["1 expired; no search shows it"])


# ── mistakes ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("memory_add", {}, "argument 'content' is missing"),
        ("memory_add", {"content": ""}, "content: string should have at least 1 character"),
        ("memory_add", {"content": " \n"}, "the text is empty"),
        ("memory_add", {"content": "x", "entryType": "decision"}, "entryType: input should be 'fact', 'preference', "),
        ("memory_add", {"content": "x", "importance": 11}, "importance: input should be less than or equal to 10"),
        ("memory_add", {"content": "x", "importance": 2.5}, "importance: input should be a valid integer"),
        ("memory_add", {"content": "x", "confidence": 2}, "confidence: input should be less than or equal to 1"),
        ("memory_add", {"content": "x", "expiresAt": 1}, "the expiry is in the past"),
        ("memory_add", {"content": "x", "expiresAt": 10**30}, "the expiry is after the year 9999"),
        ("memory_add", {"content": "x", "type": "fact"}, "unknown argument 'type'; memory_add takes content"),
        ("memory_search", {"query": ""}, "query: string should have at least 1 character"),
        ("memory_search", {"query": "x", "mode": "magic"}, "mode: input should be 'hybrid', 'keyword' or 'vector'"),
        ("memory_search", {"query": "x", "limit": 0}, "limit: input should be greater than or equal to 1"),
        ("memory_search", {"query": "x", "entryTypes": ["self"]}, "entryTypes.0: input should be 'fact'"),
        ("memory_search", {"query": "x", "vectorWeight": 2}, "vectorWeight: input should be less than or equal to 1"),
        ("memory_search", {"query": "x", "vectorWeight": 0, "keywordWeight": 0}, "vectorWeight and keywordWeight are"),
        ("memory_get", {"id": [1]}, "id: input should be a valid integer"),
        ("memory_delete", {}, "argument 'id' is missing"),
        ("memory_stats", {"agent": "x"}, "unknown argument 'agent'; memory_stats takes no arguments"),
        ("memory_list", {}, "Unknown tool: memory_list"),
    ],
)
async def test_a_wrong_argument_is_an_error_in_json(
    client: Client, memory: Memory, tool: str, arguments: dict[str, object], message: str
) -> None:
    answer = await call(client, tool, is_error=True, **arguments)
    assert list(answer) == ["error"]
    assert answer["error"].startswith(message)
    assert memory.maintenance.statistics().total == 0


@pytest.mark.parametrize("id_", [7, 0, -1, 2**63, 10**30, "abc", ""])
async def test_a_missing_memory_is_an_ordinary_result(client: Client, id_: int | str) -> None:
    assert await call(client, "memory_get", id=id_) == {"error": f"Memory entry not found: {id_}"}
    assert await call(client, "memory_delete", id=id_) == {"success": False, "deleted": False}


async def test_a_store_error_has_the_shape_of_each_tool(serving: Callable[..., Served]) -> None:
    served = serving("mudpuppy")
    async with Client(served.server) as client:
        await call(client, "memory_add", content="First.")
        served.host.memory.store.close()
        found = await call(client, "memory_search", query="first")
        gone = await call(client, "memory_delete", id=1)
        stats = await call(client, "memory_stats")
    assert found["error"].startswith("this memory is closed")
    assert (found["results"], found["total"]) == ([], 0)
    assert (gone["success"], gone["deleted"]) == (False, False)
    assert list(stats) == ["error"]


# ── as a separate process ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.model
async def test_over_stdio(database: str) -> None:
    arguments = [*MINDEX[1:], "--db", database, "serve", "--tools", "mudpuppy"]
    command = StdioServerParameters(command=MINDEX[0], args=arguments, env={**os.environ})
    async with Client(command) as client:
        assert (await call(client, "memory_add", content="user prefers dark mode"))["id"] == 1
        assert (await call(client, "memory_add", content="user prefers dark mode"))["duplicate"] is True
    with Memory(database) as memory:
        assert memory.maintenance.statistics().total == 1  # durable, whether or not its vector was made in time
    async with Client(command) as client:
        found = await call(client, "memory_search", query="dark theme")
        assert [row["id"] for row in found["results"]] == [1]
        assert (await call(client, "memory_delete", id=1))["deleted"] is True


@pytest.mark.model
def test_the_vector_of_a_memory_follows_in_the_background(served: Served, serving: Callable[..., Served]) -> None:
    memory = serving("mudpuppy", settings={}).host.memory
    memory.add("user prefers dark mode")
    assert memory.models.embedder is not None
    model = memory.models.embedder.model
    wait_until(lambda: memory.store.vectors.pending(model) == 0, what="its vector")
