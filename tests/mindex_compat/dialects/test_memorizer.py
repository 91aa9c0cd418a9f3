"""Every tool of Memorizer-MCP with its own arguments, in its own envelope."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult

from mcp import Client, StdioServerParameters
from mindex.datatypes import TYPES, Record
from mindex.mcp.dialect import dialect_named
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server import MindexServer
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory
from mindex.store.export_rows import ExportRow, RestoreOptions
from mindex_compat.dialects.memorizer_format import CATEGORIES, FAMILIES, end_of, plain, start_of
from tests.generating import Answers, ChatServer, always, chat_server
from tests.mcp.conftest import KEYWORD, structured, text

pytestmark = pytest.mark.anyio

DIALECT = "memorizer"
TODAY = datetime.now(UTC).date()
UTC_TEXT = "%Y-%m-%d %H:%M:%S"
NAMES = """
store_fact list_facts update_fact delete_fact retrieve_memories store_conversation search_conversations get_profile
update_profile store_skill list_skills get_skill update_skill delete_skill create_contact list_contacts update_contact
create_project list_projects update_project link_project_source unlink_project_source list_project_sources
update_project_source_status query_timeline get_memory_stats backfill_embeddings backfill_extract_facts
synthesize_facts export_memory import_memory
""".split()


def serve(folder: Path, database: str, **settings: object) -> MemoryHost:
    dialect = dialect_named(DIALECT)
    given = {**KEYWORD, **dialect.settings_for(None), **settings}
    if "://" in database:  # beside a file there is a folder of exports
        given.setdefault("export.path", str(folder / "memory-export"))
    delay = dialect.backfill_delay
    return MemoryHost(ServerOptions(db=database, root=folder, settings=given, backfill_delay=delay))


@pytest.fixture
def host(tmp_path: Path, database: str) -> Iterator[MemoryHost]:
    opened = serve(tmp_path, database)
    yield opened
    opened.close()


@pytest.fixture
def memory(host: MemoryHost) -> Memory:
    return host.memory


class Memorizer:
    """A client that opens the envelope."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def envelope(self, tool: str, **arguments: object) -> dict[str, Any]:
        result = await self.client.call_tool(tool, arguments)
        return opened(result)

    async def __call__(self, tool: str, **arguments: object) -> dict[str, Any]:
        answered = await self.envelope(tool, **arguments)
        assert answered["success"] is True, answered
        data: dict[str, Any] = answered["data"]
        return data

    async def error(self, tool: str, **arguments: object) -> str:
        answered = await self.envelope(tool, **arguments)
        assert answered.keys() == {"success", "error"}, answered
        assert answered["success"] is False
        return str(answered["error"])


def opened(result: CallToolResult) -> dict[str, Any]:
    """Compact JSON, no tool error, and the same as text and as JSON."""
    answered: dict[str, Any] = json.loads(text(result))
    assert text(result) == json.dumps(answered, ensure_ascii=False, separators=(",", ":"))
    assert structured(result) == answered
    assert not result.is_error
    return answered


@pytest.fixture
async def memorizer(host: MemoryHost) -> AsyncIterator[Memorizer]:
    async with Client(MindexServer(host, dialect_named(DIALECT))) as client:
        yield Memorizer(client)


async def test_a_match_of_another_agent_is_hinted_at_and_not_shown(memorizer: Memorizer) -> None:
    await memorizer("store_fact", fact="The harbour opens at six.", category="background", agent_id="other")
    await memorizer("store_fact", fact="Ana prefers green tea.", category="preference")
    hint = "its words occur only in entries of another agent; search those with agent_id"
    found = await memorizer.envelope("retrieve_memories", query="harbour")
    assert hint in found["notes"]
    assert (found["data"]["facts"], found["data"]["conversations"]) == ([], [])
    assert "harbour opens" not in str(found)
    for query, more in (("tea", {}), ("lighthouse", {}), ("harbour", {"agent_id": "other"})):
        assert hint not in (await memorizer.envelope("retrieve_memories", query=query, **more)).get("notes", [])
    await memorizer("store_conversation", user_message="Where is the crane?", agent_response="There.", agent_id="other")
    assert hint in (await memorizer.envelope("search_conversations", query="crane"))["notes"]
    assert hint in (await memorizer.envelope("retrieve_memories", query="crane"))["notes"]


@pytest.mark.model
async def test_another_embedding_provider_than_that_of_the_database_is_noted(tmp_path: Path, database: str) -> None:
    with Memory(database) as filled:
        filled.add("Ana prefers green tea.")
        filled.maintenance.backfill()
    host = serve(tmp_path, database, **{"embedding.provider": "lmstudio", "embedding.url": "http://127.0.0.1:9/v1"})
    async with Client(MindexServer(host, dialect_named(DIALECT))) as client:
        memorizer = Memorizer(client)
        command = "run `mindex reembed --provider lmstudio --url http://127.0.0.1:9/v1`"
        stats = await memorizer.envelope("get_memory_stats")
        assert stats["data"]["search_capabilities"]["embedding_provider"] == "local"
        assert command in stats["notes"][0]
        stored = await memorizer.envelope("store_fact", fact="Bob likes coffee.", category="preference")
        assert any(command in note for note in stored["notes"])
    host.close()


async def test_all_tools_of_memorizer_are_there(memorizer: Memorizer) -> None:
    tools = (await memorizer.client.list_tools()).tools
    assert [tool.name for tool in tools] == NAMES
    for tool in tools:
        assert tool.annotations is not None
        assert "agent_id" in tool.input_schema["properties"]


# ── facts ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("category", CATEGORIES)
async def test_each_of_the_six_categories_is_a_type(memorizer: Memorizer, memory: Memory, category: str) -> None:
    stored = await memorizer("store_fact", fact=f"A matter of {category}.", category=category, source="conv_1")
    assert stored["fact_id"] == 1
    assert datetime.fromisoformat(stored["stored_at"]).tzinfo is not None
    assert stored["stored_at"].endswith("Z")
    assert stored.keys() == {"fact_id", "stored_at"}
    (record,) = memory.list().records
    assert (record.kind, record.type, record.number, record.agent) == ("memory", category, 1, "main")
    (fact,) = (await memorizer("list_facts", category=category))["facts"]
    assert fact.keys() == {"id", "fact", "category", "confidence", "source", "created_at"}
    datetime.strptime(fact.pop("created_at"), UTC_TEXT)
    assert fact == {
        "id": 1, "fact": f"A matter of {category}.", "category": category, "confidence": 1.0, "source": "conv_1"
    }  # fmt: skip


async def test_a_seventh_category_is_refused(memorizer: Memorizer) -> None:
    assert "category" in await memorizer.error("store_fact", fact="x y z", category="opinion")


async def test_the_same_text_is_the_same_fact_in_every_category(memorizer: Memorizer) -> None:
    first = await memorizer("store_fact", fact="Anna prefers dark mode.", category="preference")
    again = await memorizer("store_fact", fact="  Anna prefers\tdark mode.", category="pattern")
    assert again["fact_id"] == first["fact_id"]
    assert again["message"] == "this fact is stored already, as preference; its time was refreshed"
    assert (await memorizer("list_facts"))["total_count"] == 1
    other = await memorizer("store_fact", fact="Anna prefers dark mode.", category="preference", agent_id="work")
    assert "message" not in other
    assert (await memorizer("list_facts", agent_id="work"))["total_count"] == 1


async def test_similar_facts_of_a_category_are_named_and_the_fact_is_stored(memorizer: Memorizer) -> None:
    await memorizer("store_fact", fact="Anna prefers tea without sugar from Assam", category="preference")
    similar = await memorizer("store_fact", fact="Anna prefers tea without sugar from Ceylon", category="preference")
    assert similar["similar_existing"] == [{"id": 1, "fact": "Anna prefers tea without sugar from Assam"}]
    assert similar["fact_id"] == 2
    assert "similar facts exist" in similar["message"]
    elsewhere = await memorizer("store_fact", fact="Anna prefers tea without sugar from Kenya", category="pattern")
    assert "similar_existing" not in elsewhere
    unlike = await memorizer("store_fact", fact="The office is in Lisbon", category="preference")
    assert "similar_existing" not in unlike


@pytest.mark.parametrize("mode", ["redact", "strict"])
async def test_a_fact_with_a_secret_is_refused_and_nothing_of_it_is_stored(
    tmp_path: Path, database: str, mode: str
) -> None:
    host = serve(tmp_path, database, **{"secrets.mode": mode})
    async with Client(MindexServer(host, dialect_named(DIALECT))) as client:
        memorizer = Memorizer(client)
        refused = "the fact contains a secret (password), so nothing was stored; take it out"
        secret = "The password: hunter2hunter2! opens the vault"
        assert await memorizer.error("store_fact", fact=secret, category="background") == refused
        assert (await memorizer("list_facts"))["total_count"] == 0
        await memorizer("store_fact", fact="Anna opens the vault", category="background")
        assert await memorizer.error("update_fact", fact_id=1, fact=secret) == refused
        assert [fact["fact"] for fact in (await memorizer("list_facts"))["facts"]] == ["Anna opens the vault"]
    host.close()


async def test_a_fact_with_a_secret_is_stored_where_secrets_are_allowed(tmp_path: Path, database: str) -> None:
    host = serve(tmp_path, database, **{"secrets.mode": "off"})
    async with Client(MindexServer(host, dialect_named(DIALECT))) as client:
        await Memorizer(client)("store_fact", fact="The password: hunter2hunter2! opens it", category="background")
        (fact,) = (await Memorizer(client)("list_facts"))["facts"]
        assert "hunter2" in fact["fact"]
    host.close()


async def test_a_memory_of_another_type_is_listed_under_the_nearest_category(
    memorizer: Memorizer, memory: Memory
) -> None:
    memory.add("The build takes nine minutes.", type="fact")
    memory.add("Slow builds come from the linker.", type="insight")
    assert {type_ for types in FAMILIES.values() for type_ in types} == set(TYPES)
    listed = await memorizer("list_facts")
    assert [(fact["fact"], fact["category"]) for fact in listed["facts"]] == [
        ("Slow builds come from the linker.", "pattern"),
        ("The build takes nine minutes.", "background"),
    ]
    assert [fact["id"] for fact in (await memorizer("list_facts", category="background"))["facts"]] == [1]
    await memorizer("update_fact", fact_id=1, fact="The build takes eight minutes.", category="background")
    assert memory.list(memory.filters(types=["fact"])).total == 1  # its own type stays


async def test_a_fact_is_corrected_and_deleted_by_its_number(memorizer: Memorizer, memory: Memory) -> None:
    await memorizer("store_fact", fact="The office is in Porto.", category="background")
    changed = await memorizer("update_fact", fact_id=1, fact="The office is in Lisbon.", category="decision")
    assert changed == {
        "fact_id": 1,
        "old_fact": "The office is in Porto.",
        "new_fact": "The office is in Lisbon.",
        "category": "decision",
    }
    assert await memorizer("delete_fact", fact_id=1) == {"deleted_fact": "The office is in Lisbon."}
    assert (await memorizer("list_facts"))["total_count"] == 0
    assert await memorizer.error("delete_fact", fact_id=1) == "Fact not found: 1"
    assert await memorizer.error("update_fact", fact_id=77, fact="x") == "Fact not found: 77"
    memory.restore(str(memory.store.entries.by_number("main", 1)))
    assert (await memorizer("list_facts"))["total_count"] == 1


async def test_a_bare_id_is_enough_however_many_agents_there_are(memorizer: Memorizer) -> None:
    mine = await memorizer("store_fact", fact="Mine is red.", category="preference")
    theirs = await memorizer("store_fact", fact="Mine is blue.", category="preference", agent_id="work")
    contact = await memorizer("create_contact", name="Ana", email="ana@example.org", agent_id="home")
    assert (mine["fact_id"], theirs["fact_id"], contact["contact_id"]) == (1, 2, 3)
    changed = await memorizer("update_fact", fact_id=2, fact="Mine is green.")
    assert (changed["old_fact"], changed["new_fact"]) == ("Mine is blue.", "Mine is green.")
    assert await memorizer("update_contact", contact_id=3, role="painter") == {"updated_fields": ["role"]}
    assert (await memorizer("delete_fact", fact_id=2))["deleted_fact"] == "Mine is green."
    assert (await memorizer("delete_fact", fact_id=1))["deleted_fact"] == "Mine is red."


async def test_a_project_of_one_agent_names_a_contact_of_another_by_its_bare_id(memorizer: Memorizer) -> None:
    await memorizer("create_contact", name="Ana", email="ana@example.org", agent_id="home")
    await memorizer("create_project", name="Atlas", primary_contact_id=1, participants=[1], agent_id="work")
    (project,) = (await memorizer("list_projects", contact_id=1, agent_id="work"))["projects"]
    assert (project["primary_contact_id"], project["participants"]) == (1, [1])
    assert "Contact not found: 9" in await memorizer.error("create_project", name="Borealis", primary_contact_id=9)


async def test_an_id_that_two_agents_have_is_ambiguous_and_both_are_named(memorizer: Memorizer, memory: Memory) -> None:
    """As two databases have it that were imported for one agent each: their records keep their ids."""
    for agent, text_ in (("main", "Mine is red."), ("work", "Mine is blue.")):
        record = Record(agent * 2, "memory", text_, agent=agent, number=1, type="preference", confidence=1.0)
        memory.store.entries.restore_rows([ExportRow(record)], RestoreOptions(agent, program="memorizer"))
    message = await memorizer.error("delete_fact", fact_id=1)
    assert message == "fact 1 is main's 'Mine is red.' and work's 'Mine is blue.'; give agent_id: main or work"
    stored = await memorizer("store_fact", fact="Mine is green.", category="preference", agent_id="work")
    assert stored["fact_id"] == 2
    assert (await memorizer("delete_fact", fact_id=1, agent_id="work"))["deleted_fact"] == "Mine is blue."
    assert (await memorizer("delete_fact", fact_id=1))["deleted_fact"] == "Mine is red."


async def test_lists_are_cut_and_counted(memorizer: Memorizer) -> None:
    for number in range(3):
        await memorizer("store_fact", fact=f"Unrelated matter {number} of {'abc'[number] * 5}", category="project")
    listed = await memorizer("list_facts", limit=2)
    assert ([fact["id"] for fact in listed["facts"]], listed["total_count"]) == ([3, 2], 3)
    assert (await memorizer.envelope("list_facts", limit=10_000))["notes"] == ["limit cut to 500, the maximum"]
    assert "limit" in await memorizer.error("list_facts", limit=0)


# ── searching, in three tiers ─────────────────────────────────────────────────────────────────────────────────


async def test_facts_and_conversations_are_retrieved(memorizer: Memorizer) -> None:
    await memorizer("store_fact", fact="PostgreSQL was chosen for billing.", category="decision", source="conv_7")
    await memorizer("store_conversation", user_message="Which database?", agent_response="PostgreSQL, for billing.")
    answered = await memorizer.envelope("retrieve_memories", query="PostgreSQL billing")
    assert answered["notes"] == ["no embedder is configured; answered by keyword"]
    data = answered["data"]
    assert [*data["facts"][0]] == ["id", "fact", "category", "confidence", "created_at"]
    assert [*data["conversations"][0]] == ["id", "user_message", "agent_response", "created_at"]
    assert data["search_mode"] == "fts5_only"
    assert (await memorizer("retrieve_memories", query="billing", include_conversations=False))["conversations"] == []
    assert (await memorizer("retrieve_memories", query="billing", agent_id="work"))["facts"] == []


async def test_the_last_tier_finds_what_only_a_part_of_a_word_can(memorizer: Memorizer) -> None:
    await memorizer("store_fact", fact="PostgreSQL was chosen for billing.", category="decision")
    data = await memorizer("retrieve_memories", query="ostgre")
    assert (data["search_mode"], [fact["id"] for fact in data["facts"]]) == ("like_fallback", [1])
    assert (await memorizer("retrieve_memories", query="o_tgre"))["facts"] == []


async def test_the_last_tier_takes_any_term_and_shows_first_what_holds_most_of_them(memorizer: Memorizer) -> None:
    await memorizer("store_fact", fact="MariaDB was chosen for archiving.", category="decision")
    await memorizer("store_fact", fact="PostgreSQL was chosen for archiving.", category="decision")
    await memorizer("store_fact", fact="PostgreSQL was chosen for billing.", category="decision")
    data = await memorizer("retrieve_memories", query="where is ostgre rchiv unicorn?")
    assert data["search_mode"] == "like_fallback"
    assert [fact["id"] for fact in data["facts"]] == [2, 3, 1]


@pytest.mark.parametrize("query", ['do NOT use "tabs', "tabs AND", "title:tabs", "(tabs)", "tabs*", "{text}: tabs"])
async def test_operators_in_a_query_are_plain_words(memorizer: Memorizer, query: str) -> None:
    await memorizer("store_fact", fact="Never use tabs in Makefiles, use spaces.", category="preference")
    assert len((await memorizer("retrieve_memories", query=query))["facts"]) == 1


async def test_an_empty_query_is_an_error_in_the_envelope(memorizer: Memorizer) -> None:
    assert "the query is empty" in await memorizer.error("retrieve_memories", query="  ")


def test_only_operators_are_removed_from_a_query() -> None:
    assert plain("user_id std::vector") == "user_id std::vector"
    assert plain('Tabs "AND" spaces*') == "tabs  and  spaces "


async def test_what_a_query_excludes_is_not_retrieved(memorizer: Memorizer) -> None:
    await memorizer("store_fact", fact="FastAPI serves python web applications.", category="decision")
    await memorizer("store_fact", fact="The snake is a python.", category="background")
    await memorizer("store_conversation", user_message="python?", agent_response="python with FastAPI.")
    for query in ("python NOT fastapi", "python web NOT fastapi", "pyth NOT fastapi"):
        data = await memorizer("retrieve_memories", query=query)
        assert ([fact["id"] for fact in data["facts"]], data["conversations"]) == ([2], []), query
        assert (await memorizer("search_conversations", query=query))["conversations"] == []


# ── conversations ─────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_turn_is_stored_and_found(memorizer: Memorizer) -> None:
    stored = await memorizer(
        "store_conversation",
        user_message="Where do we deploy?",
        agent_response="To Frankfurt, every Tuesday.",
        session_id="s1",
        tags=["ops"],
    )
    assert stored.keys() == {"conversation_id", "facts_extracted", "stored_at"}
    assert stored["facts_extracted"] == 0
    found = await memorizer("search_conversations", query="deploy Frankfurt")
    (talk,) = found["conversations"]
    datetime.strptime(talk.pop("created_at"), UTC_TEXT)
    assert talk == {
        "id": stored["conversation_id"],
        "session_id": "s1",
        "user_message": "Where do we deploy?",
        "agent_response": "To Frankfurt, every Tuesday.",
        "tags": ["ops"],
    }
    assert found["total_count"] == 1


async def test_conversations_are_found_by_their_day_in_utc(memorizer: Memorizer, memory: Memory) -> None:
    for day in ("2026-03-01", "2026-03-02", "2026-03-03"):
        memory.conversations.add(f"The release of {day}", "Noted.", at=f"{day}T23:30:00Z")
    found = await memorizer("search_conversations", query="release", date_from="2026-03-02", date_to="2026-03-02")
    assert [talk["created_at"] for talk in found["conversations"]] == ["2026-03-02 23:30:00"]
    assert (await memorizer("search_conversations", query="release", date_from="2026-03-02"))["total_count"] == 2
    assert (await memorizer("search_conversations", query="release", date_to="2026-03-02"))["total_count"] == 2
    assert "is not a time" in await memorizer.error("search_conversations", query="release", date_from="2026-02-31")


def test_a_day_ends_where_the_next_begins() -> None:
    assert end_of("2026-03-01") == start_of("2026-03-02")


# ── the profile ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_an_empty_profile_has_the_shape_of_memorizer(memorizer: Memorizer) -> None:
    assert await memorizer("get_profile") == {
        "profile": {
            "user_info": {"name": None, "background": None, "timezone": None, "current_role": None},
            "preferences": {"communication": None, "coding_languages": [], "tools": [], "working_style": None},
            "current_projects": [],
            "learned_patterns": [],
        },
        "last_updated": None,
    }


async def test_the_profile_is_changed_by_paths_and_rolled_back_by_the_library(
    memorizer: Memorizer, memory: Memory
) -> None:
    updates = {"user_info.name": "Anna", "preferences.tools[0]": "vim", "current_projects[0].name": "mindex"}
    assert await memorizer("update_profile", updates=updates, reason="she said so") == {"updated_fields": [*updates]}
    shown = await memorizer("get_profile")
    assert shown["profile"]["user_info"] == {
        "name": "Anna", "background": None, "timezone": None, "current_role": None
    }  # fmt: skip
    assert shown["profile"]["preferences"]["tools"] == ["vim"]
    assert shown["profile"]["current_projects"] == [{"name": "mindex"}]
    datetime.strptime(shown["last_updated"], UTC_TEXT)
    first = memory.profile.history()[-1]
    assert first.reason == "she said so"
    await memorizer("update_profile", updates={"user_info.name": "Bob", "learned_patterns[0]": "asks twice"})
    memory.profile.rollback(first.change)
    profile = (await memorizer("get_profile"))["profile"]
    assert (profile["user_info"]["name"], profile["learned_patterns"]) == ("Anna", [])
    assert (await memorizer("get_profile", agent_id="work"))["last_updated"] is None


async def test_null_removes_a_value_and_a_wrong_path_is_an_error(memorizer: Memorizer) -> None:
    await memorizer("update_profile", updates={"user_info.name": "Anna"})
    assert await memorizer("update_profile", updates={"user_info.name": None, "user_info.background": None})
    assert (await memorizer("get_profile"))["profile"]["user_info"]["name"] is None
    assert "beyond the end" in await memorizer.error("update_profile", updates={"current_projects[5]": "x"})
    assert "not a path" in await memorizer.error("update_profile", updates={"a..b": "x"})
    assert "nothing to change" in await memorizer.error("update_profile", updates={})


# ── skills ────────────────────────────────────────────────────────────────────────────────────────────────────

SKILL = {
    "name": "Morning digest",
    "trigger_type": "cron",
    "instructions": "Summarise the inbox.",
    "description": "A digest",
    "trigger_config": {"schedule": "0 9 * * 1-5", "timezone": "Europe/Berlin"},
    "required_tools": ["gmail"],
    "execution_plan": [{"id": "1", "toolName": "gmail.list", "parameters": {"max": 5}, "dependsOn": []}],
}


async def test_a_skill_is_stored_listed_changed_and_deleted(memorizer: Memorizer, memory: Memory) -> None:
    stored = await memorizer("store_skill", **SKILL)
    assert stored.keys() == {"skill_id", "stored_at"}
    skill = (await memorizer("get_skill", skill_id=stored["skill_id"]))["skill"]
    for name in ("created_at", "updated_at"):
        datetime.strptime(skill.pop(name), UTC_TEXT)
    defaults = {
        "enabled": True, "max_steps": 10, "notify_on_completion": True, "notify_interval_minutes": 0,
        "last_run_at": None, "last_run_status": None, "last_run_summary": None, "last_notified_at": None,
    }  # fmt: skip
    assert skill == {"id": stored["skill_id"], "agent_id": "main", **SKILL, **defaults}
    assert "Morning digest already" in await memorizer.error("store_skill", **SKILL)
    ran = {"last_run_at": "2026-03-02T08:00:00Z", "last_run_status": "success", "last_run_summary": "5 mails"}
    assert await memorizer("update_skill", skill_id=1, enabled=False, **ran) == {"updated_fields": ["enabled", *ran]}
    assert "'banana' is not a time" in await memorizer.error("update_skill", skill_id=1, last_run_at="banana")
    assert (await memorizer("list_skills", enabled=True))["total_count"] == 0
    (listed,) = (await memorizer("list_skills", trigger_type="cron", enabled=False))["skills"]
    assert (listed["last_run_summary"], listed["enabled"]) == ("5 mails", False)
    assert await memorizer("delete_skill", skill_id=1) == {"deleted_skill": "Morning digest"}
    assert await memorizer.error("get_skill", skill_id=1) == "Skill not found: 1"
    memory.undo(str(memory.store.entries.by_number("main", 1)))
    assert (await memorizer("list_skills"))["total_count"] == 1


async def test_all_agents_skills_are_listed_when_none_is_named(memorizer: Memorizer, memory: Memory) -> None:
    await memorizer("store_skill", **SKILL)
    config = {"interval_minutes": 30}
    await memorizer("store_skill", **{**SKILL, "agent_id": "work", "trigger_config": config})
    memory.skills.add(name="Ours", trigger_type="interval", trigger_config=config, instructions="Look.")
    assert (await memorizer("list_skills"))["total_count"] == 3
    assert [skill["agent_id"] for skill in (await memorizer("list_skills", agent_id="work"))["skills"]] == ["work"]
    # A schedule of any kind is `cron` to Memorizer-MCP, and the config says which.
    assert {skill["trigger_type"] for skill in (await memorizer("list_skills", trigger_type="cron"))["skills"]} == {
        "cron"
    }


async def test_an_invalid_cron_line_is_refused(memorizer: Memorizer) -> None:
    assert "is not a cron line" in await memorizer.error(
        "store_skill", **{**SKILL, "trigger_config": {"schedule": "often"}}
    )


# ── contacts and projects ─────────────────────────────────────────────────────────────────────────────────────


async def test_contacts_are_created_listed_and_changed(memorizer: Memorizer) -> None:
    made = await memorizer(
        "create_contact", name="Ana Costa", email="Ana@Acme.com", company="Acme", role="CTO", notes="n"
    )
    assert made.keys() == {"contact_id", "created_at"}
    assert made["created_at"].endswith("Z")
    await memorizer("create_contact", name="Bo Li", email="bo@x.org", type="personal")
    (listed,) = (await memorizer("list_contacts", name="cost"))["contacts"]
    for name in ("created_at", "updated_at"):
        datetime.strptime(listed.pop(name), UTC_TEXT)
    assert listed == {
        "id": 1, "name": "Ana Costa", "email": "ana@acme.com", "company": "Acme", "role": "CTO", "type": "work",
        "notes": "n",
    }  # fmt: skip
    assert (await memorizer("list_contacts", type="personal"))["total_count"] == 1
    assert (await memorizer("list_contacts", company="Acme", email="ana@acme.com"))["total_count"] == 1
    assert len((await memorizer("list_contacts", limit=1))["contacts"]) == 1
    assert await memorizer("update_contact", contact_id=2, role="Friend") == {"updated_fields": ["role"]}
    assert (await memorizer("list_contacts", name="bo"))["contacts"][0]["role"] == "Friend"
    assert "has the email ana@acme.com already" in await memorizer.error(
        "create_contact", name="X", email="ana@acme.com"
    )
    assert "same email already" in await memorizer.error("update_contact", contact_id=2, email="ana@acme.com")
    assert "nothing to change" in await memorizer.error("update_contact", contact_id=2)
    assert await memorizer.error("update_contact", contact_id=9, role="x") == "Contact not found: 9"


async def test_projects_name_their_contacts_by_number(memorizer: Memorizer, memory: Memory) -> None:
    await memorizer("create_contact", name="Ana", email="ana@acme.com")
    await memorizer("create_contact", name="Bo", email="bo@acme.com")
    made = await memorizer(
        "create_project",
        name="Atlas",
        description="Maps",
        company="Acme",
        primary_contact_id=1,
        participants=[1, 2],
        priority="high",
    )
    assert made.keys() == {"project_id", "created_at"}
    assert made["project_id"] == 3  # all entries share one series of numbers
    await memorizer("create_project", name="Garden", type="personal", status="paused")
    (listed,) = (await memorizer("list_projects", contact_id=2))["projects"]
    for name in ("created_at", "updated_at"):
        datetime.strptime(listed.pop(name), UTC_TEXT)
    assert listed == {
        "id": 3, "name": "Atlas", "status": "active", "type": "work", "description": "Maps", "primary_contact_id": 1,
        "participants": [1, 2], "company": "Acme", "priority": "high",
    }  # fmt: skip
    assert memory.projects.get("Atlas").fields["primary_contact_id"] == memory.contacts.get("Ana").id
    for wanted in ({"status": "paused"}, {"type": "personal"}):
        assert [one["name"] for one in (await memorizer("list_projects", **wanted))["projects"]] == ["Garden"]
    assert (await memorizer("list_projects", priority="high", company="Acme"))["total_count"] == 1
    changes = {"status": "completed", "participants": [2]}
    assert await memorizer("update_project", project_id=3, **changes) == {"updated_fields": [*changes]}
    assert (await memorizer("list_projects", contact_id=2))["projects"][0]["participants"] == [2]
    assert "has the name atlas already" in (await memorizer.error("create_project", name="atlas"))
    assert await memorizer.error("create_project", name="X", primary_contact_id=3) == "Contact not found: 3"
    assert await memorizer.error("update_project", project_id=1, name="X") == "Project not found: 1"


async def test_sources_are_linked_to_a_project_listed_checked_and_unlinked(
    memorizer: Memorizer, tmp_path: Path
) -> None:
    await memorizer("create_project", name="Atlas")
    linked = await memorizer("link_project_source", project_id=1, location="https://atlas.example.org")
    assert linked["linked_at"].endswith("Z")
    assert linked == {
        "project_id": 1,
        "location": "https://atlas.example.org",
        "source_type": "address",
        "linked_at": linked["linked_at"],
    }
    again = await memorizer("link_project_source", project_id=1, location="https://atlas.example.org")
    assert again == {**linked, "already_existed": True}
    await memorizer("link_project_source", project_id=1, location=str(tmp_path), source_type="folder")
    reported = await memorizer(
        "update_project_source_status",
        project_id=1,
        location="https://atlas.example.org",
        last_status="warning",
        message="slow",
        last_checked_at="2026-03-01T12:00:00Z",
    )
    assert reported == {"updated_fields": ["last_status", "last_checked_at", "message"]}
    listed = await memorizer("list_project_sources", project_id=1)
    assert listed["total_count"] == 2
    for row in listed["sources"]:
        datetime.strptime(row.pop("created_at"), UTC_TEXT)
    assert listed["sources"] == [
        {
            "project_id": 1,
            "project_name": "Atlas",
            "source_type": "address",
            "location": "https://atlas.example.org",
            "last_status": "warning",
            "message": "slow",
            "last_checked_at": "2026-03-01 12:00:00",
        },
        {
            "project_id": 1,
            "project_name": "Atlas",
            "source_type": "folder",
            "location": str(tmp_path),
            "last_status": "warning",
            "message": "it is not indexed",
            "last_checked_at": None,
        },
    ]
    # The reported status stays; the status that mindex sees is shown beside it.
    gone = str(tmp_path / "gone")
    await memorizer("link_project_source", project_id=1, location=gone, source_type="folder")
    report = {"last_status": "warning", "message": "old"}
    await memorizer("update_project_source_status", project_id=1, location=gone, **report)
    row = (await memorizer("list_project_sources", project_id=1))["sources"][2]
    assert {**row, **report, "seen": f"error: there is no folder {gone}"} == row
    await memorizer("unlink_project_source", project_id=1, location=gone)
    assert len((await memorizer("list_project_sources", source_type="folder", limit=5))["sources"]) == 1
    assert "sources" not in (await memorizer("list_projects"))["projects"][0]  # a row as Memorizer-MCP has it
    gone = await memorizer("unlink_project_source", project_id=1, location=str(tmp_path))
    assert gone == {"unlinked_project": "Atlas", "unlinked_source": str(tmp_path)}
    assert (await memorizer("list_project_sources"))["total_count"] == 1
    assert await memorizer.error("link_project_source", project_id=9, location="/x") == "Project not found: 9"
    assert "is not linked to Atlas" in await memorizer.error("unlink_project_source", project_id=1, location="/x")


# ── the timeline and the numbers ──────────────────────────────────────────────────────────────────────────────


async def test_the_timeline_has_the_events_of_every_kind(memorizer: Memorizer) -> None:
    await memorizer("store_fact", fact="Deploys are on Tuesday.", category="decision")
    await memorizer("store_conversation", user_message="When?", agent_response="Tuesday.")
    await memorizer("update_profile", updates={"user_info.name": "Anna"}, reason="asked")
    await memorizer("store_skill", **SKILL)
    await memorizer("update_skill", skill_id=4, last_run_at="2026-03-02T08:00:00Z")
    await memorizer("create_contact", name="Ana", email="ana@acme.com")
    await memorizer("create_project", name="Atlas", primary_contact_id=5)
    await memorizer("update_fact", fact_id=1, fact="Deploys are on Friday.")
    await memorizer("delete_fact", fact_id=1)
    data = await memorizer("query_timeline", date_from=TODAY.isoformat())
    happened = [(event["source"], event["event_type"]) for event in data["events"]]
    assert happened == [
        ("facts", "created"),
        ("conversations", "created"),
        ("profile_changes", "changed"),
        ("skills", "created"),
        ("skills", "executed"),
        ("contacts", "created"),
        ("projects", "created"),
        ("facts", "updated"),
        ("facts", "deleted"),
    ]
    assert data["total_count"] == 9
    assert data["date_range"] == {"from": TODAY.isoformat(), "to": TODAY.isoformat()}
    assert data["sources_queried"] == [
        "facts", "conversations", "profile_changes", "skills", "contacts", "projects"
    ]  # fmt: skip
    first, reasoned, project = data["events"][0], data["events"][2], data["events"][6]
    assert first.keys() == {"timestamp", "source", "event_type", "summary", "details"}
    datetime.strptime(first["timestamp"], UTC_TEXT)
    assert (first["details"]["fact_id"], first["details"]["fact"]) == (1, "Deploys are on Tuesday.")
    assert (reasoned["details"].keys(), reasoned["details"]["change_reason"]) == (
        {"history_id", "change_reason"}, "asked"
    )  # fmt: skip
    assert (project["details"]["project_id"], project["details"]["primary_contact_id"]) == (6, 5)


async def test_the_timeline_is_filtered_by_source_words_and_date(memorizer: Memorizer) -> None:
    await memorizer("store_fact", fact="Deploys are on Tuesday.", category="decision")
    await memorizer("store_fact", fact="Coffee is at nine.", category="pattern")
    await memorizer("store_conversation", user_message="Coffee?", agent_response="Yes.")
    arguments = {"date_from": TODAY.isoformat(), "query": "coffee"}
    data = await memorizer("query_timeline", **arguments, categories=["facts"])
    assert [event["details"]["fact_id"] for event in data["events"]] == [2]
    assert data["sources_queried"] == ["facts"]
    cut = await memorizer("query_timeline", **arguments, limit=1)
    assert (len(cut["events"]), cut["total_count"]) == (1, 2)
    yesterday = (TODAY - timedelta(days=1)).isoformat()
    assert (await memorizer("query_timeline", date_from="2020-01-01", date_to=yesterday))["events"] == []
    assert (await memorizer("query_timeline", date_from="2020-01-01", agent_id="work"))["total_count"] == 0
    assert "is not a time" in await memorizer.error("query_timeline", date_from="soon")


async def test_stats_of_an_empty_and_of_a_filled_memory(memorizer: Memorizer, memory: Memory) -> None:
    empty = await memorizer("get_memory_stats")
    assert (empty["fact_count"], empty["conversation_count"], empty["oldest_conversation"]) == (0, 0, None)
    await memorizer("store_fact", fact="Deploys are on Tuesday.", category="decision")
    memory.add("The build takes nine minutes.", type="fact")
    for day in ("2026-03-01", "2026-03-05"):
        memory.conversations.add("Hello", "Hi", at=f"{day}T10:00:00Z")
    stats = await memorizer("get_memory_stats")
    assert stats.pop("database_size_mb") > 0
    assert stats == {
        "fact_count": 2,
        "conversation_count": 2,
        "oldest_conversation": "2026-03-01 10:00:00",
        "newest_conversation": "2026-03-05 10:00:00",
        "facts_by_category": {"background": 1, "decision": 1},
        "search_capabilities": {
            "sqlite_vec_loaded": False,
            "embedding_provider": "none",
            "vector_search_enabled": False,
            "fts5_available": True,
            "search_mode": "fts5_only",
        },
    }


@pytest.mark.model
async def test_records_are_embedded_batch_by_batch_until_none_remain(tmp_path: Path, database: str) -> None:
    with Memory(database, options=KEYWORD) as memory:
        for number in range(5):
            memory.add(f"Matter number {number} is about {'tea wine milk beer rum'.split()[number]}.", type="pattern")
    host = serve(tmp_path, database, **{"embedding.provider": "local"})
    answers = []
    async with Client(MindexServer(host, dialect_named(DIALECT))) as client:
        memorizer = Memorizer(client)
        while not answers or answers[-1]["remaining"]:
            answers.append(await memorizer("backfill_embeddings", batch_size=2))
        assert [(done["embedded"], done["remaining"]) for done in answers] == [(2, 3), (2, 1), (1, 0)]
        assert [done["processed"] for done in answers] == [2, 2, 1]
        assert {done["failed"] for done in answers} == {0}
        assert (await memorizer("backfill_embeddings"))["processed"] == 0
        found = await memorizer("retrieve_memories", query="alcoholic drinks", limit=3)
        assert found["search_mode"] == "hybrid"
        assert {fact["id"] for fact in found["facts"]} == {2, 4, 5}
        capabilities = (await memorizer("get_memory_stats"))["search_capabilities"]
        assert (capabilities["search_mode"], capabilities["embedding_provider"]) == ("hybrid", "local")
        assert "batch_size" in await memorizer.error("backfill_embeddings", batch_size=201)
    host.close()


# ── what a language model makes of it ─────────────────────────────────────────────────────────────────────────


@pytest.fixture
def model() -> Iterator[ChatServer]:
    with chat_server('{"facts": []}') as server:
        yield server


@pytest.fixture
async def learned(tmp_path: Path, database: str, model: ChatServer) -> AsyncIterator[Memorizer]:
    """A client of the dialect, where a language model is configured."""
    host = serve(tmp_path, database, **model.options)
    async with Client(MindexServer(host, dialect_named(DIALECT))) as client:
        yield Memorizer(client)
    host.close()


def names(*facts: tuple[str, str]) -> Answers:
    message = [{"text": text, "type": type_, "confidence": 0.9} for text, type_ in facts]
    return always(json.dumps({"facts": message}))


async def test_facts_are_extracted_while_a_conversation_is_stored(learned: Memorizer, model: ChatServer) -> None:
    model.answers = names(("Deploys go to Frankfurt.", "decision"), ("Deploys are on Tuesday.", "pattern"))
    stored = await learned("store_conversation", user_message="Deploys?", agent_response="Frankfurt, on Tuesday.")
    assert stored["facts_extracted"] == 2
    facts = (await learned("list_facts"))["facts"]
    assert {(fact["fact"], fact["category"]) for fact in facts} == {
        ("Deploys go to Frankfurt.", "decision"),
        ("Deploys are on Tuesday.", "pattern"),
    }
    assert {fact["source"] for fact in facts} == {f"conversation:{stored['conversation_id']}"}
    assert {fact["confidence"] for fact in facts} == {0.9}


async def test_a_model_that_fails_is_a_note_and_the_conversation_is_stored(
    learned: Memorizer, model: ChatServer
) -> None:
    model.answers = always("I am not in the mood for JSON.")
    answered = await learned.envelope("store_conversation", user_message="Deploys?", agent_response="Tuesday.")
    assert answered["success"] is True
    assert answered["data"]["facts_extracted"] == 0
    assert "no facts were extracted" in answered["notes"][0]
    assert (await learned("search_conversations", query="deploys"))["total_count"] == 1
    model.answers = names(("Deploys are on Tuesday.", "pattern"))
    done = await learned("backfill_extract_facts")
    assert done == {"processed": 1, "facts_extracted": 1, "remaining": 0}


async def test_facts_are_extracted_batch_by_batch_until_none_remain(
    learned: Memorizer, model: ChatServer, database: str
) -> None:
    with Memory(database, options=KEYWORD) as memory:
        for place in ("Rome", "Oslo", "Lima", "Bonn", "Kyiv"):
            memory.conversations.add(f"The site of {place} is closed.", "Noted.")
        memory.conversations.add("The site of Riga is closed.", "Noted.", agent="eva")
    model.answers = lambda _, user: json.dumps(
        {"facts": [{"text": user.splitlines()[3], "type": "background", "confidence": 0.8}]}
    )
    answers = []
    while not answers or answers[-1]["remaining"]:
        answers.append(await learned("backfill_extract_facts", batch_size=2))
    assert [tuple(done.values()) for done in answers] == [(2, 2, 3), (2, 2, 1), (1, 1, 0)]
    assert (await learned("backfill_extract_facts", agent_id="eva"))["facts_extracted"] == 1
    assert (await learned("list_facts"))["total_count"] == 5
    assert "batch_size" in await learned.error("backfill_extract_facts", batch_size=51)


async def test_facts_that_say_the_same_are_merged_at_once(learned: Memorizer, model: ChatServer) -> None:
    await learned("store_fact", fact="Anna drinks green tea in the morning", category="preference")
    await learned("store_fact", fact="Anna drinks green tea in the morning in Riga", category="preference")
    await learned("store_fact", fact="The shop has three tills", category="project")
    await learned("store_fact", fact="The shop has three tills and a cellar", category="project")
    merged = "Anna, in Riga, drinks green tea in the morning."
    model.answers = lambda _, user: json.dumps({"text": merged if "Anna" in user else "The shop."})
    done = await learned("synthesize_facts", category="preference")
    assert done == {
        "categories_processed": 1,
        "merges": 1,
        "deletions": 2,
        "updates": 0,
        "summaries": {"preference": merged},
    }
    rest = await learned("synthesize_facts")  # what the model wrote of the shop lost a till: the longer one stays
    assert (rest["categories_processed"], rest["merges"], rest["deletions"]) == (6, 1, 1)
    assert {fact["fact"] for fact in (await learned("list_facts"))["facts"]} == {
        merged,
        "The shop has three tills and a cellar",
    }


async def test_the_number_of_merged_facts_of_a_category_is_limited(learned: Memorizer, model: ChatServer) -> None:
    await learned("store_fact", fact="Coffee is at nine", category="preference")
    await learned("store_fact", fact="Anna drinks green tea in the morning", category="preference")
    await learned("store_fact", fact="Anna drinks green tea in the morning in Riga", category="preference")
    assert (await learned("synthesize_facts", max_facts_per_category=2))["merges"] == 0
    assert model.asked == []
    assert (await learned("synthesize_facts", max_facts_per_category=3))["merges"] == 1


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("backfill_embeddings", {}, "no embedder is configured"),
        ("backfill_extract_facts", {"batch_size": 10}, "no language model is configured"),
        ("synthesize_facts", {"category": "project", "max_facts_per_category": 100}, "no language model is configured"),
        ("synthesize_facts", {"max_facts_per_category": 201}, "max_facts_per_category"),
        ("store_fact", {"category": "project"}, "argument 'fact' is missing"),
        ("store_fact", {"fact": " ", "category": "project"}, "the text is empty"),
        ("store_fact", {"fact": "x", "category": "project", "agent_id": "*"}, "'*' means all agents"),
        ("list_facts", {"colour": "red"}, "unknown argument 'colour'"),
        ("no_such_tool", {}, "Unknown tool: no_such_tool"),
    ],
)
async def test_errors_are_returned_in_the_envelope(
    memorizer: Memorizer, tool: str, arguments: dict[str, Any], message: str
) -> None:
    assert message in await memorizer.error(tool, **arguments)


# ── out and in ────────────────────────────────────────────────────────────────────────────────────────────────


async def filled(memorizer: Memorizer) -> None:
    await memorizer("store_fact", fact="Deploys are on Tuesday.", category="decision")
    await memorizer("store_fact", fact="Coffee is at nine.", category="pattern")
    await memorizer("store_conversation", user_message="When?", agent_response="Tuesday.")
    await memorizer("update_profile", updates={"user_info.name": "Anna"})


async def test_export_as_json_has_the_layout_of_memorizer(memorizer: Memorizer, tmp_path: Path) -> None:
    await filled(memorizer)
    exported = await memorizer("export_memory", format="json")
    folder = tmp_path / "memory-export"
    assert exported["export_path"] == str(folder)
    assert exported["files_created"] == ["profile.json", "facts/all-facts.json", "conversations/recent.json"]
    assert exported["exported_at"].endswith("Z")
    assert json.loads((folder / "profile.json").read_text())["user_info"]["name"] == "Anna"
    facts = json.loads((folder / "facts/all-facts.json").read_text())
    assert [*facts[0]] == ["id", "fact", "category", "confidence", "created_at"]
    (talk,) = json.loads((folder / "conversations/recent.json").read_text())
    assert talk.keys() == {"id", "user_message", "agent_response", "created_at"}
    assert not list(folder.rglob(".export-*"))


async def test_export_as_markdown_goes_to_the_configured_folder(tmp_path: Path, database: str) -> None:
    host = serve(tmp_path, database, **{"export.path": str(tmp_path / "out")})
    async with Client(MindexServer(host, dialect_named(DIALECT))) as client:
        memorizer = Memorizer(client)
        await filled(memorizer)
        exported = await memorizer("export_memory", include_conversations=False)
        assert exported["export_path"] == str(tmp_path / "out")
        assert "conversations/recent.md" not in exported["files_created"]
        assert {f"facts/{category}.md" for category in CATEGORIES} < set(exported["files_created"])
        assert "- Deploys are on Tuesday. (" in (tmp_path / "out/facts/decision.md").read_text()
        assert "- **user_info.name**: Anna" in (tmp_path / "out/profile.md").read_text()
        assert "- decision: 1" in (tmp_path / "out/summary.md").read_text()
        assert "conversations/recent.md" in (await memorizer("export_memory", format="markdown"))["files_created"]
        assert "**Agent:** Tuesday." in (tmp_path / "out/conversations/recent.md").read_text()
    host.close()


async def test_edited_files_are_imported(memorizer: Memorizer, tmp_path: Path, memory: Memory) -> None:
    await filled(memorizer)
    await memorizer("export_memory", format="json")
    folder = tmp_path / "memory-export"
    path = folder / "facts/all-facts.json"
    assert (await memorizer("import_memory", file_path=str(path)))["changes_applied"] == 0
    facts = json.loads(path.read_text())
    assert facts[1]["fact"] == "Deploys are on Tuesday."
    facts[1]["fact"] = "Deploys are on Friday."
    facts.append({"fact": "Ana likes maps.", "category": "contact", "confidence": 0.5})
    # The same id of another time is another database's fact: it must not replace ours.
    facts.append({"id": 2, "fact": "Tea is at five.", "category": "pattern", "created_at": "2020-01-01 00:00:00"})
    path.write_text(json.dumps(facts))
    done = await memorizer("import_memory", file_path="facts/all-facts.json")
    assert done == {"changes_applied": 3, "fields_updated": ["fact 1", "fact 5", "fact 6"]}
    assert (await memorizer("import_memory", file_path="facts/all-facts.json"))["changes_applied"] == 0
    listed = {fact["fact"]: fact["confidence"] for fact in (await memorizer("list_facts"))["facts"]}
    assert listed == {
        "Deploys are on Friday.": 1.0, "Coffee is at nine.": 1.0, "Ana likes maps.": 0.5, "Tea is at five.": 1.0
    }  # fmt: skip

    profile = json.loads((folder / "profile.json").read_text())
    profile["user_info"]["name"] = "Bob"
    profile["hobbies"] = ["maps"]
    (folder / "old-profile.json").write_text(json.dumps(profile))
    done = await memorizer("import_memory", file_path="old-profile.json")
    assert done == {"changes_applied": 2, "fields_updated": ["user_info", "hobbies"]}
    assert memory.profile.get("user_info.name") == "Bob"
    assert (await memorizer("import_memory", file_path="old-profile.json"))["changes_applied"] == 0


async def test_nothing_outside_the_export_folder_is_read_or_written(memorizer: Memorizer, tmp_path: Path) -> None:
    await memorizer("export_memory", format="json")
    folder = tmp_path / "memory-export"
    outside = tmp_path / "secret-facts.json"
    outside.write_text('[{"fact": "stolen", "category": "project"}]')
    (folder / "facts-link.json").symlink_to(outside)
    missing = ("../none.json", "facts/none.json", "facts\0.json", "~nobody/facts.json")
    for path in (str(outside), "../secret-facts.json", "facts-link.json", *missing):  # the same, existing or not
        assert "there is no file" in await memorizer.error("import_memory", file_path=path)
    assert (await memorizer("list_facts"))["total_count"] == 0
    (folder / "profile.json").unlink()
    (folder / "profile.json").symlink_to(outside)
    await memorizer("export_memory", format="json")
    assert "stolen" in outside.read_text()
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (folder / "conversations/recent.json").unlink()
    (folder / "conversations").rmdir()
    (folder / "conversations").symlink_to(elsewhere)
    assert "is outside" in await memorizer.error("export_memory", format="json")
    assert not list(elsewhere.iterdir())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("facts.json", "[" * 100_000, "cannot be read as JSON"),
        ("facts.json", "[NaN]", "cannot be read as JSON"),
        ("facts.json", "\xff", "does not contain facts"),
        ("facts.json", '{"fact": "x"}', "does not contain facts"),
        ("facts.json", '[{"fact": "x", "category": "opinion"}]', "does not contain facts"),
        ("facts.json", '[{"fact": 5, "category": "project"}]', "does not contain facts"),
        ("profile.json", "[]", "does not contain a profile"),
        ("profile.json", '{"a.b": 1}', "does not contain a profile"),
        ("notes.json", "[]", "neither a profile nor facts"),
    ],
)
async def test_malformed_files_are_refused(
    memorizer: Memorizer, tmp_path: Path, name: str, content: str, message: str
) -> None:
    folder = tmp_path / "memory-export"
    folder.mkdir()
    (folder / name).write_text(content if content != "\xff" else '"x"')
    assert message in await memorizer.error("import_memory", file_path=name)


async def test_a_fact_that_cannot_be_imported_is_named_and_the_rest_is_imported(
    memorizer: Memorizer, tmp_path: Path
) -> None:
    folder = tmp_path / "memory-export"
    folder.mkdir()
    facts = [{"fact": " ", "category": "project"}, {"fact": "Good.", "category": "project"}]
    (folder / "facts.json").write_text(json.dumps(facts))
    answered = await memorizer.envelope("import_memory", file_path="facts.json")
    assert answered["data"]["changes_applied"] == 1
    assert "fact 0 of the file was left out" in answered["notes"][0]


# ── as its users start it ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_memorizer_works_over_stdio(tmp_path: Path, database: str) -> None:
    command = [sys.executable, "-c", "from mindex.cli.main import main; main()"]
    arguments = [*command[1:], "--db", database, "serve", "--tools", DIALECT]
    environment = {**os.environ, "MINDEX_EMBEDDING_PROVIDER": "none", "MEMORY_EXPORT_PATH": str(tmp_path / "out")}
    async with Client(StdioServerParameters(command=command[0], args=arguments, env=environment)) as client:
        memorizer = Memorizer(client)
        assert [tool.name for tool in (await client.list_tools()).tools] == NAMES
        stored = await memorizer("store_fact", fact="Deploys are on Tuesday.", category="decision", agent_id="main")
        assert stored["fact_id"] == 1
        await memorizer("store_conversation", user_message="When do we deploy?", agent_response="On Tuesday.")
        found = await memorizer("retrieve_memories", query="deploys", limit=5, include_conversations=True)
        assert ([fact["id"] for fact in found["facts"]], len(found["conversations"])) == ([1], 1)
        assert (await memorizer("export_memory"))["export_path"] == str(tmp_path / "out")
        assert await memorizer.error("delete_fact", fact_id=99) == "Fact not found: 99"


async def test_a_value_replaces_an_object_of_the_profile_only_when_asked_to(memorizer: Memorizer) -> None:
    await memorizer("update_profile", updates={"user_info.name": "Anna"})
    refused = await memorizer.error("update_profile", updates={"user_info": "Anna"})
    assert "'user_info' is an object that holds user_info.name" in refused
    assert refused.endswith("or add the argument replace")
    await memorizer("update_profile", updates={"user_info": "Anna"}, replace=True)
    assert (await memorizer("get_profile"))["profile"]["user_info"] == "Anna"


async def test_contacts_have_more_fields_than_the_program_has_and_show_those_that_are_set(memorizer: Memorizer) -> None:
    more = {"phone": "+47 1", "address": "Oslo", "birthday": "05-17", "links": ["a.example"]}
    await memorizer("create_contact", name="Anna", email="anna@acme.example")
    second = await memorizer.envelope("create_contact", name="Anna", email="a@globex.example", **more)
    assert second["notes"][0].startswith("another contact is called Anna: ")
    plain, full = (await memorizer("list_contacts"))["contacts"]
    assert not more.keys() & plain.keys()
    assert {name: full[name] for name in more} == more
    assert await memorizer("update_contact", contact_id=1, phone="+47 2") == {"updated_fields": ["phone"]}


async def test_errors_name_its_own_tools(memorizer: Memorizer) -> None:
    assert "agent_id" in await memorizer.error("store_fact", fact="x is y", category="decision", agent_id="*")
