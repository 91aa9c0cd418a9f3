from __future__ import annotations

import socket

import pytest

from mindex.mcp.host_check import allowed_hosts

LOOPBACK = ["127.0.0.1:*", "localhost:*", "[::1]:*"]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1"])
def test_a_loopback_server_accepts_only_loopback_names(host: str) -> None:
    accepted = allowed_hosts(host)
    assert accepted.allowed_hosts == LOOPBACK
    assert accepted.allowed_origins == [f"http://{name}" for name in LOOPBACK]


def test_a_server_on_one_address_accepts_its_name_too() -> None:
    assert allowed_hosts("192.0.2.7").allowed_hosts == [*LOOPBACK, "192.0.2.7:*"]


def test_a_server_on_all_interfaces_accepts_the_names_of_this_machine() -> None:
    accepted = allowed_hosts("0.0.0.0").allowed_hosts
    assert accepted[:3] == LOOPBACK
    assert f"{socket.gethostname()}:*" in accepted
    assert "0.0.0.0:*" not in accepted
