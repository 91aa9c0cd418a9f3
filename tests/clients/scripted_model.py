"""A language model on loopback that follows a script: it calls the tool `search` of mindex once, then it is done.

It speaks the four protocols that agents use and keeps every request, so that a test can read what a model would have
read.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DONE = "The script ends here."

Event = tuple[str, Mapping[str, Any]]


class ScriptedModel:
    """Serves until the end of its `with` block."""

    def __init__(self, question: str) -> None:
        self.arguments = {"query": question}
        self.requests: list[dict[str, Any]] = []
        model = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
                model.requests.append(body)
                events = list(model.answer(self.path.partition("?")[0], body))
                streams = body.get("stream", False) or "stream" in self.path
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream" if streams else "application/json")
                self.send_header("Connection", "close")
                self.end_headers()
                if not streams:
                    self.wfile.write(json.dumps(events[-1][1]).encode())
                    return
                for name, data in events:
                    head = f"event: {name}\n" if name else ""
                    self.wfile.write(f"{head}data: {json.dumps(data)}\n\n".encode())

            def do_GET(self) -> None:
                self.send_response(404)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> ScriptedModel:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str, body: dict[str, Any]) -> Iterator[Event]:
        if "count_tokens" in path:
            yield "", {"input_tokens": 1}
        elif path.endswith("/messages"):
            yield from self._anthropic(body)
        elif path.endswith("/responses"):
            yield from self._responses(body)
        elif path.endswith("/chat/completions"):
            yield from self._chat(body)
        else:
            yield from self._gemini(body)

    def _anthropic(self, body: dict[str, Any]) -> Iterator[Event]:
        called = '"tool_result"' in json.dumps(body["messages"])
        name = None if called else _tool(tool["name"] for tool in body.get("tools", ()))
        usage = {"input_tokens": 1, "output_tokens": 1}
        reason = "tool_use" if name else "end_turn"
        message = {"id": "m1", "type": "message", "role": "assistant", "model": "scripted", "usage": usage}
        if name:
            start = {"type": "tool_use", "id": "toolu_1", "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(self.arguments)}
            whole = {**start, "input": self.arguments}
        else:
            start, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": DONE}
            whole = {"type": "text", "text": DONE}
        if not body.get("stream"):
            yield "", {**message, "content": [whole], "stop_reason": reason, "stop_sequence": None}
            return
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage},
            {"type": "message_stop"},
        ]
        yield from ((event["type"], event) for event in events)

    def _responses(self, body: dict[str, Any]) -> Iterator[Event]:
        called = any(item.get("type") == "function_call_output" for item in body["input"])
        item: dict[str, Any] = {"type": "message", "role": "assistant", "id": "m1", "content": []}
        item["content"].append({"type": "output_text", "text": DONE, "annotations": []})
        for tool in () if called else body.get("tools", ()):
            inner = tool.get("tools", ())  # a server's tools may be in a namespace
            if name := _tool(
                [tool.get("name", "")] if not inner else [f"{tool['name']}.{one['name']}" for one in inner]
            ):
                item = {
                    "type": "function_call",
                    "id": "f1",
                    "call_id": "call_1",
                    "arguments": json.dumps(self.arguments),
                }
                item |= {"name": name} if not inner else dict(zip(("namespace", "name"), name.split("."), strict=True))
                break
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        yield "response.created", {"type": "response.created", "response": {"id": "r1"}}
        yield "response.output_item.done", {"type": "response.output_item.done", "output_index": 0, "item": item}
        yield "response.completed", {"type": "response.completed", "response": {"id": "r1", "usage": usage}}

    def _chat(self, body: dict[str, Any]) -> Iterator[Event]:
        called = any(message["role"] == "tool" for message in body["messages"])
        name = None if called else _tool(tool["function"]["name"] for tool in body.get("tools", ()))
        delta: dict[str, Any] = {"role": "assistant", "content": DONE}
        if name:
            function = {"name": name, "arguments": json.dumps(self.arguments)}
            delta = {
                "role": "assistant",
                "tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": function}],
            }
        head = {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
        reason = "tool_calls" if name else "stop"
        yield "", {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        yield "", {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}

    def _gemini(self, body: dict[str, Any]) -> Iterator[Event]:
        called = '"functionResponse"' in json.dumps(body["contents"])
        declared = [one["name"] for tool in body.get("tools", ()) for one in tool.get("functionDeclarations", ())]
        name = None if called else _tool(declared)
        part: dict[str, Any] = {"functionCall": {"name": name, "args": self.arguments}} if name else {"text": DONE}
        content = {"role": "model", "parts": [part]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        yield "", {"candidates": [{"content": content, "finishReason": "STOP", "index": 0}], "usageMetadata": usage}


def _tool(names: Iterator[str] | list[str]) -> str | None:
    """The name by which an agent offers `search` of mindex."""
    return next((name for name in names if "mindex" in name and name.endswith("search")), None)
