"""Every request over stdio is answered, also one that cannot be read, and the server goes on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_types import INVALID_REQUEST, PARSE_ERROR, JSONRPCError, jsonrpc_message_adapter
from pydantic import ValidationError

from mindex.mcp.unreadable_messages import error_reply, request_id
from tests.mcp.handshakes import INITIALIZED, Message, initialize, replies, request


def nested(depth: int) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


def remember(id_: object, **arguments: object) -> Message:
    return request("tools/call", id_, {"name": "remember", "arguments": arguments})


def reply_to(line: str) -> JSONRPCError | None:
    with pytest.raises(ValidationError) as raised:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    return error_reply(raised.value)


HANDSHAKE = initialize()["params"]
UNREADABLE = [
    remember(11, text="half a pair: \ud800"),
    remember(12, text="x", fields={"a": nested(200)}),
    remember(13, text="x", fields={"a": nested(900)}),
    request("\udfff", 14),
    {**request("ping", 15), "jsonrpc": "1.0"},
    {"jsonrpc": "2.0", "id": 16},
    {"jsonrpc": "2.0", "id": 17, "method": "ping", "params": [1]},
]


@pytest.mark.server
@pytest.mark.parametrize("instant", [True, False])
def test_each_is_answered_and_the_server_goes_on(tmp_path: Path, instant: bool) -> None:
    arguments = ["--db", str(tmp_path / "memory.db"), "serve", *([] if instant else ["--no-instant"])]
    messages = [initialize(), INITIALIZED, *UNREADABLE, request("ping", 18), remember(19, text="an umbrella")]
    found = {one["id"]: one for one in map(json.loads, replies(arguments, messages, seconds=60))}
    assert [found[id_]["error"]["code"] for id_ in range(11, 18)] == [PARSE_ERROR] * 4 + [INVALID_REQUEST] * 3
    assert "valid Unicode" in found[11]["error"]["message"]
    assert "recursion limit" in found[12]["error"]["message"]
    assert found[18]["result"] == {}
    assert found[19]["result"]["isError"] is False


@pytest.mark.server
@pytest.mark.parametrize("instant", [True, False])
def test_a_request_whose_id_cannot_be_sent_back_is_answered_without_one(tmp_path: Path, instant: bool) -> None:
    arguments = ["--db", str(tmp_path / "memory.db"), "serve", *([] if instant else ["--no-instant"])]
    ids = [1.5, None, True, [1], {}]
    unknown = {"jsonrpc": "2.0", "method": "notifications/unknown"}
    messages = [initialize(), INITIALIZED, *(request("ping", id_) for id_ in ids), unknown, request("ping", 18)]
    *refused, pong = list(map(json.loads, replies(arguments, messages, seconds=60)))[1:]
    assert [(one["id"], one["error"]["code"]) for one in refused] == [(None, INVALID_REQUEST)] * len(ids)
    assert "id: it must be a text or a whole number" in refused[0]["error"]["message"]
    assert pong == {"jsonrpc": "2.0", "id": 18, "result": {}}


@pytest.mark.server
@pytest.mark.parametrize(
    "first",
    [
        initialize(id_="\ud800"),
        request("initialize", 1, {**HANDSHAKE, "clientInfo": {"name": "\ud800", "version": "1"}}),
        request("initialize", 1, {**HANDSHAKE, "capabilities": {"x": nested(200)}}),
        request("initialize", 1, {**HANDSHAKE, "capabilities": {"x": nested(900)}}),
    ],
)
def test_a_handshake_that_cannot_be_read_is_refused_and_the_next_one_serves(tmp_path: Path, first: Message) -> None:
    arguments = ["--db", str(tmp_path / "memory.db"), "serve"]
    messages = [first, initialize(id_=2), INITIALIZED, request("ping", 3)]
    refused, made, pong = map(json.loads, replies(arguments, messages, seconds=60))
    assert refused["error"]["code"] == PARSE_ERROR
    assert (made["id"], "serverInfo" in made["result"]) == (2, True)
    assert pong == {"jsonrpc": "2.0", "id": 3, "result": {}}


@pytest.mark.parametrize(
    ("line", "id_"),
    [
        ('{"jsonrpc":"2.0","id":7,"method":"x","params":{"a":"\\ud800"}}', 7),
        ('{"method":"x","params":{"id":1,"a":["id",{"id":2}],"b":"\\"id\\":3 \\ud800"},"id" : "seven"}', "seven"),
        ('{"method":"id","params":{"a":"\\ud800"}}', None),
        ('{"id":"\\ud800"}', None),
        ('{"id":' + "1" * 5_000 + "}", None),
        ('{"id":8,"method":"never ends', 8),
        ('[{"id":8}', None),
        ("what?", None),
    ],
)
def test_the_id_of_the_message_itself_is_found(line: str, id_: object) -> None:
    reply = reply_to(line)
    assert reply is not None
    assert (reply.id, reply.error.code) == (id_, PARSE_ERROR)


@pytest.mark.parametrize("line", ['{"jsonrpc":"2.0","id":true,"method":5}', "[]", "5", '"id"'])
def test_what_has_no_id_that_can_be_sent_back_is_answered_without_one(line: str) -> None:
    reply = reply_to(line)
    assert reply is not None
    assert (reply.id, reply.error.code) == (None, INVALID_REQUEST)


@pytest.mark.parametrize(
    "line",
    [
        "\n",
        '{"jsonrpc":"1.0","method":"notifications/initialized"}',
        '{"jsonrpc":"1.0","id":1,"result":{}}',
        '{"jsonrpc":"2.0","id":1,"error":"no"}',
    ],
)
def test_nothing_is_said_to_an_empty_line_a_notification_or_a_response(line: str) -> None:
    assert reply_to(line) is None


@given(st.dictionaries(st.text(), st.recursive(st.integers() | st.text() | st.none(), st.lists)), st.integers())
def test_the_id_is_the_one_that_a_parser_finds(message: dict[str, object], id_: int) -> None:
    assert request_id(json.dumps({**message, "id": id_, "last": message})) == id_
    message.pop("id", None)
    assert request_id(json.dumps({**message, "last": {"id": id_}})) is None
