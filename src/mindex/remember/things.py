"""Contacts, projects and skills: records like any other, whose words are made of their fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from mindex.clock import now_ms
from mindex.errors import ConflictError, NotFoundError, UsageError
from mindex.ids import new_id
from mindex.model import Change, Filters, Record
from mindex.remember.fields import UNIQUE, ThingKind, checked, words_of
from mindex.remember.memories import find_told
from mindex.remember.schedule import checked_trigger
from mindex.store.base import Store

Boundary = Callable[[str], str]


class Things:
    """Creates, finds and changes them in one store."""

    def __init__(self, store: Store, crosses: Boundary, by: str) -> None:
        self._store = store
        self._crosses = crosses
        self._by = by

    def create(self, kind: ThingKind, values: Mapping[str, object], agent: str) -> Record:
        fields = self._cleaned(checked(kind, values))
        self._check(kind, fields)
        now = now_ms()
        record = Record(
            id=new_id(),
            kind=kind,
            text=words_of(kind, fields),
            title=str(fields["name"]),
            agent=agent,
            created_at=now,
            updated_at=now,
            type=str(fields.get("type") or ""),
            summary=_summary(kind, fields),
            fields={name: value for name, value in fields.items() if value is not None},
        )
        added = self._store.add([record], by=self._by, unique=UNIQUE[kind])[0]
        if not added.created:
            raise _taken(kind, fields, added.id)
        return record

    def update(self, kind: ThingKind, id_: str, values: Mapping[str, object], reason: str = "") -> Change:
        if not values:
            raise UsageError("there is nothing to change", "give the fields that change")
        changes = self._cleaned(checked(kind, values, partial=True))
        existing = self.get(kind, id_)

        def revised(record: Record) -> Record:
            fields = {**record.fields, **changes}
            fields = {name: value for name, value in fields.items() if value is not None}
            self._check(kind, fields)
            return replace(
                record,
                fields=fields,
                text=words_of(kind, fields),
                title=str(fields["name"]),
                type=str(fields.get("type") or ""),
                summary=_summary(kind, fields),
            )

        return self._store.revise(
            existing.id, revised, by=self._by, action="update", reason=reason, unique=UNIQUE[kind]
        )

    def get(self, kind: ThingKind, id_: str) -> Record:
        """By id, a unique start of it, or the exact name."""
        try:
            record = find_told(self._store, id_)
        except NotFoundError:
            named = [one for one in self._all(kind, "*") if one.title.casefold() == id_.casefold()]
            if len(named) != 1:
                raise NotFoundError(f"there is no {kind} '{id_}'", f"`mindex {kind} list` shows them") from None
            return named[0]
        if record.kind != kind or record.retired_at is not None:
            raise NotFoundError(f"there is no {kind} '{id_}'", f"`mindex {kind} list` shows them")
        return record

    def listed(self, kind: ThingKind, agent: str, wanted: Mapping[str, object], limit: int) -> tuple[Record, ...]:
        """Those whose fields equal what is wanted; of `name` and `company` a part is enough, whatever its case."""
        matching = [record for record in self._all(kind, agent) if _matches(record.fields, wanted)]
        return tuple(matching[:limit])

    def delete(self, kind: ThingKind, id_: str, reason: str = "") -> Change:
        """Forget it: out of lists and searches, and back with `restore` or `undo`."""
        now = now_ms()
        return self._store.revise(
            self.get(kind, id_).id,
            lambda record: replace(record, retired_at=now),
            by=self._by,
            action="forget",
            reason=reason,
        )

    def _all(self, kind: ThingKind, agent: str) -> list[Record]:
        found: list[Record] = []
        while page := self._store.list(Filters(kinds=(kind,), agent=agent), limit=500, offset=len(found)).records:
            found += page
        return sorted(found, key=lambda record: (record.agent, record.number or 0))

    def _cleaned(self, fields: Mapping[str, object]) -> dict[str, object]:
        """Every text in them, however deep, crosses the boundary."""
        return {name: cleaned(value, self._crosses) for name, value in fields.items()}

    def _check(self, kind: ThingKind, fields: Mapping[str, object]) -> None:
        if kind == "skill":
            checked_trigger(str(fields["trigger_type"]), fields.get("trigger_config") or {})


def cleaned(value: object, crosses: Boundary) -> object:
    if isinstance(value, str):
        return crosses(value)
    if isinstance(value, list):
        return [cleaned(part, crosses) for part in value]
    if isinstance(value, dict):
        return {name: cleaned(part, crosses) for name, part in value.items()}
    return value


def _summary(kind: ThingKind, fields: Mapping[str, object]) -> str:
    more = {"contact": ("role", "company"), "project": ("status", "company"), "skill": ("description",)}[kind]
    said = ", ".join(str(fields[name]) for name in more if fields.get(name))
    words = f"{fields['name']}{f' ({said})' if said else ''}".split()
    return " ".join(words[:20])


def _taken(kind: ThingKind, fields: Mapping[str, object], id_: str) -> ConflictError:
    unique = UNIQUE[kind]
    return ConflictError(
        f"{kind} '{id_}' has the {unique} {fields[unique]} already", f"update it, or choose another {unique}"
    )


def _matches(fields: Mapping[str, object], wanted: Mapping[str, object]) -> bool:
    for name, value in wanted.items():
        held = fields.get(name)
        if name == "name":
            if str(value).casefold() not in str(held or "").casefold():
                return False
        elif name == "contact":
            participants = fields.get("participants")
            involved = [fields.get("primary_contact_id"), *(participants if isinstance(participants, list) else [])]
            if value not in involved:
                return False
        elif str(held if held is not None else "").casefold() != str(value).casefold():
            return False
    return True
