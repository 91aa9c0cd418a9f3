"""Everything that takes a text from outside, found in the tools' schemas, click's parameters and the table of the API.

`targets` yields them for a memory below a folder. A target's `send` gets one hostile text where the interface wants a
text, and plausible values elsewhere; it raises Broken unless there is an answer or a clear error.
"""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import click
import httpx2
from anyio.from_thread import BlockingPortal, start_blocking_portal
from mcp.shared.exceptions import MCPError

from mcp import Client
from mindex.cli.main import cli, main
from mindex.errors import MindexError
from mindex.mcp.dialect import dialect_named, tool_names
from mindex.mcp.http import Address, app
from mindex.mcp.memory_host import MemoryHost
from mindex.mcp.server import MindexServer
from mindex.mcp.server_options import ServerOptions
from mindex.memory import Memory
from mindex.web.api import JSON_TYPES, OPERATIONS, PREFIX

KEYWORD: dict[str, object] = {"embedding.provider": "none"}
# Commands that are not targets, each with its reason.
LEFT_OUT: Mapping[str, str] = {
    "serve": "runs until it is stopped; its tools are targets themselves",
    "watch": "runs until it is stopped; what it does is that of index",
    "web": "runs until it is stopped; its API is a target itself",
    "models": "would download",
    "reembed": "would ask a server at any address",
    "admin": "needs a server of PostgreSQL",
    "backup every": "runs until it is stopped",
}
# Where a text is a path that is read or written: below the current folder.
_FILE_COMMANDS = {"backup", "copy", "doctor", "eval", "export", "import", "index", "restore-backup", "setup", "sync"}
_LONGEST_QUERY = 60_000  # of an address that the client can send; the server takes 64 kB of headers
# Where text leaves for people, this is how a bug looks.
_BUGS = ("unexpected ", "Traceback", "please report", "the server's log on stderr says why", "Internal error")


class Broken(AssertionError):
    """A text caused neither an answer nor a clear error."""


@dataclass(frozen=True)
class Target:
    """One text argument of one interface."""

    name: str
    send: Callable[[str], object]


@contextmanager
def all_targets(root: Path) -> Iterator[list[Target]]:
    """The targets, over a new memory. Also changes the current and the home folder: files may be written."""
    deep = root.joinpath(*"abcdefgh")
    deep.mkdir(parents=True)
    before = Path.cwd()
    home = {name: str(root / "home") for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME")}
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, {**home, "MINDEX_EMBEDDING_PROVIDER": "none"}))
        stack.callback(os.chdir, before)
        os.chdir(deep)
        portal = stack.enter_context(start_blocking_portal())
        found = [target for name in tool_names() for target in _tool_targets(name, deep, portal, stack)]
        found += _command_targets(deep)
        found += _api_targets(deep, portal, stack)
        found += _file_targets(deep, stack)
        yield found


def _fill(memory: Memory) -> None:
    memory.add("The crane of the harbour lifts 40 crates.", tags=["harbour"])
    memory.conversations.add("Who lifts the crates?", "The crane.", session_id="s1")
    memory.contacts.add(name="Anna Berg", email="anna@example.org")
    memory.projects.add(name="Atlas")
    memory.skills.add(name="Report", trigger_type="manual", instructions="Write it.")
    memory.profile.set({"user.name": "Bea"})


# ── tools ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _tool_targets(dialect_name: str, root: Path, portal: BlockingPortal, stack: ExitStack) -> Iterator[Target]:
    dialect = dialect_named(dialect_name)
    folder = root / dialect_name
    folder.mkdir()
    options = ServerOptions(
        db=str(folder / "memory.db"), root=folder, settings={**dialect.settings_for(None), **KEYWORD},
        guidance=dialect.guidance,
    )  # fmt: skip
    host = MemoryHost(options)
    _fill(host.whole_memory)
    stack.callback(host.close)
    client = stack.enter_context(portal.wrap_async_context_manager(Client(MindexServer(host, dialect))))

    def send(tool: str, arguments: dict[str, object]) -> None:
        try:
            result = portal.call(client.call_tool, tool, arguments)
        except MCPError as error:
            _check_words(str(error))
        else:
            sent = result.model_dump_json()  # as it is sent
            _check_words(sent if result.is_error else "")

    for tool in portal.call(client.list_tools).tools:
        properties: dict[str, Any] = tool.input_schema.get("properties", {})
        required = tool.input_schema.get("required", ())
        definitions = tool.input_schema.get("$defs", {})
        for name, schema in properties.items():
            others = {other: _plausible(properties[other], other) for other in required if other != name}
            for place, wrap in _text_places(schema, definitions):
                yield Target(
                    f"{dialect_name}:{tool.name} {name}{place}",
                    lambda text, tool=tool.name, name=name, wrap=wrap, others=others: send(  # type: ignore[misc]
                        tool, {**others, name: wrap(text)}
                    ),
                )


def _text_places(schema: Any, definitions: Any) -> Iterator[tuple[str, Callable[[str], object]]]:
    """Where a value of this schema can hold a text, and how a text is put there."""
    if not isinstance(schema, dict):
        return
    if "$ref" in schema:
        schema = definitions[schema["$ref"].rpartition("/")[2]]
    for option in schema.get("anyOf", ()):
        yield from _text_places(option, definitions)
    kind = schema.get("type")
    if kind == "string":
        yield "", lambda text: text
    elif kind == "array":
        for place, wrap in _text_places(schema.get("items", {"type": "string"}), definitions):
            yield f"[]{place}", lambda text, wrap=wrap: [wrap(text)]  # type: ignore[misc]
    elif kind == "object":
        # A client of the SDK cannot send half a character in a key; tests/mcp sends such messages over stdio.
        yield "{key}", lambda text: {text.encode("utf-8", "replace").decode(): "a"}
        yield "{value}", lambda text: {"a": text}
        inner = schema.get("properties", {})
        for name, part in inner.items():
            others = {one: _plausible(inner[one], one) for one in schema.get("required", ()) if one != name}
            for place, wrap in _text_places(part, definitions):
                yield f".{name}{place}", lambda text, wrap=wrap, name=name, others=others: {  # type: ignore[misc]
                    **others, name: wrap(text)
                }  # fmt: skip


def _plausible(schema: dict[str, Any], name: str) -> object:
    """A value that a well-meaning client would send."""
    schema = next((option for option in schema.get("anyOf", ()) if option.get("type") != "null"), schema)
    if "enum" in schema:
        return schema["enum"][0]
    values: dict[str, object] = {"integer": 1, "number": 1.0, "boolean": True, "array": ["#1"], "object": {"a": "b"}}
    return values.get(str(schema.get("type")), "#1" if "id" in name else "crane")


def _check_words(message: str) -> None:
    for bug in _BUGS:
        if bug in message:
            raise Broken(message[:500])


# ── commands ──────────────────────────────────────────────────────────────────────────────────────────────────


def _command_targets(root: Path) -> Iterator[Target]:
    db = root / "cli.db"
    with Memory(db, options=KEYWORD) as memory:
        _fill(memory)
    for words, command in _commands(cli, ()):
        if words[0] in LEFT_OUT:
            continue
        for parameter in command.params:
            if not isinstance(parameter.type, (click.types.StringParamType, click.Path)):
                continue
            if isinstance(parameter, click.Option) and parameter.is_flag:
                continue
            if f"{words[0]} {parameter.name}" in LEFT_OUT:
                continue
            yield Target(
                f"mindex {' '.join(words)} {parameter.human_readable_name}",
                lambda text, words=words, command=command, parameter=parameter: _run(  # type: ignore[misc]
                    ["--db", str(db), *words, *_arguments(command, parameter, _as_argument(text, words[0]))]
                ),
            )
    yield Target("mindex --agent", lambda text: _run(["--db", str(db), "--agent", _as_argument(text, ""), "list"]))
    yield Target("mindex COMMAND", lambda text: _run([_as_argument(text, "")]))


def _commands(command: click.Command, words: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    if not isinstance(command, click.Group):
        yield words, command
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        yield from _commands(inner, (*words, name))


def _arguments(command: click.Command, target: click.Parameter, text: str) -> list[str]:
    """A call that gives the text to one parameter, and to other required ones what is plausible."""
    options, positional = [], []
    for parameter in command.params:
        if parameter is not target and not parameter.required:
            continue
        is_choice = isinstance(parameter.type, click.Choice)
        plain = str(parameter.type.choices[0]) if is_choice else "#1" if "id" in (parameter.name or "") else "1"
        value = text if parameter is target else plain
        if isinstance(parameter, click.Option):
            options.append(f"{max(parameter.opts, key=len)}={value}")
        else:
            positional.append(value)
    return [*options, "--", *positional]


def _as_argument(text: str, command: str) -> str:
    """What the system can pass to a program: no NUL, and of surrogates those that encode bytes."""
    possible = "".join("\udc80" if "\ud800" <= letter <= "\udfff" else letter for letter in text.replace("\0", ""))
    return f"./{possible}" if command in _FILE_COMMANDS else possible


def _run(arguments: list[str]) -> None:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="", write_through=True)
    err = io.StringIO()
    code: object = 0
    with redirect_stdout(out), redirect_stderr(err), patch("sys.stdin", io.TextIOWrapper(io.BytesIO())):
        try:
            main(arguments)
        except SystemExit as left:
            code = left.code
    said = err.getvalue()
    _check_words(said)
    if code not in (0, 1, 2, 130) and not (code == 3 and "sync" in arguments):
        raise Broken(f"exit code {code}: {said[:300]}")
    if code and not said.strip() and not out.buffer.getvalue().strip():  # type: ignore[attr-defined]  # a BytesIO
        raise Broken(f"exit code {code} without a word")


# ── the API ───────────────────────────────────────────────────────────────────────────────────────────────────


def _api_targets(root: Path, portal: BlockingPortal, stack: ExitStack) -> Iterator[Target]:
    folder = root / "api"
    folder.mkdir()
    host = MemoryHost(ServerOptions(db=str(folder / "memory.db"), root=folder, settings=KEYWORD))
    _fill(host.whole_memory)
    stack.callback(host.close)
    server = MindexServer(host, dialect_named("native"))
    served = app(server, Address("127.0.0.1", 8080), tokens=False)
    client = httpx2.AsyncClient(transport=httpx2.ASGITransport(served), base_url="http://127.0.0.1:8080", timeout=600)
    stack.callback(lambda: portal.call(client.aclose))

    def send(method: str, name: str, values: dict[str, object]) -> None:
        path = f"{PREFIX}/{name}"
        if method == "GET":
            sent = {key: _as_argument(str(value), "") for key, value in values.items()}
            encoded = httpx2.QueryParams({k: v.encode("utf-8", "replace").decode() for k, v in sent.items()})
            if len(str(encoded)) > _LONGEST_QUERY:
                return
            answer = portal.call(lambda: client.get(path, params=encoded))
        else:
            headers = {"content-type": "application/json"}
            answer = portal.call(lambda: client.post(path, content=json.dumps(values).encode(), headers=headers))
        if answer.status_code >= 500:
            raise Broken(f"{answer.status_code}: {answer.text[:300]}")
        if answer.status_code >= 400:
            said = answer.json()
            if not (said.get("error", {}).get("message") or said.get("missing")):
                raise Broken(f"{answer.status_code} without a word: {answer.text[:300]}")
            _check_words(said.get("message", ""))

    for operation in OPERATIONS:
        for option in operation.options:
            if option.value not in ("text", "texts"):
                continue
            others: dict[str, object] = {
                other.parameter: _plausible({"type": JSON_TYPES[other.value][0]}, other.parameter)
                for other in operation.options if other.parameter == operation.required and other is not option
            }  # fmt: skip
            several = option.value == "texts" and operation.method == "POST"
            yield Target(
                f"api:{operation.name} {option.parameter}",
                lambda text, operation=operation, option=option, others=others, several=several: send(  # type: ignore[misc]
                    operation.method, operation.name, {**others, option.parameter: [text] if several else text}
                ),
            )


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────


def _file_targets(root: Path, stack: ExitStack) -> Iterator[Target]:
    folder = root / "files"
    (folder / "notes").mkdir(parents=True)
    memory = stack.enter_context(Memory(folder / "memory.db", options=KEYWORD))

    def index(text: str) -> None:
        (folder / "notes" / "note.md").write_bytes(text.encode("utf-8", "surrogatepass"))
        memory.index(folder / "notes")

    def settings(text: str) -> None:
        project = folder / "project"
        project.mkdir(exist_ok=True)
        (project / ".mindex.toml").write_bytes(text.encode("utf-8", "surrogatepass"))
        before = Path.cwd()
        os.chdir(project)
        try:
            _run(["--db", str(folder / "memory.db"), "list"])
        finally:
            os.chdir(before)

    def bring(name: str) -> Callable[[str], None]:
        def run(text: str) -> None:
            file = folder / f"foreign.{name}"
            file.write_bytes(text.encode("utf-8", "surrogatepass"))
            try:
                memory.transfer.import_(file)
            except MindexError as error:
                _check_words(str(error))

        return run

    yield Target("file: a note", index)
    yield Target("file: .mindex.toml", settings)
    for name in ("jsonl", "json", "md"):
        yield Target(f"file: import of .{name}", bring(name))
