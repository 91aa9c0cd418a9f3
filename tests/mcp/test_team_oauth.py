"""Tokens of an OAuth 2 server that is asked over a real socket, and the metadata that leads clients to it."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from mindex.errors import ConfigError
from mindex.mcp.http import Address, app
from tests.mcp.conftest import Served, structured, text
from tests.mcp.team import Team, team_server

pytestmark = [pytest.mark.anyio, pytest.mark.server]

RESOURCE = "https://memory.example/mcp"
GOOD = {"active": True, "aud": RESOURCE, "username": "anna", "scope": "openid mindex:write"}


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
        answer = json.dumps(self.answers.get(token, {"active": False})).encode()
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
        assert "this token may only read" in text(await client.call_tool("remember", {"text": "more"}))


@pytest.mark.parametrize(
    ("claims", "message"),
    [
        ({"active": False}, "this token is unknown, revoked or expired"),
        ({"active": "true"}, "this token is unknown, revoked or expired"),
        ({"exp": time.time() - 1}, "this token is unknown, revoked or expired"),
        ({"aud": "https://other.example/mcp"}, "this token was not made for this server"),
        ({"aud": None}, "this token was not made for this server"),
        ({"username": "", "sub": ""}, "this token names no user"),
        ({"username": "*"}, "this token names no user"),
        ({"scope": "openid"}, "this token has neither the scope mindex:read nor mindex:write"),
    ],
)
def test_a_token_that_is_not_for_this_server_is_refused(team: Team, claims: dict[str, object], message: str) -> None:
    name = f"bad {sorted(claims.items())}".replace(" ", "")
    Introspection.answers[name] = {**GOOD, **claims}
    answer = team.post(name)
    assert answer.status_code == 401
    assert answer.json()["error"]["message"] == message


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
