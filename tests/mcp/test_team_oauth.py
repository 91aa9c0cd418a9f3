"""Tokens of an OAuth 2 server that is asked over a real socket, and the metadata that leads clients to it."""

from __future__ import annotations

import base64
import json
import math
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import anyio
import pytest

from mindex.errors import ConfigError
from mindex.mcp.http import Address, app
from tests.mcp.conftest import Served, structured, text
from tests.mcp.team import Team, team_server
from tests.running import run_here

pytestmark = [pytest.mark.anyio, pytest.mark.server]

RESOURCE = "https://memory.example/mcp"
GOOD = {"active": True, "aud": RESOURCE, "username": "anna", "scope": "openid mindex:write"}


# Of the fixture: another server asks the same authorization server.
SETTINGS = (
    "http.public_url",
    "http.authorization_server",
    "http.introspection_url",
    "http.introspection_client",
    "http.introspection_secret",
)


class Introspection(BaseHTTPRequestHandler):
    """Answers as RFC 7662 says, for the tokens in `answers`."""

    answers: dict[str, object] = {}  # noqa: RUF012 - one server at a time
    asked: list[str] = []  # noqa: RUF012

    def do_POST(self) -> None:
        body = parse_qs(self.rfile.read(int(self.headers["content-length"])).decode())
        expected = "Basic " + base64.b64encode(b"mindex:s3cret").decode()
        status = 200 if self.headers.get("authorization") == expected else 401
        (token,) = body["token"]
        self.asked.append(token)
        found = self.answers.get(token, {"active": False})
        answer = found if isinstance(found, bytes) else json.dumps(found).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        """Nothing: the test's output stays clean."""


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Introspection) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        settings: dict[str, object] = {
            "http.public_url": "https://memory.example/",
            "http.authorization_server": "https://login.example",
            "http.introspection_url": f"http://127.0.0.1:{server.server_port}/introspect",
            "http.introspection_client": "mindex",
            "http.introspection_secret": "s3cret",
        }
        with team_server(tmp_path_factory.mktemp("oauth"), settings=settings) as team:
            yield team
        server.shutdown()


@pytest.mark.parametrize("path", ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"])
def test_a_client_learns_the_authorization_server_without_a_token(team: Team, path: str) -> None:
    answer = team.get(path)
    assert answer.status_code == 200
    metadata = answer.json()
    assert metadata["resource"] == RESOURCE
    assert [server.rstrip("/") for server in metadata["authorization_servers"]] == ["https://login.example"]
    assert metadata["scopes_supported"] == ["mindex:read", "mindex:write"]
    metadata_url = "https://memory.example/.well-known/oauth-protected-resource/mcp"
    assert team.post().headers["www-authenticate"] == f'Bearer resource_metadata="{metadata_url}"'


async def test_a_token_of_the_authorization_server_acts_as_its_user(team: Team) -> None:
    Introspection.answers |= {"theirs": GOOD, "reads": {**GOOD, "aud": ["x", RESOURCE], "scope": "mindex:read"}}
    async with team.client("theirs") as client:
        added = structured(await client.call_tool("remember", {"text": "Anna keeps bees"}))
    assert team.memory.entries.find(added["id"]).agent == "anna"
    async with team.client("reads") as client:
        assert structured(await client.call_tool("search", {"query": "bees"}))["total"] == 1
        assert "this access token is read-only" in text(await client.call_tool("remember", {"text": "more"}))


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"active": False}, "this token is unknown, revoked or expired"),
        ({"active": "true"}, "this token is unknown, revoked or expired"),
        ({"exp": time.time() - 1}, "this token is unknown, revoked or expired"),
        ({"exp": str(int(time.time()) - 1)}, "this token is unknown, revoked or expired"),
        ({"exp": ""}, "this token is unknown, revoked or expired"),
        ({"exp": "2099-01-01"}, "this token is unknown, revoked or expired"),
        ({"exp": "nan"}, "this token is unknown, revoked or expired"),
        ({"exp": math.nan}, "this token is unknown, revoked or expired"),
        ({"exp": math.inf}, "this token is unknown, revoked or expired"),
        ({"exp": True}, "this token is unknown, revoked or expired"),
        ({"exp": [9e12]}, "this token is unknown, revoked or expired"),
        ({"aud": "https://other.example/mcp"}, "this token was not made for this server"),
        ({"aud": None}, "this token was not made for this server"),
        ({"username": "", "sub": ""}, "this token names no user"),
        ({"username": "*"}, "this token names no user"),
        ({"username": " * "}, "this token names no user"),
        ({"username": "a" * 195}, "this token names no user"),
        ({"scope": ["mindex:write"]}, "this token has neither the scope mindex:read nor mindex:write"),
        ({"scope": "openid"}, "this token has neither the scope mindex:read nor mindex:write"),
    ],
)
def test_a_token_that_is_not_for_this_server_is_refused(team: Team, claims: dict[str, object], message: str) -> None:
    name = f"bad {sorted(claims.items())}".replace(" ", "")
    Introspection.answers[name] = {**GOOD, **claims}
    answer = team.post(name)
    assert answer.status_code == 401
    assert answer.json()["error"]["message"] == message


@pytest.mark.parametrize("exp", ["4000000000", " 4e9 ", 4e9, None])
def test_a_token_counts_until_the_time_that_is_given_as_a_number_or_as_text(team: Team, exp: object) -> None:
    Introspection.answers[f"until-{exp}".replace(" ", "")] = {**GOOD, "exp": exp}
    assert team.post(f"until-{exp}".replace(" ", "")).status_code == 200


@pytest.mark.parametrize("login", ["main", " main "])
def test_a_login_called_like_the_owners_agent_is_refused_with_the_reason(team: Team, login: str) -> None:
    Introspection.answers["main"] = {**GOOD, "username": login}
    for answer in (team.post("main"), team.get("/api/v1/search?q=x", "main")):
        assert answer.status_code == 403
        assert answer.json()["error"] == {
            "kind": "denied",
            "message": "the login 'main' is refused, because the agent of that name belongs to the server's owner",
            "hint": "log in under another name",
        }


def test_the_agent_of_the_settings_is_the_owners_too(
    tmp_path: Path, team: Team, monkeypatch: pytest.MonkeyPatch
) -> None:
    Introspection.answers["boss"] = {**GOOD, "username": "boss"}
    Introspection.answers["default"] = {**GOOD, "username": "main"}
    server: dict[str, object] = {key: team.memory.settings.text(key) for key in SETTINGS}
    monkeypatch.setenv("MINDEX_AGENT", "boss")
    with team_server(tmp_path, settings=server) as other:
        assert other.post("boss").status_code == 403
        assert other.post("default").status_code == 403
    assert team.post("boss").status_code == 200  # where the owner's agent is `main`


async def test_a_login_whose_name_a_token_has_sees_nothing_of_that_tokens_entries(team: Team) -> None:
    local = team.token("carla")
    shared = team.token("carlas-phone", agent="dora")
    Introspection.answers |= {f"o-{name}": {**GOOD, "username": name} for name in ("carla", "dora", "login:carla")}
    expected = {
        local: "carla",
        shared: "dora",
        "o-carla": "login:carla",
        "o-dora": "login:dora",
        "o-login:carla": "login:login:carla",
    }
    for number, (token, agent) in enumerate(expected.items()):
        async with team.client(token) as client:
            assert structured(await client.call_tool("search", {"query": "heron"}))["total"] == 0
            added = structured(await client.call_tool("remember", {"text": f"The heron number {number} nests here"}))
            assert structured(await client.call_tool("search", {"query": "heron"}))["total"] == 1
        assert team.memory.entries.find(added["id"]).agent == agent


async def test_the_entries_of_a_login_stay_with_a_token_that_is_made_later_and_can_be_moved(team: Team) -> None:
    Introspection.answers["o-emil"] = {**GOOD, "username": "emil"}
    async with team.client("o-emil") as client:
        await client.call_tool("remember", {"text": "Emil restores clocks"})
    token = team.token("emil")
    await anyio.sleep(0.6)  # so long the agent of a login is remembered
    async with team.client("o-emil") as client:
        assert structured(await client.call_tool("search", {"query": "clocks"}))["total"] == 0
    async with team.client(token) as client:
        assert structured(await client.call_tool("search", {"query": "clocks"}))["total"] == 1
    db, file = team.memory.settings.database, str(team.memory.folder / "emil.jsonl")
    assert run_here("--db", db, "--agent", "emil", "export", file).code == 0
    assert run_here("--db", db, "import", file, "--map", "emil=login:emil", "--no-embed").code == 0
    for secret in ("o-emil", token):
        async with team.client(secret) as client:
            assert structured(await client.call_tool("search", {"query": "clocks"}))["total"] == 1


@pytest.mark.parametrize("depth", [900, 100_000])
@pytest.mark.parametrize("field", [b"deep", b"aud", b"scope", b"exp", b"username"])
def test_deeply_nested_json_of_the_authorization_server_is_an_error_in_json(
    team: Team, depth: int, field: bytes
) -> None:
    good = json.dumps(GOOD).encode()
    name = f"deep-{field.decode()}-{depth}"
    Introspection.answers[name] = good[:-1] + b', "%s": %s}' % (field, b"[" * depth + b"]" * depth)
    for answer in (team.post(name), team.get("/api/v1/status", name)):
        assert answer.status_code in ((200, 401) if depth < 1_000 else (503,))
        assert answer.status_code == 200 or answer.json()["error"]["message"]
    Introspection.answers[f"half-{name}"] = b"[" * depth
    assert team.post(f"half-{name}").status_code == 503


def test_our_own_tokens_are_never_shown_to_the_authorization_server(team: Team) -> None:
    assert team.post(team.token("ben")).status_code == 200
    assert team.post("mdx_unknown").status_code == 401
    assert not [token for token in Introspection.asked if token.startswith("mdx_")]


def test_an_authorization_server_that_does_not_answer_is_an_error_of_the_server(tmp_path: Path) -> None:
    settings: dict[str, object] = {
        "http.public_url": "https://memory.example",
        "http.authorization_server": "https://login.example",
        "http.introspection_url": "http://127.0.0.1:9/introspect",
    }
    with team_server(tmp_path, settings=settings) as team:
        answer = team.post("theirs")
        assert answer.status_code == 503
        assert answer.json()["error"]["message"].startswith(
            "the authorization server could not be asked about this token"
        )
        assert team.post(team.token("ben")).status_code == 200


def test_without_an_authorization_server_there_is_no_metadata(tmp_path: Path) -> None:
    with team_server(tmp_path) as team:
        assert team.get("/.well-known/oauth-protected-resource").status_code == 404


def test_half_of_the_settings_is_an_error_at_the_start(own: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    changed = own.host.settings.with_values({"http.authorization_server": "https://login.example"}, "test")
    monkeypatch.setattr(own.host.whole_memory, "settings", changed)
    with pytest.raises(ConfigError, match=r"needs http\.public_url; set it to an address with https://"):
        app(own.server, Address("127.0.0.1", 1))
