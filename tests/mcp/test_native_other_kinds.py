"""Exchanges, the profile, contacts, projects and skills over MCP: seven tools reach all of it."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from mcp import Client
from mindex.present.fence import body
from tests.mcp.conftest import Served, structured, text

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(own: Served) -> AsyncIterator[Client]:
    async with Client(own.server) as connected:
        yield connected


async def remember(client: Client, kind: str, **fields: Any) -> dict[str, Any]:
    result = await client.call_tool("remember", {"kind": kind, "fields": fields})
    assert not result.is_error, text(result)
    return structured(result)


async def test_every_kind_is_remembered_found_and_read(client: Client) -> None:
    contact = await remember(client, "contact", name="Anna", email="anna@acme.example")
    assert contact == {"id": contact["id"], "name": "Anna", "email": "anna@acme.example", "type": "work"}
    project = await remember(client, "project", name="Atlas", description="Rotterdam")
    await remember(
        client, "skill", name="Brief", trigger_type="interval", trigger_config={"interval_minutes": 5},
        instructions="Sum up",
    )  # fmt: skip
    turn = await remember(client, "turn", user_message="Where?", agent_response="In Genoa", session_id="s1")
    await remember(client, "profile", **{"user.name": "Anna", "user.langs": ["py"]})
    for query, kind in (("anna@acme.example", "contact"), ("Rotterdam", "project"), ("Genoa", "turn")):
        results = structured(await client.call_tool("search", {"query": query, "kind": kind}))["results"]
        assert [row["kind"] for row in results] == [kind]
    refs = [f"{turn['id']}±2", "profile.user.name", "due", f"history:{project['id']}", "timeline:1d.."]
    result = await client.call_tool("get", {"refs": refs})
    records = structured(result)["records"]
    assert [record["kind"] for record in records] == ["turn", "profile", "skill", "history", "timeline"]
    assert (records[1]["text"], records[0]["fields"]) == ("Anna", {"session_id": "s1"})
    for record in records:
        assert body(record["text"]) in text(result)


async def test_fields_are_changed_and_undone(client: Client) -> None:
    id_ = (await remember(client, "contact", name="Anna", company="Acme"))["id"]
    changed = structured(
        await client.call_tool("update", {"id": id_, "fields": {"company": "Globex"}, "reason": "moved"})
    )
    assert set(changed) == {"id", "change"}
    assert "company: Globex" in text(await client.call_tool("get", {"refs": id_}))
    await client.call_tool("update", {"id": id_, "undo": True})
    assert "company: Acme" in text(await client.call_tool("get", {"refs": id_}))
    await client.call_tool("forget", {"id": id_})
    assert (await client.call_tool("get", {"refs": id_})).is_error
    await client.call_tool("update", {"id": id_, "restore": True})
    assert not (await client.call_tool("get", {"refs": id_})).is_error


async def test_the_profile_is_changed_by_its_id_too(client: Client) -> None:
    id_ = (await remember(client, "profile", name="Anna"))["id"]
    await client.call_tool("update", {"id": id_, "fields": {"name": "Bea", "age": 40}})
    record = structured(await client.call_tool("get", {"refs": "profile"}))["records"][0]
    assert json.loads(record["text"]) == {"name": "Bea", "age": 40}


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "the text is empty"),
        ({"kind": "chunk", "text": "x"}, "unknown kind 'chunk'; use one of memory, turn"),
        ({"kind": "contact", "text": "Anna"}, "a contact consists of fields"),
        ({"kind": "contact"}, "a contact needs the field name"),
        ({"kind": "contact", "fields": {"name": "A", "fax": "1"}}, "a contact has no 'fax'; use name, email"),
        ({"kind": "contact", "fields": {"name": "A", "agent": "other"}}, "a contact has no 'agent'"),
        ({"kind": "skill", "fields": {"name": "A", "trigger_type": "cron", "instructions": "x"}}, "trigger_config has"),
        ({"kind": "turn", "fields": {"said": "x"}}, "a turn has no 'said'"),
        ({"kind": "turn"}, "both messages of the turn are empty"),
        ({"kind": "profile", "fields": {"a..b": 1}}, "'a..b' is not a path"),
        ({"kind": "profile"}, "there is nothing to change"),
        ({"text": "x", "fields": {"a": 1}}, "a memory has no fields"),
    ],
)
async def test_wrong_fields_are_errors(client: Client, arguments: dict[str, Any], complaint: str) -> None:
    result = await client.call_tool("remember", arguments)
    assert result.is_error
    assert text(result).startswith(complaint)


async def test_fields_are_only_for_kinds_that_have_them(client: Client) -> None:
    contact = (await remember(client, "contact", name="Anna"))["id"]
    memory = structured(await client.call_tool("remember", {"text": "A memory."}))["id"]
    both = await client.call_tool("update", {"id": contact, "fields": {"role": "x"}, "tags": ["y"]})
    assert text(both).startswith("update makes one kind of change per call")
    none = await client.call_tool("update", {"id": memory, "fields": {"role": "x"}})
    assert text(none).startswith("a memory has no fields to change")
    words = await client.call_tool("update", {"id": contact, "text": "Somebody else"})
    assert text(words).startswith("the text of a contact is made from its fields")


async def test_no_due_skill_is_not_an_error(client: Client) -> None:
    result = await client.call_tool("get", {"refs": "due"})
    assert not result.is_error
    assert structured(result) == {"records": [], "missing": [], "notes": ["nothing is due"]}


@pytest.mark.parametrize("tool", ["remember", "update"])
async def test_a_place_of_the_profile_is_set_by_path_and_value(client: Client, own: Served, tool: str) -> None:
    id_ = (await remember(client, "profile", tea="green"))["id"]
    call = {"kind": "profile"} if tool == "remember" else {"id": id_}
    result = await client.call_tool(tool, {**call, "fields": {"path": "user.name", "value": "Ada"}})
    assert not result.is_error
    assert own.host.memory.profile.get() == {"tea": "green", "user": {"name": "Ada"}}
    refused = await client.call_tool(tool, {**call, "fields": {"path": "user", "value": "oops"}})
    assert refused.is_error
    assert text(refused).endswith("or add `replace: true` beside path and value")
    assert own.host.memory.profile.get("user") == {"name": "Ada"}
    replaced = {**call, "fields": {"path": "user", "value": "oops", "replace": True}}
    assert not (await client.call_tool(tool, replaced)).is_error
    assert own.host.memory.profile.get("user") == "oops"


async def test_a_path_that_is_not_a_text_is_rejected(client: Client, own: Served) -> None:
    wrong = {"kind": "profile", "fields": {"path": 5, "value": "x"}}
    assert "path must be a text" in text(await client.call_tool("remember", wrong))
    assert own.host.memory.profile.get() == {}


async def test_the_second_contact_of_one_name_is_reported(client: Client) -> None:
    first = await remember(client, "contact", name="Anna")
    second = await remember(client, "contact", name="Anna", phone="+47 1", links=["a.example"], birthday="05-17")
    assert second["note"] == f"another contact is called Anna: {first['id']}; name them by id"
    assert (second["phone"], second["links"], second["birthday"]) == ("+47 1", ["a.example"], "05-17")


async def test_a_cron_line_under_another_key_names_the_key(client: Client) -> None:
    fields = {"name": "Brief", "trigger_type": "cron", "trigger_config": {"cron": "0 9 * * *"}, "instructions": "x"}
    result = await client.call_tool("remember", {"kind": "skill", "fields": fields})
    assert result.is_error and "trigger_config has no 'schedule', but 'cron'" in text(result)
