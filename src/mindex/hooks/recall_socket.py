"""A running server answers hooks on a Unix socket that only its user can reach: a hook loads no model.

One JSON object each way and a connection. The question goes to the server rather than a vector to the hook: comparing
vectors takes numpy and the index, which the server has in memory. A server answers only for its own database, and so
from the space that is active there. Each server has its own socket, `run/PID-HASH.sock` in the data folder; the
socket of a server that was killed is removed by the next hook that finds it dead.
"""

from __future__ import annotations

import json
import os
import socket
import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any
from zlib import crc32

from mindex.hooks.recall import recall
from mindex.memory import Memory
from mindex.present.hooks import RecalledLine
from mindex.private_files import make_private_folder

AVAILABLE = hasattr(socket, "AF_UNIX")
_VERSION = 1
_MAX_BYTES = 256_000
_LONGEST_PATH = 100  # bytes; the systems' limits are 104 and 108
_WAIT_SECONDS = 0.6  # for an answer; then recall is by keyword
_READ_SECONDS = 2.0


def ask_server(
    folder: Path, database: str, question: str, *, shown: Collection[str], session: str, agent: str
) -> tuple[RecalledLine, ...] | None:
    """Return what a running server of this database recalls; None when none answers in time."""
    if not AVAILABLE:
        return None
    request = {"v": _VERSION, "db": database, "q": question, "shown": list(shown), "session": session, "agent": agent}
    data = json.dumps(request).encode() + b"\n"
    deadline = time.monotonic() + _WAIT_SECONDS
    for path in sorted((folder / "run").glob(f"*-{_hash(database)}.sock"), reverse=True):
        if (answer := _exchange(path, data, deadline)) is not None:
            return answer
    return None


def _exchange(path: Path, data: bytes, deadline: float) -> tuple[RecalledLine, ...] | None:
    try:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(max(0.001, deadline - time.monotonic()))
            connection.connect(str(path))
            connection.sendall(data)
            answer = json.loads(_read_line(connection))
            return tuple(RecalledLine(str(one["id"]), str(one["text"])) for one in answer["lines"])
    except ConnectionRefusedError:  # its server was killed
        with suppress(OSError):
            path.unlink()
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return None


class RecallSocket:
    """Answers hooks in a thread of a server until it is closed."""

    def __init__(self, memory: Callable[[], Memory]) -> None:
        self._memory = memory
        self._path: Path | None = None
        self._socket: socket.socket | None = None
        self._changing = threading.Lock()
        self._closed = False

    def open(self) -> None:
        """Begin to answer. Does nothing where the system has no such sockets, or the folder's path is too long."""
        memory = self._memory()
        if not AVAILABLE or memory.store.read_only:
            return
        folder = memory.folder / "run"
        path = folder / f"{os.getpid()}-{_hash(memory.settings.database)}.sock"
        if len(os.fsencode(path)) > _LONGEST_PATH:
            return
        make_private_folder(folder)
        folder.chmod(0o700)
        with self._changing:
            if self._closed:
                return
            # It gets its name once it listens: a hook would take it for that of a killed server, and remove it.
            unready = path.with_suffix(".new")
            unready.unlink(missing_ok=True)  # of an earlier process with this number
            listening = socket.socket(socket.AF_UNIX)
            listening.bind(str(unready))  # no other user gets into the folder
            unready.chmod(0o600)
            listening.listen(8)
            unready.replace(path)
            self._path, self._socket = path, listening
        threading.Thread(target=self._serve, args=(listening,), name="mindex-hooks", daemon=True).start()

    def close(self) -> None:
        with self._changing:
            self._closed = True
            if self._socket is not None:
                with suppress(OSError):  # wakes the thread that waits for a connection
                    self._socket.shutdown(socket.SHUT_RDWR)
                self._socket.close()
            if self._path is not None:
                self._path.unlink(missing_ok=True)
            self._path = self._socket = None

    def _serve(self, listening: socket.socket) -> None:
        while True:
            try:
                connection, _ = listening.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._answer, args=(connection,), name="mindex-hook", daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        """Answer one question. Anything else gets no answer: the hook then goes by keyword."""
        with connection, suppress(Exception):
            connection.settimeout(_READ_SECONDS)
            asked: dict[str, Any] = json.loads(_read_line(connection))
            memory = self._memory()
            if asked["v"] != _VERSION or asked["db"] != memory.settings.database:
                return
            lines = recall(
                memory,
                str(asked["q"]),
                shown=frozenset(asked["shown"]),
                session=str(asked["session"]),
                agent=str(asked["agent"]),
                by_keyword=False,
            )
            answer = {"lines": [{"id": one.id, "text": one.text} for one in lines]}
            connection.sendall(json.dumps(answer).encode() + b"\n")


def _read_line(connection: socket.socket) -> bytes:
    """Read one line, or the beginning of a longer one, which is not JSON. Raises TimeoutError."""
    with connection.makefile("rb") as stream:
        return stream.readline(_MAX_BYTES)


def _hash(database: str) -> str:
    return f"{crc32(database.encode('utf-8', 'replace')):08x}"
