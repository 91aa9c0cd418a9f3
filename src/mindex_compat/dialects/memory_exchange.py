"""The tools of MemoryExchange: its names, arguments and texts, over our search with its fusion method."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path, PurePath, PureWindowsPath
from typing import Annotated

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult
from pydantic import Field

from mindex.datatypes import Collection, GetResult, Hit, QueryTerms, Status
from mindex.errors import ForbiddenPathError, NotFoundError, UsageError
from mindex.mcp.dialect import READS_FILES, Dialect
from mindex.mcp.dialect_parts import SearchOptions, body, note_lines, one_line, read_regular, view_answer, view_records
from mindex.mcp.tools import READS, JsonObject, Toolset, tool, tool_result
from mindex_compat.dialects.memory_exchange_flags import DEFAULT_INDEX

DOMAIN_MAP = "MemoryExchangeManagement.md"
_MAX_RESULTS = 10
_MAX_TAGS = 10
# MemoryExchange builds its index before it answers anything. A small folder takes a second or two.
_WAIT_SECONDS = 10.0
_INCOMPLETE = "the index is being built for the first time; this answer has only what is in it so far"
_NOTHING = "No relevant memory exchange entries found for your query."
_EMPTY = (
    "**Warning:** The index is empty. Start the server with `--build-index` or `--watch`, and check that the source"
    " path holds `.md` files."
)

_SEARCH = (
    "Search the project's documentation for architecture, patterns, conventions and decisions. Use it whenever you need"
    " to know how this project works or what it has settled."
)

_YAML_BLOCK = re.compile(r"^```ya?ml[ \t]*\n(.*?)^```", re.DOTALL | re.MULTILINE)
_DOMAIN_LINE = re.compile(r"^[ \t]*[\"']?([\w.-]+)[\"']?:[ \t]*\[([^\]]*)\]", re.MULTILINE)
# A query that is one name of code: texts with this name come before those with its parts, into which it is split.
_IDENTIFIER = re.compile(r"(?=.*(?:[a-z0-9][A-Z]|\w[_.:]+\w))[\w.:]+")
_QUOTED = re.compile(r"'([^']+)'|\"([^\"]+)\"")


class MemoryExchangeTools(Toolset):
    @tool(_SEARCH, READS, name="search_memory_exchange")
    @tool("The same as search_memory_exchange.", READS, name="search_memory_bank")
    def search(
        self,
        query: Annotated[str, Field(description="What you want to know; be specific")],
        currentFilePath: Annotated[str, Field(description="The file being edited: lifts results of its domain")] = "",
        topK: Annotated[int, Field(description="Number of results, 1-10, default 5")] = 5,
    ) -> CallToolResult:
        complete = self.host.background.wait_for_first_index(_WAIT_SECONDS)
        options: SearchOptions = {
            "limit": min(max(topK, 1), _MAX_RESULTS),
            "fusion": "rrf",
            "floor": 0,
            "current_file": currentFilePath,
            "kinds": ["chunk"],
            "collections": [source.name] if (source := self.host.source) else [],
        }
        found = self._memory.search(query, **options)
        if _IDENTIFIER.fullmatch(query.strip()):
            exact = self._memory.search(f'"{query.strip()}"', **options)
            hits = {hit.record.id: hit for hit in (*exact.hits, *found.hits)}
            found = replace(found, hits=tuple(hits.values())[: options["limit"]])
        roots = {collection.name: collection for collection in self._memory.collections.list()}
        text = "".join(_result_texts(found.hits, roots)) if found.hits else _NOTHING
        if not any(one.indexed_at for one in roots.values()):  # else the one sentence says it all
            text = "\n".join([text, *note_lines(found.notes)])
        shown = view_answer(replace(found, terms=QueryTerms()))  # without highlights, which its clients do not know
        return tool_result(text, shown.json(), (*([] if complete else [_INCOMPLETE]), *self.host.notes()))

    @tool("Read a whole markdown file that search found, or whose path you know.", READS)
    def get_memory_file(
        self, filePath: Annotated[str, Field(description="Path as search shows it, or relative to the source")]
    ) -> CallToolResult:
        path = filePath.strip().replace("\\", "/")
        if not path:
            raise UsageError("filePath is required.")
        self.host.background.wait_for_first_index(_WAIT_SECONDS)
        source = self.host.source
        if source is not None and not path.startswith("/") and not PureWindowsPath(path).is_absolute():
            path = f"{source.name}/{path.removeprefix('./')}"
        try:
            record = self._memory.lookup.read_file(path)
        except NotFoundError:
            raise NotFoundError(f"file not found: {filePath}") from None
        except ForbiddenPathError:
            raise ForbiddenPathError("the specified path is outside the memory exchange source directory.") from None
        if source is not None and record.collection != source.name:
            raise NotFoundError(f"file not found: {filePath}")
        return tool_result(record.text, view_records(GetResult((record,))).json(), self.host.notes())

    @tool("How many files and chunks are indexed, and when: tells why a search finds nothing.", READS)
    def get_index_status(self) -> CallToolResult:
        notes = self.host.notes()  # before the counts: an index that is done by then has all of them
        status = self._memory.status()
        source = self.host.source
        collections = [one for one in status.collections if source is None or one.name == source.name]
        chunks = sum(one.chunks for one in collections)
        indexed = max((one.indexed_at for one in collections if one.indexed_at), default=None)
        shown: JsonObject = {
            "Source path": source.root if source else "(not configured)",
            "Provider": _provider(status),
            "Index name": self.host.options.index_name or DEFAULT_INDEX,
            "Indexed chunks": chunks,
            "Indexed files": sum(one.documents for one in collections),
            "Last indexed": _local_time(indexed) if indexed else "never",
        }
        lines = ["## Memory Exchange Index Status", "", *(f"- **{name}:** {value}" for name, value in shown.items())]
        if not chunks:
            lines += ["", _EMPTY]
        notes = (*notes, *filter(None, (status.tier_reason, status.embedding.note)))
        structured = {name.lower().replace(" ", "_"): value for name, value in shown.items()}
        return tool_result("\n".join(lines) + "\n", structured, notes)


def _result_texts(hits: tuple[Hit, ...], collections: Mapping[str, Collection]) -> Iterator[str]:
    yield f"Found {len(hits)} relevant memory exchange entries:\n\n"
    for number, hit in enumerate(hits, start=1):
        record = hit.record
        root = collections.get(record.collection)
        yield f"--- Result {number} ---\n"
        folder = root.root if root and not root.imported else ""  # of imported files, it is not known
        yield f"Source: {one_line(str(PurePath(folder, record.path) if folder else record.path))}\n"
        if record.title:
            yield f"Section: {one_line(record.title)}\n"
        yield f"Domain: {one_line(record.domain)}\n"
        if record.tags:
            yield f"Tags: {one_line(', '.join(record.tags[:_MAX_TAGS]))}\n"
        yield f"\n{body(record.text)}\n\n"


def _provider(status: Status) -> str:
    """Return where the index is, and whose embeddings it has if those are from elsewhere."""
    place, embeddings = ("Azure" if status.db.startswith("azure:") else "Local"), status.embedding.provider
    if embeddings == place.lower():
        return place
    return f"{place} ({'no' if embeddings == 'none' else embeddings} embeddings)"


def _local_time(milliseconds: int) -> str:
    """Return a time as MemoryExchange writes it: `2026-03-01 14:05:09 +01:00`."""
    text = datetime.fromtimestamp(milliseconds / 1000).astimezone().isoformat(" ", "seconds")
    return f"{text[:19]} {text[19:]}"


def domain_map(text: str) -> dict[str, str]:
    """Return code path → domain, from the first yaml block of a management file: `  caching: ['src/Caching/']`."""
    block = _YAML_BLOCK.search(text.replace("\r\n", "\n"))
    if block is None:
        return {}
    return {
        path: line[1]
        for line in _DOMAIN_LINE.finditer(block[1])
        for path in (single or double for single, double in _QUOTED.findall(line[2]))
    }


def _domain_settings(source: Path) -> dict[str, object]:
    """Return the domain map of the source folder, if it has one."""
    try:
        domains = domain_map(read_regular(source / DOMAIN_MAP).decode("utf-8-sig", "replace"))
    except OSError:
        return {}
    return {"index.domains": domains} if domains else {}


def _error_as_text(error: ToolError) -> CallToolResult:
    """An error is an ordinary text for its clients, unless mindex itself failed."""
    if isinstance(error, UnexpectedToolError):
        raise error
    return tool_result(f"Error: {error}")


_INSTRUCTIONS = (
    "The project's documentation: architecture, conventions, decisions. Call `search_memory_exchange` before you"
    " answer or decide anything it may have settled, and `get_memory_file` to read a whole page."
)

DIALECT = Dialect(
    (MemoryExchangeTools,),
    _INSTRUCTIONS,
    exclude=("personal/",),
    settings_of_source=_domain_settings,
    guidance=READS_FILES,
    on_error=_error_as_text,
)
