"""Memorizer-MCP's profiles, each with its history: `profile rollback` can return to every version."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from mindex.memories.profile import MAX_BYTES, profile_id, profile_size, with_unchecked_data
from mindex.model import Change, Record
from mindex.store.foreign_sqlite import ForeignDatabase, ForeignRow
from mindex.transfer.importer import ExportRow, ReadRow, SkippedRow
from mindex.transfer.importers import foreign_values as foreign
from mindex.transfer.importers.memorizer_contacts_projects_skills import agent_of
from mindex.transfer.importers.sqlite_source import key_of

_BY = "memorizer"


@dataclass(frozen=True, slots=True)
class _OldVersion:
    """A version of a profile, and when and why it was replaced."""

    data: dict[str, Any]
    at: int
    reason: str


def read_profiles(database: ForeignDatabase) -> Iterator[ReadRow]:
    """Yield the profiles with their older versions; versions without a profile are named."""
    older: defaultdict[str, list[_OldVersion]] = defaultdict(list)
    for row in database.rows("profile_history", "id", "agent_id", "profile_data", "changed_at", "change_reason"):
        data = foreign.json_value(row["profile_data"])
        if isinstance(data, dict):
            version = _OldVersion(data, foreign.time_ms(row["changed_at"]), foreign.text(row["change_reason"]))
            older[agent_of(row)].append(version)
        else:
            yield SkippedRow(f"profile_history {key_of(row)}", "this version is not a JSON object", row=False)
    for row in database.rows("profiles", "agent_id", "profile_data", "created_at", "updated_at"):
        agent = agent_of(row)
        yield _profile(agent, row, older.pop(agent, []), database.modified)
    for agent, versions in older.items():
        reason = f"'{agent}' has {len(versions):,} older versions of a profile, and no profile"
        yield SkippedRow("profile_history", reason, row=False)


def _profile(agent: str, row: ForeignRow, older: list[_OldVersion], modified: int) -> ReadRow:
    where, data = f"profiles {agent}", foreign.json_value(row["profile_data"])
    if not isinstance(data, dict):
        return SkippedRow(where, "it is not a JSON object")
    size = profile_size(data)
    if size > MAX_BYTES:
        return SkippedRow(where, f"it has {size:,} bytes, a profile may have {MAX_BYTES:,}")
    at = foreign.time_ms(row["created_at"], modified)
    source = f"{_BY}:profiles:{agent}"
    bare = Record(
        id=profile_id(agent), kind="profile", text="", agent=agent, created_at=at, updated_at=at, source=source
    )
    older.sort(key=lambda version: version.at)
    versions = [*(version.data for version in older), data]
    state = with_unchecked_data(bare, versions[0])
    changes = [Change(0, bare.id, at, _BY, "add", "", None, state)]
    for replaced, later in zip(older, versions[1:], strict=True):
        replaced_at = replaced.at or at
        after = replace(with_unchecked_data(bare, later), updated_at=replaced_at)
        changes.append(Change(0, bare.id, replaced_at, _BY, "update", replaced.reason, state, after))
        state = after
    updated_at = foreign.time_ms(row["updated_at"], state.updated_at)
    return ExportRow(replace(state, updated_at=updated_at), tuple(changes), where=where)
