"""Errors and notes in the words of an MCP client or of the web page: commands become tools or pages.

A message of mindex names the next step as a person would type it: `mindex restore ID` in backquotes, or an option such
as --db. A client has no command line, so a server words its errors, and has `present` word its notes, by
`in_tool_words`. What a tool of its dialect does is said with that tool (`Dialect.commands`); the rest is for the user
to run. An error that a page shows names the page that does it.
"""

import re
from collections.abc import Collection, Sequence

# Patterns of a command, without `mindex`, or of an option, with the words to say instead; the first that fits counts.
Commands = Sequence[tuple[str, str]]

# Options that the user starts the server with.
_SERVER_OPTIONS = frozenset({"db", "db-read", "agent", "http", "root", "tools"})
_COMMAND = re.compile(r"(?P<run>run )?`mindex (?P<command>[^`]+)`")
_REFERENCE = re.compile(
    r"(?P<quotation>“[^”]*”)|(?P<asked>ask the user to run )?(?P<run>run )?`mindex (?P<command>[^`]+)`"
    r"|(?<![\w`-])--(?P<option>[a-z][a-z-]*[a-z])(?![\w-])"
)


# What the web page does, by the names of its menu.
_PAGES: Commands = (
    (r"(?:restore|undo|history|update|forget|purge)(?: .*)?", "the record's page"),
    (r"list --kind memory", "Timeline"),
    (r"contact .*", "People"),
    (r"project .*", "Projects"),
    (r"skill .*", "Skills"),
    (r"profile .*", "Profile"),
    (r"doctor|status|optimize|backfill|reembed", "Health"),
    (r"index(?: .*)?", "Collections"),
)


def in_page_words(text: str) -> str:
    """Return a message with its commands as the web page knows them; what no page does is for the command line."""
    return _COMMAND.sub(_page, text)


def _page(match: re.Match[str]) -> str:
    page = _first_fitting(match["command"], _PAGES)
    run = match["run"] or ""
    if page is None:
        return f"{run}`mindex {match['command']}` on the command line"
    return f"{'open ' if run else ''}{page}"


def in_tool_words(text: str, commands: Commands, arguments: Collection[str] = ()) -> str:
    """Return a message with its commands and options as a client knows them. `arguments` are those of the tool."""
    if "`mindex " not in text and "--" not in text:
        return text

    def replaced(match: re.Match[str]) -> str:
        if match["quotation"]:  # of another program
            return match[0]
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
