"""Requests that attack a server before it knows who sends them, over raw sockets."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from mindex.http_access.middleware import BEFORE_LOGIN_BYTES, BEFORE_LOGIN_PER_MINUTE
from tests.mcp.team import LONG, Team, bearer, team_server

pytestmark = pytest.mark.server


@pytest.fixture
def team(tmp_path: Path) -> Iterator[Team]:
    with team_server(tmp_path) as team:
        yield team


def sent(team: Team, data: bytes) -> bytes:
    """All that the server answers on one connection, until it closes it."""
    host, _, port = team.url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=LONG) as connection:
        connection.sendall(data)
        return b"".join(iter(lambda: connection.recv(100_000), b""))


# ── two lengths ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
@pytest.mark.parametrize("path", [b"/mcp", b"/login", b"/health", b"/api/v1/add"])
def test_a_request_with_two_lengths_is_refused_and_its_connection_is_closed(
    team: Team, path: bytes, version: bytes
) -> None:
    """A proxy that reads one length and a server that reads the other see different requests in the same bytes."""
    hidden = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    head = b"POST %s HTTP/%s\r\nHost: 127.0.0.1\r\nAuthorization: Bearer %s\r\n" % (
        path, version, team.owner().encode()
    )  # fmt: skip
    for lengths in (
        b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % (len(hidden) + 5),
        b"Transfer-Encoding: Chunked\r\nContent-Length: 5\r\n\r\n",
    ):
        answer = sent(team, head + lengths + b"0\r\n\r\n" + hidden)
        assert answer.startswith(b"HTTP/1.1 400")
        assert answer.count(b"HTTP/1.1 ") == 1
        assert b"connection: close" in answer.lower()
        assert b"both Content-Length and Transfer-Encoding" in answer


@pytest.mark.parametrize(
    "lengths",
    [
        b"Content-Length: 5\r\nContent-Length: 6\r\n",
        b"Content-Length: 5, 6\r\n",
        b"Content-Length: +5\r\n",
        b"Content-Length: 0x5\r\n",
        b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: identity\r\n",
        b"Transfer-Encoding: chunked, gzip\r\n",
        b"Transfer-Encoding : chunked\r\n",
    ],
)
def test_a_length_that_can_be_read_in_two_ways_closes_the_connection(team: Team, lengths: bytes) -> None:
    head = b"POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\n" + lengths + b"\r\n"
    answer = sent(team, head + b"0\r\n\r\nGET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    assert answer.startswith((b"HTTP/1.1 400", b"HTTP/1.1 501"))
    assert answer.count(b"HTTP/1.1 ") == 1


def test_a_body_in_chunks_is_read(team: Team) -> None:
    message = b'{"text": "Oak"}'
    head = b"POST /api/v1/add HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nConnection: close\r\n"
    head += b"Authorization: Bearer %s\r\nTransfer-Encoding: chunked\r\n\r\n" % team.owner().encode()
    assert sent(team, head + b"%x\r\n%s\r\n0\r\n\r\n" % (len(message), message)).startswith(b"HTTP/1.1 201")


# ── before login ──────────────────────────────────────────────────────────────────────────────────────────────


def test_a_large_form_is_refused_before_login_and_costs_nothing(team: Team) -> None:
    form = "&".join(["a=b"] * 1_000_000)
    httpx2.get(f"{team.url}/login", timeout=LONG)
    started = time.process_time()  # of the server, which is a thread here
    answer = httpx2.post(f"{team.url}/login", content=form, timeout=LONG)
    assert time.process_time() - started < 0.2
    assert (answer.status_code, answer.json()["error"]["kind"]) == (413, "too_large")
    assert f"{BEFORE_LOGIN_BYTES:,} bytes" in answer.json()["error"]["message"]
    parts = (b"a=b&" * 1_000 for _ in range(10))  # its length is not announced
    assert httpx2.post(f"{team.url}/login", content=parts, timeout=LONG).status_code == 413
    form = {"token": team.owner(), "next": "/" + "x" * 2_000}
    assert httpx2.post(f"{team.url}/login", data=form, timeout=LONG).status_code == 303


def exhaust(team: Team, **headers: str) -> tuple[int, httpx2.Response]:
    """Guess tokens until the address is refused. Returns how many were looked up, and the refusal."""
    with httpx2.Client(headers={**bearer("mdx_guess"), **headers}, timeout=LONG) as client:
        for guesses in range(10 * BEFORE_LOGIN_PER_MINUTE):
            answer = client.get(f"{team.url}/api/v1/status")
            if answer.status_code != 401:
                return guesses, answer
    raise AssertionError("no guess was refused")


def test_an_address_that_guesses_tokens_is_refused_with_the_time_of_the_next_try(team: Team) -> None:
    guesses, refused = exhaust(team)
    assert guesses >= BEFORE_LOGIN_PER_MINUTE
    assert (refused.status_code, refused.json()["error"]["kind"]) == (429, "rate_limit")
    assert refused.json()["error"] == {
        "kind": "rate_limit",
        "message": "this address has made more than 300 requests without a token that counts in a minute",
        "hint": "wait 1 s",
    }
    assert refused.headers["retry-after"] == "1"


def test_clients_that_were_there_before_an_attack_are_served_on_and_new_ones_wait(tmp_path: Path) -> None:
    with team_server(tmp_path, settings={"http.requests_per_minute": 20}) as team:
        known, new = team.token("known"), team.token("new")
        assert team.post(known).status_code == 200
        exhaust(team)
        assert httpx2.post(f"{team.url}/login", data={"token": new}, timeout=LONG).status_code == 429
        assert httpx2.get(f"{team.url}/static/page.css", timeout=LONG).status_code == 429
        assert team.post(known).status_code == 200
        assert team.get("/health").status_code == 200
        assert team.get("/ready").status_code == 200
        elsewhere = {"X-Forwarded-For": "203.0.113.9"}  # as a proxy on this machine sends it
        assert team.post(new, headers=elsewhere).status_code == 200


def test_a_token_that_was_revoked_counts_as_a_guess(tmp_path: Path) -> None:
    with team_server(tmp_path, settings={"http.requests_per_minute": 20}) as team:
        token = team.token("anna")
        assert team.post(token).status_code == 200
        team.memory.tokens.revoke("anna")
        time.sleep(0.6)  # so long a token counts after it was looked up
        statuses = [team.post(token).status_code for _ in range(40)]
        assert set(statuses) == {401, 429}


def test_all_addresses_of_an_ipv6_network_share_a_limit(tmp_path: Path) -> None:
    with team_server(tmp_path, settings={"http.requests_per_minute": 5}) as team:

        def status(address: str) -> int:
            return team.post("mdx_guess", headers={"X-Forwarded-For": address}).status_code

        assert [status(f"2001:db8::{number}") for number in range(1, 8)] == [401] * 5 + [429] * 2
        assert status("2001:db8:0:1::1") == 401


def test_a_server_without_tokens_has_no_limit_before_login(tmp_path: Path) -> None:
    with team_server(tmp_path, tokens=False, settings={"http.requests_per_minute": 0}) as team:
        assert {team.get("/health").status_code for _ in range(20)} == {200}
        with httpx2.Client(timeout=LONG) as client:
            assert {client.get(f"{team.url}/login").status_code for _ in range(BEFORE_LOGIN_PER_MINUTE + 20)} == {303}


# ── headers ───────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["/mcp", "/login", "/", "/metrics", "/api/v1/openapi.json"])
def test_a_host_or_origin_that_only_begins_like_ours_is_refused_at_every_path(team: Team, path: str) -> None:
    ours = team.url.removeprefix("http://")
    foreign = [
        ({"Host": f"{ours}.evil.example"}, 421),
        ({"Host": "localhost:evil.example"}, 421),
        ({"Origin": f"{team.url}.evil.example"}, 403),
        ({"Origin": "http://127.0.0.1:3000"}, 403),
    ]
    for headers, status in foreign:
        answer = httpx2.get(team.url + path, headers={**bearer(team.owner()), **headers}, timeout=LONG)
        assert answer.status_code == status, headers
        assert answer.json()["error"]["hint"]
    own = {**bearer(team.owner()), "Origin": team.url}
    assert httpx2.get(team.url + path, headers=own, timeout=LONG).status_code in (200, 303, 405)
