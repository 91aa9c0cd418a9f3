"""`mindex web`: the link that it prints lets one browser in, once."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.running import is_one_error, run_here

pytestmark = [pytest.mark.server, pytest.mark.slow]
LONG = 60.0
LINK = re.compile(r"(http://127\.0\.0\.1:(\d+))/open/([\w-]{40,})\n")


@contextmanager
def page_of(db: Path, *options: str) -> Iterator[re.Match[str]]:
    """Run the command until the block ends. Yields the link that it printed."""
    command = [sys.executable, "-m", "mindex", "--db", str(db), "web", "--no-open", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            link = LINK.fullmatch(process.stdout.readline())
            assert link is not None
            yield link
        finally:
            process.send_signal(signal.SIGTERM)
            process.communicate(timeout=LONG)


@pytest.fixture
def db(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MINDEX_EMBEDDING_PROVIDER", "none")
    path = tmp_path / "memory.db"
    assert run_here("--db", str(path), "add", "The archive is in Bergen.").code == 0
    return path


def test_the_link_opens_the_page_once(db: Path) -> None:
    with page_of(db, "--port", "0") as link:
        with httpx2.Client(follow_redirects=True, timeout=LONG, headers={"accept": "text/html"}) as browser:
            first = browser.get(link[0].strip())
            assert first.status_code == 200
            assert "The archive is in Bergen." in first.text
            assert link[3] not in str(first.url)
            assert browser.get(f"{link[1]}/settings").status_code == 200  # it is the owner's
        with httpx2.Client(follow_redirects=True, timeout=LONG, headers={"accept": "text/html"}) as other:
            again = other.get(link[0].strip())
            assert again.status_code == 401
            assert "this link was used already or is too old; run `mindex web` again" in again.text
            assert other.get(f"{link[1]}/").url.path == "/login"


def test_a_port_that_is_taken_is_replaced_unless_it_was_named(db: Path) -> None:
    from mindex.cli.serve import DEFAULT_PORT  # beside its use

    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", DEFAULT_PORT))
            taken.listen()
        except OSError:
            pass  # another process has it, which does as well
        with page_of(db) as link:
            assert int(link[2]) != DEFAULT_PORT
        ran = run_here("--db", str(db), "web", "--no-open", "--port", str(DEFAULT_PORT))
        is_one_error(ran, f"cannot listen on 127.0.0.1:{DEFAULT_PORT}", code=2)


def test_a_database_that_is_not_there_is_refused(tmp_path: Path) -> None:
    is_one_error(run_here("--db", str(tmp_path / "typo.db"), "web"), "there is no database")
    assert not (tmp_path / "typo.db").exists()


def test_a_root_that_is_not_there_is_refused(db: Path) -> None:
    is_one_error(run_here("--db", str(db), "web", "--root", "/nowhere/at/all"), "there is no folder")
