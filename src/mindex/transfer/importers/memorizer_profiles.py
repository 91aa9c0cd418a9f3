"""Memorizer-MCP's profiles, each with its history: every version it went through can be rolled back to."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from mindex.memories.json_paths import leaves
from mindex.memories.profile import MAX_BYTES
from mindex.model import Change, Record
from mindex.store.foreign_sqlite import ForeignDatabase
from mindex.transfer.importer import ExportRow, SkippedRow, profile_id
from mindex.transfer.importers.foreign_values import loaded, moment, text_of
from mindex.transfer.importers.memorizer_contacts_projects_skills import agent_of
from mindex.transfer.importers.sqlite_source import key_of

_BY = "memorizer"


@dataclass(frozen=True, slots=True)
class _Replaced:
    """A version of a profile, and when and why it was replaced."""

    data: dict[str, Any]
    at: int
    reason: str


def profiles(database: ForeignDatabase) -> Iterator[ExportRow | SkippedRow]:
    older: defaultdict[str, list[_Replaced]] = defaultdict(list)
    for row in database.rows("profile_history", "id", "agent_id", "profile_data", "changed_at", "change_reason"):
        data = loaded(row["profile_data"])
        if isinstance(data, dict):
            replaced = _Replaced(data, moment(row["changed_at"]), text_of(row["change_reason"]))
            older[agent_of(row)].append(replaced)
        else:
            yield SkippedRow(f"profile_history {key_of(row)}", "this version is not a JSON object", row=False)
    for row in database.rows("profiles", "agent_id", "profile_data", "created_at", "updated_at"):
        agent = agent_of(row)
        yield _profile(agent, row, older.pop(agent, []), database.modified)
    for agent, versions in older.items():
        reason = f"'{agent}' has {len(versions):,} older versions of a profile, and no profile"
        yield SkippedRow("profile_history", reason, row=False)


def _profile(agent: str, row: dict[str, Any], older: list[_Replaced], modified: int) -> ExportRow | SkippedRow:
    where, data = f"profiles {agent}", loaded(row["profile_data"])
    if not isinstance(data, dict):
        return SkippedRow(where, "it is not a JSON object")
    size = len(json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        return SkippedRow(where, f"it has {size:,} bytes, a profile may have {MAX_BYTES:,}")
    at = moment(row["created_at"], modified)
    name = f"Profile of {agent}"
    bare = Record(
        id=profile_id(agent),
        kind="profile",
        text="",
        title=name,
        agent=agent,
        created_at=at,
        updated_at=at,
        summary=name,
        source=f"{_BY}:profiles:{agent}",
    )
    older.sort(key=lambda one: one.at)
    versions = [*(one.data for one in older), data]
    state = _with(bare, versions[0], at)
    changes = [Change(0, bare.id, at, _BY, "add", "", None, state)]
    for one, later in zip(older, versions[1:], strict=True):
        after = _with(bare, later, one.at or at)
        changes.append(Change(0, bare.id, one.at or at, _BY, "update", one.reason, state, after))
        state = after
    return ExportRow(
        replace(state, updated_at=moment(row["updated_at"], state.updated_at)), tuple(changes), where=where
    )


def _with(bare: Record, data: dict[str, Any], at: int) -> Record:
    text = "\n".join(f"{path}: {value}" for path, value in leaves(data))
    return replace(bare, text=text, fields={"data": data}, updated_at=at)
