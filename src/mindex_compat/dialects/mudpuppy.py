"""The tools of mudpuppy: its names, arguments and JSON, over our memories with its 0.7/0.3 fusion.

Its ids are integers: the numbers that records have in this program, and in no other. Each of its six types is a family
of ours: a memory of another type is found and shown as its family, because no client knows other types; the record
keeps its own type.

Indexed files are found beside memories, as it finds them: source `file-index`, the file's path as tag, none larger
than 100 KB. It stores a file whole, as one entry; here each hit is a passage, with an integer id above all numbers of
memories.
"""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp_types import CallToolResult
from pydantic import Field, ValidationError

from mindex.datatypes import Answer, Collection, Guidance, Hit, Mode, Record
from mindex.errors import UsageError
from mindex.mcp.dialect import NO_IMPORTANCE_BOOST, Dialect
from mindex.mcp.dialect_parts import MAX_LIMIT, Json, SearchOptions
from mindex.mcp.tools import READS, REFRESHES, JsonObject, Omitted, OnError, Toolset, json_result, tool
from mindex_compat.record_numbers import id_start, record_number

PROGRAM = "mudpuppy"
EntryType = Literal["fact", "preference", "event", "insight", "task", "relationship"]

FAMILIES: Mapping[EntryType, tuple[str, ...]] = {
    "fact": ("fact", "decision", "entity", "background", "project", "contact", "reference", "how-to", "problem"),
    "preference": ("preference", "self"),
    "event": ("event",),
    "insight": ("insight", "pattern"),
    "task": ("task",),
    "relationship": ("relationship",),
}

# What a file's entry has where the caller gave nothing.
_FILE_SOURCE, _FILE_IMPORTANCE, _FILE_CONFIDENCE = "file-index", 5, 1.0
_MAX_FILE_BYTES = 100 * 1024
_MAX_PAGES = 10  # of passages that are looked through for those of smaller files

_ADD = "Remember something across conversations. The same content again answers the id it has already."
_SEARCH = "Search memories and indexed files by meaning and by keyword."
_STATS = "The memories in numbers: how many, of which types, how important, how often wanted."
_DELETE = "Delete a memory: it leaves every search."

Id = Annotated[int | str, Field(description="As a search shows it")]


def _error_with(defaults: Mapping[str, Json]) -> OnError:
    """An error is an ordinary result with `error` and these defaults; a wrong argument is a tool error without them."""

    def result(error: ToolError) -> CallToolResult:
        if isinstance(error, UnexpectedToolError):
            raise error
        wrong_argument = isinstance(error.__cause__, ValidationError | UsageError)
        return json_result({"error": str(error), **({} if wrong_argument else defaults)}, is_error=wrong_argument)

    return result


@dataclass(frozen=True)
class MudpuppyTools(Toolset):
    # Collection and the time of its index → its large files.
    _large: dict[tuple[str, int | None], frozenset[tuple[str, str]]] = field(default_factory=dict)

    @tool(_ADD, REFRESHES, name="memory_add")
    def add(
        self,
        content: Annotated[str, Field(min_length=1)],
        entryType: Annotated[EntryType, Field(description="Default fact")] = "fact",
        source: Annotated[str, Field(description="Default manual")] = "manual",
        context: str = "",
        confidence: Annotated[float, Field(ge=0, le=1, description="0-1, default 1")] = 1.0,
        importance: Annotated[int, Field(ge=1, le=10, description="1-10, default 5")] = 5,
        tags: list[str] | Omitted = None,
        expiresAt: Annotated[int | Omitted, Field(description="Unix time in milliseconds")] = None,
    ) -> CallToolResult:
        added = self._memory.add(
            content,
            type=entryType,
            source=source,
            context=context,
            confidence=confidence,
            importance=importance,
            tags=tags or (),
            expires=expiresAt,
        )
        entries = self._memory.entries
        numbers = entries.numbers(PROGRAM, [entries.find(added.id)])
        result: JsonObject = {"id": numbers[added.id], "created": added.created, "duplicate": added.duplicate}
        if added.redacted:  # not in mudpuppy: the caller must know that a secret was not stored
            result["redacted"] = list(added.redacted)
        return json_result(result)

    @tool(_SEARCH, READS, name="memory_search", on_error=_error_with({"results": [], "total": 0}))
    def search(
        self,
        query: Annotated[str, Field(min_length=1)],
        mode: Annotated[Mode, Field(description="Default hybrid")] = "hybrid",
        limit: Annotated[int, Field(ge=1, description="1-50, default 10")] = 10,
        entryTypes: list[EntryType] | Omitted = None,
        minImportance: Annotated[int | Omitted, Field(ge=1, le=10, description="1-10")] = None,
        minConfidence: Annotated[float | Omitted, Field(ge=0, le=1, description="0-1")] = None,
        tags: Annotated[list[str] | Omitted, Field(description="Any of these")] = None,
        vectorWeight: Annotated[float | Omitted, Field(ge=0, le=1, description="0-1, default 0.7; hybrid only")] = None,
        keywordWeight: Annotated[float | Omitted, Field(ge=0, le=1, description="0-1, default 0.3")] = None,
    ) -> CallToolResult:
        options: SearchOptions = {"mode": mode, "fusion": "weighted", "floor": 0, "limit": limit}
        notes: list[str] = []
        if vectorWeight == keywordWeight == 0:
            raise UsageError("vectorWeight and keywordWeight are both 0", "set one of them above 0")
        if mode == "hybrid":
            options |= {"vector_weight": vectorWeight, "keyword_weight": keywordWeight}
        elif vectorWeight is not None or keywordWeight is not None:  # mudpuppy reads them in a hybrid search only
            notes.append(f"vectorWeight and keywordWeight do nothing in a {mode} search")
        scope: SearchOptions = {
            **options,
            "kinds": ["memory"],
            "types": [type_ for family in entryTypes or () for type_ in FAMILIES[family]],
            "min_importance": minImportance,
            "min_confidence": minConfidence,
            "tags": tags or (),
        }
        found = [self._memory.search(query, **scope)]
        if (not entryTypes or "fact" in entryTypes) and (minImportance or 0) <= _FILE_IMPORTANCE:
            found += self._search_files(query, options, tags or ())
        found = [one for one in found if one.hits] or found
        distinct = {hit.record.id: hit for one in found for hit in one.hits}
        hits = sorted(distinct.values(), key=lambda hit: -hit.score)[: min(limit, MAX_LIMIT)]
        numbers = self._memory.entries.numbers(PROGRAM, [hit.record for hit in hits if hit.record.kind != "chunk"])
        result: JsonObject = {"results": [_hit_row(hit, numbers) for hit in hits], "total": len(hits)}
        notes = list(dict.fromkeys((*notes, *(note for one in found for note in one.notes), *self.host.notes())))
        if notes:  # not in mudpuppy: why there are no vectors, or fewer results than the limit
            result["notes"] = [*notes]
        return json_result(result)

    def _search_files(self, query: str, options: SearchOptions, tags: Sequence[str]) -> list[Answer]:
        """Search the indexed files: all, or those with one of the tags, of which their path is one.

        They are searched apart from the memories, so that many passages take no place from a memory.
        """
        collections = self._file_collections()
        if not collections:
            return []
        files: SearchOptions = {**options, "kinds": ["chunk"], "collections": [one.name for one in collections]}
        scopes: list[SearchOptions] = [{**files, "tags": tags}]
        scopes += [{**files, "path": tag} for tag in tags if self._is_file(tag)]
        large = frozenset().union(*map(self._large_files, collections))
        return [self._search_small(query, scope, large) for scope in scopes]

    def _search_small(self, query: str, options: SearchOptions, large: frozenset[tuple[str, str]]) -> Answer:
        """Search without the passages of large files, of which one could fill every place."""
        if not large:
            return self._memory.search(query, **options)
        hits: list[Hit] = []
        for page in range(_MAX_PAGES):
            paged: SearchOptions = {**options, "limit": MAX_LIMIT, "offset": page * MAX_LIMIT}
            found = self._memory.search(query, **paged)
            hits += (hit for hit in found.hits if (hit.record.collection, hit.record.path) not in large)
            if len(hits) >= options["limit"] or not found.has_more:
                break
        return replace(found, hits=tuple(hits[: options["limit"]]))

    def _large_files(self, collection: Collection) -> frozenset[tuple[str, str]]:
        """Return the files of a collection that mudpuppy would not index."""
        key = collection.name, collection.indexed_at
        if key not in self._large:
            documents = self._memory.collections.documents_of(collection.name)
            found = ((collection.name, one.path) for one in documents if one.size > _MAX_FILE_BYTES)
            self._large[key] = frozenset(found)
        return self._large[key]

    def _is_file(self, path: str) -> bool:
        return any(document.path == path for document in self._memory.collections.documents(path))

    def _file_collections(self) -> list[Collection]:
        """The workspace and the source folder; every indexed folder if there is neither."""
        known, source = self._memory.collections.list(), self.host.source
        workspace = self._memory.settings.workspace
        own = [
            one
            for one in known
            if (source is not None and one.name == source.name)
            or (workspace is not None and workspace.resolve().is_relative_to(one.root))
        ]
        return own or [*known]

    @tool("One memory by its id, with everything that is known about it.", READS, name="memory_get")
    def get(self, id: Id) -> CallToolResult:
        record = self._record(id) or self._passage(id)
        if record is None:
            return json_result({"error": f"Memory entry not found: {id}"})
        # First: the counts are those before this access.
        signals = self._memory.entries.usage([record.id]).get(record.id)
        self._memory.get(record.id)
        entry: JsonObject = {
            "id": record_number(record.id) if record.kind == "chunk" else int(id),
            "content": record.text,
            "contentHash": hashlib.sha256(record.text.encode("utf-8", "surrogatepass")).hexdigest(),
            **_properties(record),
            "createdAt": record.created_at,
            "updatedAt": record.updated_at,
            "expiresAt": record.expires_at,
            "accessCount": signals.access_count if signals else 0,
            "lastAccessedAt": signals.last_accessed if signals else None,
        }
        return json_result({"entry": {name: value for name, value in entry.items() if value is not None}})

    @tool(_STATS, READS, name="memory_stats")
    def stats(self) -> CallToolResult:
        numbers = self._memory.maintenance.statistics()
        by_type: Counter[str] = Counter()
        for type_, count in numbers.by_type.items():
            by_type[_family_of(type_)] += count
        return json_result(
            {
                "totalEntries": numbers.total,
                "byType": dict(by_type),
                "avgImportance": round(numbers.average_importance, 2),
                "avgConfidence": round(numbers.average_confidence, 2),
                "totalAccesses": numbers.accesses,
                "oldestEntry": numbers.oldest,
                "newestEntry": numbers.newest,
            }
        )

    @tool(_DELETE, REFRESHES, name="memory_delete", on_error=_error_with({"success": False, "deleted": False}))
    def delete(self, id: Id) -> CallToolResult:
        """Forget a memory: no search finds it, and `mindex restore` brings it back. Mudpuppy deletes it for good."""
        record = self._record(id)
        if record is not None:
            self._memory.forget(record.id, "memory_delete")
        result: JsonObject = {"success": record is not None, "deleted": record is not None}
        if passage := self._passage(id):
            result["error"] = f"{id} is a passage of {passage.path}: change or remove the file"
        return json_result(result)

    def _record(self, id_: int | str) -> Record | None:
        """Return this agent's memory with a number of this program; None if there is none or it is forgotten."""
        if isinstance(id_, str) and not id_.isdecimal():
            return None
        agent = self._memory.settings.text("agent")
        record = self._memory.entries.by_number(agent, int(id_), PROGRAM, "memory")
        if record is None or (record.retired_at is not None and not record.superseded_by):
            return None
        return record

    def _passage(self, id_: int | str) -> Record | None:
        """Return the passage of an indexed file with this id, or None."""
        start = id_start(int(id_)) if str(id_).isdecimal() else ""
        if not start:
            return None
        return next((one for one in self._memory.entries.starting(start, limit=1) if one.kind == "chunk"), None)


def _hit_row(hit: Hit, numbers: Mapping[str, int]) -> JsonObject:
    by_vector = hit.trace.vector_rank is not None
    by_keyword = hit.trace.keyword_rank is not None or not by_vector  # without a rank: a substring match
    return {
        "id": record_number(hit.record.id) if hit.record.kind == "chunk" else numbers.get(hit.record.id),
        "content": hit.record.text,
        **_properties(hit.record),
        "score": round(hit.score, 3),
        "matchedBy": [*["vector"] * by_vector, *["keyword"] * by_keyword],
        "createdAt": hit.record.created_at,
    }


def _properties(record: Record) -> JsonObject:
    if record.kind == "chunk":
        return {
            "entryType": "fact",
            "source": _FILE_SOURCE,
            "context": record.title,
            "confidence": _FILE_CONFIDENCE,
            "importance": _FILE_IMPORTANCE,
            "tags": [*dict.fromkeys((record.path, *record.tags))],
        }
    shown: JsonObject = {"entryType": _family_of(record.type), "source": record.source}
    if record.context:
        shown["context"] = record.context
    return shown | {"confidence": record.confidence, "importance": record.importance, "tags": list(record.tags)}


def _family_of(type_: str) -> EntryType:
    return next((family for family, types in FAMILIES.items() if type_ in types), "fact")


_INSTRUCTIONS = (
    "Memory across conversations. `memory_search` before you answer what earlier conversations may have settled;"
    " `memory_add` facts, preferences, decisions and corrections worth keeping, one at a time, never secrets;"
    " `memory_delete` what is wrong."
)

_GUIDANCE = Guidance(
    fill="`memory_add` fills it",
    add="`memory_add` adds one",
    wait="search again in a moment",
    vectors="they are being computed; search again in a moment",
)

DIALECT = Dialect(
    (MudpuppyTools,),
    _INSTRUCTIONS,
    settings={**NO_IMPORTANCE_BOOST, "boost.instruction": 1.0},
    guidance=_GUIDANCE,
    on_error=_error_with({}),
    commands=((r"add", "`memory_add`"), (r"list --kind memory", "`memory_search`")),
    unknown_tool=lambda name: json_result({"error": f"Unknown tool: {name}"}, is_error=True),
)
