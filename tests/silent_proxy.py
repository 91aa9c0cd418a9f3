"""A TCP proxy before PostgreSQL's socket that goes silent, as a failover behind a load balancer does."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from urllib.parse import quote


class SilentProxy:
    """Forwards connections. After `go_silent` those that are open are read, so that their bytes are acknowledged, and
    nothing is forwarded or answered on them; new ones work.
    """

    def __init__(self, folder: str) -> None:
        self._target = f"{folder}/.s.PGSQL.5432"
        self._generation = 0
        self._sockets: list[socket.socket] = []

    def __enter__(self) -> SilentProxy:
        self._listening = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()
        for one in self._sockets:
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def url(self, schema: str) -> str:
        port = self._listening.getsockname()[1]
        return f"postgresql://postgres@127.0.0.1:{port}/postgres?schema={quote(schema)}"

    def go_silent(self) -> None:
        self._generation += 1

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                self._sockets += [client, server]
                for source, target in ((client, server), (server, client)):
                    threading.Thread(target=self._pump, args=(source, target, self._generation), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, generation: int) -> None:
        with suppress(OSError):
            while received := source.recv(65_536):
                if generation == self._generation:
                    target.sendall(received)
            if generation == self._generation:
                target.shutdown(socket.SHUT_WR)
