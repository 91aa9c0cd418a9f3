from __future__ import annotations

import shutil
import socket
from collections.abc import Iterator
from dataclasses import replace

import httpx2
import pytest

from mcp import Client
from mindex.errors import UsageError
from mindex.mcp.http import Address, bind, parse_address
from tests.conftest import HANDBOOK
from tests.mcp.conftest import structured
from tests.mcp.team import Team, team_server

pytestmark = [pytest.mark.anyio, pytest.mark.server]

LONG = 60.0


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    """A real server on a free port, without tokens."""
    root = tmp_path_factory.mktemp("served")
    shutil.copytree(HANDBOOK, root / "handbook")
    with team_server(root, tokens=False, prepare=lambda memory: memory.index(root / "handbook")) as team:
        yield team


@pytest.fixture
def address(team: Team) -> Address:
    return parse_address(team.url.removeprefix("http://"))


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_clients_of_both_protocol_generations_can_search(address: Address, mode: str) -> None:
    async with Client(f"http://{address}/mcp", mode=mode) as client:
        assert client.server_info is not None
        assert client.server_info.name == "mindex"
        result = await client.call_tool("search", {"query": "allkeys-lfu", "view": "digest", "limit": 1})
    assert structured(result)["results"][0]["at"].startswith("domains/caching/redis.md")


def test_health_returns_status_and_version(address: Address) -> None:
    answer = httpx2.get(f"http://{address}/health", timeout=LONG)
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Host", "evil.example.com", 421),
        ("Host", "127.0.0.1.evil.example.com:80", 421),
        ("Origin", "http://evil.example.com", 403),
        ("Origin", "null", 403),
    ],
)
def test_requests_with_a_foreign_host_or_origin_are_refused(
    address: Address, header: str, value: str, status: int
) -> None:
    headers = {header: value, "Accept": "application/json, text/event-stream"}
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    assert httpx2.post(f"http://{address}/mcp", json=message, headers=headers, timeout=LONG).status_code == status


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("8080", Address("127.0.0.1", 8080)),
        ("localhost:8080", Address("localhost", 8080)),
        ("0.0.0.0:80", Address("0.0.0.0", 80)),
        ("[::1]:8080", Address("::1", 8080)),
    ],
)
def test_an_address_is_this_machine_unless_a_host_is_named(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert address.is_loopback is (address.host != "0.0.0.0")


@pytest.mark.parametrize("text", ["", "x", ":80", "host:", "host:x", "70000", "-1", "1.2.3.4"])
def test_a_malformed_address_is_a_usage_error(text: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        parse_address(text)


def test_a_port_in_use_is_a_usage_error(address: Address) -> None:
    with pytest.raises(UsageError, match=f"cannot listen on {address}"):
        bind(replace(address))


def test_an_answer_does_not_wait_until_its_headers_are_confirmed() -> None:
    """Nagle's algorithm would hold the body of every answer back for 40 ms."""
    with bind(parse_address("0")) as listening, socket.create_connection(listening.getsockname()):
        connection, _ = listening.accept()
        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
