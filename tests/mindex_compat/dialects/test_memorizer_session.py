"""A session of Memorizer-MCP, made from the examples of its document, against `mindex serve --tools memorizer`.

The server is started with Memorizer-MCP's own environment variables, and each answer is compared field by field.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mcp import Client
from mindex.memory import Memory
from tests.mcp.conftest import structured, text
from tests.mcp.sessions import ANY_TEXT, ISO, ROW_TIME, started
from tests.providers.servers import ModelServer
from tests.running import wait_until

pytestmark = [pytest.mark.anyio, pytest.mark.server]

FACTS = {
    "preference": "Anna prefers dark mode in every editor.",
    "background": "Anna studied marine biology in Lisbon.",
    "pattern": "Anna runs along the river before work.",
    "project": "The atlas project maps the harbour of Porto.",
    "contact": "Tomasz reviews the drawings of the harbour.",
    "decision": "Tiles are rendered with MapLibre.",
}
KEYWORD_NOTE = "no embedder is configured; answered by keyword"


@pytest.fixture
def ollama() -> Iterator[ModelServer]:
    with ModelServer() as server:
        yield server


@pytest.fixture
def env(tmp_path: Path, database: str) -> dict[str, str]:
    return {
        "MEMORY_DB_PATH": database,
        "MEMORY_EXPORT_PATH": str(tmp_path / "memory-export"),
        "EMBEDDING_PROVIDER": "none",
    }


async def call(client: Client, tool: str, **arguments: object) -> dict[str, Any]:
    """The whole answer: one text block of compact JSON, the same as structured content, and never a tool error."""
    result = await client.call_tool(tool, arguments)
    answered: dict[str, Any] = json.loads(text(result))
    assert text(result) == json.dumps(answered, ensure_ascii=False, separators=(",", ":"))
    assert structured(result) == answered
    assert not result.is_error
    return answered


async def data(client: Client, tool: str, **arguments: object) -> Any:
    answered = await call(client, tool, **arguments)
    assert answered["success"] is True, answered
    return answered["data"]


def fact(id_: int, category: str, **other: object) -> dict[str, object]:
    row = {"id": id_, "fact": FACTS[category], "category": category, "confidence": 1.0, "created_at": ROW_TIME}
    return {**row, **other}


async def store_all(client: Client) -> None:
    for id_, (category, sentence) in enumerate(FACTS.items(), start=1):
        stored = await data(client, "store_fact", fact=sentence, category=category)
        assert stored == {"fact_id": id_, "stored_at": ISO}


async def test_facts_are_stored_once_searched_in_tiers_corrected_and_deleted(
    env: dict[str, str], tmp_path: Path
) -> None:
    async with started("memorizer", env=env) as client:
        await store_all(client)
        # The same text of the same agent is the same fact; of another agent it is another one, with another id.
        again = await data(client, "store_fact", fact=FACTS["decision"], category="decision")
        known = "this fact is stored already, as decision; its time was refreshed"
        assert again == {"fact_id": 6, "stored_at": ISO, "message": known}
        theirs = await data(client, "store_fact", fact=FACTS["decision"], category="decision", agent_id="work")
        assert theirs == {"fact_id": 7, "stored_at": ISO}
        # Keywords that overlap by 0.6 or more: stored, with a warning.
        similar = await data(
            client, "store_fact", fact="Anna prefers dark mode in most editors.", category="preference"
        )
        assert similar == {
            "fact_id": 8,
            "stored_at": ISO,
            "message": "similar facts exist; update or delete those that say the same",
            "similar_existing": [{"id": 1, "fact": FACTS["preference"]}],
        }
        unsafe = await call(client, "store_fact", fact="The database password is hunter2hunter2", category="background")
        assert unsafe == {
            "success": False, "error": "the fact contains a secret (password), so nothing was stored; take it out"
        }  # fmt: skip
        listed = await data(client, "list_facts", category="decision")
        assert listed == {"facts": [fact(6, "decision", source=None)], "total_count": 1}

        # No embedder is configured: keywords alone, stemmed, any of them, within the agent.
        found = await call(client, "retrieve_memories", query="running")
        assert found == {
            "success": True,
            "data": {"facts": [fact(3, "pattern")], "conversations": [], "search_mode": "fts5_only"},
            "notes": [KEYWORD_NOTE],
        }
        either = await data(client, "retrieve_memories", query="lisbon maplibre zeppelin", include_conversations=False)
        assert sorted(one["id"] for one in either["facts"]) == [2, 6]
        assert (await data(client, "retrieve_memories", query="lisbon", agent_id="work"))["facts"] == []
        # Nothing matches by word: any part of a word does.
        letters = await data(client, "retrieve_memories", query="apLib arbou")
        assert letters["search_mode"] == "like_fallback"
        assert sorted(one["id"] for one in letters["facts"]) == [4, 5, 6]

        changed = await data(client, "update_fact", fact_id=7, fact="Tiles are rendered with OpenLayers.")
        assert changed == {
            "fact_id": 7,
            "old_fact": FACTS["decision"],
            "new_fact": "Tiles are rendered with OpenLayers.",
            "category": "decision",
        }
        deleted = await data(client, "delete_fact", fact_id=7)
        assert deleted == {"deleted_fact": "Tiles are rendered with OpenLayers."}
        assert await call(client, "delete_fact", fact_id=7) == {"success": False, "error": "Fact not found: 7"}
    with Memory(env["MEMORY_DB_PATH"], options={"embedding.provider": "none"}) as memory:
        assert "main" in memory.store.entries.agents()


async def test_conversations_profile_skills_contacts_and_projects_are_kept(env: dict[str, str], tmp_path: Path) -> None:
    async with started("memorizer", env=env) as client:
        talk = {"user_message": "Which renderer do we use?", "agent_response": "MapLibre, for the tiles."}
        stored = await data(client, "store_conversation", **talk, session_id="s1", tags=["maps"])
        assert stored == {"conversation_id": ANY_TEXT, "facts_extracted": 0, "stored_at": ISO}
        row = {"id": stored["conversation_id"], **talk, "created_at": ROW_TIME}
        found = await data(client, "search_conversations", query="renderer")
        assert found == {
            "conversations": [{**row, "session_id": "s1", "tags": ["maps"]}],
            "total_count": 1,
            "search_mode": "fts5_only",
        }
        recalled = await data(client, "retrieve_memories", query="renderer")
        assert recalled == {"facts": [], "conversations": [row], "search_mode": "fts5_only"}

        empty = await data(client, "get_profile")
        assert (empty["last_updated"], empty["profile"]["user_info"]["name"]) == (None, None)
        updates = {"user_info.name": "Anna", "preferences.coding_languages": ["Rust"]}
        updated = await data(client, "update_profile", updates=updates, reason="introduced herself")
        assert updated == {"updated_fields": ["user_info.name", "preferences.coding_languages"]}
        assert await data(client, "get_profile") == {
            "profile": {
                "user_info": {"name": "Anna", "background": None, "timezone": None, "current_role": None},
                "preferences": {
                    "communication": None,
                    "coding_languages": ["Rust"],
                    "tools": [],
                    "working_style": None,
                },
                "current_projects": [],
                "learned_patterns": [],
            },
            "last_updated": ROW_TIME,
        }

        contact = await data(client, "create_contact", name="Tomasz", email="tomasz@example.org", company="Atlas")
        assert contact == {"contact_id": 3, "created_at": ISO}
        taken = await call(client, "create_contact", name="Twice", email="tomasz@example.org")
        assert (taken["success"], "tomasz@example.org" in taken["error"]) == (False, True)
        project = await data(
            client, "create_project", name="Atlas", primary_contact_id=3, participants=[3], priority="high"
        )
        assert project == {"project_id": 4, "created_at": ISO}
        times = {"created_at": ROW_TIME, "updated_at": ROW_TIME}
        assert await data(client, "list_contacts", company="Atlas") == {
            "contacts": [
                {
                    "id": 3, "name": "Tomasz", "email": "tomasz@example.org", "company": "Atlas", "role": None,
                    "type": "work", "notes": None, **times,
                }
            ],
            "total_count": 1,
        }  # fmt: skip
        assert await data(client, "list_projects", contact_id=3) == {
            "projects": [
                {
                    "id": 4, "name": "Atlas", "status": "active", "type": "work", "description": None,
                    "primary_contact_id": 3, "participants": [3], "company": None, "priority": "high", **times,
                }
            ],
            "total_count": 1,
        }  # fmt: skip
        linked = await data(client, "link_project_source", project_id=4, location=str(tmp_path))
        assert linked == {"project_id": 4, "location": str(tmp_path), "source_type": "folder", "linked_at": ISO}
        skill = await data(
            client,
            "store_skill",
            name="Morning brief",
            trigger_type="cron",
            trigger_config={"schedule": "0 9 * * 1-5", "timezone": "Europe/Lisbon"},
            instructions="Sum up the day before.",
            required_tools=["retrieve_memories"],
        )
        assert skill == {"skill_id": 5, "stored_at": ISO}
        assert await data(client, "get_skill", skill_id=5) == {
            "skill": {
                "id": 5, "agent_id": "main", "name": "Morning brief", "description": None, "enabled": True,
                "trigger_type": "cron", "trigger_config": {"schedule": "0 9 * * 1-5", "timezone": "Europe/Lisbon"},
                "instructions": "Sum up the day before.", "required_tools": ["retrieve_memories"],
                "execution_plan": None, "max_steps": 10, "notify_on_completion": True, "notify_interval_minutes": 0,
                "last_run_at": None, "last_run_status": None, "last_run_summary": None, "last_notified_at": None,
                **times,
            }
        }  # fmt: skip
        stats = await data(client, "get_memory_stats")
        assert stats == {
            "fact_count": 0,
            "conversation_count": 1,
            "oldest_conversation": ROW_TIME,
            "newest_conversation": ROW_TIME,
            "facts_by_category": {},
            "database_size_mb": stats["database_size_mb"],
            "search_capabilities": {
                "sqlite_vec_loaded": False,
                "embedding_provider": "none",
                "vector_search_enabled": False,
                "fts5_available": True,
                "search_mode": "fts5_only",
            },
        }
        exported = await data(client, "export_memory", format="json")
        assert exported == {
            "export_path": str(tmp_path / "memory-export"),
            "files_created": ["profile.json", "facts/all-facts.json", "conversations/recent.json"],
            "exported_at": ISO,
        }


async def test_missing_embeddings_are_filled_in_batch_by_batch(env: dict[str, str], ollama: ModelServer) -> None:
    async with started("memorizer", env=env) as client:
        await store_all(client)
        refused = await call(client, "backfill_embeddings")
        assert (refused["success"], "no embedder is configured" in refused["error"]) == (False, True)

    env |= {"EMBEDDING_PROVIDER": "ollama", "OLLAMA_HOST": ollama.url}
    async with started("memorizer", env=env) as client:
        for embedded, remaining in ((2, 4), (2, 2), (2, 0)):
            done = await data(client, "backfill_embeddings", batch_size=2)
            assert done == {"processed": embedded, "embedded": embedded, "failed": 0, "remaining": remaining}
        nothing = {"processed": 0, "embedded": 0, "failed": 0, "remaining": 0}
        assert await data(client, "backfill_embeddings") == nothing  # idempotent
        assert {request.body["model"] for request in ollama.asked} == {"nomic-embed-text"}
        found = await call(client, "retrieve_memories", query="harbour drawings", limit=2)
        assert found["data"]["search_mode"] == "hybrid"
        assert found["data"]["facts"][0] == fact(5, "contact")
        stats = await data(client, "get_memory_stats")
        assert stats["search_capabilities"] == {
            "sqlite_vec_loaded": True,
            "embedding_provider": "ollama",
            "vector_search_enabled": True,
            "fts5_available": True,
            "search_mode": "hybrid",
        }


async def test_a_fact_is_stored_and_found_by_keyword_while_ollama_is_down(
    env: dict[str, str], ollama: ModelServer
) -> None:
    env |= {"EMBEDDING_PROVIDER": "ollama", "OLLAMA_HOST": ollama.url}
    ollama.stop()
    async with started("memorizer", env=env) as client:
        stored = await data(client, "store_fact", fact=FACTS["decision"], category="decision")
        assert stored == {"fact_id": 1, "stored_at": ISO}
        found = await call(client, "retrieve_memories", query="MapLibre")
        assert found["data"] == {"facts": [fact(1, "decision")], "conversations": [], "search_mode": "fts5_only"}
        assert "ollama" in found["notes"][0]
    ollama.start()
    async with started("memorizer", env=env) as client:
        assert (await data(client, "backfill_embeddings"))["remaining"] == 0
        await data(client, "update_fact", fact_id=1, fact="Tiles are rendered with OpenLayers.")

        def embedded_anew() -> bool:
            with Memory(
                env["MEMORY_DB_PATH"], options={"embedding.provider": "ollama", "embedding.url": ollama.url}
            ) as m:
                return m.status().embedding.pending == 0 and any("OpenLayers" in str(body) for body in ollama.bodies)

        wait_until(embedded_anew, what="the vector of the new text")
