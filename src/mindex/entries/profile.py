"""The profile of an agent: what is known of its user, as one JSON object in one record with history and undo."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from mindex.clock import now_ms
from mindex.datatypes import Change, Record
from mindex.entries.json_paths import leaves, merged, parse_path, value_at, with_value, without_value
from mindex.entries.validation import validate_amount, validate_json
from mindex.errors import NotFoundError, UsageError
from mindex.ids import short_hash
from mindex.redaction.json_values import redact_value
from mindex.store.transactions import in_transaction
from mindex.values import dataclass

if TYPE_CHECKING:  # `entries` undoes changes of profiles
    from mindex.entries.entries import Entries


@dataclass(frozen=True, slots=True)
class Profile:
    """`memory.profile`: what is known of the user.

    Each method takes the agent of the profile; None: that of the settings.
    """

    _entries: Entries

    def record(self, *, agent: str | None = None) -> Record | None:
        """Return the record of the profile, or None before anything was set."""
        found = self._entries.store.retrieval.record(profile_id(self._entries.owner(agent)))
        return None if found is None or found.retired_at is not None else found

    def get(self, path: str = "", *, agent: str | None = None) -> Any:
        """Return the profile, or the value at a path such as `user.name`; {} before anything was set."""
        found = self.record(agent=agent)
        data = found.fields.get("data", {}) if found else {}
        return value_at(data, path) if path else data

    def set(
        self, changes: Mapping[str, Any], reason: str = "", *, agent: str | None = None, replace: bool = False
    ) -> Change:
        """Set values by their paths, in one change; None removes a value.

        An object is merged with the existing one, name by name, and a single value in place of an object or a list
        that holds others raises ConflictError; with `replace` both take the place of what is there.
        """
        agent = self._entries.owner(agent)
        if not changes:
            raise UsageError("there is nothing to change", "give a path and a value")
        for path in changes:
            parse_path(path)  # an invalid path must not leave an empty profile behind
        redact = self._entries.redactor.redact_text
        changes = {redact(path): redact_value(validate_json(value), redact, path) for path, value in changes.items()}

        def revised(record: Record) -> Record:
            data: Any = record.fields.get("data", {})
            for path, value in changes.items():
                if value is None:
                    data = without_value(data, path)
                else:
                    data = with_value(data, path, value if replace else merged(data, path, value))
            return with_data(record, data)

        def store(_: int) -> Change:  # a refused change must not leave an empty profile behind either
            self._ensure(agent)
            return self._entries.revise(profile_id(agent), revised, "update", reason)

        return self._entries.queue.embed_after(in_transaction(self._entries.store.entries, store))

    def history(self, *, agent: str | None = None) -> tuple[Change, ...]:
        """Return all changes of the profile, oldest first."""
        return self._entries.store.entries.history(profile_id(self._entries.owner(agent)))

    def rollback(self, version: int, reason: str = "", *, agent: str | None = None) -> Change:
        """Restore the profile as it was right after a change, by the number of that change."""
        agent = self._entries.owner(agent)
        target = next((one for one in self.history(agent=agent) if one.change == version), None)
        if target is None:
            raise NotFoundError(
                f"the profile of '{agent}' has no version {version}", "`mindex profile history` lists them"
            )
        data = target.after.fields.get("data", {})
        reason = self._entries.redactor.redact_text(reason) or f"rollback to version {version}"
        change = self._entries.revise(
            profile_id(agent), lambda record: with_data(replace(record, retired_at=None), data), "rollback", reason
        )
        return self._entries.queue.embed_after(change)

    def _ensure(self, agent: str) -> None:
        """Create an empty profile if there is none, and restore a forgotten one."""
        id_, store = profile_id(agent), self._entries.store
        existing = store.retrieval.record(id_)
        if existing is None:
            now = now_ms()
            empty = Record(id=id_, kind="profile", text="", agent=agent, created_at=now, updated_at=now)
            store.entries.add([with_data(empty, {})], by=self._entries.agent, once=True)
        elif existing.retired_at is not None:
            self._entries.revise(id_, partial(replace, retired_at=None), "restore")


def profile_id(agent: str) -> str:
    """Return the id of the one profile that an agent has."""
    return short_hash("profile", agent)


def with_data(record: Record, data: Any) -> Record:
    """Return a profile with other data and the text made of it. Raises UsageError when it is too large."""
    validate_amount("profile", data, before=record.fields.get("data"))
    return with_unchecked_data(record, data)


def with_unchecked_data(record: Record, data: Any) -> Record:
    """Return a profile with other data and the text made of it, of any size."""
    text = "\n".join(f"{path}: {value}" for path, value in leaves(data))
    name = f"Profile of {record.agent}"
    return replace(record, fields={"data": data}, text=text, title=name, summary=name)
