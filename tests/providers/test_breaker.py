"""The breaker: when it opens, for how long, which call is the trial, and what other processes see of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mindex.errors import EmbeddingError
from mindex.providers import breaker as module
from mindex.providers.addresses import parse_address
from mindex.providers.breaker import Breaker
from mindex.providers.server import Limits, Rejected, Server, ServerSpec
from tests.providers.servers import ModelServer, hang, html, status

pytestmark = pytest.mark.usefixtures("alone")

KEY = ("embedding", "http://127.0.0.1:11434", "m")


class Clock:
    """The time, as far as a breaker is concerned."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def opened(clock: Clock, failures: int = 3) -> Breaker:
    breaker = Breaker(*KEY, now=clock)
    for _ in range(failures):
        assert breaker.admit(10) is None
        breaker.failed("nothing answers")
    return breaker


def test_two_failures_do_not_open_it() -> None:
    assert opened(Clock(), failures=2).admit(10) is None


def test_the_third_failure_in_a_row_opens_it() -> None:
    outage = opened(Clock()).admit(10)

    assert outage is not None
    assert (outage.failures, outage.last) == (3, "nothing answers")


def test_a_success_between_failures_restarts_the_count() -> None:
    clock = Clock()
    breaker = opened(clock, failures=2)
    breaker.succeeded()
    breaker.failed("again")
    breaker.failed("again")

    assert breaker.admit(10) is None


def test_after_half_a_minute_one_call_may_try_and_the_others_wait_for_it() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 29
    assert breaker.admit(10) is not None
    clock.now += 2

    admitted = [breaker.admit(10), breaker.admit(10), Breaker(*KEY, now=clock).admit(10)]

    assert [one is None for one in admitted] == [True, False, False]


def test_a_trial_that_fails_doubles_the_pause_up_to_five_minutes() -> None:
    clock = Clock()
    breaker = opened(clock)
    pauses = []
    for _ in range(6):
        outage = breaker.admit(10)
        assert outage is not None
        pauses.append(outage.until - clock.now)
        clock.now = outage.until + 1
        assert breaker.admit(10) is None
        breaker.failed("still nothing")

    assert pauses == [30, 60, 120, 240, 300, 300]


def test_a_trial_that_succeeds_closes_it_for_every_process() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 31
    assert breaker.admit(10) is None
    breaker.succeeded()

    assert breaker.admit(10) is None
    assert Breaker(*KEY, now=clock).admit(10) is None


def test_a_trial_that_never_reports_back_does_not_keep_the_others_out_for_ever() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now += 31
    assert breaker.admit(10) is None  # and its process is killed
    clock.now += 12

    assert Breaker(*KEY, now=clock).admit(10) is None


def test_calls_that_were_under_way_when_it_opened_do_not_lengthen_the_pause() -> None:
    clock = Clock()
    breaker = opened(clock)
    for _ in range(5):
        breaker.failed("late")

    outage = breaker.admit(10)
    assert outage is not None
    assert (outage.failures, outage.until - clock.now) == (3, 30)


def test_failures_are_counted_across_processes(alone: Path) -> None:
    program = "from mindex.providers.breaker import Breaker; import sys; Breaker(*sys.argv[1:]).failed('nothing there')"
    for _ in range(3):
        subprocess.run([sys.executable, "-c", program, *KEY], check=True)

    outage = Breaker(*KEY).admit(10)

    assert outage is not None
    assert outage.last == "nothing there"


def test_roles_servers_and_models_have_separate_breakers() -> None:
    clock = Clock()
    opened(clock)

    for other in (("rerank", *KEY[1:]), (KEY[0], "http://127.0.0.1:1", KEY[2]), (*KEY[:2], "n")):
        assert Breaker(*other, now=clock).admit(10) is None


def test_a_clock_set_back_does_not_keep_it_open() -> None:
    clock = Clock()
    breaker = opened(clock)
    clock.now -= 86_400

    assert breaker.admit(10) is None


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b'{"failures": "3"}', b'{"failures": -1, "until": 9e99}']
)
def test_a_damaged_file_counts_as_none(alone: Path, content: bytes) -> None:
    opened(Clock())
    (file,) = (alone / "breakers").iterdir()
    file.write_bytes(content)
    clock = Clock()
    breaker = Breaker(*KEY, now=clock)

    assert breaker.admit(10) is None
    for _ in range(3):
        breaker.failed("again")
    assert breaker.admit(10) is not None
    assert json.loads(file.read_bytes())["failures"] == 3


@pytest.mark.parametrize("blocked", ["breakers", "."])
def test_if_no_file_can_be_written_only_the_process_remembers(alone: Path, blocked: str) -> None:
    """A file where the folder should be stops even root."""
    place = alone / blocked
    place.parent.mkdir(parents=True, exist_ok=True)
    place.resolve().write_text("not a folder")
    clock = Clock()

    breaker = opened(clock)

    assert breaker.admit(10) is not None
    clock.now += 31
    assert breaker.admit(10) is None
    breaker.succeeded()
    assert breaker.admit(10) is None


def test_many_threads_leave_a_whole_file(alone: Path) -> None:
    breakers = [Breaker(*KEY) for _ in range(8)]
    threads = [threading.Thread(target=breaker.failed, args=("all at once",)) for breaker in breakers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    (file,) = (alone / "breakers").iterdir()
    assert json.loads(file.read_bytes())["last"] == "all at once"


def test_a_check_of_the_breaker_reads_one_small_file(monkeypatch: pytest.MonkeyPatch) -> None:
    breaker = opened(Clock())
    looks: list[Path] = []
    look = module.read_small
    monkeypatch.setattr(module, "read_small", lambda path: (looks.append(path), look(path))[1])
    monkeypatch.setattr(module, "write_small", lambda *_: pytest.fail("a check wrote something"))

    for _ in range(20):
        assert breaker.admit(10) is not None

    assert len(looks) == 20


# ── what counts ───────────────────────────────────────────────────────────────────────────────────────────────


def server_at(server: ModelServer, timeout: float = 5.0) -> Server:
    return Server(ServerSpec("embedding", "ollama", "m", parse_address(server.url), timeout))


def fail(client: Server, times: int) -> list[str]:
    shown = []
    for _ in range(times):
        with pytest.raises((EmbeddingError, Rejected)) as failed:
            client.post("/api/embed", {"input": []}, Limits(attempts=1))
        shown.append(str(failed.value))
    return shown


@contextmanager
def no_longer_called(server: ModelServer) -> Iterator[None]:
    before = len(server.asked)
    yield
    assert len(server.asked) == before


def test_an_open_breaker_answers_at_once_and_says_why(server: ModelServer) -> None:
    server.always = status(500, {"error": "out of memory"})
    client = server_at(server)
    fail(client, 3)

    with no_longer_called(server):
        (shown,) = fail(client, 1)

    assert shown.startswith(f"ollama at {server.url} has failed 3 times, last: ")
    assert "out of memory" in shown
    assert shown.count(server.url) == 1
    (seconds,) = re.findall(r"; tried again in (\d+) seconds", shown)
    assert 1 <= int(seconds) <= 30


def test_the_error_for_an_unreachable_server_names_its_address_once(server: ModelServer) -> None:
    client = server_at(server)
    server.stop()
    first, *_ = fail(client, 3)
    assert first.startswith(f"nothing answers at {server.url} (")
    (shown,) = fail(client, 1)
    assert shown.startswith(f"ollama at {server.url} has failed 3 times, last: could not be reached (")
    assert shown.count(server.url) == 1


def test_a_hang_and_a_web_page_count_as_failures(server: ModelServer) -> None:
    server.tricks.extend([hang, html, hang])
    client = server_at(server, timeout=0.3)
    fail(client, 3)

    with no_longer_called(server):
        fail(client, 1)


@pytest.mark.parametrize("code", [400, 401, 403, 404, 422, 429])
def test_a_request_that_is_refused_says_nothing_against_the_server(server: ModelServer, code: int) -> None:
    server.always = status(code, {"error": "no"})

    fail(server_at(server), 5)

    assert len(server.asked) == 5


def test_a_server_that_comes_back_is_used_again(server: ModelServer, alone: Path) -> None:
    server.always = status(500)
    client = server_at(server)
    fail(client, 3)
    server.always = None
    (file,) = (alone / "breakers").iterdir()
    state = json.loads(file.read_bytes())
    file.write_text(json.dumps({**state, "until": time.time() - 1}))  # half a minute later

    assert isinstance(client.post("/api/embed", {"model": "m", "input": ["words"]}), dict)
    assert list((alone / "breakers").iterdir()) == []
