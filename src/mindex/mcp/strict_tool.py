"""Tools that say no: unknown arguments are errors, schemas are lean, and errors are sentences a model can act on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools import Tool
from mcp.shared.exceptions import MCPError
from mcp_types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BeforeValidator, ValidationError
from pydantic.json_schema import SkipJsonSchema

from mindex.errors import MindexError
from mindex.present.to_json import Json

if TYPE_CHECKING:
    from mcp.server.mcpserver import Context

# Titles repeat the names; defaults and ranges stand in the descriptions, because some clients strip them.
_NOT_PUBLISHED = ("title", "default", "minimum", "maximum")

READS = ToolAnnotations(read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
REFRESHES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False)
# Nothing told is ever lost to a tool: what is changed or forgotten stays in the history and comes back whole. Calling
# that destructive would only make clients ask a person before every correction. Erasing for good has no tool.
REVISES = ToolAnnotations(read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=False)

# A list in the schema; a model that writes one text instead is understood.
Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: [value] if isinstance(value, str) else value)]

# `int | Unsaid = None`: may be left out, and the schema says no more than integer.
Unsaid: TypeAlias = SkipJsonSchema[None]

# How the seed of a dialect answers a mistake: with a result of its own, or by raising.
Mistakes = Callable[[ToolError], CallToolResult]


class StrictTool(Tool):
    """A tool whose arguments are checked to the letter."""

    mistakes: Mistakes | None = None

    @classmethod
    def of(
        cls,
        fn: Callable[..., Any],
        description: str,
        annotations: ToolAnnotations,
        *,
        name: str | None = None,
        mistakes: Mistakes | None = None,
    ) -> StrictTool:
        made = cls.from_function(
            fn, name=name, description=description, annotations=annotations, structured_output=False
        )
        assert isinstance(made, StrictTool)
        model = made.fn_metadata.arg_model
        model.model_config["extra"] = "forbid"
        model.model_rebuild(force=True)
        made.parameters = _lean(model.model_json_schema(by_alias=True))
        made.mistakes = mistakes
        return made

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context[Any, Any],
        convert_result: bool = False,  # noqa: ARG002 - our tools answer with what goes over the wire
    ) -> CallToolResult:
        try:
            return await self._run(arguments, context)
        except ToolError as error:
            if self.mistakes is None:
                raise
            return self.mistakes(error)

    async def _run(self, arguments: dict[str, Any], context: Context[Any, Any]) -> CallToolResult:
        # Some clients send null for what they leave out, so it says nothing where the schema does not offer it.
        given = {name: value for name, value in arguments.items() if value is not None or self._offers_null(name)}
        try:
            validated = self.fn_metadata.validate_arguments(given)
        except ValidationError as error:
            raise ToolError(self._complaint(error)) from error
        beside = {self.context_kwarg: context} if self.context_kwarg else {}
        try:
            result = await self.fn_metadata.call_fn(self.fn, self.is_async, validated, beside)
        except MindexError as error:
            raise ToolError(str(error)) from error
        except (MCPError, ToolError):
            raise
        except Exception as error:
            raise UnexpectedToolError(f"{self.name} failed; the server's log on stderr says why") from error
        assert isinstance(result, CallToolResult)
        return result

    def _offers_null(self, name: str) -> bool:
        return {"type": "null"} in self.parameters.get("properties", {}).get(name, {}).get("anyOf", ())

    def _complaint(self, error: ValidationError) -> str:
        """What is wrong with the arguments, and which there are."""
        faults = []
        for fault in error.errors(include_url=False, include_context=False, include_input=False):
            if fault["type"] == "none_required":  # the other half of what may be left out
                continue
            # Names of inner types are pydantic's business: the argument, and where in a list.
            name = ".".join(str(part) for at, part in enumerate(fault["loc"]) if not at or isinstance(part, int))
            if fault["type"] == "extra_forbidden":
                faults.append(f"unknown argument '{name}'")
            elif fault["type"] == "missing":
                faults.append(f"argument '{name}' is missing")
            else:
                faults.append(f"{name}: {fault['msg'][:1].lower()}{fault['msg'][1:]}")
        known = ", ".join(self.parameters.get("properties", ())) or "no arguments"
        return f"{'; '.join(faults)}; {self.name} takes {known}"


def answer(text: str, structured: Mapping[str, Json], notes: Sequence[str] = ()) -> CallToolResult:
    """One answer in both halves. Clients show their model only one of them, so both carry the same."""
    shown: dict[str, Any] = dict(structured)
    if notes:
        told = shown.get("notes")
        shown["notes"] = [*(told if isinstance(told, list) else []), *notes]
        text = "\n".join([text, *(f"note: {note}" for note in notes)])
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=shown)


def json_answer(shown: Mapping[str, Json], *, is_error: bool = False) -> CallToolResult:
    """An answer whose text is JSON, indented by two, as several seeds write theirs."""
    content = TextContent(type="text", text=json_text(shown))
    return CallToolResult(content=[content], structured_content=dict(shown), is_error=is_error)


def json_text(shown: Mapping[str, Json]) -> str:
    return json.dumps(shown, ensure_ascii=False, indent=2)


def _lean(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without what a reader can do without."""
    return {
        name: {key: _lean(value) for key, value in part.items()}
        if name == "properties"
        else _lean(part)
        if isinstance(part, dict)
        else part
        for name, part in schema.items()
        if name not in _NOT_PUBLISHED
    }
