from __future__ import annotations

import socket

import pytest
from starlette.requests import Request

from mindex.mcp.host_check import LOOPBACK, HostCheck, allowed_hosts


def answer(check: HostCheck, host: str, *origins: str) -> int:
    """The status of the refusal of a request, or 200."""
    headers = [(b"host", host.encode()), *((b"origin", origin.encode()) for origin in origins)]
    refused = check(Request({"type": "http", "headers": headers}))
    return 200 if refused is None else refused.status_code


@pytest.mark.parametrize("listens_on", [*LOOPBACK])
def test_a_loopback_server_accepts_only_loopback_names(listens_on: str) -> None:
    check = allowed_hosts(listens_on)
    for host in ("127.0.0.1", "127.0.0.1:8080", "localhost:1", "LocalHost:8080", "[::1]:65535", "[::1]"):
        assert answer(check, host) == 200, host
    for host in ("", "192.0.2.7:8080", "::1:8080", "memory.example", "localhost.", "127.0.0.2"):
        assert answer(check, host) == 421, host


@pytest.mark.parametrize(
    "host",
    ["localhost:8080.evil.example", "localhost:evil.example", "127.0.0.1:80@evil.example", "localhost:",
     "localhost:80:80", "localhost:123456", "localhost:80/", "[::1]:x", "localhost:٨"],
)  # fmt: skip
def test_a_host_that_only_begins_like_an_accepted_one_is_refused(host: str) -> None:
    assert answer(allowed_hosts("127.0.0.1"), host) == 421


def test_an_origin_is_that_of_the_page_itself() -> None:
    check = allowed_hosts("127.0.0.1")
    assert answer(check, "localhost:8080", "http://localhost:8080") == 200
    assert answer(check, "localhost", "http://localhost") == 200
    for origin in (
        "http://localhost:8080.evil.example", "http://localhost:3000", "http://localhost", "https://localhost:8080",
        "http://127.0.0.1:8080", "null", "http://localhost:8080/", "http://evil.example",
    ):  # fmt: skip
        assert answer(check, "localhost:8080", origin) == 403, origin
    assert answer(check, "localhost:8080", "http://localhost:8080", "http://evil.example") == 403


def test_a_public_url_is_accepted_with_its_scheme_and_port_only() -> None:
    check = allowed_hosts("127.0.0.1", "https://Memory.example/")
    assert answer(check, "memory.example", "https://memory.example") == 200
    assert answer(check, "memory.example:443", "https://memory.example") == 200
    assert answer(check, "127.0.0.1:8080", "https://memory.example") == 200  # a proxy that puts its own name there
    assert answer(check, "memory.example:8443") == 421
    assert answer(check, "memory.example.evil.example") == 421
    for origin in ("http://memory.example", "https://memory.example:8443", "https://memory.example.evil.example"):
        assert answer(check, "memory.example", origin) == 403, origin
    other = allowed_hosts("127.0.0.1", "https://memory.example:8443")
    assert answer(other, "memory.example:8443", "https://memory.example:8443") == 200
    assert answer(other, "memory.example") == 421


def test_a_server_on_one_address_accepts_its_name() -> None:
    assert answer(allowed_hosts("192.0.2.7"), "192.0.2.7:8080", "http://192.0.2.7:8080") == 200


def test_a_server_on_all_interfaces_accepts_the_names_of_this_machine() -> None:
    check = allowed_hosts("0.0.0.0")
    assert answer(check, f"{socket.gethostname()}:8080") == 200
    assert answer(check, "0.0.0.0:8080") == 421
