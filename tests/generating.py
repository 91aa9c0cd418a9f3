"""A language model on a real socket: speaks OpenAI's chat completions, and says what a test has it say."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from mindex.memory import Memory
from mindex.providers.generate.remote import READY

MODEL = "scripted"


@dataclass(frozen=True)
class Fails:
    """An error response: a status and its body."""

    status: int
    body: str = '{"error": {"message": "the server is on fire"}}'


class Hangs:
    """Never answers; lets go when the server is closed."""


# What the model answers to a system and a user message.
Answers = Callable[[str, str], "str | Fails | Hangs"]


@dataclass
class ChatServer:
    """A running server. `answers` may be changed while it runs; `asked` holds every request in order of arrival.

    Whether it is ready is another question, and has its own answer.
    """

    answers: Answers
    ready: str | Fails | Hangs = "ready"
    url: str = ""
    asked: list[dict[str, Any]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def options(self) -> dict[str, object]:
        """The settings of a memory that asks this model."""
        return {
            "generation.provider": "openai",
            "generation.url": self.url,
            "generation.model": MODEL,
            "generation.timeout": 20.0,
        }

    def prompts(self) -> list[str]:
        return [request["messages"][-1]["content"] for request in self.asked]


def always(answer: str | Fails | Hangs) -> Answers:
    return lambda *_: answer


@contextmanager
def chat_server(answers: Answers | str) -> Iterator[ChatServer]:
    """A model that answers every prompt so, or as the function says."""
    state = ChatServer(always(answers) if isinstance(answers, str) else answers)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(200, json.dumps({"object": "list", "data": [{"id": MODEL, "object": "model"}]}))

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told = {message["role"]: message["content"] for message in request["messages"]}
            if told["user"] == READY.user:
                answer = state.ready
            else:
                state.asked.append(request)
                answer = state.answers(told.get("system", ""), told["user"])
            if isinstance(answer, Hangs):
                state.closing.wait(60)
                self.close_connection = True
            elif isinstance(answer, Fails):
                self._send(answer.status, answer.body)
            else:
                choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": answer}}
                self._send(200, json.dumps({"object": "chat.completion", "model": MODEL, "choices": [choice]}))

        def _send(self, status: int, body: str) -> None:
            data = body.encode("utf-8", "surrogatepass")
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)
            except OSError:  # the client has gone: 10 MB are more than it wanted
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: object, client_address: object) -> None:
            pass

    server = Server(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.closing.set()
        server.shutdown()
        server.server_close()
        thread.join()


Open = Callable[..., Memory]


@contextmanager
def memories(folder: Path) -> Iterator[Open]:
    """Opens memories that ask a given model, or none, and closes them all."""
    opened: list[Memory] = []

    def open_one(server: ChatServer | None, name: str = "memory.db", **options: object) -> Memory:
        asked = server.options if server is not None else {}
        given = {"embedding.provider": "none", **asked, **{key.replace("__", "."): v for key, v in options.items()}}
        opened.append(Memory(folder / name, options=given))
        return opened[-1]

    yield open_one
    for memory in opened:
        memory.close()
