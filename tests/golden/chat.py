"""A language model on a local socket: it says what a script tells it to say, and records what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Chat:
    """What the model says, and the requests it got since they were last taken."""

    url: str
    says: str = "ready"
    requests: list[dict[str, Any]] = field(default_factory=list)

    @property
    def environment(self) -> dict[str, str]:
        return {
            "MINDEX_GENERATION_PROVIDER": "openai",
            "MINDEX_GENERATION_URL": self.url,
            "MINDEX_GENERATION_MODEL": "scripted",
            "NO_PROXY": "127.0.0.1",
        }

    def taken(self) -> str:
        """The requests as text, in an order that does not depend on which thread was first."""
        requests, self.requests = sorted(self.requests, key=json.dumps), []
        return "".join(map(_shown, requests))


def _shown(request: dict[str, Any]) -> str:
    messages = "".join(f"[{message['role']}]\n{message['content']}\n" for message in request.pop("messages"))
    return f"── asked the model\n{messages}[parameters]\n{json.dumps(request)}\n"


@contextmanager
def chat_server() -> Iterator[Chat]:
    """Serve OpenAI's chat completions on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            chat.requests.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": chat.says}}
            data = json.dumps({"object": "chat.completion", "model": "scripted", "choices": [choice]}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    chat = Chat(f"http://127.0.0.1:{server.server_address[1]}/v1")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield chat
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
