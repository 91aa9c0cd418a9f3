"""One server for a team while its database is down: what clients and monitoring receive, and how soon."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

import httpx2
import pytest
from mcp.server.mcpserver.exceptions import ToolError

from mindex.datatypes.access_tokens import Principal
from mindex.errors import StoreError
from mindex.fail_fast import fail_fast
from mindex.http_access.authentication import Authenticator
from mindex.http_access.current_principal import acting_as
from tests.mcp.conftest import structured, text
from tests.mcp.team import Team, team_server
from tests.postgres_server import PostgresServer

pytestmark = [pytest.mark.anyio, pytest.mark.server, pytest.mark.postgres]

T = TypeVar("T")
HIDDEN = ("postgresql", "host=", "test_", "/data")


@dataclass(frozen=True)
class Outage:
    team: Team
    server: PostgresServer
    anna: str
    scraper: str
    lines: list[str]


class _Lines(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())


@pytest.fixture(scope="module")
def outage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Outage]:
    """A server whose database was killed after a first search and a first look at the metrics."""
    lines: list[str] = []
    handler = _Lines(lines)
    with (
        PostgresServer() as server,
        server.schema() as url,
        team_server(tmp_path_factory.mktemp("outage"), db=url) as team,
    ):
        team.memory.add("Anna keeps bees", agent="anna")
        anna, scraper = team.token("anna"), team.token("scraper", rights="metrics")
        assert team.get("/ready").status_code == 200
        assert samples(team.get("/metrics", scraper))["mindex_database_up"] == "1"
        server.kill()
        while server.answers():
            time.sleep(0.1)
        time.sleep(1.1)  # so long what was learnt of the database counts
        logging.getLogger().addHandler(handler)
        try:
            yield Outage(team, server, anna, scraper, lines)
        finally:
            logging.getLogger().removeHandler(handler)
            if not server.answers():
                server.start_again()


def samples(answer: httpx2.Response) -> dict[str, str]:
    assert answer.status_code == 200, answer.text
    return dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))


def timed(call: Callable[[], T]) -> tuple[T, float]:
    started = time.monotonic()
    return call(), time.monotonic() - started


def test_metrics_are_answered_at_once_and_say_that_the_database_is_down(outage: Outage) -> None:
    answer, seconds = timed(lambda: outage.team.get("/metrics", outage.scraper))
    found = samples(answer)
    assert seconds < 2.5
    assert found["mindex_database_up"] == "0"
    assert "mindex_embedding_pending" not in found
    assert any(name.startswith("mindex_http_requests_total") for name in found)


def test_readiness_is_refused_without_a_secret_and_health_stays(outage: Outage) -> None:
    answer, seconds = timed(lambda: outage.team.get("/ready"))
    assert (answer.status_code, answer.json()) == (503, {"status": "the database does not answer"})
    assert seconds < 2.5
    assert outage.team.get("/health").json()["status"] == "ok"


def test_a_request_whose_token_cannot_be_looked_up_is_refused_within_seconds(outage: Outage) -> None:
    answer, seconds = timed(lambda: outage.team.post(outage.anna))
    error = {"kind": "store", "message": "the memory of this server does not answer", "hint": "try again in a moment"}
    assert (answer.status_code, answer.json()) == (503, {"error": error})
    assert seconds < 8


async def test_a_search_of_the_owner_fails_within_seconds_and_names_the_database(outage: Outage) -> None:
    async with outage.team.client(outage.team.owner()) as client:
        started = time.monotonic()
        result = await client.call_tool("search", {"query": "bees"})
    assert time.monotonic() - started < 8
    assert result.is_error
    assert "no server answers at postgresql://" in text(result) and "check that the server runs" in text(result)


async def test_an_error_does_not_tell_others_where_the_database_is(outage: Outage) -> None:
    """The token was looked up just before the database went down."""
    with acting_as(Principal("anna", "anna")), pytest.raises(ToolError) as failed:
        await outage.team.server.call_tool("search", {"query": "bees"})
    told = "the memory of this server does not answer; try again, or tell the server's owner"
    assert str(failed.value).endswith(told)
    assert not any(part in str(failed.value) for part in HIDDEN)


@pytest.mark.parametrize("path", ["/api/v1/search?q=bees", "/api/v1/status", "/?q=bees", "/collections"])
def test_neither_the_api_nor_a_page_tells_others_where_the_database_is(
    outage: Outage, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """The token was looked up just before the database went down."""

    async def principal(*_: object, **__: object) -> Principal:
        return Principal("anna", "anna")

    monkeypatch.setattr(Authenticator, "principal", principal)
    answer = outage.team.get(path, outage.anna)
    assert answer.status_code == 503
    assert "the memory of this server does not answer" in answer.text
    assert not any(part in answer.text for part in HIDDEN)


def test_the_login_does_not_tell_where_the_database_is(outage: Outage) -> None:
    answer = httpx2.post(f"{outage.team.url}/login", data={"token": "mdx_any"}, timeout=30)
    assert answer.status_code == 503
    assert "the memory of this server does not answer" in answer.text
    assert not any(part in answer.text for part in HIDDEN)


def test_the_log_has_one_line_for_an_outage(outage: Outage) -> None:
    with pytest.raises(StoreError), fail_fast():
        outage.team.memory.list()
    time.sleep(1.5)
    down = [line for line in outage.lines if "connecting" in line or "no server answers" in line]
    assert len(down) == 1, down


async def test_a_server_that_is_back_is_used_within_seconds(outage: Outage) -> None:
    outage.server.start_again()
    deadline = time.monotonic() + 20
    while outage.team.get("/ready").status_code != 200 and time.monotonic() < deadline:
        time.sleep(0.2)
    async with outage.team.client(outage.anna) as client:
        assert structured(await client.call_tool("search", {"query": "bees"}))["total"] == 1
    assert samples(outage.team.get("/metrics", outage.scraper))["mindex_database_up"] == "1"
    assert [line for line in outage.lines if line.endswith("answers again")][1:] == []
