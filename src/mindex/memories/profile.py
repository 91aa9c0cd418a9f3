"""The profile of an agent: what is known of its user, as one JSON object in one record with history and undo."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from mindex.clock import now_ms
from mindex.embedding.queue import EmbeddingQueue
from mindex.errors import NotFoundError, UsageError
from mindex.ids import short_hash
from mindex.memories import json_paths
from mindex.memories.agents import AgentName
from mindex.memories.json_values import redact_value
from mindex.model import Change, Record
from mindex.redaction.redactor import Redactor
from mindex.store.base import Store

MAX_BYTES = 256 * 1024


class Profile:
    """Reached as `memory.profile`. Every method takes the agent whose profile it is; None: the one of the settings."""

    def __init__(self, store: Store, redactor: Redactor, queue: EmbeddingQueue, agent_name: AgentName) -> None:
        self._store = store
        self._redact = redactor.redact_text
        self._queue = queue
        self._agent_name = agent_name

    def record(self, *, agent: str | None = None) -> Record | None:
        """The record of the profile; None before anything was set."""
        found = self._store.retrieval.record(profile_id(self._agent_name(agent)))
        return None if found is None or found.retired_at is not None else found

    def get(self, path: str = "", *, agent: str | None = None) -> Any:
        """The profile, or the value at a path such as `user.name` or `projects[0]`; {} before anything was set."""
        found = self.record(agent=agent)
        data = found.fields.get("data", {}) if found else {}
        return json_paths.value_at(data, path) if path else data

    def set(self, changes: Mapping[str, Any], reason: str = "", *, agent: str | None = None) -> Change:
        """Set values by their paths, in one change; None removes a value."""
        agent = self._agent_name(agent)
        if not changes:
            raise UsageError("there is nothing to change", "give a path and a value")
        for path in changes:
            json_paths.parse_path(path)  # an invalid path must not leave an empty profile behind
        changes = {self._redact(path): redact_value(value, self._redact, path) for path, value in changes.items()}

        def revised(record: Record) -> Record:
            data: Any = record.fields.get("data", {})
            for path, value in changes.items():
                data = (
                    json_paths.without_value(data, path) if value is None else json_paths.with_value(data, path, value)
                )
            return with_data(record, data)

        reason = self._redact(reason)
        with self._store.entries.transaction():  # a refused change must not leave an empty profile behind either
            self._ensure(agent)
            change = self._revise(agent, revised, "update", reason)
        return self._embedded(change)

    def history(self, *, agent: str | None = None) -> tuple[Change, ...]:
        return self._store.entries.history(profile_id(self._agent_name(agent)))

    def rollback(self, version: int, reason: str = "", *, agent: str | None = None) -> Change:
        """Bring back the profile as it was right after a change, by the number of that change."""
        agent = self._agent_name(agent)
        target = next((one for one in self.history(agent=agent) if one.change == version), None)
        if target is None:
            raise NotFoundError(
                f"the profile of '{agent}' has no version {version}", "`mindex profile history` lists them"
            )
        data = target.after.fields.get("data", {})
        reason = self._redact(reason) or f"rollback to version {version}"
        return self._embedded(
            self._revise(agent, lambda record: with_data(replace(record, retired_at=None), data), "rollback", reason)
        )

    def _embedded(self, change: Change) -> Change:
        return replace(change, notes=(*change.notes, *self._queue.embed(change.record)))

    def _revise(self, agent: str, change: Callable[[Record], Record], action: str, reason: str) -> Change:
        by = self._agent_name.default
        return self._store.entries.revise(profile_id(agent), change, by=by, action=action, reason=reason)

    def _ensure(self, agent: str) -> None:
        existing = self._store.retrieval.record(profile_id(agent))
        if existing is None:
            now = now_ms()
            empty = Record(id=profile_id(agent), kind="profile", text="", agent=agent, created_at=now, updated_at=now)
            self._store.entries.add([with_data(empty, {})], by=self._agent_name.default, once=True)
        elif existing.retired_at is not None:
            self._revise(agent, lambda record: replace(record, retired_at=None), "restore", "")


def profile_id(agent: str) -> str:
    """Return the id of the one profile that an agent has."""
    return short_hash("profile", agent)


def profile_size(data: Any) -> int:
    """Return the bytes that a profile takes as JSON."""
    return len(json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def with_data(record: Record, data: Any) -> Record:
    """Return a profile with other data and the text made of it. Raises UsageError when it is too large."""
    size = profile_size(data)
    if size > MAX_BYTES:
        raise UsageError(
            f"the profile would have {size:,} bytes, {MAX_BYTES:,} are allowed", "keep long texts as memories or notes"
        )
    return with_unchecked_data(record, data)


def with_unchecked_data(record: Record, data: Any) -> Record:
    """Return a profile with other data and the text made of it, whatever its size."""
    text = "\n".join(f"{path}: {value}" for path, value in json_paths.leaves(data))
    name = f"Profile of {record.agent}"
    return replace(record, fields={"data": data}, text=text, title=name, summary=name)
