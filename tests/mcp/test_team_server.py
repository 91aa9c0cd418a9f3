"""One server for a team over real sockets: tokens, limits, metrics, half-open connections, and its end under load."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, ClassVar

import anyio
import httpx2
import pytest

from mindex.datatypes import Filters
from mindex.errors import ConfigError
from mindex.http_access.connections import TimedProtocol
from mindex.mcp.host_check import allowed_hosts
from mindex.memory import Memory
from tests.mcp.conftest import structured, text
from tests.mcp.team import KEYWORD, LONG, Team, bearer, team_server
from tests.postgres_server import PostgresServer
from tests.running import run_here, wait_until

pytestmark = [pytest.mark.anyio, pytest.mark.server]

NEXT = "ask the server's owner for a new one"


class SmallBuffers(TimedProtocol):
    """The system takes little of an answer that is not read: the rest is the server's to keep."""

    served: ClassVar[dict[Any, TimedProtocol]] = {}  # by the address of the client

    def connection_made(self, transport: Any) -> None:
        transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4_096)
        super().connection_made(transport)
        SmallBuffers.served[self.client] = self


class Hasty(SmallBuffers):
    header_seconds = 0.4
    read_seconds = 0.5


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with team_server(tmp_path_factory.mktemp("team"), protocol=Hasty, settings={"http.body_seconds": 0.5}) as team:
        yield team


# ── tokens ────────────────────────────────────────────────────────────────────────────────────────────────────


def refused(answer: httpx2.Response) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["kind"], "; ".join(filter(None, (error["message"], error.get("hint"))))


def test_the_response_to_a_request_without_a_token_says_how_to_send_one(team: Team) -> None:
    answer = team.post()
    message = "this server needs a token; send one as `Authorization: Bearer TOKEN`; the server's owner makes them"
    assert refused(answer) == (401, "authentication", message)
    assert answer.headers["www-authenticate"] == "Bearer"
    for header in ("Basic b3duZXI6eA==", "Bearer", "mdx_x"):
        assert team.post(headers={"Authorization": header}).status_code == 401


@pytest.mark.parametrize("token", ["mdx_nothing", "x", "mdx_" + "a" * 10_000, "é".encode().decode("latin-1")])
def test_an_unknown_token_is_refused_in_one_sentence(team: Team, token: str) -> None:
    answer = httpx2.post(
        f"{team.url}/mcp", json={}, headers=[(b"authorization", f"Bearer {token}".encode("latin-1"))], timeout=LONG
    )
    assert refused(answer) == (401, "authentication", f"this token is unknown or was revoked; {NEXT}")
    assert 'error="invalid_token"' in answer.headers["www-authenticate"]


def test_a_token_is_refused_from_the_moment_it_expires(team: Team) -> None:
    token = team.token("short", expires=int(time.time() * 1000) + 1_500)
    assert team.post(token).status_code == 200
    deadline = time.monotonic() + 10
    while (answer := team.post(token)).status_code == 200 and time.monotonic() < deadline:
        time.sleep(0.05)
    status, kind, message = refused(answer)
    assert (status, kind) == (401, "authentication")
    assert re.fullmatch(rf"this token expired at \d{{4}}-[^;]+; {NEXT}", message)


def test_a_revoked_token_is_refused_within_a_second_by_the_running_server(team: Team) -> None:
    token = team.token("leaving")
    assert team.post(token).status_code == 200
    database = team.memory.settings.database
    assert run_here("--db", database, "token", "revoke", "leaving").code == 0
    revoked = time.monotonic()
    while (asked := time.monotonic()) and (answer := team.post(token)).status_code == 200:
        assert asked - revoked < 1  # when it was sent: the answer may take its time
    assert refused(answer) == (401, "authentication", f"this token is unknown or was revoked; {NEXT}")


def test_tokens_made_while_the_server_runs_count_at_once_and_only_their_hash_is_stored(team: Team) -> None:
    database = Path(team.memory.settings.database)
    made = run_here("--db", database, "token", "add", "carla", "--json").json
    assert team.post(made["token"]).status_code == 200
    team.memory.store.settle()
    stored = b"".join(path.read_bytes() for path in database.parent.glob("memory.db*"))
    assert made["token"].encode() not in stored
    assert made["token"].removeprefix("mdx_").encode() not in stored


@pytest.mark.skipif(os.name == "nt", reason="modes of files are another matter there")
def test_an_owners_token_that_others_can_read_or_that_was_revoked_does_not_count(tmp_path: Path) -> None:
    with team_server(tmp_path) as team:
        owner, file = team.owner(), tmp_path / "owner-token"
        assert team.post(owner).status_code == 200
        file.chmod(0o644)
        time.sleep(0.6)  # longer than a token is remembered
        assert team.post(owner).status_code == 401
        shown = run_here("--db", tmp_path / "memory.db", "token", "show")
        assert shown.err.startswith(
            f"error: ignoring the token in {file} because other users can read the file; `mindex token"
        )
        assert run_here("--db", tmp_path / "memory.db", "token", "revoke", "owner").code == 0
        assert run_here("--db", tmp_path / "memory.db", "token", "show").out.strip() != owner
        assert team.owner() != owner


async def test_a_token_acts_as_its_agent_and_the_owner_sees_all(team: Team) -> None:
    anna, everyone = team.token("anna", agent="anna"), team.token("board", agent="*", rights="read")
    async with team.client(anna) as client:
        added = structured(await client.call_tool("remember", {"text": "Anna keeps bees on the roof"}))
        assert team.memory.entries.find(added["id"]).agent == "anna"
        changes = team.memory.history(added["id"])
        assert [change.by for change in changes] == ["anna"]
    async with team.client(team.owner()) as client:
        assert "bees" in text(await client.call_tool("get", {"refs": [added["id"]]}))
        assert structured(await client.call_tool("search", {"query": "bees"}))["total"] == 0  # it acts as `main`
    async with team.client(everyone) as client:
        assert added["id"] in text(await client.call_tool("search", {"query": "bees"}))
        refusal = await client.call_tool("forget", {"id": added["id"]})
        assert text(refusal).endswith(
            "this access token is read-only; nothing was changed; ask the server's owner for a token that may write"
        )


async def test_another_agents_id_is_not_found_and_its_name_is_refused(team: Team) -> None:
    theirs = team.memory.add("Dora hides the spare key", agent="dora").id
    async with team.client(team.token("eva")) as client:
        missing = text(await client.call_tool("update", {"id": theirs, "text": "x"}))
        assert missing.endswith(f"there is no entry '{theirs}'; search for it, or `search` with kind: memory")
        assert missing.replace(theirs, "zzzzzz") == text(
            await client.call_tool("update", {"id": "zzzzzz", "text": "x"})
        )
        assert structured(await client.call_tool("status", {}))["records"] == {}
    assert team.memory.entries.find(theirs).text == "Dora hides the spare key"


async def test_another_agent_that_an_argument_names_is_refused(tmp_path: Path) -> None:
    with team_server(tmp_path, "memorizer") as team:
        team.memory.add("Dora hides the spare key", agent="dora")
        async with team.client(team.token("eva")) as client:
            for tool, arguments in (
                ("retrieve_memories", {"query": "key"}),
                ("list_facts", {}),
                ("store_fact", {"fact": "Planted by Eva", "category": "preference"}),
                ("get_memory_stats", {}),
            ):
                answer = structured(await client.call_tool(tool, {**arguments, "agent_id": "dora"}))
                message = "this token acts as the agent 'eva' and for no other; leave the agent out"
                assert (answer["success"], answer["error"]) == (False, message), tool
        assert [record.text for record in team.memory.list(Filters(agent="*")).records] == ["Dora hides the spare key"]


async def test_tokens_work_on_postgresql(tmp_path: Path, postgres_server: PostgresServer) -> None:
    with postgres_server.schema() as url, team_server(tmp_path, db=url) as team:
        anna, ben = team.token("anna"), team.token("ben")
        async with team.client(anna) as one, team.client(ben) as other:
            await one.call_tool("remember", {"text": "Anna keeps bees"})
            assert structured(await one.call_tool("search", {"query": "bees"}))["total"] == 1
            assert structured(await other.call_tool("search", {"query": "bees"}))["total"] == 0
        team.memory.tokens.revoke("anna")
        time.sleep(0.6)
        assert team.post(anna).status_code == 401
        assert team.post(ben).status_code == 200
        assert (team.memory.folder / "owner-token").exists() is False
        team.memory.tokens.owner_file()


# ── limits ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_body_that_is_too_large_is_refused_before_it_is_read(tmp_path: Path) -> None:
    with team_server(tmp_path, settings={"http.max_body_bytes": 2_000}) as team:
        token = team.token("anna")
        message = (
            "the request has more than 2,000 bytes; send less at once, or have the server's owner raise"
            " http.max_body_bytes"
        )
        assert refused(team.post(token, json={"x": "y" * 3_000})) == (413, "too_large", message)
        parts = (b"y" * 1_000 for _ in range(5))  # its length is not announced
        assert refused(team.post(token, json=None, content=parts)) == (413, "too_large", message)
        assert team.post(token).status_code == 200
        assert team.post("", json={"x": "y" * 3_000}).status_code == 401


def test_a_token_over_its_limit_gets_the_time_of_the_next_try_and_others_are_served(tmp_path: Path) -> None:
    with team_server(tmp_path, settings={"http.requests_per_minute": 20}) as team:
        busy, calm = team.token("busy"), team.token("calm")
        assert [team.post(busy).status_code for _ in range(20)] == [200] * 20
        # On a busy machine some are allowed again while the others are made.
        late = next(one for one in (team.post(busy) for _ in range(200)) if one.status_code != 200)
        assert (late.status_code, late.json()["error"]["kind"]) == (429, "rate_limit")
        assert 1 <= int(late.headers["retry-after"]) <= 3
        assert late.json()["error"]["message"] == "this token has made more than 20 requests in a minute"
        assert late.json()["error"]["hint"].startswith("wait ")
        assert team.post(calm).status_code == 200


# ── health, metrics ───────────────────────────────────────────────────────────────────────────────────────────


def test_health_needs_no_token_and_tells_no_more_than_the_version(team: Team) -> None:
    answer = team.get("/health")
    assert (answer.status_code, set(answer.json())) == (200, {"status", "version"})


@pytest.mark.parametrize("path", ["/health", "/ready"])
def test_probes_are_answered_under_any_host_name(team: Team, path: str) -> None:
    answer = httpx2.get(f"{team.url}{path}", headers={"Host": "10.42.0.7:8080"}, timeout=LONG)
    assert (answer.status_code, answer.json()["status"]) == (200, "ok")


@pytest.mark.parametrize(
    ("header", "value", "status", "kind", "says"),
    [
        ("Host", "evil.example", 421, "host", "set MINDEX_HTTP_PUBLIC_URL (http.public_url)"),
        ("Origin", "http://evil.example", 403, "denied", "set MINDEX_HTTP_PUBLIC_URL (http.public_url)"),
        ("Content-Type", "text/plain", 400, "bad_request", "send a JSON-RPC message with the header `Content-Type"),
    ],
)
def test_a_refusal_by_a_header_is_json_that_says_what_to_do(
    team: Team, header: str, value: str, status: int, kind: str, says: str
) -> None:
    found = refused(team.post(team.owner(), headers={header: value}))
    assert found[:2] == (status, kind)
    assert says in found[2]


def test_a_path_that_is_not_there_is_json_that_names_those_that_are(team: Team) -> None:
    message = (
        "there is nothing at this path; MCP is at /mcp, the API below /api/v1, the page at /;"
        " there are also /health, /ready and /metrics"
    )
    assert refused(team.get("/nothing", team.owner())) == (404, "not_found", message)
    assert refused(team.get("/healthz")) == (404, "not_found", message)


async def test_metrics_count_requests_tools_tiers_and_what_waits_for_a_vector(tmp_path: Path) -> None:
    with team_server(tmp_path) as team:
        async with team.client(team.token("anna")) as client:
            await client.call_tool("remember", {"text": "Anna keeps bees"})
            await client.call_tool("search", {"query": "bees"})
            await client.call_tool("search", {"query": "honey"})
            await client.call_tool("update", {"id": "unknown", "text": "x"})
        assert team.post("mdx_wrong").status_code == 401
        answer = team.get("/metrics", team.token("scraper", rights="metrics"))
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = dict(line.rsplit(" ", 1) for line in answer.text.splitlines() if not line.startswith("#"))
    assert samples['mindex_tool_calls_total{tool="search",outcome="ok"}'] == "2"
    assert samples['mindex_tool_calls_total{tool="update",outcome="error"}'] == "1"
    assert samples['mindex_tool_seconds_count{tool="search"}'] == "2"
    assert sum(float(value) for name, value in samples.items() if name.startswith("mindex_searches_total")) == 2
    assert float(samples['mindex_http_requests_total{route="/mcp",status="200"}']) >= 4
    assert float(samples['mindex_http_requests_total{route="/mcp",status="401"}']) >= 1
    assert (samples["mindex_database_up"], samples["mindex_embedding_pending"]) == ("1", "0")
    assert "anna" not in answer.text
    assert "bees" not in answer.text
    families = re.findall(r"^# TYPE (\w+) (\w+)$", answer.text, re.M)
    assert len(families) == len({name for name, _ in families}) == 9


def test_metrics_are_for_the_owner_and_for_tokens_made_for_them(team: Team) -> None:
    scraper, anna = team.token("scraper", rights="metrics"), team.token("fritz")
    assert team.get("/metrics").status_code == 401
    assert refused(team.get("/metrics", anna))[::2] == (
        403,
        "this token does not open the metrics; the server's owner makes one with `mindex token add --metrics`",
    )
    assert team.get("/metrics", team.owner()).status_code == 200
    assert team.get("/metrics", scraper).status_code == 200
    assert refused(team.post(scraper)) == (403, "denied", "this token opens the metrics only; use it at /metrics")


# ── connections ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sent", [b"", b"POST /mcp HT", b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "])
def test_a_connection_that_sends_no_request_is_closed(team: Team, sent: bytes) -> None:
    with socket.create_connection(_place(team), timeout=LONG) as connection:
        connection.sendall(sent)
        started = time.monotonic()
        assert connection.recv(100) == b""
        assert time.monotonic() - started < 10


def test_a_second_request_on_a_connection_that_stays_half_is_not_waited_for(team: Team) -> None:
    whole = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n"
    with socket.create_connection(_place(team), timeout=LONG) as connection:
        connection.sendall(whole)
        answer = b""
        while b'"status"' not in answer:
            answer += connection.recv(10_000)
        connection.sendall(whole[:20])
        assert connection.recv(100) == b""


def test_a_body_that_does_not_come_is_not_waited_for(team: Team) -> None:
    token = team.token("slow")
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:1\r\nAuthorization: Bearer {token}\r\nContent-Length: 100\r\n\r\n"
    with socket.create_connection(_place(team), timeout=LONG) as connection:
        connection.sendall(head.encode() + b'{"json')
        answer = b"".join(iter(lambda: connection.recv(10_000), b""))
    assert answer.startswith(b"HTTP/1.1 408")
    assert b'"message":"the request did not arrive within 0.5 s","hint":"send it again"' in answer


def test_the_rest_of_a_body_that_was_refused_is_not_waited_for(team: Team) -> None:
    """The answer comes before the body, which each further byte of it made the server wait for."""
    head = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:1\r\nContent-Length: 1000000\r\n\r\n"
    with socket.create_connection(_place(team), timeout=LONG) as connection:
        connection.sendall(head)
        assert connection.recv(10_000).startswith(b"HTTP/1.1 401")
        connection.sendall(b"x")
        assert all(iter(lambda: connection.recv(10_000), b""))


def _ask_and_never_read(team: Team, token: str) -> socket.socket:
    """A connection with small buffers on which 1 MB of answers were asked for."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4_096)
    connection.settimeout(LONG)
    connection.connect(_place(team))
    one = f"GET /api/v1/openapi.json HTTP/1.1\r\nHost: 127.0.0.1:1\r\nAuthorization: Bearer {token}\r\n\r\n"
    connection.sendall(one.encode() * 100)
    return connection


def _served(connection: socket.socket) -> TimedProtocol:
    """The server's side of a connection."""
    address = connection.getsockname()
    wait_until(lambda: address in SmallBuffers.served, what="the connection")
    return SmallBuffers.served[address]


def test_a_client_that_never_reads_its_answers_is_dropped(team: Team) -> None:
    token = team.token("deaf")
    with _ask_and_never_read(team, token) as connection:
        served = _served(connection)
        wait_until(lambda: served not in served.connections, what="the end of the connection")
        assert len(b"".join(iter(lambda: connection.recv(100_000), b""))) < 100_000


def test_a_client_that_never_reads_does_not_cause_a_traceback_at_the_end(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its request is cut off when the server has waited long enough."""
    with team_server(tmp_path, protocol=SmallBuffers) as team:
        connection = _ask_and_never_read(team, team.token("deaf"))
        served = _served(connection)
        wait_until(lambda: served.flow.write_paused, what="an answer that is not read")
        assert served.tasks
    connection.close()
    assert "Traceback" not in capfd.readouterr().err


@pytest.mark.slow
def test_fifty_connections_of_each_kind_that_are_left_half_open_keep_no_one_from_an_answer(tmp_path: Path) -> None:
    """With the time limits of a real server, so that all of them are open at once."""
    with team_server(tmp_path, protocol=SmallBuffers, prepare=lambda memory: memory.add("Oak", agent="anna")) as team:
        token = team.token("anna")
        head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:1\r\nAuthorization: Bearer {token}\r\n"
        kinds = ["", head, head + 'Content-Length: 100\r\n\r\n{"json']
        with ExitStack() as stack:
            for _ in range(50):
                for sent in kinds:
                    connection = stack.enter_context(socket.create_connection(_place(team), timeout=LONG))
                    connection.sendall(sent.encode())
                stack.enter_context(_ask_and_never_read(team, token))
            for _ in range(20):
                assert team.post(token).status_code == 200
                answer = team.get("/api/v1/search", token, params={"q": "oak"})
                assert [hit["text"] for hit in answer.json()["results"]] == ["Oak"]


def test_the_server_opens_no_stream_for_messages_that_it_never_sends(team: Team) -> None:
    answer = team.get("/mcp", team.owner())
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")
    assert answer.json()["error"]["kind"] == "method"


def _place(team: Team) -> tuple[str, int]:
    host, _, port = team.url.removeprefix("http://").partition(":")
    return host, int(port)


def test_the_name_of_the_public_address_is_accepted_and_no_other(tmp_path: Path) -> None:
    with team_server(tmp_path, settings={"http.public_url": "https://memory.example"}) as team:
        token = team.token("anna")
        public = {"Host": "memory.example", "Origin": "https://memory.example"}
        assert team.post(token, headers=public).status_code == 200
        assert team.post(token, headers={"Host": "other.example"}).status_code == 421
        assert team.post(token, headers={"Host": "memory.example", "Origin": "https://evil.example"}).status_code == 403
        assert team.get("/metrics", token, follow_redirects=False).status_code == 403
    with pytest.raises(ConfigError, match=r"is not a URL; write https://memory\.example"):
        allowed_hosts("127.0.0.1", "memory.example")


# ── many clients, and the end ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
async def test_fifty_clients_search_at_once_without_an_error_and_none_starves(tmp_path: Path) -> None:
    """bench/http_clients.py measures it with 20 searches each; here it is that none fails or is forgotten."""
    pages = [f"The pier number {number} belongs to harbour {number % 7}" for number in range(200)]
    with team_server(tmp_path, prepare=lambda memory: [memory.add(page, agent="anna") for page in pages]) as team:
        tokens = [team.token(f"anna{number}", agent="anna") for number in range(5)]
        waited: list[float] = []

        async def search(number: int) -> None:
            async with team.client(tokens[number % 5]) as client:
                for turn in range(3):
                    started = time.perf_counter()
                    found = await client.call_tool("search", {"query": f"pier number {number + turn}", "limit": 3})
                    waited.append(time.perf_counter() - started)
                    assert structured(found)["total"] > 0

        with anyio.fail_after(300):
            async with anyio.create_task_group() as group:
                for number in range(50):
                    group.start_soon(search, number)
    assert len(waited) == 150
    assert max(waited) < 60 * max(median(waited), 0.05)


@dataclass(frozen=True)
class Started:
    process: subprocess.Popen[str]
    url: str


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[], Started]]:
    """Starts `mindex serve --http` as a separate process."""
    processes = []

    def begin() -> Started:
        main = "from mindex.cli.main import main; main()"
        process = subprocess.Popen(
            [sys.executable, "-c", main, "--db", str(tmp_path / "memory.db"), "serve", "--http", "0"],
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "MINDEX_EMBEDDING_PROVIDER": "none"},
        )
        processes.append(process)
        assert process.stderr
        for line in process.stderr:
            if match := re.match(r"serving (http://.+)/mcp", line):
                return Started(process, match[1])
        raise AssertionError("the server did not start")

    yield begin
    for process in processes:
        process.kill()
        process.wait()
        assert process.stderr
        process.stderr.close()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
def test_what_was_acknowledged_before_sigterm_is_stored(tmp_path: Path, start: Callable[[], Started]) -> None:
    """Eight clients write as fast as they can; every answer that one of them has read is in the store afterwards."""
    with Memory(tmp_path / "memory.db", options=KEYWORD) as memory:
        token = memory.tokens.add("anna").secret
    started = start()
    acknowledged: list[str] = []
    stopped: list[str] = []

    def write(client_number: int) -> None:
        headers = {**bearer(token), "Accept": "application/json, text/event-stream"}
        with httpx2.Client(headers=headers, timeout=LONG) as client:
            for number in range(10_000):
                words = f"Fact {number} of client {client_number}"
                params = {"name": "remember", "arguments": {"text": words}}
                message = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}
                try:
                    answer = client.post(f"{started.url}/mcp", json=message)
                except httpx2.HTTPError as error:
                    stopped.append(type(error).__name__)
                    return
                if answer.status_code == 200 and '"isError":false' in answer.text.replace(" ", ""):
                    acknowledged.append(words)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + LONG
    while len(acknowledged) < 60 and time.monotonic() < deadline:
        time.sleep(0.01)
    started.process.send_signal(signal.SIGTERM)
    assert started.process.wait(LONG) == 128 + signal.SIGTERM
    for thread in threads:
        thread.join(LONG)
    assert len(acknowledged) >= 60
    assert len(stopped) == 8
    with Memory(tmp_path / "memory.db", options=KEYWORD) as memory:
        page = memory.store.retrieval.list(Filters(agent="anna", kinds=("memory",)), limit=100_000)
        stored = [record.text for record in page.records]
        assert set(acknowledged) <= set(stored)
        assert len(stored) == len(set(stored))
        assert all(check.ok for check in memory.doctor())


@pytest.mark.skipif(os.name == "nt", reason="signals are another matter there")
def test_a_request_that_runs_when_the_server_ends_is_answered(tmp_path: Path, start: Callable[[], Started]) -> None:
    """A client that is sending its body when SIGTERM comes still gets its answer."""
    with Memory(tmp_path / "memory.db", options=KEYWORD) as memory:
        token = memory.tokens.add("anna").secret
    started = start()
    host, _, port = started.url.removeprefix("http://").partition(":")
    body = (
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"remember",'
        b'"arguments":{"text":"Stored on the way out"}}}'
    )
    head = (
        f"POST /mcp HTTP/1.1\r\nHost: {host}:{port}\r\nAuthorization: Bearer {token}\r\n"
        "Accept: application/json, text/event-stream\r\nContent-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n"
    )
    with socket.create_connection((host, int(port)), timeout=LONG) as connection:
        connection.sendall(head.encode())
        assert b"100 Continue" in connection.recv(10_000)  # the server reads the body now
        connection.sendall(body[:30])
        started.process.send_signal(signal.SIGTERM)
        time.sleep(0.3)
        connection.sendall(body[30:])
        answer = b"".join(iter(lambda: connection.recv(10_000), b""))
    assert b'"created":true' in answer.replace(b" ", b"")
    assert started.process.wait(LONG) == 128 + signal.SIGTERM
    with Memory(tmp_path / "memory.db", options=KEYWORD) as memory:
        assert memory.search("way out", agent="anna").total == 1
