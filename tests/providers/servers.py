"""Real servers on this machine with the documented interfaces of model providers; a test can have them misbehave."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import math
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

Trick = Callable[["Handler"], None]
Reply = tuple[int, object]

ACCOUNT = "0123456789abcdef"


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """A request as it arrived."""

    path: str
    query: str
    headers: Mapping[str, str]
    body: Any


@dataclass
class ModelServer:
    """Ollama, OpenAI, Azure, Cloudflare, a reranker and chats, each at its own paths. Use it in a `with`.

    `tricks` are played once each, in order; `always`, when set, for every request.
    """

    dimensions: int = 48
    salt: str = ""  # another one is another model, even with the same name
    shortens: bool = True  # whether it heeds a request for fewer dimensions
    models: tuple[str, ...] = ()  # none: every name is a model
    key: str = ""
    context: int = 100_000  # characters that a text may have
    poison: str = ""  # a word in a text that the server answers 400 for
    says: str = "ready"
    finish: str = "stop"
    refuses: tuple[str, ...] = ()  # parameters of a chat that are answered with 400
    tricks: deque[Trick] = field(default_factory=deque)
    always: Trick | None = None
    asked: list[ReceivedRequest] = field(default_factory=list)
    port: int = 0
    _http: _Listening | None = None
    released: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> ModelServer:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, or begin again at the same address."""
        handler = type("Handler", (Handler,), {"served": self})
        self.released.clear()
        self._http = _Listening(("127.0.0.1", self.port), handler)
        self.port = self._http.server_address[1]
        threading.Thread(target=self._http.serve_forever, args=(0.01,), name="model-server", daemon=True).start()

    def stop(self) -> None:
        self.released.set()
        if self._http is not None:
            self._http.shutdown()
            self._http.server_close()
            self._http.hang_up()
            self._http = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def bodies(self) -> list[Any]:
        return [one.body for one in self.asked]

    def vector(self, text: str) -> list[float]:
        """Words as directions: texts that share words lie close. Not of length 1, as with most servers."""
        values = [0.01] * self.dimensions
        for word in re.findall(r"\w{3,}", text.lower()):
            digest = hashlib.sha256((self.salt + word[:6]).encode()).digest()
            values[int.from_bytes(digest[:4], "big") % self.dimensions] += 1 if digest[4] % 2 else -1
        return [value * 3 for value in values]

    def shortened(self, text: str, body: Mapping[str, Any]) -> list[float]:
        vector = self.vector(text)
        return vector[: body["dimensions"]] if self.shortens and "dimensions" in body else vector

    # ── formats ───────────────────────────────────────────────────────────────────────────────────────────────

    def answer(self, request: ReceivedRequest) -> Reply:
        path = request.path
        if path == "/api/embed":
            return self._ollama(request.body)
        if path == "/api/chat":
            return self._ollama_chat(request.body)
        if re.fullmatch(r"/openai/deployments/[^/]+/(embeddings|chat/completions)", path):
            versioned = "api-version=" in request.query
            return self._azure(request, path.split("/")[3]) if versioned else (404, _no_resource())
        if path in ("/openai/v1/embeddings", "/openai/v1/chat/completions"):
            return self._azure(request, request.body["model"])
        if path in ("/v1/embeddings", "/v1/chat/completions", "/v1/rerank"):
            return self._openai(request)
        workers = f"/client/v4/accounts/{ACCOUNT}/ai/run/"
        if path.startswith((workers, "/v1/account/gateway/workers-ai/")):
            return self._cloudflare(request, path[path.index("@cf") :])
        return 404, "404 page not found"

    def _lacks(self, model: str) -> bool:
        return bool(self.models) and model.removesuffix(":latest") not in self.models

    def _ollama(self, body: Mapping[str, Any]) -> Reply:
        if self._lacks(body["model"]):
            return 404, {"error": f'model "{body["model"]}" not found, try pulling it first'}
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if any(len(text) > self.context for text in texts) and body.get("truncate") is False:
            return 400, {"error": "the input length exceeds the context length"}
        if self.poison and any(self.poison in text for text in texts):
            return 400, {"error": "invalid input"}
        vectors = [self.shortened(text, body) for text in texts if text]  # nothing for nothing, as the real one
        return 200, {"model": body["model"], "embeddings": vectors, "total_duration": 14143917, "prompt_eval_count": 8}

    def _ollama_chat(self, body: Mapping[str, Any]) -> Reply:
        if self._lacks(body["model"]):
            return 404, {"error": f"model '{body['model']}' not found"}
        message = {"role": "assistant", "content": self.says}
        return 200, {"model": body["model"], "message": message, "done": True, "done_reason": self.finish}

    def _openai(self, request: ReceivedRequest) -> Reply:
        body = request.body
        sent = request.headers.get("authorization", "").removeprefix("Bearer ")
        if self.key and sent != self.key:
            # The real one shows the key's ends; a careless one all of it.
            return 401, {"error": {"message": f"Incorrect API key provided: {sent}", "code": "invalid_api_key"}}
        if self._lacks(body.get("model", "")):
            message = f"The model `{body.get('model')}` does not exist or you do not have access to it."
            return 404, {"error": {"message": message, "type": "invalid_request_error", "code": "model_not_found"}}
        if request.path == "/v1/rerank":
            return self._rerank(body)
        return self._openai_shaped(request.path, body)

    def _openai_shaped(self, path: str, body: Mapping[str, Any]) -> Reply:
        if path.endswith("/chat/completions"):
            return self._chat(body)
        texts = [body["input"]] if isinstance(body["input"], str) else body["input"]
        if any(not text for text in texts):
            return 400, {"error": {"message": "'$.input' is invalid.", "type": "invalid_request_error"}}
        if any(len(text) > self.context for text in texts):
            message = f"This model's maximum context length is {self.context // 4} tokens, however you requested more."
            return 400, {"error": {"message": message, "type": "invalid_request_error"}}
        if self.poison and any(self.poison in text for text in texts):
            return 400, {"error": {"message": "The content was filtered.", "code": "content_filter"}}
        rows = [
            {"object": "embedding", "index": index, "embedding": self.shortened(text, body)}
            for index, text in enumerate(texts)
        ]
        # In no order that could be relied on.
        return 200, {"object": "list", "data": rows[::-1], "model": body.get("model"), "usage": {"total_tokens": 8}}

    def _chat(self, body: Mapping[str, Any]) -> Reply:
        for parameter in self.refuses:
            if parameter in body:
                return 400, {"error": {"message": f"Unsupported parameter: '{parameter}' is not supported."}}
        message = {"role": "assistant", "content": self.says}
        choice = {"index": 0, "message": message, "finish_reason": self.finish}
        return 200, {"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]}

    def _rerank(self, body: Mapping[str, Any]) -> Reply:
        if any(len(text) > self.context for text in body["documents"]):
            return 500, {"error": {"code": 500, "message": "input is too large to process. increase the batch size"}}
        scored = [
            {"index": index, "relevance_score": self.relevance(body["query"], text)}
            for index, text in enumerate(body["documents"])
        ]
        scored.sort(key=lambda row: -row["relevance_score"])
        return 200, {"model": body.get("model", ""), "object": "list", "results": scored[: body["top_n"]]}

    def relevance(self, query: str, text: str) -> float:
        one, other = self.vector(query), self.vector(text)
        return sum(a * b for a, b in zip(one, other, strict=True)) / (math.hypot(*one) * math.hypot(*other))

    def _azure(self, request: ReceivedRequest, deployment: str) -> Reply:
        if self.key and request.headers.get("api-key") != self.key:
            message = "Access denied due to invalid subscription key or wrong API endpoint."
            return 401, {"error": {"code": "401", "message": message}}
        if self._lacks(deployment):
            message = "The API deployment for this resource does not exist."
            return 404, {"error": {"code": "DeploymentNotFound", "message": message}}
        return self._openai_shaped(request.path, request.body)

    def _cloudflare(self, request: ReceivedRequest, model: str) -> Reply:
        def envelope(status: int, result: object, *errors: tuple[int, str]) -> Reply:
            rows = [{"code": code, "message": message} for code, message in errors]
            return status, {"result": result, "success": not rows, "errors": rows, "messages": []}

        body = request.body
        if self.key and request.headers.get("authorization") != f"Bearer {self.key}":
            return envelope(401, None, (10000, "Authentication error"))
        if self._lacks(model):
            return envelope(400, None, (5007, f"No such model {model} or task"))
        if "contexts" in body:
            texts = [context["text"] for context in body["contexts"]]
            scored = [{"id": index, "score": self.relevance(body["query"], text)} for index, text in enumerate(texts)]
            scored.sort(key=lambda row: -row["score"])
            return envelope(200, {"response": scored[: body["top_k"]]})
        if any(len(text) > self.context for text in body["text"]):
            return envelope(400, None, (3030, "Input is too long: maximum 512 tokens"))
        if self.poison and any(self.poison in text for text in body["text"]):
            return envelope(400, None, (5006, "must match exactly one schema"))
        data = [self.vector(text) for text in body["text"]]
        shape = [len(data), self.dimensions]
        return envelope(200, {"shape": shape, "data": data, "pooling": body.get("pooling", "mean")})


def _no_resource() -> dict[str, object]:
    return {"error": {"code": "404", "message": "Resource not found"}}


class _Listening(ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 64

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def hang_up(self) -> None:
        """Close every connection, as a server does that goes down."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def handle_error(self, request: object, client_address: object) -> None:
        """Print nothing: clients close connections to servers that misbehave."""


class Handler(BaseHTTPRequestHandler):
    served: ClassVar[ModelServer]
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.asked = ReceivedRequest(parts.path, parts.query, headers, json.loads(body) if body else None)
        served = self.served
        served.asked.append(self.asked)
        trick = served.tricks.popleft() if served.tricks else served.always
        if trick is not None:
            trick(self)
        else:
            self.say(*served.answer(self.asked))

    def say(self, status: int, body: object, **headers: str) -> None:
        data = (
            body if isinstance(body, bytes) else body.encode() if isinstance(body, str) else json.dumps(body).encode()
        )
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str | bytes) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass


# ── tricks ────────────────────────────────────────────────────────────────────────────────────────────────────


def status(code: int, body: object = "", **headers: str) -> Trick:
    """Answer with a status: `status(429, retry_after="1")`."""
    return lambda handler: handler.say(code, body, **headers)


def hang(handler: Handler) -> None:
    handler.served.released.wait(30)
    handler.close_connection = True


def trickle(handler: Handler) -> None:
    """A byte of the body every now and then, for ever."""
    handler.send_response(200)
    handler.send_header("Content-Length", "1000000")
    handler.end_headers()
    _drip(handler)


def trickle_headers(handler: Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Long: ")
    _drip(handler)


def _drip(handler: Handler) -> None:
    handler.close_connection = True
    while not handler.served.released.wait(0.05):
        handler.wfile.write(b" ")
        handler.wfile.flush()


def half(handler: Handler) -> None:
    """Less than was announced, and then the connection is gone."""
    handler.send_response(200)
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"embeddings": [[0.1, 0.2')
    handler.close_connection = True


def reset(handler: Handler) -> None:
    """The connection is closed before anything is sent."""
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\x00\x00\x00\x00\x00\x00\x00")
    handler.close_connection = True


def html(handler: Handler) -> None:
    handler.say(200, "<!doctype html><html><body>Please log in to the network</body></html>")


def garbage(handler: Handler) -> None:
    handler.say(200, b"\x00\xff\xfe{]not json")


def huge(megabytes: int = 10) -> Trick:
    """A valid answer, endless blanks and all."""
    return lambda handler: handler.say(200, b'{"embeddings": [' + b" " * (megabytes * 1024 * 1024) + b"]}")


def endless(handler: Handler) -> None:
    """An answer without a content-length."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.close_connection = True
    part = b" " * 65_536
    for _ in range(10_000):
        handler.wfile.write(b"10000\r\n" + part + b"\r\n")


def bomb(handler: Handler) -> None:
    """A short answer that unpacks to 200 MB."""
    handler.say(200, gzip.compress(b" " * (200 * 1024 * 1024), 1), content_encoding="gzip")


def no_http(handler: Handler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.6\r\n")
    handler.close_connection = True


def redirect(to: str, code: int = 307) -> Trick:
    return lambda handler: handler.say(code, "", location=to)


def late(seconds: float) -> Trick:
    """The right answer, but not at once."""

    def answer(handler: Handler) -> None:
        time.sleep(seconds)
        handler.say(*handler.served.answer(handler.asked))

    return answer


def changed(change: Callable[[Any], object]) -> Trick:
    """The right answer with something done to it; NaN and infinity go out as Python writes them."""
    return lambda handler: handler.say(200, json.dumps(change(handler.served.answer(handler.asked)[1])).encode())


def vectors(change: Callable[[list[list[Any]]], Sequence[object]]) -> Trick:
    """The right answer of Ollama with something done to its vectors."""
    return changed(lambda body: {**body, "embeddings": change(body["embeddings"])})
