"""Tools: `@tool(…)` marks a method of a `Toolset` as one, `make_tools` makes them, `tool_result` makes their results.

A `StrictTool` validates its arguments strictly, publishes a lean schema, and turns errors into sentences.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias, TypeVar

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BeforeValidator, Field, ValidationError
from pydantic.json_schema import SkipJsonSchema

from mindex.command_words import Commands, in_tool_words
from mindex.datatypes.option import Option
from mindex.errors import MindexError
from mindex.fail_fast import fail_fast
from mindex.http_access.current_principal import require_write
from mindex.mcp.memory_host import MemoryHost
from mindex.memory import Memory
from mindex.present.text import note_lines
from mindex.present.to_json import Json, compact_json, worded, wording

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context

    from mindex.mcp.dialect import Dialect

# Titles repeat the names; defaults and ranges are in the descriptions, because some clients strip them.
_NOT_PUBLISHED = ("title", "default", "minimum", "maximum", "ge", "le")

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
REFRESHES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
# No tool deletes an entry for good: the history keeps what is changed or forgotten. With a destructive hint, clients
# would ask a person before every correction.
REVISES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)

# A list in the schema; a single text instead of a list is accepted too.
Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]

# `int | Omitted = None`: may be left out, and the schema says no more than integer.
Omitted: TypeAlias = SkipJsonSchema[None]

# Returns the result that the clients of a dialect expect for an error, or raises.
OnError = Callable[[ToolError], CallToolResult]

JsonObject = dict[str, Json]

Method = TypeVar("Method", bound=Callable[..., CallToolResult])


def described(options: Iterable[Option]) -> dict[str, Any]:
    """What the schema says of each argument that is an option: its description and its limits."""
    return {
        one.argument: Field(description=one.argument_help, ge=one.least, le=one.most) for one in options if one.argument
    }


@dataclass(frozen=True, slots=True)
class Toolset:
    """The base of every class with tools: the memory that they work on."""

    host: MemoryHost

    @property
    def _memory(self) -> Memory:
        return self.host.memory


def tool(
    description: str,
    annotations: ToolAnnotations,
    *,
    name: str = "",
    on_error: OnError | None = None,
    reads_too: bool = False,
    app: str = "",
) -> Callable[[Method], Method]:
    """Mark a method as a tool, called like the method if there is no `name`. Marked twice, it is two tools.

    A tool that writes is refused to a principal that may only read, before it begins, unless it `reads_too`. `app`
    names the MCP App that shows its results.
    """

    def mark(method: Method) -> Method:
        published: dict[str, Any] = {
            "name": name or method.__name__,
            "description": description,
            "annotations": annotations,
        }
        if app:
            published["meta"] = {"ui": {"resourceUri": app}}
        method.__dict__.setdefault("tool_marks", []).insert(0, (published, on_error, reads_too))
        return method

    return mark


def make_tools(toolset: object, dialect: Dialect, error_text: Callable[[MindexError], str]) -> Iterator[StrictTool]:
    """Yield the tools of an object, in the order of its marked methods.

    The dialect's `on_error` is for tools without their own; `error_text` returns what an error says to the client.
    """
    for attribute, method in vars(type(toolset)).items():
        for published, on_error, reads_too in getattr(method, "tool_marks", ()):
            made = StrictTool.of(getattr(toolset, attribute), **published)
            made.on_error = on_error or dialect.on_error
            made.commands = dialect.commands
            made.error_text = error_text
            made.reads_too = reads_too
            yield made


class StrictTool(Tool):
    """A tool that refuses unknown arguments."""

    on_error: OnError | None = None
    commands: Commands = ()
    error_text: Callable[[MindexError], str] = str
    # It writes or reads, as its arguments say: where the caller may not write, the store says so.
    reads_too: bool = False

    @classmethod
    def of(cls, method: Callable[..., Any], **published: Any) -> StrictTool:
        made = cls.from_function(method, structured_output=False, **published)
        assert isinstance(made, StrictTool)
        model = made.fn_metadata.arg_model
        model.model_config["extra"] = "forbid"
        model.model_rebuild(force=True)
        made.parameters = _lean(model.model_json_schema(by_alias=True))
        return made

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context[Any, Any],
        convert_result: bool = False,  # noqa: ARG002 - our tools return what goes over the wire
    ) -> CallToolResult:
        try:
            return await self._run(arguments, context)
        except ToolError as error:
            if self.on_error is None:
                raise
            return self.on_error(error)

    async def _run(self, arguments: dict[str, Any], context: Context[Any, Any]) -> CallToolResult:
        # Some clients send null for what they leave out: it counts only if the schema allows it.
        present = {name: value for name, value in arguments.items() if value is not None or self._offers_null(name)}
        if not _is_unicode(present):
            raise ToolError("an argument contains half of a surrogate pair, which is invalid; send whole characters")
        try:
            validated = self.fn_metadata.validate_arguments(present)
        except ValidationError as error:
            raise ToolError(self._describe(error)) from error
        injected = {self.context_kwarg: context} if self.context_kwarg else {}
        try:
            only_reads = bool(self.annotations and self.annotations.read_only_hint)
            if not (self.reads_too or only_reads):
                require_write()
            with fail_fast(only_reads), wording(self._in_own_words):
                result = await self.fn_metadata.call_fn(self.fn, self.is_async, validated, injected)
        except MindexError as error:
            raise ToolError(self._in_own_words(self.error_text(error))) from error
        except (MCPError, ToolError):
            raise
        except Exception as error:
            raise UnexpectedToolError(f"{self.name} failed; the server's log on stderr says why") from error
        assert isinstance(result, CallToolResult)
        return result

    def _in_own_words(self, message: str) -> str:
        return in_tool_words(message, self.commands, self.parameters.get("properties", ()))

    def _offers_null(self, name: str) -> bool:
        return {"type": "null"} in self.parameters.get("properties", {}).get(name, {}).get("anyOf", ())

    def _describe(self, error: ValidationError) -> str:
        """Return what is wrong with the arguments, and the names of all arguments."""
        faults = []
        for fault in error.errors(include_url=False, include_context=False, include_input=False):
            if fault["type"] == "none_required":  # the second fault of an argument that may be left out
                continue
            # Names of inner types are pydantic's own: keep the argument, and the place in a list.
            name = ".".join(str(part) for at, part in enumerate(fault["loc"]) if not at or isinstance(part, int))
            named = {"extra_forbidden": f"unknown argument '{name}'", "missing": f"argument '{name}' is missing"}
            faults.append(named.get(fault["type"], f"{name}: {fault['msg'][:1].lower()}{fault['msg'][1:]}"))
        known = ", ".join(self.parameters.get("properties", ())) or "no arguments"
        return f"{'; '.join(faults)}; {self.name} takes {known}"


def _is_unicode(arguments: dict[str, Any]) -> bool:
    """Whether all texts can be sent back: JSON may escape half a surrogate pair, which UTF-8 cannot hold."""
    try:
        json.dumps(arguments, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _lean(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema without the keys that are not published."""
    return {
        name: {key: _lean(value) for key, value in part.items()}
        if name == "properties"
        else _lean(part)
        if isinstance(part, dict)
        else part
        for name, part in schema.items()
        if name not in _NOT_PUBLISHED
    }


# ── results: a text, and the same content as JSON ─────────────────────────────────────────────────────────────


def tool_result(
    text: str, structured: Mapping[str, Json] | None = None, notes: Sequence[str] = (), *, is_error: bool = False
) -> CallToolResult:
    """A result. The notes go into both the text and the JSON, because clients show their model only one of them."""
    shown: dict[str, Any] | None = None if structured is None else dict(structured)
    if notes:
        text = "\n".join([text, *note_lines(notes)])
        if shown is not None:
            shown["notes"] = [*shown.get("notes", ()), *map(worded, notes)]
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=shown, is_error=is_error)


def json_result(structured: Mapping[str, Json], *, is_error: bool = False) -> CallToolResult:
    """A result whose text is the JSON, indented by two, as several dialects write it."""
    return tool_result(indented_json(structured), structured, is_error=is_error)


def compact_json_result(structured: Mapping[str, Json]) -> CallToolResult:
    """A result whose text is the JSON without blanks."""
    return tool_result(compact_json(structured), structured)


def indented_json(structured: Mapping[str, Json]) -> str:
    return json.dumps(structured, ensure_ascii=False, indent=2)
