"""Memory MCP's users change one line: its tools, its JSON, its errors and its budget."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND

from mcp import Client, MCPError, StdioServerParameters
from mindex.clock import now_ms
from mindex.datatypes import TYPES, Answer, Hit, Record
from mindex.entries.new_memory import NewMemory
from mindex.memory import Memory
from mindex.times.typed import parse_time
from mindex_compat.dialects import memory_mcp
from mindex_compat.dialects.memory_mcp import all_words
from mindex_compat.dialects.memory_mcp_recall_budget import RecallResult, recall_text
from mindex_compat.dialects.memory_mcp_rules import FAMILIES, classify, days_kept, entity_type
from tests.mcp.conftest import KEYWORD, Served, structured, text
from tests.mcp.test_serve import MINDEX
from tests.running import wait_until

pytestmark = pytest.mark.anyio

DAY_MS = 86_400_000
STANDARD = ["id", "type", "summary", "content", "importance", "created_at", "last_accessed"]
DUAL = ["index", "details", "total_count", "has_more", "tokens_used", "query"]


@pytest.fixture
def served(serving: Callable[..., Served]) -> Served:
    return serving("memory-mcp")


@pytest.fixture
def memory(served: Served) -> Memory:
    return served.host.memory


@pytest.fixture
async def client(served: Served) -> AsyncIterator[Client]:
    async with Client(served.server) as connected:
        yield connected


async def call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """The answer, of which text and structured content are the same."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    answered: dict[str, Any] = json.loads(text(result))
    assert structured(result) == answered
    lines = recall_text(answered) if tool == "memory_recall" else json.dumps(answered, ensure_ascii=False, indent=2)
    assert text(result) == lines
    return answered


async def refused(client: Client, tool: str, **arguments: object) -> str:
    """The message of an error of the tool."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return text(result)


async def stored(client: Client, content: str, **more: object) -> str:
    return str((await call(client, "memory_store", content=content, **more))["id"])


async def recalled(client: Client, query: str, **more: object) -> list[str]:
    return [entry["id"] for entry in (await call(client, "memory_recall", query=query, **more))["index"]]


# ── its names ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_tools_and_arguments_of_memory_mcp(client: Client) -> None:
    arguments = {tool.name: list(tool.input_schema["properties"]) for tool in (await client.list_tools()).tools}
    assert arguments == {
        "memory_store": [
            "content", "id", "type", "importance", "entities", "tags", "metadata", "ttl_days", "expires_at",
            "provenance",
        ],
        "memory_recall": [
            "query", "max_tokens", "type", "entities", "limit", "offset", "minImportance", "includeExpired",
        ],
        "memory_forget": ["id", "reason"],
    }  # fmt: skip


# ── a whole life ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_stored_recalled_corrected_and_forgotten(client: Client, memory: Memory) -> None:
    kept = await call(client, "memory_store", content="Ana prefers TypeScript with strict mode.", type="self")
    assert list(kept) == [*STANDARD, "entities"]
    assert (kept["type"], kept["content"]) == ("self", "Ana prefers TypeScript with strict mode.")
    assert kept["created_at"] == kept["last_accessed"]
    assert kept["created_at"].endswith("Z")
    assert "Ana" in kept["entities"]

    answer = await call(client, "memory_recall", query="typescript")
    assert list(answer) == DUAL
    assert answer["index"] == [{name: kept[name] for name in ("id", "summary")}]
    assert answer["details"] == [kept]
    assert (answer["total_count"], answer["has_more"], answer["query"]) == (1, False, "typescript")

    changed = await call(client, "memory_store", id=kept["id"], content="Ana prefers Python.", type="fact")
    assert (changed["id"], changed["type"], changed["summary"]) == (kept["id"], "self", "Ana prefers Python.")
    assert await recalled(client, "python") == [kept["id"]]
    assert await recalled(client, "typescript") == []

    gone = await call(client, "memory_forget", id=kept["id"], reason="she moved on")
    assert (gone["success"], gone["memory_id"]) == (True, kept["id"])
    assert "she moved on" in gone["message"]
    assert await recalled(client, "python") == []
    assert [change.action for change in memory.history(kept["id"])] == ["add", "update", "forget"]
    memory.restore(kept["id"])
    assert await recalled(client, "python") == [kept["id"]]


async def test_a_recall_counts_as_an_access(client: Client, memory: Memory) -> None:
    id_ = await stored(client, "The office is in Bern.")
    await recalled(client, "office")
    memory.store.settle()
    assert memory.store.retrieval.ranking_signals([id_])[id_].access_count == 1


async def test_an_update_merges_metadata_and_replaces_tags_and_entities(client: Client, memory: Memory) -> None:
    content = "The gateway talks to Redis."
    origin = {"source": "chat", "timestamp": "2026-03-01T10:00:00Z", "context": "planning", "user_id": "u1"}
    given = {"tags": ["a", "b"], "entities": ["Redis"], "metadata": {"x": 1, "y": 2}, "provenance": origin}
    id_ = await stored(client, content, **given)
    record = memory.store.retrieval.record(id_)
    assert record is not None
    assert (record.source, record.context) == ("chat", "planning")
    assert record.fields == {
        "ttl_days": days_kept(record.importance or 0),
        "entities": {"Redis": {"type": "technology"}},
        "metadata": {"x": 1, "y": 2},
        "provenance": {"timestamp": "2026-03-01T10:00:00Z", "user_id": "u1"},
    }
    kept = await call(
        client, "memory_store", id=id_, content=content, tags=["c"], entities=[], metadata={"y": 3, "z": 4}
    )
    assert "entities" not in kept
    record = memory.store.retrieval.record(id_)
    assert record is not None
    assert (record.tags, record.fields["metadata"]) == (("c",), {"x": 1, "y": 3, "z": 4})
    assert "entities" not in record.fields
    assert record.source == "chat"


async def test_a_secret_in_the_metadata_is_not_stored_either(client: Client, memory: Memory) -> None:
    key = "ghp_" + "a8Kd02LmQx71ZpTr55VwYb3NcE9uHs46JfGi"
    id_ = await stored(client, "The deploy key is in the vault.", metadata={"notes": [{"key": key}]})
    record = memory.store.retrieval.record(id_)
    assert record is not None
    assert "[redacted:" in json.dumps(dict(record.fields))
    assert key not in json.dumps(dict(record.fields))


# ── types, importance, lifetime ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "type_"),
    [
        ("User prefers dark mode", "self"),
        ("I work best in the morning.", "self"),
        ("Ana likes short functions.", "self"),
        ("The gateway depends on Redis.", "relationship"),
        ("Mara reports to Jonas.", "relationship"),
        ("FastAPI is a web framework for Python.", "entity"),
        ("Jonas Berg, head of billing", "entity"),
        ("The nightly backup takes forty minutes.", "fact"),
    ],
)
async def test_a_type_that_is_not_given_is_found_by_rules(client: Client, content: str, type_: str) -> None:
    assert classify(content) == type_
    assert (await call(client, "memory_store", content=content))["type"] == type_


def test_every_type_of_ours_belongs_to_one_of_the_four() -> None:
    assert sorted(type_ for types in FAMILIES.values() for type_ in types) == sorted(TYPES)


async def test_a_memory_of_another_type_is_recalled_as_its_family(client: Client, memory: Memory) -> None:
    """A client that knows four types meets no fifth, and its filter finds what it is shown as."""
    added = {type_: memory.add(f"A note about lighthouses, of type {type_}.", type=type_).id for type_ in TYPES}
    answer = await call(client, "memory_recall", query="lighthouses", max_tokens=5_000)
    assert {entry["id"] for entry in answer["details"]} == set(added.values())
    assert {entry["type"] for entry in answer["details"]} == {"fact", "entity", "relationship", "self"}
    shown = {entry["id"]: entry["type"] for entry in answer["details"]}
    assert shown[added["preference"]] == "self"
    for family in FAMILIES:
        of_it = {id_ for id_, type_ in shown.items() if type_ == family}
        assert set(await recalled(client, "lighthouses", type=family, max_tokens=5_000)) == of_it


async def test_a_lifetime_begins_again_when_a_memory_is_recalled(
    client: Client, memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A date does not, a lifetime does, at most once a day."""
    start = now_ms()
    by_rule = await stored(client, "The lift by the canteen is slow.", importance=4)
    by_days = await stored(client, "The lift by the door is broken.", ttl_days=3)
    by_date = await stored(client, "The lift in the yard is new.", expires_at="2099-05-01T12:00:00Z")
    forever = await stored(client, "The lift in the tower is old.", ttl_days=None)

    def days_left(id_: str) -> float | None:
        expires = memory.entries.find(id_).expires_at
        return None if expires is None else round((expires - start) / DAY_MS, 2)

    monkeypatch.setattr(memory_mcp, "now_ms", lambda: start + DAY_MS // 2)
    await recalled(client, "lift")
    assert (days_left(by_rule), days_left(by_days)) == (90, 3)
    monkeypatch.setattr(memory_mcp, "now_ms", lambda: start + 2 * DAY_MS)
    date = days_left(by_date)
    await recalled(client, "lift")
    await recalled(client, "lift")
    assert [days_left(one) for one in (by_rule, by_days, by_date, forever)] == [92, 5, date, None]
    assert [change.reason for change in memory.history(by_days)] == ["", "recalled"]
    await call(client, "memory_store", id=by_days, content="The lift by the door is broken.", expires_at="2099-05-01")
    assert "ttl_days" not in memory.entries.find(by_days).fields


@pytest.mark.parametrize(
    ("value", "days"), [("14", 14), ("0.5", 0.5), ("", 90), ("never", 90), ("0", 90), ("-3", 90), ("nan", 90)]
)
def test_a_variable_sets_the_default_lifetime(monkeypatch: pytest.MonkeyPatch, value: str, days: float) -> None:
    monkeypatch.setenv("DEFAULT_TTL_DAYS", value)
    assert days_kept(5) == days
    assert days_kept(10) is None


ENTITIES = """
person: Ana Silva | Ana Silva leads the billing team.
person: Jonas | Jonas said that the deploy is late.
person: @mara | Ask @mara about the keys.
person: Weber | The invoice goes to Dr. Weber.
organization: Globex Corp | Globex Corp bought the licence.
organization: Initech | Ana works for Initech since May.
organization: Technical University | The course is held at the Technical University.
project: Falcon | The project Falcon ends in June.
project: Bluebird | We froze the Bluebird repository.
technology: TypeScript | The frontend is written in TypeScript.
technology: FastAPI | FastAPI serves the API.
technology: Python 3.12 | The importer needs Python 3.12.
technology: Node.js | The widgets run on Node.js.
location: Berlin | The office is in Berlin.
location: Lake Garda | The retreat is at Lake Garda.
location: Oberndorf | The warehouse is located in Oberndorf.
document: README.md | The steps are in README.md.
document: RFC 9110 | RFC 9110 defines the methods.
concept: dark-mode | The user likes dark-mode.
concept: SLA | The SLA allows an hour.
other: Thursday | The canteen closes on Thursday.
""".strip().splitlines()


@pytest.mark.parametrize("line", ENTITIES)
def test_an_entity_has_a_type(line: str) -> None:
    type_, _, rest = line.partition(": ")
    name, _, content = rest.partition(" | ")
    assert entity_type(name, content) == type_


async def test_a_memory_keeps_the_types_of_its_entities(client: Client, memory: Memory) -> None:
    id_ = await stored(client, "Ana Silva leads the project Falcon in Berlin.")
    types = memory.entries.find(id_).fields["entities"]
    assert types == {"Ana Silva": {"type": "person"}, "Falcon": {"type": "project"}, "Berlin": {"type": "location"}}
    await stored(client, "Globex Corp pays for it.", id=id_)
    assert memory.entries.find(id_).fields["entities"] == {"Globex Corp": {"type": "organization"}}
    secret = "ghp_" + "a8Kd02LmQx71ZpTr55VwYb3NcE9uHs46JfGi"
    id_ = await stored(client, f"The key of Ana Silva is {secret}.", entities=["Ana Silva", secret])
    assert secret not in str(memory.entries.find(id_).fields)


@pytest.mark.parametrize(("given", "kept"), [(0, 1), (0.4, 1), (1, 1), (7, 7), (7.6, 8), (10, 10)])
async def test_the_result_shows_the_stored_importance(client: Client, given: float, kept: int) -> None:
    assert (await call(client, "memory_store", content="The office is in Bern.", importance=given))[
        "importance"
    ] == kept


@pytest.mark.parametrize(
    ("importance", "days"),
    [(0, 7), (1, 7), (2, 30), (3, 30), (4, 90), (5, 90), (6, 180), (7, 180), (8, 365), (9, 365), (10, None)],
)
async def test_a_lifetime_follows_from_importance(
    client: Client, memory: Memory, importance: int, days: int | None
) -> None:
    assert days_kept(importance) == days
    record = memory.store.retrieval.record(await stored(client, "The office is in Bern.", importance=importance))
    assert record is not None
    if days is None:
        assert record.expires_at is None
    else:
        assert record.expires_at == pytest.approx(record.created_at + days * DAY_MS, abs=60_000)


async def test_a_lifetime_can_be_set_changed_and_removed(client: Client, memory: Memory) -> None:
    content = "The office is in Bern."

    async def expiry(**given: object) -> int | None:
        record = memory.store.retrieval.record(await stored(client, content, **given))
        assert record is not None
        return record.expires_at

    id_ = await stored(client, content, ttl_days=1.5)
    record = memory.store.retrieval.record(id_)
    assert record is not None
    assert record.expires_at == pytest.approx(now_ms() + 1.5 * DAY_MS, abs=60_000)
    assert await expiry(id=id_, ttl_days=None) is None
    assert await expiry(id=id_, importance=2) is None  # an update that says nothing about it leaves it
    moment = "2099-05-01T12:00:00.000Z"
    assert await expiry(id=id_, expires_at=moment, ttl_days=3) == parse_time(moment)


@pytest.mark.slow
async def test_expired_memories_are_recalled_only_with_include_expired(client: Client, memory: Memory) -> None:
    id_ = await stored(client, "The lift is broken today.", ttl_days=0.000_02)
    record = memory.store.retrieval.record(id_)
    assert record is not None
    assert record.expires_at is not None
    wait_until(lambda: now_ms() > (record.expires_at or 0), what="its end")
    hidden = await call(client, "memory_recall", query="lift")
    assert (hidden["index"], hidden["total_count"]) == ([], 0)
    assert hidden["notes"] == ["1 expired; includeExpired shows it"]
    assert await recalled(client, "lift", includeExpired=True) == [id_]
    other = await call(client, "memory_recall", query="zebra")  # does not match it
    assert other["notes"] == ["agent main has no memories yet; `memory_store` adds one"]


@pytest.mark.slow
async def test_notes_reach_the_answer(client: Client, memory: Memory) -> None:
    empty = await call(client, "memory_recall", query="coding")
    assert empty["notes"] == ["the memory is empty; `memory_store` fills it"]
    await stored(client, "Coding starts at nine.")
    assert "notes" not in await call(client, "memory_recall", query="coding")
    loose = await call(client, "memory_recall", query="coding soup")
    assert loose["notes"] == ["nothing matches all of it; this is what any of its words finds"]
    gone = await stored(client, "The soup of today is pea soup.", ttl_days=0.000_02)
    wait_until(lambda: now_ms() > (memory.entries.find(gone).expires_at or 0), what="its end")
    both = await call(client, "memory_recall", query="soup today")
    assert both["notes"][-1] == "1 expired; includeExpired shows it"


async def test_the_weights_of_the_four_signals_are_settings(serving: Callable[..., Served]) -> None:
    weights = {"signals": 0.2, "importance": 0.1, "recency": 0.3, "frequency": 0.4}
    settings = {**KEYWORD, **{f"search.weights.{name}": weight for name, weight in weights.items()}}
    served = serving("memory-mcp", settings=settings)
    async with Client(served.server) as client:
        await stored(client, "The office is in Bern.", importance=8)
    hit = served.host.memory.search("office", mode="keyword", fusion="signals", floor=0).hits[0]
    assert hit.score == pytest.approx(0.2 * 1 + 0.8 * (0.1 * 0.8 + 0.3 * 1 + 0.4 * 0) / 0.8, abs=0.01)


async def test_its_server_loads_no_embedding_model(serving: Callable[..., Served]) -> None:
    served = serving("memory-mcp", settings={})  # with the default provider of embeddings
    async with Client(served.server) as client:
        id_ = await stored(client, "The office is in Bern.")
        assert await recalled(client, "office") == [id_]
    memory = served.host.memory
    assert memory.models.embedder is None
    with Memory(
        memory.settings.database, query_wait=0
    ) as other:  # its vector is left to the first search that needs it
        embedder = other.models.embedder
        assert embedder is not None
        assert [record.id for record in other.store.vectors.pending_records(embedder.model, 9)] == [id_]


# ── recall, by the examples of Memory MCP ────────────────────────────────────────────────────────────────────────────

NOTES = {
    "ts": "The frontend is written in TypeScript.",
    "style": "Notes on coding preferences: small functions, early returns.",
    "apart": "Coding goes before preferences of any kind.",
    "python": "Python runs the importer.",
    "js": "JavaScript runs the widgets.",
    "program": "The program starts at nine.",
    "programmer": "Every programmer here reviews drafts.",
    "programming": "Pair programming on Tuesdays.",
    "other": "The canteen serves soup.",
}


@pytest.fixture
async def notes(client: Client) -> dict[str, str]:
    return {await stored(client, content): name for name, content in NOTES.items()}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("{content}: typescript", {"ts"}),
        ("{summary}: typescript", {"ts"}),  # whole only among the identifiers, as in {content}
        ('"coding preferences"', {"style"}),
        ("python OR javascript", {"python", "js"}),
        ("program*", {"program", "programmer", "programming"}),
        ("coding NOT functions", {"apart"}),
        ("coding preferences", {"style", "apart"}),  # all of the words …
        ("coding soup", {"style", "apart", "other"}),  # … and any of them if nothing has all
        ("What are the user's coding preferences?", {"style", "apart"}),
        ("runs widgets", {"js"}),
        ("(((", set()),
        ('"', set()),
        ("zebra", set()),
    ],
)
async def test_queries_have_the_operators_of_memory_mcp(
    client: Client, notes: dict[str, str], query: str, names: set[str]
) -> None:
    answer = await call(client, "memory_recall", query=query)
    assert {notes[entry["id"]] for entry in answer["index"]} == names
    assert answer["query"] == query
    assert answer["total_count"] == len(names)


async def test_a_word_in_the_content_is_found_however_its_letters_are_written(client: Client) -> None:
    ids = {await stored(client, f"The frontend is {word}.") for word in ("TypeScript", "typescript", "Typescript")}
    await stored(client, "A script of any type runs.")
    for query in ("{content}: typescript", "content:TypeScript"):
        answer = await call(client, "memory_recall", query=query)
        assert {entry["id"] for entry in answer["index"]} == ids
        assert "notes" not in answer


async def test_a_memory_is_changed_by_the_id_that_it_had_before_an_import(client: Client, memory: Memory) -> None:
    id_ = memory.add("Builds run on Fridays", fields={"foreign_ids": {"memory-mcp": "mem_b"}}).id
    assert (await call(client, "memory_store", id="mem_b", content="Builds run on Mondays"))["id"] == id_
    assert (await call(client, "memory_forget", id="mem_b"))["memory_id"] == id_


def test_only_plain_words_are_all_required() -> None:
    assert all_words("coding preferences") == '"coding" "preferences"'
    assert all_words("python OR javascript") == "python OR javascript"
    assert all_words('a "b') == '"a" "b"'
    assert all_words("(") == "("


async def test_filters_act(client: Client) -> None:
    low = await stored(client, "Mara knows Redis.", importance=2, entities=["Mara"])
    high = await stored(client, "Jonas knows Redis.", importance=9, entities=["Jonas"], type="entity")
    assert set(await recalled(client, "redis")) == {low, high}
    assert await recalled(client, "redis", minImportance=8.5) == [high]
    assert await recalled(client, "redis", entities=["mara", "nobody"]) == [low]
    assert await recalled(client, "redis", type="entity") == [high]


async def test_its_four_signals_and_nothing_else_make_the_score(client: Client, memory: Memory) -> None:
    ids = [await stored(client, f"Redis note number {n}.", importance=n) for n in (3, 9, 6)]
    assert await recalled(client, "redis") == [ids[1], ids[2], ids[0]]
    hit = memory.search("redis", mode="keyword", fusion="signals", floor=0).hits[0]
    assert hit.score == pytest.approx(0.4 * 1 + 0.3 * 0.9 + 0.2 * 1 + 0.1 * 0, abs=0.01)


async def test_pages_follow_each_other(client: Client) -> None:
    ids = {await stored(client, f"Lighthouse number {n} stands on a rock.") for n in range(7)}
    seen: list[str] = []
    for offset in (0, 3, 6):
        answer = await call(client, "memory_recall", query="lighthouse", limit=3, offset=offset)
        assert (answer["total_count"], answer["has_more"]) == (7, offset < 6)
        seen += [entry["id"] for entry in answer["index"]]
    assert set(seen) == ids
    assert len(seen) == 7


async def test_filters_that_exclude_every_match_are_named(client: Client) -> None:
    for n in range(3):
        await stored(client, f"The gateway number {n} is in Bern.", importance=4, type="fact", entities=["Bern"])

    async def notes(query: str = "gateway", **filters: object) -> list[str]:
        answer = await call(client, "memory_recall", query=query, **filters)
        assert not answer["index"]
        return answer["notes"]

    assert await notes(minImportance=8) == ["minImportance excluded 3 matches"]
    assert await notes(type="self", minImportance=2) == ["type excluded 3 matches"]
    assert await notes(entities=["Ana"], type="self", minImportance=8) == [
        "type and entities and minImportance excluded 3 matches"
    ]
    await stored(client, "The gateway is what Ana likes.", importance=9, type="self", entities=["Ana"])
    assert await notes(entities=["Bern"], type="self") == ["type and entities excluded 4 matches"]
    assert await notes("zebra", minImportance=8) == ["nothing relevant"]


async def test_a_mistyped_word_is_corrected(client: Client) -> None:
    id_ = await stored(client, "The warehouse opens at seven.")
    answer = await call(client, "memory_recall", query="warehuose")
    assert [row["id"] for row in answer["index"]] == [id_]
    assert answer["notes"] == ["no text has warehuose; these are the results for: warehouse"]


async def test_a_very_long_query_is_noted(client: Client) -> None:
    await stored(client, "The office is in Bern.")
    words = " ".join(f"word{n}" for n in range(149))
    assert (await call(client, "memory_recall", query=f"office {words}"))["notes"][-1] == (
        "the query has 150 words; a few telling ones find more"
    )


# ── the budget ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def fifty(memory: Memory) -> None:
    tale = "a long tale of storms and rocks, told slowly. " * 40
    memory.add_many(NewMemory(f"Lighthouse {number}: {tale}") for number in range(60))


@pytest.mark.parametrize("max_tokens", [100, 101, 137, 250, 500, 1_000, 2_500, 5_000])
async def test_a_result_never_exceeds_its_token_budget(client: Client, fifty: None, max_tokens: int) -> None:
    result = await client.call_tool("memory_recall", {"query": "lighthouse", "max_tokens": max_tokens, "limit": 50})
    answer = structured(result)
    assert -(-len(text(result)) // 4) == answer["tokens_used"] <= max_tokens
    assert len(json.dumps(answer, ensure_ascii=False)) / 4 <= max_tokens
    assert answer["index"]
    assert answer["total_count"] == 60
    assert answer["has_more"] is True


async def test_the_default_budget_is_1000_tokens_and_the_index_comes_first(client: Client, fifty: None) -> None:
    result = await client.call_tool("memory_recall", {"query": "lighthouse", "limit": 5})
    answer = structured(result)
    assert answer["tokens_used"] == -(-len(text(result)) // 4) <= 1_000
    assert len(answer["index"]) == 5
    assert [detail["id"] for detail in answer["details"]] == [entry["id"] for entry in answer["index"][:3]]
    assert all(detail["content"].endswith("…") for detail in answer["details"])


async def test_a_thousand_tokens_hold_twenty_index_entries_and_three_details(client: Client, memory: Memory) -> None:
    """The example of Memory MCP: 20 of 30 matches in the index, half of the budget for details."""
    about = "It checks every incoming order against the price list before the warehouse sees it, and writes a report."
    memory.add_many(
        NewMemory(f"Service {n} of the shop is written in Python with type hints. {about}") for n in range(30)
    )
    result = await client.call_tool("memory_recall", {"query": "Python", "max_tokens": 1_000})
    answer = structured(result)
    assert (len(answer["index"]), len(answer["details"]) >= 3) == (20, True)
    assert (answer["total_count"], answer["has_more"]) == (30, True)
    assert -(-len(text(result)) // 4) == answer["tokens_used"] <= 1_000
    rows = [line for line in text(result).splitlines() if line.startswith('    {"id": ')]
    assert len(rows) == len(answer["index"]) + len(answer["details"])  # a line each
    assert all(list(entry) == ["id", "summary"] for entry in answer["index"])
    assert all(len(row) <= 4 * 26 for row in rows[:20])


async def test_twenty_five_long_matches_are_shown_as_twenty_rows_and_three_details(
    client: Client, memory: Memory
) -> None:
    about = "It checks every order against the price list before the warehouse sees it, and writes a report. " * 9
    memory.add_many(NewMemory(f"Service {n} of the shop is written in Python. {about}") for n in range(25))
    answer = await call(client, "memory_recall", query="Python", max_tokens=1_000)
    assert (len(answer["index"]), len(answer["details"])) == (20, 3)
    assert answer["tokens_used"] <= 1_000
    contents = [detail["content"] for detail in answer["details"]]
    assert all(len(content) >= 160 and content.endswith("…") for content in contents)
    whole = await call(client, "memory_recall", query="Python", max_tokens=5_000)
    assert all(detail["content"] == memory.entries.find(detail["id"]).text for detail in whole["details"])


async def test_a_summary_is_cut_only_as_far_as_the_budget_asks(client: Client, memory: Memory) -> None:
    memory.add("The harbour master keeps the keys of the lighthouse in the drawer of the old desk by the window.")
    whole = (await call(client, "memory_recall", query="lighthouse"))["index"][0]["summary"]
    cut = (await call(client, "memory_recall", query="lighthouse", max_tokens=100))["index"][0]["summary"]
    assert whole.endswith("window.")
    assert cut.endswith("…") and whole.startswith(cut[:-1])


async def test_a_budget_in_which_no_detail_fits_is_all_for_the_index(client: Client, fifty: None) -> None:
    answer = await call(client, "memory_recall", query="lighthouse", max_tokens=300, limit=50)
    assert not answer["details"]
    assert answer["tokens_used"] > 270
    assert len(answer["index"]) > 10


async def test_the_total_counts_every_match_and_the_last_page_says_that_others_follow(
    client: Client, memory: Memory
) -> None:
    memory.add_many(NewMemory(f"Lighthouse number {n} stands on a rock.") for n in range(230))
    first = await call(client, "memory_recall", query="lighthouse rock")
    assert (first["total_count"], first["has_more"], "notes" in first) == (230, True, False)
    last = await call(client, "memory_recall", query="lighthouse rock", limit=50, offset=150, max_tokens=5_000)
    assert (len(last["index"]), last["total_count"], last["has_more"]) == (50, 230, False)
    assert last["notes"] == ["the best 200 of 230 matches are ranked; name more words to see others"]


async def test_amounts_too_large_are_cut(client: Client, fifty: None) -> None:
    answer = await call(client, "memory_recall", query="lighthouse", max_tokens=10**9, limit=10**9)
    assert len(answer["index"]) <= 50
    assert answer["tokens_used"] <= 5_000


ANY_TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=400)


@given(
    texts=st.lists(ANY_TEXT, max_size=12),
    query=ANY_TEXT,
    budget=st.integers(100, 1_500),
    notes=st.lists(ANY_TEXT, max_size=2),
)
def test_the_budget_is_never_exceeded(texts: list[str], query: str, budget: int, notes: list[str]) -> None:
    hits = tuple(
        Hit(Record(f"id{n:010}", "memory", text, summary=text[:200], importance=5, entities=(text[:9],)), 1.0, 1.0)
        for n, text in enumerate(texts)
    )
    answer = Answer(query, "keyword", "signals", len(hits) + 3, True, hits, notes=tuple(notes))
    shown = RecallResult(answer, query, len(hits) + 3).within(budget)
    sent = recall_text(shown)
    assert json.loads(sent) == shown
    characters = len(sent.encode("utf-16-le")) // 2  # as JavaScript counts
    assert -(-characters // 4) == shown["tokens_used"] <= budget
    assert bool(shown["index"]) is bool(hits)
    assert shown["has_more"] is True
    assert shown["total_count"] == len(hits) + 3


# ── mistakes are errors of the protocol ───────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("tool", "arguments", "code", "message"),
    [
        ("memory_store", {}, INVALID_PARAMS, "argument 'content' is missing"),
        (
            "memory_store",
            {"content": "12345", "color": 1},
            INVALID_PARAMS,
            "unknown argument 'color'; memory_store takes",
        ),
        ("memory_store", {"content": "1234"}, INTERNAL_ERROR, "content has 4 characters; use 5 to 10,000"),
        ("memory_store", {"content": "x" * 10_001}, INTERNAL_ERROR, "content has 10001 characters"),
        ("memory_store", {"content": "      "}, INVALID_PARAMS, "the text is empty"),
        (
            "memory_store",
            {"content": "words", "type": "preference"},
            INVALID_PARAMS,
            "type: input should be 'fact', 'entity', 'relationship' or 'self'",
        ),
        ("memory_store", {"content": "words", "importance": 11}, INVALID_PARAMS, "importance: input should be less"),
        ("memory_store", {"content": "words", "importance": -1}, INVALID_PARAMS, "importance: input should be greater"),
        ("memory_store", {"content": "words", "ttl_days": 0}, INVALID_PARAMS, "ttl_days: input should be greater"),
        ("memory_store", {"content": "words", "ttl_days": 1e300}, INVALID_PARAMS, "ttl_days 1e+300 is out of range"),
        ("memory_store", {"content": "words", "expires_at": "soon"}, INVALID_PARAMS, "'soon' is not a time"),
        ("memory_store", {"content": "words", "expires_at": "2001-01-01"}, INVALID_PARAMS, "the expiry is in the past"),
        (
            "memory_store",
            {"content": "words", "provenance": {"who": "me"}},
            INVALID_PARAMS,
            "provenance: unknown 'who'",
        ),
        ("memory_store", {"content": "words", "provenance": {"context": "c"}}, INVALID_PARAMS, "provenance: no source"),
        (
            "memory_store",
            {"content": "words", "provenance": {"source": "me", "timestamp": "banana"}},
            INVALID_PARAMS,
            "'banana' is not a time",
        ),
        ("memory_recall", {}, INVALID_PARAMS, "argument 'query' is missing"),
        ("memory_recall", {"query": " "}, INVALID_PARAMS, "the query is empty"),
        ("memory_recall", {"query": "x", "max_tokens": 99}, INVALID_PARAMS, "max_tokens: input should be greater"),
        ("memory_recall", {"query": "x", "limit": 0}, INVALID_PARAMS, "limit: input should be greater"),
        ("memory_recall", {"query": "x", "minImportance": 11}, INVALID_PARAMS, "minImportance: input should be less"),
        ("memory_list", {}, METHOD_NOT_FOUND, "unknown tool 'memory_list'; there are memory_store"),
    ],
)
async def test_errors_are_protocol_errors(
    client: Client, memory: Memory, tool: str, arguments: dict[str, object], code: int, message: str
) -> None:
    with pytest.raises(MCPError) as raised:
        await client.call_tool(tool, arguments)
    assert raised.value.code == code
    assert raised.value.message.startswith(message)
    assert memory.maintenance.statistics().total == 0


async def test_what_is_forgotten_is_neither_updated_nor_forgotten_again(client: Client) -> None:
    id_ = await stored(client, "The office is in Bern.")
    await call(client, "memory_forget", id=id_)
    message = f"memory '{id_}' is forgotten; `memory_recall` finds those that are not"
    assert await refused(client, "memory_forget", id=id_) == message
    assert await refused(client, "memory_store", id=id_, content="The office is in Basel.") == message


@pytest.mark.parametrize("id_", ["zzzzzz", ""])
async def test_an_unknown_id_is_an_error_of_the_tool_that_says_where_ids_come_from(client: Client, id_: str) -> None:
    message = f"there is no memory '{id_}'; `memory_recall` finds ids"
    assert await refused(client, "memory_forget", id=id_) == message
    if id_:  # without one, a new memory is stored
        assert await refused(client, "memory_store", id=id_, content="words of five") == message


async def test_a_bug_is_an_internal_error_without_details(
    client: Client, memory: Memory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr(memory, "search", broken)
    with pytest.raises(MCPError) as raised:
        await client.call_tool("memory_recall", {"query": "x"})
    assert raised.value.code == INTERNAL_ERROR
    assert "the secret inside" not in raised.value.message
    assert "the secret inside" in caplog.text


# ── as a separate process ───────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def command(database: str) -> Iterator[StdioServerParameters]:
    environment = {**os.environ, "MINDEX_EMBEDDING_PROVIDER": "none"}
    arguments = [*MINDEX[1:], "--db", database, "serve", "--tools", "memory-mcp"]
    yield StdioServerParameters(command=MINDEX[0], args=arguments, env=environment)


@pytest.mark.slow
async def test_over_stdio(command: StdioServerParameters) -> None:
    async with Client(command) as client:
        id_ = await stored(client, "The user prefers TypeScript.")
        assert await recalled(client, "{content}: typescript") == [id_]
        assert "there is no memory 'zzzzzz'" in await refused(client, "memory_forget", id="zzzzzz")
    async with Client(command) as client:
        await call(client, "memory_forget", id=id_)
        assert await recalled(client, "typescript") == []


async def test_only_matches_in_the_index_count_as_accessed(client: Client, memory: Memory) -> None:
    memory.add_many([NewMemory(f"Harbour number {number} has a crane") for number in range(30)])
    answered = await call(client, "memory_recall", query="harbour", max_tokens=100)
    assert 0 < len(answered["index"]) < 20
    memory.store.settle()
    assert memory.maintenance.statistics().accesses == len(answered["index"])
