"""Errors and notes over MCP name tools and arguments; what no tool does is for the user to run."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mcp import Client
from mindex.cli.main import cli
from mindex.command_words import in_tool_words
from mindex.mcp.dialect import dialect_named, tool_names
from tests.mcp.conftest import Served, structured, text

SOURCE = Path(__file__).parents[2] / "src"
MODULES = sorted(SOURCE.rglob("*.py"))
NATIVE = dialect_named("native").commands
# Commands that messages name and that no native tool does.
FOR_THE_USER = {
    "admin", "backfill", "backup", "config", "conversation extract", "copy", "doctor", "export", "import",
    "index --remove", "models pull", "optimize", "profile history", "reembed", "restore-backup", "resume", "scan --fix",
    "plugins", "serve", "sync", "token", "web",
}  # fmt: skip
# Modules whose texts only the command line prints, or that are read before a server answers.
_NOT_SENT = (
    "mindex/cli",
    "mindex/mcp/http.py",
    "mindex/command_words.py",
    "mindex_compat/memory_search",
    "mindex_eval",
)


def example(part: ast.expr) -> str:
    """A value as one may be put into a message."""
    expression = ast.unparse(part)
    return "contact update" if "_COMMANDS" in expression else "contact" if "kind" in expression else "abc"


def messages(path: Path) -> Iterator[str]:
    """The texts of a module, docstrings left out, with a word where a value is put in."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in ast.walk(node)}
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    docstrings = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else example(part) for part in node.values)
        elif isinstance(node, ast.Constant) and id(node) not in inside | docstrings and isinstance(node.value, str):
            yield node.value


def messages_with_commands() -> list[tuple[str, str]]:
    found = []
    for path in MODULES:
        name = path.relative_to(SOURCE).as_posix()
        if not name.startswith(_NOT_SENT):
            found += [(name, one) for one in messages(path) if "`mindex " in one or re.search(r"(?<!\S)--[a-z]", one)]
    return found


@pytest.mark.slow
def test_every_message_that_names_a_command_names_a_tool_or_the_user_over_mcp() -> None:
    found = messages_with_commands()
    assert len(found) > 50  # the walk sees them
    named = set()
    for module, message in found:
        said = in_tool_words(message, NATIVE)
        left = re.sub(r"ask the user to run `mindex ([^`]+)`|`mindex ([^`]+)` on the command line", "", said)
        left = re.sub(r"--[\w-]+ (?:of the server|on the command line)|the user's `mindex restore`", "", left)
        assert "`mindex" not in left and not re.search(r"(?<![\w`-])--[a-z]", left), (module, said)
        if "the user" not in message:  # that message knows that no tool does it
            named |= {*re.findall(r"`mindex ([^`]+)`", said)}
    for command in named:
        verb = re.sub(r"^--db \S+ ", "", command)
        assert any(verb.startswith(one) for one in FOR_THE_USER), f"{command}: a tool may do this, or the user must"


@pytest.mark.slow
def test_every_command_that_a_message_names_exists() -> None:
    commands = set(cli.list_commands(None))  # type: ignore[arg-type]
    for module, message in messages_with_commands():
        for command in re.findall(r"`mindex ([a-z]+)", message):
            assert command in commands, (module, message)


@pytest.mark.parametrize("name", tool_names())
def test_the_tools_and_arguments_that_a_dialect_names_are_its_own(serving: Callable[..., Served], name: str) -> None:
    tools = {tool.name: tool.parameters["properties"] for tool in serving(name).server._tool_manager.list_tools()}
    for _, words in dialect_named(name).commands:
        for tool, argument in re.findall(r"`(\w+)`(?: with (\w+))?", words):
            assert tool in tools
            assert not argument or argument in tools[tool]


@pytest.mark.parametrize(
    ("message", "said"),
    [
        ("run `mindex restore-backup FILE`", "ask the user to run `mindex restore-backup FILE`"),
        ("`mindex restore` brings it back", "`update` with restore: true brings it back"),
        ("run `mindex index` again", "call `index` again"),
        ("name a folder: `mindex index docs`", "name a folder: `index` with path: docs"),
        ("undo it, or run `mindex reembed --force`", "undo it, or ask the user to run `mindex reembed --force`"),
        ("`mindex reembed` changes the model", "`mindex reembed` on the command line changes the model"),
        ("ask the user to run `mindex index /data`", "ask the user to run `mindex index /data`"),
        ("choose another --db", "choose another --db of the server"),
        ("use --from for others", "use --from on the command line for others"),
        ("give --budget", "give the argument budget"),
        ("2 -- 3, a--b, `--not`", "2 -- 3, a--b, `--not`"),
    ],
)  # fmt: skip
def test_commands_become_tools_and_options_arguments(message: str, said: str) -> None:
    assert in_tool_words(message, NATIVE, ["query", "budget"]) == said


@pytest.mark.anyio
async def test_an_error_over_mcp_names_the_tool_and_its_argument(own: Served) -> None:
    contact = own.host.memory.contacts.add(name="Anna")
    memory = own.host.memory.add("Tea is green")
    own.host.memory.forget(memory.id)
    async with Client(own.server) as client:
        for tool, arguments, said in (
            ("forget", {"id": memory.id}, "`update` with restore: true brings it back"),
            ("update", {"id": contact.id, "text": "New"}, "change those with `update` and its argument fields"),
            ("update", {"id": "absent", "text": "New"}, "`search` with kind: memory"),
            ("get", {"refs": "profile"}, "there is no profile yet"),
            ("remember", {"text": "x", "type": "rumour"}, "use one of fact"),
        ):
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert said in text(result) and "`mindex" not in text(result)


@pytest.mark.anyio
async def test_a_note_over_mcp_names_the_tool_in_text_and_json(own: Served) -> None:
    async with Client(own.server) as client:
        result = await client.call_tool("search", {"query": "anything"})
        (note,) = structured(result)["notes"]
        assert "`index`" in note and "`remember`" in note and "`mindex" not in note
        assert f"note: {note}" in text(result)


@pytest.mark.anyio
async def test_a_text_that_names_a_command_is_shown_as_it_is(own: Served) -> None:
    id_ = own.host.memory.add("`mindex restore` brings a memory back; see --db").id
    async with Client(own.server) as client:
        for result in (
            await client.call_tool("get", {"refs": id_}),
            await client.call_tool("search", {"query": "restore memory"}),
        ):
            assert "`mindex restore` brings a memory back; see --db" in text(result)


@pytest.mark.anyio
async def test_a_prompt_names_tools_too(own: Served) -> None:
    async with Client(own.server) as client:
        (message,) = (await client.get_prompt("recall", {"topic": "anything"})).messages
        assert "`index`" in str(message.content) and "`mindex" not in str(message.content)
