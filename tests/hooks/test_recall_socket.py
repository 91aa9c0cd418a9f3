"""A running server answers hooks, with its model, on a socket of its user's own."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import cast

import pytest

from mindex.hooks.recall_socket import AVAILABLE, RecallSocket, ask_server
from mindex.memory import Memory
from tests.hooks.conftest import Project

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="this system has no Unix sockets")

FACT = "The door code of the harbour office is written on the blue card."
QUESTION = "what is the door code of the harbour office?"


@pytest.fixture
def project() -> Iterator[Project]:
    """In a folder with a short path: that of a socket has at most about a hundred bytes."""
    with TemporaryDirectory(prefix="mx") as folder:
        yield Project(Path(folder))


@pytest.fixture
def served(project: Project) -> Iterator[RecallSocket]:
    with project.memory() as memory:
        memory.add(FACT)
        recall_socket = RecallSocket(lambda: memory)
        recall_socket.open()
        yield recall_socket
        recall_socket.close()


def sockets(project: Project) -> list[Path]:
    return list((project.data / "run").glob("*.sock"))


def ask(project: Project, database: str = "", question: str = QUESTION) -> list[str] | None:
    named = database or str(project.options["db"])
    lines = ask_server(project.data, named, question, shown=(), session="s1", agent="main")
    return None if lines is None else [line.text for line in lines]


def test_a_server_answers_with_what_it_recalls(project: Project, served: RecallSocket) -> None:
    lines = ask(project)
    assert lines is not None
    assert FACT in lines[0]


def test_a_hook_asks_the_server_first(project: Project, served: RecallSocket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.hooks.conftest.Memory", lambda **_: pytest.fail("the hook opened the memory"))
    assert FACT in project.prompt(QUESTION)
    assert project.prompt(QUESTION) == ""


def test_only_the_owner_reaches_the_socket(project: Project, served: RecallSocket) -> None:
    (path,) = sockets(project)
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_server_of_another_database_does_not_answer(project: Project, served: RecallSocket) -> None:
    assert ask(project, str(project.data / "other.db")) is None


@pytest.mark.parametrize("sent", [b"garbage\n", b"{}\n", b'{"v": 9}\n', b"[]\n", b""])
def test_anything_but_a_question_gets_no_answer_and_does_no_harm(
    project: Project, served: RecallSocket, sent: bytes
) -> None:
    (path,) = sockets(project)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(5)
        connection.connect(str(path))
        connection.sendall(sent)
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert ask(project)


def test_a_closed_socket_is_gone(project: Project, served: RecallSocket) -> None:
    served.close()
    assert sockets(project) == []
    assert ask(project) is None


def test_the_socket_of_a_killed_server_is_removed(project: Project) -> None:
    with project.memory() as memory:
        memory.add(FACT)
        recall_socket = RecallSocket(lambda: memory)
        recall_socket.open()
        (path,) = sockets(project)
        kept = path.with_name("kept")
        path.rename(kept)
        recall_socket.close()
        kept.rename(path)
    assert FACT in project.prompt(QUESTION)  # by keyword
    assert sockets(project) == []


def test_a_hook_does_not_remove_the_socket_of_a_server_that_is_just_opening_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    with project.memory() as memory:
        memory.add(FACT)
        recall_socket = RecallSocket(lambda: memory)
        chmod, asked = Path.chmod, []

        def chmod_while_a_hook_asks(path: Path, mode: int) -> None:
            if path.is_socket():  # bound, and does not listen yet
                asked.append(ask(project))
            chmod(path, mode)

        monkeypatch.setattr(Path, "chmod", chmod_while_a_hook_asks)
        recall_socket.open()
        assert asked == [None]
        assert ask(project) is not None
        recall_socket.close()
    assert list((project.data / "run").iterdir()) == []


def test_a_server_that_does_not_answer_in_time_is_not_waited_for(project: Project) -> None:
    with project.memory() as memory:
        memory.add(FACT)
        recall_socket = RecallSocket(lambda: memory)
        recall_socket.open()
    (path,) = sockets(project)
    path.unlink()
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(path))
        silent.listen(1)
        assert FACT in project.prompt(QUESTION)
    recall_socket.close()


def test_a_path_that_is_too_long_for_a_socket_is_not_an_error(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 40)
    memory = SimpleNamespace(
        store=SimpleNamespace(read_only=False), folder=folder, settings=SimpleNamespace(database=str(folder / "a.db"))
    )
    recall_socket = RecallSocket(lambda: cast("Memory", memory))
    recall_socket.open()
    assert not (folder / "run").exists()
    recall_socket.close()


def test_the_protocol_is_one_line_of_json_each_way(project: Project, served: RecallSocket) -> None:
    (path,) = sockets(project)
    request = {"v": 1, "db": project.options["db"], "q": QUESTION, "shown": [], "session": "s", "agent": "main"}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(str(path))
        connection.sendall(json.dumps(request).encode() + b"\n")
        answer = json.loads(connection.makefile().readline())
    assert [set(line) for line in answer["lines"]] == [{"id", "text"}]


@pytest.mark.server
@pytest.mark.model
@pytest.mark.slow
def test_a_running_server_lends_its_model_to_hooks(project: Project) -> None:
    del project.options["embedding.provider"]
    with project.memory() as memory:
        memory.add("Maria is allergic to peanuts and carries an injector.")
        memory.add("The garage door is opened with the grey remote control.")
    asked = "which food allergies does Maria suffer from?"
    assert project.prompt(asked) == ""  # by keyword
    command = [sys.executable, "-c", "from mindex.cli.main import main; main()", "--db", project.options["db"], "serve"]
    with subprocess.Popen(list(map(str, command)), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None and server.stdout is not None
        client = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
        request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
        server.stdin.write(json.dumps(request).encode() + b"\n")
        server.stdin.flush()
        server.stdout.readline()
        said, deadline = "", time.monotonic() + 60
        while not said and time.monotonic() < deadline:  # the first one makes the server load its model
            said = project.prompt(asked)
        (path,) = sockets(project)
        server.stdin.close()
        server.wait(30)
    assert "Maria is allergic to peanuts" in said
    assert "garage" not in said
    assert not path.exists()
