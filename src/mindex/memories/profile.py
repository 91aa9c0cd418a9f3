"""What is known of a user, per agent: one JSON object in one record, so its history and undo are everyone's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mindex.clock import now_ms
from mindex.errors import NotFoundError, UsageError
from mindex.ids import short_hash
from mindex.memories import json_paths
from mindex.memories.contacts_projects_skills import Boundary, cleaned
from mindex.model import Change, Record
from mindex.store.base import Store

MAX_BYTES = 256 * 1024


class Profiles:
    """Reads and changes the profiles of one store."""

    def __init__(self, store: Store, redact: Boundary, by: str) -> None:
        self._store = store
        self._crosses = redact
        self._by = by

    def record(self, agent: str) -> Record | None:
        found = self._store.retrieval.record(_id(agent))
        return None if found is None or found.retired_at is not None else found

    def get(self, agent: str, path: str = "") -> Any:
        """The whole profile, or what stands at a path; an empty object before anything was said."""
        found = self.record(agent)
        data = found.fields.get("data", {}) if found else {}
        return json_paths.read(data, path) if path else data

    def set(self, agent: str, changes: Mapping[str, Any], reason: str = "") -> Change:
        """Change places by their paths, in one step; a value of None takes its place away."""
        if not changes:
            raise UsageError("there is nothing to change", "give a path and a value")
        for path in changes:
            json_paths.steps(path)  # a path that is none must not leave an empty profile behind
        changes = {self._crosses(path): cleaned(value, self._crosses, path) for path, value in changes.items()}

        def revised(record: Record) -> Record:
            data: Any = record.fields.get("data", {})
            for path, value in changes.items():
                data = json_paths.removed(data, path) if value is None else json_paths.written(data, path, value)
            return with_data(record, data)

        why = self._crosses(reason)
        with self._store.entries.transaction():  # what is refused must not leave an empty profile behind either
            self._ensure(agent)
            return self._store.entries.revise(_id(agent), revised, by=self._by, action="update", reason=why)

    def history(self, agent: str) -> tuple[Change, ...]:
        return self._store.entries.history(_id(agent))

    def rollback(self, agent: str, version: int, reason: str = "") -> Change:
        """Back to how it was right after a change, by that change's number."""
        target = next((one for one in self.history(agent) if one.change == version), None)
        if target is None:
            raise NotFoundError(
                f"the profile of '{agent}' has no version {version}", "`mindex profile history` lists them"
            )
        data = target.after.fields.get("data", {})
        why = self._crosses(reason) or f"rollback to version {version}"
        return self._store.entries.revise(
            _id(agent),
            lambda record: with_data(replace(record, retired_at=None), data),
            by=self._by,
            action="rollback",
            reason=why,
        )

    def _ensure(self, agent: str) -> None:
        existing = self._store.retrieval.record(_id(agent))
        if existing is None:
            now = now_ms()
            empty = Record(id=_id(agent), kind="profile", text="", agent=agent, created_at=now, updated_at=now)
            self._store.entries.add([with_data(empty, {})], by=self._by, once=True)
        elif existing.retired_at is not None:
            self._store.entries.revise(
                existing.id, lambda record: replace(record, retired_at=None), by=self._by, action="restore", reason=""
            )


def _id(agent: str) -> str:
    return short_hash("profile", agent)


def with_data(record: Record, data: Any) -> Record:
    size = len(json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        raise UsageError(
            f"the profile would have {size:,} bytes, {MAX_BYTES:,} are allowed", "keep long texts as memories or notes"
        )
    text = "\n".join(f"{path}: {value}" for path, value in json_paths.flattened(data))
    name = f"Profile of {record.agent}"
    return replace(record, fields={"data": data}, text=text, title=name, summary=name)
