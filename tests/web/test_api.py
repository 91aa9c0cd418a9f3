"""The HTTP API over a real socket: the JSON of the command line, checked requests, and the rights of tokens."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import httpx2
import pytest

from mindex.datatypes import Status
from mindex.errors import StoreError
from mindex.memory import Memory
from mindex.web.api import OPERATIONS
from tests.mcp.team import LONG, Team, bearer, team_server
from tests.running import run_here
from tests.web.conftest import Browser, fill

pytestmark = pytest.mark.server

READS = ["search?q=release", "get?ref=docs/caching.md", "status"]


def post(team: Team, name: str, body: object, token: str = "", **headers: str) -> httpx2.Response:
    return httpx2.post(
        f"{team.url}/api/v1/{name}", json=body, headers={**bearer(token or team.owner()), **headers}, timeout=LONG
    )


def sentence(answer: httpx2.Response) -> str:
    error = answer.json()["error"]
    return "; ".join(filter(None, (error["message"], error.get("hint"))))


def get(team: Team, path: str, token: str = "") -> httpx2.Response:
    return team.get(f"/api/v1/{path}", token or team.owner())


@pytest.mark.parametrize(
    ("path", "arguments"),
    [
        ("search?q=release&limit=2", ["search", "release", "--limit", "2"]),
        ("search?q=atlas&kind=memory&view=compact", ["search", "atlas", "-k", "memory", "--compact"]),
        ("search?q=atlas&explain=true&type=fact", ["search", "atlas", "--explain", "-t", "fact"]),
        ("get?ref=docs/caching.md:1-3", ["get", "docs/caching.md:1-3"]),
        ("get?ref=conflicts&ref=profile", ["get", "conflicts", "profile"]),
        ("status", ["status"]),
    ],
)
def test_an_answer_is_the_json_of_the_command(
    shared: Team, path: str, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    db = str(shared.memory.settings.database)
    printed = json.loads(run_here("--json", "--db", db, *arguments).out)
    assert comparable(get(shared, path).json()) == comparable(printed)


def comparable(answer: Any) -> Any:
    """Without what counts accesses, or differs from one moment to the next, as the order of equal hits does."""
    if isinstance(answer, dict):
        if "results" in answer:
            answer = {**answer, "results": sorted(answer["results"], key=lambda one: str(one["id"]))}
        unlike = ("score", "tokens", "stages", "relevance", "notes")
        left_out = ("access_count", "last_accessed", "size_bytes", "caches", *unlike)
        return {key: comparable(value) for key, value in answer.items() if key not in left_out}
    return [comparable(one) for one in answer] if isinstance(answer, list) else answer


def test_a_memory_is_added_found_changed_and_forgotten(team: Team) -> None:
    added = post(team, "add", {"text": "The archive is in Bergen.", "tags": ["place"], "importance": 7})
    assert added.status_code == 201
    id_ = added.json()["id"]
    assert post(team, "add", {"text": "The archive is in Bergen."}).status_code == 200  # the same again
    found = get(team, "search?q=archive&tag=place").json()["results"]
    assert [(one["id"], one["importance"]) for one in found] == [(id_, 7)]
    changed = post(team, "update", {"id": id_, "text": "The archive is in Oslo.", "reason": "it moved"}).json()
    assert changed["id"] == id_
    assert team.memory.history(id_)[-1].reason == "it moved"
    assert post(team, "forget", {"id": id_}).json()["forgotten"] is True
    assert get(team, "search?q=archive+oslo&kind=memory").json()["results"] == []


def test_a_folder_is_indexed_below_the_servers_root_only(team: Team) -> None:
    folder = team.memory.folder / "more"
    folder.mkdir()
    (folder / "a.md").write_text("# Kestrel\n\nA kestrel hovers.\n", encoding="utf-8")
    done = post(team, "index", {"path": "more"})
    assert done.json()["collections"][0]["files"]["new"] == 1
    assert get(team, "search?q=kestrel").json()["total"] == 1
    refused = post(team, "index", {"path": "/usr"})
    assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "forbidden")


def test_a_reference_that_is_not_there_is_listed_as_missing(shared: Team) -> None:
    answer = get(shared, "get?ref=nothing.md")
    assert (answer.status_code, answer.json()["missing"]) == (404, ["nothing.md"])


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("search", "q is missing; /api/v1/openapi.json says what search takes"),
        ("search?q=a&limit=many", 'limit is "many"; send a value of the type integer'),
        ("search?q=a&limit=0", "limit"),
        ("search?q=a&explain=perhaps", "send a value of the type boolean"),
        ("search?q=a&kind=thing", "unknown kind 'thing'; use one of chunk, memory"),
        ("search?q=a&colour=red", "unknown parameter 'colour'; use one of q, limit"),
        ("search?q=a&collection=x", "unknown collection 'x'; use one of docs"),
        ("search?q=+", ""),
    ],
)
def test_a_wrong_parameter_is_refused_in_one_sentence(shared: Team, path: str, message: str) -> None:
    answer = get(shared, path)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "usage")
    assert message in sentence(answer)


def test_an_error_is_the_json_of_the_command(shared: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    db = str(shared.memory.settings.database)
    printed = run_here("--json", "--db", db, "search", "a", "--limit", "0").json
    assert get(shared, "search?q=a&limit=0").json() == printed


def test_only_the_owner_learns_where_the_database_is(team: Team, monkeypatch: pytest.MonkeyPatch) -> None:
    db, anna = str(team.memory.settings.database), team.token("anna")

    def broken(_: Memory) -> Status:
        raise StoreError(f"{db} is damaged", "run `mindex doctor`")

    monkeypatch.setattr(Memory, "status", broken)
    assert get(team, "status").json()["error"]["message"] == f"{db} is damaged"
    others = get(team, "status", anna)
    assert others.status_code == 503
    assert others.json() == {
        "error": {
            "kind": "store",
            "message": "the memory of this server is damaged",
            "hint": "try again, or tell the server's owner",
        }
    }


@pytest.mark.parametrize("body", [[], "text", {"text": 5}, {"text": "a", "tags": "b"}, {"text": "a", "x": 1}, {}])
def test_a_wrong_body_is_refused_and_nothing_is_stored(team: Team, body: object) -> None:
    before = team.memory.status().records
    answer = post(team, "add", body)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "usage")
    assert team.memory.status().records == before


@pytest.mark.parametrize("place", ["type", "expires", "text"])
def test_half_a_character_is_refused_with_an_error_that_can_be_sent(shared: Team, place: str) -> None:
    headers = {**bearer(shared.owner()), "content-type": "application/json"}
    body = json.dumps({"text": "a", place: "half \ud800"})
    answer = httpx2.post(f"{shared.url}/api/v1/add", content=body, headers=headers, timeout=LONG)
    assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "usage")
    assert "\\ud800" in sentence(answer)


def test_a_body_that_is_not_json_is_refused(shared: Team) -> None:
    as_json = "application/json"
    for content, kind in (("text=a", "application/x-www-form-urlencoded"), ("{", as_json), ("[" * 100_000, as_json)):
        headers = {**bearer(shared.owner()), "content-type": kind}
        answer = httpx2.post(f"{shared.url}/api/v1/add", content=content, headers=headers, timeout=LONG)
        assert (answer.status_code, answer.json()["error"]["kind"]) == (400, "usage")


# ── who may ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", READS)
def test_every_operation_needs_a_token(shared: Team, path: str) -> None:
    answer = shared.get(f"/api/v1/{path}")
    assert (answer.status_code, answer.json()["error"]["kind"]) == (401, "authentication")


def test_a_token_that_may_read_changes_nothing(team: Team) -> None:
    token = team.token("reader", agent="main", rights="read")
    assert get(team, "search?q=atlas", token).json()["total"]
    id_ = get(team, "search?q=tea&kind=memory", token).json()["results"][0]["id"]
    for name, body in (
        ("add", {"text": "x y z"}),
        ("update", {"id": id_, "text": "x"}),
        ("forget", {"id": id_}),
        ("index", {}),
    ):
        refused = post(team, name, body, token)
        assert (refused.status_code, refused.json()["error"]["kind"]) == (403, "denied")
    assert team.memory.entries.get(id_).text == "Anna prefers tea in the morning."  # type: ignore[union-attr]


def test_a_token_sees_its_own_agent_only(team: Team) -> None:
    token = team.token("carl", agent="carl")
    assert get(team, "search?q=tea&kind=memory", token).json()["results"] == []
    assert get(team, "search?q=tea&agent=main", token).status_code == 403


def test_a_page_of_another_origin_is_refused(team: Team) -> None:
    refused = post(team, "add", {"text": "x"}, origin="https://evil.example")
    assert refused.status_code == 403
    refused = post(team, "add", {"text": "x"}, host="evil.example")
    assert refused.status_code == 421


def test_a_browsers_cookie_reads_and_does_not_write(team: Team) -> None:
    browser = Browser(team.url, team.owner())
    assert browser.get("/api/v1/status").json()["records"]["memory"] == 3
    refused = browser.http.post("/api/v1/add", json={"text": "by cookie"}, headers={"accept": "application/json"})
    assert refused.status_code == 401
    assert browser.http.post("/mcp", json={}).status_code == 401


def test_without_tokens_a_program_needs_none(tmp_path: Path) -> None:
    with team_server(tmp_path, tokens=False, prepare=fill) as team:
        added = httpx2.post(f"{team.url}/api/v1/add", json={"text": "Open house."}, timeout=LONG)
        assert added.status_code == 201
        origin = {"origin": "https://evil.example"}
        assert (
            httpx2.post(f"{team.url}/api/v1/add", json={"text": "x"}, headers=origin, timeout=LONG).status_code == 403
        )


# ── the description ───────────────────────────────────────────────────────────────────────────────────────────


def test_the_description_names_every_operation_and_needs_no_token(shared: Team) -> None:
    described = shared.get("/api/v1/openapi.json").json()
    assert described["openapi"] == "3.1.0"
    assert list(described["paths"]) == [f"/api/v1/{one.name}" for one in OPERATIONS]
    assert [one.name for one in OPERATIONS] == ["search", "get", "add", "update", "forget", "index", "status"]
    search = described["paths"]["/api/v1/search"]["get"]
    assert {"name": "q", "in": "query", "required": True}.items() <= search["parameters"][0].items()
    body = described["paths"]["/api/v1/add"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    assert body["required"] == ["text"]
    assert body["additionalProperties"] is False
