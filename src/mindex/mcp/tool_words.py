"""Errors and notes in the words of an MCP client: commands of the command line become tools, options arguments.

A message of mindex names the next step as a person would type it: `mindex restore ID` in backquotes, or an option such
as --db. A client has no command line, so whatever a server sends goes through `in_tool_words`. What a tool of its
dialect does is said with that tool (`Dialect.commands`); the rest is for the user to run.
"""

import re
from collections.abc import Collection, Sequence

# Patterns of a command, without `mindex`, or of an option, with the words to say instead; the first that fits counts.
Commands = Sequence[tuple[str, str]]

# Options that the user starts the server with.
_SERVER_OPTIONS = frozenset({"db", "db-read", "agent", "http", "root", "tools"})
_REFERENCE = re.compile(
    r"(?P<asked>ask the user to run )?(?P<run>run )?`mindex (?P<command>[^`]+)`"
    r"|(?<![\w`-])--(?P<option>[a-z][a-z-]*[a-z])(?![\w-])"
)


def in_tool_words(text: str, commands: Commands, arguments: Collection[str] = ()) -> str:
    """Return a message with its commands and options as a client knows them. `arguments` are those of the tool."""
    if "`mindex " not in text and "--" not in text:
        return text

    def replaced(match: re.Match[str]) -> str:
        if match["option"]:
            return _option(match["option"], commands, arguments)
        tool = _first_fitting(match["command"], commands)
        if match["asked"] or tool is None:
            asked = match["asked"] or match["run"]
            named = f"`mindex {match['command']}`"
            return f"ask the user to run {named}" if asked else f"{named} on the command line"
        return f"call {tool}" if match["run"] else tool

    return _REFERENCE.sub(replaced, text)


def _option(name: str, commands: Commands, arguments: Collection[str]) -> str:
    if words := _first_fitting(f"--{name}", commands):
        return words
    if (argument := name.replace("-", "_")) in arguments:
        return f"the argument {argument}"
    return f"--{name} {'of the server' if name in _SERVER_OPTIONS else 'on the command line'}"


def _first_fitting(reference: str, commands: Commands) -> str | None:
    for pattern, words in commands:
        if match := re.fullmatch(pattern, reference):
            return match.expand(words)
    return None
