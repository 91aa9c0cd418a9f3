"""One request to a server: its time, size, retries, redirects and proxies, and the messages of its errors."""

import logging
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable
from email.utils import formatdate

import pytest

from mindex.datatypes import Role
from mindex.errors import EmbeddingError, GenerationError, RerankError
from mindex.providers import server as module
from mindex.providers.addresses import parse_address
from mindex.providers.http import MEGABYTE
from mindex.providers.server import Limits, Rejected, Server, ServerSpec
from tests.providers.servers import (
    ModelServer,
    Trick,
    bomb,
    endless,
    garbage,
    half,
    hang,
    html,
    huge,
    late,
    no_http,
    redirect,
    reset,
    status,
    trickle,
    trickle_headers,
)
from tests.running import wait_until

pytestmark = pytest.mark.usefixtures("alone")

BODY = {"model": "m", "input": ["some words"]}
KEY = "sk-very-secret-0123456789"
# A server that hangs does so for half a minute; a call that took less did not wait for it.
HANGING = 20


def server_at(
    url: str, *, role: Role = "embedding", timeout: float = 5.0, key: str = "", start: str = "start it"
) -> Server:
    return Server(ServerSpec(role, "ollama", "m", parse_address(url), timeout, start=start, given_key=key))


def ask(server: ModelServer, *, timeout: float = 5.0, attempts: int = 4, max_bytes: int = 32 * MEGABYTE) -> object:
    limits = Limits(attempts=attempts, max_bytes=max_bytes)
    return server_at(server.url, timeout=timeout).post("/api/embed", BODY, limits)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


# ── answers ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_an_answer_is_the_json_value_that_was_sent(server: ModelServer) -> None:
    answer = ask(server)

    assert isinstance(answer, dict)
    assert len(answer["embeddings"][0]) == server.dimensions
    assert server.bodies == [BODY]


def test_one_connection_serves_one_request_after_the_other(server: ModelServer) -> None:
    seen: list[object] = []
    server.always = lambda handler: (seen.append(handler.client_address), handler.say(200, {}))[1]
    client = server_at(server.url)

    for _ in range(3):
        client.post("/api/embed", BODY)

    assert len(set(seen)) == 1


@pytest.mark.parametrize(
    ("trick", "shown"),
    [
        (html, "answers with a web page"),
        (garbage, "not JSON"),
        (status(200, b""), "answers with nothing"),
        (status(200, b'{"embeddings": [[1, NaN]]}'), "answers with NaN"),
        (status(200, b"[" * 100_000), "not JSON"),
        (status(200, b"1" * 10_000), "not JSON"),
        (half, "broke its answer off"),
        (reset, "broke its answer off"),
        (no_http, "broke its answer off"),
        (status(200, b"\x1f\x8b rubbish", content_encoding="gzip"), "not JSON"),
    ],
)
def test_a_response_that_is_not_json_is_an_error_that_says_what_it_is(
    server: ModelServer, trick: Trick, shown: str
) -> None:
    server.always = trick

    with pytest.raises(EmbeddingError, match=shown) as failed:
        ask(server, attempts=1)

    assert server.url in failed.value.message
    assert failed.value.hint


@pytest.mark.parametrize("trick", [huge(10), endless, bomb])
def test_an_answer_that_is_too_long_is_cut_off(server: ModelServer, trick: Trick) -> None:
    server.always = trick

    with pytest.raises(EmbeddingError, match="answers with more than 1 MB"):
        ask(server, timeout=30, max_bytes=MEGABYTE)


# ── time ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("trick", [hang, trickle, trickle_headers])
def test_a_server_that_hangs_or_drips_is_given_up_when_the_time_is_over(server: ModelServer, trick: Trick) -> None:
    server.always = trick
    started = time.monotonic()

    with pytest.raises(EmbeddingError, match=r"did not answer within 0\.6 s"):
        ask(server, timeout=0.6)

    assert 0.5 < time.monotonic() - started < HANGING
    wait_until(lambda: bool(server.asked), what="the request")
    assert len(server.asked) == 1


def test_a_call_may_be_given_less_time_than_the_settings_give(server: ModelServer) -> None:
    server.always = hang

    with pytest.raises(EmbeddingError, match=r"within 0\.4 s"):
        server_at(server.url, timeout=30).post("/api/embed", BODY, Limits(time.monotonic() + 0.4))


def test_a_name_that_cannot_be_looked_up_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def slow(*_: object, **__: object) -> list[object]:
        released.wait(60)
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", slow)
    started = time.monotonic()
    try:
        with pytest.raises(EmbeddingError, match="did not answer within"):
            server_at("http://models.invalid", timeout=0.5).post("/api/embed", BODY)
    finally:
        released.set()

    assert time.monotonic() - started < HANGING


# ── trying again ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("trick", [status(500, {"error": "boom"}), status(503), status(429), reset, half])
def test_a_temporary_failure_is_retried_until_it_works(server: ModelServer, trick: Trick) -> None:
    server.tricks.extend([trick, trick])

    assert isinstance(ask(server, timeout=20), dict)
    assert len(server.asked) == 3


@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 422])
def test_a_permanent_failure_is_not_retried(server: ModelServer, code: int) -> None:
    server.always = status(code, {"error": "no"})

    with pytest.raises((EmbeddingError, Rejected)):
        ask(server)

    assert len(server.asked) == 1


def test_after_four_attempts_it_is_an_error(server: ModelServer) -> None:
    server.always = status(502, {"error": "bad gateway"})

    with pytest.raises(EmbeddingError, match=r"failed \(502: “bad gateway”\)"):
        ask(server, timeout=20)

    assert len(server.asked) == 4


@pytest.mark.parametrize("asked_for", [lambda: "90", lambda: formatdate(time.time() + 91, usegmt=True)])
def test_a_retry_waits_as_long_as_the_server_requests(
    server: ModelServer, asked_for: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[float] = []
    monkeypatch.setattr(module, "sleep", waited.append)
    server.tricks.append(status(429, {"error": "slow down"}, retry_after=asked_for()))

    ask(server, timeout=120)

    (wait,) = waited
    assert 60 < wait <= 91  # a date comes nearer while the request is under way


def test_a_pause_longer_than_the_time_left_is_not_waited_for(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "sleep", lambda _: pytest.fail("a pause was made"))
    server.always = status(429, {"error": "slow down"}, retry_after="60")

    with pytest.raises(EmbeddingError, match="too many requests") as failed:
        ask(server, timeout=20)

    assert failed.value.hint == "try again in 60 s"
    assert len(server.asked) == 1


@pytest.mark.parametrize("nonsense", ["soon", "-3", "1e99", "٣", "Fri, 99 Foo 2026"])
def test_an_invalid_pause_is_ignored(server: ModelServer, nonsense: str) -> None:
    server.tricks.append(lambda handler: handler.say(503, "", retry_after=nonsense.encode().decode("latin-1")))

    assert isinstance(ask(server, timeout=10), dict)


def test_pauses_grow_and_no_two_callers_wait_the_same(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    monkeypatch.setattr(module, "sleep", waited.append)
    server.always = status(500)

    for _ in range(2):
        with pytest.raises(EmbeddingError):
            ask(server, timeout=20)

    assert all(0.125 * 2**turn <= wait <= 0.25 * 2**turn for turn, wait in enumerate(waited[:3]))
    assert waited[:3] != waited[3:]


# ── where it goes ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_redirect_on_the_same_server_is_followed(server: ModelServer) -> None:
    server.tricks.append(redirect("/api/embed?again"))

    assert isinstance(ask(server), dict)
    assert server.bodies == [BODY, BODY]


def test_a_redirect_to_another_host_gets_nothing(server: ModelServer) -> None:
    with ModelServer() as other:
        server.always = redirect(f"{other.url}/api/embed?token=abc")

        with pytest.raises(EmbeddingError, match=r"redirects to “http://127\.0\.0\.1”") as failed:
            ask(server)

        assert "token" not in str(failed.value)
        assert other.asked == []


def test_a_redirect_in_a_circle_ends(server: ModelServer) -> None:
    server.always = redirect("/api/embed")

    with pytest.raises(EmbeddingError, match="in a circle"):
        ask(server)

    assert len(server.asked) == 4


def test_if_no_server_answers_the_error_says_how_to_start_it() -> None:
    url = f"http://127.0.0.1:{free_port()}"

    with pytest.raises(EmbeddingError) as failed:
        server_at(url, start="is it running? start it with: ollama serve").post("/api/embed", BODY)

    assert failed.value.message == f"nothing answers at {url} (Connection refused)"
    assert failed.value.hint == "is it running? start it with: ollama serve"


def test_an_unknown_host_name_is_an_unreachable_server(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(*_: object, **__: object) -> list[object]:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)

    with pytest.raises(EmbeddingError, match=r"nothing answers at http://nowhere\.invalid:8080 \(Name or service"):
        server_at("http://nowhere.invalid:8080", timeout=20).post("/api/embed", BODY)


def test_https_to_a_server_that_does_not_speak_it_is_an_error(server: ModelServer) -> None:
    with pytest.raises(EmbeddingError, match="nothing answers at https://"):
        server_at(server.url.replace("http", "https"), timeout=10).post("/api/embed", BODY, Limits(attempts=1))


def test_a_proxy_of_the_environment_is_used(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", server.url)

    server_at("http://models.invalid").post("/api/embed", BODY)

    assert [one.path for one in server.asked] == ["/api/embed"]


def test_hosts_of_no_proxy_are_reached_without_it(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("NO_PROXY", "example.org,127.0.0.1")

    assert isinstance(ask(server), dict)


def test_a_server_on_this_machine_is_called_without_the_proxy(
    server: ModelServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("ALL_PROXY", f"http://127.0.0.1:{free_port()}")

    for url in (server.url, server.url.replace("127.0.0.1", "localhost")):
        assert isinstance(server_at(url).post("/api/embed", BODY), dict)


@pytest.mark.parametrize(
    ("host", "near"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("localhost", True),
        ("LOCALHOST", True),
        ("[::1]", True),
        ("127.0.0.1.example.org", False),
        ("127.example.org", False),
        ("localhost.example.org", False),
        ("192.0.2.1", False),
        ("[::2]", False),
    ],
)
def test_only_numbers_and_localhost_are_this_machine(host: str, near: bool) -> None:
    assert parse_address(f"http://{host}:8080/v1").is_loopback is near


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_broken_proxy_is_named_without_its_password(scheme: str, monkeypatch: pytest.MonkeyPatch) -> None:
    port = free_port()
    monkeypatch.setenv(f"{scheme.upper()}_PROXY", f"http://someone:hunter22@127.0.0.1:{port}")

    with pytest.raises(EmbeddingError) as failed:
        server_at(f"{scheme}://models.invalid").post("/api/embed", BODY)

    assert f"the proxy http://127.0.0.1:{port} does not work" in failed.value.message
    assert "NO_PROXY" in failed.value.hint
    assert "hunter22" not in str(failed.value)


def test_the_error_names_a_proxy_that_wants_a_login(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", server.url)  # it answers CONNECT with 501

    with pytest.raises(EmbeddingError, match=f"the proxy {server.url} does not work"):
        server_at("https://models.invalid").post("/api/embed", BODY)


@pytest.mark.parametrize("proxy", ["gopher://127.0.0.1:1", "socks5://127.0.0.1:1", "http://[bad"])
def test_a_malformed_proxy_is_an_error(proxy: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", proxy)

    with pytest.raises(EmbeddingError, match="proxy"):
        server_at("http://models.invalid").post("/api/embed", BODY)


# ── words ─────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_call_with_less_time_than_the_settings_allow_does_not_hint_to_raise_them(server: ModelServer) -> None:
    server.always = hang
    with pytest.raises(EmbeddingError) as failed:
        server_at(server.url, timeout=5).post("/api/embed", BODY, Limits(time.monotonic() + 0.2))
    assert "timeout" not in failed.value.hint
    with pytest.raises(EmbeddingError) as failed:
        server_at(server.url, timeout=0.2).post("/api/embed", BODY, Limits(time.monotonic() + 0.2))
    assert "raise embedding.timeout" in failed.value.hint


def test_a_call_that_insists_passes_an_open_breaker_and_closes_it(server: ModelServer) -> None:
    server.always = status(500)
    client = server_at(server.url)
    for _ in range(3):
        with pytest.raises(EmbeddingError):
            client.post("/api/embed", BODY, Limits(attempts=1))
    assert client.is_down

    with pytest.raises(EmbeddingError, match="failed \\(500"):
        client.post("/api/embed", BODY, Limits(attempts=1, insists=True))
    assert client.is_down

    server.always = None
    with pytest.raises(EmbeddingError, match="has failed 4 times"):
        client.post("/api/embed", BODY)
    assert isinstance(client.post("/api/embed", BODY, Limits(insists=True)), dict)
    assert not client.is_down
    assert isinstance(client.post("/api/embed", BODY), dict)


def test_the_error_is_that_of_the_role(server: ModelServer) -> None:
    server.always = html
    kinds: list[tuple[Role, type[Exception]]] = [
        ("embedding", EmbeddingError),
        ("rerank", RerankError),
        ("generation", GenerationError),
    ]

    for role, kind in kinds:
        with pytest.raises(kind):
            server_at(server.url, role=role).post("/api/embed", BODY)


def test_the_error_says_that_a_key_was_refused(server: ModelServer) -> None:
    server.always = status(401, {"error": {"message": f"bad key {KEY}"}})

    with pytest.raises(EmbeddingError, match=r"refuses the key \(401\)") as failed:
        server_at(server.url, key=KEY).post("/api/embed", BODY)

    assert "MINDEX_EMBEDDING_API_KEY" in failed.value.hint


def test_a_server_that_wants_a_key_says_so(server: ModelServer) -> None:
    server.always = status(401)

    with pytest.raises(EmbeddingError, match=r"wants a key \(401\)"):
        server_at(server.url).post("/api/embed", BODY)


@pytest.mark.parametrize(
    "answer",
    [
        {"error": "Unexpected endpoint or method. (POST /embed)"},
        {"success": False, "errors": [{"code": 1, "message": "Unexpected endpoint"}], "result": None},
    ],
)
def test_an_error_that_comes_as_an_answer_is_an_error(server: ModelServer, answer: object) -> None:
    server.always = status(200, answer)

    with pytest.raises(EmbeddingError, match=r"answers with an error \(“Unexpected endpoint"):
        ask(server)


def test_a_wrong_path_is_distinguished_from_a_missing_model(server: ModelServer) -> None:
    with pytest.raises(EmbeddingError, match=r"does not know this address \(404\)"):
        server_at(server.url).post("/nowhere", BODY)


def test_a_servers_own_message_becomes_one_short_line(server: ModelServer) -> None:
    server.always = status(500, {"error": {"message": "line one\nline \x1b[31mtwo " + "x" * 5000}})

    with pytest.raises(EmbeddingError) as failed:
        ask(server, attempts=1)

    assert "line one line [31mtwo" in failed.value.message
    assert len(failed.value.message) < 400


# ── secrets ───────────────────────────────────────────────────────────────────────────────────────────────────

SECRETS = (KEY, "user-secret", "query-secret")


def everything_shown(job: Callable[[], object], caplog: pytest.LogCaptureFixture) -> str:
    """The traceback and message of an error, and what was logged."""
    caplog.set_level(logging.DEBUG)
    shown = ""
    try:
        job()
    except Exception as error:
        shown = "".join(traceback.format_exception(error)) + repr(error) + str(error)
    return shown + caplog.text


@pytest.mark.parametrize(
    "trick",
    [
        status(200, {}),
        status(400, {"error": f"the key {KEY} is bad, so is {SECRETS[1]} and {SECRETS[2]}"}),
        status(401, {"error": KEY}),
        status(404, f"no model for {KEY}"),
        status(418, KEY),
        status(500, {"error": KEY}),
        reset,
        html,
        redirect(f"http://127.0.0.1:1/?k={KEY}"),
    ],
)
def test_no_secret_shows_in_errors_or_logs(server: ModelServer, trick: Trick, caplog: pytest.LogCaptureFixture) -> None:
    server.always = trick
    url = server.url.replace("//", "//user:user-secret@") + "?key=query-secret"
    client = server_at(url, key=KEY)

    shown = everything_shown(lambda: client.post("/api/embed", BODY, Limits(attempts=1)), caplog)
    shown += repr(client) + repr(client.spec) + repr(client.spec.address) + repr(vars(client).get("_breaker"))

    assert len(server.asked) == 1
    assert server.asked[0].headers["authorization"] == f"Bearer {KEY}"
    assert server.asked[0].query == "key=query-secret"
    assert not [secret for secret in SECRETS if secret in shown]


def test_a_login_in_the_address_is_sent_as_one(server: ModelServer) -> None:
    server_at(server.url.replace("//", "//user:p%40ss@")).post("/api/embed", BODY)

    assert server.asked[0].headers["authorization"] == "Basic dXNlcjpwQHNz"


@pytest.mark.parametrize(
    ("key", "flaw"),
    [
        (f"{KEY}\n", "a line break"),
        (f"{KEY}\r\nX-Admin: 1", "a line break"),
        (f"{KEY}\0", "a control character"),
        (f"{KEY} {KEY}", "a blank"),
        (f"{KEY}é", "not ASCII"),
    ],
)
def test_a_key_that_cannot_be_sent_is_refused_before_anything_is(
    server: ModelServer, key: str, flaw: str, caplog: pytest.LogCaptureFixture
) -> None:
    shown = everything_shown(lambda: server_at(server.url, key=key).post("/api/embed", BODY), caplog)

    assert "EmbeddingError" in shown
    assert flaw in shown
    assert KEY not in shown
    assert server.asked == []


# ── cost ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_with_the_breaker_open_nothing_heavy_is_imported() -> None:
    program = f"""
import sys
from mindex.errors import EmbeddingError
from mindex.providers.base import ProviderSettings
from mindex.providers.embed.base import create_embedder
embedder = create_embedder(ProviderSettings("ollama", url="http://127.0.0.1:{free_port()}", timeout=2))
for expected in (sys.argv[1] == "first",) * 3:
    try:
        embedder.embed_query("words")
    except EmbeddingError as error:
        assert ("has failed" in str(error)) != expected, error
print(*[name for name in ("httpx2", "numpy", "ssl", "http.client") if name in sys.modules])
"""
    first = subprocess.run([sys.executable, "-c", program, "first"], capture_output=True, text=True, check=True)
    second = subprocess.run([sys.executable, "-c", program, "second"], capture_output=True, text=True, check=True)

    assert "httpx2" in first.stdout
    assert second.stdout.strip() == ""


def test_late_answers_are_answers(server: ModelServer) -> None:
    server.always = late(0.3)

    assert isinstance(ask(server), dict)
