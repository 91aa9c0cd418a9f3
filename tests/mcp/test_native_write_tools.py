"""The life of a memory over the native tools."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from mcp import Client
from mindex.clock import now_ms
from mindex.datatypes import TYPES
from mindex.memory import Memory
from mindex.present.token_count import count_tokens
from tests.mcp.conftest import Served, structured, text
from tests.running import wait_until

pytestmark = pytest.mark.anyio


@pytest.fixture
async def client(own: Served) -> AsyncIterator[Client]:
    async with Client(own.server) as connected:
        yield connected


async def remember(client: Client, words: str, **properties: object) -> str:
    result = await client.call_tool("remember", {"text": words, **properties})
    assert not result.is_error, text(result)
    return str(structured(result)["id"])


async def found(client: Client, query: str, **arguments: object) -> list[dict[str, Any]]:
    return list(structured(await client.call_tool("search", {"query": query, **arguments}))["results"])


async def test_conflicts_are_reported_and_end_when_one_supersedes_the_other(client: Client) -> None:
    older = await remember(client, "Standup is at 9:30")
    result = await client.call_tool("remember", {"text": "Standup is at 10:00"})
    newer, why = structured(result)["id"], "different times: 9:30 and 10:00"
    assert structured(result)["conflicts"] == [{"id": older, "summary": "Standup is at 9:30", "why": why}]
    assert f"conflict: {older} Standup is at 9:30 ({why})" in text(result)
    assert structured(result)["notes"] == [
        f"if {newer} is right: `update` with id: {newer}, supersedes: {older} supersedes the other one"
    ]
    assert why in text(await client.call_tool("get", {"refs": ["conflicts"]}))
    for view in ("full", "compact", "digest"):
        shown = await client.call_tool("search", {"query": "when is the standup", "view": view})
        rows = {row["id"]: row["conflicts"] for row in structured(shown)["results"]}
        assert {id_: [one["id"] for one in conflicts] for id_, conflicts in rows.items()} == {
            older: [newer],
            newer: [older],
        }
        assert f"conflicts with {newer}" in text(shown) and f"conflicts with {older}" in text(shown)
        note = f"if {newer} is right: `update` with id: {newer}, supersedes: {older} supersedes the other one"
        assert structured(shown)["notes"][-1] == note and f"note: {note}" in text(shown)
    result = await client.call_tool("update", {"id": older, "text": "Standup is at 11:00"})
    assert [one["id"] for one in structured(result)["conflicts"]] == [newer]
    result = await client.call_tool("update", {"id": newer, "supersedes": older})
    assert structured(result)["conflicts"] == []
    assert "no memory is in conflict" in text(await client.call_tool("get", {"refs": ["conflicts"]}))


async def test_times_may_be_written_as_people_write_them(client: Client, own: Served) -> None:
    id_ = await remember(client, "The harbour is closed", expires="next week")
    assert (own.host.memory.entries.find(id_).expires_at or 0) > now_ms()
    assert [row["id"] for row in await found(client, "harbour", after="yesterday", before="tomorrow")] == [id_]
    assert await found(client, "harbour", as_of="2 hours ago") == []
    timeline = structured(await client.call_tool("get", {"refs": ["timeline", "timeline:last week..now"]}))
    assert [id_ in record["text"] for record in timeline["records"]] == [True, True]
    refused = await client.call_tool("search", {"query": "harbour", "after": "1m"})
    assert refused.is_error and "write 1min or 1mo" in text(refused)


# ── a whole life ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_memory_is_added_found_updated_forgotten_restored_and_undone(client: Client) -> None:
    result = await client.call_tool("remember", {"text": "Mara prefers tabs over spaces.", "type": "preference"})
    id_ = structured(result)["id"]
    assert structured(result) == {
        "id": id_,
        "created": True,
        "duplicate": False,
        "similar": [],
        "conflicts": [],
        "redacted": [],
    }
    assert text(result) == f"{id_} remembered"
    assert [row["id"] for row in await found(client, "tabs")] == [id_]

    result = await client.call_tool("update", {"id": id_[:6], "text": "Mara prefers spaces.", "reason": "she said so"})
    assert structured(result)["id"] == id_
    assert text(result).startswith(f"{id_} updated (change ")
    assert (await found(client, "spaces"))[0]["text"] == "Mara prefers spaces."

    result = await client.call_tool("forget", {"id": id_, "reason": "she left"})
    assert structured(result)["forgotten"] is True
    assert await found(client, "spaces") == []
    assert (await client.call_tool("get", {"refs": id_})).is_error

    assert text(await client.call_tool("update", {"id": id_, "restore": True})).startswith(f"{id_} restored")
    assert [row["id"] for row in await found(client, "spaces")] == [id_]

    history = await client.call_tool("get", {"refs": [f"history:{id_}"]})
    changes = structured(history)["records"][::-1]
    assert [change["fields"]["action"] for change in changes] == ["add", "update", "forget", "restore"]
    assert "text: Mara prefers tabs over spaces. → Mara prefers spaces." in text(history)
    assert "she said so" in text(history)

    result = await client.call_tool("update", {"id": id_, "undo": changes[1]["id"]})
    assert str(structured(result)["undid"]) == changes[1]["id"]
    assert (await found(client, "tabs"))[0]["text"] == "Mara prefers tabs over spaces."
    await client.call_tool("update", {"id": id_, "undo": structured(result)["change"]})  # that undo
    assert (await found(client, "Mara"))[0]["text"] == "Mara prefers spaces."


async def test_every_property_is_stored_and_can_be_changed(client: Client) -> None:
    given = {
        "type": "decision",
        "importance": 9,
        "confidence": 0.8,
        "tags": ["db"],
        "entities": ["Postgres"],
        "summary": "Postgres it is.",
        "context": "billing",
        "source": "meeting",
        "expires": "2099-01-31",
    }
    id_ = await remember(client, "We store invoices in Postgres.", **given)
    (record,) = structured(await client.call_tool("get", {"refs": id_}))["records"]
    for name in ("type", "importance", "confidence", "tags", "summary", "context", "source"):
        assert record[name] == given[name]
    assert record["expires_at"].startswith("2099-01-3")
    assert [row["id"] for row in await found(client, "invoices", entities="postgres")] == [id_]
    await client.call_tool("update", {"id": id_, "tags": [], "expires": "", "importance": 3, "entities": "MySQL"})
    (record,) = structured(await client.call_tool("get", {"refs": id_}))["records"]
    assert record["importance"] == 3
    assert "tags" not in record
    assert "expires_at" not in record
    assert await found(client, "invoices", entities="Postgres") == []
    assert [row["id"] for row in await found(client, "invoices", entities="MySQL")] == [id_]


async def test_the_same_text_again_is_the_same_memory(client: Client) -> None:
    id_ = await remember(client, "The build runs on port 5432.")
    again = await client.call_tool("remember", {"text": "The build  runs on port 5432. "})
    assert structured(again) == {
        "id": id_,
        "created": False,
        "duplicate": True,
        "similar": [],
        "conflicts": [],
        "redacted": [],
    }
    assert text(again) == f"{id_} known already"


async def test_similar_memories_are_named_and_can_be_superseded(client: Client) -> None:
    old = await remember(client, "The nightly backup of the billing database runs at two in the morning.")
    words = "The nightly backup of the billing database runs late in the morning."
    result = await client.call_tool("remember", {"text": words})
    assert [one["id"] for one in structured(result)["similar"]] == [old]
    assert f"similar: {old} The nightly backup" in text(result)
    await client.call_tool("update", {"id": structured(result)["id"], "supersedes": old})
    assert [row["id"] for row in await found(client, "nightly backup")] == [structured(result)["id"]]
    assert structured(await client.call_tool("get", {"refs": old}))["records"]  # kept, and shown to who asks for it


async def test_a_secret_is_left_out_and_named(client: Client) -> None:
    key = "sk-ant-" + "api03-Zk9pQ2xWv7Rt4Yb8Nc1Md6Fg3Hj5Ls0"
    result = await client.call_tool("remember", {"text": f"The key of staging is {key}"})
    assert structured(result)["redacted"]
    assert text(result).splitlines()[1].startswith("redacted: ")
    (record,) = structured(await client.call_tool("get", {"refs": structured(result)["id"]}))["records"]
    assert key not in json.dumps(record)
    assert "[redacted:" in record["text"]


async def test_a_search_as_of_a_time_returns_the_earlier_text(client: Client, own: Served) -> None:
    id_ = await remember(client, "The office is in Bern.")
    told_at = own.host.memory.history(id_)[0].at
    then = datetime.fromtimestamp(told_at / 1000, UTC).isoformat(timespec="milliseconds")
    wait_until(lambda: now_ms() > told_at, what="the clock's next tick")
    await client.call_tool("update", {"id": id_, "text": "The office is in Basel."})
    assert (await found(client, "office", as_of=then))[0]["text"] == "The office is in Bern."
    got = structured(await client.call_tool("get", {"refs": id_, "as_of": then}))
    assert got["records"][0]["text"] == "The office is in Bern."
    assert (await found(client, "office"))[0]["text"] == "The office is in Basel."


# ── errors, after which nothing is changed ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"text": ""}, "the text is empty"),
        ({"text": " \n\t"}, "the text is empty"),
        ({"text": "x" * 5_000_000}, "the text has 5,000,000 bytes, a memory may have 1,048,576"),
        ({"text": "words", "type": "rumour"}, f"unknown type 'rumour'; use one of {', '.join(TYPES)}"),
        ({"text": "words", "importance": 11}, "importance 11 is out of range; use 1 (trivial) to 10 (vital)"),
        ({"text": "words", "importance": 0}, "importance 0 is out of range"),
        ({"text": "words", "confidence": 2}, "confidence 2 is out of range"),
        ({"text": "words", "expires": "someday"}, "'someday' is not a time"),
        ({"text": "words", "expires": "2001-01-01"}, "the expiry is in the past"),
        ({"text": "words", "expires": "999999y"}, "'999999y' is outside the years 1 to 9999"),
        ({"text": "words", "supersedes": "zzzzzz"}, "there is no entry 'zzzzzz'"),
        ({"text": "words", "kind": "contact"}, "a contact consists of fields"),
        ({"text": "words", "colour": "red"}, "unknown argument 'colour'; remember takes text, type"),
        ({}, "the text is empty"),
    ],
)
async def test_wrong_arguments_of_remember_are_errors(
    client: Client, arguments: dict[str, object], complaint: str
) -> None:
    result = await client.call_tool("remember", arguments)
    assert result.is_error
    assert text(result).startswith(complaint)
    assert "\n" not in text(result)
    assert structured(await client.call_tool("status", {}))["records"].get("memory", 0) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({}, "there is nothing to change in '{id}'; pass one or more of text"),
        ({"reason": "just so"}, "there is nothing to change in '{id}'"),
        ({"text": "new", "restore": True}, "update makes one kind of change per call; pass new values"),
        ({"restore": True, "undo": "latest"}, "update makes one kind of change per call; pass new values"),
        ({"restore": True}, "'{id}' is not forgotten"),
        ({"undo": 99_999}, "'{id}' has no change 99999; its latest are "),
        ({"undo": "soon"}, "'{id}' has no change soon"),
        ({"importance": 11}, "importance 11 is out of range"),
        ({"confidence": -1}, "confidence -1 is out of range"),
        ({"type": "rumour"}, "unknown type 'rumour'; use one of fact"),
        ({"expires": "1999"}, "the expiry is in the past"),
        ({"text": "  "}, "the text is empty"),
        ({"supersedes": "zzzzzz"}, "there is no entry 'zzzzzz'"),
        ({"supersedes": "{id}"}, "'{id}' cannot supersede '{id}'"),
        ({"id": "zzzzzz", "text": "new"}, "there is no entry 'zzzzzz'"),
        ({"text": "Another one."}, "memory '{other}' already has the same text"),
    ],
)
async def test_wrong_arguments_of_update_are_errors(client: Client, arguments: dict[str, Any], complaint: str) -> None:
    id_, other = await remember(client, "One thing."), await remember(client, "Another one.")
    given = {name: value.format(id=id_) if isinstance(value, str) else value for name, value in arguments.items()}
    result = await client.call_tool("update", {"id": id_, **given})
    assert result.is_error
    assert text(result).startswith(complaint.format(id=id_, other=other))
    assert len(structured(await client.call_tool("get", {"refs": f"history:{id_}"}))["records"]) == 1


async def test_a_change_of_another_memory_is_not_undone_by_mistake(client: Client) -> None:
    one, other = await remember(client, "One thing."), await remember(client, "Another one.")
    changed = structured(await client.call_tool("update", {"id": other, "importance": 9}))["change"]
    assert (await client.call_tool("update", {"id": one, "undo": changed})).is_error


async def test_an_ambiguous_start_and_a_second_forget_are_errors(client: Client) -> None:
    ids = [await remember(client, f"Thing number {n}.") for n in range(40)]
    shared = next(start for start in (id_[:1] for id_ in ids) if sum(id_.startswith(start) for id_ in ids) > 1)
    assert f"'{shared}' is ambiguous" in text(await client.call_tool("forget", {"id": shared}))
    await client.call_tool("forget", {"id": ids[0]})
    again = await client.call_tool("forget", {"id": ids[0]})
    assert again.is_error
    assert text(again).startswith(f"'{ids[0]}' is forgotten already")


async def test_a_history_keeps_to_its_budget_and_shows_the_latest(client: Client) -> None:
    id_ = await remember(client, "Version 0. " + "words " * 50)
    for number in range(1, 12):
        await client.call_tool("update", {"id": id_, "text": f"Version {number}. " + "words " * 50})
    result = await client.call_tool("get", {"refs": f"history:{id_}", "budget": 900})
    assert count_tokens(text(result)) <= 900
    assert count_tokens(json.dumps(structured(result), ensure_ascii=False, separators=(",", ":"))) <= 900
    changes = structured(result)["records"]
    assert 1 < len(changes) < 12
    assert "→ Version 11." in changes[0]["text"]
    assert "of 12 cut short or left out" in text(result)
    mixed = structured(await client.call_tool("get", {"refs": [f"history:{id_}", id_], "budget": 25_000}))
    assert [record["kind"] for record in mixed["records"]] == ["history"] * 12 + ["memory"]


# ── background work ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.model
async def test_a_server_embeds_new_memories_in_the_background(serving: Callable[..., Served]) -> None:
    served = serving("native", settings={})
    memory = served.host.memory
    assert memory.models.embedder is not None
    model = memory.models.embedder.model
    async with Client(served.server) as client:
        for number in range(5):
            await remember(client, f"The user prefers dark mode, said for the {number}th time.")
        wait_until(lambda: memory.store.vectors.pending(model) == 0, what="every vector")
        answer = structured(await client.call_tool("search", {"query": "dark theme"}))
    assert "tier" not in answer and answer["total"] == 5  # the usual tier is not named


@pytest.mark.model
def test_records_that_a_killed_process_did_not_embed_are_embedded_after_the_first_search(
    database: str, serving: Callable[..., Served]
) -> None:
    with Memory(database) as memory:
        memory.add("The user prefers dark mode.", embed=False)
        assert memory.models.embedder is not None
        assert memory.store.vectors.pending(memory.models.embedder.model) == 1
    host = serving("native", settings={}).host
    host.start()
    host.memory.search("dark mode")  # before that, nothing needs the model
    assert host.memory.models.embedder is not None
    model = host.memory.models.embedder.model
    wait_until(lambda: host.memory.store.vectors.pending(model) == 0, what="its vector")


@pytest.mark.model
def test_closing_in_the_middle_loses_no_record(database: str, serving: Callable[..., Served]) -> None:
    host = serving("native", settings={}).host
    for number in range(200):
        host.memory.add(f"Thing number {number} that was told in a hurry.")
    host.close()
    with Memory(database) as memory:
        assert memory.maintenance.statistics().total == 200
        memory.embedding_queue.embed_all()
        assert memory.models.embedder is not None
        assert memory.store.vectors.pending(memory.models.embedder.model) == 0


@pytest.mark.slow
def test_long_expired_memories_are_purged_after_the_start(serving: Callable[..., Served]) -> None:
    host = serving("native", settings={"embedding.provider": "none", "memory.grace_days": 0}).host
    kept = host.memory.add("The office is in Bern.").id
    gone = host.memory.add("The lift is broken today.", expires=now_ms() + 2_000).id
    wait_until(lambda: now_ms() > (host.memory.store.retrieval.record(gone).expires_at or 0) + 5)  # type: ignore[union-attr]
    host.start()
    wait_until(lambda: host.memory.store.retrieval.record(gone) is None, what="the clean-up")
    assert host.memory.store.retrieval.record(kept) is not None


@pytest.mark.parametrize("by_number", [True, False])
async def test_undo_takes_back_all_that_one_update_changed(client: Client, by_number: bool) -> None:
    ids = [await remember(client, f"The office is in {city}") for city in ("Berlin", "Hamburg")]
    updated = structured(await client.call_tool("update", {"id": ids[1], "supersedes": ids[0]}))
    undo = updated["change"] if by_number else True
    undone = await client.call_tool("update", {"id": ids[1], "undo": undo})
    assert f"undone with it: {ids[0]}" in structured(undone)["notes"]
    found = structured(await client.call_tool("search", {"query": "office"}))["results"]
    assert {hit["id"] for hit in found} == set(ids)


async def test_every_undo_goes_one_change_further_back_and_shows_the_text_in_force(client: Client) -> None:
    id_ = structured(await client.call_tool("remember", {"text": "The office opens at seven"}))["id"]
    for time in ("eight", "nine"):
        await client.call_tool("update", {"id": id_, "text": f"The office opens at {time}"})
    first = await client.call_tool("update", {"id": id_, "undo": True})
    assert structured(first)["text"] == "The office opens at eight"
    assert "now: The office opens at eight" in text(first)
    second = await client.call_tool("update", {"id": id_, "undo": True})
    assert structured(second)["text"] == "The office opens at seven"
    number = structured(second)["change"]
    told = f"`update` with undo: {number} reverts this undo; `update` with undo: true goes one change further"
    assert structured(second)["notes"] == [told] and f"note: {told}" in text(second)
    redone = await client.call_tool("update", {"id": id_, "undo": number})
    assert structured(redone)["text"] == "The office opens at eight"
    for _ in range(2):
        last = await client.call_tool("update", {"id": id_, "undo": True})
    assert structured(last)["forgotten"] is True and "now: it is forgotten" in text(last)
    assert (await client.call_tool("update", {"id": id_, "undo": True})).is_error


async def test_an_empty_update_says_what_is_missing(client: Client) -> None:
    id_ = structured(await client.call_tool("remember", {"text": "Tea is green"}))["id"]
    result = await client.call_tool("update", {"id": id_})
    assert result.is_error
    assert text(result).endswith(
        f"there is nothing to change in '{id_}'; pass one or more of text, type, importance, confidence, tags,"
        " entities, summary, context, source, expires, supersedes; or fields, restore or undo"
    )
