"""`export_memory` and `import_memory` of the Memorizer dialect. They write and read files of one folder only.

The lossless export is `mindex export`. These are files that users of Memorizer-MCP read, edit and import again.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from mcp_types import CallToolResult
from pydantic import Field

from mindex import Memory
from mindex.clock import now_ms, to_iso
from mindex.datatypes import Record
from mindex.errors import ForbiddenPathError, MindexError, NotFoundError, StoreError, UsageError
from mindex.mcp.dialect_parts import Json, leaves, make_private_folder, read_regular
from mindex.mcp.tools import REFRESHES, JsonObject, tool
from mindex.temporary_files import replaced_file
from mindex_compat.dialects.memorizer_base import PROGRAM, AgentId, MemorizerTools, conversation_row, short_row
from mindex_compat.dialects.memorizer_entries import with_default
from mindex_compat.dialects.memorizer_format import CATEGORIES, category_of, utc_text

_FOLDER_SETTING = "export.path"
_MAX_TURNS = 500
_MAX_BYTES = 32 * 1024 * 1024
_MAX_NOTES = 20


class ExportImportTools(MemorizerTools):
    @tool("Write profile, facts and conversations into the export folder.", REFRESHES)
    def export_memory(
        self,
        format: Annotated[Literal["markdown", "json"], Field(description="Default markdown")] = "markdown",
        include_conversations: Annotated[bool, Field(description="Default true")] = True,
        agent_id: AgentId = "",
    ) -> CallToolResult:
        profile = with_default(self._memory.profile.get(agent=self._agent(agent_id)))
        facts = list(self._live_records("memory", agent_id))
        turns = list(islice(self._live_records("turn", agent_id), _MAX_TURNS)) if include_conversations else None
        if format == "json":
            files = dict(_as_json(profile, [short_row(row) for row in self._rows(facts)], turns))
        else:
            files = dict(_as_markdown(profile, facts, turns))
        folder = export_folder(self._memory)
        for name, text in files.items():
            _write(folder, name, text)
        return self._success(export_path=str(folder), files_created=[*files], exported_at=to_iso(now_ms()))

    @tool("Take a mended profile.json or file of facts back in.", REFRESHES)
    def import_memory(
        self,
        file_path: Annotated[str, Field(description="profile.json or a file of facts, in the export folder")],
        agent_id: AgentId = "",
    ) -> CallToolResult:
        path = _path_inside(export_folder(self._memory), file_path)
        value = _read_json(path)
        if path.name.endswith("profile.json"):
            return self._import_profile(value, self._agent(agent_id))
        if "facts" in file_path:
            return self._import_facts(value, self._agent(agent_id))
        raise UsageError(f"{file_path} is neither a profile nor facts", "name …profile.json, or facts/all-facts.json")

    def _import_profile(self, value: Any, agent: str) -> CallToolResult:
        if not isinstance(value, dict) or any(set(name) & set(".[]") or not name for name in value):
            raise UsageError(
                "the file does not contain a profile", "a profile is one object whose names contain neither . nor []"
            )
        there = with_default(self._memory.profile.get(agent=agent))
        changes = {name: part for name, part in value.items() if part is not None and part != there.get(name)}
        if changes:
            self._memory.profile.set(changes, "import_memory", agent=agent, replace=True)  # the file is the profile
        return self._success(changes_applied=len(changes), fields_updated=[*changes])

    def _import_facts(self, value: Any, agent: str) -> CallToolResult:
        if not isinstance(value, list) or not all(_is_fact(item) for item in value):
            raise UsageError("the file does not contain facts", "facts are an array of objects with fact and category")
        changed: list[str] = []
        notes: list[str] = []
        for place, item in enumerate(value):
            try:
                changed += self._import_fact(item, agent)
            except MindexError as error:  # the others are imported, and a note names this one
                notes.append(f"fact {place} of the file was left out: {error}")
        if len(notes) > _MAX_NOTES:
            notes = [*notes[:_MAX_NOTES], f"{len(notes) - _MAX_NOTES} more were left out"]
        return self._success(*notes, changes_applied=len(changed), fields_updated=[*changed])

    def _import_fact(self, item: Mapping[str, Any], agent: str) -> Iterator[str]:
        """Update the fact with this id and creation time, or add it. Yields its name if something changed."""
        text, category = item["fact"], item["category"]
        self._refuse_secret(text)
        existing = self._existing(item, agent)
        if existing is None:
            added = self._memory.add(
                text,
                type=category,
                confidence=float(item.get("confidence") or 1.0),
                source=str(item.get("source") or ""),
                agent=agent,
            )
            if added.created:
                yield f"fact {self._numbers([self._memory.entries.find(added.id)]).get(added.id)}"
            return
        changes = {"text": text} if text.strip() != existing.text else {}
        if category != category_of(existing.type):
            changes["type"] = category
        if changes:
            self._memory.update(existing.id, reason="import_memory", **changes)
            yield f"fact {item['id']}"

    def _existing(self, item: Mapping[str, Any], agent: str) -> Record | None:
        number = item.get("id")
        if not isinstance(number, int):
            return None
        record = self._memory.entries.by_number(agent, number, PROGRAM, "memory")
        if record is None or record.retired_at is not None:
            return None
        return record if item.get("created_at") == utc_text(record.created_at) else None


def _is_fact(item: object) -> bool:
    return (
        isinstance(item, dict)
        and isinstance(item.get("fact"), str)
        and item.get("category") in CATEGORIES
        and isinstance(item.get("confidence") or 1.0, int | float)
    )


# ── files ─────────────────────────────────────────────────────────────────────────────────────────────────────


def export_folder(memory: Memory) -> Path:
    """Return the folder of the setting, by default one beside the database."""
    folder = memory.settings.text(_FOLDER_SETTING)
    return Path(folder).expanduser() if folder else memory.folder / "memory-export"


def _path_inside(folder: Path, file_path: str) -> Path:
    """Return the real path. Raises NotFoundError for a file outside of the folder, whether it exists or not."""
    try:
        path = (folder / Path(file_path).expanduser()).resolve(strict=True)
        if path.is_relative_to(folder.resolve()):
            return path
    except (OSError, RuntimeError, ValueError):
        pass
    raise NotFoundError(
        f"there is no file {file_path} in the export folder",
        "copy it there first; export_memory lists the files that it wrote",
    )


def _read_json(path: Path) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        if not path.is_file():
            raise UsageError(f"{path} is not a file", "name profile.json, or facts/all-facts.json")
        if path.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path} has more than {_MAX_BYTES:,} bytes", "import it in parts")
        return json.loads(read_regular(path).decode("utf-8-sig"), parse_constant=refuse)
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"{path} cannot be read as JSON ({type(error).__name__})", "fix it or export it again"
        ) from error


def _write(folder: Path, name: str, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all; a link in its place is replaced, not followed."""
    target = folder / name
    try:
        make_private_folder(target.parent)
        if not target.parent.resolve().is_relative_to(folder.resolve()):
            raise ForbiddenPathError(f"{target.parent} is outside {folder}", "replace the link by a folder")
        with replaced_file(target) as file:
            file.write(text.encode("utf-8", "surrogatepass"))
    except OSError as error:
        raise StoreError(f"{target} cannot be written ({error})", f"set {_FOLDER_SETTING} to another folder") from error


def _as_json(
    profile: JsonObject, facts: Sequence[JsonObject], turns: Sequence[Record] | None
) -> Iterator[tuple[str, str]]:
    yield "profile.json", _json(profile)
    yield "facts/all-facts.json", _json([*facts])
    if turns is not None:
        yield "conversations/recent.json", _json([short_row(conversation_row(record)) for record in turns])


def _json(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2) + "\n"


def _as_markdown(
    profile: JsonObject, facts: Sequence[Record], turns: Sequence[Record] | None
) -> Iterator[tuple[str, str]]:
    yield "profile.md", _page("Profile", (f"- **{path}**: {value}" for path, value in leaves(profile)))
    counted = []
    for category in CATEGORIES:
        of_category = [record for record in facts if category_of(record.type) == category]
        counted.append(f"- {category}: {len(of_category)}")
        lines = (f"- {' '.join(record.text.split())} ({utc_text(record.created_at)[:10]})" for record in of_category)
        yield f"facts/{category}.md", _page(f"Facts: {category}", lines)
    if turns is not None:
        yield "conversations/recent.md", _page("Recent conversations", _turn_texts(turns))
        counted.append(f"- conversations: {len(turns)}")
    yield "summary.md", _page("Summary", [f"Facts: {len(facts)}", "", *counted])


def _turn_texts(turns: Iterable[Record]) -> Iterator[str]:
    for record in turns:
        row = conversation_row(record)
        yield f"## {row['created_at']}\n\n**User:** {row['user_message']}\n\n**Agent:** {row['agent_response']}\n"


def _page(title: str, lines: Iterable[str]) -> str:
    return "\n".join([f"# {title}", "", *(list(lines) or ["Nothing yet."]), ""])
