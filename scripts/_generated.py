"""What the source repeats of the tables of search options and record properties, written from them.

A file of `sources` is written whole, or between two comments: `# written by scripts/reference: NAME` and `# end: NAME`.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator
from pathlib import Path

from _openapi import description

from mindex.datatypes.option import Option
from mindex.entries.options import MEMORY_OPTIONS
from mindex.search.options import SEARCH_OPTIONS

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 120
_TYPES = {"text": "str", "texts": "Sequence[str]", "integer": "int", "number": "float", "flag": "bool"}
_TYPES["object"] = "Mapping[str, object]"
_OPTION_TYPES = '''"""The options of `Memory.search`: written by scripts/reference from `mindex.search.options`."""

from collections.abc import Sequence
from typing import TypedDict

from mindex.datatypes import Mode
from mindex.datatypes.guidance import Guidance


class Scope(TypedDict, total=False):
    """What `Memory.search` and `Memory.filters` take to narrow what is seen. Without any: one agent, everything."""

{scope}


class SearchOptions(Scope, total=False):
    """The options of `Memory.search`: how to search, and in which scope."""

{options}
'''

_MEMORY_TYPES = '''"""The options of a memory: written by scripts/reference from `mindex.entries.options`."""

from collections.abc import Mapping, Sequence
from typing import TypedDict


class Properties(TypedDict, total=False):
    """The properties of a memory that `Memory.add` and `Memory.update` take."""

{properties}


class AddOptions(Properties, total=False):
    """The options of `Memory.add`. Rules fill in the importance, the entities and the summary when not given."""

{add}


class Changes(Properties, total=False):
    """The properties that `Memory.update` replaces."""

{change}
'''
# What only one of `add` and `update` takes, or both of them in another way.
_ADD, _CHANGE = ("agent", "expires", "embed"), ("text", "expires")
# The arguments of the tool `update` that its table describes; the model knows the others from `remember`.
_CHANGE_HELP = ("expires", "supersedes")


def sources() -> dict[str, str]:
    """Return the text of every source file with a part that is written from a table, by its path in the repository."""
    library = [one for one in SEARCH_OPTIONS if one.in_library]
    types = _OPTION_TYPES.format(
        scope="\n".join(_fields(one for one in library if one.scope)),
        options="\n".join(_fields(one for one in library if not one.scope)),
    )
    memory = [one for one in MEMORY_OPTIONS if one.in_library]
    add = [one for one in memory if one.name != "text"]
    memory_types = _MEMORY_TYPES.format(
        properties="\n".join(_fields(one for one in memory if one.name not in (*_ADD, *_CHANGE))),
        add="\n".join(_fields(one for one in memory if one.name in _ADD)),
        change="\n".join(_fields(one for one in memory if one.name in _CHANGE)),
    )
    return {
        "src/mindex/search/option_types.py": types,
        "src/mindex/entries/option_types.py": memory_types,
        "src/mindex/memory.py": _documented("src/mindex/memory.py", {"search": library, "add": add}),
        "src/mindex/mcp/native/write_tools.py": _between(
            "src/mindex/mcp/native/write_tools.py",
            {
                "options of a memory": _arguments(MEMORY_OPTIONS, "_ABOUT"),
                "changes of a memory": _changes(MEMORY_OPTIONS, "_ABOUT_CHANGE"),
            },
        ),
        "src/mindex/mcp/native/retrieval.py": _between(
            "src/mindex/mcp/native/retrieval.py", {"search options": _arguments(SEARCH_OPTIONS, "_ABOUT")}
        ),
        "src/mindex/web/openapi.json": description(),
    }


def _fields(options: Iterable[Option]) -> Iterator[str]:
    """The lines of a typed dictionary, each with its help as a comment, which is on the line before if it is long."""
    for one in options:
        line, comment = f"    {one.name}: {_annotation(one)}", f"# {one.help}"
        if len(line) + len(comment) + 2 <= WIDTH:
            yield f"{line}  {comment}"
        else:
            yield from (f"    # {part}" for part in textwrap.wrap(one.help, WIDTH - 6))
            yield line


def _annotation(option: Option) -> str:
    if option.annotation:
        return option.annotation
    return _TYPES[option.value] + (" | None" if option.default is None else "")


def _documented(path: str, methods: dict[str, list[Option]]) -> str:
    """The source of a module with the options in the docstrings of methods, from the line `Options:` to their end."""
    text = _source(path)
    for method, options in methods.items():
        lines = "\n".join(_wrapped(f"            {one.name} ({_kind(one)}): {one.help}." for one in options))
        pattern = rf'(    def {method}\(.*?\n        Options:\n).*?(        """\n)'
        text = re.sub(pattern, lambda match: f"{match[1]}{lines}\n{match[2]}", text, count=1, flags=re.DOTALL)  # noqa: B023
    return text


def _kind(option: Option) -> str:
    shown = option.default not in (None, "", ()) and option.default is not False
    return f"{_annotation(option)}, default {option.default!r}" if shown else _annotation(option)


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    """The lines, those that are too long as two."""
    for line in lines:
        at = len(line) if len(line) <= WIDTH else line.rindex(" ", 0, WIDTH)
        yield line[:at]
        if line[at:]:
            yield f"                {line[at:].strip()}"


def _arguments(options: Iterable[Option], table: str) -> Iterator[str]:
    """The arguments of a tool of the MCP server, as its method takes them; the table has their descriptions."""
    for one in options:
        if one.argument:
            yield f"        {one.argument}: {_argument(one, table)},"


def _argument(option: Option, table: str) -> str:
    kind, _, default = option.argument_type.partition(" = ")
    if not kind:
        optional = option.default is None and option.value in ("flag", "integer", "number") and option.least is None
        kind = "Texts" if option.value == "texts" else _TYPES[option.value] + (" | Omitted" if optional else "")
    if not default:
        empty = {"text": '""', "texts": "()", "flag": "False", "integer": "0", "number": "0"}[option.value]
        default = "None" if "Omitted" in kind else empty
    kind = f'Annotated[{kind}, {table}["{option.argument}"]]' if option.argument_help else kind
    return f"{kind} = {default}"


def _changes(options: Iterable[Option], table: str) -> Iterator[str]:
    """The arguments of a tool that changes a memory: all of them may be left out, and the table describes a few."""
    for one in options:
        if one.argument:
            plain = "Texts" if one.value == "texts" else _TYPES[one.value]
            kind = f"{plain} | Omitted"
            kind = f'Annotated[{kind}, {table}["{one.argument}"]]' if one.argument in _CHANGE_HELP else kind
            yield f"        {one.argument}: {kind} = None,"


def _between(path: str, parts: dict[str, Iterable[str]]) -> str:
    """The source of a module with lines between the comments that name them."""
    text = _source(path)
    for name, lines in parts.items():
        pattern = rf"( *# written by scripts/reference: {name}\n).*?( *# end: {name}\n)"
        made = "".join(f"{line}\n" for line in lines)
        text, count = re.subn(pattern, lambda match: match[1] + made + match[2], text, flags=re.DOTALL)  # noqa: B023
        assert count == 1, f"{path}: {name}"
    return text


def _source(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")
