from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import indent

import anyio
import pytest

from mcp import Client
from mindex.clock import now_ms
from mindex.mcp.dialect import dialect_named
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.native.retrieval import MAX_BUDGET
from mindex.mcp.server import MindexServer
from mindex.mcp.server_options import ServerOptions
from mindex.present.token_count import count_tokens
from tests.conftest import write
from tests.mcp.conftest import KEYWORD, Served, structured, text
from tests.running import wait_until

pytestmark = pytest.mark.anyio


# ── what to do next ───────────────────────────────────────────────────────────────────────────────────────────


async def test_an_empty_memory_names_the_tools_that_fill_it(own: Served) -> None:
    async with Client(own.server) as client:
        result = await client.call_tool("search", {"query": "redis"})
    note = "the memory is empty; `index` adds a folder, `remember` a fact"
    assert structured(result)["notes"] == [note]
    assert f"note: {note}" in text(result)


async def test_an_expired_match_names_the_argument_that_shows_it(own: Served) -> None:
    memory = own.host.memory
    id_ = memory.add("The lift is broken today.", expires=now_ms() + 1_000).id
    wait_until(lambda: now_ms() > (memory.entries.find(id_).expires_at or 0), what="its end")
    async with Client(own.server) as client:
        hidden = structured(await client.call_tool("search", {"query": "lift"}))
        shown = structured(await client.call_tool("search", {"query": "lift", "include_expired": True}))
    assert (hidden["results"], hidden["notes"]) == ([], ["1 expired; include_expired shows it"])
    assert [row["id"] for row in shown["results"]] == [id_]


# ── what a client sees before it calls ────────────────────────────────────────────────────────────────────────


async def test_tools_come_in_a_fixed_order(client: Client) -> None:
    names = [tool.name for tool in (await client.list_tools()).tools]
    assert names == ["search", "get", "remember", "update", "forget", "index", "status"]


async def test_all_schemas_together_are_lean(client: Client) -> None:
    listed = [tool.model_dump(by_alias=True, exclude_none=True) for tool in (await client.list_tools()).tools]
    published = json.dumps({"tools": listed}, ensure_ascii=False, separators=(",", ":"))
    assert len(published.encode()) / 4 <= 1_700
    for word in ('"title"', '"default"', '"anyOf"', '"outputSchema"'):
        assert word not in published


async def test_every_tool_has_its_annotations(client: Client) -> None:
    annotations = {tool.name: tool.annotations for tool in (await client.list_tools()).tools}
    for name, hints in annotations.items():
        assert hints is not None
        assert hints.read_only_hint is (name in ("search", "get", "status"))
        # Every changed or forgotten entry can be restored; only an undo does something else the second time.
        assert hints.idempotent_hint is (name != "update")
        assert (hints.destructive_hint, hints.open_world_hint) == (False, False)


async def test_search_has_an_argument_for_every_filter(client: Client) -> None:
    search = (await client.list_tools()).tools[0]
    filters = {"kind", "type", "collection", "path", "tags", "all_tags", "min_importance", "min_confidence"}
    more = {"after", "before", "include_expired", "current_file", "entities", "as_of"}
    assert filters | more <= set(search.input_schema["properties"])


async def test_instructions_tell_when_to_search_and_remember_and_name_collections(client: Client) -> None:
    assert client.instructions is not None
    assert "Search it before you answer" in client.instructions
    assert "`remember` facts, preferences, decisions and corrections that matter" in client.instructions
    assert "never secrets" in client.instructions
    assert "call `update` with its id and `supersedes`" in client.instructions
    assert count_tokens(client.instructions) <= 250
    assert "Indexed: handbook." in client.instructions


async def test_instructions_contain_the_context_of_a_collection(own: Served) -> None:
    own.host.memory.index(write(own.root / "notes", {"a.md": "one"}), context="Notes of the harbour office")
    own.host.memory.index(write(own.root / "more", {"a.md": "two"}))
    async with Client(MindexServer(own.host, dialect_named("native"))) as client:
        assert client.instructions is not None
        assert client.instructions.endswith(" Indexed: more, notes (Notes of the harbour office).")


# ── search ────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_search_returns_a_passage_as_text_and_as_json(client: Client) -> None:
    result = await client.call_tool("search", {"query": "allkeys-lfu"})
    assert not result.is_error
    first = structured(result)["results"][0]
    assert first["at"] == "domains/caching/redis.md:30-33"  # of the lines 15 to 34
    assert indent(first["text"], "  ") in text(result)
    assert f"{first['id']} · {first['at']} · Redis TTL and eviction policies" in text(result)
    assert structured(result)["tier"] == "keyword"


async def test_the_text_is_lean_not_indented_json(client: Client) -> None:
    message = text(await client.call_tool("search", {"query": "redis", "view": "compact"}))
    assert not message.startswith("{")
    assert len(message.splitlines()) == 1 + 5 + 1  # head, results, the note that there is no model


@pytest.mark.parametrize("view", ["digest", "compact", "full", "dual"])
@pytest.mark.parametrize("budget", [50, 120, 400])
async def test_no_view_costs_more_than_its_budget(client: Client, view: str, budget: int) -> None:
    result = await client.call_tool("search", {"query": "redis", "view": view, "budget": budget})
    assert count_tokens(text(result)) <= budget
    assert count_tokens(json.dumps(structured(result), ensure_ascii=False, separators=(",", ":"))) <= budget


async def test_the_default_budget_is_4000_tokens(client: Client) -> None:
    query = {"query": "station", "limit": 50, "view": "full"}
    usual = structured(await client.call_tool("search", query))
    assert usual == structured(await client.call_tool("search", {**query, "budget": 4_000}))
    whole = await client.call_tool("search", {**query, "budget": MAX_BUDGET})
    assert structured(whole)["tokens"] > 4_000 >= usual["tokens"]


async def test_without_a_budget_passages_have_140_tokens_for_each_result(client: Client) -> None:
    for limit in (3, 5, 10):
        query = {"query": "station", "limit": limit}
        usual = structured(await client.call_tool("search", query))
        assert 100 * limit < usual["tokens"] <= 140 * limit


async def test_only_hits_that_the_budget_leaves_count_as_accessed(own: Served) -> None:
    memory = own.host.memory
    for number in range(5):
        memory.add(f"The lift of house {number} is broken. " + f"It waits for part {number} of the maker. " * 30)
    async with Client(own.server) as client:
        for view in ("full", "dual"):
            memory.store.settle()
            before = memory.maintenance.statistics().accesses
            shown = structured(await client.call_tool("search", {"query": "lift", "view": view, "budget": 100}))
            ids = {row["id"] for row in (*shown.get("index", ()), *shown.get("details", shown.get("results", ())))}
            assert 0 < len(ids) < 5
            memory.store.settle()
            assert memory.maintenance.statistics().accesses == before + len(ids)
    rows = memory.list().records
    usage = memory.entries.usage([row.id for row in rows])
    assert sum(one.access_count for one in usage.values()) == memory.maintenance.statistics().accesses


async def test_a_budget_too_large_is_cut_with_a_note(client: Client) -> None:
    result = await client.call_tool("search", {"query": "redis", "budget": 10**9})
    assert f"budget cut to {MAX_BUDGET}" in structured(result)["notes"]


async def test_a_limit_too_large_is_cut_with_a_note(client: Client) -> None:
    result = await client.call_tool("search", {"query": "redis", "limit": 10**9, "view": "digest"})
    assert "limit cut to 50, the maximum" in structured(result)["notes"]


async def test_weak_hits_are_left_out_on_request(client: Client) -> None:
    query = {"query": "redis lookup harvest orchard"}
    shown = structured(await client.call_tool("search", query))["results"]
    assert shown and all(row["weak"] for row in shown)
    assert structured(await client.call_tool("search", {**query, "weak": True}))["results"] == shown
    assert structured(await client.call_tool("search", {**query, "weak": False}))["results"] == []


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"query": ""}, "the query is empty; pass the words to search for"),
        ({"query": "redis", "limit": 0}, "limit 0 is too small; use 1 to 50"),
        ({"query": "redis", "offset": -1}, "offset -1 is too small; use 0 or more"),
        ({"query": "redis", "budget": 49}, "a budget of 49 tokens is too small; allow at least 50"),
        ({"query": "redis", "collection": ["nope"]}, "unknown collection 'nope'; use one of handbook"),
        ({"query": "redis", "kind": "chunks"}, "unknown kind 'chunks'; use one of chunk, memory"),
        ({"query": "redis", "after": "soon"}, "'soon' is not a time; write today"),
        ({"query": "redis", "min_importance": 11}, "min_importance: input should be less than or equal to 10"),
        ({"query": "redis", "view": "long"}, "view: input should be 'passages', 'full', 'compact'"),
        ({"limit": 3}, "argument 'query' is missing; search takes query, limit"),
        ({"query": "redis", "topK": 3}, "unknown argument 'topK'; search takes query, limit"),
    ],
)
async def test_errors_name_the_next_step(client: Client, arguments: dict[str, object], complaint: str) -> None:
    result = await client.call_tool("search", arguments)
    assert result.is_error
    assert text(result).startswith(complaint)
    assert "\n" not in text(result)
    assert "pydantic" not in text(result)


async def test_filters_reach_the_search(client: Client) -> None:
    arguments = {"query": "redis", "path": "domains/billing", "collection": "handbook", "kind": ["chunk"]}
    assert all(
        row["path"].startswith("domains/billing")
        for row in structured(await client.call_tool("search", arguments))["results"]
    )


async def test_null_means_left_out(client: Client) -> None:
    arguments = {"query": "redis", "limit": None, "tags": None, "after": None, "view": None}
    result = await client.call_tool("search", arguments)
    assert len(structured(result)["results"]) == 5


async def test_explain_returns_the_ranks(client: Client) -> None:
    result = await client.call_tool("search", {"query": "allkeys-lfu", "limit": 1, "explain": True})
    assert structured(result)["results"][0]["explain"]["keyword_rank"] == 1
    assert ", keyword rank 1, " in text(result)


# ── get ───────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_get_takes_ids_spans_and_lists(client: Client) -> None:
    found = structured(await client.call_tool("search", {"query": "PolicyController", "view": "digest"}))["results"][0]
    result = await client.call_tool("get", {"refs": [found["id"][:8], "architecture.md:1-3"]})
    records = structured(result)["records"]
    assert [records[0]["id"], records[1]["last_line"]] == [found["id"], 3]
    assert "PolicyController" in text(result)


async def test_one_reference_need_not_be_a_list(client: Client) -> None:
    result = await client.call_tool("get", {"refs": "architecture.md"})
    assert structured(result)["records"][0]["path"] == "architecture.md"


async def test_missing_references_are_named_with_the_found_ones(client: Client) -> None:
    result = await client.call_tool("get", {"refs": ["architecture.md:1-3", "nope.md"]})
    assert not result.is_error
    assert structured(result)["missing"] == ["nope.md"]
    assert "missing: nope.md" in text(result)


async def test_nothing_found_is_an_error(client: Client) -> None:
    result = await client.call_tool("get", {"refs": ["nope.md"]})
    assert result.is_error
    assert text(result) == "nothing found for nope.md; search for it first"


async def test_lines_beyond_the_end_return_the_number_of_lines(client: Client) -> None:
    result = await client.call_tool("get", {"refs": ["architecture.md:9000-9001"]})
    assert result.is_error
    assert re.fullmatch(r"nothing found for architecture.md:9000-9001; architecture.md has \d+ lines", text(result))
    result = await client.call_tool("get", {"refs": ["architecture.md:1-3", "architecture.md:9000"]})
    assert structured(result)["missing"] == ["architecture.md:9000"]
    assert any(note.startswith("architecture.md has ") for note in structured(result)["notes"])


@pytest.mark.parametrize("budget", [50, 100, 300, 1_000])
async def test_get_obeys_its_budget(client: Client, budget: int) -> None:
    result = await client.call_tool("get", {"refs": ["*.md"], "budget": budget})
    assert count_tokens(text(result)) <= budget
    assert count_tokens(json.dumps(structured(result), ensure_ascii=False, separators=(",", ":"))) <= budget
    assert structured(result)["records"]
    assert structured(result)["records"][-1]["truncated"]


# ── index and status ──────────────────────────────────────────────────────────────────────────────────────────


async def test_index_takes_a_folder_below_the_root_and_reports_progress(own: Served) -> None:
    write(own.root / "docs", {f"page{n}.md": f"# Page {n}\n\nText of page {n}." for n in range(5)})
    heard: list[tuple[float, float | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, total))

    async with Client(own.server) as client:
        result = await client.call_tool("index", {"path": "docs"}, progress_callback=hear)
    assert structured(result)["collections"][0]["files"]["new"] == 5
    assert text(result).startswith("docs (")
    assert heard[-1] == (5, 5)
    assert [done for done, _ in heard] == sorted({done for done, _ in heard})


async def test_a_cancelled_index_stops_and_loses_nothing(own: Served) -> None:
    write(own.root / "docs", {f"{n}.md": f"# Page {n}\n\nText." for n in range(300)})
    with anyio.CancelScope() as waiting:

        async def give_up(progress: float, total: float | None, message: str | None) -> None:
            waiting.cancel()

        async with Client(own.server) as client:
            await client.call_tool("index", {"path": "docs"}, progress_callback=give_up)
    assert waiting.cancelled_caught
    assert own.host.memory.status().collections[0].documents < 300
    assert own.host.memory.index().collections[0].seen == 300
    assert own.host.memory.status().collections[0].documents == 300


async def test_index_without_a_path_brings_collections_up_to_date(own: Served) -> None:
    write(own.root / "docs", {"a.md": "# A\n\nOne."})
    async with Client(own.server) as client:
        await client.call_tool("index", {"path": "docs"})
        write(own.root / "docs", {"b.md": "# B\n\nTwo."})
        again = structured(await client.call_tool("index", {}))
        by_name = structured(await client.call_tool("index", {"path": "docs", "force": True}))
    assert again["collections"][0]["files"]["new"] == 1
    assert by_name["collections"][0]["files"]["changed"] == 2


async def test_nothing_outside_the_root_is_indexed(own: Served, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = write(tmp_path_factory.mktemp("outside"), {"secret.md": "# Secret"})
    (own.root / "link").symlink_to(outside)
    async with Client(own.server) as client:
        for path in (str(outside), "..", f"../{outside.name}", "link", "\0"):
            result = await client.call_tool("index", {"path": path})
            assert result.is_error, path
    assert own.host.memory.store.files.collections() == ()


async def test_a_known_collection_may_lie_outside_the_root(
    own: Served, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = write(tmp_path_factory.mktemp("elsewhere"), {"page.md": "# Page\n\nText."})
    own.host.memory.index(outside)
    async with Client(own.server) as client:
        for path in (outside.name, str(outside)):
            assert not (await client.call_tool("index", {"path": path})).is_error


async def test_only_the_first_skipped_files_are_listed(own: Served) -> None:
    for number in range(30):
        path = own.root / "docs" / f"{number}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"\0\1\2")
    async with Client(own.server) as client:
        result = structured(await client.call_tool("index", {"path": "docs"}))
    assert len(result["skipped"]) == 20
    assert result["notes"] == ["10 more files were skipped; to see them all, ask the user to run `mindex index`"]


async def test_status_returns_collections_and_counts(client: Client, handbook_server: Served) -> None:
    result = await client.call_tool("status", {})
    (collection,) = structured(result)["collections"]
    assert (collection["name"], collection["documents"]) == ("handbook", 14)
    assert f"collection handbook: {handbook_server.root / 'handbook'}" in text(result)


# ── errors of ours ────────────────────────────────────────────────────────────────────────────────────────────


async def test_every_call_returns_why_the_database_cannot_be_opened(tmp_path: Path) -> None:
    host = MemoryHost(ServerOptions(db=str(tmp_path)))
    async with Client(MindexServer(host, dialect_named("native"))) as client:
        for tool, arguments in (("search", {"query": "redis"}), ("status", {})):
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert "is a folder, not a database" in text(result)
    host.close()


async def test_a_bug_is_an_error_without_details(
    own: Served, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> None:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr(own.host.memory, "status", broken)
    async with Client(own.server) as client:
        result = await client.call_tool("status", {})
    assert result.is_error
    assert text(result) == "status failed; the server's log on stderr says why"
    assert "the secret inside" in caplog.text


# ── which folders may be indexed ──────────────────────────────────────────────────────────────────────────────


async def test_a_collection_whose_folder_became_a_link_does_not_lead_out_of_the_root(own: Served) -> None:
    secret = own.root.parent / f"{own.root.name}-secret"
    write(secret, {"a.md": "The vault code is 4711"})
    docs = write(own.root / "docs", {"a.md": "Backups run at noon"})
    async with Client(own.server) as client:
        await client.call_tool("index", {"path": "docs"})
        docs.rename(own.root / "before")
        docs.symlink_to(secret)
        for path in ("docs", str(docs), str(own.root / "docs" / "."), ""):
            result = await client.call_tool("index", {"path": path})
            assert "leads to" in text(result) or "lies outside" in text(result)
    assert [record.text for record in own.host.memory.list().records] == ["Backups run at noon"]
    assert [one.name for one in own.host.memory.collections.list()] == ["docs"]


@pytest.mark.parametrize("start", ["/", "{home}", "{home}/.."])
async def test_a_server_started_in_a_home_folder_or_above_indexes_only_what_is_known(
    tmp_path: Path, database: str, monkeypatch: pytest.MonkeyPatch, start: str
) -> None:
    home = tmp_path / "users" / "ann"
    docs, other = write(home / "docs", {"a.md": "one"}), write(home / "other", {"b.md": "two"})
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(start.format(home=home))
    host = MemoryHost(ServerOptions(db=database, settings=KEYWORD))
    host.memory.index(docs)
    write(docs, {"c.md": "three"})
    async with Client(MindexServer(host, dialect_named("native"))) as client:
        assert (await client.call_tool("index", {"path": "docs"})).is_error is False
        for path in ("other", str(other), ".", "/etc"):
            refused = await client.call_tool("index", {"path": path})
            assert refused.is_error
            assert "--root" in text(refused)
    assert {record.text for record in host.memory.list().records} == {"one", "three"}
    host.close()
